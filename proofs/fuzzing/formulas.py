"""Expressions made at random: of the language's own grammar, of what is near it, and of pieces in any order."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

PATHS = (
    "params.target", "params.n", "params['target']", "params.shape.a[0]", "env.HOME", "run.ci", "run.id",
    "run.sha",
    "steps.a.status", "steps.a.outputs.n", "steps['a'].exit_code", "steps.b.attempts", "steps[1].status",
    "step.dir",
    "step_a_failed", "step_b_succeeded", "step_1_failed", "item", "matrix.os", "params", "steps", "steps.a",
    "params[params.n]", "params.list[-1]", "fromjson(params.target).x", "secrets.X", "github.ref",
    "unknown", "a-b",
)  # fmt: skip
CONSTANTS = (
    "true", "false", "none", "0", "1", "-1", "3.10", "1e308", "1e999", "0x1f", "0o17", "9223372036854775807",
    "9223372036854775808", "1_000", "''", '""', "'prod'", '"a b"', "'\\n'", "'\\u00e9'", "'\\ud800'",
    "'\\x00'", "[]",
    "[1, 'a', none]", "'completed'", "'faild'", "'é日😀'", "null", "True",
)  # fmt: skip
OPERATORS = (
    "and",
    "or",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "in",
    "not in",
    "+",
    "-",
    "*",
    "~",
    "/",
    "%",
    "**",
    "//",
)
FUNCTIONS = (
    "len",
    "contains",
    "startswith",
    "endswith",
    "default",
    "join",
    "fromjson",
    "tojson",
    "hash_files",
    "range",
    "sh",
)
PIECES = (
    "(", ")", "[", "]", "{", "}", ".", ",", "|", "'", '"', "\\", "~", "=", "==", "===", "&&", "||", "!",
    "?", ":", "%}",
    "{%", "{{", "}}", "${{", "$${{", "{#", "#}", "\t", "\n", "\r", "\0", "\x85", "\u2028", "\u202e",
    "\ufeff", "é", "\U0001d41a",
    "if", "else", "not", "is", "in", "lambda", "__class__", "for", "**", "//", "@", "`", ";", "0", "1e",
    "0x", "_",
)  # fmt: skip


def expression(chance: Random, depth: int = 4) -> str:
    """Return an expression that mostly follows the grammar."""
    if depth <= 0 or chance.random() < 0.3:
        return chance.choice(chance.choice((PATHS, CONSTANTS)))

    return chance.choice(_FORMS)(chance, lambda: expression(chance, depth - 1))


def _listed(chance: Random, inner: Callable[[], str]) -> str:
    return ", ".join(inner() for _ in range(chance.randrange(4)))


def _joined(chance: Random, inner: Callable[[], str]) -> str:
    return f"{inner()} {chance.choice(OPERATORS)} {inner()}"


def _call(chance: Random, inner: Callable[[], str]) -> str:
    return f"{chance.choice(FUNCTIONS)}({_listed(chance, inner)})"


def _piped(chance: Random, inner: Callable[[], str]) -> str:
    return f"{inner()} | {chance.choice(FUNCTIONS)}{chance.choice(('', f'({inner()})'))}"


def _choice(chance: Random, inner: Callable[[], str]) -> str:
    return f"{inner()} if {inner()}{chance.choice((f' else {inner()}', ''))}"


_FORMS: tuple[Callable[[Random, Callable[[], str]], str], ...] = (
    _joined, _joined, _joined, _call, _call, _piped, _choice,
    lambda _chance, inner: f"({inner()})",
    lambda chance, inner: chance.choice(("not ", "-", "+", "not not ")) + inner(),
    lambda chance, inner: f"[{_listed(chance, inner)}]",
    lambda _chance, inner: f"{inner()}[{inner()}]",
)  # fmt: skip


def deep(chance: Random) -> str:
    """Return an expression that is nested, or long, about as much as is allowed, or very much more."""
    times = chance.choice((4, 15, 31, 32, 33, 64, 500, 3000))
    before, after = chance.choice(
        (
            ("(", ")"),
            ("[", "]"),
            ("not ", ""),
            ("-", ""),
            ("len(", ")"),
            ("default(1, ", ")"),
            ("1 if true else ", ""),
        )
    )
    if chance.random() < 0.3:
        return f" {chance.choice(OPERATORS)} ".join([expression(chance, 0)] * times)
    return before * times + expression(chance, 1) + after * times


def text(chance: Random) -> str:
    """Return a bare expression, now and then with pieces of others in it."""
    made = deep(chance) if chance.random() < 0.1 else expression(chance, chance.choice((1, 2, 4, 6)))
    while chance.random() < 0.3:
        at = chance.randrange(len(made) + 1)
        made = made[:at] + chance.choice(PIECES) + made[at + chance.choice((0, 0, 1)) :]
    return made


def template(chance: Random) -> str:
    """Return a text with interpolations, as a script has them: in quotes, behind `| sh`, broken off."""
    parts = []
    for _ in range(chance.choice((1, 1, 2, 5))):
        quote = chance.choice(("", "", "'", '"', "$(", "`", "<<E\n", "# ", "\\", "$'", "${x:-"))
        close = chance.choice((" }}", " | sh }}", "}}", " }", ""))
        parts.append(f"echo {quote}${{{{ {text(chance)}{close}{quote}")
    return chance.choice((" ", "\n", "; ")).join(parts)
