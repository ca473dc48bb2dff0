"""The kinds `ask` and `decide`: a question for yes, no or a value, and a decision among options."""

from __future__ import annotations

from planrun.expressions.tree import spell
from planrun.model.plan import Action, source_text
from planrun.model.record import Record
from planrun.values import duration, show, sorted_data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.model.plan import Step, Text, Tree


class Question(Action):
    """What both kinds have in common; `default` holds the answer, or the values of options."""

    asks = guards = True
    timed = False
    activity = "analyzing"
    question: Text
    header: str = ""
    default: tuple[Any, ...] = ()  # the answer when the time is over, a list for `multi_select`; empty: none
    timeout: float | None = None  # seconds to wait for an answer; None: the run is left waiting
    multi_select: bool = False

    def formulas(self) -> Iterator[Any]:
        """Yield the question, and the criteria of options."""
        yield self.question
        yield from [option.when for option in self.options if option.when is not None]

    def written(self) -> str:
        """Return the question as it stands in the plan, and what can be answered, a line each."""
        return "\n".join([source_text(self.question), *self._answers()])

    def _answers(self) -> Iterator[str]:
        """Yield what can be answered, then what happens when the time is over."""
        yield from self._choices()
        if self.timeout is not None:
            then = f"then {show(self.default[0])}" if self.default else "then it fails"
            yield f"for {duration(self.timeout)}, {then}"

    def _choices(self) -> Iterator[str]:
        raise NotImplementedError

    def by_keys(self) -> dict[str, Any]:
        """Return the question under its key."""
        return {
            self.kind: {
                name: _by_keys(name, value) for name, value in vars(self).items() if value is not None
            }
        }


class Ask(Question):
    """A gate: yes or no, or a value that follows `schema`, a JSON Schema fragment."""

    kind = "ask"
    summary = "asks a question"

    def _choices(self) -> Iterator[str]:
        schema = self.schema or {}
        bounds = [
            f"{key} {show(value)}" for key, value in schema.items() if key not in ("type", "description")
        ]
        yield "- " + (", ".join([str(schema.get("type", "string")), *bounds]) if schema else "yes or no")


class Option(Record):
    """One answer of a decision."""

    label: str
    value: Any
    description: str = ""
    when: Tree | None = None  # an expression; the first option for which it is true is taken unasked


class Decide(Question):
    """A decision among options."""

    kind = "decide"
    summary = "asks for a decision"
    options: tuple[Option, ...]

    def _choices(self) -> Iterator[str]:
        for option in self.options:
            value = show(option.value)
            text = value if option.value == option.label else f"{value}: {option.label}"
            yield f"- {text}" + (f" ({option.description})" if option.description else "")


def question_of(step: Step) -> Question:
    """Return the question of a step that asks."""
    assert step.action.asks
    return step.action  # type: ignore[return-value]


def _by_keys(name: str, value: Any) -> Any:
    if name == "question":
        return source_text(value)
    if name == "timeout":
        return duration(value)
    if name == "options":  # by label, so that a changed option is shown as one that changed
        return {option.label: _option(option) for option in value}
    return sorted_data(value)


def _option(option: Option) -> dict[str, Any]:
    found = {
        "value": sorted_data(option.value),
        "description": option.description,
        "when": spell(option.when) if option.when else "",
    }
    return {name: value for name, value in found.items() if value not in (None, "")}
