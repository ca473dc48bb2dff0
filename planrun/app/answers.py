"""What was answered before a run starts or goes on: `--decide`, `--decisions FILE` and the policies' `decisions`.

Loaded for plans with steps that ask, and when such an option is given.
"""

from __future__ import annotations

from planrun.app.options import answer_of_text, answer_of_value, asking, asking_step, parted
from planrun.errors import InvalidInput, InvalidPlan
from planrun.model.record import Record
from planrun.values import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from planrun.model.plan import Plan, Step
    from planrun.model.policy import Policy
    from planrun.source.node import Node
    from planrun.source.problems import Problem


class Answer(Record):
    """An answer that is known before anybody is asked; `via` as in GateAnswered, `rule` where a policy gave it."""

    value: Any
    via: str
    rule: str = ""


class Answers(Record):
    """The answers to one plan's questions by step: what the caller gave, and what policies say."""

    given: Mapping[str, Answer] = {}
    of_policies: Mapping[str, Answer] = {}

    def values(self) -> dict[str, Any]:
        """Return what the caller answered, by step."""
        return {name: answer.value for name, answer in self.given.items()}


def answers_of(plan: Plan, texts: Iterable[str], file: str, ceilings: Iterable[Policy] = ()) -> Answers:
    """Return the answers given as `id=value` texts and in a decisions file, and those of the policies.

    Raises InvalidInput with everything that is wrong, InvalidPlan for what is wrong in the file.
    """
    given = read_texts(plan, texts)
    for name, answer in (_read_file(plan, file) if file else {}).items():
        if name not in given:
            given[name] = answer
        elif not _same(given[name].value, answer.value):
            raise InvalidInput(
                f'the step "{name}" is answered in two ways: {show(given[name].value)} by --decide, '
                f"{show(answer.value)} in {file}"
            )
    return Answers(given=given, of_policies=_of_policies(plan, ceilings))


def read_texts(plan: Plan, texts: Iterable[str], via: str = "option") -> dict[str, Answer]:
    """Return the answers in `id=value` texts by step; raises InvalidInput with all that is wrong."""
    found: dict[str, Answer] = {}
    problems: list[str] = []
    for text in texts:
        try:
            name, value = _parted(plan, text)
        except ValueError as error:
            problems.append(str(error))
            continue
        if name in found and not _same(found[name].value, value):
            problems.append(
                f'the step "{name}" is answered in two ways: {show(found[name].value)} and {show(value)}'
            )
        found[name] = Answer(value=value, via=via)
    if problems:
        raise InvalidInput("; ".join(problems))
    return found


def _parted(plan: Plan, text: str) -> tuple[str, Any]:
    name, value = parted(plan, text)
    return name, answer_of_text(asking_step(plan, name), value)


def _same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and bool(left == right)


def _of_policies(plan: Plan, ceilings: Iterable[Policy]) -> dict[str, Answer]:
    """Return what policies answer: a ceiling's word counts more than the plan's.

    A ceiling is about many plans, so it may name steps that this one does not have.
    """
    found: dict[str, Answer] = {}
    known = asking(plan)
    policies = [("ceiling", policy) for policy in ceilings]
    if plan.policy:
        policies.append(("plan", plan.policy))
    for origin, policy in policies:
        for name, value in policy.decisions.items():
            if name not in known or name in found:
                continue
            try:
                answer = answer_of_value(known[name], value)
            except ValueError as error:
                where = "the policy of the plan" if origin == "plan" else "the --policy file"
                raise InvalidInput(f"{where}, under `decisions`: {error}") from None
            found[name] = Answer(value=answer, via="policy", rule=f"{origin}:decisions.{name}")
    return found


# The file.


def _read_file(plan: Plan, file: str) -> dict[str, Answer]:
    from planrun.source.document import parse, read_source  # few command lines name one
    from planrun.source.node import MAPPING
    from planrun.source.problems import Problem, in_order

    try:
        data = read_source(file)
    except InvalidPlan as error:
        raise InvalidInput(f"{file}: {_of_file(error.problems[0].message)}") from None
    root, problems = parse(data, file)
    if root is None or root.kind != MAPPING:
        # What is said of it is said of a plan.
        wanted = "decisions are a mapping of step ids to answers, such as `auth: jwt`, and this is none"
        problems = [
            problem.but(message=wanted, hint="") if problem.code in ("E006", "E101") else problem
            for problem in problems or [Problem(code="E101", message=wanted, file=file)]
        ]
        raise InvalidPlan(in_order(problems), {file: data})
    found: dict[str, Answer] = {}
    for name, node in root.value.items():
        try:
            found[name] = Answer(value=_of_node(asking_step(plan, name), node), via="file")
        except ValueError as error:
            code = "E202" if name not in asking(plan) else "E222"
            at = root.key(name) if code == "E202" else node
            problems.append(_problem(code, str(error), file, at))
    if problems:
        raise InvalidPlan(in_order(problems), {file: data})
    return found


def _of_node(step: Step, node: Node) -> Any:
    """Return the answer in a value of the file; where it has no quotes, only the question decides what it is."""
    from planrun.source.forms import NULLS, to_data
    from planrun.source.node import SCALAR, SEQUENCE

    if node.kind == SCALAR:
        if node.plain and node.value in NULLS:
            raise ValueError(f'the step "{step.id}" is named and has no answer')
        return answer_of_text(step, node.value)
    if node.kind == SEQUENCE and step.kind == "decide":
        if any(item.kind != SCALAR for item in node.value):
            raise ValueError(f'the answer of "{step.id}" is an option or a list of them')
        return answer_of_value(step, [item.value for item in node.value])
    return answer_of_value(step, to_data(node))


def _problem(code: str, message: str, file: str, node: Node) -> Problem:
    from planrun.source.problems import Problem

    return Problem(code=code, message=message, file=file, line=node.line, col=node.col, end_col=node.end_col)


def _of_file(message: str) -> str:
    """Return what is said of an unreadable plan as it is said of this file."""
    return message.replace("the plan", "the decisions").replace("a plan", "a file of decisions")
