"""A Makefile as a plan: a target is a step where its recipe is known without make, and `make TARGET` where it is not.

make never runs while a file is converted: `$(shell …)` and `include` run commands and make files as soon as it reads.
"""

from __future__ import annotations

import os
import re
import shlex

from planrun.convert.choice import choose, tell
from planrun.convert.draft import DraftPlan, DraftStep
from planrun.convert.reader import UntranslatableError
from planrun.convert.recipes.scripts import (
    NAME,
    Command,
    DynamicError,
    Piece,
    Read,
    joined,
    lines_of,
    plain,
    script_of,
    shell_text,
)
from planrun.convert.recipes.sequence import Order, Recipe
from planrun.convert.recipes.variables import Expander, Variable, stem_of
from planrun.errors import InvalidInput
from planrun.model.record import Record
from planrun.plan.problems import did_you_mean
from planrun.plan.yaml.file import read_source
from planrun.plan.yaml.node import SCALAR, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterator

    from planrun.convert.reader import Findings

_ASSIGNED = re.compile(r"([^\s:#=+?!]+)\s*(=|:=|::=|:::=|\?=|\+=|!=)\s*(.*)\Z", re.DOTALL)
_DIRECTIVE = re.compile(r"(ifeq|ifneq|ifdef|ifndef|else|endif)\b\s*(.*)\Z")
_DEFINED = re.compile(r"(?:export\s+|override\s+)*define\s+([^\s=:?+]+)\s*(=|:=|::=|\?=|\+=)?\s*\Z")
_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)#.*", re.DOTALL)
_FROM_CALLER = frozenset(("PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", "TERM"))
_SPECIAL = frozenset((
    ".PHONY", ".SUFFIXES", ".DEFAULT", ".PRECIOUS", ".INTERMEDIATE", ".SECONDARY", ".SECONDEXPANSION",
    ".DELETE_ON_ERROR", ".IGNORE", ".LOW_RESOLUTION_TIME", ".SILENT", ".EXPORT_ALL_VARIABLES", ".NOTPARALLEL",
    ".ONESHELL", ".POSIX", ".WAIT",
))  # fmt: skip
_HELP = re.compile(r"help|usage|list|list-targets|targets")
MAX_FILES = 50


class Rule(Record):
    """What the file says of one target."""

    place: Node
    needs: tuple[str, ...] = ()
    first: tuple[str, ...] = ()  # needed before, without counting for its age
    recipe: tuple[tuple[int, str], ...] = ()
    stem: str = ""
    variables: tuple[tuple[str, str, str], ...] = ()
    file: str = ""
    unfit: str = ""  # why make has to run it
    has_recipe: bool = False


class Makefile:
    """One Makefile with what it includes."""

    def __init__(self, found: Findings) -> None:
        self.found = found
        self.plan = DraftPlan()
        self.place = Node(SCALAR, "", 1, 1)
        self.expander = Expander(self.plan, found, self.place)
        self.rules: dict[str, Rule] = {}
        self.patterns: list[Rule] = []
        self.targets_of: dict[int, list[str]] = {}
        self.specials: dict[str, list[str]] = {}
        self.exported: dict[str, Node] = {}
        self.exports_all = False
        self.current: list[str] = []
        self.is_pattern = False
        self.files = 0
        self.here = found  # the findings of the file that is read, or in which a rule stands
        self.doubt = ""  # why it is not known whether make reads the lines that are being read
        self.unsure = ""  # why nothing of the file is certain

    def read(self, text: str) -> None:
        """Read the file; raises UntranslatableError."""
        self._read(text)

    # Reading.

    def _enter(self, file: str) -> None:
        """Report at places of a file from now on."""
        self.here = self.expander.found = self.found.of(file)

    def _read(self, text: str) -> None:
        lines = text.replace("\r\n", "\n").split("\n")
        active: list[
            list[bool | str]
        ] = []  # of each condition: whether it holds, whether one has held, a doubt
        at = 0
        while at < len(lines):
            number, line = at + 1, lines[at]
            at += 1
            if line.startswith("\t") and self.current and all(state[0] for state in active):
                while line.endswith("\\") and not line.endswith("\\\\") and at < len(lines):
                    line += "\n" + lines[at].removeprefix("\t")
                    at += 1
                self._recipe(number, line[1:])
                continue
            while line.endswith("\\") and at < len(lines):
                line = f"{line[:-1].rstrip()} {lines[at].strip()}"
                at += 1
            stripped = _COMMENT.sub(r"\1", line).strip()
            if not stripped:
                continue
            place = Node(SCALAR, "", number, 1)
            if match := _DIRECTIVE.match(stripped):
                self._condition(match[1], match[2], active, place)
                self.doubt = next((str(state[2]) for state in active if state[2]), "")
            elif not all(state[0] for state in active):
                if stripped.startswith("define "):
                    at = _end_of(lines, at)
            elif match := _DEFINED.match(stripped):
                end = _end_of(lines, at)
                self._assign(match[1], match[2] or "=", "\n".join(lines[at : end - 1]), place)
                at = end
            else:
                self._tried(stripped, place)

    def _tried(self, text: str, place: Node) -> None:
        try:
            self._statement(text, place)
        except DynamicError as why:
            self.unsure = self.unsure or ("" if self.doubt else why.message)

    def _statement(self, text: str, place: Node) -> None:
        self.place = self.expander.place = place
        word, _, rest = text.partition(" ")
        rest = rest.strip()
        if word in ("include", "-include", "sinclude"):
            self._include(rest, place, is_optional=word != "include")
            return
        if word in ("export", "unexport") and not text.startswith(("export:", "export :")):
            self._export(word, rest, place)
            return
        if word in ("vpath", "undefine", "load"):
            raise UntranslatableError("directive", f"`{word}`")
        while word in ("override", "private"):
            text = rest
            word, _, rest = text.partition(" ")
            rest = rest.strip()
        colon = _colon(text)
        match = _ASSIGNED.match(text)
        if match and (colon < 0 or match.start(2) <= colon):
            self.current = []
            self._assign(match[1], match[2], match[3], place)
        elif colon >= 0:
            self._rule(text, colon, place)
        else:
            expanded = self.expander.expand(text)
            if "".join(str(piece) for piece in expanded).strip():
                raise UntranslatableError("shape", f"neither a variable nor a rule: {text[:80]}")

    def _assign(self, name: str, sign: str, value: str, place: Node) -> None:
        expander = self.expander
        name = expander.text(name, "a name")
        earlier = expander.known.get(name)
        if self.doubt or (earlier is not None and earlier.unknown and sign == "+="):
            expander.known[name] = Variable(
                unknown=self.doubt or (earlier.unknown if earlier else ""), place=place
            )
            return
        if sign == "?=" and earlier is not None:
            return
        if sign == "?=":
            message = f"{name} is a parameter with a default: what the environment says of it is not read"
            self.here.differs("default", message, place)
        if sign == "!=":
            value, sign = f"$(shell {value})", ":="
        if sign == "+=" and earlier is not None:
            if earlier.pieces is None:
                expander.known[name] = Variable(text=f"{earlier.text} {value}".strip(), place=place)
                return
            expander.known[name] = Variable(
                pieces=(*earlier.pieces, " ", *expander.expand(value)), place=place
            )
        elif sign in (":=", "::=", ":::="):
            before, expander.is_recipe = expander.is_recipe, True
            try:
                pieces = tuple(expander.expand(value))
            except DynamicError as why:
                expander.known[name] = Variable(unknown=why.message, place=place)
                return
            finally:
                expander.is_recipe = before
            expander.known[name] = Variable(pieces=pieces, place=place)
        else:
            expander.known[name] = Variable(text=value, place=place)

    def _export(self, word: str, rest: str, place: Node) -> None:
        match = _ASSIGNED.match(rest)
        if match:
            self._assign(match[1], match[2], match[3], place)
            names = [match[1]]
        else:
            names = self.expander.text(rest, "names").split()
        if not names:
            self.exports_all = word == "export"
        for name in names:
            if word == "export":
                self.exported[name] = place
            else:
                self.exported.pop(name, None)

    def _include(self, rest: str, place: Node, *, is_optional: bool) -> None:
        try:
            names = self.expander.text(rest, "an included file").split()
        except DynamicError as why:
            if not is_optional:
                self.unsure = why.message
            self.here.differs("include", f"{why.message}: what it includes is left out", place)
            return
        for name in names:
            path = os.path.join(os.path.dirname(self.found.file), name)
            self.files += 1
            if not os.path.isfile(path):
                if not is_optional:
                    self.unsure = f"the included file {name} is not there"
                    continue
                self.here.differs("include", f"the file {name} is not there, and is left out", place)
                continue
            if self.files > MAX_FILES:
                raise UntranslatableError("include", "too many files include each other")
            try:
                text = read_source(path, "file").decode("utf-8", "replace")
            except InvalidInput as error:
                raise UntranslatableError("include", str(error)) from None
            self.current = []
            before = self.here.file
            self._enter(path)
            self._read(text)
            self._enter(before)
            self.current = []

    def _condition(self, word: str, rest: str, active: list[list[bool | str]], place: Node) -> None:
        self.place = self.expander.place = place
        if word == "endif":
            if not active:
                raise UntranslatableError("shape", f"`endif` without a condition in line {place.line}")
            active.pop()
            return
        if word == "else":
            if not active:
                raise UntranslatableError("shape", f"`else` without a condition in line {place.line}")
            state = active[-1]
            again = _DIRECTIVE.match(rest)
            outer = all(each[0] for each in active[:-1])
            if state[2]:
                return  # every branch is read, and nothing in it is certain
            state[0] = not state[1] and outer
            if state[0] and again is not None:
                state[0], state[2] = self._asked(again[1], again[2])
            state[1] = state[1] or state[0]
            return
        outer = all(each[0] for each in active)
        holds, doubt = self._asked(word, rest) if outer else (False, "")
        active.append([holds, holds or not outer, doubt])

    def _asked(self, word: str, rest: str) -> tuple[bool, str]:
        """Return whether a condition holds; with a doubt its lines are read, and nothing in them is certain."""
        try:
            return self._holds(word, rest), ""
        except DynamicError as why:
            return True, f"the condition in line {self.place.line} decides it, and {why.message}"

    def _holds(self, word: str, rest: str) -> bool:
        if word in ("ifdef", "ifndef"):
            name = self.expander.text(rest, "a name").strip()
            known = self.expander.known.get(name)
            is_set = known is not None and bool(known.text or known.pieces not in (None, (), ("",)))
            if known is None:
                message = f"{name} is set nowhere in the file: it is taken as empty where it decides what the file says"
                self.here.differs("unset", message, self.place)
            return is_set is (word == "ifdef")
        one, other = _compared(rest)
        same = self.expander.text(one, "it") == self.expander.text(other, "it")
        return same is (word == "ifeq")

    def _rule(self, text: str, colon: int, place: Node) -> None:
        try:
            targets = self.expander.text(text[:colon], "a target").split()
        except DynamicError as why:
            self.current = [""]  # its lines are read, and belong to nothing
            self.here.differs(
                "make", f"a rule is left out, whose targets are known to make alone: {why.message}", place
            )
            return
        is_double = text[colon : colon + 2] == "::"
        rest = text[colon + (2 if is_double else 1) :].strip()
        own = _ASSIGNED.match(rest.removeprefix("export ").removeprefix("private ").removeprefix("override "))
        if own and not is_double:
            for target in targets:
                rule = self._of(target, place)
                self._set(target, rule.but(variables=(*rule.variables, (own[1], own[2], own[3]))))
            return
        rest, semicolon, recipe = rest.partition(";")
        parts = _parts(rest)
        unfit = (
            self.doubt
            or ("it has a double colon" if is_double else "")
            or ("its prerequisites are static patterns" if len(parts) > 2 else "")
        )
        pattern = ""
        if len(parts) == 2:
            pattern, rest = self.expander.text(parts[0], "a pattern").strip(), parts[1]
        before, _, only = rest.partition("|")
        try:
            needs, first = (
                self.expander.text(before, "a prerequisite").split(),
                self.expander.text(only, "a prerequisite").split(),
            )
        except DynamicError as why:
            needs, first, unfit = [], [], why.message
        self.current = targets
        for target in targets:
            if target in _SPECIAL:
                self.specials.setdefault(target, []).extend(needs)
                continue
            rule = self._of(target, place)
            stem = stem_of(pattern, target) if pattern else ""
            mine = [each.replace("%", stem or "", 1) for each in needs] if pattern else needs
            self._set(
                target,
                rule.but(
                    needs=(*rule.needs, *(each for each in mine if each not in rule.needs)),
                    first=(*rule.first, *(each for each in first if each not in rule.first)),
                    unfit=rule.unfit or unfit,
                    stem=stem or rule.stem,
                ),
            )
        if semicolon:
            self._recipe(place.line, recipe.strip())

    def _of(self, target: str, place: Node) -> Rule:
        return self.rules.get(target) or Rule(place=place, file=self.here.file)

    def _set(self, target: str, rule: Rule) -> None:
        self.rules[target] = rule

    def _recipe(self, number: int, line: str) -> None:
        for target in self.current:
            if target in _SPECIAL or target not in self.rules:
                continue
            rule = self.rules[target]
            self._set(target, rule.but(recipe=(*rule.recipe, (number, line)), has_recipe=True))

    # Converting.

    def convert(self, wanted: Collection[str]) -> DraftPlan:
        """Return the plan."""
        plan, found, top = self.plan, self.found, self.place
        self.is_bash, self.errexit = self._shell()
        for code, message in (
            ("timeout", "a step has 24 hours; make lets a command run as long as it takes"),
            ("environment", "variables that look like credentials are not inherited; see `inherit_env`"),
            ("folder", "commands run where planrun is started: the folder of the Makefile"),
        ):
            found.differs(code, message, Node(SCALAR, "", 1, 1))
        self.first = self._environment()
        order = Order(plan, found, self._find)
        names = list(wanted)
        for name in wanted:
            if name not in self.rules:
                hint = did_you_mean(name, self.public) or f"there are {', '.join(self.public[:30])}"
                found.refuse("shape", f'there is no target "{name}"; {hint}', top)
                return plan
        if not names and self.public:
            default = self._default()
            names = [default] if default else []
            if not default:
                self._all(order)
                return plan
        for name in names:
            order.run([(name, ())])
        if not plan.steps and names and not found.is_refused:
            plan.add(DraftStep(plan.name(names[0]), validate=[{"that": True}]))
        return plan

    def _all(self, order: Order) -> None:
        order.is_choice = True
        ends = {name: last for name in self.public if (last := order.run([(name, ())]))}
        if len(ends) > 1:
            place = Node(SCALAR, "", 1, 1)
            tell(self.found, choose(self.plan, ends), "the default target only shows the others", place)

    @property
    def public(self) -> list[str]:
        """The targets that people call."""
        phony = self.specials.get(".PHONY", [])
        named = [
            name
            for name in self.rules
            if "%" not in name and not re.fullmatch(r"\.[A-Za-z]+(?:\.[A-Za-z]+)?", name)
        ]
        return [name for name in named if name in phony] or named

    def _default(self) -> str:
        goal = self.expander.known.get(".DEFAULT_GOAL")
        name = (
            goal.text.strip()
            if goal is not None and goal.pieces is None
            else plain(goal.pieces or (), "a goal")
            if goal
            else ""
        )
        first = next((each for each in self.rules if "%" not in each and not each.startswith(".")), "")
        name = name or first
        rule = self.rules.get(name)
        texts = " ".join(line for _, line in rule.recipe) if rule else ""
        only_shows = _HELP.fullmatch(name) or "MAKEFILE_LIST" in texts
        if rule is None or (only_shows and not [each for each in rule.needs if not _HELP.fullmatch(each)]):
            return ""
        if not rule.recipe and rule.needs and all(_HELP.fullmatch(each) for each in rule.needs):
            return ""
        return name

    def _shell(self) -> tuple[bool, bool]:
        """Choose the shell; returns whether it is bash, and whether it ends at the first failure."""
        known = self.expander.known
        words = self.expander.text("$(SHELL)", "SHELL").split() if "SHELL" in known else ["sh"]
        flags = self.expander.text("$(.SHELLFLAGS)", ".SHELLFLAGS").split() if ".SHELLFLAGS" in known else []
        words += [each for each in flags if each != "-c"]
        words = [re.sub(r"c$", "", each) if re.fullmatch(r"-[a-z]*c", each) else each for each in words]
        words[0] = words[0] if words[0] != "/bin/sh" else "sh"
        self.plan.keys["defaults"] = {"shell": shlex.join(words), "timeout": "24h"}
        options = " ".join(each for each in words[1:] if re.fullmatch(r"-[a-z]+", each))
        return words[0].endswith("bash"), "e" in options or "errexit" in words

    def _environment(self) -> list[str]:
        """Put exported variables into the plan; returns lines for those that only a shell knows."""
        names = {**self.exported}
        for name, variable in self.expander.known.items():
            if (
                self.exports_all or ".EXPORT_ALL_VARIABLES" in self.specials or name in _FROM_CALLER
            ) and NAME.match(name):
                names.setdefault(name, variable.place or self.place)
        env: dict[str, str] = {}
        lines: list[str] = []
        for name, place in names.items():
            if name not in self.expander.known or not NAME.match(name) or name == "SHELL":
                continue
            self.expander.place, self.expander.is_recipe = place, True
            try:
                pieces = self.expander.expand(f"$({name})")
                if any(isinstance(piece, Read) for piece in pieces):
                    lines += [*lines_of(pieces), f'export {name}="{shell_text(pieces)}"']
                else:
                    env[name] = script_of(pieces)
            except UntranslatableError as why:
                self.found.refuse(why.code, f"{why.message} (variable {name})", place)
        if env:
            self.plan.keys["env"] = env
        return list(dict.fromkeys(lines))

    def _find(self, key: tuple[str, Hashable]) -> Recipe | None:
        name = key[0]
        rule = self._rule_of(name)
        if rule is None:
            return None
        recipe = Recipe(name, rule.place, lambda step: self._step(name, rule, step))
        if not self._by_make(name, rule):
            recipe.before = [(each, ()) for each in (*rule.needs, *rule.first) if each != name]
        return recipe

    def _rule_of(self, name: str) -> Rule | None:
        """Return the rule of a target, made from a pattern where there is no other; None for a file."""
        rule = self.rules.get(name)
        if rule is not None and (rule.has_recipe or name in self.specials.get(".PHONY", [])):
            return rule
        for pattern, each in self.rules.items():
            stem = stem_of(pattern, name) if "%" in pattern else None
            if stem is not None and each.has_recipe:
                needs = tuple(need.replace("%", stem, 1) for need in each.needs)
                return each.but(needs=(*(rule.needs if rule else ()), *needs), stem=stem)
        return rule

    def _by_make(self, name: str, rule: Rule) -> str:
        """Return why make itself has to run a target; "" where its recipe is known."""
        if rule.unfit or self.unsure:
            return rule.unfit or self.unsure
        if rule.variables and any(self._rule_of(each) is not None for each in rule.needs):
            return "it sets variables for the targets that it needs"
        for need in rule.needs:
            if self._rule_of(need) is None and re.search(r"\.(?:o|a|so|lo)$", need):
                return f"make has a rule of its own for {need}"
        if not rule.has_recipe and name not in self.specials.get(".PHONY", []) and not rule.needs:
            return ""
        try:
            self._commands(name, rule)
        except DynamicError as why:
            return why.message
        return ""

    def _commands(self, name: str, rule: Rule) -> tuple[list[str], list[Command]]:
        """Return what a recipe's script begins with, and its commands; raises UntranslatableError."""
        expander = self.expander
        self._enter(rule.file)
        before = dict(expander.known)
        expander.auto = {
            "@": name, "<": next(iter(rule.needs), ""), "^": " ".join(dict.fromkeys(rule.needs)),
            "+": " ".join(rule.needs), "*": rule.stem, "|": " ".join(rule.first),
        }  # fmt: skip
        try:
            for variable, sign, value in rule.variables:
                self._assign(variable, sign, value, rule.place)
            expander.is_recipe = True
            return self._lines(rule)
        finally:
            expander.known, expander.auto, expander.is_recipe = before, {}, False

    def _lines(self, rule: Rule) -> tuple[list[str], list[Command]]:
        first = list(self.first)
        commands: list[Command] = []
        one = ".ONESHELL" in self.specials
        ignored = ".IGNORE" in self.specials
        for number, line in rule.recipe:
            self.expander.place = Node(SCALAR, "", number, 1)
            pieces = self.expander.expand(line)
            for part in _split(pieces):
                text, signs = _signs(part)
                if not "".join(piece if isinstance(piece, str) else "x" for piece in text).strip():
                    continue
                first += [each for each in lines_of(text) if each not in first]
                tolerated = ignored or "-" in signs
                commands.append(Command(text=script_of(text), is_tolerated=tolerated))
        if one and commands:
            commands = [Command(text="\n".join(each.text for each in commands))]
        return first, commands

    def _step(self, name: str, rule: Rule, step_id: str) -> DraftStep | None:
        why = self._by_make(name, rule)
        self._enter(rule.file)
        if why:
            self.here.differs("make", f"{name} is run by make, which must be there: {why}", rule.place)
            return DraftStep(step_id, run=f"make {shlex.quote(name)}\n")
        try:
            first, commands = self._commands(name, rule)
        except UntranslatableError as problem:
            step = DraftStep(step_id)
            step.make_abstract(
                self.here.refuse(
                    problem.code, f"{problem.message} (target {name})", self.expander.place, step_id
                )
            )
            return step
        if not commands:
            return None
        guard = self._guard(name, rule)
        step = DraftStep(step_id, run="\n".join([*guard, joined(first, commands, errexit=self.errexit)]))
        if step_id != name:
            step.keys["title"] = name
        return step

    def _guard(self, name: str, rule: Rule) -> list[str]:
        """Return the lines that end a script where its file is newer than what it is made of."""
        phony = self.specials.get(".PHONY", [])
        if name in phony:
            return []
        word = shlex.quote(name)
        if any(
            need in phony or ((found := self._rule_of(need)) is not None and not found.has_recipe)
            for need in rule.needs
        ):
            return []
        lines = [f"[ -e {word} ] && old= || old=yes"]
        made = [need for need in rule.needs if self._rule_of(need) is not None]
        given = [need for need in rule.needs if need not in made]
        missing = f'{{ echo "nothing makes $file, which {name} needs" >&2; exit 2; }}'
        # A rule need not make its file: what waits for it is out of date then.
        for needs, otherwise in ((given, missing), (made, "{ old=yes; continue; }")):
            if needs:
                lines += [
                    f"for file in {' '.join(map(shlex.quote, needs))}; do",
                    f'  [ -e "$file" ] || {otherwise}',
                    f'  [ ! "$file" -nt {word} ] || old=yes',
                    "done",
                ]
        return [
            *lines,
            'if [ -z "$old" ]; then exit 0; fi  # it is newer than what it is made of, as for make',
        ]


def _end_of(lines: list[str], at: int) -> int:
    """Return the line behind the `endef` that ends a definition."""
    depth = 1
    while at < len(lines) and depth:
        word = lines[at].strip().split(" ", maxsplit=1)[0]
        depth += 1 if word == "define" else -1 if word == "endef" else 0
        at += 1
    return at


def _colon(text: str) -> int:
    """Return where the first colon outside of brackets stands; -1 for none."""
    depth = 0
    for at, char in enumerate(text):
        if char in "({" and at and text[at - 1] == "$":
            depth += 1
        elif char in ")}" and depth:
            depth -= 1
        elif char == ":" and not depth:
            return at
    return -1


def _parts(text: str) -> list[str]:
    """Return a text cut at its colons outside of brackets."""
    found = []
    while (at := _colon(text)) >= 0:
        found.append(text[:at])
        text = text[at + 1 :]
    return [*found, text]


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
        raise UntranslatableError("shape", f"a condition cannot be read: {rest[:80]}")
    return match[2], match[4]


def _split(pieces: list[Piece]) -> Iterator[list[Piece]]:
    """Yield the lines of a recipe's line: a variable may hold several."""
    part: list[Piece] = []
    for piece in pieces:
        if not isinstance(piece, str):
            part.append(piece)
            continue
        rows = re.split(r"(?<!\\)\n", piece)
        for at, row in enumerate(rows):
            if at:
                yield part
                part = []
            part.append(row)
    yield part


def _signs(pieces: list[Piece]) -> tuple[list[Piece], str]:
    """Return a line without the signs before it, and the signs."""
    if not pieces or not isinstance(pieces[0], str):
        return pieces, ""
    match = re.match(r"[\s@+-]*", pieces[0])
    assert match is not None  # it matches nothing, too
    return [pieces[0][match.end() :], *pieces[1:]], match[0]


def convert_makefile(text: str, found: Findings, jobs: Collection[str] = ()) -> DraftPlan:
    """Return the plan that a Makefile becomes; `jobs` are the wanted targets, none: the default."""
    makefile = Makefile(found)
    try:
        makefile.read(text)
        return makefile.convert(jobs)
    except UntranslatableError as why:
        makefile.here.refuse(why.code, why.message, makefile.expander.place)
        return DraftPlan()
    except RecursionError:
        makefile.here.refuse("too-large", "the file is nested too deeply", Node(SCALAR, "", 1, 1))
        return DraftPlan()
