"""A Makefile as a plan: a target is a step where its recipe is certain, and `make TARGET` where make alone knows it.

make never runs while a file is converted: `$(shell …)` and `include` run commands as soon as it reads.
"""

from __future__ import annotations

import os
import re
import shlex
from itertools import groupby

from planrun.convert.choice import choose, tell
from planrun.convert.draft import DraftPlan, DraftStep
from planrun.convert.reader import Findings, UntranslatableError
from planrun.convert.recipes.scripts import (
    Command,
    Param,
    Piece,
    Shell,
    joined,
    move,
    script_of,
    template_of,
)
from planrun.convert.recipes.sequence import Order, Recipe
from planrun.convert.recipes.variables import Expander, Variable, from_environment, stem_of
from planrun.errors import InvalidInput
from planrun.model.record import Record
from planrun.plan.problems import did_you_mean
from planrun.plan.yaml.file import read_source
from planrun.plan.yaml.node import SCALAR, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterator

_ASSIGNED = re.compile(r"([^\s:#=+?!]+)\s*(=|:=|::=|:::=|\?=|\+=|!=)\s*(.*)\Z", re.DOTALL)
_CONDITION = re.compile(r"(ifeq|ifneq|ifdef|ifndef|else|endif)\b\s*(.*)\Z")
_DEFINED = re.compile(r"(?:export\s+|override\s+)*define\s+([^\s=:?+]+)\s*(=|:=|::=|\?=|\+=)?\s*\Z")
_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)#(.*)", re.DOTALL)
_HARMLESS = frozenset((
    ".PHONY", ".SUFFIXES", ".PRECIOUS", ".INTERMEDIATE", ".SECONDARY", ".DELETE_ON_ERROR", ".SILENT", ".NOTPARALLEL",
    ".IGNORE", ".ONESHELL",
))  # fmt: skip
# Variables that change how make works, or that programs get from it although nothing exports them.
_REACHING = frozenset(
    "VPATH GPATH .RECIPEPREFIX .LIBPATTERNS PATH HOME USER LANG LC_ALL TMPDIR TERM PWD SUFFIXES".split()
)
_FLAGS = re.compile(r"-?[rRs]+|--no-print-directory|--no-builtin-(rules|variables)|--silent|--warn-undefined-variables|"
                    r"-j\d*|--jobs=?\d*|--output-sync(=\w+)?|-O\w*")  # fmt: skip
_MADE = re.compile(r".*\.(o|a|c|cc|C|cpp|p|f|F|m|r|y|l|ym|yl|s|S|mod|sym|def|h|info|dvi|tex|out|ln|el|elc)\Z")
_SOURCES = tuple(
    ".o .c .cc .C .cpp .p .f .F .m .r .s .S .mod .sh .y .l".split()
)  # from which make builds a name
_POSIX = frozenset(("sh", "bash", "dash", "ash", "ksh", "zsh"))
_HELP = re.compile(r"help|usage|list|list-targets|targets")
_DEFAULT_NAMES = ("Makefile", "makefile", "GNUmakefile")
MAX_FILES = 50


class Rule(Record):
    """What the file says of one target; `first` are needed before it without counting for its age."""

    place: Node
    title: str = ""
    needs: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    recipe: tuple[tuple[int, str], ...] = ()
    stem: str = ""
    unfit: str = ""  # why make has to run it
    is_shared: bool = False  # whether its recipe makes other targets, too
    has_recipe: bool = False


class Makefile:
    """One Makefile with what it includes."""

    def __init__(self, found: Findings, frozen: set[str]) -> None:
        self.found = found
        self.expander = Expander(frozen)
        self.rules: dict[str, Rule] = {}
        self.patterns: list[str] = []
        self.specials: dict[str, list[str]] = {}
        self.exported: dict[str, bool] = {}
        self.current: list[str] = []  # the targets whose recipe is read
        self.included: list[str] = []
        self.goal = ""
        self.comment = ""
        self.doubt = ""  # why it is not known whether make reads the lines that are being read
        self.unsure = ""  # why nothing of the file is certain
        self._whys: dict[str, str] = {}
        self._reaches: dict[str, frozenset[str]] = {}

    # Reading.

    def read(self, text: str) -> None:
        """Read the file, or one that it includes."""
        lines = text.replace("\r\n", "\n").split("\n")
        states: list[tuple[bool, bool, str]] = []  # of each condition: it holds, a branch has held, a doubt
        at = 0
        while at < len(lines):
            number, line = at + 1, lines[at]
            at += 1
            active = all(state[0] for state in states)
            if line.startswith("\t") and self.current:
                while re.search(r"(?<!\\)(?:\\\\)*\\\Z", line) and at < len(lines):
                    line += "\n" + lines[at].removeprefix("\t")
                    at += 1
                if active:
                    self._recipe(number, line[1:])
                continue
            while re.search(r"(?<!\\)(?:\\\\)*\\\Z", line) and at < len(lines):
                line = f"{line[:-1].rstrip()} {lines[at].strip()}"
                at += 1
            comment = _COMMENT.search(line)
            stripped = _COMMENT.sub(r"\1", line).strip()
            if not stripped:
                text = (comment[2] if comment else "").lstrip("#").strip()
                self.comment = text if re.search(r"\w", text) else ""
                continue
            if comment and comment[2].startswith("#"):
                self.comment = comment[2].lstrip("#").strip()
            place = Node(SCALAR, "", number, 1)
            try:
                if match := _CONDITION.match(stripped):
                    states = self._condition(match[1], match[2], states)
                    self.doubt = next((state[2] for state in states if state[2]), "")
                elif match := _DEFINED.match(stripped):
                    end = _end_of(lines, at)
                    if active:
                        self._assign(
                            match[1], match[2] or "=", "\n".join(lines[at : end - 1]), is_param=False
                        )
                    at = end
                elif active:
                    self._statement(stripped, place)
            except UntranslatableError as why:
                self.unsure = self.unsure or why.message
            self.comment = ""

    def _statement(self, text: str, place: Node) -> None:
        word, _, rest = text.partition(" ")
        if word in ("include", "-include", "sinclude"):
            self._include(rest.strip(), is_optional=word != "include")
            return
        is_export = is_override = False
        while word in ("export", "override", "private") and not rest.lstrip().startswith(":"):
            is_export, is_override = is_export or word == "export", is_override or word != "export"
            text = rest.strip()
            word, _, rest = text.partition(" ")
        colon = _colon(text)
        match = _ASSIGNED.match(text)
        if match and (colon < 0 or match.start(2) <= colon):
            self.current = []
            name = self.expander.text(match[1])
            self._assign(name, match[2], match[3], is_param=not is_override)
            if is_export:
                self.exported[name] = True
        elif is_export and text:
            self.exported.update(dict.fromkeys(self.expander.text(text).split(), True))
        elif is_export or word in ("unexport", "vpath", "undefine", "load") or (self.doubt and colon < 0):
            raise UntranslatableError("make", f"`{text or 'export'}`")
        elif colon >= 0:
            self._rule(text, colon, place)
        elif "".join(map(str, self.expander.expand(text))).strip():
            raise UntranslatableError("make", f"it is neither a variable nor a rule: {text[:80]}")

    def _assign(self, name: str, sign: str, value: str, *, is_param: bool = True) -> None:
        """Set a variable; raises UntranslatableError for one that changes how make works."""
        known = self.expander.known
        earlier = known.get(name)
        if name in _REACHING or (name == "MAKEFLAGS" and not all(map(_FLAGS.fullmatch, value.split()))):
            raise UntranslatableError("make", f"`{name}` is set")
        if name == ".DEFAULT_GOAL":
            self.goal = self.expander.text(value)
        if sign == "?=" and earlier is not None and not earlier.unknown:
            return
        is_param = is_param and earlier is None and not self.doubt
        why = self.doubt or (earlier.unknown if earlier is not None and sign in ("+=", "?=") else "")
        try:
            if why or sign == "!=":
                raise UntranslatableError("make", why or f"`{name} != {value[:60]}` runs a command")
            if sign == "?=":
                known[name] = Variable(pieces=(from_environment(name, self.expander.expand(value)),))
            elif sign == "+=" and (earlier is None or earlier.pieces is None):
                text = f"{earlier.text} {value}" if earlier is not None else value
                known[name] = Variable(
                    text=text, unknown="" if earlier is not None else f"`{name} += …` without a value"
                )
            elif sign == "+=" and earlier is not None:
                known[name] = Variable(pieces=(*(earlier.pieces or ()), " ", *self.expander.expand(value)))
            elif sign == "=":
                known[name] = Variable(text=value, is_param=is_param)
            else:
                known[name] = Variable(pieces=tuple(self.expander.expand(value)), is_param=is_param)
        except UntranslatableError as reason:
            known[name] = Variable(unknown=reason.message)

    def _include(self, rest: str, *, is_optional: bool) -> None:
        names = self.expander.text(rest).split()
        for name in names:
            path = os.path.join(os.path.dirname(self.found.file), name)
            self.included.append(name)
            if self.doubt or not os.path.isfile(path) or len(self.included) > MAX_FILES:
                what = "is not there" if not is_optional else "may be there when the plan runs"
                raise UntranslatableError("make", f"the included file {name} {what}")
            try:
                text = read_source(path, "file").decode("utf-8", "replace")
            except InvalidInput as error:
                raise UntranslatableError("make", str(error)) from None
            self.current = []
            self.read(text)
            self.current = []

    def _condition(
        self, word: str, rest: str, states: list[tuple[bool, bool, str]]
    ) -> list[tuple[bool, bool, str]]:
        """Return the conditions that are open after one of their words; raises UntranslatableError."""
        if word in ("else", "endif") and not states:
            raise UntranslatableError("make", f"`{word}` without a condition")
        outer = states if word in ("ifeq", "ifneq", "ifdef", "ifndef") else states[:-1]
        if word == "endif":
            return outer
        has_held, doubt = (False, "") if word != "else" else states[-1][1:]
        if doubt:
            return states  # every branch is read, and nothing in it is certain
        if word == "else":
            again = _CONDITION.match(rest)
            word, rest = (again[1], again[2]) if again else ("", "")
        holds = not has_held and all(state[0] for state in outer)
        if holds and word:
            try:
                holds = self._holds(word, rest)
            except UntranslatableError as why:
                doubt = f"a condition decides it, and {why.message}"
        return [*outer, (holds, has_held or holds, doubt)]

    def _holds(self, word: str, rest: str) -> bool:
        if word in ("ifdef", "ifndef"):
            name = self.expander.text(rest).strip()
            variable = self.expander.known.get(name)
            if (
                variable is None
                or variable.unknown
                or (variable.pieces and isinstance(variable.pieces[0], Shell))
            ):
                raise UntranslatableError("make", f"`{name}` may be a variable of the environment")
            self.expander.frozen.add(name)
            return bool(variable.text or variable.pieces not in (None, (), ("",))) is (word == "ifdef")
        one, other = _compared(rest)
        return (self.expander.text(one) == self.expander.text(other)) is (word == "ifeq")

    def _rule(self, text: str, colon: int, place: Node) -> None:
        is_grouped = text[:colon].endswith("&")
        targets = _names(self.expander.text(text[: colon - is_grouped]))
        is_double = text[colon : colon + 2] == "::"
        rest = text[colon + 1 + is_double :].strip()
        self.current = targets
        own = _ASSIGNED.match(re.sub(r"^((export|private|override)\s+)+", "", rest))
        if own and not is_double and "%" not in "".join(targets):
            for target in targets:
                self._set(target, self._of(target, place).but(unfit="it has variables of its own"))
            self.current = []
            return
        rest, semicolon, recipe = rest.partition(";")
        unfit = self.doubt or ("it has a double colon" if is_double else "")
        pattern, at = "", _colon(rest)
        if at >= 0:
            pattern, rest = self.expander.text(rest[:at]).strip(), rest[at + 1 :]
        before, _, only = rest.partition("|")
        try:
            needs, first = _names(self.expander.text(before)), _names(self.expander.text(only))
            if re.search(r"[*?\[\]()~]|(?<!\S)-l", f"{before} {only}") or ".WAIT" in needs:
                unfit = unfit or f"make alone knows what it needs: {before.strip()[:60]}"
        except UntranslatableError as why:
            needs, first, unfit = [], [], unfit or why.message
        for target in targets:
            if target.startswith(".") and "/" not in target:
                if target not in _HARMLESS or self.doubt or (target == ".IGNORE" and needs):
                    raise UntranslatableError("make", f"the target `{target}`")
                self.specials.setdefault(target, []).extend(needs)
            elif "%" in target:
                self.patterns.append(target)
            else:
                rule = self._of(target, place)
                stem = (stem_of(pattern, target) or "") if pattern else ""
                mine, early = (
                    [each.replace("%", stem, 1) if pattern else each for each in names]
                    for names in (needs, first)
                )
                self._set(target, rule.but(
                    needs=(*rule.needs, *mine), first=(*rule.first, *early), unfit=rule.unfit or unfit,
                    stem=stem or rule.stem, title=self.comment or rule.title,
                    is_shared=rule.is_shared or (is_grouped and len(targets) > 1),
                ))  # fmt: skip
        self._restart = True
        if semicolon:
            self._recipe(place.line, recipe.strip())

    def _of(self, target: str, place: Node) -> Rule:
        return self.rules.get(target) or Rule(place=place)

    def _set(self, target: str, rule: Rule) -> None:
        if not self.rules and self.doubt:
            self.unsure = self.unsure or self.doubt
        self.rules[target] = rule

    _restart = False

    def _recipe(self, number: int, line: str) -> None:
        """Add a line to the recipe of the current targets; a second recipe takes the place of the first."""
        for target in self.current:
            rule = self.rules.get(target)
            if rule is not None:
                before = () if self._restart else rule.recipe
                unfit = rule.unfit or self.doubt
                self.rules[target] = rule.but(recipe=(*before, (number, line)), has_recipe=True, unfit=unfit)
        self._restart = False

    # Converting.

    def convert(self, wanted: Collection[str]) -> tuple[DraftPlan, bool]:
        """Return the plan, and whether make runs a part of it."""
        plan, top = DraftPlan(), Node(SCALAR, "", 1, 1)
        self.plan, self.by_make = plan, False
        for name in self.included:
            if name in self.rules or any(stem_of(pattern, name) is not None for pattern in self.patterns):
                self.unsure = self.unsure or f"make makes the included file {name}"
        self._head()
        order = Order(plan, self.found, self._find)
        unknown = [each for each in wanted if each not in self.rules and not self._by_pattern(each)]
        if unknown and not self.unsure:
            hint = did_you_mean(unknown[0], self.rules) or f"there are {', '.join(list(self.rules)[:30])}"
            self.found.refuse("shape", f'there is no target "{unknown[0]}"; {hint}', top)
            return plan, False
        goal = self.goal or next(iter(self.rules), "")
        others = [name for name in self.rules if name != goal and "/" not in name]
        if wanted:
            for name in wanted:
                self._run(order, name)
        elif _HELP.fullmatch(goal) and others:
            order.is_choice = True
            ends = {name: self._run(order, name) for name in others}
            tell(self.found, choose(plan, ends), "the first target only lists the others", top)
        elif goal or self.unsure:
            self._run(order, "" if self.unsure else goal)
            if others and plan.steps:
                message = (
                    f"only {goal or 'the default'} is converted; --job converts {', '.join(others[:20])}"
                )
                self.found.differs("target", f"{message}{' …' if len(others) > 20 else ''}", top)
        plan.params = {
            **plan.params,
            **{name: {"type": "string", "default": text} for name, text in self.expander.params.items()},
        }
        return plan, self.by_make

    def _head(self) -> None:
        """Set what all steps share: the shell of recipes and exported variables."""
        self.shell, self.strict = "/bin/sh", False
        try:
            shell = self.expander.text("$(SHELL)").split()
            flags = (
                shlex.split(self.expander.text("$(.SHELLFLAGS)"))
                if ".SHELLFLAGS" in self.expander.known
                else ["-c"]
            )
            if len(shell) != 1 or os.path.basename(shell[0]) not in _POSIX:
                raise UntranslatableError("make", f"the shell `{' '.join(shell)}`")
            kept = [
                word
                for word in (re.sub(r"(?<=^-)(\w*)c(\w*)$", r"\1\2", word) for word in flags)
                if word != "-"
            ]
            self.strict = any(re.fullmatch(r"-\w*e\w*|errexit", word) for word in kept)
            bare = "/" not in shell[0] and not kept
            self.shell = shlex.join([*shell, *(kept or (["+e"] if bare else []))])
            env = {}
            for name in self.exported:
                if name in self.expander.known:
                    env[name] = template_of(self.expander.expand(f"$({name})"), f"the variable {name}")
            if env and not self.unsure:
                self.plan.keys["env"] = env
        except (UntranslatableError, ValueError) as why:
            self.unsure = self.unsure or getattr(why, "message", "the flags of the shell")
        self.plan.keys["defaults"] = {"shell": self.shell, "timeout": "24h"}

    def _by_pattern(self, name: str) -> bool:
        return any(stem_of(pattern, name) is not None for pattern in self.patterns)

    def _run(self, order: Order, goal: str) -> list[str]:
        """Emit the steps of one goal; returns those that it ends with."""
        whole = self.unsure or self._whole(goal)
        ends = [] if whole else order.run([(goal, ())])
        if not ends:
            step = self._make_step(
                self.plan.name(goal or "make"), goal, whole or "nothing in the plan would run for it"
            )
            ends = [self.plan.add(step).id]
        return ends

    def _whole(self, goal: str) -> str:
        """Return why make has to run a goal with all that it needs; "" where the plan does."""
        outer: set[str] = set()
        waiting, tops = [goal], []
        while waiting:
            name = waiting.pop()
            if name in outer or not self._is_made(name):
                continue
            outer.add(name)
            rule = self.rules.get(name)
            if name in self._reach(name) or (rule is not None and rule.is_shared):
                return f"{name} is made with others, or needs itself"
            if self._why(name):
                tops.append(name)
            elif rule is not None:
                waiting += [*rule.needs, *rule.first]
        if goal in tops:
            return self._why(goal)
        inner: set[str] = set()
        for name in tops:
            if self._reach(name) & (outer | inner):
                return f"make runs {name}, and others need what it needs"
            inner |= self._reach(name)
        return ""

    def _reach(self, name: str) -> frozenset[str]:
        """Return the targets that one needs, with those that these need."""
        if name not in self._reaches:
            seen: set[str] = set()
            waiting = [name]
            while waiting:
                rule = self.rules.get(waiting.pop())
                for need in (*rule.needs, *rule.first) if rule is not None else ():
                    if need not in seen and self._is_made(need):
                        seen.add(need)
                        waiting.append(need)
            self._reaches[name] = frozenset(seen)
        return self._reaches[name]

    def _is_made(self, name: str) -> bool:
        """Say whether make may have something to run for a name."""
        if name in self.rules or self._by_pattern(name) or _MADE.match(name):
            return True
        path = os.path.join(os.path.dirname(self.found.file), name)
        return any(os.path.exists(f"{path}{ending}") for ending in _SOURCES)

    def _why(self, name: str) -> str:
        """Return why make has to run a target; "" where a step does."""
        if name not in self._whys:
            self._whys[name] = self._reason(name, self.rules.get(name))
        return self._whys[name]

    def _reason(self, name: str, rule: Rule | None) -> str:
        phony = self.specials.get(".PHONY", [])
        if rule is None:
            return "no rule of the file is its own"
        if rule.unfit:
            return rule.unfit
        if name not in phony:
            if not rule.has_recipe:
                alike = any(os.path.splitext(need)[0] == name for need in rule.needs)
                if alike or self._by_pattern(name) or self._is_source(name):
                    return "it has no recipe of its own"
            elif not all(need in phony for need in rule.needs):
                return "whether it is up to date depends on the age of files"
        try:
            self._commands(name, rule)
        except UntranslatableError as why:
            return why.message
        return ""

    def _is_source(self, name: str) -> bool:
        path = os.path.join(os.path.dirname(self.found.file), name)
        return bool(_MADE.match(name)) or any(os.path.exists(f"{path}{ending}") for ending in _SOURCES)

    def _find(self, key: tuple[str, Hashable]) -> Recipe | None:
        name, files = key
        rule = self.rules.get(name)
        if isinstance(files, tuple) and files:
            place = rule.place if rule is not None else Node(SCALAR, "", 1, 1)
            check = [{"files_exist": list(files)}]
            return Recipe(f"{name}.files", place, lambda step_id: DraftStep(step_id, validate=check))
        why = self._why(name)
        if rule is None or why:
            place = rule.place if rule is not None else Node(SCALAR, "", 1, 1)
            return Recipe(name, place, lambda step_id: self._make_step(step_id, name, why))
        recipe = Recipe(name, rule.place, lambda step_id: self._step(name, rule, step_id))
        for is_made, names in groupby(dict.fromkeys((*rule.needs, *rule.first)), self._is_made):
            recipe.before += [(each, ()) for each in names] if is_made else [(name, tuple(names))]
        return recipe

    def _make_step(self, step_id: str, name: str, why: str) -> DraftStep:
        self.by_make = True
        file = os.path.basename(self.found.file)
        words = ["make", *(["-f", file] if file not in _DEFAULT_NAMES else []), *([name] if name else [])]
        rule = self.rules.get(name)
        place = rule.place if rule is not None else Node(SCALAR, "", 1, 1)
        self.found.differs("make", f"make runs {name or 'the default'}, and must be there: {why}", place)
        return self._titled(DraftStep(step_id, run=f"{shlex.join(words)}\n"), name)

    def _titled(self, step: DraftStep, name: str) -> DraftStep:
        rule = self.rules.get(name)
        title = " ".join(rule.title.split())[:200] if rule is not None else ""
        if title.isprintable() and (title or step.id != name):
            step.keys["title"] = title or name or "make"
        return step

    def _step(self, name: str, rule: Rule, step_id: str) -> DraftStep | None:
        commands = self._commands(name, rule)
        if not commands:
            return None
        first = []
        if name not in self.specials.get(".PHONY", []) and not rule.needs:
            first = [
                f"[ ! -e {shlex.quote(name)} ] || exit 0  # as make: nothing to do for a file that is there"
            ]
        return self._titled(DraftStep(step_id, run=joined(commands, strict=self.strict, first=first)), name)

    def _commands(self, name: str, rule: Rule) -> list[Command]:
        """Return the commands of a recipe; raises UntranslatableError."""
        expander = self.expander
        needs = list(dict.fromkeys(rule.needs))
        expander.auto = {
            "@": name, "<": next(iter(needs), ""), "^": " ".join(needs), "+": " ".join(rule.needs),
            "*": rule.stem, "|": " ".join(rule.first),
        }  # fmt: skip
        try:
            rows = [part for _, line in rule.recipe for part in _split(self._expanded(line))]
        finally:
            expander.auto = {}
        commands: list[Command] = []
        for row in rows:
            pieces, signs = _signs(row)
            if "".join(map(str, pieces)).strip():
                tolerated = ".IGNORE" in self.specials or "-" in signs
                commands.append(Command(text=script_of(pieces), is_tolerated=tolerated))
        if ".ONESHELL" in self.specials and commands:
            text = "\n".join(each.text for each in commands)
            commands = [Command(text=text, is_tolerated=commands[0].is_tolerated)]
        if self.strict and any(each.is_tolerated for each in commands):
            raise UntranslatableError("make", "a line whose failure does not count, in a shell with -e")
        return commands

    def _expanded(self, line: str) -> list[Piece]:
        if "MAKE" in line and "MAKEFLAGS" in self.expander.known:
            raise UntranslatableError("make", "it calls make, and the file sets MAKEFLAGS")
        pieces = self.expander.expand(line)
        for name in re.findall(r"\$\{?(\w+)", "".join(piece for piece in pieces if isinstance(piece, str))):
            if name in self.expander.known and name not in self.exported:
                raise UntranslatableError(
                    "make", f"a command reads `${name}`, which the file sets and may export"
                )
        return pieces


def _names(text: str) -> list[str]:
    """Return the names of targets: a backslash takes a blank, a colon and the like their meaning."""
    words: list[str] = re.findall(r"(?:\\.|[^\s\\])+", text)
    return [re.sub(r"\\([\s:#%|;&\\])", r"\1", word) for word in words]


def _end_of(lines: list[str], at: int) -> int:
    """Return the line behind the `endef` that ends a definition."""
    depth = 1
    while at < len(lines) and depth:
        word = (lines[at].split() or [""])[0]
        depth += (word == "define") - (word == "endef")
        at += 1
    return at


def _colon(text: str) -> int:
    """Return where the first colon outside of brackets stands that no backslash escapes; -1 for none."""
    depth = at = 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
        elif char in "({" and (depth or text[at - 1 : at] == "$"):
            depth += 1
        elif char in ")}" and depth:
            depth -= 1
        elif char == ":" and not depth:
            return at
        at += 1
    return -1


def _compared(rest: str) -> tuple[str, str]:
    """Return the two sides of `ifeq`; raises UntranslatableError."""
    rest = rest.strip()
    if rest.startswith("(") and rest.endswith(")"):
        depth = 0
        for at, char in enumerate(rest[1:-1], 1):
            depth += (char in "({") - (char in ")}")
            if char == "," and not depth:
                return rest[1:at].rstrip(), rest[at + 1 : -1].strip()
    match = re.fullmatch(r"""(["'])(.*?)\1\s*(["'])(.*?)\3""", rest)
    if match is None:
        raise UntranslatableError("make", f"a condition cannot be read: {rest[:80]}")
    return match[2], match[4]


def _split(pieces: list[Piece]) -> Iterator[list[Piece]]:
    """Yield the lines of a recipe's line: a variable may hold several."""
    part: list[Piece] = []
    for piece in pieces:
        rows = re.split(r"(?<!\\)\n", piece) if isinstance(piece, str) else [piece]
        for at, row in enumerate(rows):
            if at:
                yield part
                part = []
            part.append(row)
    yield part


def _signs(pieces: list[Piece]) -> tuple[list[Piece], str]:
    """Return a line without the signs before it, and the signs; raises UntranslatableError."""
    first = pieces[0] if pieces and isinstance(pieces[0], str) else ""
    signs = first[: len(first) - len(first.lstrip(" \t\n@+-"))]
    rest: list[Piece] = [first[len(signs) :], *pieces[1:]] if first else pieces
    while rest and rest[0] == "":
        rest = rest[1:]
    if rest and not isinstance(rest[0], str):  # a variable in whose value such a sign may stand
        value = rest[0].text if isinstance(rest[0], Param) else rest[0].text.partition("-")[2]
        if value[:1] in ("", "}", "@", "+", "-"):
            raise UntranslatableError("make", "a variable may say that a failure does not count")
    return rest, signs


def convert_makefile(text: str, found: Findings, jobs: Collection[str] = ()) -> DraftPlan:
    """Return the plan that a Makefile becomes; `jobs` are the wanted targets, none: the default."""
    frozen: set[str] = set()
    top = Node(SCALAR, "", 1, 1)
    for code, message in (
        ("timeout", "a step has 24 hours; make lets a recipe run as long as it takes"),
        ("environment", "variables that look like credentials are not inherited; see `inherit_env`"),
        ("folder", "recipes run where planrun is started: the folder of the Makefile"),
    ):
        found.differs(code, message, top)
    while True:  # again where a value decides what the plan is, or make has to know all values
        aside = Findings(found.file, found.accepted)
        makefile = Makefile(aside, frozen)
        try:
            makefile.read(text)
            plan, by_make = makefile.convert(jobs)
        except (RecursionError, UntranslatableError) as why:
            found.refuse("too-large", getattr(why, "message", "the file is nested too deeply"), top)
            return DraftPlan()
        names = set(makefile.expander.params)
        if by_make:
            frozen |= names
        if not names & frozen:
            move(aside, found)
            return plan
