"""What a plan file is compiled to: defaults resolved, edges complete, expressions parsed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from planrun.errors import InvalidPlan
from planrun.expressions.evaluate import evaluate
from planrun.expressions.render import render_script
from planrun.model.plan import Abstract, Edge, Limits, Param, Retry
from planrun.plan.kinds.command import Exec, Run
from planrun.plan.kinds.validate import Validate
from planrun.plan.load import load_bytes

if TYPE_CHECKING:
    from planrun.model.plan import Plan, Step


def compiled(text: str) -> Plan:
    """Compile a plan without the cache."""
    return load_bytes(text.encode(), "plans/release.yml", cache=False)


def only_step(*lines: str) -> Step:
    """Compile a plan of one step."""
    return compiled("version: 1\nsteps:\n" + "".join(f"  {line}\n" for line in lines)).steps[0]


def edges(plan: Plan) -> dict[str, list[tuple[str, str]]]:
    """Return the edges of all steps as (on, kind)."""
    return {step.id: [(edge.on, edge.kind) for edge in step.edges] for step in plan.steps}


SEEDS = """\
version: 1
steps:
  - id: 1
    title: Build
    run: make
  - id: 2
    run: make test
    depends_on: [1]
  - id: 3
    run: make fix
    depends_on: [2]
    condition: step_2_failed
  - id: 4
    run: make deploy
    depends_on: [2]
    condition: step_2_succeeded
"""


def test_the_seeds_form_makes_done_edges_of_conditions() -> None:
    """`depends_on: [2]` with `condition: step_2_failed` waits for the end of 2, however it ends."""
    plan = compiled(SEEDS)
    assert edges(plan) == {"1": [], "2": [("1", "ok")], "3": [("2", "done")], "4": [("2", "done")]}
    assert plan.steps[2].condition_text == "step_2_failed"
    scope: dict[str, Any] = {"steps": {"2": {"status": "failed"}}}
    assert [evaluate(step.condition, scope) for step in plan.steps if step.condition] == [True, False]


def test_a_condition_adds_edges_and_keeps_written_ones() -> None:
    """An edge that is not written is added as `done`; the mapping form and `recovers` stay as they are."""
    plan = compiled(
        "version: 1\nsteps:\n"
        "  - {id: a, run: x}\n"
        "  - {id: b, run: x}\n"
        "  - {id: c, run: x, condition: step_a_failed or step_b_failed, depends_on: {b: completed}}\n"
        "  - {id: d, run: x, condition: step_a_failed, recovers: [a]}\n"
        "  - {id: e, run: x, condition: \"steps.a.status in ['failed', 'skipped']\", depends_on: [a, a, b]}\n"
    )
    assert edges(plan) == {
        "a": [],
        "b": [],
        "c": [("b", "completed"), ("a", "done")],
        "d": [("a", "failed")],
        "e": [("a", "done"), ("b", "ok")],
    }
    assert plan.steps[3].recovers == ("a",)


def test_steps_without_id_are_called_by_their_position_in_the_file() -> None:
    """Steps under `finally:` go on counting where `steps:` ended."""
    plan = compiled("version: 1\nsteps:\n  - run: a\n  - run: b\nfinally:\n  - run: c\n")
    assert [(step.id, step.section, step.line, step.col) for step in plan.steps] == [
        ("1", "steps", 3, 5),
        ("2", "steps", 4, 5),
        ("3", "finally", 6, 5),
    ]
    assert [step.id for step in plan.main()] == ["1", "2"]
    assert [step.id for step in plan.cleanup()] == ["3"]


def test_a_setting_comes_from_the_step_then_defaults_then_the_program() -> None:
    """Timeouts, retries, shell, on_failure, idle_timeout and workdir are resolved into each step."""
    plain = only_step("- run: x")
    assert (plain.timeout, plain.retries, plain.shell, plain.on_failure) == (300.0, Retry(), (), "block")
    assert (plain.idle_timeout, plain.workdir) == (None, None)
    plan = compiled(
        "version: 1\n"
        "defaults: {timeout: 10m, idle_timeout: 90s, retries: 2, shell: sh -eu, on_failure: skip, workdir: lib,"
        " inherit_env: none}\n"
        "steps:\n"
        "  - run: x\n"
        "  - {run: x, timeout: 5m, idle_timeout: 500ms, retries: 0, shell: [python3], on_failure: abort, workdir: .}\n"
    )
    first, second = plan.steps
    assert (first.timeout, first.idle_timeout, first.retries.max, first.shell) == (
        600.0,
        90.0,
        2,
        ("sh", "-eu"),
    )
    assert (first.on_failure, first.workdir, plan.inherit_env) == ("skip", "lib", "none")
    assert (second.timeout, second.idle_timeout, second.retries.max) == (300.0, 0.5, 0)
    assert (second.shell, second.on_failure, second.workdir) == (("python3",), "abort", ".")


def test_retries_in_full() -> None:
    """Backoff and filters become numbers and tuples."""
    step = only_step(
        "- run: x",
        "  retries:",
        "    max: 2",
        "    backoff: {initial: 2s, factor: 3, max: 1m, jitter: 0}",
        '    on: [timeout, transient, {exit: [75, 137]}, {exit: 1}, {match: "Connection reset"}]',
    )
    rules = (
        ("timeout",),
        ("class", "transient"),
        ("exit", (75, 137)),
        ("exit", (1,)),
        ("match", "Connection reset"),
    )
    assert step.retries == Retry(max=2, initial=2.0, factor=3.0, cap=60.0, jitter=0.0, on=rules)


def test_actions() -> None:
    """Each action becomes its record; a step without one is abstract."""
    plan = compiled(
        "version: 1\nsteps:\n"
        "  - run: echo hi\n"
        '  - exec: [ls, -l, "a b"]\n'
        "  - validate:\n"
        "      - files_exist: [a, b]\n"
        "      - env_set: HOME\n"
        "      - that: run.ci\n"
        "      - json_schema: {file: x.json, schema: {type: object, required: [a]}}\n"
        "  - title: Think about it\n"
    )
    run, program, checks, abstract = [step.action for step in plan.steps]
    assert [step.kind for step in plan.steps] == ["run", "exec", "validate", "abstract"]
    assert run == Run(script="echo hi")
    assert program == Exec(argv=("ls", "-l", "a b"))
    assert abstract == Abstract()
    assert isinstance(checks, Validate)
    found = [(check.kind, check.source, check.value) for check in checks.checks]
    assert found[0] == ("files_exist", "a, b", ("a", "b"))
    assert found[1] == ("env_set", "HOME", ("HOME",))
    assert found[2][:2] == ("that", "run.ci")
    assert evaluate(found[2][2], {"run": {"ci": True}}) is True
    assert found[3] == (
        "json_schema",
        "x.json",
        {"file": "x.json", "schema": {"type": "object", "required": ["a"]}},
    )


def test_templates_are_parsed_once_and_known_for_what_they_need() -> None:
    """A text with `${{` is a template; one that reads `step.dir` says that it needs the folder."""
    step = only_step("- run: echo ${{ run.id }} > ${{ step.dir }}/x", "  env: {A: '$${{ }}', B: 'b'}")
    assert isinstance(step.action, Run)
    assert render_script(step.action.script, {"run": {"id": "r1"}, "step": {"dir": "/d"}}) == "echo r1 > /d/x"
    assert step.needs_dir
    assert step.env == {"A": "${{ }}", "B": "b"}
    assert not only_step("- run: echo ${{ run.id }}").needs_dir


def test_words_for_people_and_selection() -> None:
    """What only reports and selection use is kept as it is."""
    step = only_step(
        "- run: x", "  title: T", "  description: D", "  owner: O", "  notes: N", "  tags: [a, b]",
        "  estimated_tokens: 300", "  idempotent: false", "  parallel: true",
    )  # fmt: skip
    assert (step.title, step.description, step.owner, step.notes) == ("T", "D", "O", "N")
    assert (step.tags, step.estimated_tokens, step.idempotent, step.parallel) == (
        ("a", "b"),
        300,
        False,
        True,
    )


def test_the_top_of_the_plan() -> None:
    """Name, params, limits, environment and outputs; the name falls back to the file's."""
    plan = compiled(
        "version: 1\ndescription: D\ngoal: G\nschedule: levels\nenv: {A: 1.0}\nenv_file: ci.env\n"
        "limits: {max_parallel: 4, deadline: 1h30m, max_steps: 9}\n"
        "params:\n  target: {enum: [staging, prod], default: staging}\n  version: {pattern: '^v', required: true}\n"
        "  jobs: integer\n"
        "outputs: {n: '${{ steps.a.outputs.n }}'}\n"
        "steps:\n  - {id: a, run: x, outputs: {n: string, m: {type: integer, minimum: 1}}}\n"
    )
    assert (plan.name, plan.file, plan.description, plan.goal) == ("release", "plans/release.yml", "D", "G")
    assert (plan.schedule, plan.env, plan.env_file) == ("levels", {"A": "1.0"}, ("ci.env",))
    assert plan.limits == Limits(max_parallel=4, deadline=5400.0, max_steps=9)
    assert plan.params == (
        Param(name="target", schema={"type": "string", "enum": ["staging", "prod"], "default": "staging"}),
        Param(name="version", schema={"type": "string", "pattern": "^v"}, required=True),
        Param(name="jobs", schema={"type": "integer"}),
    )
    assert list(plan.outputs) == ["n"]
    assert plan.steps[0].outputs == {"n": {"type": "string"}, "m": {"type": "integer", "minimum": 1}}
    assert plan.source.startswith(b"version: 1")


RELEASE = """\
version: 1
name: release
description: Test, build and ship the service.
goal: Ship the service when every gate is green.
params:
  target:  {type: string, enum: [staging, prod], default: staging}
  version: {type: string, pattern: '^\\d+\\.\\d+\\.\\d+$', required: true}
env: {PYTHONUNBUFFERED: "1"}
defaults: {timeout: 10m, retries: 0, shell: bash, on_failure: block}
limits: {max_parallel: 4, deadline: 1h, max_steps: 500}
schedule: dag
steps:
  - id: lint
    run: ruff check . && mypy src
    on_failure: continue
  - id: test
    title: Unit tests
    run: pytest -q --junitxml=${{ step.dir }}/junit.xml
    timeout: 15m
    retries: {max: 2, backoff: {initial: 2s, factor: 2, max: 30s}, on: [timeout, {exit: [75]}, {match: "reset"}]}
  - id: version
    run: echo "sha=$(git rev-parse --short HEAD)" >> "$PLANRUN_OUTPUT"
    outputs: {sha: string}
  - id: fix
    depends_on: {test: failed}
    run: ./fix.sh
    recovers: [test]
  - id: approve
    depends_on: [test, lint]
    validate:
      - that: params.version != '0.0.0'
  - id: publish
    depends_on: {approve: completed, version: ok}
    condition: params.target == 'prod' and run.ci
    exec: [twine, upload, "dist/${{ steps.version.outputs.sha }}"]
finally:
  - id: collect
    run: tar -czf build/logs.tgz logs
    timeout: 1m
"""


def test_a_plan_as_people_write_them() -> None:
    """The pieces of a release work together."""
    plan = compiled(RELEASE)
    assert edges(plan) == {
        "lint": [],
        "test": [],
        "version": [],
        "fix": [("test", "failed")],
        "approve": [("test", "ok"), ("lint", "ok")],
        "publish": [("approve", "completed"), ("version", "ok")],
        "collect": [],
    }
    assert [step.timeout for step in plan.steps] == [600.0, 900.0, 600.0, 600.0, 600.0, 600.0, 60.0]
    assert [step.needs_dir for step in plan.steps] == [False, True, False, False, False, False, False]


def test_equal_edges_are_one_record() -> None:
    """Ten thousand steps that wait for one cost one edge, not ten thousand."""
    plan = compiled(
        "version: 1\nsteps:\n  - {id: a, run: x}\n  - {run: x, depends_on: [a]}\n  - {run: x, depends_on: [a]}\n"
    )
    assert plan.steps[1].edges == (Edge(on="a", kind="ok"),)
    assert plan.steps[1].edges[0] is plan.steps[2].edges[0]


def test_a_plan_with_problems_is_not_compiled() -> None:
    """All problems come at once, with the source for excerpts."""
    data = b"version: 1\nsteps:\n  - {id: a, run: x, retires: 1, depends_on: [q]}\n"
    with pytest.raises(InvalidPlan) as caught:
        load_bytes(data, "p.yml", cache=False)
    assert len(caught.value.problems) == 2
    assert caught.value.sources == {"p.yml": data}
