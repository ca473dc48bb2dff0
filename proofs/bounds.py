"""The limits: for each, the largest that is accepted, and what is larger by one, as what planrun says to them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

from planrun.actions import dotenv, outputs
from planrun.errors import EvaluationError, InvalidInput
from planrun.expressions import functions, parse
from planrun.expressions.evaluate import evaluate
from planrun.expressions.render import render_text
from planrun.expressions.tree import ExpressionError
from planrun.plan import load
from planrun.plan.keys.params import parse_params
from planrun.plan.yaml.document import MAX_NODES, STEP_NODES, Budget
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

HEAD = b"version: 1\nsteps: [{run: x}]\n"
MIB = 1 << 20


@dataclass(frozen=True)
class Bound:
    """A limit: `at` and `over` return what is said to the largest that is accepted, and to one more.

    `says`: what must stand in the latter and not in the former. `names`: the constants, as module:NAME.
    """

    what: str
    names: tuple[str, ...]
    at: Callable[[], str]
    over: Callable[[], str]
    says: str

    def moved(self) -> Bound:
        """Return the same limit as if it were one higher: what is over it is taken for what is at it."""
        return replace(self, at=self.over)


def _file(what: str, names: str, says: str, make: Callable[[int], bytes], most: int) -> Bound:
    """Return a limit on files: `make` gives a file of a size."""

    def said(size: int) -> Callable[[], str]:
        return lambda: "; ".join(each.text for each in load.check_bytes(make(size), "plan.yml").problems)

    return Bound(what, tuple(names.split()), said(most), said(most + 1), says)


def _value(what: str, names: str, says: str, make: Callable[[int], object], most: int) -> Bound:
    """Return a limit on whatever raises an error of planrun's when it is one higher."""

    def said(size: int) -> Callable[[], str]:
        def text() -> str:
            try:
                make(size)
            except (InvalidInput, EvaluationError, ExpressionError, outputs.OutputError, ValueError) as error:
                return str(error)
            return ""

        return text

    return Bound(what, tuple(names.split()), said(most), said(most + 1), says)


def _padded(size: int) -> bytes:
    return HEAD + b"#" * (size - len(HEAD))


def _many(size: int) -> bytes:
    """Return a file with so many keys and values, as they are counted: 17 are those of the head."""
    rest = size - 17 - 3
    rows = [b"- [" + b"a," * (min(rest - at, 50_000) - 2) + b"]\n" for at in range(0, rest, 50_000)]
    return HEAD + b"x-a:\n" + b"".join(rows)


def _enough(count: int) -> str:
    """Say whether so many keys and values are too many in a file with very many steps."""
    root = Node(MAPPING, {}, 1, 1)
    steps = Node(SEQUENCE, [], 1, 1)
    step = Node(MAPPING, {"run": Node(SCALAR, "x", 1, 1)}, 1, 1)
    steps.value = [step] * 20_001
    root.value = {"steps": steps}
    return "" if Budget().allows(count, root) else f"never more than {MAX_NODES:,}"


def _aliases(size: int) -> bytes:
    return HEAD + b"x-a: &a [%s]\nx-b: [%s%s]\n" % (
        b"a," * 99_998,
        b"*a," * 4,
        b"&b 1, *b" * (size - 400_000),
    )


def _stand_ins(number: int) -> bytes:
    rows = b"".join(b"- {id: s%d, run: echo, replaces: [a]}\n" % n for n in range(number))
    return b"version: 1\nsteps:\n- {id: a, run: echo}\n- {id: b, run: echo, depends_on: [a]}\n" + rows


def _handlers(count: int) -> bytes:
    rows = [b"- {id: h%d, run: x, recovers: [a]}\n" % number for number in range(count)]
    return b"version: 1\nsteps:\n- {id: a, run: x}\n" + b"".join(rows)


def _parsed(size: int) -> bytes:
    """Return a file whose expressions have so many characters, with the 55 that each counts besides."""
    rows = [b'  A%d: "${{%s}}"\n' % (n, f" '{n:03}{'a' * 7938}' ".encode()) for n in range(100)]
    rows[0] = rows[0].replace(b"}}", b" " * (size - 800_000) + b"}}")
    return HEAD + b"env:\n" + b"".join(rows)


def _schemas(count: int) -> bytes:
    rows = b"".join(b"k%d: {}, " % number for number in range(count - 2))
    return HEAD + b"params: {a: {type: object, properties: {%s}}}\n" % rows


def _nodes(depth: int) -> bytes:
    return HEAD + b"x-a: " + b"[" * (depth - 1) + b"]" * (depth - 1)


def _json(depth: int) -> object:
    return evaluate(parse.parse("fromjson(params.a)"), {"params": {"a": "[" * depth + "]" * depth}})


def _concat(size: int) -> object:
    return evaluate(parse.parse("params.a ~ 'b'"), {"params": {"a": "a" * (size - 1)}})


def _rendered(size: int) -> object:
    template = parse.parse_template("${{ params.a }}" * 16 + "b" * (size - 16 * MIB))
    return render_text(template, {"params": {"a": "a" * MIB}})


def _param(text: bytes, value: str) -> object:
    plan = load.load_bytes(b"version: 1\nparams: {a: %s}\nsteps: [{run: x}]\n" % text, "p", cache=False)
    return parse_params(plan, [f"a={value}"])


def _looked_at(count: int) -> object:
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(functions, "_MAX_ENTRIES", 3):
        for number in range(count):
            Path(folder, str(number)).touch()
        return functions.hash_files(os.path.realpath(folder), ["*"])


def _parts(count: int) -> object:
    with tempfile.TemporaryDirectory() as folder:
        deep = Path(folder, *["d"] * (count - 1))
        deep.mkdir(parents=True)
        (deep / "f").touch()
        return functions.hash_files(os.path.realpath(folder), ["d/" * (count - 1) + "f"])


def _read(size: int, read: Callable[[str], object], text: str) -> object:
    with tempfile.NamedTemporaryFile() as file:
        file.write(text.encode() + b"a" * (size - len(text)))
        file.flush()
        return read(file.name)


BOUNDS: tuple[Bound, ...] = (
    _file("size of a file", "file:MAX_BYTES", "larger than 8 MiB", _padded, 8 * MIB),
    _file("levels in a file", "document:MAX_DEPTH", "more than 64 levels", _nodes, 64),
    _file(
        "entries of a list",
        "document:MAX_ENTRIES",
        "more than 120,000 entries",
        lambda n: HEAD + b"x-a: [" + b"a," * n + b"]",
        120_000,
    ),
    _file(
        "entries of a mapping",
        "",
        "more than 120,000 entries",
        lambda n: HEAD + b"x-a: {" + b"".join(b"k%d," % k for k in range(n)) + b"}",
        120_000,
    ),
    _file("keys and values", "document:FREE_NODES", "at most 600,000 keys and values", _many, 600_000),
    _file(
        "keys and values with one step more",
        "document:STEP_NODES",
        "60 more for each step",
        lambda n: _many(n - 7).replace(b"{run: x}", b"{run: x}, {run: y}"),
        600_000 + STEP_NODES,
    ),
    Bound(
        "keys and values with very many steps",
        ("document:MAX_NODES",),
        lambda: _enough(MAX_NODES),
        lambda: _enough(MAX_NODES + 1),
        "never more than 1,800,000",
    ),
    _file(
        "anchors of a file",
        "document:MAX_ANCHORS",
        "more than 10,000 anchors",
        lambda n: HEAD + b"x-a: [" + b"".join(b"&a%d 1," % k for k in range(n)) + b"]",
        10_000,
    ),
    _file("values that aliases add", "document:MAX_EXPANDED", "more than 400,000 values", _aliases, 400_000),
    _file(
        "problems that are kept",
        "problems:MAX_PROBLEMS",
        "too many problems",
        lambda n: HEAD + b"".join(b"k%d: 1\n" % k for k in range(n)),
        999,
    ),
    _file(
        "steps in the place of one", "edges:MAX_REROUTED", "more than 1,000 steps replace", _stand_ins, 1000
    ),
    _file("handlers of a step", "edges:MAX_HANDLERS", "more than 50 steps recover", _handlers, 50),
    _file("a plan's expressions", "formulas:MAX_PARSED", "more than 800,000 characters", _parsed, 800_000),
    _file(
        "places to look for quotes at",
        "quoting:MAX_LOOKED_AT",
        "more than 300,000 quotes",
        lambda n: b'version: 1\nsteps:\n- run: "%s${{ run.id | sh }}"\n' % (b"\\n" * n),
        300_000,
    ),
    _file("schemas of parameters", "fragments:MAX_SCHEMAS", "more than 4,000 nested schemas", _schemas, 4000),
    _file(
        "hours of a duration",
        "forms:LONGEST",
        "must be at most one year",
        lambda n: b"version: 1\nsteps: [{run: x, timeout: %dh}]\n" % n,
        366 * 24,
    ),
    _file(
        "letters of an id",
        "",
        "is not a valid id",
        lambda n: b"version: 1\nsteps: [{run: x, id: %s}]\n" % (b"a" * n),
        100,
    ),
    _file(
        "letters of a parameter's name",
        "",
        "is not a valid name",
        lambda n: HEAD + b"params: {%s: string}\n" % (b"a" * n),
        100,
    ),
    _file(
        "digits of a whole number",
        "",
        "must be an integer",
        lambda n: HEAD + b"limits: {max_parallel: 1%s}\n" % (b"0" * (n - 1)),
        18,
    ),
    _file(
        "hooks before steps",
        "hooks:MAX_HOOKS",
        "too many hooks",
        lambda n: HEAD + b"hooks: {before_step: [%s]}\n" % b", ".join([b"{run: x}"] * n),
        10,
    ),
    _file(
        "MCP servers",
        "mcp:MAX_SERVERS",
        "too many MCP servers",
        lambda n: HEAD + b"mcp: {servers: {%s}}\n" % b", ".join(b"s%d: {command: [x]}" % k for k in range(n)),
        20,
    ),
    _file(
        "retries",
        "",
        "must be at most 1000",
        lambda n: b"version: 1\nsteps: [{run: x, retries: %d}]\n" % n,
        1000,
    ),
    _file(
        "characters of a pattern",
        "values:MAX_PATTERN",
        "longer than 1000 characters",
        lambda n: HEAD + b"params: {a: {pattern: %s}}\n" % (b"a" * n),
        1000,
    ),
    _file(
        "characters that a pattern is matched with",
        "values:MAX_MATCHED",
        "longer than 4096 characters",
        lambda n: HEAD + b"params: {a: {pattern: a, default: %s}}\n" % (b"a" * n),
        4096,
    ),
    _value(
        "characters of a parameter's value",
        "params:MAX_TEXT",
        "longer than 1048576 characters",
        lambda n: _param(b"string", "a" * n),
        MIB,
    ),
    _value(
        "levels of a parameter's value",
        "values:MAX_DEPTH",
        "nested deeper than 64",
        lambda n: _param(b"array", "[" * n + "]" * n),
        64,
    ),
    _value(
        "digits of a parameter's value",
        "values:MAX_DIGITS",
        "not an integer",
        lambda n: _param(b"integer", "1" * n),
        1000,
    ),
    _value(
        "characters of an expression",
        "tree:MAX_TEXT",
        "more than 8192 characters",
        lambda n: parse.parse(f"'{'a' * (n - 2)}'"),
        8192,
    ),
    _value(
        "interpolations in a text",
        "tree:MAX_PLACES",
        "more than 1000 interpolations",
        lambda n: parse.parse_template("${{ run.id }}" * n),
        1000,
    ),
    _value(
        "brackets of an expression",
        "tree:MAX_DEPTH",
        "nested more than 32 levels deep",
        lambda n: parse.parse("(" * n + "1" + ")" * n),
        32,
    ),
    _value(
        "levels of an expression",
        "",
        "nested more than 32 levels deep",
        lambda n: parse.parse("1" + " + 1" * (n - 1)),
        32,
    ),
    _value("parts of a path", "", "more than 32 parts", lambda n: parse.parse("params" + ".a" * n), 32),
    _value(
        "signs in a row", "parse:_MAX_PREFIX", "too many signs", lambda n: parse.parse("not " * n + "true"), 3
    ),
    _value(
        "`else` in an expression",
        "",
        "more than 32 `else`",
        lambda n: parse.parse(" + ".join(["(1 if true else 2)"] * n)),
        32,
    ),
    _value(
        "an integer", "tree:MAX_INTEGER", "more than 64 bits", lambda n: parse.parse(str(n)), (1 << 63) - 1
    ),
    _value(
        "a computed number",
        "",
        "the number is too large",
        lambda n: evaluate(parse.parse(f"{n - 1} + 1"), {}),
        (1 << 63) - 1,
    ),
    _value(
        "characters that an expression makes", "tree:MAX_SIZE", "more than 1048576 characters", _concat, MIB
    ),
    _value(
        "characters of a text with its values",
        "tree:MAX_RENDERED",
        "more than 16777216 characters",
        _rendered,
        16 * MIB,
    ),
    _value("levels of JSON", "functions:_MAX_JSON_DEPTH", "nested deeper than 64", _json, 64),
    _value(
        "names that hash_files looks at",
        "functions:_MAX_ENTRIES",
        "more than 3 files to search",
        _looked_at,
        3,
    ),
    _value("parts of a glob", "functions:_MAX_PARTS", "is not a glob of 1 to 64 parts", _parts, 64),
    _value(
        "bytes of outputs",
        "outputs:MAX_BYTES",
        "larger than 1 MiB",
        lambda n: _read(n, lambda path: outputs.read_outputs(path, {"a": {"type": "string"}}), "a="),
        MIB,
    ),
    _value(
        "bytes of an env file",
        "dotenv:MAX_BYTES",
        "larger than 1 MiB",
        lambda n: _read(n, dotenv.read_env_file, "A="),
        MIB,
    ),
)
