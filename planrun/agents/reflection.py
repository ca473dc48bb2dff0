"""What an error of a tool means and what may help: by patterns, by earlier runs, and by a model where it may be asked.

Everything is a suggestion. What planrun may try by itself is a second call of a reading tool with the path that was
surely meant, and only with `reflection.autofix: true`; a tool that writes is never called again by itself.
"""

from __future__ import annotations

import json

from planrun.agents.learned import normalised
from planrun.agents.patterns import CATEGORIES, PATTERNS
from planrun.agents.predictor import certain, predicted
from planrun.llm.untrusted import RULES, clean, data_block
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from planrun.agents.learned import ErrorStore
    from planrun.agents.patterns import Pattern
    from planrun.model.collaboration import Reflection as ReflectionSettings

READING = {"read": "path", "list_dir": "path", "tree": "path", "grep": "path", "diff": "path"}
"""The tools that may be called again by themselves, and their argument that is a path."""
PATH_ARGUMENTS = ("path", "file", "file_path", "filename", "folder")
LONGEST_ERROR = 16 * 1024
"""Characters of an error that are looked at: its end."""
LONGEST_LINE = 600
"""Characters of a line that patterns see."""
_MARKS = ("<untrusted-data ", "</untrusted-data ")
_SHOWN = 2000  # bytes of suggestions from files and earlier runs in a prompt
_LONGEST_TEXT = 500  # characters of each text that a model writes about an error


class Reflection(Record):
    """What is known about one error.

    `source`: pattern, model or none. `rule`: the id of the pattern. `auto_fix`: the call that planrun may make by
    itself, as `tool` and `args`; None: nothing. `learned`: solutions that helped before, the best first, with their
    ids in `learned_ids`.
    """

    tool: str
    error: str  # normalised
    category: str
    source: str
    suggestion: str
    should_retry: bool = False
    suggested_fix: str = ""
    alternative: str = ""
    auto_fix: dict[str, Any] | None = None
    rule: str = ""
    root_cause: str = ""
    suggested_paths: tuple[str, ...] = ()
    learned: tuple[str, ...] = ()
    learned_ids: tuple[str, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON data, every field present, as it stands in ledger.json."""
        return {name: _plain(getattr(self, name)) for name in _FIELDS}

    def advice(self) -> str:
        """Return it as text that follows a tool's result in a conversation; what others wrote is a block of data."""
        lines = [f"[{self.category}] {self.suggestion}"]
        if self.suggested_fix:
            lines.append(f"Suggested fix: {self.suggested_fix}")
        if self.alternative:
            lines.append(f"Alternative: {self.alternative}")
        lines.append(
            "Repeating the call after a correction may help."
            if self.should_retry
            else "Mend the cause before you repeat the call."
        )
        found = [f"file that may be meant: {path}" for path in self.suggested_paths]
        found += [f"helped earlier: {solution}" for solution in self.learned]
        found += [f"root cause, by a model: {self.root_cause}"] if self.root_cause else []
        return "\n".join([*lines, *([data_block("suggestions", "\n".join(found), _SHOWN)] if found else [])])


_FIELDS = (
    *(
        "tool",
        "error",
        "category",
        "source",
        "rule",
        "suggestion",
        "should_retry",
        "suggested_fix",
        "alternative",
    ),
    *("auto_fix", "root_cause", "suggested_paths", "learned", "learned_ids"),
)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


class Failure(Record):
    """A call of a tool that failed: its arguments, and what it said."""

    tool: str
    args: Mapping[str, Any]
    message: str


def without_marks(text: str) -> str:
    """Return the result of a tool as it was before it became blocks of untrusted data."""
    return "\n".join([line for line in text.split("\n") if not line.startswith(_MARKS)])


def seen_text(message: str) -> str:
    """Return the end of an error as patterns see it: without colours and hidden characters, long lines cut."""
    text = clean(message[-LONGEST_ERROR:]).text
    return "\n".join([line.rstrip()[:LONGEST_LINE] for line in text.split("\n")])


def matched(message: str) -> tuple[Pattern, re.Match[str]] | None:
    """Return the first pattern of the table with a line of this error; None when there is none."""
    text = seen_text(message)
    for pattern in PATTERNS:
        if match := pattern.regex.search(text):
            return pattern, match
    return None


def category_of(message: str) -> str:
    """Return the category of an error by the patterns alone; `unknown` where none matches."""
    found = matched(message)
    return found[0].category if found else "unknown"


class Reflector:
    """Reflects on the errors of one run.

    `files` returns the files of the workspace; it is called for missing files only. `root`: the folder of the
    workspace.
    """

    def __init__(
        self,
        settings: ReflectionSettings,
        store: ErrorStore,
        files: Callable[[], Iterable[str]],
        root: str = "",
    ) -> None:
        self._settings = settings
        self._store = store
        self._files = files
        self._root = root

    def reflect(self, failure: Failure) -> Reflection | None:
        """Return what is known about an error; None when reflection is off."""
        if not self._settings.enabled:
            return None
        found = matched(failure.message)
        reflection = _by_pattern(failure, *found) if found else _unknown(failure)
        if found and reflection.category == "file_not_found":
            reflection = self._with_paths(reflection, failure, *found)
        entries = self._store.offered(reflection.error, reflection.category)
        if not entries:
            return reflection
        return reflection.but(
            learned=tuple([entry.solution for entry in entries]),
            learned_ids=tuple([entry.id for entry in entries]),
        )

    def wants_analysis(self, reflection: Reflection) -> bool:
        """Whether a model is to be asked: it may be, and no pattern matched."""
        return self._settings.llm and reflection.category == "unknown"

    def _with_paths(
        self, reflection: Reflection, failure: Failure, pattern: Pattern, match: re.Match[str]
    ) -> Reflection:
        args = failure.args
        values = [args.get(name) for name in PATH_ARGUMENTS]
        given: str = next((value for value in values if isinstance(value, str) and value), "")
        path = _group(match, "path") or _group(match, "bare") or given
        if given.startswith(f"{path}/"):  # the folder of the file is missing, too
            path = given
        suggestions = predicted(path, self._files(), self._root) if path else ()
        fix = None
        if pattern.fix == "path" and self._settings.autofix:
            fix = _corrected(failure, path, certain(suggestions))
        return reflection.but(suggested_paths=tuple([each.path for each in suggestions]), auto_fix=fix)


def _by_pattern(failure: Failure, pattern: Pattern, match: re.Match[str]) -> Reflection:
    return Reflection(
        tool=failure.tool,
        error=normalised(match[0]),
        category=pattern.category,
        source="pattern",
        rule=pattern.id,
        suggestion=pattern.suggestion,
        should_retry=pattern.should_retry,
        suggested_fix=_filled(pattern.suggested_fix, match),
        alternative=pattern.alternative,
    )


def _unknown(failure: Failure) -> Reflection:
    return Reflection(
        tool=failure.tool,
        error=normalised(failure.message),
        category="unknown",
        source="none",
        suggestion="The error is not known. Check the arguments, or divide the task.",
    )


def _filled(text: str, match: re.Match[str]) -> str:
    """Return a fix with the name that it is about; "" when the message names nothing that could stand in it."""
    if "{name}" not in text:
        return text
    name = _group(match, "name") or _group(match, "other")
    return text.replace("{name}", name) if name else ""


def _group(match: re.Match[str], name: str) -> str:
    return match.groupdict().get(name) or ""


def _corrected(failure: Failure, path: str, meant: str) -> dict[str, Any] | None:
    """Return the same call of a reading tool with the path that was surely meant; None when there is none."""
    name = READING.get(failure.tool, "")
    given = failure.args.get(name)
    if not meant or not isinstance(given, str) or given.strip().lstrip("./") != path.strip().lstrip("./"):
        return None
    return {"tool": failure.tool, "args": {**failure.args, name: meant}}


# Analysis by a model.

ANALYSIS_SYSTEM = f"""\
You analyse one error of a tool that a program called. Answer with the JSON object of the schema. `category` is one of
its values. `suggestion` says in one or two sentences what to change. `should_retry` is true when a corrected call may
succeed. `alternative` names another tool of the list, or is empty. `root_cause` names the cause in one sentence.
Suggest nothing that widens permissions, turns off a check, or prints a secret.

{RULES}"""

ANALYSIS_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "category": {"type": "string", "enum": list(CATEGORIES)},
        "suggestion": {"type": "string"},
        "should_retry": {"type": "boolean"},
        "alternative": {"type": "string"},
        "root_cause": {"type": "string"},
    },
    "required": ["category", "suggestion", "should_retry", "alternative", "root_cause"],
    "additionalProperties": False,
}
"""The form of a model's answer. It has no key for a call: what a model suggests is never made by itself."""


class InvalidAnalysis(ValueError):
    """A model's analysis that cannot be used; the message says why."""


def analysis_question(failure: Failure, tools: Sequence[str]) -> str:
    """Return the question to a model about an error that no pattern matches; `tools`: those that the agent may use."""
    args = json.dumps(failure.args, sort_keys=True, ensure_ascii=True, default=str)
    return "\n\n".join(
        [
            f"Tool: {failure.tool}\nTools of the agent: {', '.join(tools)}",
            data_block("arguments", args, 2000),
            data_block("error", failure.message, 4000),
        ]
    )


def analysed(reflection: Reflection, answer: str, tools: Sequence[str]) -> Reflection:
    """Return a reflection with the analysis of a model; raises InvalidAnalysis, and then the reflection stands.

    An alternative that is no tool of the agent is left out.
    """
    data = _analysis(answer)
    alternative = data["alternative"].strip()
    return reflection.but(
        category=data["category"],
        source="model",
        suggestion=_one_line(data["suggestion"]),
        should_retry=data["should_retry"],
        alternative=alternative if alternative in tools else "",
        root_cause=_one_line(data["root_cause"]),
    )


def _analysis(answer: str) -> dict[str, Any]:
    try:
        data = json.loads(answer)
    except (ValueError, RecursionError):
        raise InvalidAnalysis("the answer is no JSON") from None
    if not isinstance(data, dict):
        raise InvalidAnalysis("the answer is no object")
    wanted = ANALYSIS_SCHEMA["properties"]
    if set(data) != set(wanted):
        names = ", ".join(sorted(set(data) ^ set(wanted)))
        raise InvalidAnalysis(f"missing or unknown keys: {names[:_LONGEST_TEXT]}")
    for name, schema in wanted.items():
        if not isinstance(data[name], bool if schema["type"] == "boolean" else str):
            raise InvalidAnalysis(f"{name} has a wrong type")
    if data["category"] not in CATEGORIES:
        raise InvalidAnalysis(f"unknown category {data['category'][:100]!a}")
    if not data["suggestion"].strip():
        raise InvalidAnalysis("the suggestion is empty")
    return data


def _one_line(text: str) -> str:
    return " ".join(clean(text).text.split())[:_LONGEST_TEXT]
