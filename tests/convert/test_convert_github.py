"""GitHub workflows as plans: what each construct becomes, and what is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.convert.convert import Converted

    Make = Callable[..., Converted]

JOB = """\
    on: [push]
    jobs:
      a:
        runs-on: ubuntu-latest
"""


def steps_of(found: Converted) -> dict[str, dict[str, Any]]:
    """Return the steps of a plan that was written, by id, as any reader of YAML sees them."""
    assert found.text, [finding.text for finding in found.findings]
    return {step["id"]: step for step in yaml.safe_load(found.text)["steps"]}


def codes(found: Converted, kind: str) -> set[str]:
    """Return the codes of the findings of one kind."""
    return {finding.code for finding in found.findings if finding.kind == kind}


def test_a_job_with_one_step_is_a_step(made: Make) -> None:
    """It has the job's name, and the shell and the time that hold there where nothing is said."""
    found = made(JOB + "        steps:\n          - run: make\n")
    assert steps_of(found) == {"a": {"id": "a", "run": "make"}}
    assert yaml.safe_load(found.text)["defaults"] == {"shell": "bash -e", "timeout": "6h"}


def test_steps_of_a_job_wait_for_each_other(made: Make) -> None:
    """They are named by id, by a few words of their name, or by their position."""
    found = made(
        JOB
        + """\
        steps:
          - {id: one, run: a}
          - {name: Do it now, run: b}
          - run: c
      b:
        needs: a
        steps: [{run: d}]
"""
    )
    edges = {name: step.get("depends_on") for name, step in steps_of(found).items()}
    assert edges == {"a.one": None, "a.do-it-now": ["a.one"], "a.3": ["a.do-it-now"], "b": ["a.3"]}


@pytest.mark.parametrize(
    ("words", "condition"),
    [
        ("github.ref == 'refs/heads/main'", "run.ref == 'refs/heads/main'"),
        ("${{ github.event_name != 'push' && github.ref }}", "run.event != 'push' and run.ref != ''"),
        ("!startsWith(github.ref, 'refs/tags/')", "not startswith(run.ref, 'refs/tags/')"),
        ('contains(fromJSON(\'["a", "b"]\'), github.ref)', "run.ref in ['a', 'b']"),
        ("github.actor == 'me'", "default(env.GITHUB_ACTOR, '') == 'me'"),
        ("runner.os == 'Linux'", None),
        ("runner.os == 'LINUX' && 'a' == 'A' && github.ref == 'x'", "run.ref == 'x'"),
        ("'1' == 1 && '' == 0 && contains(fromJSON('[1, 2]'), '2')", None),
        ("format('{0}-{1}', github.ref, github.sha) == '1'", "run.ref ~ '-' ~ run.sha == '1'"),
    ],
)
def test_a_condition_in_other_words(made: Make, words: str, condition: str | None) -> None:
    """What an `if` says is said by `condition`; what is always true is left out."""
    found = made(
        JOB
        + f'        steps:\n          - run: make\n            if: "{words.replace(chr(34), chr(92) + chr(34))}"\n'
    )
    assert steps_of(found)["a"].get("condition") == condition


def test_status_functions_are_edges(made: Make) -> None:
    """`failure()` and `always()` run after what failed, and what follows them still wants success."""
    found = made(
        JOB
        + """\
        steps:
          - {id: x, run: a}
          - {id: y, run: b, if: failure()}
          - {id: z, run: c, if: always()}
          - {id: end, run: d}
"""
    )
    steps = steps_of(found)
    assert steps["a.y"]["depends_on"] == {"a.x": "done"}
    assert steps["a.y"]["condition"] == "steps['a.x'].status == 'failed'"
    assert steps["a.z"]["depends_on"] == {"a.x": "done", "a.y": "done"}
    assert steps["a.end"]["depends_on"] == ["a.x", "a.y", "a.z"]


def test_an_unknown_action_is_a_step_without_an_action(made: Make) -> None:
    """It says what it was."""
    found = made(JOB + "        steps:\n          - {uses: a/b@v1, with: {x: 1}}\n")
    assert codes(found, "todo") == {"uses:a/b"}
    text = "{uses: a/b@v1, with: {x: 1}}"
    assert steps_of(found) == {"a": {"id": "a", "title": "a", "description": text}}


SERVED = (
    JOB
    + """\
        services:
          cache: {image: "memcached:1", ports: [11211/tcp]}
          cache-tls: {image: "memcached:1", ports: [11211/tcp]}
        strategy: {matrix: {size: [1, 2]}}
        steps:
          - run: prepare
          - run: check ${{ job.services.cache.ports[11211] }} ${{ job.services.cache-tls.ports['11211'] }}
"""
)


def test_the_port_of_a_service_is_a_parameter(made: Make) -> None:
    """Each service has one of its own with the port of its image, and a person is told to say where it answers."""
    found = made(SERVED)
    assert found.text, [finding.text for finding in found.findings]
    params = yaml.safe_load(found.text)["params"]
    assert {name: fragment["default"] for name, fragment in params.items()} == {
        "cache_port": 11211,
        "cache_tls_port": 11211,
    }
    assert "check ${{ params.cache_port }} ${{ params.cache_tls_port }}" in found.text
    assert "service-port" in codes(found, "todo")


def test_instances_keep_their_own_way_beside_services(made: Make) -> None:
    """What reads ports is a script like any other, with an instance for each value."""
    assert "matrix-chain" not in codes(made(SERVED), "differs")


def test_services_shared_by_instances_are_told(made: Make) -> None:
    """There each instance has services of its own; without a matrix nothing differs."""
    assert "shared-services" in codes(made(SERVED), "differs")
    alone = SERVED.replace("        strategy: {matrix: {size: [1, 2]}}\n", "")
    assert "shared-services" not in codes(made(alone), "differs")


@pytest.mark.parametrize(
    "path", ["job.services.cache.id", "job.services.other.ports[1]", "job.services.cache.ports[0]"]
)
def test_what_else_there_is_of_services_is_left(made: Make, path: str) -> None:
    """Containers have no id before they run, and a port is one of a service that the job has."""
    text = SERVED.replace("run: prepare", f'run: "prepare ${{{{ {path} }}}}"')
    assert "expression" in codes(made(text), "todo")


def test_two_ports_of_a_service_are_two_parameters(made: Make) -> None:
    """The second one has its number in its name."""
    found = made(SERVED.replace("run: prepare", "run: prepare ${{ job.services.cache.ports[8080] }}"))
    assert set(yaml.safe_load(found.text)["params"]) == {"cache_port", "cache_port_11211", "cache_tls_port"}
