"""Problems of a plan's text come back to the model as places in its own answer."""

from __future__ import annotations

import pytest

from planrun.errors import InvalidPlan
from planrun.llm.drafts import DraftStep
from planrun.llm.plantext import faults_of, plan_text, step_text
from planrun.plan.load import load_bytes
from planrun.plan.problems import Problem

PLAIN = DraftStep(id="a", run="echo hi")
LONG = "echo 1\necho 2\necho ${{ steps.zzz.outputs.x }}\necho 4\n"


def faults(*steps: DraftStep) -> list[tuple[str, str]]:
    """Return path and rule of every fault of a plan with these steps."""
    text = plan_text(
        ["a comment"], {"version": 1, "goal": "x"}, [step_text(step, 2, {}, ["note"]) for step in steps]
    )
    try:
        load_bytes(text.encode("utf-8", "surrogatepass"), "plan.yml", cache=False)
    except InvalidPlan as error:
        data = text.encode("utf-8", "surrogatepass")
        found = faults_of(error.problems, data, {("steps", at): at for at in range(len(steps))}, ["a", "b"])
        return [(fault.path, fault.rule) for fault in found]
    return []


@pytest.mark.parametrize(
    ("step", "path", "rule"),
    [
        (PLAIN.but(id="b", depends_on=("a", "zzz")), "steps[1].depends_on[1]", "E202"),
        (PLAIN.but(id="b", depends_on=("b",)), "steps[1].depends_on[0]", "E203"),
        (PLAIN.but(id="a"), "steps[1].id", "E201"),
        (PLAIN.but(id="b", condition="steps.a.status =="), "steps[1].condition", "E210"),
        (PLAIN.but(id="b", condition="nothing.x == 1"), "steps[1].condition", "E210"),
        (PLAIN.but(id="b", run=LONG), "steps[1].run", "E202"),
        (PLAIN.but(id="b", run="echo ${{ open"), "steps[1].run", "E210"),
        (PLAIN.but(id="b", title="two\nlines"), "steps[1].title", "E114"),
        (PLAIN.but(id="b", outputs=("fine", "not a name")), "steps[1].outputs[1]", "E106"),
        (PLAIN.but(id="b", run="echo \0"), "steps[1].run", "E114"),
        (PLAIN.but(id="b", run="echo \ud800"), "steps[1].id", "E010"),
        (PLAIN.but(id="b", replaces=("b",)), "steps[1].replaces[0]", "E203"),
    ],
)
def test_each_problem_has_its_place_in_the_answer(step: DraftStep, path: str, rule: str) -> None:
    """Key and entry are named, and the rule is the code of the problem."""
    assert (path, rule) in faults(PLAIN, step)


def test_what_is_allowed_is_told_where_it_is_known() -> None:
    """A reference to a step that is not there comes with the ids that are."""
    text = plan_text([], {"version": 1}, [step_text(PLAIN.but(depends_on=("zzz",)), 2, {})])
    with pytest.raises(InvalidPlan) as caught:
        load_bytes(text.encode(), "plan.yml", cache=False)
    (fault,) = faults_of(caught.value.problems, text.encode(), {("steps", 0): 4}, ["a", "b"])
    assert fault.path == "steps[4].depends_on[0]"
    assert fault.allowed == ("a", "b")


def test_what_is_outside_of_the_answer_concerns_the_whole() -> None:
    """A problem above the steps, in steps of others, or in a text that cannot be read has the path `$`."""
    data = b"version: 1\ngoal: [\n"
    assert (
        faults_of([Problem(code="E010", message="x", file="p", line=2, col=8)], data, {}, [])[0].path == "$"
    )
    text = plan_text([], {"version": 1}, [step_text(PLAIN, 2, {})]).encode()
    problems = [Problem(code="E101", message="x", file="p", line=line, col=1) for line in (1, 4)]
    assert [fault.path for fault in faults_of(problems, text, {}, [])] == ["$"]


def test_warnings_are_no_faults() -> None:
    """What never keeps a plan from being loaded is not for a model to mend."""
    warning = Problem(code="W301", message="x", file="p", severity="warning")
    assert faults_of([warning], b"version: 1\n", {}, []) == []
