"""The questions that a run asks on a terminal: from an open gate to its lines, and from a typed line to a reply.

Pure: it reads nothing and writes nothing.
"""

from __future__ import annotations

from planrun.approval.answers import answer_of_text, asking_step
from planrun.approval.responses import Reply
from planrun.model.record import Record
from planrun.reports.escape import line, plain
from planrun.reports.gates import choices, shown, until
from planrun.reports.policies import asked, grounds, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from planrun.model.events import GateOpened
    from planrun.model.plan import Step
    from planrun.model.state import RunState

    Act = Literal["reply", "show", "later", "quit", "help", "again"]

_MOST_NAMED = 40  # characters of values that the prompt names
FIRST_LINES = 6  # of a command, shown with its question
_YES, _NO = ("y", "yes"), ("n", "no")
_WORDS: dict[str, Act | Literal["skip"]] = {
    **dict.fromkeys(("s", "show"), "show"),
    "skip": "skip",
    **dict.fromkeys(("l", "later"), "later"),
    **dict.fromkeys(("q", "quit"), "quit"),
    **dict.fromkeys(("?", "h", "help"), "help"),
}
_MEANINGS = {
    "show": "print everything that would run, then ask again",
    "skip": "skip the step: it does not run, nor does what depends on it",
    "later": "leave this question open; answer it with the commands below, or when the run is resumed",
    "q": "leave all questions open, as Ctrl-D does",
}


class Said(Record):
    """The meaning of a typed line: what to do, the reply for `reply`, and for `again` why the line is no answer."""

    act: Act
    reply: Reply | None = None
    message: str = ""


class Question:
    """One open gate as a question; `commands`: the first lines of what would run, for an approval."""

    def __init__(self, opened: GateOpened, state: RunState, commands: str = "") -> None:
        self.opened = opened
        self.key = key_of(opened)
        self._step: Step | None = state.steps[opened.step].step if opened.step else None
        self._plan = state.plan
        self._commands = commands
        self._names = _allowed(opened.schema)
        # Any line may be its value, so that the words of this prompt need a colon.
        schema = opened.schema
        is_text = schema is not None and schema.get("type", "string") == "string" and "enum" not in schema
        self._is_free = is_text and not self._names
        self._options = opened.options
        self._numbered = not any(_is_number(name) for option in opened.options for name in _names(option))

    @property
    def _is_approval(self) -> bool:
        return self.opened.kind == "approval"

    @property
    def _is_yes_or_no(self) -> bool:
        return self._is_approval or (self.opened.kind == "ask" and self.opened.schema is None)

    @property
    def _can_skip(self) -> bool:
        """Whether the word `skip` leaves the step out; after a failure it is one of the options."""
        return bool(self.opened.step) and self.opened.kind != "failure"

    # What is shown.

    def lines(self) -> list[str]:
        """Return what is asked and why; the prompt follows it."""
        opened = self.opened
        if not self._is_approval:
            rows = [f"{name_of(opened)}: {asked(opened)}"]
            rows += [f"  {row}" for row in self._choices()]
        elif self._step is None:
            rows = [f"{line(self._plan.title or self._plan.name)}: the plan needs an approval"]
            rows += [f"  why: {grounds(opened)}"]
        else:
            title = self._step.label if self._step.label != opened.step else ""
            rows = [f"{name_of(opened)} needs an approval{f': {line(title)}' if title else ''}"]
            rows += [f"  why: {grounds(opened)}"]
        rows += _first_lines(self._commands)
        return rows + [f"  {limit}" for limit in (until(opened),) if limit]

    def _choices(self) -> list[str]:
        found = choices(self.opened)
        if self._names:  # the prompt lists them
            return []
        if not self._options:
            return [f"answer: {row}" for row in found]
        return [f"{f'{at}.' if self._numbered else '-'} {row}" for at, row in enumerate(found, 1)]

    def prompt(self, more: int = 0) -> tuple[str, str]:
        """Return both parts of the line on which the answer is typed: what is asked, and what can be typed.

        `more`: how many questions wait behind this one.
        """
        opened, count = self.opened, f" ({more} more question{'s' if more > 1 else ''})" if more else ""
        if self._is_approval:
            what = f"Run {line(opened.step, 60)}?" if opened.step else "Run this plan?"
        elif opened.schema is not None:
            what = f"{name_of(opened)}: which value?"
        elif self._is_yes_or_no:
            what = f"{name_of(opened)}: yes or no?"
        else:
            what = f"{name_of(opened)}: choose {'some' if opened.multi else 'one'}"
        return f"{what}{count}", f"[{'/'.join(self._keys())}{self._default_text()}] "

    def _keys(self) -> list[str]:
        if self._is_free:
            return [":?"]
        if self._is_yes_or_no:
            keys = ["y", "n"]
        elif self._options:
            last = len(self._options)
            keys = [f"1-{last}" if self._numbered and last > 1 else "1" if self._numbered else "NAME"]
        else:
            keys = self._names
        keys += ["show"] if self._is_approval else []
        return [*keys, *(["skip"] if self._can_skip else []), "later", "?"]

    def _default_text(self) -> str:
        if not self.opened.default:
            return ""
        return f"; Enter: {shown(self.opened.default[0])}"

    def help(self) -> list[str]:
        """Return what each answer does."""
        free = ":" if self._is_free else ""
        rows = []
        if self._is_approval:
            rows += [
                "y      approve: it runs",
                "n      reject: it fails, and the run with it; `n WHY` records why",
            ]
        elif self._is_yes_or_no:
            rows += ["y, n   the answer; no fails the step"]
        elif self._is_free:
            rows += ["The line is the value, unless it begins with a colon."]
        elif not self._options:
            rows += ["The line is the value."]
        elif self._numbered:
            several = "one or more with commas between them, such as 1,2; also" if self.opened.multi else "or"
            rows += [f"1      the number of an option, {several} its name"]
        else:
            rows += [
                "NAME   the name of an option" + (", or several with commas" if self.opened.multi else "")
            ]
        for word, text in _MEANINGS.items():
            if (word != "show" or self._is_approval) and (word != "skip" or self._can_skip):
                rows.append(f"{free + word:<6} {text}")
        return [f"  {row}" for row in rows]

    # What is typed.

    def understand(self, text: str) -> Said:
        """Return the meaning of a line, without its line end. An answer has precedence over a word of this prompt."""
        words = text.strip()
        if not words:
            return self._default()
        if not text.isprintable():
            return Said(act="again", message="the line has control characters; please type it again")
        if words.startswith(":") and words[1:] in _WORDS:
            return self._word(words[1:])
        if self._is_yes_or_no:
            return self._yes_or_no(words)
        try:
            return self._reply(self._answer(words))
        except ValueError as error:
            return self._word(words) if words in _WORDS else Said(act="again", message=str(error))

    def _default(self) -> Said:
        if self.opened.default:
            return self._reply(self.opened.default[0])
        return Said(act="again", message="Enter alone is no answer; ? explains the answers")

    def _word(self, word: str) -> Said:
        act = _WORDS[word]
        if act == "skip":
            if self._can_skip:
                return Said(act="reply", reply=Reply(verb="skip", steps=(self.opened.step,)))
            return Said(act="again", message="this cannot be skipped; ? explains the answers")
        if act == "show" and not self._is_approval:
            return Said(act="again", message="there is nothing more to show; ? explains the answers")
        return Said(act=act)

    def _yes_or_no(self, words: str) -> Said:
        first, _, rest = words.partition(" ")
        steps = (self.opened.step,) if self.opened.step else ()
        word = first.casefold()
        if words.casefold() in _YES:
            return Said(act="reply", reply=Reply(verb="approve", steps=steps))
        if word in _NO and (self._is_approval or not rest):
            return Said(act="reply", reply=Reply(verb="reject", steps=steps, reason=line(rest.strip())))
        if words.casefold() in _WORDS:
            return self._word(words.casefold())
        return Said(act="again", message=f"{line(words, 60)!r} is no answer; ? explains the answers")

    def _answer(self, words: str) -> Any:
        step = asking_step(self._plan, self.opened.step)
        if not self._options or not self._numbered:
            return answer_of_text(step, words)
        parts = [part.strip() for part in words.split(",")]
        if not all(_is_number(part) for part in parts):
            return answer_of_text(step, words)
        numbers = [int(part) for part in parts]
        wrong = next((number for number in numbers if not 0 < number <= len(self._options)), None)
        if wrong is not None:
            raise ValueError(f"there is no option {wrong}; the last one is {len(self._options)}")
        if not self.opened.multi and len(numbers) > 1:
            raise ValueError("choose one option")
        values = [option["value"] for number, option in enumerate(self._options, 1) if number in numbers]
        return values if self.opened.multi else values[0]

    def _reply(self, value: Any) -> Said:
        return Said(act="reply", reply=Reply(verb="decide", values={self.opened.step: value}))


def key_of(opened: GateOpened) -> tuple[str, str, str]:
    """Return what distinguishes a gate from all others of its run."""
    return opened.step, opened.kind, opened.at


def _first_lines(text: str) -> list[str]:
    rows = plain(text).strip("\n").split("\n") if text.strip() else []
    found = [f"  | {line(row, 300)}" for row in rows[:FIRST_LINES]]
    more = len(rows) - FIRST_LINES
    return found + ([f"  … {more} more line{'s' if more > 1 else ''}; `show` prints all"] if more > 0 else [])


def _names(option: dict[str, Any]) -> tuple[str, str]:
    return shown(option.get("value")), str(option.get("label", ""))


def _allowed(schema: dict[str, Any] | None) -> list[str]:
    """Return the values that a question allows, where they are few enough for one line."""
    names = [shown(value) for value in (schema or {}).get("enum", ())]
    if (schema or {}).get("type") == "boolean":
        names = ["true", "false"]
    return names if sum(map(len, names)) < _MOST_NAMED else []


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 5
