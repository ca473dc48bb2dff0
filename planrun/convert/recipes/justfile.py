"""A justfile as a plan: a recipe is a step, what it needs comes before it, its parameters are those of the plan."""

from __future__ import annotations

import os
import re
import shlex

from planrun.convert.choice import choose, tell
from planrun.convert.draft import DraftPlan, DraftStep, literal_text
from planrun.convert.reader import UntranslatableError
from planrun.convert.recipes.expressions import Evaluator, tokens_of
from planrun.convert.recipes.scripts import (
    NAME,
    SAFE,
    Command,
    Param,
    Piece,
    Read,
    joined,
    lines_of,
    plain,
    script_of,
    shell_text,
)
from planrun.convert.recipes.sequence import Order, Recipe
from planrun.errors import InvalidInput
from planrun.model.record import Record
from planrun.plan.problems import did_you_mean
from planrun.plan.yaml.file import read_source
from planrun.plan.yaml.node import SCALAR, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Sequence
    from typing import Any

    from planrun.convert.reader import Findings

_HEAD = re.compile(r"(@?)([A-Za-z_][A-Za-z0-9_-]*)((?:[ \t]+[^:]*?)?)[ \t]*:(?!=)(.*)\Z", re.DOTALL)
_SET = re.compile(r"(export[ \t]+)?([A-Za-z_][A-Za-z0-9_-]*)[ \t]*:=[ \t]*(.*)\Z", re.DOTALL)
_ELSEWHERE = frozenset(("windows", "macos", "openbsd", "freebsd", "netbsd", "dragonfly", "android"))
_LISTS = re.compile(
    r"@?(?:just|\{\{ *just_executable\(\) *\}\})"
    r"(?: +(?:--list|-l|--choose|--summary|--unsorted|-u|--justfile \S+|-f \S+|--list-submodules))+"
)
_ATTRIBUTES = frozenset((
    "private", "group", "doc", "linux", "unix", "no-cd", "working-directory", "no-exit-message", "default",
    "positional-arguments", "script", "parallel", "confirm", "metadata", "extension", "no-quiet", "dragonfly",
))  # fmt: skip
MAX_FILES = 50
MAX_DEPTH = 10  # of modules in modules


class Parameter(Record):
    """A parameter of a recipe; `sign` is `*` or `+` where it takes several words, `$` where it is exported."""

    name: str
    sign: str = ""
    is_exported: bool = False
    default: str | None = None


class Entry(Record):
    """A recipe as it stands in the file."""

    name: str
    place: Node
    params: tuple[Parameter, ...] = ()
    before: tuple[tuple[str, tuple[str, ...]], ...] = ()
    after: tuple[tuple[str, tuple[str, ...]], ...] = ()
    body: tuple[tuple[int, str], ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    title: str = ""
    file: str = ""

    def attribute(self, name: str) -> str | None:
        """Return the argument of an attribute; None where it has none of this name."""
        return next((value for key, value in self.attributes if key == name), None)


class Justfile:
    """One justfile with what it imports."""

    def __init__(self, found: Findings) -> None:
        self.found = found
        self.plan = DraftPlan()
        self.place = Node(SCALAR, "", 1, 1)
        self.evaluator = Evaluator(self.plan, found, self.place)
        self.recipes: dict[str, Entry] = {}
        self.aliases: dict[str, str] = {}
        self.settings: dict[str, str] = {}
        self.exported: dict[str, Node] = {}
        self.modules: dict[str, Justfile] = {}
        self.prefix = ""  # of the names of a module's recipes
        self.folder = ""  # of a module
        self.own: dict[str, Any] = {}  # shell and environment of a module
        self.files = 0
        self.file = found.file
        self.here = found  # the findings of the file that is read, or in which a recipe stands

    def read(self, text: str, file: str) -> None:
        """Read a file; raises UntranslatableError."""
        self._enter(file)
        lines = text.replace("\r\n", "\n").split("\n")
        at, comment = 0, ""
        attributes: list[tuple[str, str]] = []
        while at < len(lines):
            number, line = at + 1, lines[at]
            at += 1
            if not line.strip() or line.lstrip().startswith("#"):
                comment = line.strip().lstrip("#! ") if line.strip() else ""
                continue
            while (_is_open(line) or line.rstrip().endswith("\\")) and at < len(lines):
                line = (
                    f"{line.rstrip()[:-1]} {lines[at].strip()}"
                    if line.rstrip().endswith("\\")
                    else f"{line}\n{lines[at]}"
                )
                at += 1
            self.place = self.evaluator.place = Node(SCALAR, "", number, 1)
            line = _without_comment(line)
            if line.startswith("["):
                attributes += _attributes(line)
                rest = line[line.rindex("]") + 1 :].strip()
                if not rest:
                    continue
                line = rest
            start = at
            while at < len(lines) and (not lines[at].strip() or lines[at][:1] in " \t"):
                at += 1
            body = [(place, each) for place, each in enumerate(lines[start:at], start + 1)]
            self._statement(line.rstrip(), body, tuple(attributes), comment, file)
            attributes, comment = [], ""

    def _enter(self, file: str) -> None:
        """Report at places of a file from now on."""
        self.file = file
        self.here = self.evaluator.found = self.found.of(file)

    def _statement(
        self,
        line: str,
        body: list[tuple[int, str]],
        attributes: tuple[tuple[str, str], ...],
        comment: str,
        file: str,
    ) -> None:
        word, _, rest = line.partition(" ")
        rest = rest.strip()
        if word == "set" and not re.match(r"set[ \t]*:", line):
            name, _, value = rest.partition(":=")
            self.settings[name.strip()] = value.strip() or "true"
        elif word == "alias" and (match := re.fullmatch(r"([\w-]+)\s*:=\s*([\w:-]+)", rest)):
            self.aliases[match[1]] = match[2]
        elif word in ("import", "import?") and rest[:1] in "'\"":
            self._import(rest, file, is_optional=word == "import?")
        elif word in ("mod", "mod?"):
            self._module(rest, file, is_optional=word == "mod?")
        elif word == "unexport":
            raise UntranslatableError("unexport", f"`unexport {rest}`")
        elif match := _SET.match(line):
            self.evaluator.texts[match[2]] = match[3]
            if match[1]:
                self.exported[match[2]] = self.place
        elif match := _HEAD.match(line):
            self._recipe(match, body, attributes, comment)
        else:
            raise UntranslatableError("shape", f"neither a variable nor a recipe: {line[:80]}")

    def _module(self, rest: str, file: str, *, is_optional: bool) -> None:
        """Read a module: its recipes are called by its name, and run in its folder."""
        match = re.fullmatch(r"([A-Za-z_][\w-]*)(?:\s+(.+))?", rest)
        if match is None:
            raise UntranslatableError("mod", f"the module {rest}")
        folder, name = os.path.dirname(file), match[1]
        given = plain(self.evaluator.value(match[2]), "the file of a module") if match[2] else ""
        path = _module_file(folder, name, os.path.expanduser(given))
        self.files += 1
        if path is None or self.files > MAX_FILES or self.prefix.count("::") > MAX_DEPTH:
            if is_optional and path is None:
                return
            raise UntranslatableError("mod", f"the module {name} is not there, or there are too many")
        module = Justfile(self.found)
        module.plan, module.files = self.plan, self.files
        module.evaluator = Evaluator(self.plan, self.found, self.place)
        module.prefix = f"{self.prefix}{name}::"
        module.folder = os.path.relpath(os.path.dirname(path) or ".", os.path.dirname(self.found.file) or ".")
        module.read(read_source(path, "file").decode("utf-8", "replace"), path)
        self.files = module.files
        self.modules[name] = module
        self._enter(file)

    def _surround(self) -> None:
        """Work out the shell and the environment of a module, which its steps have for themselves."""
        before, self.plan.keys = self.plan.keys, {}
        try:
            self.errexit = self._shell()
            self.first = self._environment()
            self.own = self.plan.keys
        finally:
            self.plan.keys = before
        for module in self.modules.values():
            module._surround()

    def _import(self, rest: str, file: str, *, is_optional: bool) -> None:
        name = plain(self.evaluator.value(rest), "an imported file")
        path = os.path.join(os.path.dirname(file), os.path.expanduser(name))
        self.files += 1
        if not os.path.isfile(path) or self.files > MAX_FILES:
            if is_optional and self.files <= MAX_FILES:
                return
            raise UntranslatableError("import", f"the imported file {name} is not there")
        try:
            text = read_source(path, "file").decode("utf-8", "replace")
        except InvalidInput as error:
            raise UntranslatableError("import", str(error)) from None
        own = dict(self.recipes)
        before = self.file
        self.read(text, path)
        self._enter(before)
        self.recipes |= own  # what the importing file says counts

    def _recipe(
        self,
        match: re.Match[str],
        body: list[tuple[int, str]],
        attributes: tuple[tuple[str, str], ...],
        comment: str,
    ) -> None:
        name = match[2]
        if any(key in _ELSEWHERE for key, _ in attributes) and not any(
            key in ("linux", "unix") for key, _ in attributes
        ):
            self.here.differs(
                "other-machines",
                f"the recipe {name} is for another system than Linux, and is left out",
                self.place,
            )
            return
        before, _, after = match[4].partition("&&")
        while body and not body[-1][1].strip():
            body.pop()
        indent = next((len(each) - len(each.lstrip()) for _, each in body if each.strip()), 0)
        lines = tuple(
            (number, each[indent:] if each[:indent].strip() == "" else each.lstrip()) for number, each in body
        )
        self.recipes[name] = Entry(
            name=name, place=self.place, params=tuple(_parameters(match[3])), before=tuple(_needs(before)),
            after=tuple(_needs(after)), body=lines, attributes=attributes, title=comment, file=self.file,
        )  # fmt: skip

    # Converting.

    def convert(self, wanted: Collection[str]) -> DraftPlan:
        """Return the plan."""
        top = Node(SCALAR, "", 1, 1)
        for code, message in (
            ("timeout", "a step has 24 hours; just lets a command run as long as it takes"),
            ("environment", "variables that look like credentials are not inherited; see `inherit_env`"),
            ("folder", "recipes run where planrun is started: the folder of the justfile"),
        ):
            self.found.differs(code, message, top)
        self.errexit = self._shell()
        self.first = self._environment()
        for module in self.modules.values():
            module._surround()
        order = Order(self.plan, self.found, self._find)
        names = list(wanted)
        for name in names:
            if not self._has(name):
                hint = did_you_mean(name, self.recipes) or f"there are {', '.join(list(self.recipes)[:30])}"
                self.found.refuse("shape", f'there is no recipe "{name}"; {hint}', top)
                return self.plan
        names = names or self._default()
        for name in names:
            order.run([self._key(name, ())])
        if not names:
            self._all(order)
        return self.plan

    def _has(self, name: str) -> bool:
        owner, sign, rest = name.partition("::")
        if sign:
            return owner in self.modules and self.modules[owner]._has(rest)
        return self.aliases.get(name, name) in self.recipes

    def _default(self) -> list[str]:
        marked = [each.name for each in self.recipes.values() if each.attribute("default") is not None]
        name = (
            marked or (["default"] if next(iter(self.recipes), "") == "default" else list(self.recipes)[:1])
        )[:1]
        if not name:
            return []
        entry = self.recipes[name[0]]
        texts = [line.strip() for _, line in entry.body if line.strip()]
        only_lists = texts and all(_LISTS.fullmatch(text) or re.match(r"@?echo\b", text) for text in texts)
        if only_lists and any(_LISTS.fullmatch(text) for text in texts) and not entry.before:
            return []
        return name

    def _all(self, order: Order) -> None:
        order.is_choice = True
        self.is_choice = True
        ends: dict[str, list[str]] = {}
        self._each(order, ends)
        if len(ends) > 1:
            tell(
                self.found,
                choose(self.plan, ends),
                "the default recipe only lists the others",
                Node(SCALAR, "", 1, 1),
            )

    def _each(self, order: Order, ends: dict[str, list[str]]) -> None:
        """Convert each recipe that can be called, with those of modules."""
        self.is_choice = True
        for name, entry in self.recipes.items():
            if name.startswith("_") or entry.attribute("private") is not None or self._lists(entry):
                continue
            if last := order.run([self._key(name, ())]):
                ends[f"{self.prefix}{name}"] = last
        for module in self.modules.values():
            module._each(order, ends)

    def _lists(self, entry: Entry) -> bool:
        texts = [line.strip() for _, line in entry.body if line.strip()]
        return bool(texts) and all(_LISTS.fullmatch(text) for text in texts)

    is_choice = False

    def _shell(self) -> bool:
        """Choose the shell; returns whether it ends at the first failure."""
        text = self.settings.get("shell", "")
        words = ["sh", "-cu"]
        if text:
            found = [each for kind, each in tokens_of(text.strip().strip("[]")) if kind in ("raw", "cooked")]
            words = [each[1:-1] for each in found] or words
        kept = [word for word in words if word != "-c"]
        kept = [re.sub("c", "", word) if re.fullmatch(r"-[a-z]*c[a-z]*", word) else word for word in kept]
        kept = [word for word in kept if word != "-"]
        if os.path.basename(kept[0]) not in ("sh", "bash", "dash", "zsh", "ksh", "ash"):
            raise UntranslatableError("shell", f"the shell `{kept[0]}`")
        self.plan.keys["defaults"] = {"shell": shlex.join(kept), "timeout": "24h"}
        return any(re.fullmatch(r"-[a-z]*e[a-z]*", word) for word in kept[1:])

    def _environment(self) -> list[str]:
        if (
            self.settings.get("dotenv-load", "false") == "true"
            or "dotenv-filename" in self.settings
            or "dotenv-path" in self.settings
        ):
            value = self.settings.get("dotenv-filename") or self.settings.get("dotenv-path") or "'.env'"
            self.plan.keys["env_file"] = [plain(self.evaluator.value(value), "the file of variables")]
            self.found.differs(
                "dotenv",
                "a file of variables has to be there, and wins over the caller's environment",
                Node(SCALAR, "", 1, 1),
            )
        names = dict(self.exported)
        if self.settings.get("export", "false") == "true":
            names |= dict.fromkeys(self.evaluator.texts, self.place)
        env: dict[str, str] = {}
        lines: list[str] = []
        for name, place in names.items():
            if not NAME.match(name):
                continue
            self.evaluator.place = place
            pieces = self.evaluator.name(name)
            if any(isinstance(piece, Read) for piece in pieces):
                lines += [*lines_of(pieces), f'export {name}="{shell_text(pieces)}"']
            else:
                env[name] = script_of(pieces)
        if env:
            self.plan.keys["env"] = env
        return lines

    def _key(self, name: str, args: Sequence[tuple[Piece, ...]]) -> tuple[str, Hashable]:
        return f"{self.prefix}{self.aliases.get(name, name)}", tuple(args)

    def _find(self, key: tuple[str, Hashable]) -> Recipe:
        name, args = key
        own = name.removeprefix(self.prefix)
        owner, sign, _ = own.partition("::")
        if sign and owner in self.modules:
            return self.modules[owner]._find(key)
        entry = self.recipes.get(own)
        if entry is None:
            raise UntranslatableError("recipe", f"there is no recipe `{name}`")
        assert isinstance(args, tuple)
        before, self.evaluator.place = self.evaluator.place, entry.place
        self._enter(entry.file)
        try:
            given, checks = self._given(entry, args)
            recipe = Recipe(name, entry.place, lambda step: self._step(entry, given, checks, step))
            recipe.before = [self._called(need, given) for need in entry.before]
            recipe.after = [self._called(need, given) for need in entry.after]
        except UntranslatableError as why:
            problem = why
            return Recipe(name, entry.place, lambda step: self._abstract(entry, step, problem, entry.place))
        finally:
            self.evaluator.place = before
        return recipe

    def _called(
        self, need: tuple[str, tuple[str, ...]], given: dict[str, list[Piece]]
    ) -> tuple[str, Hashable]:
        return self._key(need[0], [tuple(self.evaluator.value(each, given)) for each in need[1]])

    def _given(
        self, entry: Entry, args: tuple[tuple[Piece, ...], ...]
    ) -> tuple[dict[str, list[Piece]], list[str]]:
        """Return what the parameters of a recipe are, and those that must not be empty."""
        given: dict[str, list[Piece]] = {}
        checks = []
        left = list(args)
        for parameter in entry.params:
            if left:
                taken = left if parameter.sign else left[:1]
                left = left[len(taken) :]
                words: list[Piece] = []
                for each in taken:
                    words += [*([" "] if words else []), *each]
                given[parameter.name] = words
                continue
            pieces: list[Piece] = [""]
            if parameter.default is not None:
                pieces = self.evaluator.value(parameter.default, given)
            if any(isinstance(piece, Read) for piece in pieces):
                given[parameter.name] = pieces
                continue
            given[parameter.name] = self._param(entry, parameter, plain(pieces, "a default"))
            if parameter.default is None and parameter.sign != "*":
                checks.append(self._param_name(entry, parameter))
        return given, checks

    def _param_name(self, entry: Entry, parameter: Parameter) -> str:
        plain_name = re.sub(r"[^A-Za-z0-9_]", "_", parameter.name)
        others = [
            each.name for each in self.recipes.values() for one in each.params if one.name == parameter.name
        ]
        clashes = (
            bool(self.prefix)
            or len(others) > 1
            or plain_name == "task"
            or parameter.name in self.evaluator.texts
        )
        owner = f"{self.prefix}{entry.name}".replace("::", "_")
        return f"{re.sub(r'[^A-Za-z0-9_]', '_', owner)}_{plain_name}" if clashes else plain_name

    def _param(self, entry: Entry, parameter: Parameter, default: str) -> list[Piece]:
        name = self._param_name(entry, parameter)
        if parameter.sign or not (SAFE.match(default) or not default):
            self.plan.params.setdefault(name, {"type": "string", "default": default})
            self.plan.keys.setdefault("env", {})[f"ARG_{name}"] = f"${{{{ params.{name} }}}}"
            if parameter.sign:
                message = f"the words of {parameter.name} are the parameter {name}; a shell splits it"
                self.found.of(entry.file).differs("arguments", message, entry.place)
            return [Read(name=f"ARG_{name}")]
        self.plan.params.setdefault(name, {"type": "string", "default": default})
        return [Param(name=name, text=default)]

    def _abstract(self, entry: Entry, step_id: str, why: UntranslatableError, place: Node) -> DraftStep:
        step = DraftStep(step_id)
        message = f"{why.message} (recipe {entry.name})"
        note = self.found.of(entry.file).refuse(why.code, message, place, step_id)
        step.make_abstract(note)
        return step

    def _step(
        self, entry: Entry, given: dict[str, list[Piece]], checks: list[str], step_id: str
    ) -> DraftStep | None:
        if not any(line.strip() for _, line in entry.body):
            return None
        step = DraftStep(step_id)
        if entry.title and entry.title.isprintable():
            step.keys["title"] = entry.title[:200]
        try:
            self.evaluator.given = given
            self._enter(entry.file)
            self._fill(step, entry, checks)
        except UntranslatableError as why:
            return self._abstract(entry, step_id, why, self.evaluator.place)
        finally:
            self.evaluator.given = {}
        return step

    def _fill(self, step: DraftStep, entry: Entry, checks: list[str]) -> None:
        self._confirmed(step, entry)
        self._inside(step, entry)
        for name, _ in entry.attributes:
            if name not in _ATTRIBUTES and name not in _ELSEWHERE:
                raise UntranslatableError("attribute", f"the attribute `[{name}]`")
        folder = entry.attribute("working-directory")
        if folder is not None:
            step.keys["workdir"] = os.path.normpath(
                os.path.join(self.folder or ".", plain(self.evaluator.value(folder), "a folder"))
            )
        first = [*self.first]
        for name in checks:
            first.append(f'[ -n "${{CHECK_{name}}}" ] || {{ echo "give --param {name}=…" >&2; exit 1; }}')
            step.keys.setdefault("env", {})[f"CHECK_{name}"] = f"${{{{ params.{name} }}}}"
        exports = [each for each in entry.params if each.is_exported or self.settings.get("export") == "true"]
        for each in exports:
            pieces = self.evaluator.given[each.name]
            first += [*lines_of(pieces), f'export {each.name}="{shell_text(pieces)}"']
        if (
            self.settings.get("positional-arguments") == "true"
            or entry.attribute("positional-arguments") is not None
        ):
            words = []
            for each in entry.params:
                pieces = self.evaluator.given[each.name]
                first += lines_of(pieces)
                words.append(shell_text(pieces) if each.sign else f'"{shell_text(pieces)}"')
            first.append(f"set -- {' '.join(words)}")
        lines = list(entry.body)
        start = next((line for _, line in lines if line.strip()), "")
        if start.startswith("#!") or entry.attribute("script") is not None:
            self._whole(step, entry, first, start)
        else:
            step.keys["run"] = joined(self._first(first, lines), self._commands(lines), errexit=self.errexit)

    def _confirmed(self, step: DraftStep, entry: Entry) -> None:
        """Put a question before a recipe with `[confirm]`."""
        text = entry.attribute("confirm")
        if text is None:
            return
        question = plain(self.evaluator.value(text), "a question") if text else f"Run recipe `{entry.name}`?"
        ask = DraftStep(self.plan.name(f"{step.id}.ask"), ask={"question": literal_text(question)})
        self.plan.add(ask)
        step.wait(ask.id)

    def _inside(self, step: DraftStep, entry: Entry) -> None:
        """Give a step of a module what the plan gives to others: its shell, variables and folder."""
        if not self.prefix:
            return
        step.keys["shell"] = self.own["defaults"]["shell"]
        for key in ("env", "env_file"):
            if key in self.own:
                step.keys[key] = self.own[key].copy()
        if self.folder != "." and entry.attribute("no-cd") is None:
            step.keys["workdir"] = self.folder

    def _whole(self, step: DraftStep, entry: Entry, first: list[str], start: str) -> None:
        """Give a step the script of a recipe that a program runs as a whole."""
        text = "\n".join(line for _, line in entry.body)
        pieces = self.evaluator.filled(text)
        words = start.removeprefix("#!").split() if start.startswith("#!") else ["sh", "-eu"]
        if os.path.basename(words[0]) == "env":
            words = [each for each in words[1:] if each != "-S"]
        if not words:
            raise UntranslatableError("shell", f"`{start}` names no program")
        is_shell = os.path.basename(words[0]) in ("sh", "bash", "dash", "zsh", "ksh", "ash")
        needed = [*first, *lines_of(pieces)]
        if needed and not is_shell:
            raise UntranslatableError("shell", f"`{words[0]}` is no shell in which variables could be set")
        body = (
            script_of(pieces)
            if is_shell
            else "".join(
                f"${{{{ params.{piece.name} }}}}" if isinstance(piece, Param) else literal_text(str(piece))
                for piece in pieces
            )
        )
        step.keys["shell"] = shlex.join(words)
        step.keys["run"] = "\n".join([*needed, body]) + "\n"

    def _first(self, first: list[str], lines: Sequence[tuple[int, str]]) -> list[str]:
        found = list(first)
        for number, line in lines:
            self.evaluator.place = Node(SCALAR, "", number, 1)
            found += [each for each in lines_of(self.evaluator.filled(line)) if each not in found]
        return found

    def _commands(self, lines: Sequence[tuple[int, str]]) -> list[Command]:
        """Return the commands of a recipe: a line with a backslash at its end goes on in the next."""
        found: list[Command] = []
        joined_line = ""
        for number, line in lines:
            self.evaluator.place = Node(SCALAR, "", number, 1)
            joined_line += line if not joined_line else line.lstrip()
            if line.endswith("\\"):
                joined_line = joined_line[:-1]
                continue
            text, joined_line = joined_line, ""
            if not text.strip() or (
                text.lstrip().startswith("#") and self.settings.get("ignore-comments") == "true"
            ):
                continue
            signs = re.match(r"[@-]*", text.lstrip())
            assert signs is not None  # it matches nothing, too
            body = text.lstrip()[signs.end() :]
            found.append(Command(text=script_of(self.evaluator.filled(body)), is_tolerated="-" in signs[0]))
        return found


def _module_file(folder: str, name: str, given: str) -> str | None:
    """Return the file of a module; None where there is none."""
    places = [f"{name}.just", f"{name}/mod.just", f"{name}/justfile", f"{name}/.justfile", f"{name}/Justfile"]
    if given:
        places = [given, f"{given}/mod.just", f"{given}/justfile", f"{given}/.justfile", f"{given}/Justfile"]
    paths = [os.path.join(folder, each) for each in places]
    return next((path for path in paths if os.path.isfile(path)), None)


def _is_open(text: str) -> bool:
    """Say whether brackets or strings of several lines are open at the end of a text."""
    for mark in ('"""', "'''", "```"):
        if text.count(mark) % 2:
            return True
    stripped = re.sub(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|`[^`]*`|#.*", "", text)
    is_inside = stripped.count("(") > stripped.count(")") or stripped.count("{") > stripped.count("}")
    return (is_inside and ":=" in text) or (
        ":=" in text and bool(re.search(r"['\"]", re.sub(r"#.*", "", stripped)))
    )


def _without_comment(line: str) -> str:
    """Return a line outside of recipes without the comment at its end."""
    match = re.match(r"""(?:[^#'"`]|'[^']*'|"(?:\\.|[^"\\])*"|`[^`]*`)*""", line, re.DOTALL)
    assert match is not None  # it matches nothing, too
    return line[: match.end()].rstrip() if line[match.end() :].startswith("#") else line


def _attributes(line: str) -> list[tuple[str, str]]:
    form = re.compile(r"([a-z-]+)\s*(?:\(([^)]*)\)|:\s*('[^']*'|\"[^\"]*\"))?\s*(?:,|$)")
    return [
        (match[1], match[2] or match[3] or "")
        for inside in re.findall(r"\[((?:[^\]'\"]|'[^']*'|\"[^\"]*\")*)\]", line)
        for match in form.finditer(inside.strip())
    ]


def _parameters(text: str) -> list[Parameter]:
    found = []
    pattern = re.compile(
        r"""\s*([*+]?)(\$?)([A-Za-z_][\w-]*)(?:\s*=\s*("(?:\\.|[^"\\])*"|'[^']*'|`[^`]*`|\((?:[^()]|\([^()]*\))*\)|[A-Za-z_][\w-]*(?:\([^)]*\))?))?"""
    )
    at = 0
    while text[at:].strip():
        match = pattern.match(text, at)
        if match is None or match.end() == at:
            raise UntranslatableError(
                "shape", f"the parameters of a recipe cannot be read: {text.strip()[:80]}"
            )
        found.append(Parameter(name=match[3], sign=match[1], is_exported=bool(match[2]), default=match[4]))
        at = match.end()
    return found


def _needs(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return the recipes that stand behind the colon, with their arguments as texts of expressions."""
    found = []
    for match in re.finditer(
        r"\(([A-Za-z_][\w:-]*)((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)|([A-Za-z_][\w:-]*)", text
    ):
        name = match[1] or match[3]
        args = []
        at, rest = 0, match[2] or ""
        pattern = re.compile(
            r"""\s*("(?:\\.|[^"\\])*"|'[^']*'|`[^`]*`|\((?:[^()]|\([^()]*\))*\)|[A-Za-z_][\w-]*(?:\([^)]*\))?)"""
        )
        while rest[at:].strip():
            one = pattern.match(rest, at)
            if one is None:
                raise UntranslatableError(
                    "shape", f"the arguments of {name} cannot be read: {rest.strip()[:80]}"
                )
            args.append(one[1])
            at = one.end()
            while joining := re.match(r"\s*[+/]\s*", rest[at:]):
                more = pattern.match(rest, at + joining.end())
                if more is None:
                    raise UntranslatableError(
                        "shape", f"the arguments of {name} cannot be read: {rest.strip()[:80]}"
                    )
                args[-1] = f"{args[-1]} {joining[0].strip()} {more[1]}"
                at = more.end()
        found.append((name, tuple(args)))
    return found


def convert_justfile(text: str, found: Findings, jobs: Collection[str] = ()) -> DraftPlan:
    """Return the plan that a justfile becomes; `jobs` are the wanted recipes, none: the default."""
    justfile = Justfile(found)
    try:
        justfile.read(text, found.file)
        return justfile.convert(jobs)
    except UntranslatableError as why:
        justfile.here.refuse(why.code, why.message, justfile.evaluator.place)
        return DraftPlan()
    except RecursionError:
        justfile.here.refuse("too-large", "the file is nested too deeply", Node(SCALAR, "", 1, 1))
        return DraftPlan()
