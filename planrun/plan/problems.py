"""What is wrong with a plan: findings with a position, their catalogue of codes, and the nearest known word."""

from __future__ import annotations

from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal

# Stable for ever: scripts filter by them. E0xx the file and its YAML, E1xx its shape, E2xx its meaning.
CODES: dict[str, str] = {
    "E001": "the file cannot be read",
    "E002": "not a regular file",
    "E003": "the file is too large",
    "E004": "not UTF-8 text",
    "E005": "control character",
    "E006": "no plan in the file",
    "E010": "YAML syntax error",
    "E011": "tab used for indentation",
    "E012": "nested too deeply",
    "E013": "more than one YAML document",
    "E014": "YAML tags are not accepted",
    "E015": "unknown alias",
    "E016": "an alias that contains itself",
    "E017": "aliases expand to too many values",
    "E018": "duplicate key",
    "E019": "a key that is not text",
    "E020": "unknown YAML directive",
    "E021": "too many values in the file",
    "E022": "invalid merge",
    "E101": "wrong type",
    "E102": "required key missing",
    "E103": "key without a value",
    "E104": "unknown key",
    "E105": "not one of the allowed words",
    "E106": "invalid name",
    "E107": "more than one action",
    "E109": "not a boolean",
    "E110": "not a number",
    "E111": "not a duration",
    "E112": "invalid id",
    "E113": "empty",
    "E114": "control character in text",
    "E115": "out of range",
    "E116": "unsupported plan version",
    "E117": "ambiguous value",
    "E118": "mutually exclusive keys",
    "E119": "not a size",
    "E199": "too many problems",
    # Found by planrun.plan.check.validate.
    "E201": "duplicate step id",
    "E202": "unknown step",
    "E203": "a step that depends on itself",
    "E204": "dependency cycle",
    "E205": "an edge between steps and finally",
    "E206": "recovers contradicts an edge",
    "E207": "too many steps recover or replace one step",
    "E208": "a key that does not apply to this step",
    "E209": "invalid rollback",
    "E210": "syntax error in an expression",
    "E211": "unknown name in an expression",
    "E212": "type mismatch",
    "E213": "a value of a step that is no dependency",
    "E214": "undeclared output",
    "E215": "an output that may be absent",
    "E216": "unknown status",
    "E217": "a name without a value here",
    "E218": "`| sh` inside quotes",
    "E219": "a parameter that may be absent",
    "E220": "a value that `run` always rejects",
    "E221": "invalid schema",
    "E222": "a value that does not match its schema",
    "E230": "reserved environment variable",
    "E231": "`shell` cannot be split into words",
    "E232": "undeclared secret",
    "E233": "a secret that `env` also sets",
    "E234": "duplicate secret",
    "E235": "a secret without a value",
    "E240": "more steps than allowed",
    "E241": "the plan is too large to check",
    "E250": "duplicate option",
    "E251": "invalid answer",
    "E252": "a key that does not apply to `ask` and `decide`",
    "E253": "an answer without a question",
    "E254": "criteria without a post-check",
    "E260": "declared risk too low",
    "E265": "invalid file pattern",
    "E266": "a file that several steps produce",
    "E267": "a key about files that does not apply",
    "E268": "a step that cannot be cached",
    "E270": "unknown tool",
    "E271": "a key that does not apply to a tool",
    "E272": "unknown type of agent",
    "E273": "unknown tool of an agent",
    "E274": "a type of agent that is built in",
    "E275": "a key that does not apply to an agent",
    "E280": "too many instances",
    "E281": "duplicate instance name",
    "E282": "`exclude` matches no combination",
    "E283": "an instance without a valid name",
    "E284": "a step that cannot have instances",
    "E285": "an interpolation among literal values",
    "E286": "an edge to an instance that does not exist",
    "E290": "a plan that cannot be used or extended",
    "E291": "invalid value for a used plan or template",
    "E292": "a key that does not apply to a step with `uses`",
    "E293": "a step that cannot run in a container",
    "E294": "a policy in a plan whose base has one",
    "E295": "a key that does not apply to a service",
    "E296": "an edge to a service that is never satisfied",
    "E297": "a template, not a plan",
    "E298": "invalid template",
    "E299": "invalid variable of a template",
    "E300": "invalid target of notifications",
    "E301": "invalid sandbox",
    "E302": "invalid facts or parts of a search",
    "E305": "invalid MCP server",
    "W301": "interpolations are not evaluated here",
    "W302": "quoting that may not protect",
    "W303": "a policy rule without effect",
    "W304": "a key without effect in a used plan",
    "W305": "a step without an action",
    "W306": "a value that `run` rejects",
    "W310": "reading files of a step without depending on it",
    "W311": "a cached step without inputs",
    "W320": "a service that no step needs",
}

MAX_KEYS = 12  # valid keys that are listed in a line; a longer list stands once below all findings
MAX_PROBLEMS = 1000  # what one pass keeps; a file with more is not a plan with typos


class Problem(Record):
    """One finding: where it is (1-based, columns count characters) and what is wrong.

    A finding about the whole file stands at 1:1. `end_col` is the column after the last character; 0: unknown.
    `related` are other places as (line, col, text) in the same file. `keys`: for an unknown key, those that are valid
    there, and `place` what has them.
    """

    code: str
    message: str
    file: str
    line: int = 1
    col: int = 1
    end_col: int = 0
    hint: str = ""
    severity: Literal["error", "warning", "advice"] = "error"
    related: tuple[tuple[int, int, str], ...] = ()
    keys: tuple[str, ...] = ()
    place: str = ""

    @property
    def text(self) -> str:
        """Message and hint in one line, as people read it; may hold raw characters of the source."""
        return f"{self.message}; {self.hint}" if self.hint else self.message

    @property
    def is_listed(self) -> bool:
        """Whether the hint is a list of keys that is too long for one line."""
        return len(self.keys) > MAX_KEYS and self.hint.startswith("valid keys: ")


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Sort findings by their place in the file; at the same place they keep their order."""
    return sorted(problems, key=lambda problem: (problem.line, problem.col))


def limited(problems: list[Problem]) -> list[Problem]:
    """Return at most MAX_PROBLEMS of problems in file order; errors count first, then warnings."""
    if len(problems) <= MAX_PROBLEMS:
        return problems
    errors = [problem for problem in problems if problem.severity == "error"][:MAX_PROBLEMS]
    warnings = [problem for problem in problems if problem.severity != "error"]
    return in_order([*errors, *warnings[: MAX_PROBLEMS - len(errors)]])


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that was probably meant, or None: same letters, few typing errors, or a unique start."""
    if not 1 < len(word) <= 40:  # longer than any key: no typing error, and costly to compare
        return None
    words = list(known)
    plain = _folded(word)
    best, best_distance = None, max(1, len(plain) // 3) + 1
    for candidate in words:
        if (away := distance(plain, _folded(candidate), best_distance)) < best_distance:
            best, best_distance = candidate, away
    if best is None and len(plain) >= 3:
        starts = [candidate for candidate in words if _folded(candidate).startswith(plain)]
        best = starts[0] if len(starts) == 1 else None
    return best


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the hint `did you mean "x"?`, or "" when nothing known comes near."""
    found = nearest(word, known)
    return f'did you mean "{found}"?' if found else ""


def name_hint(word: str, known: Iterable[str], noun: str) -> str:
    """Return `did you mean "x"?`, or the known names as `NOUN: a, b, c`; "" when there are none."""
    names = sorted(known)  # of two near words always the same one
    more = f" and {len(names) - MAX_KEYS} more" if len(names) > MAX_KEYS else ""
    listed = f"{noun}: {', '.join(names[:MAX_KEYS])}{more}" if names else ""
    return did_you_mean(word, names) or listed


def key_hint(word: str, known: Iterable[str]) -> str:
    """Return the hint for an unknown key: `did you mean "x"?`, or the list of valid keys."""
    keys = list(known)
    return did_you_mean(word, keys) or f"valid keys: {', '.join(keys)}"


def _folded(word: str) -> str:
    return word.lower().replace("-", "").replace("_", "").replace(" ", "")


def distance(left: str, right: str, limit: int) -> int:
    """Count insertions, deletions, substitutions and swaps of neighbours; `limit` stands for anything larger."""
    if abs(len(left) - len(right)) >= limit:
        return limit
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        older, before, row = before, row, [i]
        for j, b in enumerate(right, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        if min(row) >= limit and (not before or min(before) >= limit):  # it only grows from here
            return limit
    return min(row[-1], limit)
