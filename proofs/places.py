"""Every place of a plan that takes a value, and the plan that has them all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Place(NamedTuple):
    """A place that takes a value: the step that has it, and the words that must arrive, `@` standing for the value."""

    name: str
    step: str
    words: tuple[str, ...] = ("@",)
    bare: bool = False
    text: bool = False
    json: bool = False


_SHOW = 'sh "$PLANRUN_WORKSPACE/show"'
_X = "${{ params.x }}"
_X_SH = "${{ params.x | sh }}"


def _run(name: str, script: str, *words: str, more: str = "", **how: bool) -> Place:
    return Place(name, f"run: {json.dumps(f'{_SHOW} {name} {script}')}{more}", words or ("@",), **how)


def _exec(name: str, given: Sequence[str], *words: str, more: str = "", **how: bool) -> Place:
    argv = json.dumps(["sh", "show", name, *given])
    return Place(name, f"exec: {argv}{more}", words or ("@",), **how)


_GIVE = "{ echo 'x<<end of it'; printf '%s\\n' \"$X\"; echo 'end of it'; } >> \"$PLANRUN_OUTPUT\""
PLACES = (
    _run("bare", f"{_X} end", "@", "end", bare=True),
    _run("bare_inside", f"a{_X}b", "a@b", bare=True),
    _run("quoted", f"{_X_SH} end", "@", "end"),
    _run("quoted_inside", f"'it'a{_X_SH}\"b\"", "ita@b"),
    _run("quoted_in_bash", f"{_X_SH} end", "@", "end", more=", shell: bash"),
    _run("in_a_command", f'"$(printf "%s." {_X_SH})"', "@."),
    _run("twice", f"{_X_SH} {_X_SH}", "@", "@"),
    _exec("exec", [_X, f"a{_X}b", "end"], "@", "a@b", "end"),
    _run("env", '"$X" "$Y"', "@", "a@b", more=', env: {X: "' + _X + '", Y: "a' + _X + 'b"}'),
    _run("env_of_the_plan", '"$TOP"'),
    _run("list", "${{ params.list | sh }} end", "@", "a", "@", "end"),
    _exec("from_json", ["${{ fromjson(params.json) }}"], json=True),
    _run("from_json_quoted", "${{ fromjson(params.json) | sh }}", json=True),
    _exec("output", ["${{ steps.give.outputs.x }}"], more=", depends_on: [give]", text=True),
    _run("output_quoted", "${{ steps.give.outputs.x | sh }}", more=", depends_on: [give]", text=True),
    _run(
        "output_bare",
        "${{ steps.give.outputs.x }} end",
        "@",
        "end",
        more=", depends_on: [give]",
        text=True,
        bare=True,
    ),
    _exec("condition", ["${{ params.x }}"], more=', condition: "params.x == default(params.none, params.x)"'),
    _exec("default", ["${{ default(params.none, params.x) }}"]),
)
"""Where a value arrives in a program. In the others it names something that is not there, and must do nothing else."""
NAMES = {
    "as_program": 'exec: ["none/${{ params.x }}"]',  # `yes` is a value, too
    "as_folder": 'exec: ["true"], workdir: "${{ params.x }}"',
    "as_env_file": 'exec: ["true"], env_file: "${{ params.x }}"',
    "as_file": 'validate: [{files_exist: "none/${{ params.x }}"}]',
    "as_glob": 'exec: [echo, "${{ hash_files(params.x) }}"]',
}
_PLAN = """\
version: 1
name: values
params: {x: {type: string, required: true}, json: {type: string, required: true}, list: {type: array, required: true},
         none: {type: string}}
env: {TOP: "${{ params.x }}"}
defaults: {shell: sh, on_failure: continue, timeout: 2m}
steps:
  - {id: give, run: %s, env: {X: "${{ params.x }}"}, outputs: {x: string}, on_failure: block}
%s
finally:
  - {id: at_last, exec: [sh, show, at_last, "${{ params.x }}"]}
"""
SHOW_FILE = """\
name=$1
shift
for word do printf '%s\\0' "$word"; done > "$PLANRUN_WORKSPACE/shown/$name"
"""


def plan_text() -> str:
    """Return a plan with a step for each place, one that hands the value on, and one at the end."""
    rows = [f"  - {{id: {place.name}, {place.step}}}" for place in PLACES]
    rows += [f"  - {{id: {name}, {step}}}" for name, step in NAMES.items()]
    return _PLAN % (json.dumps(_GIVE), "\n".join(rows))
