"""docs/commands.md is in step with the command line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click
import pytest

from planrun import errors
from planrun.cli.group import VERBS, planrun
from planrun.cli.verbs import GROUPS, TABLE
from planrun.cliutil.options import EXECUTE
from planrun.reports.ci import _VENDORS
from tests.docs.pages import DOCS, keys_of, text_of
from tests.docs.verblist import variable_of, with_index

if TYPE_CHECKING:
    from tests.golden import Golden

PAGE = "commands.md"
SECTION = re.compile(r"^### (\w+)\n(.*?)(?=^##)", re.MULTILINE | re.DOTALL)
SAME = re.compile(r"^The same as \[`(\w+)`\]\(#\w+\)\.$", re.MULTILINE)
SHARED = re.compile(r"^As for \[`run`\]\(#run\): (.*?)\.\n\n", re.MULTILINE | re.DOTALL)


def sections() -> dict[str, str]:
    """Return the text about each verb; of one that is the same as another the other's, too."""
    found = dict(SECTION.findall(text_of(PAGE)))
    return {
        verb: text + "".join([found[name] for name in SAME.findall(text)]) for verb, text in found.items()
    }


def shared(verb: str) -> set[str]:
    """Return the flags that a verb takes as `execute` does, which its section lists in one sentence."""
    listed = {flag for text in SHARED.findall(sections()[verb] + "\n") for flag in keys_of(text)}
    options = [option for option in EXECUTE if option.flags[0] in listed]
    assert listed == {option.flags[0] for option in options}
    return {flag for option in options for flag in option.flags}


def documented(verb: str) -> set[str]:
    """Return the flags in the table of a verb, and those that it takes as `execute` does."""
    cells = re.findall(r"^\| (`-[^|]*?) \|", sections()[verb], re.MULTILINE)
    return {word.split()[0] for cell in cells for word in keys_of(cell)} | shared(verb)


def flags(command: click.Command) -> set[str]:
    """Return every spelling of the options of a command."""
    options = [option for option in command.params if isinstance(option, click.Option) and not option.hidden]
    return {flag for option in options for flag in option.opts}


def test_the_list_of_verbs_is_that_of_the_command_line(golden: Golden) -> None:
    """The page lists the verbs by group with the lines of `planrun help all`, and how groups spell them."""
    golden(DOCS / PAGE, with_index(text_of(PAGE)))


def test_every_verb_has_its_section() -> None:
    """The page is about the verbs that there are, each with a command that uses it."""
    assert set(sections()) == set(VERBS)
    for verb, text in sections().items():
        assert re.search(rf"^planrun {verb}\b", text, re.MULTILINE), verb
        assert f"| [`{verb}`](#{verb}) |" in text_of(PAGE)


def test_the_sections_stand_in_the_order_of_the_groups() -> None:
    """Each group has a heading, and below it the sections of its verbs in the order of the help."""
    shown = [
        (group, name)
        for group, text in re.findall(
            r"^## Group: (\w+)\n(.*?)(?=^## )", text_of(PAGE), re.MULTILINE | re.DOTALL
        )
        for name in re.findall(r"^### (\w+)$", text, re.MULTILINE)
    ]
    first: dict[str, str] = {}
    for verb in TABLE:
        first.setdefault(verb.name, verb.group)
    assert shown == [(group, name) for group in GROUPS for name, its in first.items() if its == group]


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_is_described(verb: str) -> None:
    """The table of a verb has each of its options with all flags, and no other; those of `execute` stand there."""
    command = planrun.get_command(click.Context(planrun), verb)
    assert command is not None
    if isinstance(command, click.Group):
        known = {flag for part in command.commands.values() for flag in flags(part)}
        assert documented(verb) <= known
        assert known - documented(verb) <= {flag for option in EXECUTE for flag in option.flags}
    else:
        assert documented(verb) == flags(command)


@pytest.mark.parametrize("verb", VERBS)
def test_every_variable_is_described(verb: str) -> None:
    """Beside each option stands its variable, if its table has a column for it; a shared one has that of `execute`."""
    command = planrun.get_command(click.Context(planrun), verb)
    assert command is not None
    text = sections()[verb]
    of_execute = {option.flags[0]: option.variable for option in EXECUTE}
    for option in command.params:
        if not isinstance(option, click.Option) or option.hidden or option.opts[0] == "--help":
            continue
        variable = variable_of(option)
        if shared(verb) & set(option.opts):
            assert variable == next(of_execute[flag] for flag in option.opts if flag in of_execute)
        elif "| Option | Variable |" in text:
            (row,) = [row for row in text.splitlines() if re.match(rf"\| [^|]*`{option.opts[0]}[ `]", row)]
            assert row.split("|")[2].strip("` ") == variable, row


def test_every_choice_of_execute_is_described() -> None:
    """The row of an option that takes one of a few words names each of them."""
    rows = sections()["execute"].splitlines()
    for option in [option for option in EXECUTE if not option.hidden]:
        row = next(row for row in rows if row.startswith(f"| `{option.flags[0]}"))
        assert set(option.choices) <= set(keys_of(row)), row


def test_every_exit_code_is_described() -> None:
    """The table of exit codes has each code that planrun can end with."""
    text = text_of(PAGE).split("## Exit codes")[1].split("\n## ")[0]
    found = {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    known = {value for name, value in vars(errors).items() if name.startswith("EXIT_")}
    assert found == known | {128 + 1, 128 + 2, 128 + 15}


def test_every_ci_system_is_named() -> None:
    """The variables by which planrun knows a CI system are on the page."""
    text = text_of(PAGE).split("## Variables")[1]
    assert [name for name, _vendor in _VENDORS if f"`{name}`" not in text] == []
