"""A justfile as a plan: a recipe is a step, what it needs comes before it, its parameters are those of the plan."""

from __future__ import annotations

import os
import re
import shlex

from planrun.convert.draft import DraftPlan, DraftStep
from planrun.convert.reader import Findings, UntranslatableError
from planrun.convert.recipes.expressions import Evaluator, tokens_of
from planrun.convert.recipes.scripts import (
    INTERPRETERS,
    NAME,
    POSIX,
    SAFE,
    Piece,
    ShellText,
    Value,
    env_files,
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
    from collections.abc import Collection
    from typing import Any

    from planrun.convert.recipes.expressions import Token

    Argument = tuple[Piece, ...]
    Need = tuple[str, tuple[Token, ...]]

_HEAD = re.compile(r"@?([A-Za-z_][\w-]*)(?=[\s:*+$])(.*)\Z", re.DOTALL)
_SET = re.compile(r"(export\s+)?([A-Za-z_][\w-]*)\s*:=\s*(.*)\Z", re.DOTALL)
_WORD = re.compile(r"(?:set|alias|import\??|mod\??)\s+[\"'\w]")
_SYSTEMS = frozenset(
    ("linux", "unix", "windows", "macos", "openbsd", "freebsd", "netbsd", "dragonfly", "android")
)
_ATTRIBUTES = frozenset((
    "private", "group", "doc", "no-cd", "working-directory", "no-exit-message", "exit-message", "default", "confirm",
    "positional-arguments", "parallel", "metadata", "no-quiet", *_SYSTEMS,
))  # fmt: skip
_SETTINGS = frozenset((
    "shell", "dotenv-load", "dotenv-filename", "dotenv-path", "dotenv-required", "export", "positional-arguments",
    "working-directory", "quiet", "fallback", "ignore-comments", "tempdir", "unstable",
    "allow-duplicate-variables", "script-interpreter", "no-exit-message", "windows-shell", "windows-powershell",
))  # fmt: skip
_LISTS = re.compile(
    r"@?(?:just|\{\{ *just_executable\(\) *\}\})(?: +(?:--list|-l|--choose|--summary|--unsorted|-u|--list-submodules))+"
)
TOP = Node(SCALAR, "", 1, 1)


class Parameter(Record):
    """A parameter of a recipe; `sign` has `*` or `+` where it takes several words, `$` where it is exported."""

    name: str
    sign: str = ""
    default: tuple[Token, ...] | None = None


class Entry(Record):
    """A recipe as it stands in the file; `text` is all of it."""

    name: str
    place: Node
    text: str
    params: tuple[Parameter, ...]
    before: tuple[Need, ...]
    after: tuple[Need, ...]
    body: tuple[str, ...]
    attributes: dict[str, str]
    title: str

    @property
    def only_lists(self) -> bool:
        """Whether it does nothing but list the others."""
        texts = [line.strip() for line in self.body if line.strip()]
        lists = [text for text in texts if not re.match(r"@?echo\b", text)]
        return bool(lists) and not self.before and all(map(_LISTS.fullmatch, lists))


class Justfile:
    """One justfile."""

    def __init__(self, found: Findings) -> None:
        self.found = found
        self.plan = DraftPlan()
        self.place = TOP
        self.evaluator = Evaluator(found)
        self.recipes: dict[str, Entry] = {}
        self.aliases: dict[str, str] = {}
        self.settings: dict[str, str] = {}
        self.exported: list[str] = []
        self.unsure = ""  # why nothing of the file is certain
        self.is_choice = False
        self.owners: dict[str, str] = {}  # parameters of the plan, and the recipes that they belong to

    # Reading.

    def read(self, text: str) -> None:
        """Read the file."""
        lines = text.replace("\r\n", "\n").split("\n")
        at, comment, start = 0, "", -1
        attributes: dict[str, str] = {}
        while at < len(lines):
            number, line = at, lines[at]
            at += 1
            if not line.strip() or line.lstrip().startswith("#"):
                comment = line.strip().lstrip("#! ")
                continue
            while at < len(lines) and (line.rstrip().endswith("\\") or _is_open(line)):
                line = (
                    f"{line.rstrip()[:-1]} {lines[at]}"
                    if line.rstrip().endswith("\\")
                    else f"{line}\n{lines[at]}"
                )
                at += 1
            self.place = Node(SCALAR, "", number + 1, 1)
            start = start if attributes else number
            try:
                if line.startswith("["):
                    line = _attributes(line, attributes)
                    if not line.strip():
                        continue
                head = _HEAD.match(line)
                if head is not None and ":" in head[2] and not _SET.match(line) and not _WORD.match(line):
                    end = at
                    while end < len(lines) and (not lines[end].strip() or lines[end][:1] in " \t"):
                        end += 1
                    whole = "\n".join(lines[start:end])
                    self._recipe(head[1], head[2], lines[at:end], attributes, comment=comment, text=whole)
                    at = end
                else:
                    self._statement(line.strip())
            except UntranslatableError as why:
                self.unsure = self.unsure or why.message
                self.found.todo(why.code, f"it makes all recipes uncertain: {why.message}", self.place)
            attributes, comment = {}, ""

    def _statement(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        rest = rest.strip()
        if word == "set":
            name, _, value = (part.strip() for part in rest.partition(":="))
            self.settings[name] = value or "true"
            if name not in _SETTINGS:
                raise UntranslatableError("setting", f"the setting `{name}`")
        elif word == "alias" and (match := re.match(r"([\w-]+)\s*:=\s*([\w:-]+)", rest)):
            self.aliases[match[1]] = match[2]
        elif word == "import?" and not os.path.exists(
            os.path.join(os.path.dirname(self.found.file), self._constant(rest))
        ):
            self.found.differs("import", f"the file {rest} is not there, and is left out", self.place)
        elif word in ("mod", "mod?"):
            self.found.todo(
                "mod", f"the recipes of the module {rest} are left out: convert its file", self.place
            )
        elif word in ("import", "import?"):
            raise UntranslatableError("import", f"it imports {rest}")
        elif match := _SET.match(line):
            self.evaluator.texts[match[2]] = tokens_of(match[3])
            self.exported += [match[2]] if match[1] else []
        else:
            raise UntranslatableError("shape", f"neither a variable nor a recipe: {line[:80]}")

    def _constant(self, text: str) -> str:
        return known(self.evaluator.value(tokens_of(text), {}), "the name of a file")

    def _recipe(  # noqa: PLR0913
        self, name: str, head: str, body: list[str], attributes: dict[str, str], *, comment: str, text: str
    ) -> None:
        systems = attributes.keys() & _SYSTEMS
        if systems and not systems & {"linux", "unix"}:
            self.found.differs(
                "other-machines", f"the recipe {name} is not for Linux, and is left out", self.place
            )
            return
        while body and not body[-1].strip():
            body = body[:-1]
        if body and not body[0].strip():
            raise UntranslatableError("shape", f"an empty line after the head of the recipe {name}")
        indent = body[0][: len(body[0]) - len(body[0].lstrip())] if body else ""
        tokens = tokens_of(head)
        end = _colon(tokens)
        needs = _needs(tokens[end + 1 :])
        split = needs.index(("&&", ())) if ("&&", ()) in needs else len(needs)
        if name in self.recipes:
            raise UntranslatableError("recipe", f"the recipe {name} is there twice")
        self.recipes[name] = Entry(
            name=name, place=self.place, text=text.rstrip(),
            params=tuple(_parameters(tokens[:end])),
            before=tuple(needs[:split]), after=tuple(needs[split + 1 :]), attributes=dict(attributes),
            body=tuple(each.removeprefix(indent) for each in body),
            title=attributes.get("doc", "").strip("'\"") or comment,
        )  # fmt: skip

    # Converting.

    def convert(self, wanted: Collection[str]) -> DraftPlan:
        """Return the plan."""
        self._head()
        order = Order(self.plan, self._find)
        order.first = self.plan.steps[-1].id if self.plan.steps else ""
        first = next(iter(self.recipes), "")
        marked = next((name for name, each in self.recipes.items() if "default" in each.attributes), first)
        names = [self.aliases.get(name, name) for name in wanted]
        if is_known(self.found, "recipe", names, self.recipes, TOP):
            shown = [
                name for name, each in self.recipes.items()
                if name != marked and not name.startswith("_") and "private" not in each.attributes
                and not each.only_lists
            ]  # fmt: skip
            if not names and marked and not self.recipes[marked].only_lists:
                names = [marked]
            order.is_choice = self.is_choice = not names
            others = [] if wanted else shown
            emit(self.plan, self.found, "recipe", wanted=names, others=others, run=order.run, place=TOP)
        return self.plan

    def _head(self) -> None:
        """Add what all steps share: the shell, the environment, and a step for the commands of variables."""
        keys, texts = self.plan.keys, self.evaluator.texts
        keys["defaults"] = {"shell": "sh -u", "timeout": "24h"}
        self.strict = False
        try:
            words = [
                text[1:-1]
                for kind, text in tokens_of(self.settings.get("shell", "").strip("[] "))
                if kind == "string"
            ]
            shell, self.strict = shell_of(words or ["sh", "-cu"])
            keys["defaults"]["shell"] = shlex.join(shell)
            if folder := self.settings.get("working-directory"):
                keys["defaults"]["workdir"] = self._constant(folder)
            names = texts if self.settings.get("export") == "true" else self.exported
            env = {name: template_of(self.evaluator.name(name), f"the variable {name}") for name in names}
            if any("${{ steps." in value for value in env.values()):
                raise UntranslatableError("export", "the output of a command is exported")
            for name in texts:
                if any(kind == "back" for kind, _ in texts[name]):
                    self.evaluator.name(name)
            keys |= {
                key: value for key, value in (("env", env), ("env_file", self._files_of_variables())) if value
            }
        except UntranslatableError as why:
            self.unsure = self.unsure or why.message
        if self.evaluator.outputs and not self.unsure:
            lines = []
            for name, script in self.evaluator.outputs.items():
                lines.append(f'{name}="$({script})" || exit')
                lines.append(f'printf \'{name}<<END\\n%s\\nEND\\n\' "${name}" >> "$PLANRUN_OUTPUT"')
            outputs = dict.fromkeys(self.evaluator.outputs, "string")
            self.plan.add(
                DraftStep(self.plan.name("variables"), run="\n".join(lines) + "\n", outputs=outputs)
            )

    def _files_of_variables(self) -> list[str]:
        named = next(
            (self.settings[key] for key in ("dotenv-path", "dotenv-filename") if key in self.settings), ""
        )
        is_wanted = named or "true" in (
            self.settings.get("dotenv-load"),
            self.settings.get("dotenv-required"),
        )
        return env_files(self.found, [self._constant(named) if named else ".env"], TOP) if is_wanted else []

    def _find(self, key: tuple[str, Any]) -> Recipe:
        """Return a recipe with its arguments; one that is not certain becomes an abstract step."""
        name, args = key
        entry = self.recipes.get(name)
        place = entry.place if entry is not None else TOP
        if args and args[0] == "ask":
            return Recipe(f"{name}.ask", place, lambda step_id: DraftStep(step_id, ask={"question": args[1]}))
        try:
            if self.unsure or entry is None:
                raise UntranslatableError("just", self.unsure or "it is not in the file")
            given = self._given(entry, args)
            recipe = Recipe(name, place, lambda step_id: self._step(step_id, entry, given))
            for needs, keys in ((entry.before, recipe.before), (entry.after, recipe.after)):
                for other, tokens in needs:
                    values = self.evaluator.values(list(tokens), given)
                    keys.append((other, tuple(tuple(each) for each in values)))
        except UntranslatableError as why:
            reason = why.message
            recipe = Recipe(name, place, lambda step_id: self._abstract(DraftStep(step_id), reason, entry))
            if entry is None:
                return recipe
            recipe.before = [(other, ()) for other, tokens in entry.before if not tokens]
            recipe.after = [(other, ()) for other, tokens in entry.after if not tokens]
        if (question := entry.attributes.get("confirm")) is not None:
            recipe.before.insert(0, (name, ("ask", question.strip("'\"") or f"Run recipe `{name}`?")))
        return recipe

    def _given(self, entry: Entry, args: tuple[Argument, ...] | None) -> dict[str, list[Piece]]:
        """Return the values of a recipe's parameters, those of a plan where a run gives them."""
        given: dict[str, list[Piece]] = {}
        rest = [list(each) for each in args or ()]
        for param in entry.params:
            is_variadic = bool(param.sign.strip("$"))
            if rest:
                values, rest = (rest, []) if is_variadic else (rest[:1], rest[1:])
                given[param.name] = merged(
                    [piece for each in values for piece in (" ", *each)][1:], self.found
                )
            elif args is not None and param.default is None and "*" not in param.sign:
                raise UntranslatableError("just", f"`{param.name}` gets no value")
            else:
                given[param.name] = self._from_run(entry, param, given, is_top=args is None)
        if rest:
            raise UntranslatableError("just", f"{entry.name} takes {len(entry.params)} arguments")
        return given

    def _from_run(
        self, entry: Entry, param: Parameter, given: dict[str, list[Piece]], *, is_top: bool
    ) -> list[Piece]:
        """Return the value of a parameter that no other recipe gives: its default, or what a run gives."""
        default: list[Piece] = [""]
        if param.default is not None:
            default = self.evaluator.value(list(param.default), given)
        name, text = param.name.replace("-", "_"), (*default, "")[0]
        is_text = len(default) < 2 and isinstance(text, str) and (not text or SAFE.match(text))
        if not is_top or not NAME.match(name) or not is_text:
            return default
        if self.owners.setdefault(name, entry.name) != entry.name:
            name = f"{entry.name.replace('-', '_')}_{name}"
        fragment: dict[str, Any] = {"type": "string", "default": text}
        if param.sign.strip("$"):
            fragment = {"type": "array", "items": {"type": "string"}, "default": [text] if text else []}
            message = f"each word of {param.name} stays one word; just would split it at its blanks"
            self.found.differs("arguments", message, entry.place)
        if param.default is None and "*" not in param.sign and not self.is_choice:
            fragment |= {"required": True}
            del fragment["default"]
        self.plan.params[name] = fragment
        if param.sign.strip("$"):
            return [ShellText(text=f"${{{{ params.{name} | sh }}}}", is_bare=True)]
        return [Value(expression=f"params.{name}")]

    def _step(self, step_id: str, entry: Entry, given: dict[str, list[Piece]]) -> DraftStep | None:
        step = DraftStep(step_id)
        if entry.title and entry.title.isprintable():
            step.keys["title"] = entry.title[:200]
        try:
            self._fill(step, entry, given)
        except UntranslatableError as why:
            return self._abstract(step, why.message, entry)
        return step if entry.body else None

    def _fill(self, step: DraftStep, entry: Entry, given: dict[str, list[Piece]]) -> None:
        """Write the script of a recipe; raises UntranslatableError."""
        if unknown := entry.attributes.keys() - _ATTRIBUTES:
            raise UntranslatableError("attribute", f"the attribute `{min(unknown)}`")
        is_positional = "positional-arguments" in {*entry.attributes, *self.settings}
        if is_positional and entry.params and re.search(r"\$\{?[\d@*#]", "\n".join(entry.body)):
            raise UntranslatableError("attribute", "it takes its arguments by position")
        if folder := entry.attributes.get("working-directory"):
            step.keys["workdir"] = folder.strip("'\"")
        env = {
            each.name: template_of(given[each.name], each.name)
            for each in entry.params
            if "$" in each.sign or self.settings.get("export") == "true"
        }
        first = [
            f'[ -n "{template_of(given[each.name], each.name)}" ]'
            f' || {{ echo "give --param {each.name}=…" >&2; exit 2; }}'
            for each in entry.params
            if self.is_choice and each.default is None and isinstance(given[each.name][0], Value)
        ]
        if entry.body and entry.body[0].startswith("#!"):
            words = shlex.split(known(self.evaluator.filled(entry.body[0][2:], given), "a shebang line"))
            if words and os.path.basename(words[0]) == "env":
                words = words[2:] if words[1:2] == ["-S"] else words[1:]
            program = os.path.basename(words[0]) if words else ""
            pieces = self.evaluator.filled("\n".join(entry.body[1:]).strip("\n") + "\n", given)
            if program in POSIX:
                step.keys["shell"] = shlex.join(shell_of(words)[0])
                step.keys["run"] = "\n".join([*first, script_of(pieces, env)])
            elif INTERPRETERS.match(program) and len(words) == 1 and not first:
                step.keys |= {"shell": words[0], "run": template_of(pieces, "a part of a script")}
            else:
                raise UntranslatableError("shell", f"the program `{' '.join(words)}` runs it")
        else:
            step.keys["run"] = joined(self._lines(entry, given, env), strict=self.strict, first=first)
        if env:
            step.keys["env"] = env

    def _lines(
        self, entry: Entry, given: dict[str, list[Piece]], env: dict[str, str]
    ) -> list[tuple[str, bool]]:
        """Return the lines of a recipe, and whose failures count for nothing."""
        found, at = [], 0
        while at < len(entry.body):
            line = entry.body[at]
            at += 1
            while line.endswith("\\") and at < len(entry.body):
                line = line[:-1] + entry.body[at].lstrip()
                at += 1
            text = line.lstrip("@-")
            if text.strip() and not (text.startswith("#") and self.settings.get("ignore-comments") == "true"):
                found.append(
                    (script_of(self.evaluator.filled(text, given), env), "-" in line[: len(line) - len(text)])
                )
        return found

    def _abstract(self, step: DraftStep, why: str, entry: Entry | None) -> DraftStep:
        """Leave a recipe to a person or a model, with its text."""
        place, text = (entry.place, entry.text) if entry is not None else (TOP, step.id)
        step.leave(self.found, "recipe", f"the recipe {step.id}: {why}", place, text)
        return step


def _is_open(line: str) -> bool:
    """Say whether brackets or strings of a line that is no text of a recipe are still open."""
    rest = re.sub(r"'''.*?'''|\"\"\".*?\"\"\"|```.*?```", "", line, flags=re.DOTALL)
    if re.search(r"'''|\"\"\"|```", rest):
        return True
    rest = re.sub(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|`[^`]*`|#.*", "", rest)
    return sum(rest.count(sign) for sign in "([{") > sum(rest.count(sign) for sign in ")]}")


def _attributes(line: str, attributes: dict[str, str]) -> str:
    """Add the attributes that stand in `[…]`; returns what stands behind it."""
    match = re.match(r"\[((?:'[^']*'|\"(?:\\.|[^\"\\])*\"|[^\]'\"])*)\]\s*(?:#.*\Z)?", line, re.DOTALL)
    if match is None:
        raise UntranslatableError("attribute", f"it cannot be read: {line[:80]}")
    pattern = r"([a-z-]+)\s*(?:\(((?:'[^']*'|\"(?:\\.|[^\"\\])*\"|[^)'\"])*)\)|:\s*('[^']*'|\"[^\"]*\"))?\s*(?:,|\Z)"
    attributes |= {each[1]: each[2] or each[3] or "" for each in re.finditer(pattern, match[1].strip())}
    return line[match.end() :]


def _colon(tokens: list[Token]) -> int:
    """Return where the colon stands that ends the parameters; raises UntranslatableError."""
    depth = 0
    for at, (kind, text) in enumerate(tokens):
        depth += (kind == "sign") * ((text in "({[") - (text in ")}]"))
        if (kind, text, depth) == ("sign", ":", 0):
            return at
    raise UntranslatableError("shape", "a recipe without a colon")


def _closing(tokens: list[Token], at: int) -> int:
    """Return where a bracket is closed; `at` itself where none opens there."""
    depth = 0
    for end in range(at, len(tokens)):
        depth += (tokens[end] == ("sign", "(")) - (tokens[end] == ("sign", ")"))
        if not depth:
            return end
    raise UntranslatableError("shape", "a bracket is not closed")


def _parameters(tokens: list[Token]) -> list[Parameter]:
    found, at = [], 0
    while at < len(tokens):
        sign, default = "", None
        while tokens[at : at + 1] and tokens[at][1] in ("*", "+", "$"):
            sign, at = sign + tokens[at][1], at + 1
        if at >= len(tokens) or tokens[at][0] != "name":
            raise UntranslatableError("shape", "the parameters of a recipe cannot be read")
        name, at = tokens[at][1], at + 1
        if tokens[at : at + 1] == [("sign", "=")] and at + 1 < len(tokens):
            end = _closing(tokens, at + 1)
            end = _closing(tokens, end + 1) if tokens[end + 1 : end + 2] == [("sign", "(")] else end
            default, at = tuple(tokens[at + 1 : end + 1]), end + 1
        found.append(Parameter(name=name, sign=sign, default=default))
    return found


def _needs(tokens: list[Token]) -> list[Need]:
    """Return the names of recipes that one needs, with the expressions that they get; `&&` parts the later ones."""
    found: list[Need] = []
    at = 0
    while at < len(tokens):
        end = _closing(tokens, at)
        inner = tokens[at + 1 : end] if end > at else tokens[at : at + 1]
        while end + 1 < len(tokens) and tokens[end + 1] == ("sign", "::"):  # a recipe of a module
            end += 2
            inner = [(inner[0][0], f"{inner[0][1]}::{tokens[end][1]}")]
        if inner != [("sign", "&&")] and (not inner or inner[0][0] != "name"):
            raise UntranslatableError("shape", "what a recipe needs cannot be read")
        found.append((inner[0][1], tuple(inner[1:])))
        at = end + 1
    return found


def convert_justfile(text: str, found: Findings, jobs: Collection[str] = ()) -> DraftPlan:
    """Return the plan that a justfile becomes; `jobs` are the wanted recipes, none: the default."""
    justfile = Justfile(found)
    justfile.read(text)
    return justfile.convert(jobs)
