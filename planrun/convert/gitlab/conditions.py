"""Conditions of GitLab CI, `$NAME == "text"` and the like, as expressions of planrun."""

from __future__ import annotations

import re

from planrun.convert.draft import DraftStep, literal_text, quoted
from planrun.convert.expressions import (
    ATOM,
    FALSE,
    JOIN,
    NOT,
    Language,
    NotAnExpressionError,
    Spelled,
    either,
    fact,
    negated,
    parse,
    spell,
    truth,
)
from planrun.convert.reader import UntranslatableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.convert.expressions import Tree

    Lookup = Callable[[str], str]  # the expression that reads a variable

GITLAB = Language(
    token=re.compile(
        r"""\s*(?:(?P<number>(?!))|(?P<text>"[^"]*"|'[^']*')|(?P<name>null\b)|\$\{?(?P<variable>[A-Za-z_]\w*)\}?"""
        r"""|/(?P<pattern>(?:[^/\\]|\\.)+)/(?P<flags>[a-z]*)|(?P<sign>&&|\|\||==|!=|=~|!~|[()!]))"""
    ),
    binary={"||": (1, "or"), "&&": (2, "and"), **dict.fromkeys(("==", "!=", "=~", "!~"), (3, "compare"))},
    negation=3,
    constants={"null": None},
    unquote=lambda text: text[1:-1],
)
_LITERAL = re.compile(r"(?:[A-Za-z0-9_ :@,#%-]|\\[./+*?()\[\]{}|^$-])*")
_CLASSES = (
    ("\\d", "[0-9]"),
    ("\\w", "[A-Za-z0-9_]"),
    ("\\s", "[[:space:]]"),
    ("\\/", "/"),
    ("\\-", "-"),
    ("(?:", "("),
)
_PORTABLE = re.compile(r"(?:[^\\(]|\\[./+*?()\[\]{}|^$-]|\((?!\?))*")
CHECK = "conditions"


# Without a commit to compare with, files count as changed, as for GitLab.
_CHANGED = """\
base="${CI_MERGE_REQUEST_DIFF_BASE_SHA:-${CI_COMMIT_BEFORE_SHA:-}}"
case $base in *[!0]*) git cat-file -e "$base^{commit}" || base= ;; *) base= ;; esac
changed() { [ -z "$base" ] || [ -n "$(git diff --name-only "$base" HEAD -- "$@")" ]; }"""


def _unfolded(path: str) -> list[str]:
    """Return the paths that one with `{a,b}` stands for."""
    match = re.search(r"\{([^{}]*)\}", path)
    if match is None or path.count("{") > 4:
        return [path]
    return [
        each
        for part in match[1].split(",")
        for each in _unfolded(path[: match.start()] + part + path[match.end() :])
    ]


def exists(paths: list[str]) -> str:
    """Return the expression that says whether one of some files is there; raises UntranslatableError."""
    found = [each.removeprefix("/") for path in paths for each in _unfolded(path)]
    if not found or any(not path or re.search(r"[\[\]{}$\\]", path) for path in found):
        raise UntranslatableError("exists", f"`exists` of {', '.join(paths)}")
    tests = [f"default(hash_files({quoted(path)}), '') != ''" for path in found]
    return tests[0] if len(tests) == 1 else f"({' or '.join(tests)})"


class Patterns:
    """Tests of patterns that no expression can do: a step does them, and its outputs say what it found."""

    def __init__(self) -> None:
        self.tests: dict[tuple[str, str, str], str] = {}
        self.changes: dict[
            tuple[str, ...], str
        ] = {}  # paths, by the output that says whether they have changed

    def test(self, value: str, pattern: str, flags: str) -> str:
        """Return the expression that says whether a value matches; raises UntranslatableError."""
        for there, here in _CLASSES:
            pattern = pattern.replace(there, here)
        if flags not in ("", "i") or not _PORTABLE.fullmatch(pattern):
            raise UntranslatableError(
                "condition", f"the pattern `/{pattern}/{flags}` has no equivalent for grep"
            )
        name = self.tests.setdefault((value, pattern, flags), f"c{len(self.tests) + 1}")
        return f"steps.{CHECK}.outputs.{name}"

    def changed(self, paths: list[str]) -> str:
        """Return the expression that says whether files have changed; raises UntranslatableError."""
        found = tuple(each for path in paths for each in _unfolded(path))
        if not found or any(not path or re.search(r"[\"'$`\\{}]", path) for path in found):
            raise UntranslatableError("changes", f"`changes` of {', '.join(paths)}")
        return f"steps.{CHECK}.outputs.{self.changes.setdefault(found, f'changed{len(self.changes) + 1}')}"

    @property
    def has_tests(self) -> bool:
        """Whether a step has to do tests."""
        return bool(self.tests or self.changes)

    def step(self) -> DraftStep:
        """Return the step that does the tests."""
        lines: list[str] = [_CHANGED] if self.changes else []
        env: dict[str, str] = {}
        for paths, name in self.changes.items():
            words = " ".join(f"':(glob){path}'" for path in paths)
            lines.append(
                f'if changed {words}; then echo "{name}=true"; else echo "{name}=false"; fi >> "$PLANRUN_OUTPUT"'
            )
        for (value, pattern, flags), name in self.tests.items():
            env[f"VALUE_{name}"], env[f"PATTERN_{name}"] = f"${{{{ {value} }}}}", literal_text(pattern)
            grep = f'printf "%s\\n" "$VALUE_{name}" | grep -Eq{flags} -e "$PATTERN_{name}"'
            lines.append(
                f'if {grep}; then echo "{name}=true"; else echo "{name}=false"; fi >> "$PLANRUN_OUTPUT"'
            )
        outputs = dict.fromkeys([*self.changes.values(), *self.tests.values()], "boolean")
        return DraftStep(CHECK, run="\n".join(lines) + "\n", env=env, outputs=outputs)


class _Names:
    """What stands in a condition: variables, and tests of patterns."""

    def __init__(self, lookup: Lookup, patterns: Patterns) -> None:
        self.lookup = lookup
        self.patterns = patterns

    def path(self, names: tuple[str, ...]) -> Spelled:
        """Return the value of a variable."""
        return Spelled(text=self.lookup(names[0]))

    def call(self, name: str, _arguments: tuple[Tree, ...]) -> Spelled:
        """Refuse a function: the language has none."""
        raise UntranslatableError("condition", f"the function `{name}`")

    def note(self, code: str, message: str) -> None:
        """Report nothing: texts are compared as there."""

    def compare(self, sign: str, first: Tree, second: Tree) -> Spelled:
        """Return whether two texts are the same, or one has a pattern."""
        left = spell(first, self)
        if sign in ("==", "!="):
            return fact(f"{left.within(JOIN)} {sign} {spell(second, self).within(JOIN)}")
        in_quotes = re.fullmatch(r"/(.+)/([a-z]*)", str(second[1])) if second[0] == "const" else None
        if second[0] != "pattern" and in_quotes is None:
            raise UntranslatableError("condition", "a pattern that a variable holds")
        pattern, flags = in_quotes.groups() if in_quotes else second[1:]
        found = self.matched(left.within(JOIN), pattern, flags)
        return found if sign == "=~" else negated(found)

    def matched(self, value: str, pattern: str, flags: str) -> Spelled:
        """Return the test of a pattern that is plain text, perhaps anchored, or a choice of such."""
        group = re.fullmatch(r"(\^?)\(([^()]*)\)(\$?)", pattern)
        options = (
            [f"{group[1]}{each}{group[3]}" for each in group[2].split("|")] if group else pattern.split("|")
        )
        found = FALSE
        for option in options:
            plain = _plain(value, option)
            if plain is None or flags:
                return fact(self.patterns.test(value, pattern, flags), ATOM)
            found = either(found, plain)
        return found


def _plain(value: str, pattern: str) -> Spelled | None:
    """Return the test of a pattern that is plain text, perhaps anchored; None for any other."""
    starts, body = pattern.startswith("^"), pattern.removeprefix("^")
    ends = body.endswith("$") and not body.endswith("\\$")
    body = body.removesuffix("$") if ends else body.removesuffix(".*")
    body = body if starts else body.removeprefix(".*")
    if not _LITERAL.fullmatch(body):
        return None
    text = quoted(re.sub(r"\\(.)", r"\1", body))
    if starts and ends:
        return fact(f"{value} == {text}")
    return fact(f"{'startswith' if starts else 'endswith' if ends else 'contains'}({value}, {text})", ATOM)


def condition_of(text: str, lookup: Lookup, patterns: Patterns) -> str:
    """Return a condition as an expression; raises UntranslatableError for one that has no equivalent."""
    try:
        return truth(parse(text, GITLAB), _Names(lookup, patterns)).within(NOT)
    except NotAnExpressionError:
        raise UntranslatableError("condition", f"the condition `{text}` has no equivalent") from None


_SOURCES = {
    "merge_requests": "merge_request_event", "schedules": "schedule", "pushes": "push", "triggers": "trigger",
    "external": "external", "pipelines": "pipeline", "chat": "chat", "web": "web", "api": "api",
    "external_pull_requests": "external_pull_request_event",
}  # fmt: skip


def ref_of(text: str, lookup: Lookup, patterns: Patterns) -> str:
    """Return whether an entry of `only` or `except` fits; raises UntranslatableError."""
    if text in ("branches", "tags"):
        return f"{lookup('CI_COMMIT_TAG')} {'==' if text == 'branches' else '!='} ''"
    if text in _SOURCES:
        return f"{lookup('CI_PIPELINE_SOURCE')} == '{_SOURCES[text]}'"
    if text.startswith("/"):
        return condition_of(f"$CI_COMMIT_REF_NAME =~ {text}", lookup, patterns)
    if "@" in text or "$" in text:
        raise UntranslatableError("only", f"`only` or `except` with `{text}`")
    return f"{lookup('CI_COMMIT_REF_NAME')} == {quoted(text)}"
