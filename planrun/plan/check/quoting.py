"""Where an interpolation with `| sh` stands in its script: its quotes protect a value only outside of other quotes.

In `"${{ x | sh }}"` the shell takes the quotes that were put in for text and reads `$(…)` in the value as code; in
`'${{ x | sh }}'` they end the quotes around them. So the literal parts of the script are read as a POSIX shell reads
them, as far as quotes, substitutions, comments and here-documents are concerned. Where that is not certain (`case` in
a substitution, whose brackets do not match), what is found is a doubt and no more.

Values known before the run that `run:` refuses without quotes: defaults and enums of parameters, and instances.

A refused value makes its step `failed (refused)` when it starts, so a plan that can only fail is an error (E220), and
one that fails with some of its values has a warning (W306).
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import product

from planrun.errors import EvaluationError
from planrun.expressions.check import references
from planrun.expressions.render import render_text, unsafe_in
from planrun.expressions.tree import ExpressionError
from planrun.model.jsontext import quote
from planrun.plan.keys.outline import Outline, entries
from planrun.plan.yaml.node import MAPPING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from planrun.expressions.tree import Template, Tree
    from planrun.plan.keys.formulas import Formula
    from planrun.plan.keys.instances import Instances

    Values = dict[str, Any]

SHELLS = frozenset(("sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "busybox"))

_HINT = "move the interpolation out of the quotes, or pass the value in `env:`"
MAX_LOOKED_AT = 300_000  # places of all scripts of a plan where quotes could begin or end: half a second
_HOLE = "\0"  # stands for an interpolation; no script contains it
_SPECIAL = "\n#<()\"'$`{}\\\0c"  # the only characters that can mean something; c: `case`
_BLANK = " \t\n"
_BREAK = _BLANK + ";&|()"  # after one of them a word begins
# What a frame is called in a message; the other two, `command` and `brace`, are places where quotes are quotes.
_WHERE = {
    "double": "inside double quotes",
    "member": "inside double quotes",  # in "${x:-…}", where single quotes are text
    "single": "inside single quotes",
    "ansi": "inside single quotes",
    "back": "inside backquotes",
    "sum": "inside `((…))`, where quotes are text",
    "comment": "in a comment, which a line break in the value ends",
    "document": "in a here-document, where quotes are text",
    "escaped": "after a backslash, which escapes the first quote",
}


def check_quoting(outline: Outline, formulas: Iterable[Formula]) -> None:
    """Report every `| sh` that protects nothing (E218), and those of which that is not certain (W302)."""
    seen: set[tuple[int, bool]] = set()
    left = MAX_LOOKED_AT
    for formula in formulas:
        if formula.kind != "script" or formula.owner is None:
            continue
        raw = formula.owner
        defaults = outline.root.get("defaults")
        shell = raw.keys.get("shell", defaults.get("shell") if defaults is not None else None)
        if shell is None or shell.kind == MAPPING:
            known = True
        else:
            words = [word for entry in entries(shell) for word in entry.value.split()]
            known = any(word.rpartition("/")[2] in SHELLS for word in words)
        if (id(formula.node), known) in seen:  # an alias: scanned once, however often it is used
            continue
        seen.add((id(formula.node), known))
        if known:
            left -= costs(formula.value)
            if left < 0:
                message = f"scripts with `| sh` have more than {MAX_LOOKED_AT:,} quotes and brackets"
                outline.report("E241", message, formula.node, "pass values in `env:`")
                return
        for tree, where, sure in misplaced(formula.value) if known else _all(formula.value):
            if sure:
                place = ExpressionError(f"`| sh` {where} does not protect the value", tree[1], tree[2])
                outline.report_in(formula.node, "E218", place, _HINT)
            else:
                place = ExpressionError(f"`| sh` {where}", tree[1], tree[2])
                outline.report_in(formula.node, "W302", place, _HINT, severity="warning")


def _all(template: Template) -> Iterator[tuple[Tree, str, bool]]:
    for part in template[1]:
        if not isinstance(part, str) and part[0][0] == "sh":
            yield part[0], "quotes for sh and bash, but `shell` may quote differently", False


def costs(template: Template) -> int:
    """Return at how many places `misplaced` will have to stop in a script."""
    parts = template[1]
    if all(part[0][0] != "sh" for part in parts if not isinstance(part, str)):
        return 0
    return sum(sum(map(part.count, _SPECIAL)) for part in parts if isinstance(part, str))


def misplaced(template: Template) -> Iterator[tuple[Tree, str, bool]]:
    """Yield each interpolation whose `| sh` does not protect it: its tree, where it stands, whether that is sure."""
    parts = template[1]
    trees = [part[0] for part in parts if not isinstance(part, str)]
    if all(tree[0] != "sh" for tree in trees):
        return
    found = _Scan("".join([part if isinstance(part, str) else _HOLE for part in parts])).holes()
    for tree, (frame, sure) in zip(trees, found, strict=True):
        if tree[0] == "sh" and (frame in _WHERE or not sure):
            yield tree, _WHERE.get(frame, "where a quote may be open"), sure


def open_quotes(parts: Iterable[object]) -> list[str]:
    """Return for each part of a script that is no text inside of what it stands, outermost words of `_Scan`.

    `command` and `brace` are outside of quotes; others are the keys of `_WHERE`, `doubtful` where that is not certain.
    """
    text = "".join([part if isinstance(part, str) else _HOLE for part in parts])
    return [frame if sure else "doubtful" for frame, sure in _Scan(text).holes()]


class _Scan:
    """One pass over a script; `frames` are the quotes and substitutions that are open, the innermost last."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.frames = ["command"]
        self.depths = [0]  # of brackets that were opened inside each frame
        self.sure = True
        self.due: list[tuple[str, bool]] = []  # here-documents that begin on the next line
        self.found: list[tuple[str, bool]] = []
        self.lines: dict[
            tuple[str, bool], list[int]
        ] = {}  # where the lines with a text end, without tabs before it

    def holes(self) -> list[tuple[str, bool]]:
        """Return for each interpolation the frame that it stands in, and whether that is certain."""
        import re  # few plans have such an interpolation

        dull_part = re.compile(f"[^{re.escape(_SPECIAL)}]+")
        while self.at < len(self.text):
            char = self.text[self.at]
            if dull := dull_part.match(self.text, self.at):
                self.at = dull.end()
            elif char == _HOLE:
                self.found.append((self.frames[-1], self.sure))
                self.at += 1
            else:
                _STEPS[self.frames[-1]](self, char)
        return self.found

    def open(self, frame: str, width: int = 1) -> None:
        self.frames.append(frame)
        self.depths.append(0)
        self.at += width

    def close(self, width: int = 1) -> None:
        if len(self.frames) > 1:
            self.frames.pop()
            self.depths.pop()
        self.at += width

    def starts(self, word: str) -> bool:
        return self.text.startswith(word, self.at)

    def escape(self) -> None:
        """Pass a backslash and what it takes the meaning of."""
        if self.text[self.at + 1 : self.at + 2] == _HOLE:
            self.found.append(("escaped", self.sure))
        self.at += 2

    def begins_word(self) -> bool:
        return self.at == 0 or self.text[self.at - 1] in _BREAK

    def substitution(self) -> bool:
        """Enter `$(…)`, `$((…))`, `${…}` or backquotes when one begins here."""
        quoted = self.frames[-1] in ("double", "member")
        if self.starts("$(("):
            self.open("sum", 3)
        elif self.starts("$("):
            self.open("command", 2)
        elif self.starts("${"):
            self.open("member" if quoted else "brace", 2)
        elif self.starts("`"):
            self.open("back")
        else:
            return False
        return True

    def command(self, char: str) -> None:
        """One character where commands stand."""
        if char == "\n":
            self.at += 1
            self.documents()
        elif char == "#" and self.begins_word():
            self.open("comment")
        elif self.starts("<<<"):
            self.at += 3
        elif self.starts("<<"):
            self.announce()
        elif self.starts("((") and self.begins_word():
            self.open("sum", 2)
        elif char == "(":
            self.depths[-1] += 1
            self.at += 1
        elif char == ")":
            self.bracket()
        else:
            if self.starts("case") and self.begins_word() and len(self.frames) > 1:
                self.sure = False  # its patterns end in brackets that were never opened
            self.word(char)

    def bracket(self) -> None:
        """Close a bracket of this frame, else the substitution itself."""
        if self.depths[-1]:
            self.depths[-1] -= 1
            self.at += 1
        else:
            self.close()

    def word(self, char: str) -> None:
        """One character of a word outside of quotes."""
        if char == "\\":
            self.escape()
        elif char == '"':
            self.open("double")
        elif char == "'":
            self.open("single")
        elif self.starts("$'"):
            self.open("ansi", 2)
        elif not self.substitution():
            self.at += 1

    def brace(self, char: str) -> None:
        """One character in `${…}` outside of quotes."""
        if char == "}":
            self.close()
        else:
            self.word(char)

    def double(self, char: str) -> None:
        """One character in double quotes."""
        if char == '"':
            self.close()
        elif char == "\\":
            self.escape()
        elif not self.substitution():
            self.at += 1

    def member(self, char: str) -> None:
        """One character in `"${…}"`: shells differ about the quotes there."""
        if char == "}":
            self.close()
            return
        if char in "'\"":
            self.sure = False
        if char == '"':
            self.open("double")
        elif char == "\\":
            self.escape()
        elif not self.substitution():
            self.at += 1

    def single(self, char: str) -> None:
        """One character in single quotes."""
        if char == "'":
            self.close()
        else:
            self.at += 1

    def ansi(self, char: str) -> None:
        """One character in `$'…'`, which not every shell knows."""
        if char == "\\":
            self.sure = self.sure and not self.starts("\\'")
            self.escape()
        else:
            self.single(char)

    def back(self, char: str) -> None:
        """One character in backquotes: the next one ends them, whatever quotes stand between."""
        if char == "`":
            self.close()
        elif char == "\\":
            self.escape()
        else:
            self.at += 1

    def sum(self, char: str) -> None:
        """One character in `((…))`, which may turn out to be brackets inside brackets."""
        if char == "(":
            self.depths[-1] += 1
            self.at += 1
        elif char == ")" and self.depths[-1]:
            self.depths[-1] -= 1
            self.at += 1
        elif self.starts("))"):
            self.close(2)
        elif char == ")":
            self.frames[-1] = "command"
            self.at += 1
        else:
            self.word(char)

    def comment(self, char: str) -> None:
        """One character in a comment."""
        if char == "\n":
            self.close(0)
        else:
            self.at += 1

    def announce(self) -> None:
        """Read `<<WORD`: the lines after this one are a here-document."""
        self.at += 2
        tabs = self.starts("-")
        self.at += int(tabs)
        while self.starts(" ") or self.starts("\t"):
            self.at += 1
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in _BREAK + "<>":
            self.at += 1
        word = self.text[start : self.at]
        for sign in "'\"\\":
            word = word.replace(sign, "")
        if _HOLE in word:
            self.sure = False
            self.found += [("command", False)] * self.text.count(_HOLE, start, self.at)
        elif word:
            self.due.append((word, tabs))

    def documents(self) -> None:
        """Pass the here-documents that were announced on the line that ended here."""
        for word, tabs in self.due:
            end = self.end_of(word, tabs=tabs)
            if end < 0:  # no such line: a shift in arithmetic, or a document without an end
                self.sure = self.sure and word.isdigit()
                continue
            self.found += [("document", self.sure)] * self.text.count(_HOLE, self.at, end)
            self.at = end
        self.due.clear()

    def end_of(self, word: str, *, tabs: bool) -> int:
        """Return where the first line from here on that is exactly `word` ends, or -1."""
        if not self.lines:  # looked for anew each time, many documents without an end would take for ever
            at = 0
            for line in self.text.split("\n"):
                at += len(line) + 1
                self.lines.setdefault((line, False), []).append(at)
                self.lines.setdefault((line.lstrip("\t"), True), []).append(at)
        ends = self.lines.get((word, tabs), [])
        found = bisect_right(ends, self.at)
        return min(ends[found], len(self.text)) if found < len(ends) else -1


_STEPS = {
    "command": _Scan.command,
    "brace": _Scan.brace,
    "double": _Scan.double,
    "member": _Scan.member,
    "single": _Scan.single,
    "ansi": _Scan.ansi,
    "back": _Scan.back,
    "sum": _Scan.sum,
    "comment": _Scan.comment,
}


MAX_EVALUATED = 50_000  # values of all scripts of a plan: about 0.2 s; what is beyond is refused when it runs
MAX_COMBINED = 100  # combinations of values of parameters that one interpolation reads
_SHOWN = 40  # characters of a value in a message
_KNOWN = frozenset(("params", "matrix", "item"))
_OUTSIDE = ("command", "brace")  # what `open_quotes` calls places outside of quotes


def check_unquoted(
    outline: Outline,
    formulas: Iterable[Formula],
    params: Mapping[str, Values],
    groups: Mapping[str, Instances],
) -> None:
    """Report interpolations in scripts whose known values `run:` refuses."""
    left = MAX_EVALUATED
    for formula in formulas:
        owner = formula.owner
        if formula.kind != "script" or owner is None:
            continue
        for place, part in enumerate([part for part in formula.value[1] if not isinstance(part, str)]):
            scopes = list(_scopes(part[0], params, groups.get(owner.id)))
            left -= len(scopes)
            if left < 0:
                return
            tree = part[0]
            is_closed = all(
                len(reference.path) > 1 and "enum" in params.get(str(reference.path[1]), {})
                for reference in references(tree)
                if reference.path[0] == "params"
            )
            found = _refused(part, scopes, is_certain=is_closed)
            if found is None:
                continue
            message, never = found
            code = "E220" if never and "condition" not in owner.keys else "W306"
            error = ExpressionError(message, part[0][1], part[0][2])
            severity = "error" if code == "E220" else "warning"
            outline.report_in(formula.node, code, error, _hint(formula.value, place, part), severity=severity)


def _scopes(
    tree: Tree, params: Mapping[str, Values], group: Instances | None
) -> Iterator[tuple[str | None, Values]]:
    """Yield the names that an interpolation may be evaluated with, each with the instance that it is of.

    Nothing where `| sh` quotes the value, or where something that it reads is not known.
    """
    paths = [reference.path for reference in references(tree)]
    if tree[0] == "sh" or not all(path[0] in _KNOWN for path in paths):
        return
    made: list[Values | None] = [None]
    if any(path[0] != "params" for path in paths):
        if group is None or group.made is None:
            return
        made = [*group.made]
    domains = {str(path[1]): None for path in paths if path[0] == "params" and len(path) > 1}
    values = [_values(params.get(name, {})) for name in domains]
    size = 1
    for listed in values:
        size *= len(listed)
    if size > MAX_COMBINED or (size == 0 and domains):
        return
    for instance in made:
        for combined in product(*values):
            scope: Values = {"params": dict(zip(domains, combined, strict=True)), **(instance or {})}
            yield instance["instance"] if instance else None, scope


def _values(fragment: Values) -> list[Any]:
    """Return the values that a parameter is known to have, or to be able to have."""
    if "enum" in fragment:
        return list(fragment["enum"])
    return [fragment["default"]] if "default" in fragment else []


def _refused(
    part: tuple[Tree, str], scopes: list[tuple[str | None, Values]], *, is_certain: bool
) -> tuple[str, bool] | None:
    """Return a message about the refused values, and whether step or instance can never run; None for none."""
    refused: dict[str | None, str] = {}
    fine: set[str | None] = set()
    for instance, scope in scopes:
        try:
            text = render_text(("template", (part,)), scope)
        except EvaluationError:
            return None  # another problem, with a message of its own
        if unsafe_in(text):
            refused.setdefault(instance, text)
        else:
            fine.add(instance)
    if not refused:
        return None
    never = [instance for instance in refused if instance not in fine] if is_certain else []
    instance = never[0] if never else next(iter(refused))
    text = refused[instance]
    shown = quote(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
    message = f"`run` rejects the value {shown}: it contains {unsafe_in(text)!a} and is not quoted"
    if instance is not None:
        message = f"instance {quote(instance)}: {message}"
    if len(refused) > 1:
        message += f" ({len(refused) - 1} more)"
    return message, bool(never)


def _hint(template: Template, place: int, part: tuple[Tree, str]) -> str:
    source = part[1].strip()
    if open_quotes(template[1])[place] not in _OUTSIDE:
        return "move the interpolation out of the quotes and add `| sh`, or pass the value in `env:`"
    if part[0][0] == "path":
        return f"write `${{{{ {source} | sh }}}}` to quote it, or pass the value in `env:`"
    return "add `| sh` to quote it, or pass the value in `env:`"
