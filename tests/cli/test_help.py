"""Help that teaches: the overview, the help of each verb, and the examples in both."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest

from planrun.cli.group import VERBS, planrun
from planrun.cli.overview import EXIT_CODES, OVERVIEW, TOPICS, all_verbs, topic
from planrun.cli.verbs import GROUPS, SPELLED, TABLE, in_group, resolved, spellings
from planrun.cliutil.options import EXECUTE, RESUME
from planrun.errors import (
    EXIT_DEADLINE,
    EXIT_DENIED,
    EXIT_FAILED,
    EXIT_INTERNAL,
    EXIT_INVALID,
    EXIT_RECORDS,
    EXIT_WAITING,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cli.conftest import Said

CONTEXT = click.Context(planrun, info_name="planrun", **planrun.context_settings)


def command(verb: str) -> click.Command:
    """Return a verb's command."""
    found = planrun.get_command(CONTEXT, verb)
    assert found is not None
    return found


def help_of(verb: str) -> str:
    """Return the help of a verb as a person reads it."""
    return command(verb).get_help(click.Context(command(verb), info_name=verb, parent=CONTEXT))


def examples(text: str) -> Iterator[list[str]]:
    """Yield the words of every planrun command in a text, up to a comment, a pipe or a redirection."""
    for found in re.findall(r"^(?!Usage)(?:.+[\"'`(:] ?| +)planrun ([a-z].*)$", text, re.MULTILINE):
        words = shlex.split(re.split(r"\s{2,}|[|>)`]", found)[0].strip(), posix=True)
        yield [word for word in words if word]


def rows(text: str) -> list[str]:
    """Return the first word of each line of two columns."""
    return re.findall(r"^  ([a-z]+)\b.*?  +\S", text, re.MULTILINE)


def test_the_overview_is_short_and_begins_with_what_a_first_hour_needs() -> None:
    """It fits 24 lines: the verbs of the start, the names of the groups, and where the rest is."""
    assert OVERVIEW.count("\n") <= 24
    start, options = OVERVIEW.split("\nStart:\n")[1].split("\nOptions:")
    assert rows(start) == ["init", "validate", "show", "run", "logs", "resume", "approve", "report"]
    assert f"planrun help GROUP     {', '.join(GROUPS)}\n" in options
    for topic_name in ("all", "exit-codes", "VERB", "environment"):
        assert topic_name in options.split("planrun help all")[1] + "all"


def test_help_all_lists_exactly_the_verbs_that_exist() -> None:
    """Each verb stands in one group, explain and show in two, with all spellings; nothing else is listed."""
    text = all_verbs()
    listed = rows(text.split("Verbs can also")[0])
    assert sorted(set(listed)) == sorted(VERBS)
    assert {verb for verb in listed if listed.count(verb) > 1} == {"explain", "show"}
    assert {verb.group for verb in TABLE} == set(GROUPS)
    for group, words in SPELLED.items():
        assert set(words.values()) <= set(VERBS)
        assert " ".join(spellings(group).split()).replace("| ", "|") in " ".join(text.split()).replace(
            "| ", "|"
        )


@pytest.mark.parametrize("group", GROUPS)
def test_help_of_a_group(say: Callable[..., Said], group: str) -> None:
    """`planrun help GROUP` lists the verbs of the group, or shows the help of a verb that has verbs of its own."""
    said = say("help", group)
    assert (said.code, said.err) == (0, "")
    if group in ("cache", "queue"):
        assert said.out == say(group, "--help").out
    else:
        assert set(rows(said.out)) >= {verb.name for verb in in_group(group)}


@pytest.mark.parametrize("name", TOPICS)
def test_help_of_a_topic(say: Callable[..., Said], name: str) -> None:
    """Each topic has its text, which fits a terminal."""
    said = say("help", name)
    assert (said.code, said.err) == (0, "")
    assert max(map(len, said.out.split("\n"))) <= 80
    assert len(said.out) > 200


@pytest.mark.parametrize(
    "words", ["run", "logs", "queue add", "cache", "runs prune", "model generate", "help"]
)
def test_help_verb_is_the_help_of_the_verb(say: Callable[..., Said], words: str) -> None:
    """`planrun help VERB` prints what `planrun VERB --help` prints."""
    said = say("help", *words.split())
    assert said.code == 0
    if words != "help":
        assert said.out.startswith(f"Usage: planrun {words} ")
        assert said.out == say(*words.split(), "--help").out == say(*words.split(), "-h").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["help", "exceute"], 'no such verb, group or topic: "exceute"; did you mean "execute"?'),
        (["help", "exit-code"], 'did you mean "exit-codes"?'),
        (["help", "frobnicate"], 'no such verb, group or topic: "frobnicate"\n  see: planrun help'),
        (["model", "genrate", "x"], 'no such command: "model genrate"; did you mean "model generate"?'),
        (["runs", "lst"], 'no such command: "runs lst"; did you mean "runs list"?'),
    ],
)
def test_help_of_what_there_is_not(say: Callable[..., Said], words: list[str], message: str) -> None:
    """An unknown topic or word of a group is exit 2 and names the nearest."""
    said = say(*words)
    assert (said.code, said.out) == (2, "")
    assert message in said.err


@pytest.mark.parametrize(
    ("grouped", "plain"),
    [
        ("runs list --json", "runs --json"),
        ("runs show", "status"),
        ("runs report --format json", "report --format json"),
        ("runs prune --keep 1 --dry-run", "prune --keep 1 --dry-run"),
        ("runs verify last", "verify last"),
        ("review risk ls", "risk ls"),
        ("review plan plan.yml", "review plan.yml"),
        ("model classify fix a typo", "classify fix a typo"),
    ],
)
@pytest.mark.usefixtures("mixed")
def test_a_verb_is_also_spelled_by_its_group(say: Callable[..., Said], grouped: str, plain: str) -> None:
    """`planrun GROUP WORD` does the same as the verb that it stands for."""
    assert say(*grouped.split()) == say(*plain.split())


@pytest.mark.usefixtures("mixed")
def test_a_verb_that_runs_steps_is_also_spelled_by_its_group(say: Callable[..., Said]) -> None:
    """`planrun runs retry` gets its operands and options as `planrun retry` does."""
    assert "--keep" in say("runs", "prune").err
    said = say("runs", "retry", "last", "lint", "--adopt", "--json")
    assert json.loads(said.out)["verdict"] == "failed"
    assert said.code == 1


def test_help_names_every_exit_code() -> None:
    """The exit codes of `planrun help exit-codes` are those that planrun uses."""
    block = topic("exit-codes")
    named = {int(code) for code in re.findall(r"^  (\d+) ", block, re.MULTILINE)}
    used = {EXIT_FAILED, EXIT_INVALID, EXIT_DENIED, EXIT_INTERNAL, EXIT_WAITING, EXIT_RECORDS, EXIT_DEADLINE}
    assert named == {0, 129} | used


def test_help_names_the_same_exit_codes_everywhere_and_how_choices_add_up() -> None:
    """Verbs that run steps have the exit codes of the overview; choices add up, `--skip` takes away."""
    for verb in ("execute", "resume", "retry"):
        block = help_of(verb).split("Exit codes:")[1]
        assert [line.strip() for line in block.split("\n") if line.strip()] == [
            line.strip() for line in EXIT_CODES.splitlines()
        ]
    text = help_of("execute")
    help_text = " ".join(text.split())
    assert "--only, --from, --until and --tag can be repeated and add up" in help_text
    assert "--skip removes" in help_text
    assert "parameters one a line" in help_text
    assert max(map(len, text.split("\n"))) <= 100


def test_options_stand_in_sections_the_most_used_first() -> None:
    """Help of `run` begins with two lines and examples; the most used options come first, all others in sections."""
    text = help_of("run")
    sections = re.split(r"^(\w[\w ]+):\n", text, flags=re.MULTILINE)[1:]
    flags = {
        name: re.findall(r"^  (?:-\w, )?(--[a-z-]+)", block, re.MULTILINE)
        for name, block in zip(sections[::2], sections[1::2], strict=True)
    }
    assert list(flags) == [
        "Options", "Selection", "Output and reports", "Approval and answers", "Models", "Cache and machine"
    ]  # fmt: skip
    first = ["--param", "--only", "--from", "--until", "--skip", "--jobs"]
    assert flags["Options"][:6] == first
    assert {"--strict", "--auto-approve", "--json", "--quiet"} <= set(flags["Options"])
    assert len(flags["Options"]) <= 15
    every = [flag for found in flags.values() for flag in found]
    known = [option.flags[0] for option in EXECUTE if not option.hidden]
    assert sorted(every) == sorted([*known, "--help"])
    paragraphs = text.split("\n\n")
    assert len(paragraphs[1].splitlines()) == 2
    assert paragraphs[2].count("\n    planrun run") == 4


def test_help_shows_a_plan_that_is_valid(say: Callable[..., Said], tmp_path: object) -> None:
    """The plan in `planrun help plan` can be copied into a file and validated."""
    block = topic("plan").split("plan.yml:\n")[1].split("\nplanrun init")[0]
    with open(f"{tmp_path}/plan.yml", "w", encoding="utf-8") as file:
        file.write("\n".join(line[2:] for line in block.split("\n")))
    assert say("validate", "plan.yml") == (0, "plan.yml: ok, 3 steps\n", "")


def test_help_fits_a_terminal() -> None:
    """No line of the overview is wider than 80 columns."""
    assert max(map(len, OVERVIEW.split("\n"))) <= 80


@pytest.mark.parametrize("words", [("help",), ("--help",), ("-h",), ("--help", "-h")])
def test_the_overview_is_the_help(say: Callable[..., Said], words: tuple[str, ...]) -> None:
    """`planrun help` and any form of --help print the overview and succeeds."""
    assert say(*words) == (0, OVERVIEW, "")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_teaches_by_example(say: Callable[..., Said], verb: str) -> None:
    """The help of each verb describes it, shows examples, and exits 0."""
    said = say(verb, "--help")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith(f"Usage: planrun {verb} ") or verb == "help"
    assert "Examples:" in said.out
    assert any(words[0] == verb for words in examples(said.out))


PARTS = [
    (f"{verb} {name}", part.get_help(click.Context(part, info_name=f"{verb} {name}", parent=CONTEXT)))
    for verb in VERBS
    if isinstance(group := command(verb), click.Group)
    for name, part in group.commands.items()
]


@pytest.mark.parametrize(("name", "text"), PARTS, ids=[name for name, _ in PARTS])
def test_every_part_of_a_verb_teaches_by_example(name: str, text: str) -> None:
    """A verb that has verbs of its own shows examples of each."""
    assert "Examples:" in text
    assert any(" ".join(words[:2]) == name for words in examples(text))


@pytest.mark.parametrize(
    "text",
    [all_verbs(), *map(help_of, VERBS), *[text for _, text in PARTS]],
    ids=["all", *VERBS, *[name for name, _ in PARTS]],
)
def test_every_example_is_a_command_that_exists(text: str) -> None:
    """Verb, options and operands of every command in a help text are accepted."""
    found = list(examples(text))
    assert found
    for line in found:
        verb, *words = resolved(line)[0]
        if not set(words) & {"RUN", "PLAN", "SHELL", "VERB", "STEP", "[STEP]"}:
            found_command = command(verb)
            context = found_command.make_context(verb, list(words))
            if isinstance(found_command, click.Group):
                name, part, rest = found_command.resolve_command(context, list(words))
                assert part is not None
                part.make_context(name, rest, parent=context)


@pytest.mark.parametrize(("verb", "options"), [("execute", EXECUTE), ("resume", RESUME)])
def test_help_and_parser_of_running_verbs_share_their_options(verb: str, options: tuple[object, ...]) -> None:
    """Every option of the parser stands in the help with its variable, and the help has no other."""
    flags = {flag for param in command(verb).params if isinstance(param, click.Option) for flag in param.opts}
    assert flags == {flag for option in options for flag in option.flags}  # type: ignore[attr-defined]
    text = " ".join(help_of(verb).split())
    for option in options:
        assert (f"[{option.variable}]" in text) is not option.hidden  # type: ignore[attr-defined]


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["help"]])
def test_help_and_version_load_no_library(words: list[str]) -> None:
    """Printing the overview or the version imports neither click nor anything else that is slow."""
    script = "import sys; from planrun.cli import main; main(sys.argv[1:]); sys.stderr.write(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", script, *words], capture_output=True, text=True, check=True
    )
    assert not {"click", "re", "typing", "json", "yaml", "pydantic", "planrun.model"} & set(
        done.stderr.split()
    )
