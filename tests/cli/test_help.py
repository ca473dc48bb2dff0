"""Help that teaches: the overview, the help of each verb, and the examples in both."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest

from planrun.cli.group import VERBS, planrun
from planrun.cli.overview import EXIT_CODES, OVERVIEW
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


def test_the_overview_lists_exactly_the_verbs_that_exist() -> None:
    """Each verb has one line in the overview, explain has two, and the overview lists nothing else."""
    listed = re.findall(
        r"^  ([a-z]+) .*? {2,}\S", OVERVIEW.split("\nPlans:\n")[1].split("\nExit codes")[0], re.MULTILINE
    )
    assert sorted(set(listed)) == sorted(VERBS)
    assert {verb for verb in listed if listed.count(verb) > 1} == {"explain"}


def test_the_overview_names_every_exit_code() -> None:
    """The exit codes in the overview are those that planrun uses."""
    block = OVERVIEW.split("Exit codes")[1].split("Environment")[0]
    named = {int(code) for code in re.findall(r"^  (\d+) ", block, re.MULTILINE)}
    used = {EXIT_FAILED, EXIT_INVALID, EXIT_DENIED, EXIT_INTERNAL, EXIT_WAITING, EXIT_RECORDS, EXIT_DEADLINE}
    assert named == {0, 129} | used


def test_help_names_the_same_exit_codes_everywhere_and_how_choices_add_up() -> None:
    """Verbs that run steps have the exit codes of the overview; choices add up, `--skip` takes away."""
    for verb in ("execute", "resume", "retry"):
        block = help_of(verb).split("Exit codes:")[1].split("Options:")[0]
        assert [line.strip() for line in block.split("\n") if line.strip()] == [
            line.strip() for line in EXIT_CODES.splitlines()
        ]
    text = help_of("execute")
    help_text = " ".join(text.split())
    assert "--only, --from, --until and --tag can be repeated and add up" in help_text
    assert "--skip removes" in help_text
    assert "parameters one a line" in help_text


def test_the_overview_shows_a_plan_that_is_valid(say: Callable[..., Said], tmp_path: object) -> None:
    """The plan in the overview can be copied into a file and validated."""
    block = OVERVIEW.split("A plan is one YAML file:\n")[1].split("\nPlans:")[0]
    with open(f"{tmp_path}/plan.yml", "w", encoding="utf-8") as file:
        file.write("\n".join(line[2:] for line in block.split("\n")))
    assert say("validate", "plan.yml") == (0, "plan.yml: ok, 3 steps\n", "")


def test_help_fits_a_terminal() -> None:
    """No line of the overview is wider than 80 columns."""
    assert max(map(len, OVERVIEW.split("\n"))) <= 80


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",), ("--help", "-h")])
def test_the_overview_is_the_help(say: Callable[..., Said], words: tuple[str, ...]) -> None:
    """`planrun` alone and with any form of --help prints the overview and succeeds."""
    assert say(*words) == (0, OVERVIEW, "")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_teaches_by_example(say: Callable[..., Said], verb: str) -> None:
    """The help of each verb describes it, shows examples, and exits 0."""
    said = say(verb, "--help")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith(f"Usage: planrun {verb} ")
    assert "Examples:" in said.out
    assert any(words[0] == verb for words in examples(said.out))


PARTS = [
    (f"{verb} {name}", part.get_help(click.Context(part, info_name=f"planrun {verb} {name}")))
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
    [OVERVIEW, *map(help_of, VERBS), *[text for _, text in PARTS]],
    ids=["overview", *VERBS, *[name for name, _ in PARTS]],
)
def test_every_example_is_a_command_that_exists(text: str) -> None:
    """Verb, options and operands of every command in a help text are accepted."""
    found = list(examples(text))
    assert found
    for verb, *words in found:
        if not set(words) & {"RUN", "PLAN", "SHELL", "VERB", "STEP"}:
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
    assert all(f"[{option.variable}]" in text for option in options)  # type: ignore[attr-defined]


@pytest.mark.parametrize("words", [["--help"], ["--version"], []])
def test_help_and_version_load_no_library(words: list[str]) -> None:
    """Printing the overview or the version imports neither click nor anything else that is slow."""
    script = "import sys; from planrun.cli import main; main(sys.argv[1:]); sys.stderr.write(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", script, *words], capture_output=True, text=True, check=True
    )
    assert not {"click", "re", "typing", "json", "yaml", "pydantic", "planrun.model"} & set(
        done.stderr.split()
    )
