"""The digest is the meaning of a plan: it changes with every meaning and with nothing else."""

from __future__ import annotations

import pytest

from planrun.plan.load import load_bytes

PLAN = """\
version: 1
params: {target: {type: string, default: prod}, level: {type: integer, default: 1}}
env: {A: "1", B: "2"}
steps:
  - id: build
    run: make ${{ params.target }}
    timeout: 10m
  - id: test
    run: make test
    depends_on: [build]
    condition: params.target == 'prod'
    tags: [fast]
"""


def digest(text: str, file: str = "plan.yml") -> str:
    """Return the digest of a plan."""
    return load_bytes(text.encode(), file, cache=False).digest


DECISIONS = "decisions: {d: {question: q, options: [{label: x, when: run.ci}, {label: z}]}}\n"
SAME = {
    "comments": ("steps:", "# the steps\nsteps:  # here"),
    "empty lines": ("steps:", "\n\nsteps:"),
    "order of keys": (
        "    run: make test\n    depends_on: [build]\n",
        "    depends_on: [build]\n    run: make test\n",
    ),
    "order of variables": ('{A: "1", B: "2"}', '{B: "2", A: "1"}'),
    "order of parameters": (
        "{target: {type: string, default: prod}, level: {type: integer, default: 1}}",
        "{level: {default: 1, type: integer}, target: {type: string, default: prod}}",
    ),
    "quotes": ("run: make test", "run: 'make test'"),
    "another spelling of a duration": ("timeout: 10m", "timeout: 600s"),
    "the timeout of the program written out": ("tags: [fast]", "tags: [fast]\n    timeout: 5m"),
    "a default that is written": ("tags: [fast]", "tags: [fast]\n    on_failure: block\n    retries: 0"),
    "a setting that moves to the defaults": (
        "    timeout: 10m\n",
        "    timeout: 10m\n    idempotent: true\n",
    ),
    "spaces in an expression": ("params.target == 'prod'", "params.target   ==   'prod'"),
    "spaces in a template": ("${{ params.target }}", "${{params.target}}"),
    "a block": ("    run: make test\n", "    run: >-\n      make\n      test\n"),
    "long form of an edge": ("depends_on: [build]", "depends_on: {build: ok}"),
    "an empty environment": ("tags: [fast]", "tags: [fast]\n    env: {}"),
    "the name written out": ("version: 1\n", "version: 1\nname: plan\n"),
}
OTHER = {
    "policy": ("version: 1\n", "version: 1\npolicy: {auto_approve: low}\n"),
    "rule": ("version: 1\n", "version: 1\npolicy: {rules: [{deny: {step: build}}]}\n"),
    "verb of a rule": ("version: 1\n", "version: 1\npolicy: {rules: [{require: {step: build}}]}\n"),
    "answer": ("version: 1\n", "version: 1\npolicy: {decisions: {d: x}}\n" + DECISIONS),
    "another answer": ("version: 1\n", "version: 1\npolicy: {decisions: {d: z}}\n" + DECISIONS),
    "decision": ("version: 1\n", "version: 1\n" + DECISIONS),
    "when of an option": ("version: 1\n", "version: 1\n" + DECISIONS.replace("run.ci", "not run.ci")),
    "declared risk": ("run: make test", "run: make test\n    risk: high"),
    "a question": ("run: make test", "ask: {question: 'To ${{ params.target }}?'}"),
    "another question": ("run: make test", "ask: {question: 'At ${{ params.target }}?'}"),
    "a typed question": ("run: make test", "ask: {question: 'At ${{ params.target }}?', type: string}"),
    "a default answer": ("run: make test", "ask: {question: 'At ${{ params.target }}?', default: false}"),
    "script": ("make test", "make tests"),
    "template": ("${{ params.target }}", "${{ run.sha }}"),
    "text around a template": ("make ${{", "make -k ${{"),
    "condition": ("== 'prod'", "!= 'prod'"),
    "edge": ("[build]", "{build: done}"),
    "no edge": ("    depends_on: [build]\n", ""),
    "timeout": ("10m", "11m"),
    "variable": ('B: "2"', 'B: "3"'),
    "default of a parameter": ("default: prod", "default: test"),
    "tag": ("[fast]", "[slow]"),
    "id": ("id: test", "id: tests"),
    "name": ("version: 1\n", "version: 1\nname: other\n"),
    "schedule": ("version: 1\n", "version: 1\nschedule: levels\n"),
    "section": ("  - id: test", "finally:\n  - id: test"),
    "retries": ("tags: [fast]", "tags: [fast]\n    retries: 1"),
    "an exec that looks like a template": ("run: make test", 'exec: [template, "${{ run.id }}"]'),
}


@pytest.mark.parametrize("name", SAME)
def test_what_does_not_change_the_meaning_keeps_the_digest(name: str) -> None:
    """Places, comments, spelling and written defaults do not show."""
    old, new = SAME[name]
    assert PLAN.replace(old, new) != PLAN
    assert digest(PLAN.replace(old, new)) == digest(PLAN)


@pytest.mark.parametrize("name", OTHER)
def test_what_changes_the_meaning_changes_the_digest(name: str) -> None:
    """Each of these is another plan, and no two of them are the same."""
    old, new = OTHER[name]
    text = PLAN.replace(old, new)
    if name == "section":
        text = text.replace("    depends_on: [build]\n", "")
    assert text != PLAN
    others = {digest(PLAN.replace(*change)) for key, change in OTHER.items() if key not in (name, "section")}
    assert digest(text) not in {digest(PLAN), *others}


def test_the_folder_does_not_show_and_the_default_name_does() -> None:
    """The same file elsewhere is the same plan; under another name it is called something else."""
    assert digest(PLAN, "/a/plan.yml") == digest(PLAN, "b/c/plan.yaml")
    assert digest(PLAN, "other.yml") != digest(PLAN)


def test_the_digest_is_the_same_on_every_machine() -> None:
    """A digest that was written down has to be found again by a later version: change FORM when this breaks."""
    assert digest(PLAN) == "da16e2aed9023c648a64b1e6630b53c5a8fca76479b9ef82af30715456d0c183"
