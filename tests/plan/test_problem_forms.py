"""Findings written out: exact places and carets, nothing that a terminal or a CI system would obey."""

from __future__ import annotations

import json
import re

import pytest

from planrun.plan import load
from planrun.plan.printing import render_github, render_json, render_sarif, render_text
from planrun.plan.problems import CODES, Problem, did_you_mean, in_order, nearest
from planrun.plan.schema import shape

PLAN = b"version: 1\nsteps:\n  - id: build\n    run: make\n    retires: 3\n"


def problem(message: str = "wrong", **fields: object) -> Problem:
    """Return a finding on line 2 of a plan."""
    return Problem(**{"code": "E104", "message": message, "file": "plan.yml", "line": 2, "col": 1, **fields})  # type: ignore[arg-type]


def excerpt(row: str, col: int, end_col: int = 0) -> list[str]:
    """Return the two lines of the excerpt for a place in a row, without their numbers."""
    text = render_text([problem(col=col, end_col=end_col)], {"plan.yml": f"version: 1\n{row}\n".encode()})
    return [line.split(" | ", 1)[1] for line in text.splitlines()[1:]]


def test_text_form() -> None:
    """The form that the manual promises, with source line and caret under the whole word."""
    _, problems = shape.read(PLAN, "plan.yml")
    assert render_text(problems, {"plan.yml": PLAN}) == (
        'plan.yml:5:5: error[E104]: unknown key "retires" in step "build"; did you mean "retries"?\n'
        "  5 |     retires: 3\n"
        "    |     ^^^^^^^\n"
    )


def test_related_places_are_shown() -> None:
    """A duplicate key shows both lines."""
    data = b"version: 1\nname: a\nname: b\nsteps:\n  - run: make\n"
    _, problems = shape.read(data, "plan.yml")
    assert render_text(problems, {"plan.yml": data}).splitlines()[3:] == [
        "plan.yml:2:1: note: first defined here",
        "  2 | name: a",
        "    | ^",
    ]


def test_at_most_20_are_printed() -> None:
    """A person gets 20 findings and the number of the others; a program gets all."""
    many = [problem(line=number) for number in range(1, 31)]
    text = render_text(many, {})
    assert text.count("error[E104]") == 20
    assert text.endswith("\nand 10 more\n")
    assert render_github(many).count("::error") == 20
    assert len(json.loads(render_json(many))["problems"]) == 30
    assert len(json.loads(render_sarif(many))["runs"][0]["results"]) == 30


def test_the_caret_is_under_the_excerpt() -> None:
    """Tabs, control characters, wide and combining characters move the caret as they move the text."""
    assert excerpt("a: \tb", 5) == ["a: \\tb", "     ^"]
    assert excerpt("a: \x1b[31mb", 4) == ["a: \\x1b[31mb", "   ^^^^"]
    assert excerpt("漢字: b", 5) == ["漢字: b", "      ^"]
    assert excerpt("e\u0301: b", 5) == ["e\u0301: b", "   ^"]
    assert excerpt("a: \u202eb", 5) == ["a: \\u202eb", "         ^"]
    assert excerpt("name: abc", 7, 10) == ["name: abc", "      ^^^"]
    assert excerpt("name: abc", 10) == ["name: abc", "         ^"]


def test_long_lines_are_cut_around_the_caret() -> None:
    """A line of a megabyte takes one line of a terminal, and the caret is on it."""
    row, caret = excerpt("k: " + "x" * 500_000 + "HERE" + "y" * 500_000, 500_004, 500_008)
    assert len(row) < 120
    assert row.startswith("...x")
    assert row.endswith("y...")
    assert row[caret.index("^") : caret.rindex("^") + 1] == "HERE"


@pytest.mark.parametrize(
    "evil", ["a\x1b[2Jb", "a\nb", "a\rb", "a\u202eb", "a\x9b31mb", "a\u2028b", "a\ud800b"]
)
def test_no_form_interprets_its_text(evil: str) -> None:
    """File names and messages reach the screen and the CI system escaped, on one line."""
    found = [problem(evil, file=f"{evil}.yml", hint=evil, related=((1, 1, evil),))]
    for form in (render_text(found, {}), render_sarif(found), render_json(found)):
        assert form.replace("\n", "").isprintable()
    assert len(render_text(found, {}).splitlines()) == 2
    assert re.fullmatch(r"::error [^\n]*\n", render_github(found))


def test_github_form() -> None:
    """Workflow commands are escaped as the runner unescapes them."""
    found = [problem("50% of a, b: c\nd", file="a,b:c%.yml", end_col=4)]
    assert render_github(found) == (
        "::error file=a%2Cb%3Ac%25.yml,line=2,col=1,endColumn=3,title=planrun E104::50%25 of a, b: c\\nd\n"
    )
    assert render_github([problem(severity="warning")]).startswith("::warning file=plan.yml,")


def test_sarif_form() -> None:
    """The log has what code scanning needs: rules with titles, results with places, columns in characters."""
    _, problems = shape.read(PLAN + b"    run: x\n", "dir/a b.yml")
    log = json.loads(render_sarif(problems))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["E018", "E104"]
    assert run["columnKind"] == "unicodeCodePoints"
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] == "error"
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"] == "dir/a%20b.yml"
        assert place["region"]["startLine"] >= 1
        assert place["region"]["endColumn"] > place["region"]["startColumn"]
    assert run["results"][1]["relatedLocations"][0]["physicalLocation"]["region"] == {
        "startLine": 4,
        "startColumn": 5,
    }


def test_json_form() -> None:
    """The object says whether the plan is valid and lists every finding with its place."""
    assert json.loads(render_json([])) == {"valid": True, "problems": []}
    assert json.loads(render_json([problem(severity="warning")]))["valid"] is True
    said = json.loads(render_json([problem(hint="fix it", related=((1, 2, "here"),))]))
    assert said == {
        "valid": False,
        "problems": [
            {
                "code": "E104",
                "severity": "error",
                "message": "wrong",
                "hint": "fix it",
                "file": "plan.yml",
                "line": 2,
                "column": 1,
                "end_column": None,
                "related": [{"line": 1, "column": 2, "message": "here"}],
            }
        ],
    }


def test_no_findings() -> None:
    """No findings, no text."""
    assert render_text([], {}) == ""
    assert render_github([]) == ""


KEYS = ["retries", "timeout", "depends_on", "description", "run", "env", "env_file", "condition"]


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("retires", "retries"),
        ("tiemout", "timeout"),
        ("dependsOn", "depends_on"),
        ("DEPENDS-ON", "depends_on"),
        ("desc", "description"),
        ("envfile", "env_file"),
        ("rnu", "run"),
        ("conditions", "condition"),
        ("x", None),
        ("", None),
        ("frobnicate", None),
        ("r" * 1000, None),
    ],
)
def test_nearest_word(word: str, meant: str | None) -> None:
    """Swapped, missing and other letters are corrected, spelling with capitals or dashes too; nothing else is."""
    assert nearest(word, KEYS) == meant
    assert did_you_mean(word, KEYS) == (f'did you mean "{meant}"?' if meant else "")


def test_file_order() -> None:
    """Findings come as a reader meets them."""
    later, first, second = problem(line=3), problem("a", line=1, col=5), problem("b", line=1, col=5)
    assert in_order([later, first, second]) == [first, second, later]


def test_codes_are_stable_words() -> None:
    """Every code has a title of one line."""
    assert all(re.fullmatch(r"[EW]\d{3}", code) and title.isprintable() for code, title in CODES.items())


def test_excerpts_command_no_agent() -> None:
    """What Azure, TeamCity or GitHub would obey in a log is broken, in excerpts, in JSON, and in names of files."""
    data = b'version: 1\nsteps:\n  - rum: echo "##vso[task.setvariable variable=x]y"\n'
    name = "::error::x.yml"
    problems = load.check_bytes(data, name).problems
    text = render_text(problems, {name: data})
    assert "# #vso[task" in text
    assert text.startswith(": :error::x.yml:")
    odd = [Problem(code="E104", message="##vso[x]", file="plan.yml")]
    for form in (render_json(odd), render_sarif(odd)):
        assert "##" not in form
        assert "##vso[x]" in str(json.loads(form))


def test_missing_parts_are_reported_on_the_last_line() -> None:
    """What is missing at the end of a file without a last newline is missed on its last line."""
    (found,) = load.check_bytes(b"version: 1\nsteps: [", "plan.yml").problems
    assert (found.line, found.col) == (2, 9)
    (found,) = load.check_bytes(b"{", "plan.yml").problems
    assert (found.line, found.col) == (1, 2)


def test_an_empty_value_has_no_end() -> None:
    """An unquoted value of no characters has no last one, so no column behind it."""
    problems = load.check_bytes(b"version: 1\nsteps:\n  - run: x\n    env_file:\n", "plan.yml").problems
    assert problems
    assert [found for found in problems if 0 < found.end_col <= found.col] == []
