"""A justfile as a plan: a recipe is a step, what it needs comes before it, its parameters are those of the plan."""

from __future__ import annotations

import os
import re
import shlex

from planrun.convert.choice import choose, tell
from planrun.convert.draft import DraftPlan, DraftStep
from planrun.convert.reader import Findings, UntranslatableError
from planrun.convert.recipes.expressions import Evaluator, tokens_of
from planrun.convert.recipes.scripts import (
    NAME,
    SAFE,
    Command,
    Param,
    Piece,
    Shell,
    give,
    joined,
    move,
    quoted_text,
    script_of,
    template_of,
)
from planrun.convert.recipes.sequence import Order, Recipe
from planrun.errors import InvalidInput
from planrun.model.record import Record
from planrun.plan.problems import did_you_mean
from planrun.plan.yaml.file import read_source
from planrun.plan.yaml.node import SCALAR, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Hashable
    from typing import Any

    from planrun.convert.recipes.expressions import Token

    Argument = tuple[Piece, ...]

_HEAD = re.compile(r"(@?)([A-Za-z_][\w-]*)(?=[\s:*+$])(.*)\Z", re.DOTALL)
_SET = re.compile(r"(export\s+)?([A-Za-z_][\w-]*)\s*:=\s*(.*)\Z", re.DOTALL)
_SYSTEMS = frozenset(
    ("linux", "unix", "windows", "macos", "openbsd", "freebsd", "netbsd", "dragonfly", "android")
)
_ATTRIBUTES = frozenset((
    "private", "group", "doc", "no-cd", "working-directory", "no-exit-message", "exit-message", "default", "confirm",
    "positional-arguments", "script", "parallel", "metadata", "extension", "no-quiet", *_SYSTEMS,
))  # fmt: skip
_SETTINGS = frozenset((
    "shell", "dotenv-load", "dotenv-filename", "dotenv-path", "dotenv-required", "export", "positional-arguments",
    "working-directory", "quiet", "fallback", "ignore-comments", "allow-duplicate-recipes", "tempdir", "unstable",
    "allow-duplicate-variables", "script-interpreter", "no-exit-message", "windows-shell", "windows-powershell",
))  # fmt: skip
_POSIX = frozenset(("sh", "bash", "dash", "ash", "ksh", "zsh"))
_INTERPRETERS = re.compile(r"(?:python[\d.]*|node|perl|ruby)\Z")
_LISTS = re.compile(
    r"@?(?:just|\{\{ *just_executable\(\) *\}\})(?: +(?:--list|-l|--choose|--summary|--unsorted|-u|--list-submodules))+"
)
MAX_FILES = 50
TOP = Node(SCALAR, "", 1, 1)


class Parameter(Record):
    """A parameter of a recipe; `sign` is `*` or `+` where it takes several words."""

    name: str
    sign: str = ""
    is_exported: bool = False
    default: tuple[Token, ...] | None = None


class Entry(Record):
    """A recipe as it stands in the file; `text` is all of it."""

    name: str
    place: Node
    file: str
    text: str
    params: tuple[Parameter, ...] = ()
    before: tuple[tuple[str, tuple[Token, ...]], ...] = ()
    after: tuple[tuple[str, tuple[Token, ...]], ...] = ()
    body: tuple[str, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    title: str = ""

    def attribute(self, name: str) -> str | None:
        """Return the text of an attribute, "" for one without; None where it has none of this name."""
        return next((value for key, value in self.attributes if key == name), None)


class Justfile:
    """One justfile with what it imports, and its modules, whose recipes have the names `prefix` and theirs."""

    def __init__(self, found: Findings, frozen: set[str], plan: DraftPlan, prefix: str = "") -> None:
        self.found = found
        self.here = found  # of the file that is read
        self.plan = plan
        self.prefix = prefix
        self.place = TOP
        self.evaluator = Evaluator(frozen, lambda code, message: self.here.differs(code, message, self.place))
        self.evaluator.step = f"{prefix}variables".replace("::", "_")
        self.recipes: dict[str, Entry] = {}
        self.aliases: dict[str, str] = {}
        self.settings: dict[str, str] = {}
        self.exported: list[str] = []
        self.modules: dict[str, Justfile] = {}
        self.own: dict[str, Any] = {}  # keys of all its steps
        self.unsure = ""  # why nothing of the file is certain
        self.files = 0
        self.given: dict[str, str] = {}  # parameters of the plan, and the recipes whose parameters they are

    # Reading.

    def read(self, text: str, file: str) -> None:
        """Read a file."""
        before, self.here = self.here, self.found.of(file)
        lines = text.replace("\r\n", "\n").split("\n")
        at, comment, attributes, start = 0, "", [], 0
        while at < len(lines):
            number, line = at + 1, lines[at]
            at += 1
            if not line.strip() or line.lstrip().startswith("#"):
                comment = line.strip().lstrip("#! ") if line.strip() else ""
                continue
            while at < len(lines) and (line.rstrip().endswith("\\") or _is_open(line)):
                line = (
                    f"{line.rstrip()[:-1]} {lines[at]}"
                    if line.rstrip().endswith("\\")
                    else f"{line}\n{lines[at]}"
                )
                at += 1
            self.place = Node(SCALAR, "", number, 1)
            start = start if attributes else number - 1
            try:
                if line.startswith("["):
                    line, more = _attributes(line)
                    attributes += more
                    if not line.strip():
                        continue
                end = at
                while end < len(lines) and (not lines[end].strip() or lines[end][:1] in " \t"):
                    end += 1
                head = _HEAD.match(line)
                is_recipe = head is not None and not _SET.match(line) and ":" in head[3]
                if (
                    is_recipe
                    and head is not None
                    and not re.match(r"(?:set|alias|import\??|mod\??)\s+[\"'\w]", line)
                ):
                    whole = "\n".join(lines[start:end]).rstrip()
                    self._recipe(head[2], head[3], lines[at:end], tuple(attributes), comment, whole)
                    at = end
                else:
                    self._statement(line.strip(), file)
            except UntranslatableError as why:
                self.unsure = self.unsure or why.message
                self.here.todo(why.code, f"it makes all recipes uncertain: {why.message}", self.place)
            attributes, comment = [], ""
        self.here = before

    def _statement(self, line: str, file: str) -> None:
        word, _, rest = line.partition(" ")
        rest = rest.strip()
        if word == "set":
            name, _, value = rest.partition(":=")
            self.settings[name.strip()] = value.strip() or "true"
            if name.strip() not in _SETTINGS:
                raise UntranslatableError("setting", f"the setting `{name.strip()}`")
        elif word == "alias" and (match := re.match(r"([\w-]+)\s*:=\s*([\w:-]+)", rest)):
            self.aliases[match[1]] = match[2]
        elif word in ("import", "import?"):
            self._import(self._constant(rest), file, is_optional=word == "import?")
        elif word in ("mod", "mod?") and (
            match := re.match(r"([A-Za-z_][\w-]*)(?:\s+([\"'].+))?\s*(?:#.*)?\Z", rest)
        ):
            given = self._constant(match[2]) if match[2] else ""
            self._module(match[1], given, file, is_optional=word == "mod?")
        elif match := _SET.match(line):
            self.evaluator.texts[match[2]] = tokens_of(match[3])
            if match[1]:
                self.exported.append(match[2])
        else:
            raise UntranslatableError("shape", f"neither a variable nor a recipe: {line[:80]}")

    def _constant(self, text: str) -> str:
        return self.evaluator.known(self.evaluator.value(tokens_of(text), {}), "the name of a file")

    def _opened(self, path: str) -> str:
        self.files += 1
        if self.files > MAX_FILES:
            raise UntranslatableError("import", "too many files import each other")
        try:
            return read_source(path, "file").decode("utf-8", "replace")
        except InvalidInput as error:
            raise UntranslatableError("import", str(error)) from None

    def _import(self, name: str, file: str, *, is_optional: bool) -> None:
        path = os.path.normpath(os.path.join(os.path.dirname(file), os.path.expanduser(name)))
        if is_optional and not os.path.isfile(path):
            self.here.differs("import", f"the file {name} is not there, and is left out", self.place)
            return
        text, own, place = self._opened(path), dict(self.recipes), self.place
        self.read(text, path)
        self.place = place
        self.recipes |= own  # what the importing file says counts

    def _module(self, name: str, given: str, file: str, *, is_optional: bool) -> None:
        """Read a module: its recipes are called by its name, and run in its folder."""
        names = (
            f"{name}.just",
            f"{name}/mod.just",
            f"{name}/justfile",
            f"{name}/.justfile",
            f"{name}/Justfile",
        )
        if given:
            names = (
                given,
                *(f"{given}/{each}" for each in ("mod.just", "justfile", ".justfile", "Justfile")),
            )
        folder = os.path.dirname(file)
        path = next((path for each in names if os.path.isfile(path := os.path.join(folder, each))), None)
        if path is None:
            kind = "differs" if is_optional else "todo"
            getattr(self.here, kind)("mod", f"the module {name} is not there, and is left out", self.place)
            return
        text = self._opened(path)
        module = Justfile(self.found, self.evaluator.frozen, self.plan, f"{self.prefix}{name}::")
        module.files = self.files
        module.read(text, path)
        self.files = module.files
        inside = os.path.relpath(os.path.dirname(path) or ".", os.path.dirname(self.found.file) or ".")
        if inside != ".":
            module.own["workdir"] = inside
        self.modules[name] = module

    def _recipe(
        self,
        name: str,
        head: str,
        body: list[str],
        attributes: tuple[tuple[str, str], ...],
        comment: str,
        text: str,
    ) -> None:
        systems = {key for key, _ in attributes if key in _SYSTEMS}
        if systems and not systems & {"linux", "unix"}:
            self.here.differs(
                "other-machines", f"the recipe {name} is not for Linux, and is left out", self.place
            )
            return
        while body and not body[-1].strip():
            body = body[:-1]
        if body and not body[0].strip():
            raise UntranslatableError("shape", f"an empty line after the head of the recipe {name}")
        indent = next((each[: len(each) - len(each.lstrip())] for each in body if each.strip()), "")
        tokens = tokens_of(head)
        end = _colon(tokens)
        needs = list(_needs(tokens[end + 1 :]))
        split = needs.index(("&&", ())) if ("&&", ()) in needs else len(needs)
        self.recipes[name] = Entry(
            name=name, place=self.place, file=self.here.file, text=text, params=tuple(_parameters(tokens[:end])),
            before=tuple(needs[:split]), after=tuple(needs[split + 1 :]),
            body=tuple(each.removeprefix(indent) for each in body), attributes=attributes,
            title=dict(attributes).get("doc", "").strip("'\"") or comment,
        )  # fmt: skip

    # Converting.

    def convert(self, wanted: Collection[str]) -> None:
        """Fill the plan."""
        self.surround(self.plan.keys)
        order = Order(self.plan, self.found, self._find)
        for before, step in zip(self.plan.steps, self.plan.steps[1:], strict=False):
            step.wait(before.id)
        order.first = self.plan.steps[-1].id if self.plan.steps else ""
        wanted = [self.aliases.get(name, name) for name in wanted]
        for name in wanted:
            if self.entry(name) is None:
                hint = did_you_mean(name, self.recipes) or f"there are {', '.join(list(self.recipes)[:30])}"
                self.found.refuse("shape", f'there is no recipe "{name}"; {hint}', TOP)
                return
        names = list(wanted) or self._default()
        callable_ = {name for name in self._callable() if name not in names}
        if names:
            for name in names:
                order.run([self._key(name, ())])
            if callable_ and not wanted:
                others = f"{', '.join(sorted(callable_)[:20])}{' …' if len(callable_) > 20 else ''}"
                self.found.differs("recipe", f"only {names[0]} is converted; --job converts {others}", TOP)
        else:
            order.is_choice = self.is_choice = True
            ends = {name: last for name in self._callable() if (last := order.run([self._key(name, ())]))}
            if len(ends) > 1:
                tell(self.found, choose(self.plan, ends), "the default recipe only lists the others", TOP)
        self._give_parameters()

    is_choice = False

    def _give_parameters(self) -> None:
        values = {name: {"type": "string", "default": text} for name, text in self.evaluator.params.items()}
        self.plan.params = {**self.plan.params, **values}
        for module in self.modules.values():
            module._give_parameters()

    def surround(self, keys: dict[str, Any]) -> None:
        """Add the shell, the environment and the commands of variables to the keys of a plan, or of a module's steps."""
        try:
            self.shell, self.strict = _shell(self.settings.get("shell", ""))
            env = {
                name: template_of(self.evaluator.name(name), f"the variable {name}")
                for name in self._exports()
            }
            for name in self.evaluator.texts:
                if any(kind == "back" or text == "shell" for kind, text in self.evaluator.texts[name]):
                    self.evaluator.name(name)
            files = self._files_of_variables()
        except UntranslatableError as why:
            self.unsure = self.unsure or why.message
            self.shell, self.strict, env, files = "sh -u", False, {}, []
        if not self.prefix:
            keys["defaults"] = {"shell": self.shell, "timeout": "24h"}
        else:
            self.own["shell"] = self.shell
        if folder := self.settings.get("working-directory", "").strip("'\""):
            own = keys["defaults"] if not self.prefix else self.own
            own["workdir"] = os.path.normpath(os.path.join(self.own.get("workdir", ""), folder))
        for key, value in (("env", env), ("env_file", files)):
            if value and not self.unsure:
                (keys if not self.prefix else self.own)[key] = value
        if self.evaluator.outputs and not self.unsure:
            lines = []
            for name, script in self.evaluator.outputs.items():
                lines.append(f'{name}="$({script})" || exit')
                lines.append(f'printf \'{name}<<END\\n%s\\nEND\\n\' "${name}" >> "$PLANRUN_OUTPUT"')
            outputs = dict.fromkeys(self.evaluator.outputs, "string")
            step = DraftStep(
                self.plan.name(self.evaluator.step), run="\n".join(lines) + "\n", outputs=outputs
            )
            self.plan.add(step).keys.update(self.own)
        for module in self.modules.values():
            module.surround(keys)

    def _exports(self) -> list[str]:
        return list(self.evaluator.texts) if self.settings.get("export") == "true" else self.exported

    def _files_of_variables(self) -> list[str]:
        named = next(
            (self.settings[key] for key in ("dotenv-path", "dotenv-filename") if key in self.settings), ""
        )
        if not named and "true" not in (
            self.settings.get("dotenv-load"),
            self.settings.get("dotenv-required"),
        ):
            return []
        name = self._constant(named) if named else ".env"
        path = os.path.join(os.path.dirname(self.found.file), name)
        if not os.path.isfile(path):
            message = f"the file {name} is not there: where it is to be read, add `env_file: {name}`"
            self.found.todo("dotenv", message, TOP)
            return []
        text = read_source(path, "file").decode("utf-8", "replace")
        if any(re.search(r"[$`]", line) for line in text.split("\n") if not line.lstrip().startswith("#")):
            raise UntranslatableError("dotenv", f"just fills in variables in {name}, and planrun does not")
        self.found.differs("dotenv", f"{name} has to be there, and wins over the caller's environment", TOP)
        return [name]

    def entry(self, name: str) -> tuple[Justfile, Entry] | None:
        """Return a recipe and the file that it stands in; None where there is none of this name."""
        owner, sign, rest = name.partition("::")
        if sign:
            return self.modules[owner].entry(rest) if owner in self.modules else None
        entry = self.recipes.get(owner)
        return (self, entry) if entry is not None else None

    def _callable(self) -> list[str]:
        """Return the names of the recipes that a person can call."""
        own = [
            name for name, entry in self.recipes.items()
            if not name.startswith("_") and entry.attribute("private") is None and not _only_lists(entry)
        ]  # fmt: skip
        return [
            *own,
            *(f"{name}::{each}" for name, module in self.modules.items() for each in module._callable()),
        ]

    def _default(self) -> list[str]:
        marked = [each.name for each in self.recipes.values() if each.attribute("default") is not None]
        first = next((name for name, each in self.recipes.items() if each.file == self.found.file), "")
        name = (marked or [first])[0]
        return [name] if name and not _only_lists(self.recipes[name]) else []

    def _key(self, name: str, args: tuple[Argument, ...]) -> tuple[str, Hashable]:
        return (name, args)

    def _find(self, key: tuple[str, Any]) -> Recipe | None:
        name, args = key
        found = self.entry(name)
        if found is None:
            step = lambda step_id: self._abstract(
                DraftStep(step_id, title=name), f"there is no recipe `{name}`", None
            )  # noqa: E731
            return Recipe(name, TOP, step)
        own, entry = found
        if args[:1] == ("ask",):
            return Recipe(
                f"{name}.ask", entry.place, lambda step_id: DraftStep(step_id, ask={"question": args[1]})
            )
        own.is_choice = self.is_choice
        prefix = name.rpartition("::")[0]
        return own.recipe(entry, args, f"{prefix}::" if prefix else "")

    def recipe(self, entry: Entry, args: tuple[Argument, ...], prefix: str) -> Recipe:
        """Return a recipe with its arguments; one that is not certain becomes an abstract step."""
        try:
            if self.unsure:
                raise UntranslatableError("just", self.unsure)
            given, lists = self._given(entry, args)
            recipe = Recipe(
                f"{prefix}{entry.name}", entry.place, lambda step_id: self._step(step_id, entry, given, lists)
            )
            for needs, keys in ((entry.before, recipe.before), (entry.after, recipe.after)):
                for name, tokens in needs:
                    values = tuple(tuple(each) for each in self.evaluator.values(list(tokens), given))
                    keys.append((f"{prefix}{name}", values))
        except UntranslatableError as why:
            reason = why.message
            return Recipe(
                f"{prefix}{entry.name}", entry.place,
                lambda step_id: self._abstract(DraftStep(step_id), reason, entry),
            )  # fmt: skip
        if (question := entry.attribute("confirm")) is not None:
            text = question.strip("'\"") or f"Run recipe `{entry.name}`?"
            recipe.before.insert(0, (f"{prefix}{entry.name}", ("ask", text)))
        return recipe

    def _given(
        self, entry: Entry, args: tuple[Argument, ...]
    ) -> tuple[dict[str, list[Piece]], dict[str, list[str]]]:
        """Return the values of a recipe's parameters, and the words of each for a shell; raises UntranslatableError."""
        given: dict[str, list[Piece]] = {}
        words: dict[str, list[str]] = {}
        rest = [list(each) for each in args]
        for param in entry.params:
            if param.sign and rest:
                values, rest = rest, []
            elif rest:
                values = [rest.pop(0)]
            elif args and param.default is None and param.sign != "*":
                raise UntranslatableError("just", f"`{param.name}` gets no value")
            else:
                values = self._from_run(entry, param, given, is_top=not args)
            pieces: list[Piece] = []
            for value in values:
                pieces += [*([" "] if pieces else []), *value]
            given[param.name] = pieces or [""]
            words[param.name] = [_word(value) for value in values]
        if rest:
            raise UntranslatableError("just", f"{entry.name} takes {len(entry.params)} arguments")
        return given, words

    def _from_run(
        self, entry: Entry, param: Parameter, given: dict[str, list[Piece]], *, is_top: bool
    ) -> list[list[Piece]]:
        """Return the values of a parameter that no other recipe gives: its default, or what a run gives."""
        default = self.evaluator.value(list(param.default), given) if param.default is not None else None
        name = param.name.replace("-", "_")
        whole = default is None or (len(default) == 1 and isinstance(default[0], (str, Param)))
        text = (
            ""
            if default is None or not whole
            else default[0].text
            if isinstance(default[0], Param)
            else str(default[0])
        )
        if not is_top or not NAME.match(name) or not whole or (text and not SAFE.match(text)):
            return [] if default is None else [default]
        if self.given.setdefault(name, entry.name) != entry.name or name in self.evaluator.texts:
            name = f"{entry.name.replace('-', '_')}_{name}"
        fragment: dict[str, Any] = {"type": "string", "default": text}
        if param.sign:
            fragment = {"type": "array", "items": {"type": "string"}, "default": [text] if text else []}
            if param.sign == "+" and default is None:
                fragment |= {"minItems": 1} if not self.is_choice else {}
                fragment |= {"required": True}
                del fragment["default"]
            message = f"each word of {param.name} stays one word; just would split it at its blanks"
            self.found.differs("arguments", message, entry.place)
        elif default is None and not self.is_choice:
            fragment = {"type": "string", "required": True}
        if self.is_choice and fragment.pop("required", False):
            fragment["default"] = []
        self.plan.params[name] = fragment
        if param.sign:
            return [[Shell(text=f"${{{{ params.{name} | sh }}}}", is_bare=True)]]
        return [[Param(name=name, text=text)]]

    def _step(
        self, step_id: str, entry: Entry, given: dict[str, list[Piece]], words: dict[str, list[str]]
    ) -> DraftStep | None:
        step = DraftStep(
            step_id, **({"title": entry.title[:200]} if entry.title.isprintable() and entry.title else {})
        )
        step.keys.update(self.own)
        if not any(line.strip() for line in entry.body):
            return None
        try:
            self._fill(step, entry, given, words)
            give(step, [Param(name=name, step=self.evaluator.step) for name in self.evaluator.outputs])
        except UntranslatableError as why:
            return self._abstract(step, why.message, entry)
        return step

    def _fill(
        self, step: DraftStep, entry: Entry, given: dict[str, list[Piece]], words: dict[str, list[str]]
    ) -> None:
        """Write the script of a recipe; raises UntranslatableError."""
        for name in dict(entry.attributes):
            if name not in _ATTRIBUTES:
                raise UntranslatableError("attribute", f"the attribute `{name}`")
        if (folder := entry.attribute("working-directory")) is not None:
            step.keys["workdir"] = os.path.normpath(
                os.path.join(self.own.get("workdir", ""), folder.strip("'\""))
            )
        exports = [each for each in entry.params if each.is_exported or self.settings.get("export") == "true"]
        if exports:
            env = {each.name: template_of(given[each.name], each.name) for each in exports}
            step.keys["env"] = {**step.keys.get("env", {}), **env}
        first = []
        required = [each for each in entry.params if each.default is None and self.is_choice]
        for piece in (piece for each in required for piece in given[each.name] if isinstance(piece, Param)):
            if not piece.step and self.plan.params.get(piece.name, {}).get("default") == "":
                first.append(
                    f'[ -n "${{{{ {piece.path} }}}}" ] || {{ echo "give --param {piece.name}=…" >&2; exit 2; }}'
                )
        is_positional = self.settings.get("positional-arguments") == "true"
        if is_positional or entry.attribute("positional-arguments") is not None:
            if entry.params:
                first.append(
                    " ".join(["set --", *(word for each in entry.params for word in words[each.name])])
                )
        if entry.body[0].startswith("#!") or entry.attribute("script") is not None:
            self._whole(step, entry, given, first)
            return
        commands, at = [], 0
        while at < len(entry.body):
            line = entry.body[at]
            at += 1
            while line.endswith("\\") and at < len(entry.body):
                line = line[:-1] + entry.body[at].lstrip()
                at += 1
            signs = line[: len(line) - len(line.lstrip("@-"))]
            text = line[len(signs) :]
            if text.strip() and not (text.startswith("#") and self.settings.get("ignore-comments") == "true"):
                commands.append(Command(
                    text=script_of(self.evaluator.filled(text, given)), is_tolerated="-" in signs
                ))  # fmt: skip
        step.keys["run"] = joined(commands, strict=self.strict, first=first)

    def _whole(self, step: DraftStep, entry: Entry, given: dict[str, list[Piece]], first: list[str]) -> None:
        """Write the script of a recipe that one program runs; raises UntranslatableError."""
        body = list(entry.body)
        if (named := entry.attribute("script")) is not None:
            text = named or self.settings.get("script-interpreter", "").strip("[]") or "'sh', '-eu'"
            words = [token.strip("'\"") for kind, token in tokens_of(text) if kind == "string"]
        else:
            words = shlex.split(
                self.evaluator.known(self.evaluator.filled(body.pop(0)[2:], given), "a shebang line")
            )
            if os.path.basename(words[0]) == "env":
                words = words[2:] if words[1:2] == ["-S"] else words[1:]
        program = os.path.basename(words[0]) if words else ""
        pieces = self.evaluator.filled("\n".join(body).strip("\n") + "\n", given)
        if program in _POSIX:
            bare = len(words) == 1 and "/" not in words[0]
            step.keys["shell"] = shlex.join([*words, *(["+e"] if bare else [])])
            step.keys["run"] = "\n".join([*first, script_of(pieces)])
        elif _INTERPRETERS.match(program) and len(words) == 1 and not first:
            step.keys["shell"] = words[0]
            step.keys["run"] = template_of(pieces, "a part of a script")
        else:
            raise UntranslatableError("shell", f"the program `{' '.join(words)}` runs it")

    def _abstract(self, step: DraftStep, why: str, entry: Entry | None) -> DraftStep:
        """Leave a recipe to a person or a model, with its text."""
        place = entry.place if entry is not None else self.place
        found = self.found.of(entry.file) if entry is not None else self.found
        step.make_abstract(found.todo("recipe", f"the recipe {step.id}: {why}", place, step.id))
        if entry is not None:
            step.keys["description"] = entry.text[:4000]
        return step


def _only_lists(entry: Entry) -> bool:
    texts = [line.strip() for line in entry.body if line.strip()]
    lists = [bool(_LISTS.fullmatch(text)) for text in texts]
    return any(lists) and not entry.before and all(is_list or re.match(r"@?echo\b", text) for is_list, text in zip(lists, texts, strict=True))  # fmt: skip


def _word(value: list[Piece]) -> str:
    """Return one argument as one word of a shell."""
    if all(isinstance(piece, str) for piece in value):
        return shlex.quote("".join(map(str, value)))
    if len(value) == 1 and isinstance(value[0], Param):
        return f"${{{{ {value[0].path} | sh }}}}"
    if len(value) == 1 and isinstance(value[0], Shell) and value[0].is_bare:
        return value[0].text
    return f'"{quoted_text(value)}"'


def _shell(text: str) -> tuple[str, bool]:
    """Return the shell of all lines, and whether it ends at the first failure; raises UntranslatableError."""
    words = [token[1:-1] for kind, token in tokens_of(text.strip().strip("[]")) if kind == "string"] or [
        "sh",
        "-cu",
    ]
    kept = [words[0]]
    for word in words[1:]:
        kept.append(re.sub(r"c", "", word) if re.fullmatch(r"-[a-z]*c[a-z]*", word) else word)
    kept = [word for word in kept if word != "-"]
    if os.path.basename(kept[0]) not in _POSIX:
        raise UntranslatableError("shell", f"the shell `{kept[0]}`")
    if len(kept) == 1 and "/" not in kept[0]:
        kept.append("+e")
    return shlex.join(kept), any(re.fullmatch(r"-[a-z]*e[a-z]*|errexit", word) for word in kept[1:])


def _is_open(line: str) -> bool:
    """Say whether brackets or strings of a line that is no text of a recipe are still open."""
    rest = re.sub(r"'''.*?'''|\"\"\".*?\"\"\"|```.*?```", "", line, flags=re.DOTALL)
    if re.search(r"'''|\"\"\"|```", rest):
        return True
    rest = re.sub(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|`[^`]*`|#.*", "", rest)
    return rest.count("(") + rest.count("[") + rest.count("{") > rest.count(")") + rest.count(
        "]"
    ) + rest.count("}")


def _attributes(line: str) -> tuple[str, list[tuple[str, str]]]:
    """Return what stands behind `[…]` in a line, and names and arguments of the attributes."""
    match = re.match(r"\[((?:'[^']*'|\"(?:\\.|[^\"\\])*\"|[^\]'\"])*)\]\s*(?:#.*\Z)?", line, re.DOTALL)
    if match is None:
        raise UntranslatableError("attribute", f"it cannot be read: {line[:80]}")
    pattern = r"([a-z-]+)\s*(?:\(((?:'[^']*'|\"(?:\\.|[^\"\\])*\"|[^)'\"])*)\)|:\s*('[^']*'|\"[^\"]*\"))?\s*(?:,|\Z)"
    return line[match.end() :], [
        (each[1], each[2] or each[3] or "") for each in re.finditer(pattern, match[1].strip())
    ]


def _colon(tokens: list[Token]) -> int:
    """Return where the colon stands that ends the parameters; raises UntranslatableError."""
    depth = 0
    for at, (kind, text) in enumerate(tokens):
        depth += (kind == "sign") * ((text in "({[") - (text in ")}]"))
        if (kind, text, depth) == ("sign", ":", 0):
            return at
    raise UntranslatableError("shape", "a recipe without a colon")


def _parameters(tokens: list[Token]) -> list[Parameter]:
    found, at = [], 0
    while at < len(tokens):
        sign = is_exported = ""
        while tokens[at : at + 1] and tokens[at][1] in ("*", "+", "$"):
            sign, is_exported = (sign, "$") if tokens[at][1] == "$" else (tokens[at][1], is_exported)
            at += 1
        if at >= len(tokens) or tokens[at][0] != "name":
            raise UntranslatableError("shape", "the parameters of a recipe cannot be read")
        name, at = tokens[at][1], at + 1
        default = None
        if tokens[at : at + 1] == [("sign", "=")]:
            start = at = at + 1
            at += 1
            if at < len(tokens) and (tokens[start][1] == "(" or tokens[at] == ("sign", "(")):
                at = _closing(tokens, start if tokens[start][1] == "(" else at) + 1
            default = tuple(tokens[start:at])
        found.append(Parameter(name=name, sign=sign, is_exported=bool(is_exported), default=default))
    return found


def _closing(tokens: list[Token], at: int) -> int:
    depth = 0
    for end in range(at, len(tokens)):
        depth += (tokens[end] == ("sign", "(")) - (tokens[end] == ("sign", ")"))
        if not depth:
            return end
    raise UntranslatableError("shape", "a bracket is not closed")


def _needs(tokens: list[Token]) -> list[tuple[str, tuple[Token, ...]]]:
    """Return the names of recipes that one needs, with the expressions that it gives them; `&&` parts the later ones."""
    found: list[tuple[str, tuple[Token, ...]]] = []
    at = 0
    while at < len(tokens):
        if tokens[at] == ("sign", "&&"):
            found.append(("&&", ()))
            at += 1
            continue
        end = _closing(tokens, at) if tokens[at] == ("sign", "(") else at
        inner = tokens[at + 1 : end] if end > at else tokens[at : at + 1]
        width = 1
        if end == at:
            while tokens[at + width : at + width + 1] == [("sign", "::")]:
                width += 2
            inner = tokens[at : at + width]
        name = 1
        while inner[name : name + 1] == [("sign", "::")]:
            name += 2
        if not inner or inner[0][0] != "name":
            raise UntranslatableError("shape", "what a recipe needs cannot be read")
        found.append(("".join(text for _, text in inner[:name]), tuple(inner[name:])))
        at = end + 1 if end > at else at + width
    return found


def convert_justfile(text: str, found: Findings, jobs: Collection[str] = ()) -> DraftPlan:
    """Return the plan that a justfile becomes; `jobs` are the wanted recipes, none: the default."""
    frozen: set[str] = set()
    for code, message in (
        ("timeout", "a step has 24 hours; just lets a command run as long as it takes"),
        ("environment", "variables that look like credentials are not inherited; see `inherit_env`"),
        ("folder", "recipes run where planrun is started: the folder of the justfile"),
    ):
        found.differs(code, message, TOP)
    while True:  # again where the value of a parameter decides what the plan is
        aside, plan = Findings(found.file, found.accepted), DraftPlan()
        justfile = Justfile(aside, frozen, plan)
        before = set(frozen)
        try:
            justfile.read(text, found.file)
            justfile.convert(jobs)
        except (RecursionError, UntranslatableError) as why:
            aside.refuse("too-large", getattr(why, "message", "the file is nested too deeply"), TOP)
        if frozen == before:
            move(aside, found)
            return plan
