"""`planrun help [TOPIC]`: an overview, a group, a topic, or the help of a verb."""

from __future__ import annotations

from planrun.cli.overview import OVERVIEW, TOPICS, group_help, topic
from planrun.cli.verbs import GROUPS, SPELLED, modules, names
from planrun.cliutil.printing import say
from planrun.errors import InvalidInput


def helped(words: list[str]) -> int:
    """Print the help that the words after `planrun help` name; returns the exit code. Raises InvalidInput."""
    asked = [word for word in words if word not in ("-h", "--help")]
    name = asked[0] if asked else "help" if words else ""
    words = asked
    if not name:
        say(OVERVIEW.rstrip("\n"))
    elif name == "help":
        say(f"{topic_list()}\n\nExamples:\n  planrun help\n  planrun help run\n  planrun help exit-codes")
    elif name in TOPICS:
        say(topic(name))
    elif name in GROUPS and (name in SPELLED or name not in modules()) and len(words) == 1:
        own = (
            f"\n`planrun {name} --help` shows the options of `planrun {name}` itself."
            if name in modules()
            else ""
        )
        say(group_help(name) + own)
    elif name in names():
        from planrun.cli.group import grouped  # only the help of a verb is click's

        return grouped([*words, "--help"])
    else:
        from planrun.plan.problems import did_you_mean

        hint = did_you_mean(name, [*names(), *GROUPS, *TOPICS])
        raise InvalidInput(
            f'no such verb, group or topic: "{name}"{f"; {hint}" if hint else ""}\n  see: planrun help'
        )
    return 0


def topic_list() -> str:
    """Return what `planrun help` can be asked for."""
    rows = "\n".join([f"  {name.ljust(12)} {about}" for name, about in TOPICS.items()])
    return f"Usage: planrun help [VERB|GROUP|TOPIC]\n\nGroups: {', '.join(GROUPS)}\nTopics:\n{rows}"
