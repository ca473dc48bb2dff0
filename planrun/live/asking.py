"""What a key asks before it changes anything, and the verb that it then starts: the run keeps all its rules."""

from __future__ import annotations

from planrun.cliutil.ownverb import OwnVerb
from planrun.model.record import Record
from planrun.reports import facts
from planrun.reports.gates import choices, open_gates
from planrun.reports.policies import name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.app.following import Followed
    from planrun.live.rows import Steps
    from planrun.model.events import GateOpened

_RUNS = ("resume", "retry")  # verbs that run steps, and end with the run
QUIET = ("--output", "quiet")


class Question(Record):
    """A question, and the words of the verb that an answer starts.

    `typed`: how the verb takes what is typed, with `{}` for it; empty: only yes or no. `optional`: it may be empty.
    """

    text: str
    words: tuple[str, ...]
    typed: str = ""
    optional: bool = False

    def verb(self, text: str) -> tuple[str, ...] | None:
        """Return the words of the verb; None when the answer is no."""
        text = text.strip()
        if not self.typed:
            return self.words if text.lower() in ("y", "yes") else None
        if not text and not self.optional:
            return None
        return (*self.words, self.typed.format(text)) if text else self.words


class Keys:
    """The keys that change something; each returns a question, or why there is none."""

    def __init__(self, followed: Followed, steps: Steps) -> None:
        self._followed, self._steps = followed, steps
        self.table = {
            "a": self.approve,
            "r": self.reject,
            "d": self.decide,
            "p": self.pause,
            "c": self.cancel,
            "t": self.retry,
            "u": self.resume,
        }

    def _gate(self, name: str) -> GateOpened | str:
        """Return the gate that is meant: of the chosen step, of the whole plan, or the only one."""
        gates = open_gates(self._steps.state)
        of_step = [gate for gate in gates if gate.step in (name, "")]
        if not gates:
            return "nothing waits for an answer"
        if not of_step and len(gates) > 1:
            waiting = facts.names([gate.step for gate in gates])
            return f"choose one of the steps that wait: {waiting}"
        return (of_step or gates)[0]

    def approve(self, name: str) -> Question | str:
        """Approve what the step or the plan waits for."""
        gate = self._gate(name)
        if isinstance(gate, str):
            return gate
        if gate.kind not in ("approval", "ask") or gate.schema is not None:
            return f"{name_of(gate)} asks for a value: d answers"
        risk = f" (risk {gate.risk})" if gate.risk else ""
        where = (gate.step,) if gate.step else ()
        digest = str(self._steps.state.named.get("digest", ""))
        return Question(
            text=f"Approve {name_of(gate)}{risk}? y or n:",
            words=("approve", self._followed.run, *where, *(("--digest", digest) if digest else ())),
        )

    def reject(self, name: str) -> Question | str:
        """Reject what the step or the plan waits for."""
        gate = self._gate(name)
        if isinstance(gate, str):
            return gate
        where = (gate.step,) if gate.step else ()
        return Question(
            text=f"Reject {name_of(gate)}: a reason or nothing, then enter; escape leaves it:",
            words=("reject", self._followed.run, *where),
            typed="--reason={}",
            optional=True,
        )

    def decide(self, name: str) -> Question | str:
        """Answer the question of a step."""
        gate = self._gate(name)
        if isinstance(gate, str):
            return gate
        if gate.kind == "approval":
            return f"{name_of(gate)} waits for an approval: a approves, r rejects"
        known = choices(gate) or ["yes", "no"]
        step = gate.step.replace("{", "{{").replace("}", "}}")
        return Question(
            text=f"{name_of(gate)} ({' | '.join(known)}), then enter; escape leaves it:",
            words=("decide", self._followed.run),
            typed=f"{step}={{}}",
        )

    def pause(self, _name: str) -> Question | str:
        """Pause the run."""
        if not self._followed.inspected.is_active:
            return "no process runs it: there is nothing to pause"
        return Question(
            text="Pause the run, when its running steps have ended? y or n:",
            words=("pause", self._followed.run),
        )

    def cancel(self, _name: str) -> Question | str:
        """Cancel the run."""
        if self._steps.state.ended:
            return "the run has ended"
        return Question(
            text="Cancel the run, as Ctrl-C does in its shell? y or n:", words=("cancel", self._followed.run)
        )

    def retry(self, name: str) -> Question | str:
        """Run a step again, and what depends on it."""
        if self._followed.inspected.is_active:
            return "a step can be retried when the run is not running"
        if name not in self._steps.state.steps:
            return "no step is chosen"
        return Question(
            text=f"Run {name} and its dependents again? y or n:",
            words=("retry", self._followed.run, name, *QUIET),
        )

    def resume(self, _name: str) -> Question | str:
        """Resume the run."""
        if self._followed.inspected.is_active:
            return "the run is running"
        return Question(text="Resume the run? y or n:", words=("resume", self._followed.run, *QUIET))


class Started:
    """The verbs that were started, and what they say."""

    def __init__(self) -> None:
        self._verbs: list[OwnVerb] = []

    def start(self, words: tuple[str, ...]) -> str:
        """Start a verb; return what to show."""
        try:
            self._verbs.append(OwnVerb(words))
        except OSError as error:
            return f"planrun {words[0]} could not be started: {error.strerror}"
        return f"planrun {words[0]} {words[1]} …"

    def ended(self) -> str:
        """Return what a verb that has ended since said; empty when none has."""
        for verb in list(self._verbs):
            code = verb.code
            if code is None:
                continue
            self._verbs.remove(verb)
            text = _said(verb, code)
            verb.close()
            return text
        return ""


def _said(verb: OwnVerb, code: int) -> str:
    """Return what a verb said, in one line: of a verb that runs steps only how the run ended."""
    verb_name, run, *_ = verb.words
    if code and (error := verb.error()):
        return f"{error} (exit code {code})"
    if verb_name in _RUNS:
        return f"planrun {verb_name} has ended with exit code {code}"
    rows = [row.removeprefix(f"run {run}: ") for row in verb.printed()]
    text = (rows[-1] if code else rows[0]) if rows else f"planrun {verb_name} has ended"
    return f"{text} (exit code {code})" if code else text
