"""`planrun explain CODE` prints the page of a problem code, as docs/errors.md and docs/lint.md have it."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from planrun.codes.pages import find_page
from planrun.codes.terminal import render
from planrun.lint.codes import ADVICE
from planrun.plan.problems import CODES
from tests.conftest import LIMIT
from tests.docs.pages import text_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Said

TITLES = CODES | ADVICE
BAD = "version: 1\nsteps:\n  - run: make\n    retires: 2\n  - run: [x]\n"


@pytest.mark.parametrize("code", TITLES)
def test_every_code_has_a_page(code: str) -> None:
    """The page of a code has its title, a description and its examples, and nothing of the page's marks."""
    page = find_page(code, TITLES)
    assert page.title == TITLES[code]
    assert len(page.text) > 20
    assert page.severity in ("error", "warning", "advice")
    text = render(page, 80, colour=False)
    assert text.startswith(f"{code}: {TITLES[code]} ({page.severity})\n\n")
    assert "<!--" not in text
    assert "```" not in text
    assert "](" not in text
    assert "\n\n\n" not in text


@pytest.mark.parametrize("code", TITLES)
def test_a_page_says_what_its_section_says(code: str) -> None:
    """Every word of the section in docs/ is on the page, code included, and no word is lost at a line end."""
    source = text_of("lint.md" if code.startswith("L") else "errors.md")
    section = source.partition(f"\n### {code}\n")[2]
    section = re.split(r"^##", section, maxsplit=1, flags=re.MULTILINE)[0]
    section = re.sub(r"<!--.*?-->|^```\w*$|^Instead:$", "", section, flags=re.MULTILINE)
    section = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", section)
    shown = re.sub(
        r"\s\[docs/[^\s\]]+\]|\bdocs/(?=\S+\.md)", "", render(find_page(code, TITLES), 60, colour=False)
    )
    assert [word for word in section.split() if word not in shown.split()] == []


def test_lower_case_and_upper_case(say: Callable[..., Said]) -> None:
    """A code is found however it is written."""
    upper, lower = say("explain", "E104"), say("explain", "e104")
    assert upper == lower
    assert upper.code == 0
    assert upper.out.startswith("E104: unknown key (error)\n\nUnknown key.")
    assert "\nExample:\n\n    version: 1\n    steps:\n      - run: make\n        retires: 2\n" in upper.out
    assert upper.out.endswith(
        "\nInstead:\n\n    version: 1\n    steps:\n      - run: make\n        retries: 2\n"
    )
    assert upper.err == ""


def test_lines_fit(say: Callable[..., Said]) -> None:
    """Off a terminal, lines of text have at most 80 columns; code keeps its lines."""
    out = say("explain", "E241").out
    assert [line for line in out.splitlines() if len(line) > 80 and not line.startswith("    ")] == []
    assert "\n- 800,000 characters of different expressions (each counts 55 more than its\n  length)\n" in out


def test_advice_names_how_to_suppress_it(say: Callable[..., Said]) -> None:
    """The pages of advice and of warnings end with how to suppress them; errors cannot be suppressed."""
    assert "\nSuppress:\n\nWrite `x-lint: {ignore: [L403]}` in the plan" in say("explain", "L403").out
    assert "`x-lint: {ignore: [W302]}`" in say("explain", "W302").out
    assert "Suppress" not in say("explain", "E104").out
    assert json.loads(say("explain", "E104", "--json").out)["silence"] is None


def test_what_a_warning_page_says_about_suppressing_is_true(say: Callable[..., Said], tmp_path: Path) -> None:
    """`lint` leaves a warning out by the option and by the key, and `validate` shows it with exit code 0."""
    plan = find_page("W311", TITLES).wrong[0]
    (tmp_path / "plan.yml").write_text(plan)
    (tmp_path / "silent.yml").write_text(plan + "x-lint: {ignore: [W311]}\n")
    assert "W311" in say("lint", "plan.yml").out
    assert "W311" not in say("lint", "plan.yml", "--ignore", "W311").out
    assert "W311" not in say("lint", "silent.yml").out
    told = say("validate", "silent.yml")
    assert told.code == 0
    assert "W311" in told.out
    assert say("validate", "silent.yml", "--strict").code == 2


def test_unknown_code(say: Callable[..., Said]) -> None:
    """An unknown code names the nearest one and the command that lists all."""
    told = say("explain", "e999")
    assert told.code == 2
    assert told.out == ""
    assert told.err == (
        'planrun: error: unknown code "E999"; did you mean "E199"?\n  all codes: planrun explain --list\n'
    )


def test_one_word_that_is_no_code(say: Callable[..., Said], tmp_path: Path) -> None:
    """A step of the default plan; a plan or run alone, and no word at all, are usage errors with the right form."""
    (tmp_path / "plan.yml").write_text("version: 1\nsteps:\n  - {id: build, run: make}\n")
    told = say("explain", "build")
    assert told.code == 0
    assert told.out.startswith("Step build\n  plan.yml:3\n")
    assert 'no step "biuld" in plan.yml; did you mean "build"?' in say("explain", "biuld").err
    for word in ("plan.yml", "last"):
        told = say("explain", word)
        assert (told.code, told.err.splitlines()[0]) == (
            2,
            f"planrun: error: which step? planrun explain {word} STEP",
        )
    told = say("explain")
    assert told.code == 2
    assert "planrun explain E104" in told.err


def test_list(say: Callable[..., Said]) -> None:
    """All codes with their titles, as lines and as JSON."""
    lines = say("explain", "--list").out.splitlines()
    assert lines == [f"{code}  {title}" for code, title in TITLES.items()]
    listed = json.loads(say("explain", "--list", "--json").out)["codes"]
    assert {each["code"]: each["title"] for each in listed} == TITLES
    assert {each["severity"] for each in listed} == {"error", "warning", "advice"}


def test_json(say: Callable[..., Said]) -> None:
    """The page as data, with the text in markdown."""
    page = json.loads(say("explain", "E204", "--json").out)
    assert (page["code"], page["title"], page["severity"]) == ("E204", "dependency cycle", "error")
    assert page["text"].startswith("Dependency cycle: `a → b → a`.")
    assert page["wrong"][0].startswith("version: 1\n")


def on_a_terminal(columns: int, *words: str, **env: str) -> str:
    """Return what planrun prints on a terminal of this width."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "planrun", *words],
        stdin=subprocess.DEVNULL,
        stdout=slave,
        stderr=slave,
        env=os.environ | {"COLUMNS": str(columns), "TERM": "xterm", "NO_COLOR": ""} | env,
    )
    os.close(slave)
    text = b""
    try:
        while piece := os.read(master, 4096):
            text += piece
    except OSError:  # how Linux ends a terminal whose processes have ended
        pass
    os.close(master)
    assert process.wait(LIMIT) == 0
    return text.decode().replace("\r\n", "\n")


def test_colour_on_a_terminal() -> None:
    """On a terminal headings are bold and code is coloured; NO_COLOR leaves the plain text with its backquotes."""
    text = on_a_terminal(72, "explain", "E218")
    assert text.startswith(
        "\x1b[1mE218: `| sh` inside quotes (error)\x1b[0m\n\n\x1b[36m| sh\x1b[0m inside quotes."
    )
    plain = on_a_terminal(72, "explain", "E218", NO_COLOR="1")
    assert "\x1b" not in plain
    assert "`| sh` inside quotes." in plain
    assert max(len(line) for line in plain.split("Example:")[0].splitlines()) <= 72


def test_errors_end_with_the_command_that_explains_them(say: Callable[..., Said], tmp_path: Path) -> None:
    """`validate` and `execute` name the first error's page in one line on stderr; forms for programs have no hint."""
    (tmp_path / "plan.yml").write_text(BAD)
    told = say("validate", "plan.yml")
    assert told.err == "for details: planrun explain E104\n"
    told = say("execute", "plan.yml")
    assert told.code == 2
    assert told.err.endswith("\nfor details: planrun explain E104\n")
    assert told.err.count("planrun explain") == 1
    for form in ("json", "sarif", "github", "junit"):
        told = say("validate", "plan.yml", "--format", form)
        assert "explain" not in told.out + told.err


def test_no_hint_without_errors(say: Callable[..., Said], tmp_path: Path) -> None:
    """A valid plan with a warning has no hint."""
    (tmp_path / "plan.yml").write_text(find_page("W311", TITLES).wrong[0])
    told = say("validate", "plan.yml")
    assert "W311" in told.out
    assert told.err == ""


def test_completion_offers_codes(say: Callable[..., Said], monkeypatch: pytest.MonkeyPatch) -> None:
    """Tab completes codes in upper and lower case."""
    monkeypatch.setenv("_PLANRUN_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "planrun explain e10")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert "plain,E104" in say().out.splitlines()
