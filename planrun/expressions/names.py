"""Names that expressions may and may not use, and what to say about the others."""

from __future__ import annotations

from planrun.expressions.tree import FUNCTIONS, ROOTS

_MAX_SHOWN = 80  # characters
_SEED = "step_"
_SUFFIXES = {"_failed": "failed", "_succeeded": "completed"}
_FOREIGN_NAMES = {
    "secrets": "a secret is never put into a text: list it under the step's `secrets` and read the environment "
    'variable, as "$NAME"',
    "null": "`null` is written `none`",
    "nil": "`nil` is written `none`",
    "undefined": "there is no `undefined`; use default(value, otherwise)",
    "github": "there is no `github`; the run's own names are run.id, run.ci, run.ref, run.sha and run.event",
    "inputs": "there is no `inputs`; the plan's parameters are `params`",
    "vars": "there is no `vars`; the plan's parameters are `params`",
    "needs": "there is no `needs`; earlier steps are `steps`",
    "outputs": "there is no `outputs`; a step's outputs are steps.<id>.outputs",
}
_ALWAYS = "; whether a step runs after a failure is said by `depends_on: {id: done}` or `finally:`"
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
    "format": "; join texts by `~`",
    "d": "; use default",
    "quote": "; in a script use `| sh`",
    "sh": ": `| sh` comes last inside `${{ }}` in `run:`, behind ( ) around more than one value; "
    "`env:` and `exec:` take any value as it is",
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
        dashed = "and one with a dash or a dot in its id by steps['<id>'].status"
        return f"unknown name `{shown(name)}`; a step is asked for by {forms}, {dashed}"
    quoted = f"; quote text: '{shown(name)}'" if alone else ""
    return f"unknown name `{shown(name)}`{quoted}" + _nearest(name, ROOTS, f"; names are {', '.join(ROOTS)}")


def unknown_function(name: str) -> str:
    """Return what is wrong with a function or filter that is none."""
    if name in _FOREIGN_FUNCTIONS:
        return f"there is no function `{name}` here{_FOREIGN_FUNCTIONS[name]}"
    others = f"; functions are {', '.join(FUNCTIONS)}"
    return f"unknown function `{shown(name)}`" + _nearest(name, tuple(FUNCTIONS), others)


def arity(name: str) -> str:
    """Return how many arguments a function takes."""
    fewest, most = FUNCTIONS[name]
    amount = str(fewest) if fewest == most else f"{fewest} to {most}"
    return f"`{name}` takes {amount} argument{'' if most == 1 else 's'}, the one before `|` included"


def shown(name: str) -> str:
    """Return what a message shows of a name or token, which may be as long as an expression."""
    return name if len(name) <= _MAX_SHOWN else name[:_MAX_SHOWN] + "…"


def _nearest(name: str, known: tuple[str, ...], otherwise: str) -> str:
    from difflib import get_close_matches  # load time only, and only for an error

    close = get_close_matches(name.lower()[:100], known, n=1)
    return f"; did you mean `{close[0]}`?" if close else otherwise
