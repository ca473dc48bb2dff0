"""The event redactor masks secrets in events before they are recorded and in the plan before it is shown.

It masks text from users and programs. Data that planrun itself uses stays unchanged: ids of steps, names of outputs
and parameters, statuses, times, numbers, hashes, paths of logs.
"""

from __future__ import annotations

from planrun.model import events as ev
from planrun.plan.keys.table import PLAN_FIELDS, fields_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from planrun.model.plan import Plan, Step
    from planrun.model.record import Record
    from planrun.secrets.masker import MaskedStream, Masker

_OF_PLAN = fields_with("masked", PLAN_FIELDS)
_OF_STEP = fields_with("masked")
_OF_GATE = ("question", "header", "options", "schema", "default", "reason", "answer", "by")
_OF_NOTE = ("op", "id", "type", "at", "status", "trust")
_OF_MODEL = (
    "model",
    "request_id",
    "message",
    "refusals",
    "problems",
)  # text from the model and its service
_OF_AGENT = ("model", "args", "reason", "message", "files", "summary", "evidence")
_OF_STEP_EVENT = ("items", "params", "outputs", "files")
# Separates texts that are masked together; a secret is not matched across so many line breaks.
_APART = "\n" * 8


class EventRedactor:
    """The masks of one run; implements `planrun.ports.Masks`."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._masks = {
            ev.RunStarted: self._mask_start,
            ev.RunResumed: self._mask_start,
            ev.AttemptStarted: self._mask_sandbox,
            ev.AttemptEnded: self._mask_end,
            ev.StepHeld: self._mask_held,
            ev.StepMoved: self._mask_move,
            ev.StepOpened: self._mask_data,
            ev.StepRestored: self._mask_data,
            ev.GateOpened: self._mask_gate,
            ev.GateAnswered: self._mask_gate,
            ev.AgentNoted: self._mask_note,
            ev.PlanningStarted: self._mask_planning,
            ev.ModelAsked: self._mask_planning,
            ev.ModelRepeated: self._mask_planning,
            ev.ModelAnswered: self._mask_planning,
            ev.PlanningEnded: self._mask_planning,
            ev.AgentStarted: self._mask_agent,
            ev.AgentProgressed: self._mask_agent,
            ev.ToolCalled: self._mask_agent,
            ev.ToolReturned: self._mask_agent,
            ev.AgentEnded: self._mask_agent,
            ev.RunEnded: self._mask_ended,
        }

    def stream(self) -> MaskedStream:
        """Return a new stream for the output of one attempt."""
        return self._masker.stream()

    def mask_text(self, text: str) -> str:
        """Return a text masked."""
        return self._masker.mask_text(text)

    def mask_value(self, value: Any) -> Any:
        """Return plain data masked throughout; see `Masker.mask_value`."""
        return self._masker.mask_value(value)

    def mask_event(self, event: ev.Event) -> ev.Event:
        """Return an event masked; the same object when there is nothing to mask."""
        mask = self._masks.get(type(event))
        return mask(event) if mask else event

    def mask_plan(self, plan: Plan) -> Plan:
        """Return a plan with masked names and descriptions; commands and expressions stay unchanged.

        Returns the same object when there is nothing to mask.
        """
        texts = [*_texts(plan, _OF_PLAN), *[text for step in plan.steps for text in _texts(step, _OF_STEP)]]
        texts += [text for step in plan.steps if step.action.asks for text in _asked(step.action)]
        if not self.contains_secret(texts):
            return plan
        return plan.but(steps=tuple(map(self._mask_step, plan.steps)), **self._masked(plan, _OF_PLAN))

    def _mask_step(self, step: Step) -> Step:
        masked = step.but(**self._masked(step, _OF_STEP))
        return masked.but(action=self._mask_question(step.action)) if step.action.asks else masked

    def _mask_question(self, action: Any) -> Any:
        """Mask the shown text of a question; values of options and defaults decide what runs, and stay unchanged."""
        question = action.question
        if not isinstance(question, str):
            parts = [self.mask_text(part) if isinstance(part, str) else part for part in question[1]]
            question = (question[0], tuple(parts), *question[2:])
        changes: dict[str, Any] = {
            "question": self.mask_text(question) if isinstance(question, str) else question
        }
        if action.header:
            changes["header"] = self.mask_text(action.header)
        if "options" in vars(action):
            shown = ("label", "description")
            changes["options"] = tuple(
                [option.but(**self._masked(option, shown)) for option in action.options]
            )
        return action.but(**changes)

    def _mask_sandbox(self, event: Any) -> Any:
        """Mask the paths and hosts of a sandbox; few attempts have one."""
        return event.but(sandbox=self.mask_value(event.sandbox)) if event.sandbox else event

    def contains_secret(self, texts: Iterable[str]) -> bool:
        """Whether any of many short texts contains a secret; much faster than masking each."""
        joined = _APART.join(texts)
        return self.mask_text(joined) != joined

    def mask_error(self, error: BaseException) -> None:
        """Mask in place the messages of an exception and of its causes."""
        seen: set[int] = set()
        left: list[BaseException | None] = [error]
        while left:
            current = left.pop()
            if current is None or id(current) in seen:
                continue
            seen.add(id(current))
            current.args = self.mask_value(current.args)
            if isinstance(current, OSError):
                for name in ("strerror", "filename", "filename2"):
                    value = getattr(current, name)
                    if value is not None:  # setting it, even to None, changes the message
                        setattr(current, name, self.mask_value(value))
            left += [current.__cause__, current.__context__]

    def _masked(self, record: Record, names: tuple[str, ...]) -> dict[str, Any]:
        return {name: self.mask_text(vars(record)[name]) for name in names if name in vars(record)}

    def _values(self, values: dict[str, Any]) -> dict[str, Any]:
        """Mask the values of a mapping whose keys come from the plan."""
        return {name: self.mask_value(value) for name, value in values.items()}

    def _named(self, plan: dict[str, Any]) -> dict[str, Any]:
        """Mask the name and file of a plan in the ledger."""
        return {**plan, **{name: self.mask_text(plan[name]) for name in ("name", "file") if name in plan}}

    def _mask_start(self, event: Any) -> ev.Event:
        params, context = self._values(event.params), self._values(event.context)
        changes = {"plan": self._named(event.plan), "params": params, "context": context}
        if "policy" in event.options:
            changes["options"] = {**event.options, "policy": self.mask_value(event.options["policy"])}
        masked: ev.Event = event.but(**changes)
        return masked

    def _mask_end(self, event: Any) -> ev.Event:
        fields = vars(event)
        changes = self._masked(event, ("program",))
        if fields.get("outputs"):
            changes["outputs"] = outputs = self._values(event.outputs)
            held = [name for name, value in outputs.items() if value != event.outputs[name]]
            if held:
                changes["notes"] = (*self.mask_value(tuple(event.notes)), *map(_note, held))
        if fields.get("notes") and "notes" not in changes:
            changes["notes"] = self.mask_value(tuple(event.notes))
        if fields.get("error"):
            changes["error"] = {**event.error, "message": self.mask_text(event.error["message"])}
        if fields.get("checks"):
            changes["checks"] = tuple([self._values(check) for check in event.checks])
        for name in ("reports", "cache", "patch", "proposed"):
            if fields.get(name):
                changes[name] = self._values(fields[name])
        for name in ("files", "tools", "resources", "hooks"):
            if fields.get(name):
                changes[name] = tuple([self._values(each) for each in fields[name]])
        masked: ev.Event = event.but(**changes) if changes else event
        return masked

    def _mask_held(self, event: Any) -> ev.Event:
        """Mask the message about the holder of a lock, which may be a step of another plan."""
        masked: ev.Event = event.but(message=self.mask_text(event.message))
        return masked

    def _mask_move(self, event: Any) -> ev.Event:
        masked: ev.Event = event.but(message=self.mask_text(event.message)) if event.message else event
        return self._mask_data(masked) if event.outputs else masked

    def _mask_data(self, event: Any) -> ev.Event:
        """Mask the items of a group, and the outputs of a step or group."""
        fields = {name: vars(event)[name] for name in _OF_STEP_EVENT if vars(event).get(name)}
        masked: ev.Event = event.but(**{name: self.mask_value(value) for name, value in fields.items()})
        return masked

    def _mask_ended(self, event: Any) -> ev.Event:
        """Mask the outputs of the plan, and why one could not be evaluated."""
        changes: dict[str, Any] = {}
        if event.outputs:
            changes["outputs"] = self._values(event.outputs)
        if event.message:
            changes["message"] = self.mask_text(event.message)
        masked: ev.Event = event.but(**changes) if changes else event
        return masked

    def _mask_gate(self, event: Any) -> ev.Event:
        """Mask questions and answers, and the values in `schema` and `options`."""
        fields = {name: vars(event)[name] for name in _OF_GATE if vars(event).get(name)}
        masked: ev.Event = event.but(**{name: self.mask_value(value) for name, value in fields.items()})
        return masked

    def _mask_agent(self, event: Any) -> ev.Event:
        """Mask what an agent and its tools say; names of tools and figures stay unchanged."""
        fields = {name: vars(event)[name] for name in _OF_AGENT if vars(event).get(name)}
        masked: ev.Event = event.but(**{name: self.mask_value(value) for name, value in fields.items()})
        return masked

    def _mask_note(self, event: Any) -> ev.Event:
        """Mask what an agent noted; what planrun finds a change by stays unchanged."""
        kept = {name: event.change[name] for name in _OF_NOTE if name in event.change}
        masked: ev.Event = event.but(change={**self.mask_value(event.change), **kept})
        return masked

    def _mask_planning(self, event: Any) -> ev.Event:
        """Mask text from a model and its service; ids of the steps that it writes stay unchanged."""
        fields = vars(event)
        changes = {name: self.mask_value(fields[name]) for name in _OF_MODEL if fields.get(name)}
        if "refusals" in changes:
            pairs = zip(changes["refusals"], event.refusals, strict=True)
            changes["refusals"] = tuple([{**masked, "step": refusal["step"]} for masked, refusal in pairs])
        if fields.get("plan"):
            changes["plan"] = self._named(event.plan)
        masked: ev.Event = event.but(**changes)
        return masked


def _asked(action: Any) -> list[str]:
    """Return the shown texts of a question without its interpolations."""
    question = action.question
    texts = (
        [question] if isinstance(question, str) else [part for part in question[1] if isinstance(part, str)]
    )
    texts.append(action.header)
    for option in vars(action).get("options", ()):
        texts += [option.label, option.description]
    return texts


def _texts(record: Record, names: tuple[str, ...]) -> list[str]:
    return [vars(record)[name] for name in names if name in vars(record)]


def _note(output: str) -> str:
    return f'the output "{output}" held a secret; it is recorded and handed on masked'
