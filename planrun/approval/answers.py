"""Convert texts and values to the answers of `ask` and `decide` steps, or refuse them with the choices.

An answer is True or False to a yes-or-no question, a value that fits the schema of a typed one, the value of an option
of a decision, and a list of them, in the order of the options, for `multi_select`.

Answers given before a run starts or continues: `--decide`, `--decisions FILE` and the policies' `decisions`.

Loaded for plans with steps that ask, and when such an option is given.
"""

from __future__ import annotations

from planrun.errors import InvalidInput, InvalidPlan
from planrun.model.record import Record
from planrun.plan.kinds.question import question_of
from planrun.plan.problems import Problem, did_you_mean, in_order
from planrun.plan.schema.forms import NULLS, to_data
from planrun.plan.yaml.document import parse, read_source
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE
from planrun.values import check_value, fits, read_value, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from planrun.model.plan import Plan, Step
    from planrun.model.policy import Policy
    from planrun.plan.kinds.question import Option
    from planrun.plan.problems import Problem
    from planrun.plan.yaml.node import Node

MAX_TEXT = 1 << 20  # characters of one answer, as of one parameter
_YES = ("yes", "y", "true")
_NO = ("no", "n", "false")
RETRY = "retry"
CHOICES = {
    RETRY: "try once more",
    "skip": "tolerate the failure, and skip its dependents",
    "continue": "tolerate the failure, and run its dependents",
    "block": "the failure counts: its dependents are blocked, other steps continue",
    "abort": "the failure counts: no further step starts",
}
"""The choices for a failed step with `on_failure: ask`, and their descriptions."""
_NAMED = 12  # options that a message names


def asking(plan: Plan) -> dict[str, Step]:
    """Return the steps of a plan that ask, by id."""
    return {step.id: step for step in plan.steps if step.action.asks or step.on_failure == "ask"}


def asking_step(plan: Plan, name: str) -> Step:
    """Return a step that asks; raises ValueError for an unknown one and for one without a question."""
    known = asking(plan)
    if name in known:
        return known[name]
    if any(step.id == name for step in plan.steps):
        there = f"those that do are {', '.join(known)}" if known else "no step of this plan does"
        raise ValueError(f'the step "{name}" asks nothing; {there}')
    hint = did_you_mean(name, known) or (
        f"those that ask are {', '.join(known)}" if known else "no step of this plan asks"
    )
    raise ValueError(f'there is no step "{name}"; {hint}')


def parted(plan: Plan, text: str) -> tuple[str, str]:
    """Return id and value of an `id=value` text, where an instance has `=` in its id; raises ValueError."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"write an answer as id=value; got {show(text)}")
    if "[" in name:
        ids = {step.id for step in plan.steps}
        ends = [at for at, letter in enumerate(text) if letter == "=" and text[:at] in ids]
        end = ends[0] if ends else text.find("]=") + 1 or len(name)
        return text[:end], text[end + 1 :]
    return name, value


def answer_of_text(step: Step, text: str) -> Any:
    """Return the answer in a text from a command line or a file; raises ValueError with a line for the user."""
    action = step.action
    if len(text) > MAX_TEXT:
        raise ValueError(f'the answer of "{step.id}" is longer than {MAX_TEXT} characters')
    if action.options:
        return _chosen(step, _words(action.options, text))
    if not action.asks:
        return _fate(step, text.strip())
    if action.schema is None:
        word = text.strip().casefold()
        if word in _YES or word in _NO:
            return word in _YES
        raise ValueError(f'the step "{step.id}" expects yes or no, got {show(text)}')
    try:
        return read_value({"type": _type(action.schema), **action.schema}, text)
    except ValueError as error:
        raise ValueError(f'the answer of "{step.id}" {error}') from None


def answer_of_value(step: Step, value: Any) -> Any:
    """Return the answer in plain data: True, 3, "jwt", ["auth"]; raises ValueError with a line for the user."""
    action = step.action
    if action.options:
        return _chosen(step, value if isinstance(value, list | tuple) else [value])
    if not action.asks:
        return _fate(step, value)
    if action.schema is None:
        if isinstance(value, bool):
            return value
        if isinstance(value, str):
            return answer_of_text(step, value)
        raise ValueError(f'the step "{step.id}" expects yes or no, got {show(value)}')
    problem = check_value(action.schema, value)
    if problem:
        raise ValueError(f'the answer of "{step.id}" {problem}')
    return list(value) if isinstance(value, tuple) else value


def _fate(step: Step, word: Any) -> str:
    if isinstance(word, str) and word in CHOICES:
        return word
    there = ", ".join(CHOICES)
    raise ValueError(f'{show(word)} is not a choice for the failure of "{step.id}"; choices: {there}')


def _type(schema: dict[str, Any]) -> str:
    """Return the type as which a text is read; without one in the schema: that of its values, or text."""
    allowed = schema.get("enum") or ()
    kinds = ("integer", "number", "boolean")
    return next((kind for kind in kinds if allowed and all(fits(kind, value) for value in allowed)), "string")


def _words(options: Sequence[Option], text: str) -> Sequence[str]:
    if _option(options, text):  # exact, blanks included
        return [text]
    whole = text.strip()
    if "," not in whole or _option(options, whole):
        return [whole]
    return [word.strip() for word in whole.split(",")]


def _chosen(step: Step, words: Iterable[Any]) -> Any:
    action = question_of(step)
    found = [_known(step, action.options, word) for word in words]
    if not action.multi_select:
        if len(found) != 1:
            raise ValueError(f'the step "{step.id}" takes one option, got {len(found)}')
        return found[0].value
    if not found:
        raise ValueError(f'no option is chosen for "{step.id}"; {_there(action.options)}')
    labels = [option.label for option in found]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise ValueError(f'the option {show(twice)} is chosen twice for "{step.id}"')
    return [option.value for option in action.options if option.label in labels]


def _known(step: Step, options: Sequence[Option], word: Any) -> Option:
    found = _option(options, word)
    if found is not None:
        return found
    names = [name for option in options for name in (_spelled(option.value), option.label)]
    hint = did_you_mean(word, list(dict.fromkeys(names))) if isinstance(word, str) else ""
    there = _there(options)
    raise ValueError(
        f'{show(word)} is not an option of the step "{step.id}"; ' + (f"{hint} {there}" if hint else there)
    )


def _option(options: Iterable[Option], word: Any) -> Option | None:
    """Find the option with this value or, failing that, with this label; a text also matches a value that it spells."""
    for option in options:
        if type(option.value) is type(word) and option.value == word:
            return option
    for option in options:
        if isinstance(word, str) and word in (option.label, _spelled(option.value)):
            return option
    return None


def _spelled(value: Any) -> str:
    return value if isinstance(value, str) else show(value)


def _there(options: Sequence[Option]) -> str:
    named = [
        _spelled(option.value)
        if option.label == option.value
        else f"{_spelled(option.value)} ({option.label})"
        for option in options[:_NAMED]
    ]
    more = f" and {len(options) - _NAMED} more" if len(options) > _NAMED else ""
    return f"the options are {', '.join(named)}{more}"


class Answer(Record):
    """An answer that is known in advance; `via` as in GateAnswered, `rule` where a policy gave it."""

    value: Any
    via: str
    rule: str = ""


class Answers(Record):
    """The answers to one plan's questions by step: from the caller, and from policies."""

    given: Mapping[str, Answer] = {}
    of_policies: Mapping[str, Answer] = {}

    def values(self) -> dict[str, Any]:
        """Return the answers of the caller, by step."""
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
    """Return the answers in `id=value` texts by step; raises InvalidInput with all problems."""
    result: dict[str, Answer] = {}
    problems: list[str] = []
    for text in texts:
        try:
            name, value = _parted(plan, text)
        except ValueError as error:
            problems.append(str(error))
            continue
        if name in result and not _same(result[name].value, value):
            problems.append(
                f'the step "{name}" is answered in two ways: {show(result[name].value)} and {show(value)}'
            )
        result[name] = Answer(value=value, via=via)
    if problems:
        raise InvalidInput("; ".join(problems))
    return result


def _parted(plan: Plan, text: str) -> tuple[str, Any]:
    name, value = parted(plan, text)
    return name, answer_of_text(asking_step(plan, name), value)


def _same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and bool(left == right)


def _of_policies(plan: Plan, ceilings: Iterable[Policy]) -> dict[str, Answer]:
    """Return the answers of policies: a ceiling has precedence over the plan.

    A ceiling is about many plans, so it may name steps that this one does not have.
    """
    result: dict[str, Answer] = {}
    known = asking(plan)
    policies = [("ceiling", policy) for policy in ceilings]
    if plan.policy:
        policies.append(("plan", plan.policy))
    for origin, policy in policies:
        for name, value in policy.decisions.items():
            if name not in known or name in result:
                continue
            try:
                answer = answer_of_value(known[name], value)
            except ValueError as error:
                where = "the policy of the plan" if origin == "plan" else "the --policy file"
                raise InvalidInput(f"{where}, under `decisions`: {error}") from None
            result[name] = Answer(value=answer, via="policy", rule=f"{origin}:decisions.{name}")
    return result


# The file.


def _read_file(plan: Plan, file: str) -> dict[str, Answer]:
    try:
        data = read_source(file)
    except InvalidPlan as error:
        of_file = (
            error.problems[0]
            .message.replace("the plan", "the decisions")
            .replace("a plan", "a file of decisions")
        )
        raise InvalidInput(f"{file}: {of_file}") from None
    root, problems = parse(data, file)
    if root is None or root.kind != MAPPING:
        # The messages are about a plan.
        wanted = "expected a mapping of step ids to answers, e.g. `auth: jwt`"
        problems = [
            problem.but(message=wanted, hint="") if problem.code in ("E006", "E101") else problem
            for problem in problems or [Problem(code="E101", message=wanted, file=file)]
        ]
        raise InvalidPlan(in_order(problems), {file: data})
    result: dict[str, Answer] = {}
    for name, node in root.value.items():
        try:
            result[name] = Answer(value=_of_node(asking_step(plan, name), node), via="file")
        except ValueError as error:
            code = "E202" if name not in asking(plan) else "E222"
            at = root.key(name) if code == "E202" else node
            message = str(error)
            problem = Problem(
                code=code, message=message, file=file, line=at.line, col=at.col, end_col=at.end_col
            )
            problems.append(problem)
    if problems:
        raise InvalidPlan(in_order(problems), {file: data})
    return result


def _of_node(step: Step, node: Node) -> Any:
    if node.kind == SCALAR:
        if node.plain and node.value in NULLS:
            raise ValueError(f'the step "{step.id}" has no answer in the file')
        return answer_of_text(step, node.value)
    if node.kind == SEQUENCE and step.kind == "decide":
        if any(item.kind != SCALAR for item in node.value):
            raise ValueError(f'the answer of "{step.id}" is an option or a list of them')
        return answer_of_value(step, [item.value for item in node.value])
    return answer_of_value(step, to_data(node))
