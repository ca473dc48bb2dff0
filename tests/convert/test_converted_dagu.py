"""Dagu files that become plans by the command line, and run; what is not certain is left to a person."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command

SAID = """\
    name: main
    consts: {place: here}
    params: [WHO: bob]
    steps:
      - {name: ask, id: ask, run: 'echo "out=a b" >> "$DAGU_OUTPUT_FILE"', outputs: [{name: out}]}
      - {name: say, run: "echo \\"${steps.ask.outputs.out} ${params.WHO} ${consts.place}\\" >> said"}
    """
RUNS = {
    "a chain": ("steps: [sleep 0.2; echo one >> said, echo two >> said]\n", 0, "one two"),
    "a graph": ("type: graph\nsteps: [until test -e second; do sleep 0.1; done, touch second]\n", 0, ""),
    "side by side": ("steps: [[until test -e second; do sleep 0.1; done, touch second], echo x >> said]\n", 0, "x"),
    "depends": (
        "type: graph\nsteps: [{name: b, run: echo b >> said, depends: a}, {name: a, run: sleep 0.2; echo a >> said}]\n", 0, "a b"
    ),
    "a failure in a script": ("steps:\n  - run: |\n      false\n      echo no >> said\n", 1, ""),
    "a shell that is named": ("shell: bash\nsteps:\n  - run: |\n      false\n      echo yes >> said\n", 0, "yes"),
    "a list of commands": ("steps: [{run: ['cd /; false; x=1', 'echo \"${x:-no}\" >> said']}]\n", 1, ""),
    "each with a shell of its own": ("steps: [{run: ['cd /; x=1', 'echo \"${x:-no}\" >> said']}]\n", 0, "no"),
    "continue_on": ("steps: [{run: exit 3, continue_on: {failure: true}}, echo on >> said]\n", 0, "on"),
    "a failure": ("steps: [exit 3, echo on >> said]\n", 1, ""),
    "retries": (
        "steps: [{run: 'echo x >> said; test $(wc -l < said) -ge 3', retry_policy: {limit: 3, interval_sec: 0}}]\n", 0, "x x x"
    ),
    "retries of an exit code": (
        "steps: [{run: 'echo x >> said; exit 4', retryPolicy: {limit: 2, intervalSec: 0, exitCode: [3]}}]\n", 1, "x"
    ),
    "a precondition": (
        "steps: [{run: echo no >> said, preconditions: test -e no}, {run: echo skipped >> said}]\n", 0, ""
    ),
    "a precondition that may be skipped": (
        "steps: [{run: echo no >> said, preconditions: [{condition: '$X', expected: b}], continueOn: {skipped: true}}, "
        "echo on >> said]\nenv: [X: a]\n", 0, "on"
    ),
    "preconditions that hold": (
        "preconditions: [{condition: '`echo 1`', expected: 're:^[0-9]$'}, {condition: test -e no, negate: true}]\n"
        "steps: [echo a >> said]\n", 0, "a"
    ),
    "an output": ("steps: [{run: 'echo \"a b\"', output: X}, true, 'echo \"[$X]\" >> said']\n", 0, "[a b]"),
    "an output that fails": ("steps: [{run: 'echo a; exit 3', output: X}, 'echo \"[$X]\" >> said']\n", 1, ""),
    "handlers of a failure": (
        "handler_on: {failure: {run: echo f >> said}, success: {run: echo s >> said}, exit: {run: echo e >> said}}\n"
        "steps: [{run: exit 1}]\n", 1, "f e"
    ),
    "handlers of a success": (
        "handlerOn: {init: {run: echo i >> said}, failure: {run: echo f >> said}, success: {run: echo s >> said}, "
        "exit: {run: echo e >> said}}\nsteps: [echo a >> said]\n", 0, "i a s e"
    ),
    "variables": ("env: [A: x, B: \"${A}y$HOMEX\"]\nsteps: [{run: 'echo $B$C >> said', env: [C: '$A']}]\n", 0, "xyx"),
    "another language": ("steps: [{command: python3, script: \"open('said', 'w').write('py')\"}]\n", 0, "py"),
    "what a step hands on": (SAID, 0, "a b bob here"),
    "the working directory": ("working_dir: sub\nsteps: [{run: basename $PWD >> ../said}, {run: 'pwd | wc -l >> said', dir: .}]\n", 0, "sub 1"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "code", "said"), RUNS.values(), ids=RUNS)
def test_a_plan_does_what_the_file_says(
    planrun: Command, tmp_path: Path, text: str, code: int, said: str
) -> None:
    """Order, failures, conditions, variables and handlers."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "dag.yaml").write_text(dedent(text), "utf-8")
    done = planrun("convert", "dag.yaml", "--from", "dagu", "-o", "plan.yml")
    assert done.returncode == 0, done.stderr
    ran = planrun("execute", "plan.yml", "--jobs", "4")
    assert ran.returncode == code, ran.stdout + ran.stderr
    path = tmp_path / "said"
    assert (path.read_text("utf-8").split() if path.exists() else []) == said.split()


LEFT = {
    "{action: http.request, with: {method: GET, url: https://example.com}}": "the action or executor `http.request`",
    "{type: ssh, command: uptime, with: {host: a}}": "the action or executor `ssh`",
    "{executor: {type: mail}, command: x}": "the action or executor `mail`",
    "{executor: jq, command: .a, script: '{}'}": "the action or executor `jq`",
    "{command: x, repeatPolicy: {repeat: while, limit: 3}}": "`repeatPolicy`",
    "{run: x, parallel: [1, 2]}": "`parallel`",
    "{run: x, continueOn: {exitCode: [3]}}": "`continueOn` with more than `failure` and `skipped`",
    "{command: [echo, a]}": "a list, which is words for some versions and commands for others",
    "{call: elsewhere}": "it runs no command",
    "{run: 'echo ${steps.other.outputs.x}'}": "`${steps.other.outputs.x}` is known to Dagu alone",
    "{run: 'echo $DAG_RUN_LOG_FILE'}": "`DAG_RUN_LOG_FILE` is a variable of Dagu",
    "{run: x, shell: nix-shell}": "the program `nix-shell` runs it",
    "{run: x, output: {a: b}}": "an output in several parts",
    "{run: x, retryPolicy: {limit: $N}}": "a `retryPolicy` that Dagu works out",
    "{run: x, retryPolicy: {limit: 2, backoff: true}}": "a `retryPolicy` that Dagu works out, or with `backoff`",
    "{run: x, stdout: out.txt}": "`stdout`",
}


@pytest.mark.parametrize(("step", "why"), LEFT.items())
def test_what_is_not_certain_is_an_abstract_step(
    planrun: Command, tmp_path: Path, step: str, why: str
) -> None:
    """Its text is its description, its edges stay, and nothing runs."""
    (tmp_path / "dag.yaml").write_text(
        f"type: graph\nsteps:\n  - {{id: a, run: touch ran}}\n  - {step[:-1]}, id: b, depends: a}}\n"
    )
    done = planrun("convert", "dag.yaml", "--from", "dagu", "-o", "plan.yml")
    assert (done.returncode, f": the step b: {why}" in done.stderr) == (0, True), done.stderr
    plan = (tmp_path / "plan.yml").read_text()
    assert step.strip("{}").split(":", maxsplit=1)[0] in plan[plan.index("description:") :]
    assert "depends_on: [a]" in plan
    assert planrun("execute", "plan.yml").returncode == 2
    assert not (tmp_path / "ran").exists()


def test_edges_that_cannot_be_are_refused(planrun: Command, tmp_path: Path) -> None:
    """As Dagu refuses them."""
    (tmp_path / "dag.yaml").write_text("steps: [{id: a, depends: b, run: x}, {id: b, depends: a, run: x}]\n")
    assert planrun("convert", "dag.yaml", "--from", "dagu").returncode == 2


WHOLE = {
    "steps: [{run: x, depends: no}]\n": 'there is no step "no" to wait for',
    "params: p q\nsteps: ['echo $1']\n": "it takes parameters by position",
    "defaults: {env: [A: 1]}\nsteps: ['echo $A']\n": "`defaults`",
    "steps: [{call: other}]\n---\nname: other\nsteps: ['echo x']\n": "it runs no command",
}


@pytest.mark.parametrize(("text", "why"), WHOLE.items())
def test_parts_of_the_whole_file_that_are_not_kept_leave_their_steps(
    planrun: Command, tmp_path: Path, text: str, why: str
) -> None:
    """Parameters by position, defaults of all steps, and other DAGs of the file."""
    (tmp_path / "dag.yaml").write_text(text)
    done = planrun("convert", "dag.yaml", "--from", "dagu", "-o", "plan.yml")
    assert (done.returncode, f": the step step-1: {why}" in done.stderr) == (0, True), done.stderr
    assert planrun("execute", "plan.yml").returncode == 2
