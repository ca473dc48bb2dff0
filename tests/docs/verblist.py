"""docs/reference/commands.md: every verb with its operands and options, from the command line itself."""

from __future__ import annotations

import re

import click

from planrun.cli.group import VERBS, planrun
from planrun.cli.verbs import GROUPS, SPELLED, in_group
from tests.docs.pages import NOTHING

HEAD = """\
# Every verb and option

The output of `planrun VERB --help`, in one list. [Commands](../commands.md) explains each verb with examples and exit
codes.

"""
START, END = "<!-- verbs -->\n", "<!-- /verbs -->\n"
VARIABLE = re.compile(r" *\[(PLANRUN_\w+)\]")


def page() -> str:
    """Return docs/reference/commands.md."""
    verbs = [(verb, command) for name in VERBS for verb, command in _commands(name)]
    parts = [HEAD, *[f"- [{verb}](#{verb.replace(' ', '-')})\n" for verb, _ in verbs]]
    for verb, command in verbs:
        parts.append(f"\n## {verb}\n\n```text\n{_usage(verb, command)}\n```\n\n{_first(command)}")
        parts.append(f" [More](../commands.md#{verb.split()[0]})\n")
        rows = [
            _row(option)
            for option in command.params
            if isinstance(option, click.Option) and not option.hidden
        ]
        if rows:
            parts += ["\n| Option | Value | Variable | What it does |\n|---|---|---|---|\n", *rows]
    return "".join(parts)


def index() -> str:
    """Return the verbs by group as docs/commands.md has them, with the spellings by group."""
    parts = []
    for group, about in GROUPS.items():
        parts.append(f"**{group.capitalize()}**: {about}\n\n| Verb | What it does |\n|---|---|\n")
        shown = dict.fromkeys([verb.name for verb in in_group(group)])
        for name in shown:
            uses = "; ".join([verb.summary for verb in in_group(group) if verb.name == name])
            parts.append(f"| [`{name}`](#{name}) | {uses} |\n")
        parts.append("\n")
    for group, words in SPELLED.items():
        spelled = ", ".join(
            [f"`{word}`" if word == verb else f"`{word}` (= `{verb}`)" for word, verb in words.items()]
        )
        parts.append(f"- `planrun {group} …`: {spelled}\n")
    return "".join(
        [*parts[: -len(SPELLED)], "A verb can also be spelled by its group:\n\n", *parts[-len(SPELLED) :]]
    )


def with_index(page: str) -> str:
    """Return docs/commands.md with its list of verbs as it should be."""
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}{index()}{END}{after}"


def _commands(name: str) -> list[tuple[str, click.Command]]:
    """Return a verb, or the verbs that it has of its own."""
    command = planrun.get_command(click.Context(planrun), name)
    assert command is not None
    if isinstance(command, click.Group):
        return [(f"{name} {verb}", each) for verb, each in command.commands.items()]
    return [(name, command)]


def _usage(verb: str, command: click.Command) -> str:
    context = click.Context(command, info_name=f"planrun {verb}")
    return " ".join(["planrun", verb, *command.collect_usage_pieces(context)])


def _first(command: click.Command) -> str:
    """Return the first sentence of what a verb says about itself."""
    text = " ".join((command.help or "").split("\n\n")[0].split())
    return text if text.endswith(".") else f"{text}."


def _row(option: click.Option) -> str:
    said = option.help or ""
    variable = variable_of(option)
    flags = ", ".join(f"`{flag}`" for flag in option.opts)
    cells = (flags, _value(option), f"`{variable}`" if variable else "", VARIABLE.sub("", said))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def variable_of(option: click.Option) -> str:
    """Return the variable that sets an option, which the verbs that run plans name in its help; "" without one."""
    found = VARIABLE.search(option.help or "")
    return found[1] if found else str(option.envvar or "")


def _value(option: click.Option) -> str:
    if option.is_flag:
        return NOTHING
    if isinstance(option.type, click.Choice):
        return ", ".join(f"`{word}`" for word in option.type.choices)
    return option.metavar or option.type.name.upper()
