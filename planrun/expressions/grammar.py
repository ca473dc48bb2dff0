"""The values of literals: texts with a closed set of escapes, numbers that every reader of JSON understands.

Names that expressions may and may not use, and what to say about the others.

The allow-list: which nodes of Jinja2's grammar are part of the language, and what each becomes.

Nodes are distinguished by the name of their class, so that this module need not import Jinja2. A node's `lineno`
is the offset of the token that made it: see `parse`.
"""

from __future__ import annotations

from planrun.expressions.tree import FUNCTIONS, MAX_DEPTH, MAX_INTEGER, ROOTS, ExpressionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.expressions.tree import Tree

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "/": "/"}
_CODES = {"x": 2, "u": 4, "U": 8}
_BASES = {"0x": 16, "0o": 8, "0b": 2}
_INFINITY = float("inf")


def string(source: str, offset: int) -> str:
    """Return the text that a literal with its quotes stands for; raises ExpressionError for an unknown escape."""
    if "\\" not in source:
        return source[1:-1]
    text = ""
    at = 1
    while at < len(source) - 1:
        if source[at] != "\\":
            text += source[at]
            at += 1
            continue
        char, width = _escaped(source, at, offset)
        text += char
        at += width
    return text


def _escaped(source: str, at: int, offset: int) -> tuple[str, int]:
    """Return the character that the escape at `at` stands for, and how long the escape is."""
    kind = source[at + 1]
    if kind in _ESCAPES:
        return _ESCAPES[kind], 2
    width = _CODES.get(kind)
    if width is None:
        raise ExpressionError(
            f"unknown escape sequence `\\{kind}`; write `\\\\` for a backslash", offset + at, 2
        )
    digits = source[at + 2 : at + 2 + width]
    code = -1
    if len(digits) == width and all(digit in "0123456789abcdefABCDEF" for digit in digits):
        code = int(digits, 16)
    if not 0 < code < 0x110000 or 0xD800 <= code < 0xE000:
        raise ExpressionError("invalid Unicode escape", offset + at, 2 + len(digits))
    return chr(code), 2 + width


def integer(source: str, offset: int) -> int:
    """Return a whole number; raises ExpressionError for one beyond 64 bits."""
    digits = source.replace("_", "")
    value = MAX_INTEGER + 1
    # The shortest way to write the largest one is hexadecimal, the longest binary.
    if len(digits) <= 66:
        base = _BASES.get(digits[:2].lower(), 10)
        value = int(digits[2:] if base != 10 else digits, base)
    if value > MAX_INTEGER:
        raise ExpressionError("the number has more than 64 bits", offset, len(source))
    return value


def number(source: str, offset: int) -> float:
    """Return a number with a fraction or exponent; raises ExpressionError for one that is too large."""
    value = float(source.replace("_", ""))
    if value == _INFINITY:
        raise ExpressionError("the number is too large", offset, len(source))
    return value


_MAX_SHOWN = 80  # characters
_SEED = "step_"
_SUFFIXES = {"_failed": "failed", "_succeeded": "completed"}
_FOREIGN_NAMES = {
    "secrets": "secrets are not available in expressions; list it under `secrets` of the step and read the environment "
    'variable, as "$NAME"',
    "null": "unknown name `null`; use `none`",
    "nil": "unknown name `nil`; use `none`",
    "undefined": "unknown name `undefined`; use default(value, otherwise)",
    "github": "unknown name `github`; use run.id, run.ci, run.ref, run.sha or run.event",
    "inputs": "unknown name `inputs`; use `params`",
    "vars": "unknown name `vars`; use `params`",
    "needs": "unknown name `needs`; use `steps`",
    "outputs": "unknown name `outputs`; use steps.<id>.outputs",
}
_ALWAYS = "; to run a step after a failure, write `depends_on: {id: done}` or `finally:`"
_FOREIGN_FUNCTIONS = {
    "always": _ALWAYS,
    "cancelled": _ALWAYS,
    "success": "; write `depends_on: [id]`, or steps.<id>.status == 'completed'",
    "failure": "; write `depends_on: {id: failed}`, or steps.<id>.status == 'failed'",
    "length": "; use len",
    "count": "; use len",
    "hashFiles": "; use hash_files",
    "fromJSON": "; use fromjson",
    "from_json": "; use fromjson",
    "toJSON": "; use tojson",
    "to_json": "; use tojson",
    "startsWith": "; use startswith",
    "endsWith": "; use endswith",
    "format": "; join strings by `~`",
    "d": "; use default",
    "quote": "; in a script use `| sh`",
    "sh": ": `| sh` must be last inside `${{ }}` in `run:`; put ( ) around more than one value; "
    "values in `env:` and `exec:` need no quoting",
}


def seed(name: str) -> tuple[str, str] | None:
    """Return step id and status that `step_<id>_failed` or `step_<id>_succeeded` asks for."""
    for suffix, status in _SUFFIXES.items():
        if name.startswith(_SEED) and name.endswith(suffix) and len(name) > len(_SEED) + len(suffix):
            return name[len(_SEED) : -len(suffix)], status
    return None


def unknown(name: str, *, alone: bool = False) -> str:
    """Return what is wrong with an unknown name; `alone`: nothing follows it, so it may be a text without quotes."""
    if name in _FOREIGN_NAMES:
        return _FOREIGN_NAMES[name]
    if name in FUNCTIONS:
        return f"`{name}` is a function: {name}(…)"
    if name.startswith(_SEED):
        forms = f"{_SEED}<id>_failed or {_SEED}<id>_succeeded"
        dashed = "or for an id with a dash or a dot steps['<id>'].status"
        return f"unknown name `{shown(name)}`; the status of a step is {forms}, {dashed}"
    quoted = f"; quote strings: '{shown(name)}'" if alone else ""
    literals = ("true", "false", "none") if alone else ()
    return f"unknown name `{shown(name)}`{quoted}" + _nearest(
        name, (*ROOTS, *literals), f"; known names: {', '.join(ROOTS)}"
    )


def unknown_function(name: str) -> str:
    """Return what is wrong with a function or filter that is none."""
    if name in _FOREIGN_FUNCTIONS:
        return f"unknown function `{name}`{_FOREIGN_FUNCTIONS[name]}"
    others = f"; known functions: {', '.join(FUNCTIONS)}"
    return f"unknown function `{shown(name)}`" + _nearest(name, tuple(FUNCTIONS), others)


def arity(name: str) -> str:
    """Return how many arguments a function takes."""
    fewest, most = FUNCTIONS[name]
    amount = str(fewest) if fewest == most else f"{fewest} to {most}"
    return f"`{name}` takes {amount} argument{'' if most == 1 else 's'}, including the one before `|`"


def shown(name: str) -> str:
    """Return what a message shows of a name or token, which may be as long as an expression."""
    return name if len(name) <= _MAX_SHOWN else name[:_MAX_SHOWN] + "…"


def _nearest(name: str, known: tuple[str, ...], otherwise: str) -> str:
    from difflib import get_close_matches  # load time only, and only for an error

    close = get_close_matches(name.lower()[:100], known, n=1)
    return f"; did you mean `{close[0]}`?" if close else otherwise


# The child with which the text of a node begins, and the one with which it ends.
_FIRST = {"Getattr": "node", "Getitem": "node", "Call": "node", "Filter": "node", "Test": "node"}
_FIRST |= {"Compare": "expr", "CondExpr": "expr1"}
_LAST = {"Not": "node", "Neg": "node", "Pos": "node", "CondExpr": "expr2"}
_BINARY = ("And", "Or", "Add", "Sub", "Mul", "Div", "FloorDiv", "Mod", "Pow")
_FIRST |= dict.fromkeys(_BINARY, "left")
_LAST |= dict.fromkeys(_BINARY, "right")

_COMPARISONS = {
    "eq": "==", "ne": "!=", "lt": "<", "lteq": "<=", "gt": ">", "gteq": ">=", "in": "in", "notin": "not in",
}  # fmt: skip
_MATH = {"Add": "+", "Sub": "-", "Mul": "*"}
_REFUSED = {
    "Div": "division is not supported",
    "FloorDiv": "division is not supported",
    "Mod": "`%` is not supported; join strings by `~`",
    "Pow": "`**` is not supported",
    "Pos": "unary `+` is not supported",
    "Tuple": "tuples are not supported; write a list in [ ]",
    "Slice": "slices are not supported; use one index",
    "Test": "`is` is not supported; use ==, != or default(value, otherwise)",
}


class Grammar:
    """One expression on its way from Jinja2's nodes to a tree.

    `ends` says where the token at an offset ends, `closed` where the bracket at an offset is closed.
    """

    def __init__(self, ends: dict[int, int], closed: dict[int, int]) -> None:
        self.ends = ends
        self.closed = closed
        self.offsets = sorted(ends)

    def bare(self, node: Any) -> Tree:
        """Return the tree of an expression in which `| sh` has no place."""
        return self.read(node, 1)

    def word(self, node: Any) -> Tree:
        """Return the tree of an interpolation in a script: an expression, or one with `| sh` at its end."""
        if type(node).__name__ != "Filter" or node.name != "sh":
            return self.read(node, 1)
        self.positional(node)
        if node.args:
            raise self.error("`sh` takes no arguments", node)
        return ("sh", *self.span(node), self.read(node.node, 2))

    def read(self, node: Any, depth: int) -> Tree:
        """Return the tree of any node; raises ExpressionError for what is not supported."""
        if depth > MAX_DEPTH:
            raise self.error(f"the expression is nested more than {MAX_DEPTH} levels deep", node)
        kind = type(node).__name__
        reader = _READERS.get(kind)
        if reader is None:
            raise self.error(_REFUSED.get(kind, f"{kind} is not supported"), node)
        return reader(self, node, depth)

    # Places.

    def span(self, node: Any) -> tuple[int, int]:
        """Return offset and length of a node's text."""
        first = node
        while (name := type(first).__name__) in _FIRST or name == "Concat":
            first = first.nodes[0] if name == "Concat" else getattr(first, _FIRST[name])
        last = node
        while (name := type(last).__name__) in _LAST or name in ("Concat", "Compare"):
            if name == "Concat":
                last = last.nodes[-1]
            elif name == "Compare":
                last = last.ops[-1].expr
            elif getattr(last, _LAST[name]) is None:
                break
            else:
                last = getattr(last, _LAST[name])
        return first.lineno, max(self._end(last) - first.lineno, 1)

    def _end(self, node: Any) -> int:
        """Return where a node ends that ends in a token of its own."""
        kind = type(node).__name__
        at: int = node.lineno
        if kind in ("Getattr", "Getitem", "Filter"):
            from bisect import bisect_right

            following = self.offsets[bisect_right(self.offsets, at)]
            if kind == "Getattr" or (kind == "Getitem" and at not in self.closed):
                return self.ends[following]
            at = following if kind == "Filter" and following in self.closed else at
        if at in self.closed:
            return self.closed[at] + 1
        return self.ends.get(at, at + 1)

    def error(self, message: str, node: Any) -> ExpressionError:
        """Return an error about a node."""
        return ExpressionError(message, *self.span(node))

    # Readers, one a kind of node.

    def constant(self, node: Any, _depth: int) -> Tree:
        """Read a literal."""
        return ("const", *self.span(node), node.value)

    def path(self, node: Any, depth: int) -> Tree:
        """Read a name with everything after its dots and in its brackets."""
        links: list[Any] = []
        base = node
        while type(base).__name__ in ("Getattr", "Getitem"):
            links.append(base)
            base = base.node
        if len(links) > MAX_DEPTH:
            raise self.error(f"the path has more than {MAX_DEPTH} parts", node)
        if type(base).__name__ == "Name" and base.name not in ROOTS:
            return self._name(base, links)
        tree = ("path", *self.span(base), (base.name,)) if type(base).__name__ == "Name" else None
        tree = tree or self.read(base, depth + 1)
        for link in reversed(links):
            tree = self._part(tree, link, depth)
        return tree

    def _name(self, node: Any, links: list[Any]) -> Tree:
        """Read a name that is no root: one of the seeds' forms, or an error."""
        place = self.span(node)
        status_of = seed(node.name)
        if status_of is None:
            raise ExpressionError(unknown(node.name, alone=not links), *place)
        if links:
            raise self.error(f"{shown(node.name)} is a boolean and has no fields", links[0])
        step, status = status_of
        path = ("path", *place, ("steps", step, "status"))
        return ("compare", *place, "==", path, ("const", *place, status))

    def _part(self, tree: Tree, link: Any, depth: int) -> Tree:
        """Return the tree of one more part of a path."""
        place = self.span(link)
        part = (
            ("const", *place, link.attr)
            if type(link).__name__ == "Getattr"
            else self.read(link.arg, depth + 1)
        )
        fixed = part[0] == "const"
        if fixed and type(part[3]) not in (str, int):
            raise self.error("an index must be a string or an integer", link)
        if tree[0] != "path":
            return ("item", *place, tree, part)
        path = tree[3]
        if path == ("steps",):
            if not fixed:
                raise self.error("the step id must be a literal: steps['id']", link)
            part = ("const", *place, str(part[3]))  # an id that is a number is a text like the others
        return ("path", *place, (*path, part[3])) if fixed else ("item", *place, tree, part)

    def items(self, node: Any, depth: int) -> Tree:
        """Read a list."""
        return ("list", *self.span(node), tuple(self.read(item, depth + 1) for item in node.items))

    def chain(self, node: Any, depth: int) -> Tree:
        """Read `and` or `or`; a chain of the same word becomes one node, however long."""
        operands = [node.right]
        left = node.left
        while type(left) is type(node):
            operands.append(left.right)
            left = left.left
        operands.append(left)
        kind = type(node).__name__.lower()
        return (kind, *self.span(node), tuple(self.read(item, depth + 1) for item in reversed(operands)))

    def negation(self, node: Any, depth: int) -> Tree:
        """Read `not`."""
        return ("not", *self.span(node), self.read(node.node, depth + 1))

    def minus(self, node: Any, depth: int) -> Tree:
        """Read a sign; before a number it is part of the number."""
        operand = self.read(node.node, depth + 1)
        if operand[0] == "const" and type(operand[3]) in (int, float):
            return ("const", *self.span(node), -operand[3])
        return ("neg", *self.span(node), operand)

    def comparison(self, node: Any, depth: int) -> Tree:
        """Read one comparison; a chain of them is an error."""
        if len(node.ops) > 1:
            raise self.error("comparisons cannot be chained; join them by `and`", node)
        (operand,) = node.ops
        left = self.read(node.expr, depth + 1)
        return (
            "compare",
            *self.span(node),
            _COMPARISONS[operand.op],
            left,
            self.read(operand.expr, depth + 1),
        )

    def math(self, node: Any, depth: int) -> Tree:
        """Read +, - or *; a dash in a name reads as minus, which gets its own message."""
        left = self.read(node.left, depth + 1)
        right, kind = node.right, type(node).__name__
        while type(right).__name__ in ("Getattr", "Getitem"):
            right = right.node
        if kind == "Sub" and left[0] == "path" and type(right).__name__ == "Name" and right.name not in ROOTS:
            whole = f"{left[3][-1]}-{right.name}"
            raise self.error(f"write a name with a dash in brackets: ['{shown(whole)}']", node)
        return ("math", *self.span(node), _MATH[kind], left, self.read(node.right, depth + 1))

    def concatenation(self, node: Any, depth: int) -> Tree:
        """Read `~`."""
        return ("concat", *self.span(node), tuple(self.read(item, depth + 1) for item in node.nodes))

    def choice(self, node: Any, depth: int) -> Tree:
        """Read `a if test else b`."""
        if node.expr2 is None:
            raise self.error("`if` needs an `else`", node)
        parts = (self.read(part, depth + 1) for part in (node.test, node.expr1, node.expr2))
        return ("if", *self.span(node), *parts)

    def call(self, node: Any, depth: int) -> Tree:
        """Read a call by name; nothing else can be called."""
        if type(node.node).__name__ != "Name":
            raise self.error("only functions can be called, e.g. contains(text, part)", node)
        return self._function(node, node.node.name, node.args, depth)

    def filter(self, node: Any, depth: int) -> Tree:
        """Read a filter: a call whose first argument is the piped value."""
        return self._function(node, node.name, [node.node, *node.args], depth)

    def _function(self, node: Any, name: str, args: list[Any], depth: int) -> Tree:
        if name not in FUNCTIONS:
            raise self.error(unknown_function(name), node)
        self.positional(node)
        fewest, most = FUNCTIONS[name]
        if not fewest <= len(args) <= most:
            raise self.error(arity(name), node)
        return ("call", *self.span(node), name, tuple(self.read(arg, depth + 1) for arg in args))

    def positional(self, node: Any) -> None:
        """Raise ExpressionError when a call or filter has arguments by name, or `*` before one."""
        if node.kwargs or node.dyn_args is not None or node.dyn_kwargs is not None:
            raise self.error("keyword arguments are not supported; pass arguments by position", node)


_READERS = {
    "Const": Grammar.constant,
    "Name": Grammar.path,
    "Getattr": Grammar.path,
    "Getitem": Grammar.path,
    "List": Grammar.items,
    "And": Grammar.chain,
    "Or": Grammar.chain,
    "Not": Grammar.negation,
    "Neg": Grammar.minus,
    "Compare": Grammar.comparison,
    "Add": Grammar.math,
    "Sub": Grammar.math,
    "Mul": Grammar.math,
    "Concat": Grammar.concatenation,
    "CondExpr": Grammar.choice,
    "Call": Grammar.call,
    "Filter": Grammar.filter,
}
