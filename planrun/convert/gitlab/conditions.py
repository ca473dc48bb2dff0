"""Conditions of GitLab CI, `$NAME == "text"` and the like, as expressions of planrun."""

from __future__ import annotations

import re

from planrun.convert.draft import DraftStep, literal_text, quoted
from planrun.convert.reader import UntranslatableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Lookup = Callable[[str], str]  # the expression that reads a variable

_TOKEN = re.compile(
    r"""\s*(?:(?P<op>&&|\|\||==|!=|=~|!~|\(|\)|!)|\$\{?(?P<name>[A-Za-z_]\w*)\}?|"(?P<double>[^"]*)"|'(?P<single>[^']*)'"""
    r"""|(?P<null>null)\b|/(?P<regex>(?:[^/\\]|\\.)+)/(?P<flags>[a-z]*))"""
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


class _Parser:
    """Reads one condition."""

    def __init__(self, text: str, lookup: Lookup, patterns: Patterns) -> None:
        self.patterns = patterns
        self.text = text
        self.lookup = lookup
        self.tokens: list[re.Match[str]] = []
        at = 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None or match.end() == at:
                raise self.wrong()
            self.tokens.append(match)
            at = match.end()
        self.at = 0

    def wrong(self) -> UntranslatableError:
        return UntranslatableError("condition", f"the condition `{self.text}` has no equivalent")

    def sign(self) -> str:
        return (self.tokens[self.at]["op"] or "") if self.at < len(self.tokens) else ""

    def take(self) -> re.Match[str]:
        if self.at >= len(self.tokens):
            raise self.wrong()
        self.at += 1
        return self.tokens[self.at - 1]

    def either(self) -> str:
        parts = [self.both()]
        while self.sign() == "||":
            self.take()
            parts.append(self.both())
        return parts[0] if len(parts) == 1 else f"({' or '.join(parts)})"

    def both(self) -> str:
        parts = [self.one()]
        while self.sign() == "&&":
            self.take()
            parts.append(self.one())
        return parts[0] if len(parts) == 1 else f"({' and '.join(parts)})"

    def one(self) -> str:
        if self.sign() == "!":
            self.take()
            return f"not ({self.one()})"
        if self.sign() == "(":
            self.take()
            found = self.either()
            if self.sign() != ")":
                raise self.wrong()
            self.take()
            return f"({found})"
        first = self.operand(self.take())
        sign = self.sign()
        if sign not in ("==", "!=", "=~", "!~"):
            return f"{first} != ''"
        self.take()
        second = self.take()
        if sign in ("==", "!="):
            return f"{first} {sign} {self.operand(second)}"
        quoted_form = re.fullmatch(r"/(.+)/([a-z]*)", second["double"] or second["single"] or "")
        if second["regex"] is None and quoted_form is None:
            raise self.wrong()
        pattern, flags = quoted_form.groups() if quoted_form else (second["regex"], second["flags"])
        found = self.matched(first, pattern, flags)
        return found if sign == "=~" else f"not ({found})"

    def operand(self, token: re.Match[str]) -> str:
        if token["name"]:
            return self.lookup(token["name"])
        if token["null"]:
            return "''"
        text = token["double"] if token["double"] is not None else token["single"]
        if text is None:
            raise self.wrong()
        return quoted(text)

    def matched(self, value: str, pattern: str, flags: str) -> str:
        """Return the test of a pattern that is plain text, perhaps anchored, or a choice of such."""
        if flags:
            return self.patterns.test(value, pattern, flags)
        group = re.fullmatch(r"(\^?)\(([^()]*)\)(\$?)", pattern)
        options = (
            [f"{group[1]}{each}{group[3]}" for each in group[2].split("|")] if group else pattern.split("|")
        )
        try:
            tests = [self.plain(value, each) for each in options]
        except UntranslatableError:
            return self.patterns.test(value, pattern, flags)
        return tests[0] if len(tests) == 1 else f"({' or '.join(tests)})"

    def plain(self, value: str, pattern: str) -> str:
        starts, body = pattern.startswith("^"), pattern.removeprefix("^")
        ends = body.endswith("$") and not body.endswith("\\$")
        body = body.removesuffix("$") if ends else body
        if body.endswith(".*") and not ends:
            body = body.removesuffix(".*")
        if body.startswith(".*") and not starts:
            body = body.removeprefix(".*")
        if not _LITERAL.fullmatch(body):
            raise self.wrong()
        text = quoted(re.sub(r"\\(.)", r"\1", body))
        if starts and ends:
            return f"{value} == {text}"
        if starts or ends:
            return f"{'startswith' if starts else 'endswith'}({value}, {text})"
        return f"contains({value}, {text})"


def condition_of(text: str, lookup: Lookup, patterns: Patterns) -> str:
    """Return a condition as an expression; raises UntranslatableError for one that has no equivalent."""
    parser = _Parser(text, lookup, patterns)
    found = parser.either()
    if parser.at < len(parser.tokens):
        raise parser.wrong()
    return found


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
