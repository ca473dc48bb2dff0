"""A Makefile as a plan: a target is a step where all that it needs is certain, and `make TARGET` everywhere else.

make never runs while a file is converted: `$(shell …)` and `include` run commands as soon as it reads.
"""

from __future__ import annotations

import os
import re
import shlex
from graphlib import CycleError, TopologicalSorter

from planrun.convert.draft import DraftPlan, DraftStep, literal_text
from planrun.convert.reader import Findings, UntranslatableError
from planrun.convert.recipes.scripts import joined, script_of, shell_of
from planrun.convert.recipes.sequence import Order, Recipe, emit, is_known
from planrun.model.record import Record
from planrun.plan.yaml.node import SCALAR, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Mapping

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
# What make knows to make without a rule, by its ending, and what it makes files without one from.
_MADE = re.compile(r".*\.(o|a|c|cc|C|cpp|p|f|F|m|r|y|l|ym|yl|s|S|mod|sym|def|h|info|dvi|tex|out|ln|el|elc)\Z")
_SOURCES = (
    ".o", ".c", ".cc", ".C", ".cpp", ".p", ".f", ".F", ".m", ".r", ".s", ".S", ".mod", ".sh", ".y", ".l",
)  # fmt: skip
_HELP = re.compile(r"help|usage|list|list-targets|targets")
_NAMES = ("Makefile", "makefile", "GNUmakefile")
MAX_NESTING = 40
TOP = Node(SCALAR, "", 1, 1)


class Rule(Record):
    """What the file says of one target."""

    place: Node
    title: str = ""
    needs: tuple[str, ...] = ()
    recipe: tuple[str, ...] | None = None
    unfit: str = ""  # why make has to run it


class Makefile:
    """One Makefile: what it says, and how a plan does it."""

    def __init__(self, found: Findings) -> None:
        self.found = found
        self.plan = DraftPlan()
        self.values: dict[str, str] = {"SHELL": "/bin/sh", "MAKE": "make"}  # expanded where they are read
        self.fixed: set[str] = set()  # variables that were expanded where they were set
        self.unknown: dict[str, str] = {}  # variables that make alone knows, and why
        self.rules: dict[str, Rule] = {}
        self.patterns: list[str] = []
        self.phony: set[str] = set()
        self.exported: list[str] = []
        self.current: list[str] = []  # the targets whose recipe is read
        self.comment = ""
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
        is_export = bool(re.match(r"export\s+[^:\s]", text))
        text = text.removeprefix("export").strip() if is_export else text
        word = text.split()[0]
        colon, match = _colon(text), _ASSIGNED.match(text)
        if match and (colon < 0 or match.start(2) <= colon):
            self.current = []
            self._assign(match[1], match[2], match[3])
            self.exported += [match[1]] if is_export else []
        elif is_export and "$" not in text and colon < 0:
            self.exported += text.split()
        elif colon < 0 or is_export or word in ("include", "-include", "sinclude", "override", "private"):
            raise UntranslatableError("make", f"`{text[:80]}`")
        else:
            self._rule(text, colon, place)

    def _assign(self, name: str, sign: str, value: str) -> None:
        if name in _REACHING or name == ".DEFAULT_GOAL" or "$" in name:
            raise UntranslatableError("make", f"`{name}` is set")
        earlier = self.values.get(name)
        if name in self.unknown or (sign == "?=" and earlier is not None):
            return
        try:
            if self.doubt or sign in ("!=", "?=") or (sign == "+=" and earlier is None):
                raise UntranslatableError("make", self.doubt or f"`{name} {sign} {value[:60]}`")
            if sign == "+=" and name not in self.fixed:
                self.values[name] += f" {value}"
            elif sign in ("=", "+="):
                self.values[name] = value if sign == "=" else f"{earlier} {self._literal(value)}"
                self.fixed -= {name} if sign == "=" else set()
            else:
                self.values[name] = self._literal(value)
                self.fixed.add(name)
        except UntranslatableError as why:
            self.unknown[name] = why.message

    def _literal(self, value: str) -> str:
        return self._expand(value).replace("$", "$$")

    def _rule(self, text: str, colon: int, place: Node) -> None:
        targets = _names(self._expand(text[:colon].removesuffix("&")))
        unfit = self.doubt
        if text[:colon].endswith("&"):
            unfit = unfit or "one recipe makes several targets"
        rest, semicolon, recipe = text[colon + 1 :].partition(";")
        needs: list[str] = []  # what is no name of a target here has no rule, and make runs it
        try:
            needs = _names(self._expand(rest))
        except UntranslatableError as why:
            unfit = unfit or why.message
        self.current = targets
        for target in targets:
            if target == ".PHONY" and not unfit:
                self.phony.update(needs)
            elif target.startswith(".") and "/" not in target and (target not in _HARMLESS or unfit):
                raise UntranslatableError("make", f"the target `{target}`")
            elif "%" in target:
                self.patterns.append(target)
            elif not target.startswith("."):
                self.unsure = self.unsure or ("" if self.rules else self.doubt)
                if target in self.rules:
                    unfit = unfit or "it has several rules"
                rule = Rule(place=place, needs=tuple(needs), title=self.comment, unfit=unfit)
                self.rules[target] = self.rules.get(target, rule).but(unfit=unfit)
        if semicolon:
            self._recipe(recipe.strip())

    def _recipe(self, line: str) -> None:
        for target in self.current:
            if (rule := self.rules.get(target)) is not None:
                recipe = (*(rule.recipe or ()), line)
                self.rules[target] = rule.but(recipe=recipe, unfit=rule.unfit or self.doubt)

    def _expand(self, text: str, auto: Mapping[str, str] | None = None) -> str:
        """Return a text with its variables filled in; raises UntranslatableError for what make alone knows."""
        found, at = "", 0
        for match in re.finditer(r"\$(?:\$|([({])|(.))", text, re.DOTALL):
            if match.start() < at:
                raise UntranslatableError("make", f"`{text[match.start() : match.start() + 60]}`")
            found += text[at : match.start()]
            at, name = match.end(), match[2]
            if match[1]:
                end = text.find(")" if match[1] == "(" else "}", at)
                name, at = text[at:end] if end >= 0 else "", end + 1
            found += "$" if name is None else self._value(name, auto or {})
        self.found.spend(50 + len(found) + len(text) - at)
        return found + text[at:]

    def _value(self, name: str, auto: Mapping[str, str]) -> str:
        if name in auto:
            return auto[name]
        if (
            name in self.unknown
            or name not in self.values
            or name in self._open
            or len(self._open) > MAX_NESTING
        ):
            message = f"`$({name[:60]})`: {self.unknown.get(name, 'make or the environment alone knows it')}"
            raise UntranslatableError("make", message)
        self._open.append(name)
        try:
            return self._expand(self.values[name], auto)
        finally:
            self._open.pop()

    # Converting.

    def convert(self, wanted: Collection[str]) -> DraftPlan:
        """Return the plan."""
        plan = self.plan
        plan.keys["defaults"] = {"shell": self._head(), "timeout": "24h"}
        order = Order(plan, self._find)
        goal = next(iter(self.rules), "")
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
            flags = (
                self._value(".SHELLFLAGS", {}) if {".SHELLFLAGS"} & {*self.values, *self.unknown} else "-c"
            )
            shell, self.strict = shell_of(shlex.split(f"{self._value('SHELL', {})} {flags}"))
            names = [name for name in self.exported if name in self.values or name in self.unknown]
            if (env := {name: literal_text(self._value(name, {})) for name in names}) and not self.unsure:
                self.plan.keys["env"] = env
            return shlex.join(shell)
        except (UntranslatableError, ValueError) as why:
            self.unsure = self.unsure or str(why)
            return "/bin/sh"

    def _by_pattern(self, name: str) -> bool:
        halves = (pattern.partition("%") for pattern in self.patterns)
        return any(name.startswith(before) and name.endswith(after) for before, _, after in halves)

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
            needs[name] = list(dict.fromkeys(self.rules[name].needs)) if name in self.rules else []
            names += [each for each in needs[name] if each not in names]
        try:
            TopologicalSorter(needs).prepare()
        except CycleError:
            return "targets need each other"
        return next(filter(None, map(self._why, names)), "")

    def _why(self, name: str) -> str:
        """Return why make has to run a target; "" where a step does."""
        rule = self.rules.get(name) or Rule(place=TOP, unfit=f"{name} has no rule")
        path = os.path.join(os.path.dirname(self.found.file), name)
        if rule.unfit:
            return rule.unfit
        if name not in self.phony and rule.recipe is None and (
            self._by_pattern(name) or _MADE.match(name) or any(os.path.exists(path + each) for each in _SOURCES)
            or any(os.path.splitext(need)[0] == name for need in rule.needs)
        ):  # fmt: skip
            return "it has no recipe of its own"
        if name not in self.phony and rule.recipe is not None and not self.phony.issuperset(rule.needs):
            return "whether it is up to date depends on the age of files"
        try:
            joined(self._commands(name, rule), strict=self.strict)
        except UntranslatableError as why:
            return why.message
        return ""

    def _find(self, key: tuple[str, Hashable]) -> Recipe:
        name, rule = key[0], self.rules[key[0]]
        recipe = Recipe(name, rule.place, lambda step_id: self._step(name, rule, step_id))
        recipe.before = [(each, ()) for each in dict.fromkeys(rule.needs)]
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
            there = shlex.quote(name)
            first = [f"[ ! -e {there} ] || exit 0  # as make: nothing to do for a file that is there"]
        return self._titled(DraftStep(step_id, run=joined(commands, strict=self.strict, first=first)), name)

    def _commands(self, name: str, rule: Rule) -> list[tuple[str, bool]]:
        """Return the commands of a recipe, and whose failures count for nothing; raises UntranslatableError."""
        needs = list(dict.fromkeys(rule.needs))
        auto = {"@": name, "<": next(iter(needs), ""), "^": " ".join(needs), "+": " ".join(rule.needs)}
        commands: list[tuple[str, bool]] = []
        for line in rule.recipe or ():
            text = self._expand(line, auto)
            for variable in re.findall(r"\$\{?(\w+)", text):
                if variable in {*self.values, *self.unknown} - {*self.exported}:
                    raise UntranslatableError("make", f"a command reads `${variable}`, which the file sets")
            command = text.lstrip(" \t\n@+-")
            if command:
                commands.append((script_of([command], {}), "-" in text[: len(text) - len(command)]))
        if self.strict and any(tolerated for _, tolerated in commands):
            raise UntranslatableError("make", "a line whose failure does not count, in a shell with -e")
        return commands


def _names(text: str) -> list[str]:
    """Return the names of targets: a backslash takes a blank, a colon and the like their meaning."""
    words = re.findall(r"(?:\\.|[^\s\\])+", text)
    return [re.sub(r"\\([\s:#%|;&\\])", r"\1", word) for word in words]


def _colon(text: str) -> int:
    """Return where the first colon outside of brackets stands that no backslash escapes; -1 for none."""
    depth = at = 0
    while at < len(text):
        char = text[at]
        at += char == "\\"
        opens = char in "({" and (depth or text[at - 1 : at] == "$")
        depth += 1 if opens else -1 if char in ")}" and depth else 0
        if char == ":" and not depth:
            return at
        at += 1
    return -1


def convert_makefile(text: str, found: Findings, jobs: Collection[str] = ()) -> DraftPlan:
    """Return the plan that a Makefile becomes; `jobs` are the wanted targets, none: the default."""
    makefile = Makefile(found)
    makefile.read(text)
    return makefile.convert(jobs)
