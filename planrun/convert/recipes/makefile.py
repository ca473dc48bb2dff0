"""A Makefile as a plan: a target is a step where its recipe is certain, and `make TARGET` where make alone knows it.

make never runs while a file is converted: `$(shell …)` and `include` run commands as soon as it reads.
"""

from __future__ import annotations

import os
import re
import shlex
from graphlib import CycleError, TopologicalSorter

from planrun.convert.draft import DraftPlan, DraftStep
from planrun.convert.reader import Findings, UntranslatableError
from planrun.convert.recipes.scripts import (
    DEFAULT,
    NAME,
    TOP_FINDINGS,
    Piece,
    ShellText,
    joined,
    known,
    merged,
    script_of,
    shell_of,
    template_of,
)
from planrun.convert.recipes.sequence import Order, Recipe, emit, is_known
from planrun.model.record import Record
from planrun.plan.yaml.node import SCALAR, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterator, Mapping

# What make itself sets, and the environment overrides.
_IMPLICIT = {
    "CC": "cc", "CXX": "g++", "CPP": "cc -E", "AR": "ar", "LD": "ld", "AS": "as", "RM": "rm -f", "LEX": "lex",
    "YACC": "yacc", "ARFLAGS": "rv", "FC": "f77", "CO": "co", "PC": "pc", "TEX": "tex", "MAKEINFO": "makeinfo",
}  # fmt: skip
_ASSIGNED = re.compile(r"([^\s:#=+?!]+)\s*(=|:=|::=|:::=|\?=|\+=|!=)\s*(.*)\Z", re.DOTALL)
_CONDITION = re.compile(r"(?:ifeq|ifneq|ifdef|ifndef|else|endif)\b")
_DEFINED = re.compile(r"(?:export\s+|override\s+)*define\s+(\S+)")
_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)#(.*)", re.DOTALL)
_OPEN = re.compile(r"(?<!\\)(?:\\\\)*\\\Z")  # a line that goes on
_HARMLESS = frozenset((".PHONY", ".SUFFIXES", ".PRECIOUS", ".INTERMEDIATE", ".SECONDARY", ".DELETE_ON_ERROR", ".SILENT",
                       ".NOTPARALLEL"))  # fmt: skip
# Variables that change how make works, or that programs get from it although nothing exports them.
_REACHING = frozenset((
    "VPATH", "GPATH", ".RECIPEPREFIX", ".LIBPATTERNS", "MAKEFLAGS", "PATH", "HOME", "USER", "LANG", "LC_ALL",
    "TMPDIR", "TERM", "PWD",
))  # fmt: skip
_OF_MAKE = frozenset(
    ["MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "MAKECMDGOALS", "MAKEFILE_LIST", "MAKEFILES"]
)
_MADE = re.compile(r".*\.(o|a|c|cc|C|cpp|p|f|F|m|r|y|l|ym|yl|s|S|mod|sym|def|h|info|dvi|tex|out|ln|el|elc)\Z")
_SOURCES = (
    ".o", ".c", ".cc", ".C", ".cpp", ".p", ".f", ".F", ".m", ".r", ".s", ".S", ".mod", ".sh", ".y", ".l",
)  # fmt: skip
_HELP = re.compile(r"help|usage|list|list-targets|targets")
_NAMES = ("Makefile", "makefile", "GNUmakefile")
MAX_NESTING = 40
TOP = Node(SCALAR, "", 1, 1)


class Rule(Record):
    """What the file says of one target; `first` are needed before it without counting for its age."""

    place: Node
    title: str = ""
    needs: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    recipe: tuple[str, ...] | None = None
    unfit: str = ""  # why make has to run it


class Makefile:
    """One Makefile: what it says, and how a plan does it."""

    def __init__(self, found: Findings) -> None:
        self.found = found
        self.values: dict[str, list[Piece] | str] = {}  # pieces, or a text that is expanded where it is read
        self.unknown: dict[str, str] = {}  # variables that make alone knows, and why
        self.rules: dict[str, Rule] = {}
        self.patterns: list[str] = []
        self.phony: set[str] = set()
        self.exported: list[str] = []
        self.current: list[str] = []  # the targets whose recipe is read
        self.needs: list[str] = []  # of the rule that is read
        self.is_new = False  # whether the next line of a recipe begins it
        self.goal = self.comment = ""
        self.doubt = ""  # why it is not known whether make reads the lines that are being read
        self.unsure = ""  # why nothing of the file is certain
        self._open: list[str] = []

    # Reading.

    def read(self, text: str) -> None:
        """Read the file."""
        lines = text.replace("\r\n", "\n").split("\n")
        at = depth = 0
        while at < len(lines):
            number, line = at + 1, lines[at]
            at += 1
            is_recipe = line.startswith("\t") and bool(self.current)
            while _OPEN.search(line) and at < len(lines):
                more = lines[at].removeprefix("\t")
                line = f"{line}\n{more}" if is_recipe else f"{line[:-1].rstrip()} {more.strip()}"
                at += 1
            if is_recipe:
                self._recipe(line[1:])
                continue
            comment = _COMMENT.search(line)
            stripped = _COMMENT.sub(r"\1", line).strip()
            if comment and (not stripped or comment[2].startswith("#")):
                self.comment = comment[2].strip("# \t=-")
            if not stripped:
                self.comment = self.comment if comment else ""
            elif _CONDITION.match(stripped):
                depth += -1 if stripped.startswith("endif") else not stripped.startswith("else")
                self.doubt = f"a condition decides it ({stripped[:60]})" if depth > 0 else ""
            elif match := _DEFINED.match(stripped):
                self.unknown[match[1]] = "it has several lines"
                while at < len(lines) and lines[at].split()[:1] != ["endef"]:
                    at += 1
                at += 1
            else:
                try:
                    self._statement(stripped, Node(SCALAR, "", number, 1))
                except UntranslatableError as why:
                    self.unsure = self.unsure or why.message
            self.comment = self.comment if not stripped else ""

    def _statement(self, text: str, place: Node) -> None:
        """Read an assignment or a rule; raises UntranslatableError where it makes everything uncertain."""
        word, _, rest = text.partition(" ")
        is_export = False
        while word in ("export", "override", "private") and not rest.lstrip().startswith(":"):
            is_export, text = is_export or word == "export", rest.strip()
            word, _, rest = text.partition(" ")
        colon, match = _colon(text), _ASSIGNED.match(text)
        if match and (colon < 0 or match.start(2) <= colon):
            self.current = []
            self._assign(match[1], match[2], match[3])
            self.exported += [match[1]] if is_export else []
        elif is_export and text and "$" not in text:
            self.exported += text.split()
        elif (
            colon < 0
            or is_export
            or word in ("include", "-include", "sinclude", "unexport", "vpath", "undefine")
        ):
            raise UntranslatableError("make", f"`{text[:80] or 'export'}`")
        else:
            self._rule(text, colon, place)

    def _assign(self, name: str, sign: str, value: str) -> None:
        if name in _REACHING or "$" in name:
            raise UntranslatableError("make", f"`{name}` is set")
        earlier = self.values.get(name)
        if sign == "?=" and (earlier is not None or name in self.unknown):
            return
        try:
            if self.doubt or sign == "!=" or (sign == "+=" and earlier is None):
                raise UntranslatableError("make", self.doubt or f"`{name} {sign} {value[:60]}`")  # noqa: TRY301
            if name == ".DEFAULT_GOAL":
                self.goal = known(self._expand(value), name)
            if sign == "?=":
                self.values[name] = [_from_environment(name, self._expand(value))]
            elif sign == "+=" and isinstance(earlier, list):
                self.values[name] = [*earlier, " ", *self._expand(value)]
            elif sign in ("=", "+="):
                self.values[name] = f"{earlier} {value}" if sign == "+=" else value
            else:
                self.values[name] = self._expand(value)
        except UntranslatableError as why:
            self.unknown[name] = self.unknown.get(name, why.message)

    def _rule(self, text: str, colon: int, place: Node) -> None:  # noqa: C901
        targets = _names(known(self._expand(text[:colon].removesuffix("&")), "a target"))
        rest = text[colon + 1 :]
        unfit = self.doubt or ("it has a double colon" if rest[:1] == ":" else "")
        if text[:colon].endswith("&") and len(targets) > 1:
            unfit = unfit or "one recipe makes several targets"
        rest = rest.removeprefix(":")
        if _ASSIGNED.match(re.sub(r"^((export|private|override)\s+)+", "", rest.strip())):
            unfit, rest = "it has variables of its own", ""
        rest, semicolon, recipe = rest.partition(";")
        before, _, only = rest.partition("|")
        try:
            needs, first = (_names(known(self._expand(part), "what it needs")) for part in (before, only))
            if (
                re.search(r"[*?\[\]()~%:]|(?<!\S)-l|\.WAIT", " ".join([*needs, *first]).replace("\\:", ""))
                and "\\:" not in rest
            ):
                raise UntranslatableError("make", f"make alone knows what it needs: {before.strip()[:60]}")  # noqa: TRY301
        except UntranslatableError as why:
            needs, first, unfit = [], [], unfit or why.message
        self.current, self.is_new, self.needs = targets, True, needs
        for target in targets:
            if target == ".PHONY" and not unfit:
                self.phony.update(needs)
            elif target.startswith(".") and "/" not in target and (target not in _HARMLESS or unfit):
                raise UntranslatableError("make", f"the target `{target}`")
            elif "%" in target:
                self.patterns.append(target)
            elif not target.startswith("."):
                self.unsure = self.unsure or ("" if self.rules else self.doubt)
                rule = self.rules.get(target) or Rule(place=place)
                self.rules[target] = rule.but(
                    needs=(*rule.needs, *needs), first=(*rule.first, *first), unfit=rule.unfit or unfit,
                    title=self.comment or rule.title,
                )  # fmt: skip
        if semicolon:
            self._recipe(recipe.strip())

    def _recipe(self, line: str) -> None:
        """Add a line to the recipe of the current targets; a second recipe takes the place of the first."""
        for target in self.current:
            if (rule := self.rules.get(target)) is not None:
                if self.is_new:  # what stands beside the recipe comes before what other rules say
                    count = len(self.needs)
                    needs = (*self.needs, *(rule.needs[:-count] if count else rule.needs))
                    rule = rule.but(recipe=(), needs=needs)
                self.rules[target] = rule.but(
                    recipe=(*(rule.recipe or ()), line), unfit=rule.unfit or self.doubt
                )
        self.is_new = False

    def _expand(self, text: str, auto: Mapping[str, str] | None = None) -> list[Piece]:
        """Return a text with its variables filled in; raises UntranslatableError for what make alone knows."""
        found: list[Piece] = []
        at = 0
        for match in re.finditer(r"\$(?:\$|([({])|(.))", text, re.DOTALL):
            if match.start() < at:
                raise UntranslatableError("make", f"`{text[match.start() : match.start() + 60]}`")
            found.append(text[at : match.start()])
            at, name = match.end(), match[2]
            if match[1]:
                end = text.find(")" if match[1] == "(" else "}", at)
                name, at = text[at:end] if end >= 0 else "", end + 1
            found += ["$"] if name is None else self._value(name, auto or {})
        return merged([*found, text[at:]], self.found)

    def _value(self, name: str, auto: Mapping[str, str]) -> list[Piece]:
        if name in auto:
            return [auto[name]]
        if (
            not re.fullmatch(r"[\w.-]+", name)
            or name in _OF_MAKE
            or name in self.unknown
            or name in self._open
        ):
            raise UntranslatableError(
                "make", f"`$({name[:60]})`: {self.unknown.get(name, 'make alone knows it')}"
            )
        value = self.values.get(name)
        if isinstance(value, list):
            return value
        if value is not None and len(self._open) < MAX_NESTING:
            self._open.append(name)
            try:
                return self._expand(value, auto)
            finally:
                self._open.pop()
        if name in ("MAKE", "SHELL"):
            return ["make" if name == "MAKE" else "/bin/sh"]
        if name in ("CURDIR", "PWD"):
            return [ShellText(text="${PLANRUN_WORKSPACE}")]
        return [_from_environment(name, [_IMPLICIT.get(name, "")])]

    # Converting.

    def convert(self, wanted: Collection[str]) -> DraftPlan:
        """Return the plan."""
        self.plan = plan = DraftPlan()
        plan.keys["defaults"] = {"shell": self._head(), "timeout": "24h"}
        order = Order(plan, self._find)
        goal = self.goal or next(iter(self.rules), "")
        known = {*self.rules, *filter(self._by_pattern, wanted)}
        if not self.unsure and not is_known(self.found, "target", list(wanted), known, TOP):
            return plan
        others = [] if wanted else [name for name in self.rules if name != goal and "/" not in name]
        order.is_choice = bool(others) and bool(_HELP.fullmatch(goal))
        names = [] if order.is_choice else wanted or ([""] if self.unsure else [goal] if goal else [])
        run = lambda name: self._run(order, name)  # noqa: E731
        emit(plan, self.found, "target", wanted=list(names), others=others, run=run, place=TOP)
        return plan

    def _head(self) -> str:
        """Return the shell of all steps, and set the variables that they get."""
        try:
            flags = self._value(".SHELLFLAGS", {}) if ".SHELLFLAGS" in self.values else ["-c"]
            words = shlex.split(known([*self._value("SHELL", {}), " ", *flags], "the shell"))
            shell, self.strict = shell_of(words)
            env = {
                name: template_of(self._value(name, {}), f"the variable {name}")
                for name in self.exported
                if name in self.values or name in self.unknown
            }
            if env and not self.unsure:
                self.plan.keys["env"] = env
            return shlex.join(shell)
        except (UntranslatableError, ValueError) as why:
            self.unsure = self.unsure or str(why)
            return "/bin/sh"

    def _by_pattern(self, name: str) -> bool:
        return any(
            name.startswith(before) and name.endswith(after)
            for before, _, after in (pattern.partition("%") for pattern in self.patterns)
        )

    def _run(self, order: Order, goal: str) -> list[str]:
        """Emit the steps of one goal: make runs it where something that it needs is not certain; returns its ends."""
        why = self.unsure or self._unfit(goal)
        if not why and (ends := order.run(goal, ())):
            return ends
        step = self._titled(DraftStep(self.plan.name(goal or "make")), goal)
        file = os.path.basename(self.found.file)
        words = ["make", *(["-f", file] if file not in _NAMES else []), *([goal] if goal else [])]
        step.keys["run"] = f"{shlex.join(words)}\n"
        place = self.rules[goal].place if goal in self.rules else TOP
        message = f"make runs {goal or 'the default'}, and must be there: {why or 'it has no commands'}"
        self.found.differs("make", message, place)
        return [self.plan.add(step).id]

    def _unfit(self, goal: str) -> str:
        """Return why make has to run a goal with all that it may have to make for it; "" where steps do."""
        needs: dict[str, list[str]] = {}
        for name in (names := [goal]):  # grows while it is read
            rule = self.rules.get(name) or Rule(place=TOP)
            needs[name] = [*rule.needs, *rule.first]
            names += [each for each in dict.fromkeys(needs[name]) if each not in names]
        try:
            TopologicalSorter(needs).prepare()
        except CycleError:
            return "targets need each other"
        return next(filter(None, map(self._why, names)), "")

    def _is_implied(self, name: str) -> bool:
        """Say whether make may know how to make a file without a rule of its own."""
        path = os.path.join(os.path.dirname(self.found.file), name)
        sources = any(os.path.exists(f"{path}{ending}") for ending in _SOURCES)
        return self._by_pattern(name) or bool(_MADE.match(name)) or sources

    def _why(self, name: str) -> str:
        """Return why make has to run a target; "" where a step does."""
        rule = self.rules.get(name) or Rule(place=TOP, unfit=f"{name} has no rule")
        is_file = name not in self.phony
        alike = any(os.path.splitext(need)[0] == name for need in rule.needs)
        if rule.unfit:
            return rule.unfit
        if is_file and rule.recipe is None and (alike or self._is_implied(name)):
            return "it has no recipe of its own"
        if is_file and rule.recipe is not None and not self.phony.issuperset(rule.needs):
            return "whether it is up to date depends on the age of files"
        try:
            self._commands(name, rule)
        except UntranslatableError as why:
            return why.message
        return ""

    def _find(self, key: tuple[str, Hashable]) -> Recipe:
        name, rule = key[0], self.rules[key[0]]
        recipe = Recipe(name, rule.place, lambda step_id: self._step(name, rule, step_id))
        recipe.before = [(each, ()) for each in dict.fromkeys((*rule.needs, *rule.first))]
        return recipe

    def _titled(self, step: DraftStep, name: str) -> DraftStep:
        title = " ".join(self.rules[name].title.split())[:200] if name in self.rules else ""
        if title.isprintable() and (title or step.id != name):
            step.keys["title"] = title or name or "make"
        return step

    def _step(self, name: str, rule: Rule, step_id: str) -> DraftStep | None:
        commands = self._commands(name, rule)
        if not commands:
            return None
        first = []
        if name not in self.phony and not rule.needs:
            first = [
                f"[ ! -e {shlex.quote(name)} ] || exit 0  # as make: nothing to do for a file that is there"
            ]
        return self._titled(DraftStep(step_id, run=joined(commands, strict=self.strict, first=first)), name)

    def _commands(self, name: str, rule: Rule) -> list[tuple[str, bool]]:
        """Return the commands of a recipe, and whose failures count for nothing; raises UntranslatableError."""
        needs = list(dict.fromkeys(rule.needs))
        auto = {"@": name, "<": next(iter(needs), ""), "^": " ".join(needs), "+": " ".join(rule.needs),
                "|": " ".join(rule.first)}  # fmt: skip
        commands: list[tuple[str, bool]] = []
        for line in rule.recipe or ():
            pieces = self._expand(line, auto)
            text = "".join(piece for piece in pieces if isinstance(piece, str))
            for variable in re.findall(r"\$\{?(\w+)", text):
                if (variable in self.values or variable in self.unknown) and variable not in self.exported:
                    raise UntranslatableError("make", f"a command reads `${variable}`, which the file sets")
            first = pieces[0] if isinstance(pieces[0], str) else ""
            signs = first[: len(first) - len(first.lstrip(" \t\n@+-"))]
            pieces = [first[len(signs) :], *pieces[1:]] if first else pieces
            begin = next((piece for piece in pieces if piece != ""), "")
            if isinstance(begin, ShellText) and begin.text.partition("-")[2][:1] in ("", "}", "@", "+", "-"):
                raise UntranslatableError("make", "a variable may say that a failure does not count")
            if begin != "":
                commands.append((script_of(pieces, {}), "-" in signs))
        if self.strict and any(tolerated for _, tolerated in commands):
            raise UntranslatableError("make", "a line whose failure does not count, in a shell with -e")
        return commands


def _from_environment(name: str, otherwise: list[Piece]) -> Piece:
    """Return a variable that the environment may set, with a default; raises UntranslatableError."""
    parts = [each.text if isinstance(each, ShellText) else each for each in otherwise]
    if not NAME.match(name) or not all(
        isinstance(each, ShellText) or DEFAULT.match(str(each)) for each in otherwise
    ):
        raise UntranslatableError("make", f"the default of `{name}` cannot be written in a shell")
    return ShellText(text=f"${{{name}-{''.join(map(str, parts))}}}", reads=name)


def _names(text: str) -> list[str]:
    """Return the names of targets: a backslash takes a blank, a colon and the like their meaning."""
    words: Iterator[str] = iter(re.findall(r"(?:\\.|[^\s\\])+", text))
    return [re.sub(r"\\([\s:#%|;&\\])", r"\1", word) for word in words]


def _colon(text: str) -> int:
    """Return where the first colon outside of brackets stands that no backslash escapes; -1 for none."""
    depth = at = 0
    while at < len(text):
        char = text[at]
        at += char == "\\"
        depth += (
            1 if char in "({" and (depth or text[at - 1 : at] == "$") else -1 if char in ")}" and depth else 0
        )
        if char == ":" and not depth:
            return at
        at += 1
    return -1


def convert_makefile(text: str, found: Findings, jobs: Collection[str] = ()) -> DraftPlan:
    """Return the plan that a Makefile becomes; `jobs` are the wanted targets, none: the default."""
    for code, message in TOP_FINDINGS:
        found.differs(code, message.format("make"), TOP)
    makefile = Makefile(found)
    try:
        makefile.read(text)
        return makefile.convert(jobs)
    except (RecursionError, UntranslatableError) as why:
        found.refuse("too-large", str(why) or "the file is nested too deeply", TOP)
        return DraftPlan()
