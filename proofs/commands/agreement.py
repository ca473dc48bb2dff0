"""Whether the classifier, bash, and tree-sitter's grammar of bash see the same commands in a text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import tree_sitter
import tree_sitter_bash

from planrun.risk import classifier
from proofs.commands.rows import encoded
from proofs.commands.shells import runs_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from planrun.risk.classifier import Risk
    from proofs.commands.shells import Bash

Words = tuple[str | None, ...]
_BRANCHES = re.compile(r"\|\||!|\b(?:if|while|until|case|else|elif|exit|return|break|continue)\b")
"""What may keep bash from running a command when all commands succeed."""
_FILES = re.compile(
    r"<<-?|(?:<[ \t]*a\.txt|>>?[|&]?[ \t]*(?:build/[a-z]|/dev/null|[12]))(?=[\s;|&)]|\Z)",
)
"""Redirections that do not fail; where there is another, bash may run less than the text says."""
_LOOPS = re.compile(r"\b(?:for|while|until)\b")


def seen(risk: Risk) -> list[Words]:
    """Return the words of every command that the classifier sees."""
    return [tuple(command.words) for command in risk.commands if command.words]


def is_certain(text: str, risk: Risk) -> bool:
    """Whether the classifier stands by its words: it accepts the text, or knows each word of what it does not."""
    if risk.level != "high":
        return True
    # A subscript makes a text high, whether in arithmetic or before a `=`; what is in it is not told.
    if any("=" in (words[0] or "") for words in seen(risk)):
        return False
    return (
        risk.understood
        and "[$(" not in text
        and all(word is not None for words in seen(risk) for word in words)
    )


def bash_differs(text: str, bash: Bash) -> str | None:
    """Say what bash runs that the classifier does not say, or not what it says; None when nothing can be said.

    More than the classifier says, bash must never run. All it says, it runs where every command succeeds.
    """
    risk = classifier.classify(text)
    if not is_certain(text, risk) or "\0" in text:
        return None
    said = seen(risk)
    try:
        runs = bash.runs(text)
    except TimeoutError:
        return None
    left = list(said)
    for words in runs:
        found = _take(left, words) if not _LOOPS.search(text) else _among(said, words)
        if not found:
            return f"{risk.level}: bash runs {words!r}; the classifier says {said!r}: {encoded(text)}"
    slashes = any(words[0] is None or "/" in words[0] for words in said)
    if risk.level == "high" or slashes or _may_run_less(text):
        return ""
    missing = [words for words in said if not any(_same(words, run) for run in runs)]
    return f"bash does not run {missing!r}, but {runs!r}: {encoded(text)}" if missing else ""


def _may_run_less(text: str) -> bool:
    """Whether bash may leave a command out: there are branches, or a file that cannot be opened."""
    files = re.search("[<>]", _FILES.sub("", text)) or not runs_all(text)
    return bool(files or _BRANCHES.search(text))


def _same(words: Words, run: Sequence[str]) -> bool:
    """Whether what ran is what was said; a word that was not known may be any."""
    return len(words) == len(run) and all(
        word is None or _plain(word) == _plain(ran) for word, ran in zip(words, run, strict=True)
    )


def _plain(word: str) -> str:
    """Write the home folder as it stands in the text."""
    return word.replace("\ue010", "~")


def _among(said: Sequence[Words], run: Sequence[str]) -> bool:
    return any(_same(words, run) for words in said)


def _take(left: list[Words], run: Sequence[str]) -> bool:
    """Take what ran from what was said, the best known words first; False when it was not said."""
    for words in sorted(left, key=lambda words: words.count(None)):
        if _same(words, run):
            left.remove(words)
            return True
    return False


_GRAMMAR = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
_OWN_GRAMMAR = ("[", "export", "declare", "typeset", "readonly", "local", "unset")
"""What tree-sitter does not read as a name and words: only the name is compared."""
EXCEPTIONS = {
    "a here-document's delimiter after a backslash, or quoted in part": (
        r"<<-?[ \t]*(?:\\|[^\s'\"\\;|&<>]+['\"\\])"
    ),
    "a ; behind a here-document's delimiter": r"<<[^\n]*;",
    "a line of a here-document that is its delimiter but for blanks": (
        r"<<-?[ \t]*['\"]?([\w-]+)(?s:.*)\n(?:[ \t]+\1[ \t]*|\1[ \t]+)(?:\n|\Z)"
    ),
    "a backslash at the end of a line of a here-document that is quoted": r"<<-?[ \t]*['\"](?s:.*)\\\n",
    "words behind a redirection or a here-document's delimiter": (
        r"[<>][&|-]?[ \t]*(?:'[^']*'|\"[^\"]*\"|[^\s;|&<>'\"])+[ \t]+[^\s;|&<>#)}]"
    ),
    "a continued line between a redirection and its file": r"[<>][ \t]*\\\n",
    "digits at the end of a word before a redirection": r"[^\s;|&]\d[<>]",
    "a redirection in the middle of a word, or behind an assignment alone": r"[^\s;|&<>\d]<|=\S*\s*<",
    "a word that begins with a blank after a backslash": r"\\[ \t]",
    "a line that begins with a backslash": r"\n[ \t]*\\",
    "a text that ends with a continued line": r"\\\n[ \t]*(?:\n|\Z)",
    "a word of `case` that has a backslash among its pieces": r"\bcase\b[^\n]*\\",
    "a $ that stands for itself": r"\$(?![A-Za-z0-9_{(@*#?!$-])",
    "a backslash right behind a quote": r"['\"]\\",
    "a variable by the name of _": r"(?<!\w)_=",
}
"""What tree-sitter is known to read otherwise than bash, who is right, and how such texts are told."""


def is_excepted(text: str) -> bool:
    """Whether tree-sitter is known to read a text otherwise than bash does."""
    return any(re.search(pattern, text) for pattern in EXCEPTIONS.values())


def tree_differs(text: str) -> str | None:
    """Say where tree-sitter sees other commands in a text that is accepted; None when nothing can be said.

    A command counts by its name and how many words follow.
    """
    risk = classifier.classify(text)
    if risk.level == "high" or is_excepted(text):
        return None
    tree = _GRAMMAR.parse(text.encode())
    told = sorted(_commands(tree.root_node, text.encode()))
    said = sorted(_counted(words) for words in seen(risk))
    if tree.root_node.has_error:
        return f"{risk.level}: tree-sitter reports an error: {encoded(text)}"
    if told != said and not _read_on(told, said):
        return f"{risk.level}: tree-sitter sees {told}, the classifier {said}: {encoded(text)}"
    return ""


def _read_on(told: Sequence[tuple[str, int]], said: Sequence[tuple[str, int]]) -> bool:
    """Whether tree-sitter took the next line for more words of a command, which it now and then does after a pipe."""
    words = sum(count + 1 for _, count in told) == sum(count + 1 for _, count in said)
    return words and len(told) < len(said) and {name for name, _ in told} <= {name for name, _ in said}


def _counted(words: Words) -> tuple[str, int]:
    name = _unquoted(words[0] or "")
    return name, -1 if name in _OWN_GRAMMAR else len(words) - 1


def _commands(node: tree_sitter.Node, text: bytes) -> Iterator[tuple[str, int]]:
    """Give the name of every command below a node and how many words it has after that."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        waiting += one.children
        if one.type == "test_command":
            yield "[", -1
        elif one.type in ("declaration_command", "unset_command"):
            yield (one.children[0].text or b"").decode(), -1
        elif one.type == "command":
            words = _words(one, text)
            if words:
                yield words[0], -1 if words[0] in _OWN_GRAMMAR else len(words) - 1


def _words(command: tree_sitter.Node, text: bytes) -> list[str]:
    """Return the words of a command, without `time` and the assignments behind it, which are words there.

    Pieces without a blank between are one word for bash, whatever kinds of quotes they are in, and also when a
    backslash and a newline are between them.
    """
    pieces = [*command.children_by_field_name("name"), *command.children_by_field_name("argument")]
    words: list[tuple[int, int]] = []
    for piece in pieces:
        if words and not text[words[-1][1] : piece.start_byte].replace(b"\\\n", b""):
            words[-1] = (words[-1][0], piece.end_byte)
        else:
            words.append((piece.start_byte, piece.end_byte))
    named = [_unquoted(text[start:end].decode()) for start, end in words]
    if named[0] == "time":
        del named[0]
        while named and re.match(r"-p$|!$|[A-Za-z_]\w*=", named[0]):
            del named[0]
    return named


def _unquoted(name: str) -> str:
    return re.sub(r"\\\n|['\"\\]", "", name)
