"""What is known while a script is read: variables, folders, and the simple commands found so far.

A set of folders is a frozenset of workspace-relative paths; None in it means: unknown. An empty set: never here.
"""

from __future__ import annotations

from planrun.risk import paths
from planrun.risk import paths as environment
from planrun.risk.levels import high
from planrun.risk.tokens import Word
from planrun.risk.words import HOME, Arg, commands_in, expand, expand_parts, names_in

TYPE_CHECKING = False

if TYPE_CHECKING:
    Folders = frozenset[str | None]

NOWHERE: Folders = frozenset()
UNKNOWN: Folders = frozenset([None])
MAX_FOLDERS = 6


def bounded(folders: Folders) -> Folders:
    """Return the same set, or `unknown` when it grew beyond what is worth following."""
    return UNKNOWN if len(folders) > MAX_FOLDERS or None in folders else folders


class Frame:
    """One list of commands that is being read, with the compound command that it stands in.

    `kind` is "top", "(", "{", "if", "loop", "case" or "function"; `phase` the part of it that is being read.
    """

    __slots__ = (
        "_last", "entry", "exits", "fail", "filled", "here", "kind", "loop", "negated", "ok", "op",
        "pending", "phase", "pipe", "ready", "soft", "stages", "start", "strict",
    )  # fmt: skip

    def __init__(self, kind: str, phase: str, here: Folders, start: int) -> None:
        self.kind = kind
        self.phase = phase
        self.entry = here  # where the compound command began
        self.exits = NOWHERE  # where its finished branches end
        self.loop = ""  # the variable of a `for`
        self.start = start
        self.strict = False  # `set -e` holds
        self.ready = False  # a command has ended, an operator may follow
        self.pending = False  # an operator stands open: a command has to follow
        self.begin(here)

    def begin(self, here: Folders) -> None:
        """Begin a new list in the same compound command, as after `then`."""
        self.here = here
        self.filled = False  # a command has ended in it
        self.ok = self.fail = self.soft = NOWHERE
        self.op = ""
        self._pipeline(here)

    def _pipeline(self, here: Folders) -> None:
        self.pipe = here
        self.stages = 1
        self.negated = False
        self.ready = False

    @property
    def first(self) -> bool:
        """Whether what ends now is a whole pipeline at the start of an and-or list: it runs for certain."""
        return not self.op and self.stages == 1 and not self.negated

    def ended(self, ok: Folders, fail: Folders) -> None:
        """Take note of a command's end: where the shell is when it succeeded, and when it failed."""
        self.ready = True
        self.filled = True
        self.pending = False
        self._last = ok, fail

    def pipe_on(self) -> None:
        """Go on after `|`: what a stage does to the shell does not last."""
        self.stages += 1
        self.ready = False
        self.pending = True

    def _close_pipeline(self) -> None:
        ok, fail = self._last
        if self.stages > 1:
            ok = fail = self.pipe
        elif self.negated:
            ok, fail = fail, ok
        if self.op == "&&":
            self.ok, self.soft, self.fail = ok, self.soft | self.fail, fail
        elif self.op == "||":
            self.ok, self.soft, self.fail = self.ok | ok, NOWHERE, fail
        else:
            self.ok, self.soft, self.fail = ok, NOWHERE, fail

    def go_on(self, op: str) -> None:
        """Go on after `&&` or `||`."""
        self._close_pipeline()
        self.op = op
        self._pipeline(bounded(self.ok if op == "&&" else self.soft | self.fail))
        self.pending = True

    def end_list(self, *, background: bool = False) -> None:
        """End an and-or list, as at `;`."""
        start = self.here
        self._close_pipeline()
        after = self.ok | self.soft
        if not self.strict:
            after |= self.fail
        self.here = start if background else bounded(after)
        self.op = ""
        self._pipeline(self.here)

    def outcome(self) -> tuple[Folders, Folders]:
        """Return where the shell can be after the list: when its last command succeeded, and when it failed."""
        if self.ready:
            self.end_list()
        return self.ok, self.soft | self.fail


if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planrun.risk.levels import Finding
    from planrun.risk.paths import Ground
    from planrun.risk.tokens import Part, Token

    Redirection = tuple[int | None, str, Word, list[Part] | None]

MAX_COMMANDS = 120
"""Simple commands in one text, each counted once for every value and folder it may have; more are not followed."""
MAX_WORDS = 1500
"""Their words, counted likewise."""
_MAX_VARIANTS = 48
_SETS_NAMES = names_in("read mapfile readarray getopts declare typeset local unset let -v -p")
_SETS_ANYTHING = frozenset(("eval", "source", ".", "coproc", "select", "trap"))
# Names whose value bash itself changes, or gives a meaning to.
_OF_BASH = names_in(
    "_ PWD OLDPWD REPLY RANDOM SRANDOM SECONDS LINENO OPTARG OPTIND OPTERR IFS UID EUID PPID SHLVL HISTCMD"
    " PIPESTATUS DIRSTACK FUNCNAME GROUPS HOSTNAME MAPFILE EPOCHSECONDS EPOCHREALTIME COPROC SHELLOPTS"
    " BASHOPTS PS4"
)


class TooMany(Exception):
    """A text with more commands than are followed."""


class Simple:
    """A simple command as it stands in the text, before its words are expanded.

    `subject` is "" for a command; "case", "condition" or "numbers" for words that no program gets.
    """

    __slots__ = ("assignments", "redirects", "start", "subject", "words")

    def __init__(
        self,
        start: int,
        assignments: Sequence[tuple[str, Word]],
        words: Sequence[Word],
        redirects: Sequence[Redirection],
        subject: str = "",
    ) -> None:
        self.start = start
        self.assignments = assignments
        self.words = words
        self.redirects = redirects
        self.subject = subject


class Variant:
    """A simple command with its words expanded, for one choice of the values of loop variables."""

    __slots__ = ("assignments", "redirects", "words")

    def __init__(self, simple: Simple, names: Mapping[str, str]) -> None:
        self.assignments = [(name, _value(word, name, names)) for name, word in simple.assignments]
        self.words = [expand(word, names) for word in simple.words]
        self.redirects = [
            (fd, op, expand(word, names), None if here is None else expand_parts(here, names))
            for fd, op, word, here in simple.redirects
        ]


def _value(word: Word, name: str, names: Mapping[str, str]) -> Arg:
    parts = [(kind, value, quoted or kind in ("name", "command")) for kind, value, quoted in word.parts]
    arg = expand(Word(parts, word.start, word.end), names)
    if arg.value is not None:
        sign = arg.value[len(name)]
        arg.value = arg.value.partition("=")[2]
        if sign == "+":
            arg.trouble = f"{name}+=: what it adds to is not known"
    return arg


class Found:
    """A simple command with its variants and the folders it may run in."""

    __slots__ = ("cwds", "simple", "variants")

    def __init__(self, simple: Simple, variants: list[Variant], cwds: Folders) -> None:
        self.simple = simple
        self.variants = variants
        self.cwds = cwds


class Scope:
    """The state of reading one text; `loops_move`: a loop changes the folder, so that in loops none is known.

    `has_names`: variables may be expanded in it; in most texts none is, and assignments do not matter.
    """

    def __init__(self, tokens: list[Token], ground: Ground, *, loops_move: bool, has_names: bool) -> None:
        self.ground = ground
        self.cwd = ground.cwd
        self.loops_move = loops_move
        self.loop_moved = False
        self.found: list[Found] = []
        self.marks: list[tuple[int, Finding]] = []
        self.substitutions: list[
            tuple[list[Token], Folders, dict[str, str], dict[str, tuple[str, ...] | None]]
        ] = []
        self._tries = 0
        self._words = 0
        self.strict = False
        self.moved = False
        self.last_was_simple = False
        self._assigned = _assigned(tokens) if has_names else None
        self._names: dict[str, str] = {}
        if self._assigned is not None:
            known = {"HOME": HOME, **ground.variables}
            self._names = {n: v for n, v in known.items() if n not in self._assigned and n not in _OF_BASH}
        self._loops: dict[str, tuple[str, ...] | None] = {}
        self._pending: list[tuple[str, str]] = []

    def mark(self, at: int, reason: str) -> None:
        """Take note of a construct that is of class high, whatever it holds."""
        self.marks.append((at, high(reason)))

    # Variables

    def commit(self, *, certain: bool) -> None:
        """End a pipeline: what it set is known from now on, or nothing of it is."""
        for name, value in self._pending:
            if name == "-e":
                self.strict = value == "-" and (certain or self.strict)
            elif (
                certain
                and self._assigned is not None
                and self._assigned.get(name) == 1
                and name not in _OF_BASH
            ):
                self._names[name] = value
        self._pending = []

    def enter_loop(self, name: str, words: Sequence[Word], here: Folders) -> None:
        """Begin a `for`: inside it its variable has one of some known values, or an unknown one."""
        start = words[0].start if words else 0
        reason = environment.harm(name, "", None, self.ground)
        if reason:
            self.mark(start, reason)
        simple = Simple(start, [], words, [], subject="for")
        self.add(simple, here)
        values = [expand(word, self._names) for word in words]
        known = tuple(arg.value for arg in values if arg.value is not None and not arg.glob)
        plain = self._assigned is not None and name not in self._assigned and name not in _OF_BASH
        self._loops[name] = known if plain and known and len(known) == len(values) else None

    def leave_loop(self, name: str) -> None:
        """End a `for`: the last value of its variable is unknown."""
        self._loops[name] = None

    def next_substitution(self) -> tuple[list[Token], Scope, Folders]:
        """Return the tokens of a substitution, and go back to what was known where it stands."""
        tokens, here, self._names, self._loops = self.substitutions.pop()
        return tokens, self, here

    # Commands

    def add(self, simple: Simple, here: Folders) -> tuple[Folders, Folders]:
        """Take a simple command; returns the folders after it when it succeeded, and when it failed."""
        cwds = bounded(here) or frozenset([self.cwd])
        variants = [Variant(simple, names) for names in self._choices(simple)]
        self._tries += len(variants) * len(cwds)
        self._words += len(variants) * len(cwds) * len(simple.words)
        if self._tries > MAX_COMMANDS or self._words > MAX_WORDS:
            raise TooMany
        self.found.append(Found(simple, variants, cwds))
        for parts in _all_parts(simple):
            for tokens in commands_in(parts):
                self.substitutions.append((tokens, cwds, dict(self._names), dict(self._loops)))
        self.moved = False
        if simple.subject:
            return here, here
        first = variants[0]
        if not first.words:
            self._pending += [(name, arg.value or "") for name, arg in first.assignments if _certain(arg)]
            return here, here
        return self._effect(variants, here)

    def _effect(self, variants: list[Variant], here: Folders) -> tuple[Folders, Folders]:
        words = [arg.value for arg in variants[0].words]
        program = words[0]
        if program in ("exit", "return", "break", "continue"):
            return NOWHERE, NOWHERE
        if program == "cd":
            self.moved = True
            return bounded(frozenset().union(*(self._moved(variant, here) for variant in variants))), here
        if program in ("pushd", "popd"):
            self.moved = True
            return UNKNOWN, here
        if program == "set":
            self._options(words[1:])
        elif program == "export":
            for arg in variants[0].words[1:]:
                name, sign, value = (arg.value or "").partition("=")
                if sign and _certain(arg):
                    self._pending.append((name, value))
        return here, here

    def _moved(self, variant: Variant, here: Folders) -> Folders:
        targets = [arg for arg in variant.words[1:] if arg.value not in ("--", "-P", "-L", "-e")]
        if (
            len(targets) != 1
            or targets[0].value is None
            or targets[0].glob
            or targets[0].value[:1] in ("", "-")
        ):
            return UNKNOWN
        return frozenset(paths.folder(targets[0].value, cwd, self.ground) for cwd in here)

    def _options(self, words: Sequence[str | None]) -> None:
        follows = ""
        for word in words:
            if word is None or follows == "+o" or (word[:1] == "+" and "e" in word):
                self._pending.append(("-e", "+"))
            elif (follows[-1:] == "o" and word == "errexit") or (
                word[:1] == "-" and "e" in word and not follows
            ):
                self._pending.append(("-e", "-"))
            follows = word if word and word[:1] in "-+" and word.endswith("o") else ""

    def _choices(self, simple: Simple) -> list[dict[str, str]]:
        """Return every assignment of values to the variables that are known, loop variables included."""
        if not self._loops:
            return [self._names]
        used = {value for parts in _all_parts(simple) for kind, value, _ in parts if kind == "name"}
        choices: list[dict[str, str]] = [self._names]
        for name in sorted(used & set(self._loops)):
            values = self._loops[name]
            if values is None or len(choices) * len(values) > _MAX_VARIANTS:
                choices = [{n: v for n, v in choice.items() if n != name} for choice in choices]
            else:
                choices = [{**choice, name: value} for choice in choices for value in values]
        return choices


def _certain(arg: Arg) -> bool:
    return arg.value is not None and not arg.trouble


def _all_parts(simple: Simple) -> list[list[Part]]:
    found = [word.parts for word in simple.words] + [word.parts for _, word in simple.assignments]
    for _, _, word, here in simple.redirects:
        found.append(word.parts)
        if here is not None:
            found.append(here)
    return found


def _assigned(tokens: list[Token]) -> dict[str, int] | None:
    """Count, for each name, the words that may assign it; None when a text may assign anything.

    A superset: every word that looks like an assignment counts wherever it stands, and beside a builtin that sets
    variables by name every word does.
    """
    words = list(_every_word(tokens))
    plain = {word.plain for word in words}
    if plain & _SETS_ANYTHING or any(kind == "strange" for word in words for kind, _, _ in word.parts):
        return None
    named = bool(plain & _SETS_NAMES)
    counts: dict[str, int] = {}
    for word in words:
        text = "".join(value for kind, value, _ in word.parts if kind == "text")
        name, sign, _ = text.partition("=")
        if sign or named:
            name = name.removesuffix("+").partition("[")[0]
            counts[name] = counts.get(name, 0) + 1
    return counts


def _every_word(tokens: list[Token]) -> list[Word]:
    """Return every word of a text, those of substitutions and here-documents included, but for names of loops."""
    found: list[Word] = []
    pending = [tokens]
    while pending:
        before = ("op", "op")
        for kind, value, _, _ in pending.pop():
            plain = value.plain if kind == "word" else "op"
            if kind == "word" and before != ("op", "for"):
                found.append(value)
                pending += commands_in(value.parts)
            elif kind == "redirect" and value.here is not None:
                pending += commands_in(value.here)
            before = before[1], plain or ""
    return found
