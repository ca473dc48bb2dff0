"""Answers given before a run: texts, files and policies, made into what a step asked for, or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from planrun.approval.answers import answer_of_text, answer_of_value, answers_of, read_texts
from planrun.errors import InvalidInput, InvalidPlan
from planrun.model.plan import Plan, Step
from planrun.model.policy import Policy
from planrun.plan.kinds.command import Run
from planrun.plan.kinds.question import Ask, Decide, Option

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

AUTH = (
    Option(label="JSON web token", value="jwt"),
    Option(label="Session", value="session"),
    Option(label="None, at all", value=0),
)
SURE = Step(id="sure", kind="ask", action=Ask(question="Sure?"))
COUNT = Step(
    id="count", kind="ask", action=Ask(question="How many?", schema={"type": "integer", "maximum": 9})
)
NAME = Step(id="name", kind="ask", action=Ask(question="Who?", schema={"type": "string"}))
ONE = Step(id="auth", kind="decide", action=Decide(question="Which?", options=AUTH))
MANY = Step(id="all", kind="decide", action=Decide(question="Which?", options=AUTH, multi_select=True))
PLAN = Plan(
    name="p",
    file="plan.yml",
    digest="0" * 64,
    steps=(SURE, COUNT, NAME, ONE, MANY, Step(id="build", kind="run", action=Run(script="true"))),
)


@pytest.mark.parametrize(
    ("step", "text", "answer"),
    [
        *[(SURE, word, True) for word in ("yes", "Y", "TRUE", " yes ")],
        *[(SURE, word, False) for word in ("no", "N", "False")],
        (COUNT, "3", 3),
        (NAME, "no", "no"),
        (NAME, "", ""),
        (ONE, "jwt", "jwt"),
        (ONE, "JSON web token", "jwt"),
        (ONE, "0", 0),
        (ONE, "None, at all", 0),
        (MANY, "session, jwt", ["jwt", "session"]),
        (MANY, "None, at all", [0]),
    ],
)
def test_a_text_becomes_what_was_asked_for(step: Step, text: str, answer: Any) -> None:
    """Yes and no in any case, typed values, options by value or label, several in the order of the options."""
    result = answer_of_text(step, text)
    assert (type(result), result) == (type(answer), answer)


@pytest.mark.parametrize(
    ("step", "text", "said"),
    [
        (SURE, "maybe", 'the step "sure" expects yes or no, got "maybe"'),
        (SURE, "", "expects yes or no, got"),
        (COUNT, "10", "is 10, more than 9"),
        (COUNT, "3.0", "not an integer"),
        (
            ONE,
            "jtw",
            '"jtw" is not an option of the step "auth"; did you mean "jwt"? the options are jwt (JSON web',
        ),
        (ONE, "", "is not an option"),
        (ONE, "jwt,session", 'the step "auth" takes one option, got 2'),
        (MANY, "jwt,jwt", 'the option "JSON web token" is chosen twice'),
        (MANY, "jwt,JSON web token", "is chosen twice"),
        (MANY, "jwt,", '"" is not an option'),
        (MANY, "jwt,all", '"all" is not an option'),
    ],
)
def test_what_is_no_answer_is_refused_with_what_there_is(step: Step, text: str, said: str) -> None:
    """A wrong type, an unknown, surplus or repeated option: each is reported, none is guessed."""
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the message is looked at
        answer_of_text(step, text)
    assert said in str(refused.value)


def test_plain_data_is_taken_by_its_type() -> None:
    """What a policy says is data: true is no text, "3" is no integer, and a number is an option by its value."""
    assert answer_of_value(SURE, True) is True
    assert answer_of_value(SURE, "no") is False
    assert answer_of_value(ONE, 0) == 0
    assert answer_of_value(MANY, ["session", "jwt"]) == ["jwt", "session"]
    for step, value in ((SURE, 1), (COUNT, "3"), (ONE, False), (ONE, ["jwt", "session"]), (MANY, [])):
        with pytest.raises(ValueError, match=r"is |got |not an option"):
            answer_of_value(step, value)


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["sure"], "write an answer as id=value"),
        (["shure=yes"], 'there is no step "shure"; did you mean "sure"?'),
        (["build=yes"], 'the step "build" asks nothing; those that do are sure, count, name, auth, all'),
        (["sure=yes", "sure=no"], 'the step "sure" is answered in two ways: true and false'),
        (["sure=perhaps", "count=x"], "; "),
    ],
)
def test_every_wrong_answer_is_reported(texts: list[str], said: str) -> None:
    """An unknown step, one that asks nothing, two answers to one question: all of it before anything runs."""
    with pytest.raises(InvalidInput) as refused:
        read_texts(PLAN, texts)
    assert said in str(refused.value)
    assert {name: found.value for name, found in read_texts(PLAN, ["sure=yes", "sure=y"]).items()} == {
        "sure": True
    }


def test_a_file_of_decisions_is_read_as_it_is_meant(tmp_path: Path) -> None:
    """Only the question decides what a word without quotes is; JSON is read as well as YAML."""
    file = tmp_path / "decisions.yml"
    for text in (
        "sure: yes\ncount: 3\nname: no\nauth: session\nall: [jwt, 0]\n",
        '{"sure": true, "count": 3, "name": "no", "auth": "session", "all": ["jwt", 0]}',
    ):
        file.write_text(text)
        decisions = answers_of(PLAN, [], str(file)).values()
        assert decisions == {"sure": True, "count": 3, "name": "no", "auth": "session", "all": ["jwt", 0]}


@pytest.mark.parametrize(
    ("text", "code", "place", "said"),
    [
        ("sure: perhaps\n", "E222", (1, 7), "expects yes or no"),
        ("count: 3\nshure: yes\n", "E202", (2, 1), 'did you mean "sure"?'),
        ("build: yes\n", "E202", (1, 1), "asks nothing"),
        ("sure:\n", "E222", (1, 6), "has no answer in the file"),
        ("sure: yes\nsure: no\n", "E018", (2, 1), ""),
        ("all: [[jwt]]\n", "E222", (1, 6), "an option or a list of them"),
        ("auth: {jwt: yes}\n", "E222", (1, 7), "is not an option"),
        ("- sure\n", "E101", (1, 1), "expected a mapping of step ids to answers"),
        ("", "E006", (1, 1), "expected a mapping of step ids to answers"),
    ],
)
def test_what_is_wrong_in_the_file_has_a_place(
    tmp_path: Path, text: str, code: str, place: tuple[int, int], said: str
) -> None:
    """Each problem is reported with line and column, as in a plan."""
    file = tmp_path / "decisions.yml"
    file.write_text(text)
    with pytest.raises(InvalidPlan) as refused:
        answers_of(PLAN, [], str(file))
    (problem,) = refused.value.problems
    assert (problem.code, (problem.line, problem.col)) == (code, place)
    assert said in problem.message


def test_option_and_file_must_agree(tmp_path: Path) -> None:
    """The same answer twice is one; two answers are none."""
    file = tmp_path / "decisions.yml"
    file.write_text("sure: no\n")
    assert answers_of(PLAN, ["sure=no"], str(file)).given["sure"].via == "option"
    with pytest.raises(InvalidInput, match=r"true by --decide, false in .*decisions\.yml"):
        answers_of(PLAN, ["sure=yes"], str(file))
    with pytest.raises(InvalidInput, match="no such file"):
        answers_of(PLAN, [], str(tmp_path / "none.yml"))


def test_a_ceiling_decides_before_the_plan() -> None:
    """Policies answer in this order, by rule; a ceiling may speak of other plans' steps, and not of no option."""
    plan = PLAN.but(policy=Policy(decisions={"auth": "jwt", "sure": True}))
    decided = answers_of(plan, [], "", [Policy(decisions={"auth": "session", "elsewhere": "x"})]).of_policies
    assert {name: (answer.value, answer.rule) for name, answer in decided.items()} == {
        "auth": ("session", "ceiling:decisions.auth"),
        "sure": (True, "plan:decisions.sure"),
    }
    with pytest.raises(InvalidInput, match=r'--policy file, under `decisions`: "x" is not an option'):
        answers_of(plan, [], "", [Policy(decisions={"auth": "x"})])
