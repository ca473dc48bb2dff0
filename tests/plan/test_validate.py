"""What a plan means: one small plan a rule, with code, place and words of its finding."""

from __future__ import annotations

import pytest

from planrun.plan.load import check_bytes
from tests.plan.mistakes import BAD, GOOD, HEAD, steps


def found(text: str) -> list[tuple[str, int, int, str]]:
    """Return the findings in a plan as (code, line, col, text)."""
    return [
        (each.code, each.line, each.col, each.text)
        for each in check_bytes(text.encode(), "plan.yml").problems
    ]


@pytest.mark.parametrize("name", BAD)
def test_each_mistake_is_found_at_its_place(name: str) -> None:
    """A plan with one mistake has one finding, with code, line, column and words that help."""
    text, (code, line, col, words) = BAD[name]
    problems = found(text)
    assert [each[:3] for each in problems] == [(code, line, col)], problems
    assert words in problems[0][3]


@pytest.mark.parametrize("name", GOOD)
def test_what_is_allowed_has_no_finding(name: str) -> None:
    """Plans that a strict reader could doubt, and that are right."""
    assert [each for each in found(GOOD[name]) if each[0] != "W305"] == []


def test_every_problem_is_found_in_one_pass() -> None:
    """Mistakes of shape and of meaning come together, in file order."""
    text = steps(
        "- id: a",
        "  run: x",
        "  retires: 3",
        "- id: a",
        "  depends_on: [b]",
        "  timeout: 5",
        "  condition: step_q_failed",
    )
    assert [each[0] for each in found(text)] == ["E104", "E201", "E202", "E111", "E202"]


def test_every_interpolation_of_a_text_is_looked_at() -> None:
    """A broken one hides neither another broken one nor an unknown name."""
    text = steps(
        "- id: a",
        "  run: |",
        "    echo ${{ 1 + }} ${{ params.x }}",
        "    echo ${{ 'a' 'b' }} ${{ step.dri }}",
    )
    assert [each[:3] for each in found(text)] == [
        ("E210", 5, 20), ("E211", 5, 27), ("E210", 6, 20), ("E211", 6, 31)
    ]  # fmt: skip


def test_the_same_text_is_read_by_the_grammar_of_its_place() -> None:
    """A condition takes one expression and no template around it; `| sh` is for scripts alone."""
    text = steps("- id: a", "  env: {A: '${{ run.ci }}'}", "  run: x", "  condition: '${{ run.ci }}'")
    assert found(text) == []
    text = steps(
        "- id: a",
        "  env: {A: '${{ run.id }}-${{ run.ci }}'}",
        "  run: x",
        "  condition: '${{ run.ci }} or true'",
    )
    assert [each[:3] for each in found(text)] == [("E210", 6, 17)]
    text = steps("- id: a", "  run: echo ${{ run.id | sh }}", "  env: {A: 'echo ${{ run.id | sh }}'}")
    assert [each[:2] for each in found(text)] == [("E210", 5)]


def test_an_interpolation_that_is_not_closed_ends_the_search() -> None:
    """The rest of the text cannot be parsed."""
    text = steps("- id: a", "  run: echo ${{ params.x")
    assert [each[:3] for each in found(text)] == [("E210", 4, 15)]


def test_a_misshapen_place_is_reported_once() -> None:
    """A problem of the shape check at a place is not repeated."""
    text = HEAD + "env: {PLANRUN_X-1: a}\nsteps: [run: x]\n"
    assert [each[1:3] for each in found(text)] == [(2, 7)]


def test_a_duplicate_names_both_places() -> None:
    """The finding stands at the second step and points at the first."""
    problem = check_bytes(steps("- {id: a, run: x}", "- {id: a, run: y}").encode(), "plan.yml").problems[0]
    assert (problem.line, problem.related) == (4, ((3, 10, "first defined here"),))


def test_a_cycle_names_every_edge() -> None:
    """The other edges of the cycle are related places."""
    text = steps("- {id: a, run: x, depends_on: [b]}", "- {id: b, run: x, depends_on: [a]}")
    problem = check_bytes(text.encode(), "plan.yml").problems[0]
    assert problem.related == ((4, 34, '"b" depends on "a" here'),)


def test_positions_inside_block_texts_are_exact() -> None:
    """Line and column hold in literal blocks, folded lines and quotes."""
    text = steps(
        "- id: a",
        "  run: |",
        "    set -e",
        "    echo ${{ params.a }} ${{ params.b }}",
        "  env:",
        '    A: "x ${{ params.c }}"',
        "    B: >-",
        "      one",
        "      two ${{ params.d }}",
    )
    assert [each[1:3] for each in found(text)] == [(6, 16), (6, 32), (8, 17), (11, 17)]


def test_thousands_of_unknown_steps_are_reported_quickly() -> None:
    """Looking for what was meant is bounded, and so are the findings that are kept."""
    lines = [
        f"- {{id: step-number-{index}, run: x, depends_on: [step-nmuber-{index}x]}}" for index in range(3000)
    ]
    problems = found(steps(*lines))
    assert len(problems) == 1000
    assert "did you mean" in problems[0][3]
    assert "did you mean" not in problems[-1][3]


def test_no_number_of_warnings_hides_an_error() -> None:
    """With more warnings than are shown, every error is found, whichever part of the check finds it."""
    warned = "- {run: x, title: 'v${{ x }}'}"
    warnings = [warned.replace("}}'", f"}} {n}'") for n in range(1100)]
    for head, last, code in (
        ("limits: {max_steps: 1}\n", [], "E240"),
        ("", ["- {run: x, title: [a]}"], "E101"),
        ("", ["- {run: 'echo \"${{ run.id | sh }}\"'}"], "E218"),
    ):
        problems = check_bytes((steps(*warnings, *last) + head).encode(), "plan.yml").problems
        assert [each.code for each in problems if each.severity == "error"] == [code]
        assert len(problems) == 1000


def test_slow_patterns_share_their_time() -> None:
    """A plan full of exponential patterns is refused after a second or two, not after an hour."""
    params = "".join(f"  p{at}: {{pattern: '^(a+)+$', default: '{'a' * 40}!'}}\n" for at in range(1000))
    problems = found(HEAD + "params:\n" + params + "steps: [run: x]\n")
    assert "could not be matched" in problems[0][3]
    assert "was not checked" in problems[-1][3]


def test_one_mistake_behind_an_alias_is_one_finding() -> None:
    """A thousand steps made of the same lines do not repeat it."""
    text = HEAD + "x-a: &a {run: 'echo ${{ params.q }}'}\nsteps:\n" + "- *a\n" * 1000
    assert [each[:3] for each in found(text)] == [("E211", 2, 25)]


def test_long_cycles_are_shortened() -> None:
    """A cycle of 1,000 steps is reported in a line that people can read."""
    lines = [f"- {{id: s{index}, run: x, depends_on: [s{(index + 1) % 1000}]}}" for index in range(1000)]
    problems = found(steps(*lines))
    assert len(problems) == 1
    assert problems[0][3] == (
        "dependency cycle: s0 → s1 → s2 → s3 → s4 → s5 → s6 → s7 → s8 → s9 → s10 → … → s999 → s0"
    )
