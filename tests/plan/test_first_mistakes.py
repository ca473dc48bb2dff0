"""What people write in their first plans, and what planrun answers: code, place, and words in full."""

# ruff: noqa: E501 - messages in full
from __future__ import annotations

import pytest

from planrun.plan.load import check_bytes
from planrun.plan.problems import CODES

MISTAKES: dict[str, tuple[str, list[tuple[str, int, int, str]]]] = {
    "version missing": (
        "steps:\n  - run: make\n",
        [
            ("E102", 1, 1, '"version" is missing; begin the file with `version: 1`'),
        ],
    ),
    "version 2": (
        "version: 2\nsteps:\n  - run: make\n",
        [
            ("E116", 1, 10, '"version": unsupported version "2"; expected 1; write `version: 1`'),
        ],
    ),
    "version text": (
        "version: '1'\nsteps:\n  - run: make\n",
        [
            (
                "E116",
                1,
                10,
                '"version": unsupported version "1"; expected 1; write `version: 1`, without quotes',
            ),
        ],
    ),
    "version 1.0": (
        "version: 1.0\nsteps:\n  - run: make\n",
        [
            ("E116", 1, 10, '"version": unsupported version "1.0"; expected 1; write `version: 1`'),
        ],
    ),
    "steps missing": (
        "version: 1\nname: x\n",
        [
            ("E102", 1, 1, '"steps" is missing; e.g. `steps: [{id: test, run: pytest -q}]`'),
        ],
    ),
    "steps a mapping": (
        "version: 1\nsteps:\n  build:\n    run: make\n",
        [
            (
                "E101",
                3,
                3,
                '"steps": expected a list, e.g. `steps: [{id: test, run: pytest -q}]`, got a mapping; write each step as `- id: ...` with its keys below',
            ),
        ],
    ),
    "steps a string": (
        "version: 1\nsteps: make\n",
        [
            (
                "E101",
                2,
                8,
                '"steps": expected a list, e.g. `steps: [{id: test, run: pytest -q}]`, got a string',
            ),
        ],
    ),
    "a step is text": (
        "version: 1\nsteps:\n  - make\n",
        [
            ("E101", 3, 5, "step 1: expected a mapping, e.g. `{run: ...}`, got a string; write `- run: ...`"),
        ],
    ),
    "steps empty": (
        "version: 1\nsteps: []\n",
        [
            ("E113", 2, 8, '"steps" is empty; e.g. `steps: [{id: test, run: pytest -q}]`'),
        ],
    ),
    "steps null": (
        "version: 1\nsteps:\n",
        [
            ("E103", 2, 1, '"steps" has no value; e.g. `steps: [{id: test, run: pytest -q}]`'),
        ],
    ),
    "run list": (
        "version: 1\nsteps:\n  - run: [make, test]\n",
        [
            (
                "E101",
                3,
                10,
                '"run" in step 1: expected a string, e.g. `run: pytest -q`, got a list; write `run: |` with one command per line below it',
            ),
        ],
    ),
    "run with colon": (
        "version: 1\nsteps:\n  - run: echo a: b\n",
        [
            (
                "E010",
                3,
                16,
                (
                    "mapping values are not allowed here: the value of `run` contains `: `; "
                    "put quotes around the whole value, or write `run: |` and the text on the next line"
                ),
            ),
        ],
    ),
    "run with a quoted colon": (
        'version: 1\nsteps:\n  - id: a\n    run: echo "a: b"\n',
        [
            (
                "E010",
                4,
                17,
                (
                    "mapping values are not allowed here: the value of `run` contains `: `; "
                    "put quotes around the whole value, or write `run: |` and the text on the next line"
                ),
            ),
        ],
    ),
    "run goes on with a colon": (
        "version: 1\nsteps:\n  - run: git commit\n      -m 'fix: it'\n",
        [
            (
                "E010",
                4,
                14,
                (
                    "mapping values are not allowed here: the value of `run` contains `: `; "
                    "put quotes around the whole value, or write `run: |` and the text on the next line"
                ),
            ),
        ],
    ),
    "run mapping": (
        "version: 1\nsteps:\n  - run: {make: test}\n",
        [
            (
                "E101",
                3,
                10,
                '"run" in step 1: expected a string, e.g. `run: pytest -q`, got a mapping; quote text that contains `: ` or begins with {',
            ),
        ],
    ),
    "no dash": (
        "version: 1\nsteps:\n  id: a\n  run: make\n",
        [
            (
                "E101",
                3,
                3,
                '"steps": expected a list, e.g. `steps: [{id: test, run: pytest -q}]`, got a mapping; write each step as `- id: ...` with its keys below',
            ),
        ],
    ),
    "tabs": (
        "version: 1\nsteps:\n\t- run: make\n",
        [
            ("E011", 3, 1, "tab used for indentation; indent with spaces"),
        ],
    ),
    "indent": (
        "version: 1\nsteps:\n  - id: a\n     run: make\n",
        [
            (
                "E010",
                4,
                9,
                (
                    "mapping values are not allowed here: `run` is indented deeper than `id` above it; "
                    "begin `run` in column 5"
                ),
            ),
        ],
    ),
    "indent in env": (
        "version: 1\nsteps:\n  - run: make\n    env:\n      A: x\n\n      # note\n        B: y\n",
        [
            (
                "E010",
                8,
                9,
                "mapping values are not allowed here: `B` is indented deeper than `A` above it; begin `B` in column 7",
            ),
        ],
    ),
    "needs": (
        "version: 1\nsteps:\n  - {id: a, run: x}\n  - id: b\n    run: x\n    needs: [a]\n",
        [
            ("E104", 6, 5, 'unknown key "needs" in step "b"; did you mean "depends_on"?'),
        ],
    ),
    "if": (
        "version: 1\nsteps:\n  - run: x\n    if: github.ref == 'x'\n",
        [
            ("E104", 4, 5, 'unknown key "if" in step 1; did you mean "condition"?'),
        ],
    ),
    "== tru": (
        "version: 1\nsteps:\n  - run: x\n    condition: run.ci == tru\n",
        [("E210", 4, 26, "unknown name `tru`; quote strings: 'tru'; did you mean `true`?")],
    ),
    "== prod": (
        "version: 1\nparams: {t: {type: string, default: a}}\nsteps:\n  - run: x\n    condition: params.t == prod\n",
        [
            (
                "E210",
                5,
                28,
                "unknown name `prod`; quote strings: 'prod'; known names: params, env, matrix, item, steps, run, step",
            ),
        ],
    ),
    "single =": (
        "version: 1\nsteps:\n  - run: x\n    condition: run.ref = 'main'\n",
        [
            ("E210", 4, 24, "unknown operator `=`; use `==`"),
        ],
    ),
    "&&": (
        "version: 1\nsteps:\n  - run: x\n    condition: run.ci && run.ci\n",
        [
            ("E210", 4, 23, "unknown operator `&&`; use `and`"),
        ],
    ),
    "!": (
        "version: 1\nsteps:\n  - run: x\n    condition: '!run.ci'\n",
        [
            ("E210", 4, 17, "unknown operator `!`; use `not`"),
        ],
    ),
    "success()": (
        "version: 1\nsteps:\n  - run: x\n    condition: success()\n",
        [
            (
                "E210",
                4,
                16,
                "unknown function `success`; write `depends_on: [id]`, or steps.<id>.status == 'completed'",
            ),
        ],
    ),
    "always()": (
        "version: 1\nsteps:\n  - run: x\n    condition: always()\n",
        [
            (
                "E210",
                4,
                16,
                "unknown function `always`; to run a step after a failure, write `depends_on: {id: done}` or `finally:`",
            ),
        ],
    ),
    "github.sha": (
        "version: 1\nsteps:\n  - run: echo ${{ github.sha }}\n",
        [
            ("E210", 3, 19, "unknown name `github`; use run.id, run.ci, run.ref, run.sha or run.event"),
        ],
    ),
    "secrets.X": (
        "version: 1\nsteps:\n  - run: echo ${{ secrets.TOKEN }}\n",
        [
            (
                "E210",
                3,
                19,
                'secrets are not available in expressions; list it under `secrets` of the step and read the environment variable, as "$NAME"',
            ),
        ],
    ),
    "timeout number": (
        "version: 1\nsteps:\n  - run: x\n    timeout: 10\n",
        [
            ("E111", 4, 14, '"timeout" in step 1 must be a duration, got "10"; add a unit: 10s'),
        ],
    ),
    "timeout text": (
        "version: 1\nsteps:\n  - run: x\n    timeout: 10 minutes\n",
        [
            (
                "E111",
                4,
                14,
                '"timeout" in step 1 must be a duration, got "10 minutes"; the units are ms, s, m and h, such as 500ms, 30s or 1h30m',
            ),
        ],
    ),
    "timeout min": (
        "version: 1\nsteps:\n  - run: x\n    timeout: 10min\n",
        [
            (
                "E111",
                4,
                14,
                '"timeout" in step 1 must be a duration, got "10min"; the units are ms, s, m and h, such as 500ms, 30s or 1h30m',
            ),
        ],
    ),
    "timeout-minutes": (
        "version: 1\nsteps:\n  - run: x\n    timeout-minutes: 10\n",
        [
            ("E104", 4, 5, 'unknown key "timeout-minutes" in step 1; write `timeout: 10m`'),
        ],
    ),
    "retries text": (
        "version: 1\nsteps:\n  - run: x\n    retries: three\n",
        [
            ("E110", 4, 14, '"retries" in step 1 must be an integer, got "three"; e.g. `retries: 2`'),
        ],
    ),
    "retries quoted": (
        "version: 1\nsteps:\n  - run: x\n    retries: '3'\n",
        [
            ("E110", 4, 14, '"retries" in step 1 must be an integer, got "3"; write it without quotes'),
        ],
    ),
    "retry": (
        "version: 1\nsteps:\n  - run: x\n    retry: 3\n",
        [
            ("E104", 4, 5, 'unknown key "retry" in step 1; did you mean "retries"?'),
        ],
    ),
    "retries attempts": (
        "version: 1\nsteps:\n  - run: x\n    retries: {attempts: 3}\n",
        [
            ("E104", 4, 15, 'unknown key "attempts" in "retries" of step 1; did you mean "max"?'),
        ],
    ),
    "retries delay": (
        "version: 1\nsteps:\n  - run: x\n    retries: {max: 3, delay: 5s}\n",
        [
            ("E104", 4, 23, 'unknown key "delay" in "retries" of step 1; write `backoff: {initial: 5s}`'),
        ],
    ),
    "retries backoff number": (
        "version: 1\nsteps:\n  - run: x\n    retries: {max: 3, backoff: 5s}\n",
        [
            (
                "E101",
                4,
                32,
                '"retries.backoff" in step 1: expected a mapping, e.g. `backoff: {factor: 2, initial: 2s, max: 30s}`, got a string',
            ),
        ],
    ),
    "on_failure word": (
        "version: 1\nsteps:\n  - run: x\n    on_failure: ignore\n",
        [
            (
                "E105",
                4,
                17,
                '"on_failure" in step 1 must be block, abort, continue, skip, ask or replan, got "ignore"; did you mean "continue"?',
            ),
        ],
    ),
    "on_failure top": (
        "version: 1\non_failure: continue\nsteps:\n  - run: x\n",
        [
            (
                "E104",
                2,
                1,
                'unknown key "on_failure" at the top level; `defaults: {on_failure: ...}` sets what a failure means for every step; steps that run after a failure are listed under `finally:`, or have `depends_on: {ID: failed}`',
            ),
        ],
    ),
    "continue-on-error": (
        "version: 1\nsteps:\n  - run: x\n    continue-on-error: true\n",
        [
            ("E104", 4, 5, 'unknown key "continue-on-error" in step 1; write `on_failure: continue`'),
        ],
    ),
    "boolean yes": (
        "version: 1\nsteps:\n  - run: x\n    service: yes\n",
        [
            ("E109", 4, 14, '"service" in step 1 must be a boolean, got "yes"; write true, without quotes'),
        ],
    ),
    "boolean quoted": (
        "version: 1\nsteps:\n  - run: x\n    idempotent: 'false'\n",
        [
            (
                "E109",
                4,
                17,
                '"idempotent" in step 1 must be a boolean, got "false"; write false, without quotes',
            ),
        ],
    ),
    "matrix 3.10": (
        "version: 1\nsteps:\n  - run: x\n    matrix: {python: [3.9, 3.10]}\n",
        [
            (
                "E117",
                4,
                28,
                '"matrix.python[2]" in step 1 is ambiguous in YAML: 3.10; quote it to make it a string: "3.10"',
            ),
        ],
    ),
    "matrix scalar": (
        "version: 1\nsteps:\n  - run: x\n    matrix: {python: '3.12'}\n",
        [
            (
                "E101",
                4,
                22,
                'the axis "python": expected a list, got a string; write [a, b], or ${{ … }} that gives a list',
            ),
        ],
    ),
    "matrix max_parallel in foreach": (
        "version: 1\nsteps:\n  - run: x\n    foreach: {items: [a], parallel: 2}\n",
        [
            ("E104", 4, 27, 'unknown key "parallel" in "foreach" of step 1; did you mean "max_parallel"?'),
        ],
    ),
    "strategy": (
        "version: 1\nsteps:\n  - run: x\n    strategy: {matrix: {a: [b]}}\n",
        [
            (
                "E104",
                4,
                5,
                "unknown key \"strategy\" in step 1; write `matrix` in the step itself, e.g. `matrix: {python: ['3.12', '3.13']}`",
            ),
        ],
    ),
    "env list": (
        "version: 1\nsteps:\n  - run: x\n    env: [A=b]\n",
        [
            (
                "E101",
                4,
                10,
                '"env" in step 1: expected a mapping, e.g. `env: {PYTHONUNBUFFERED: "1"}`, got a list; write `NAME: value`, one per line',
            ),
        ],
    ),
    "env name": (
        "version: 1\nsteps:\n  - run: x\n    env: {MY-VAR: a}\n",
        [
            (
                "E106",
                4,
                11,
                '"MY-VAR" is not a valid variable name in "env" of step 1; use letters, digits and `_`, e.g. PYTHONPATH',
            ),
        ],
    ),
    "secret unknown": (
        "version: 1\nsteps:\n  - run: x\n    secrets: [TOKEN]\n",
        [
            ("E232", 4, 15, 'undeclared secret "TOKEN"; declare it at the top level: `secrets: [TOKEN]`'),
        ],
    ),
    "id space": (
        "version: 1\nsteps:\n  - id: my step\n    run: x\n",
        [
            (
                "E112",
                3,
                9,
                '"id" in step "my step" is not a valid id: "my step"; use letters, digits, `_`, `-` and `.`, and begin with a letter or digit',
            ),
        ],
    ),
    "dup id": (
        "version: 1\nsteps:\n  - {id: a, run: x}\n  - {id: a, run: x}\n",
        [
            (
                "E201",
                4,
                10,
                'duplicate step id "a", first on line 3; log files are named after ids; rename one',
            ),
        ],
    ),
    "dep typo": (
        "version: 1\nsteps:\n  - {id: build, run: x}\n  - {id: b, run: x, depends_on: [biuld]}\n",
        [
            ("E202", 4, 34, 'step "b" depends on unknown step "biuld"; did you mean "build"?'),
        ],
    ),
    "cycle": (
        "version: 1\nsteps:\n  - {id: a, run: x, depends_on: [b]}\n  - {id: b, run: x, depends_on: [a]}\n",
        [
            ("E204", 3, 34, "dependency cycle: a → b → a"),
        ],
    ),
    "two actions": (
        "version: 1\nsteps:\n  - run: x\n    exec: [x]\n",
        [
            ("E107", 4, 5, '"exec" and "run" are mutually exclusive in step 1; split it into two steps'),
        ],
    ),
    "run empty": (
        "version: 1\nsteps:\n  - run: ''\n",
        [
            ("E113", 3, 10, '"run" in step 1 is empty; e.g. `run: pytest -q`'),
        ],
    ),
    "run null": (
        "version: 1\nsteps:\n  - run:\n",
        [
            ("E103", 3, 5, '"run" in step 1 has no value; e.g. `run: pytest -q`'),
        ],
    ),
    "exec text": (
        "version: 1\nsteps:\n  - exec: make test\n",
        [
            (
                "E101",
                3,
                11,
                '"exec" in step 1: expected a list, e.g. `exec: [twine, check, dist/pkg.whl]`, got a string; write the program and each argument as an entry of a list, or use `run`',
            ),
        ],
    ),
    "working-directory": (
        "version: 1\nsteps:\n  - run: x\n    working-directory: src\n",
        [
            ("E104", 4, 5, 'unknown key "working-directory" in step 1; did you mean "workdir"?'),
        ],
    ),
    "image": (
        "version: 1\nsteps:\n  - run: x\n    image: alpine\n",
        [
            ("E104", 4, 5, 'unknown key "image" in step 1; write `container: {image: alpine}`'),
        ],
    ),
    "container text": (
        "version: 1\nsteps:\n  - run: x\n    container: {name: alpine}\n",
        [
            (
                "E102",
                4,
                16,
                '"image" is missing in "container" of step "1"; or name a container under `containers` by `shared`',
            ),
            ("E104", 4, 17, 'unknown key "name" in "container" of step 1; did you mean "image"?'),
        ],
    ),
    "services top": (
        "version: 1\nservices: {db: {image: x}}\nsteps:\n  - run: x\n",
        [
            (
                "E104",
                2,
                1,
                'unknown key "services" at the top level; a service is a step, e.g. `steps: [{id: db, service: true, run: ./db}]`, and others depend on it',
            ),
        ],
    ),
    "on top": (
        "version: 1\non: push\nsteps:\n  - run: x\n",
        [
            (
                "E104",
                2,
                1,
                'unknown key "on" at the top level; planrun has no triggers; the CI system starts it',
            ),
        ],
    ),
    "env in defaults": (
        "version: 1\ndefaults: {env: {A: b}}\nsteps:\n  - run: x\n",
        [
            ("E104", 2, 12, 'unknown key "env" in "defaults"; write `env` at the top level'),
        ],
    ),
    "timeout top": (
        "version: 1\ntimeout: 10m\nsteps:\n  - run: x\n",
        [
            (
                "E104",
                2,
                1,
                'unknown key "timeout" at the top level; `limits: {deadline: 1h}` bounds the run, `defaults: {timeout: 10m}` each step',
            ),
        ],
    ),
    "max_parallel top": (
        "version: 1\nmax_parallel: 2\nsteps:\n  - run: x\n",
        [
            (
                "E104",
                2,
                1,
                'unknown key "max_parallel" at the top level; `max_parallel` is a key of `limits`, e.g. `limits: {max_parallel: 4}`',
            ),
        ],
    ),
    "schedule cron": (
        "version: 1\nschedule: '0 3 * * *'\nsteps:\n  - run: x\n",
        [
            (
                "E105",
                2,
                11,
                '"schedule" must be dag, levels, batches or sequential, got "0 3 * * *"; this key is the order of the steps, and planrun has no scheduler: start it from cron, a systemd timer or a scheduled CI pipeline',
            ),
        ],
    ),
    "params list": (
        "version: 1\nparams: [target]\nsteps:\n  - run: x\n",
        [
            (
                "E101",
                2,
                9,
                '"params": expected a mapping, e.g. `params: {target: {default: staging, type: string}}`, got a list; write each as `name: {type: string}`',
            ),
        ],
    ),
    "param type": (
        "version: 1\nparams: {t: text}\nsteps:\n  - run: x\n",
        [
            (
                "E105",
                2,
                13,
                '"params.t" must be string, integer, number, boolean, array or object, got "text"; did you mean "string"?',
            ),
        ],
    ),
    "param enum": (
        "version: 1\nparams: {t: {type: string, choices: [a]}}\nsteps:\n  - run: x\n",
        [
            ("E104", 2, 28, 'unknown key "choices" in "params.t"; did you mean "enum"?'),
        ],
    ),
    "params typo": (
        "version: 1\nparams: {target: {type: string, default: a}}\nsteps:\n  - run: echo ${{ params.traget }}\n",
        [
            ("E211", 4, 19, 'unknown parameter "traget"; did you mean "target"?'),
        ],
    ),
    "output undeclared": (
        "version: 1\nsteps:\n  - {id: a, run: x}\n  - {id: b, depends_on: [a], run: 'echo ${{ steps.a.outputs.v }}'}\n",
        [
            ("E214", 4, 45, 'undeclared output "v" of step "a"; add `outputs: {v: string}` to step "a"'),
        ],
    ),
    "unclosed brace": (
        "version: 1\nsteps:\n  - run: echo ${{ run.id\n",
        [
            ("E210", 3, 15, "unclosed `${{`: expected `}}`; write `$${{` for a literal `${{`"),
        ],
    ),
    "unclosed quote": (
        "version: 1\nsteps:\n  - run: 'echo\n",
        [
            ("E010", 3, 10, "unclosed quote; close it, or escape it inside"),
        ],
    ),
    "bracket value": (
        "version: 1\nsteps:\n  - run: [ -f x ] && make\n",
        [
            (
                "E101",
                3,
                10,
                '"run" in step 1: expected a string, e.g. `run: pytest -q`, got a list; write `run: |` with one command per line below it',
            ),
            ("E010", 3, 20, "alias or anchor without a name; quote text that begins with * or &"),
        ],
    ),
    "star": (
        "version: 1\nsteps:\n  - run: x\n    inputs: *.py\n",
        [
            ("E010", 4, 14, "alias or anchor without a name; quote text that begins with * or &"),
        ],
    ),
    "percent": (
        "version: 1\nsteps:\n  - run: %x\n",
        [
            ("E010", 3, 10, "a value cannot begin with this character; quote text that begins with %"),
        ],
    ),
    "at": (
        "version: 1\nsteps:\n  - run: @x\n",
        [
            ("E010", 3, 10, "a value cannot begin with this character; quote text that begins with @"),
        ],
    ),
    "policy word": (
        "version: 1\npolicy: {auto_approve: yes}\nsteps:\n  - run: x\n",
        [
            ("E105", 2, 24, '"policy.auto_approve" must be none, read-only, low, medium or high, got "yes"'),
        ],
    ),
    "policy approve": (
        "version: 1\npolicy: {approve: low}\nsteps:\n  - run: x\n",
        [
            ("E104", 2, 10, 'unknown key "approve" in "policy"; did you mean "auto_approve"?'),
        ],
    ),
    "misindented step key": (
        "version: 1\nsteps:\n  - id: a\n    run: x\ntags: [a]\n",
        [
            ("E104", 5, 1, 'unknown key "tags" at the top level; write `tags` in each step'),
        ],
    ),
    "key in retries": (
        "version: 1\nsteps:\n  - run: x\n    retries:\n      max: 2\n      on_failure: continue\n",
        [
            (
                "E104",
                6,
                7,
                'unknown key "on_failure" in "retries" of step 1; `on_failure` is a key of the step: check the indentation',
            ),
        ],
    ),
    "docs twice": (
        "version: 1\nsteps:\n  - run: x\n---\nversion: 1\n",
        [
            ("E013", 4, 1, "more than one YAML document; write one plan per file"),
        ],
    ),
    "dup key": (
        "version: 1\nsteps:\n  - run: x\nsteps:\n  - run: y\n",
        [
            ("E018", 4, 1, 'duplicate key "steps", first on line 2; merge the two, or remove one'),
        ],
    ),
    "merge conflict": (
        "version: 1\n<<<<<<< HEAD\nsteps:\n  - run: x\n=======\n",
        [
            (
                "E010",
                2,
                1,
                "unresolved merge conflict; resolve it, and remove the lines that begin with <<<<<<<, ======= and >>>>>>>",
            ),
        ],
    ),
    "jobs": (
        "version: 1\njobs:\n  - run: x\n",
        [
            ("E102", 1, 1, '"steps" is missing; e.g. `steps: [{id: test, run: pytest -q}]`'),
            (
                "E104",
                2,
                1,
                'unknown key "jobs" at the top level; did you mean "steps"? It is a list, e.g. `steps: [{id: build, run: make}]`',
            ),
        ],
    ),
    "artifacts": (
        "version: 1\nsteps:\n  - run: x\n    artifacts: {paths: [dist]}\n",
        [
            (
                "E104",
                4,
                5,
                'unknown key "artifacts" in step 1; did you mean "produces"? e.g. `produces: dist/*.whl`',
            ),
        ],
    ),
    "cache paths": (
        "version: 1\nsteps:\n  - run: x\n    cache: {paths: [.venv]}\n",
        [
            ("W311", 4, 5, 'step "1" is cached without inputs; list the files that it reads under `inputs`'),
            (
                "E104",
                4,
                13,
                'unknown key "paths" in "cache" of step 1; `cache` names what the result depends on; `produces` names the files that are kept',
            ),
        ],
    ),
    "nonsense": (
        "version: 1\nsteps:\n  - run: x\n    frobnicate: 1\n",
        [
            ("E104", 4, 5, 'unknown key "frobnicate" in step 1; the keys of a step'),
        ],
    ),
    "ask text": (
        "version: 1\nsteps:\n  - ask: Deploy?\n",
        [
            (
                "E101",
                3,
                10,
                '"ask" in step 1: expected a mapping, e.g. `ask: {question: "Publish?"}`, got a string',
            ),
        ],
    ),
    "uses action": (
        "version: 1\nsteps:\n  - uses: actions/checkout@v4\n",
        [
            (
                "E290",
                3,
                11,
                "cannot use actions/checkout@v4: no such file; `uses` takes the file of a plan, e.g. `uses: ./build.yml`; planrun runs no GitHub actions",
            ),
        ],
    ),
    "with only": (
        "version: 1\nsteps:\n  - run: x\n    with: {a: b}\n",
        [
            ("E102", 4, 5, '"with" in step 1 requires "uses"'),
        ],
    ),
    "tags text": (
        "version: 1\nsteps:\n  - run: x\n    tags: fast\n",
        [
            ("E101", 4, 11, '"tags" in step 1: expected a list, e.g. `tags: [fast]`, got a string'),
        ],
    ),
}
# A plan with a word of another tool, or with a habit of another tool, that planrun takes as it is meant.
ACCEPTED = {
    "one dependency without brackets": "version: 1\nsteps:\n  - {id: a, run: x}\n  - {run: x, depends_on: a}\n",
    "braces around a condition": "version: 1\nsteps:\n  - run: x\n    condition: ${{ run.ci }}\n",
    "a number in env": "version: 1\nsteps:\n  - run: x\n    env: {A: 1}\n",
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_of_the_first_hour_is_answered(name: str) -> None:
    """Each finding has its code, its place, what is wrong, and what to write."""
    text, expected = MISTAKES[name]
    problems = check_bytes(text.encode(), "plan.yml").problems
    said = [
        (
            each.code,
            each.line,
            each.col,
            f"{each.message}; the keys of a step" if each.is_listed else each.text,
        )
        for each in problems
    ]
    assert said == expected


def test_nearly_every_answer_says_what_to_write() -> None:
    """A message without a hint says it all; there are at least 60 mistakes, of at least 20 codes."""
    alone = {"E204"}  # dependency cycle: a → b → a
    for text, _expected in MISTAKES.values():
        for problem in check_bytes(text.encode(), "plan.yml").problems:
            assert problem.code in CODES
            if problem.code not in alone:
                words = ("; ", "e.g. ", "must be ", "requires ")
                assert problem.hint or any(word in problem.message for word in words)
    assert len(MISTAKES) >= 60
    assert len({code for _text, found in MISTAKES.values() for code, *_rest in found}) >= 20


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_habit_that_is_no_mistake_is_accepted(name: str) -> None:
    """Without a finding."""
    assert check_bytes(ACCEPTED[name].encode(), "plan.yml").problems == ()
