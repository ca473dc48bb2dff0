"""Files of other tools that are given as plans: named, with what to do; no plan with mistakes is taken for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from planrun.plan.foreign import MAX_BYTES, foreign_file
from planrun.plan.load import check_bytes
from tests.plan.corpus import bad_plans

if TYPE_CHECKING:
    from tests.conftest import Command

GITHUB, TASKFILE, DAGU = "a GitHub Actions workflow", "a Taskfile", "a Dagu file"
CONVERTED = (GITHUB, TASKFILE, DAGU, "a GitLab CI file", "a Makefile", "a justfile")
BY_CONTENT = [
    ("on: [push]\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps: [{run: make}]\n", GITHUB),
    ("name: x\non: {workflow_call: {}}\njobs: {a: {uses: ./.github/workflows/b.yml}}\n", GITHUB),
    ("name: x\nruns:\n  using: composite\n  steps: [{run: make, shell: bash}]\n", "a GitHub action"),
    ("version: '3'\ntasks:\n  build:\n    cmds: [make]\n", TASKFILE),
    ("version: 3\ntasks: {build: go build}\n", TASKFILE),
    ("version: '3'\nincludes: {docs: ./docs}\n", TASKFILE),
    ("steps:\n  - name: a\n    command: echo hi\n  - name: b\n    command: date\n    depends: [a]\n", DAGU),
    ("schedule: '0 * * * *'\nsteps:\n  - echo a\n  - echo b\n", DAGU),
    ("stages: [build]\nbuild:\n  stage: build\n  script: [make]\n", "a GitLab CI file"),
    ("test:\n  image: python\n  script: pytest\n", "a GitLab CI file"),
    ("include: [{local: a.yml}]\nstages: [a]\n", "a GitLab CI file"),
    ("version: 2.1\norbs: {node: circleci/node@5}\nworkflows: {a: {jobs: [b]}}\n", "a CircleCI config"),
    ("version: 2\njobs: {build: {docker: [{image: x}], steps: [checkout]}}\n", "a CircleCI config"),
    ("trigger: [main]\npool: {vmImage: ubuntu-latest}\nsteps: [{script: make}]\n", "an Azure Pipelines file"),
    ("stages: [{stage: a, jobs: [{job: b, steps: [{bash: make}]}]}]\n", "an Azure Pipelines file"),
    ("kind: pipeline\ntype: docker\nname: x\nsteps: [{name: a, image: b, commands: [c]}]\n", "a Drone pipeline"),
    ("when: {event: push}\nsteps:\n  a: {image: go, commands: [go test]}\n", "a Woodpecker workflow"),
    ("pipelines: {default: [{step: {script: [make]}}]}\n", "a Bitbucket Pipelines file"),
    ("steps: [{label: a, command: make}, wait]\n", "a Buildkite pipeline"),
    ("language: python\nscript: pytest\n", "a Travis CI config"),
    ("environment: {A: b}\nbuild_script: [make]\n", "an AppVeyor config"),
    ("steps: [{name: gcr.io/cloud-builders/docker, args: [build, .]}]\n", "a Google Cloud Build config"),
    ("services: {db: {image: postgres}}\n", "a Compose file"),
    ("repos: [{repo: https://example.org/a, rev: v1, hooks: [{id: b}]}]\n", "a pre-commit config"),
    ("- id: a\n  name: A\n  entry: a\n  language: python\n", "a list of pre-commit hooks"),
    ("- name: web\n  hosts: all\n  tasks: [{ping: {}}]\n", "an Ansible playbook"),
    ("- name: install\n  apt: {name: nginx}\n  become: true\n", "an Ansible playbook"),
    ("apiVersion: v1\nkind: Service\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Pod\n", "a Kubernetes manifest"),
    ("apiVersion: tekton.dev/v1\nkind: Task\nspec: {steps: [{name: a}]}\n", "a Tekton resource"),
    ("apiVersion: argoproj.io/v1alpha1\nkind: Workflow\n", "an Argo workflow"),
    ("pipeline {\n  agent any\n  stages { stage('a') { steps { sh 'make' } } }\n}\n", "a Jenkinsfile"),
    ("node('linux') {\n  sh 'make'\n}\n", "a Jenkinsfile"),
    ('terraform {\n  required_version = ">= 1.5"\n}\n', "a Terraform configuration"),
    ('resource "aws_s3_bucket" "b" {\n  bucket = "x"\n}\n', "a Terraform configuration"),
    ("CC := gcc\nall: main.o\n\t$(CC) -o main main.o\n", "a Makefile"),
    ("set dotenv-load\n\ntest:\n  pytest\n", "a justfile"),
    ("[tox]\nenvlist = py312\n[testenv]\ncommands = pytest\n", "a tox config"),
    ("import nox\n\n@nox.session\ndef tests(session):\n    session.run('pytest')\n", "a nox file"),
    ("from airflow import DAG\n\nwith DAG('a') as dag:\n    pass\n", "an Airflow DAG"),
    ('{"name": "x", "scripts": {"test": "jest"}}\n', "a package.json"),
    ("[project]\nname = 'x'\n", "a pyproject.toml"),
    ("# x\nFROM python:3.12\nRUN make\n", "a Dockerfile"),
    ("VERSION 0.8\nFROM alpine\n\nbuild:\n  RUN make\n", "an Earthfile"),
    ("#!/usr/bin/env bash\nset -eu\nmake\n", "a shell script"),
    ("#!/usr/bin/env python3\nprint('x')\n", "a Python program"),
    ("auto_approve: medium\nrules: [{deny: {step: a}}]\n", "a policy of planrun"),
    ("policy: {auto_approve: low}\n", "a policy of planrun"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "name"), BY_CONTENT)
def test_a_file_of_another_tool_is_the_only_problem(text: str, name: str) -> None:
    """Whatever its name: one problem about the whole file, what it looks like and what to do instead."""
    found = check_bytes(text.encode(), "plan.yml").problems
    assert [(each.code, each.line, each.col) for each in found] == [("E006", 1, 1)]
    assert found[0].message == f"this looks like {name}, not like a plan"
    if name in CONVERTED:
        assert found[0].hint == "to convert it: planrun convert plan.yml -o converted.yml"
    elif name.endswith("of planrun"):
        assert found[0].hint.startswith("use it with a plan: planrun run plan.yml --")
    else:
        assert found[0].hint.startswith("planrun has no converter for it; ")


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("Makefile", "a Makefile"),
        ("ci/rules.mk", "a Makefile"),
        ("justfile", "a justfile"),
        ("Jenkinsfile", "a Jenkinsfile"),
        (".circleci/config.yml", "a CircleCI config"),
        (".gitlab-ci.yml", "a GitLab CI file"),
        ("Dockerfile", "a Dockerfile"),
        ("tox.ini", "a tox config"),
        ("main.tf", "a Terraform configuration"),
    ],
)
def test_the_name_decides_where_the_content_does_not(file: str, name: str) -> None:
    """A file with one comment."""
    found = foreign_file(b"# to be written\n", file)
    assert found is not None
    assert found.name == name


def test_no_bad_plan_is_taken_for_a_file_of_another_tool() -> None:
    """Not one of the collection, nor a plan whose mistakes are words of other tools."""
    plans = {bad.name: bad.data for bad in bad_plans()}
    for key in ("jobs", "tasks", "stages", "pipeline", "script", "on", "services", "pool", "trigger"):
        plans[key] = f"version: 1\n{key}: [{{id: a, run: make}}]\n".encode()
        plans[f"{key} in a step"] = f"version: 1\nsteps:\n  - {key}: x\n    image: y\n".encode()
    plans["without a version"] = b"steps:\n  - {id: a, run: make}\n"
    plans["a broken line"] = b"version: 1\nsteps:\n  - id: a\n   run: [\n"
    plans["tabs"] = b"version: 1\nsteps:\n\t- run: make\n"
    plans["version 2"] = b"version: 2\nsteps:\n  - {id: a, run: make, timeout: 5m}\n"
    taken = {name: check_bytes(data, "plan.yml").problems[0].message for name, data in plans.items()}
    assert {name: text for name, text in taken.items() if "looks like" in text} == {}


def test_a_large_file_is_not_searched() -> None:
    """Its problems are those of a plan."""
    text = "on: [push]\njobs: {a: {runs-on: x, steps: [{run: make}]}}\n" + "#" * MAX_BYTES
    assert {each.code for each in check_bytes(text.encode(), "plan.yml").problems} == {"E102", "E104"}


@pytest.mark.parametrize("verb", ["validate", "run", "execute", "show", "lint"])
def test_verbs_that_take_a_plan_say_what_a_file_is(planrun: Command, verb: str) -> None:
    """Exit code 2, one line about the file, and nothing runs."""
    (planrun.folder / "my ci.yml").write_text(BY_CONTENT[0][0])
    done = planrun(verb, "my ci.yml")
    assert done.returncode == 2
    said = done.stdout + done.stderr
    assert said.startswith(
        "my ci.yml:1:1: error[E006]: this looks like a GitHub Actions workflow, not like a plan; "
        "to convert it: planrun convert 'my ci.yml' -o plan.yml\n"
    )
    assert planrun("convert", "my ci.yml", "-o", "plan.yml").returncode == 0
    assert planrun("validate", "plan.yml").returncode == 0


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (b"\x7fELF\x02\x01\x00\x00\xff\xfe", "not UTF-8 text: the file is binary; a plan is a text file"),
        (b"", "no plan in this file; begin it with `version: 1`"),
        ("version: 1\n".encode("utf-16"), "not UTF-8 text: the file is UTF-16 or UTF-32; save it as UTF-8"),
        ("# é\n".encode("latin-1"), "not UTF-8 text: invalid byte 0xE9; save it as UTF-8"),
    ],
)
def test_a_file_that_is_no_text_is_described(data: bytes, part: str) -> None:
    """Binary, empty, UTF-16, Latin-1."""
    assert check_bytes(data, "plan.yml").problems[0].text == part


@pytest.mark.parametrize(
    "data", [b"\xef\xbb\xbfversion: 1\nsteps: [{run: make}]\n", b'{"version": 1, "steps": [{"run": "x"}]}']
)
def test_a_byte_order_mark_and_json_are_accepted(data: bytes) -> None:
    """They are plans."""
    assert check_bytes(data, "plan.yml").problems == ()
