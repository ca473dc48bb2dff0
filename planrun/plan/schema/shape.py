"""Is a node tree shaped like a plan: keys, types, forms; every finding in one pass. Meaning is checked later."""

from __future__ import annotations

from planrun.plan.problems import MAX_PROBLEMS, Problem, in_order, nearest
from planrun.plan.schema.forms import (
    FORMS,
    NO_VALUE,
    NOUNS,
    NULLS,
    ambiguous,
    key_finding,
    shown,
)
from planrun.plan.tables import ACTIONS, COMPANIONS, FILLED, NAMED, OBJECTS, ONE_KEY, REQUIRED
from planrun.plan.yaml.document import read_tree
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node, Origins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.plan.schema.forms import Finding

# What a file that breaks off in the middle would be blamed for without reason.
_ONLY_WHEN_COMPLETE = frozenset(("E102", "E103", "E113"))
_TYPED = ("Param", "Value", "Ask")  # objects whose `type` says how their other values are read
_WITH_EXAMPLE = frozenset(("E103", "E109", "E110", "E111", "E113", "E115"))
_SCALAR = (True, True, True)  # a rule for which every example fits
_ACTIONS = frozenset(ACTIONS)


def read(data: bytes, file: str, kind: str = "Plan") -> tuple[Node | None, list[Problem]]:
    """Read a file and check its shape: all findings, in file order.

    `kind` is Plan or Policy; a policy may stand under the only key `policy`, and is then given without it.

    The tree is None when the file could not be read to its end; what was read until then has been checked.
    """
    root, problems, complete = read_tree(data, file, kind.lower())
    if root is None:
        return None, problems
    if kind == "Policy" and list(root.value) == ["policy"]:
        root = root.value["policy"]
    kind = "PolicyFile" if kind == "Policy" else kind  # it may say more than the policy of a plan
    found = with_shape(root, problems, file, kind, complete=complete)
    return (root if complete else None), found


def with_shape(
    root: Node, problems: list[Problem], file: str, kind: str = "Plan", *, complete: bool
) -> list[Problem]:
    """Return the problems of reading a tree and those of its shape, in file order."""
    found = check(root, file, kind)
    if not complete:
        misread = {line for problem in problems for line, _, _ in problem.related if problem.code == "E010"}
        found = [
            each
            for each in found
            if each.code not in _ONLY_WHEN_COMPLETE
            and '"<<"' not in each.message
            and each.line not in misread
        ]
    return in_order([*problems, *found])


def check(
    root: Node, file: str, kind: str = "Plan", origins: Origins | None = None, *, part: bool = False
) -> list[Problem]:
    """Return every finding about keys, types and forms. When it is empty, the functions `as_...` do not raise.

    `origins`: of nodes that other files brought along; `part`: another file has what is missing.
    """
    walk = _Walk(file, kind.removesuffix("File").lower(), origins, part=part)
    try:
        walk.value(root, (None, None, kind))
    except _FullError:
        walk.problems[-1] = walk.problems[-1].but(
            code="E199", message="too many problems; the rest of the file was not checked", hint=""
        )
    return walk.problems


class _FullError(Exception):
    """There are more findings than the limit."""


class _Walk:
    """One pass over the tree; `path` leads from the step, or from the top, to the container being checked."""

    def __init__(self, file: str, noun: str, origins: Origins | None = None, *, part: bool = False) -> None:
        self.file = file
        self.places = origins.places if origins else {}
        self.part = part
        self.noun = noun  # what the whole is called
        self.problems: list[Problem] = []
        self.path: list[str | int] = []
        self.step: tuple[Node, int] | None = None  # and its position, 1-based
        self.wanted = ""  # the `type` beside a value that may be anything
        self.owner = ""  # the object of the schema whose key is the last part of `path`

    def value(self, node: Node, rule: tuple[Any, Any, Any]) -> None:
        """Check one value that stands under the last part of `path`."""
        kind = node.kind
        spec = rule[kind]
        if spec is None:
            self.wrong_type(node, rule)
        elif kind == SCALAR:
            finding = FORMS[spec[0]](node, spec) if spec[0] != "any" else ambiguous(node, self.wanted)
            if finding:
                self.about(node, _with_list(finding, node, rule))
        elif spec == "any":
            self.anything(node)
        elif kind == SEQUENCE:
            self.sequence(node, spec)
        elif isinstance(spec, str):
            self.written(node, spec)
        else:
            self.named(node, spec)

    def written(self, node: Node, name: str) -> None:
        """Check a mapping whose keys are known."""
        rules = OBJECTS[name]
        self.wanted = _type_of(node, name) if name in _TYPED else ""
        for key, value in node.value.items():
            rule = rules.get(key)
            if rule is None and name in NAMED:
                form, rule = NAMED[name]
                self.named_key(node, key, form)
            if rule is None:
                self.unknown(node, key, name)
                continue
            spec = rule[value.kind]
            # The most frequent case without another call: a scalar that is right.
            if value.kind == SCALAR and spec and spec[0] != "any":
                finding = FORMS[spec[0]](value, spec)
                if finding:
                    self.owner = name
                    self.under(node, key, value, _with_list(finding, value, rule))
                continue
            self.owner = name
            self.member(node, key, value, rule)
        self.whole(node, name)

    def member(self, holder: Node, key: str, value: Node, rule: tuple[Any, Any, Any]) -> None:
        """Check the value under a key; when there is none, its key is the place to look at."""
        self.path.append(key)
        if value.kind == SCALAR and value.plain and value.value in NULLS and rule[SCALAR] != ("any",):
            spec = rule[SCALAR]
            self.about(
                holder.keys[key], (spec and FORMS[spec[0]](value, spec)) or ("E103", "has no value", "")
            )
        else:
            self.value(value, rule)
        self.path.pop()

    def whole(self, node: Node, name: str) -> None:
        """Check what concerns the keys of a mapping together."""
        if name == "Step":
            self.one_action(node)
        for key in REQUIRED.get(name, ()):
            if key not in node.keys and not (self.part and key == "steps"):
                from planrun.plan.examples import EXAMPLES  # for messages only

                hint = f"e.g. `{key}: {EXAMPLES[name][key]}`"
                if key == "version":
                    hint = "begin the file with `version: 1`"
                self.report(node, ("E102", f'"{key}" is missing{self.where()}', hint))
        if name in FILLED and not node.keys:
            self.about(node, ("E113", "is empty", f"valid keys: {', '.join(OBJECTS[name])}"))
        if name in ONE_KEY and len(node.keys) != 1:
            if not node.keys:
                self.about(node, ("E113", "is empty", f"write one of {', '.join(OBJECTS[name])}"))
            else:
                second = list(node.keys.values())[1]
                names = ", ".join(f'"{key}"' for key in list(node.keys)[:5])
                self.report(
                    second,
                    ("E118", f"only one of {names} is allowed{self.where()}", "begin each with `- `"),
                )

    def one_action(self, node: Node) -> None:
        """Check that a step does one thing, and that keys which belong to another one do not stand alone."""
        for second in _others(node):
            first = next(node.keys[key] for key in node.keys if key in _ACTIONS)
            message = f'"{second.value}" and "{first.value}" are mutually exclusive{self.where()}'
            self.report(second, ("E107", message, "split it into two steps"))
            related = ((first.line, first.col, "first action here"),)
            self.problems[-1] = self.problems[-1].but(related=related)
        for key, needed in COMPANIONS.items():
            if key in node.keys and needed not in node.keys:
                self.report(node.keys[key], ("E102", f'"{key}"{self.where()} requires "{needed}"', ""))

    def named(self, node: Node, spec: tuple[str, Any, int]) -> None:
        """Check a mapping from names that the person chooses."""
        form, rule, least = spec
        if len(node.value) < least:
            self.about(node, ("E113", "is empty", ""))
        for key, value in node.value.items():
            self.named_key(node, key, form)
            self.wanted = self.owner = ""
            self.member(node, key, value, rule)

    def named_key(self, node: Node, key: str, form: str) -> None:
        """Check a key that the person chose."""
        wrong = key_finding(form, key)
        if wrong:
            code, what, hint = wrong
            self.report(node.keys[key], (code, f"{shown(key)} {what}{self.where()}", hint))

    def sequence(self, node: Node, spec: tuple[Any, int]) -> None:
        """Check a list; the lists of steps set the step that messages name."""
        rule, least = spec
        if len(node.value) < least:
            self.about(node, ("E113", "is empty", ""))
        path = self.path
        if rule[MAPPING] == "Step":
            section, self.path = path, []
            for position, entry in enumerate(node.value, 1):
                self.step = (entry, position)
                self.value(entry, rule)
            self.path, self.step = section, None
            return
        for position, entry in enumerate(node.value, 1):
            path.append(position)
            self.value(entry, rule)
            path.pop()

    def anything(self, node: Node) -> None:
        """Look through data of any form for scalars that can be read in two ways."""
        entries = node.value.items() if node.kind == MAPPING else enumerate(node.value, 1)
        for key, value in entries:
            self.path.append(key)
            if value.kind != SCALAR:
                self.anything(value)
            elif finding := ambiguous(value, self.wanted if node.kind == SEQUENCE else ""):
                self.about(value, finding)
            self.path.pop()

    def unknown(self, node: Node, key: str, name: str) -> None:
        """Report a key that is not known here, with the one that was probably meant."""
        if name == "Plan" and key.startswith("x-"):
            return
        from planrun.plan.schema.hints import PLACES, of_key

        hint = of_key(key, name, present=node.keys, step=self.step is not None)
        self.report(node.keys[key], ("E104", f"unknown key {shown(key)}{self.where(top=True)}", hint))
        self.problems[-1] = self.problems[-1].but(
            place=PLACES.get(name, "this place"), keys=tuple(OBJECTS[name])
        )

    def wrong_type(self, node: Node, rule: tuple[Any, Any, Any]) -> None:
        """Report a value of another kind than the place wants."""
        if node.kind == SCALAR and node.plain and node.value in NULLS:
            self.about(node, (*NO_VALUE[:2], "" if self.path else "write `- id: ...` with its keys below"))
            return
        nouns = (
            (NOUNS.get(rule[0][0], "a string") if rule[0] else ""),
            rule[1] and "a list",
            rule[2] and "a mapping",
        )
        from planrun.plan.schema.dialects import TYPE_HINTS

        key = str(self.path[-1]) if self.path else ""
        shown_as = self.example(rule) or _example(rule)
        wanted = " or ".join(noun for noun in nouns if noun) + shown_as
        found = ("a string", "a list", "a mapping")[node.kind]
        hint = TYPE_HINTS.get((key, node.kind), "")
        self.about(node, ("E101", f": expected {wanted}, got {found}", hint))

    def example(self, rule: tuple[Any, Any, Any]) -> str:
        """Return `, e.g. `KEY: VALUE`` for the key at the end of `path`, from the schema; "" where it has none."""
        key = self.path[-1] if self.path else 0
        if not self.owner or not isinstance(key, str) or key not in OBJECTS[self.owner]:
            return ""
        from planrun.plan.schema.hints import example

        written = example(self.owner, key, rule)
        return f", e.g. `{key}: {written}`" if written else ""

    def under(self, holder: Node, key: str, value: Node, finding: Finding) -> None:
        """Report a finding about the scalar under a key; one without a value stands at its key."""
        self.path.append(key)
        self.about(holder.keys[key] if finding[0] == "E103" else value, finding)
        self.path.pop()

    def about(self, node: Node, finding: Finding) -> None:
        """Report a finding about the value at `path`; one without a hint gets the example of its key."""
        code, what, hint = finding
        if not hint and code in _WITH_EXAMPLE:
            hint = self.example(_SCALAR).removeprefix(", ")
        if self.path:
            subject = f'"{_dotted(self.path)}"' + (f" in {self.label()}" if self.step else "")
        else:
            subject = self.label() if self.step else f"the {self.noun}"
        joined = what if what.startswith(":") else f" {what}"
        self.report(node, (code, f"{subject}{joined}", hint))

    def where(self, *, top: bool = False) -> str:
        """Return ` in "retries" of step "build"`, or what of it applies."""
        if self.step:
            label = self.label()
            return f' in "{_dotted(self.path)}" of {label}' if self.path else f" in {label}"
        if self.path:
            return f' in "{_dotted(self.path)}"'
        return " at the top level" if top else ""

    def label(self) -> str:
        """Name the step in a message: by its id, else by its position."""
        node, position = self.step or (Node(SCALAR, "", 0, 0), 0)
        given = node.get("id")
        return (
            f"step {shown(given.value)}" if given is not None and given.kind == SCALAR else f"step {position}"
        )

    def report(self, node: Node, finding: Finding) -> None:
        """Keep a finding at a node's place; raises _FullError when there are too many."""
        code, message, hint = finding
        end = 0
        if node.kind == SCALAR and node.value and "\n" not in node.value:
            end = node.col + len(node.value) + (0 if node.plain else 2)
        self.problems.append(
            Problem(
                code=code,
                message=message,
                file=self.places[id(node)][1] if id(node) in self.places else self.file,
                line=node.line,
                col=node.col,
                end_col=end,
                hint=hint,
            )
        )
        if len(self.problems) >= MAX_PROBLEMS:
            raise _FullError


def _example(rule: tuple[Any, Any, Any]) -> str:
    """Return `, e.g. {run: ...}` for a place that takes a mapping only."""
    if rule[SCALAR] or rule[SEQUENCE]:
        return ""
    spec = rule[MAPPING]
    if not isinstance(spec, str) or spec == "any":
        key = "NAME"
    elif spec == "Step":
        key = "run"
    else:
        key = next(iter(REQUIRED.get(spec, OBJECTS[spec])))
    return f", e.g. `{{{key}: ...}}`"


def _with_list(finding: Finding, node: Node, rule: tuple[Any, Any, Any]) -> Finding:
    """Return the finding about a word where a list of other words can stand as well, with such a list."""
    word, entries = rule[SCALAR], rule[SEQUENCE]
    entry = entries[0][SCALAR] if isinstance(entries, tuple) else None
    if finding[0] != "E105" or not entry or entry[0] != "word" or entry[1] == word[1]:
        return finding
    words, text = entry[1], node.value
    if nearest(text, word[1]):
        return finding
    near = nearest(text, words)
    expected = f"{', '.join(word[1])} or a list, e.g. [{near or words[0]}]"
    hint = f"write `[{near}]`" if near else f"valid words of the list: {', '.join(words)}"
    return "E105", f"must be {expected}, got {shown(text)}", hint


def _others(step: Node) -> list[Node]:
    """Return the keys of all actions but the first."""
    if len(_ACTIONS.intersection(step.keys)) < 2:
        return []
    return [step.keys[key] for key in step.keys if key in _ACTIONS][1:]


def _dotted(path: list[str | int]) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text if len(text) <= 80 else f"{text[:77]}..."


def _type_of(node: Node, name: str) -> str:
    given = node.get("type")
    if given is None:
        return "boolean" if name == "Ask" and "enum" not in node.value else ""
    return given.value if given.kind == SCALAR else ""
