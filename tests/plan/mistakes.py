"""One small plan a rule of the plan language: those with one mistake, and those that a strict reader could doubt."""

from __future__ import annotations

HEAD = "version: 1\n"


def steps(*lines: str) -> str:
    """Make a plan of lines under `steps:`; the first of them is line 3."""
    return HEAD + "steps:\n" + "".join(f"  {line}\n" for line in lines)


BAD = {
    # Ids
    "duplicate id": (
        steps("- id: a", "  run: x", "- id: a", "  run: y"),
        ("E201", 5, 9, 'duplicate step id "a", first on line 3'),
    ),
    "ids that differ in capitals": (
        steps("- id: Build", "  run: x", "- id: build", "  run: y"),
        ("E201", 5, 9, 'the step ids "build" and "Build" (line 3) differ only in case'),
    ),
    "position taken as id": (
        steps("- id: 2", "  run: x", "- run: y"),
        (
            "E201",
            5,
            5,
            'duplicate step id "2", first on line 3; a step without an id gets its position as id',
        ),
    ),
    "the same id under finally": (
        steps("- id: a", "  run: x") + "finally:\n  - {id: a, run: y}\n",
        ("E201", 6, 10, 'duplicate step id "a"'),
    ),
    # References
    "unknown step": (
        steps("- id: build", "  run: x", "- id: test", "  run: x", "  depends_on: [biuld]"),
        ("E202", 7, 18, 'step "test" depends on unknown step "biuld"; did you mean "build"?'),
    ),
    "unknown step in a mapping": (
        steps("- id: build", "  run: x", "- id: test", "  run: x", "  depends_on: {built: done}"),
        ("E202", 7, 18, 'depends on unknown step "built"; did you mean "build"?'),
    ),
    "unknown step recovered": (
        steps("- id: build", "  run: x", "  recovers: [tset]"),
        ("E202", 5, 16, 'step "build" recovers unknown step "tset"'),
    ),
    "itself": (
        steps("- id: a", "  run: x", "  depends_on: [a]"),
        ("E203", 5, 18, 'step "a" depends on itself'),
    ),
    "recovers itself": (
        steps("- id: a", "  run: x", "  recovers: [a]"),
        ("E203", 5, 16, 'step "a" recovers itself'),
    ),
    "depends on a finally step": (
        steps("- id: a", "  run: x", "  depends_on: [z]") + "finally:\n  - {id: z, run: y}\n",
        (
            "E205",
            5,
            18,
            'step "a" depends on "z" under `finally:`; steps under `finally:` run after all others',
        ),
    ),
    "a finally step depends on a main one": (
        steps("- id: a", "  run: x") + "finally:\n  - {id: z, run: y, depends_on: [a]}\n",
        (
            "E205",
            6,
            34,
            'step "z" under `finally:` depends on "a"; it starts after all other steps; remove the dependency',
        ),
    ),
    "recovers and a plain edge": (
        steps("- id: a", "  run: x", "- id: b", "  run: x", "  depends_on: [a]", "  recovers: [a]"),
        ("E206", 7, 18, 'step "b" recovers "a" and also depends on it as `ok`'),
    ),
    "recovers and an edge that wants success": (
        steps(
            "- id: a", "  run: x", "- id: b", "  run: x", "  depends_on: {a: completed}", "  recovers: [a]"
        ),
        ("E206", 7, 18, "also depends on it as `completed`"),
    ),
    "too many handlers": (
        steps("- {id: a, run: x}", *[f"- {{id: h{at}, run: x, recovers: [a]}}" for at in range(51)]),
        ("E207", 54, 34, 'more than 50 steps recover "a"'),
    ),
    # Cycles
    "cycle": (
        steps(
            "- {id: a, run: x, depends_on: [c]}",
            "- {id: b, run: x, depends_on: [a]}",
            "- {id: c, run: x, depends_on: [b]}",
        ),
        ("E204", 3, 34, "dependency cycle: a → c → b → a"),
    ),
    "cycle through a condition": (
        steps("- {id: a, run: x, condition: step_b_failed}", "- {id: b, run: x, depends_on: [a]}"),
        ("E204", 3, 32, "dependency cycle: a → b → a"),
    ),
    "cycle through recovery": (
        steps(
            "- {id: test, run: x}",
            "- {id: ship, run: x, depends_on: [test]}",
            "- {id: fix, run: x, recovers: [test], depends_on: {ship: done}}",
        ),
        ("E204", 5, 34, 'ship → fix → ship; "ship" depends on "fix" because it recovers "test"'),
    ),
    "cycle under finally": (
        steps("- run: x")
        + "finally:\n  - {id: y, run: x, depends_on: [z]}\n  - {id: z, run: x, depends_on: [y]}\n",
        ("E204", 5, 34, "dependency cycle: y → z → y"),
    ),
    # Expressions
    "broken expression": (
        steps("- id: a", "  run: x", "  condition: params.x =="),
        ("E210", 5, 16, "unexpected end of the expression"),
    ),
    "unknown root": (
        steps("- id: a", "  run: echo ${{ github.sha }}"),
        ("E210", 4, 19, "unknown name `github`"),
    ),
    "an undeclared parameter": (
        HEAD + "params: {target: string}\nsteps:\n  - run: echo ${{ params.traget }}\n",
        ("E211", 4, 19, 'unknown parameter "traget"; did you mean "target"?'),
    ),
    "no params at all": (
        steps("- run: echo ${{ params.x }}"),
        ("E211", 3, 19, 'unknown parameter "x"; known parameters: none'),
    ),
    "unknown field of the run": (
        steps("- run: echo ${{ run.shaa }}"),
        ("E211", 3, 19, '`run` has no "shaa"; did you mean "sha"?'),
    ),
    "unknown field of a step": (
        steps("- {id: a, run: x}", "- {id: b, run: x, condition: steps.a.staus == 'failed'}"),
        ("E211", 4, 32, 'steps.a has no "staus"; did you mean "status"?'),
    ),
    "parts of a text": (
        steps("- run: echo ${{ run.sha.short }}"),
        ("E211", 3, 19, "run.sha is of type string and has no fields"),
    ),
    "unknown step in an expression": (
        steps("- {id: abc, run: x}", "- {id: b, run: x, condition: step_abd_failed}"),
        ("E202", 4, 32, 'unknown step "abd"; did you mean "abc"?'),
    ),
    "its own status": (
        steps("- {id: a, run: x, condition: step_a_failed}"),
        ("E203", 3, 32, 'step "a" reads its own status'),
    ),
    "a status that is none": (
        steps("- {id: a, run: x}", "- {id: b, run: x, condition: steps.a.status == 'success'}"),
        ("E216", 4, 50, 'unknown step status "success"; valid statuses: completed, failed'),
    ),
    "a status in a list": (
        steps(
            "- {id: a, run: x}", "- {id: b, run: x, condition: \"steps.a.status in ['failed', 'skiped']\"}"
        ),
        ("E216", 4, 62, 'unknown step status "skiped"; did you mean "skipped"?'),
    ),
    "matrix without one": (
        steps("- run: echo ${{ matrix.python }}"),
        ("E217", 3, 19, "`matrix` cannot be used here: the step has no `matrix:`"),
    ),
    "a folder before the step": (
        steps("- {id: a, run: x, condition: step.dir == '/'}"),
        ("E217", 3, 32, "`step` cannot be used here"),
    ),
    "a step in the plan's env": (
        HEAD + "env: {A: '${{ steps.a.outputs.x }}'}\nsteps:\n  - {id: a, run: x, outputs: {x: string}}\n",
        ("E217", 2, 15, "`steps` cannot be used here: a value for all steps"),
    ),
    "types that do not fit": (
        HEAD
        + "params: {n: {type: integer, default: 3}}\nsteps:\n  - {id: a, run: x, condition: params.n == '3'}\n",
        ("E212", 4, 32, "cannot compare"),
    ),
    "a condition that is no condition": (
        steps("- {id: a, run: x, condition: run.sha}"),
        ("E212", 3, 32, "a condition must be boolean"),
    ),
    "a check that is no condition": (
        steps("- validate:", "    - that: run.sha"),
        ("E212", 4, 15, "a condition must be boolean"),
    ),
    "the type of an output": (
        steps(
            "- {id: a, run: x, outputs: {n: integer}}",
            "- {id: b, run: x, depends_on: [a], condition: steps.a.outputs.n == 'x'}",
        ),
        ("E212", 4, 49, "cannot compare"),
    ),
    # Reading other steps
    "reading without an edge": (
        steps("- {id: a, run: x, outputs: {n: string}}", "- {id: b, run: 'echo ${{ steps.a.outputs.n }}'}"),
        ("E213", 4, 28, 'step "b" reads outputs of "a" but does not depend on it; add `depends_on: [a]`'),
    ),
    "a status outside a condition": (
        steps("- {id: a, run: x}", "- {id: b, run: 'echo ${{ steps.a.status }}'}"),
        ("E213", 4, 28, 'step "b" reads status of "a" but does not depend on it'),
    ),
    "reading forwards": (
        steps("- {id: a, run: x, condition: steps.z.status == 'failed'}") + "finally:\n  - {id: z, run: x}\n",
        (
            "E213",
            3,
            32,
            'step "a" reads status of "z"; a step under `steps:` cannot read a step under `finally:`',
        ),
    ),
    "outputs in finally": (
        steps("- {id: a, run: x, outputs: {n: string}}")
        + "finally:\n  - {id: z, run: \"echo ${{ default(steps.a.outputs.n, '') }}\"}\n",
        ("E213", 5, 36, "can read only the status of other steps"),
    ),
    "an undeclared output": (
        steps(
            "- {id: a, run: x, outputs: {sha: string}}",
            "- {id: b, depends_on: [a], run: 'echo ${{ steps.a.outputs.sah }}'}",
        ),
        ("E214", 4, 45, 'undeclared output "sah" of step "a"; did you mean "sha"?'),
    ),
    "an output of a step that may be skipped": (
        steps(
            "- {id: a, run: x, condition: run.ci, outputs: {n: string}}",
            "- {id: b, depends_on: [a], run: 'echo ${{ steps.a.outputs.n }}'}",
        ),
        ("E215", 4, 45, 'the output "n" of step "a" may be absent here'),
    ),
    "an output of a step that may have failed": (
        steps(
            "- {id: a, run: x, on_failure: continue, outputs: {n: string}}",
            "- {id: b, depends_on: [a], run: 'echo ${{ steps.a.outputs.n }}'}",
        ),
        ("E215", 4, 45, "write default(…, otherwise), or depend on it by `completed`"),
    ),
    "an output of the plan that may be absent": (
        HEAD + "outputs: {n: '${{ steps.a.outputs.n }}'}\n"
        "steps:\n  - {id: a, run: x, condition: run.ci, outputs: {n: string}}\n",
        ("E215", 2, 19, "may be absent here"),
    ),
    "a parameter that need not be given": (
        HEAD + "params: {n: integer}\nsteps:\n  - {id: b, run: 'echo ${{ params.n }}'}\n",
        (
            "E219",
            4,
            28,
            'the parameter "n" may be absent: it has no default and is not required; add a `default`',
        ),
    ),
    "an empty interpolation": (
        steps("- {id: a, run: 'echo ${{ }}'}"),
        ("E210", 3, 24, "empty expression"),
    ),
    # Params and outputs
    "a pattern that is none": (
        HEAD + "params: {v: {type: string, pattern: '(a'}}\nsteps: [run: x]\n",
        ("E221", 2, 37, 'parameter "v": the pattern is not a regular expression'),
    ),
    "a default of another type": (
        HEAD + "params: {n: {type: integer, default: three}}\nsteps: [run: x]\n",
        ("E222", 2, 38, 'parameter "n": its default is "three", not an integer'),
    ),
    "a default outside the enum": (
        HEAD + "params: {t: {enum: [a, b], default: c}}\nsteps: [run: x]\n",
        ("E222", 2, 37, 'its default is "c", not one of "a", "b"'),
    ),
    "an enum of another type": (
        HEAD + "params: {t: {type: integer, enum: [1, two]}}\nsteps: [run: x]\n",
        ("E222", 2, 39, 'parameter "t": this value is "two", not an integer'),
    ),
    "an output's default": (
        steps("- {run: x, outputs: {n: {type: boolean, default: 3}}}"),
        ("E222", 3, 52, 'output "n": its default is 3, not a boolean'),
    ),
    "a default beyond a limit that is rarely used": (
        HEAD + "params: {t: {type: string, maxLength: 2, default: abc}}\nsteps: [run: x]\n",
        ("E222", 2, 51, "'abc' is too long"),
    ),
    # The rest
    "a reserved variable": (
        HEAD + "env: {PLANRUN_RUN: x}\nsteps: [run: x]\n",
        ("E230", 2, 7, "reserved environment variable PLANRUN_RUN: planrun sets it"),
    ),
    "a reserved variable of a step": (
        steps("- run: x", "  env: {PLANRUN_STEP: x}"),
        ("E230", 4, 11, "PLANRUN_STEP"),
    ),
    "an empty workdir": (steps("- run: x", "  workdir: ''"), ("E113", 4, 14, "`workdir` is empty")),
    "a shell that is no command": (
        steps("- run: x", "  shell: bash 'a"),
        ("E231", 4, 12, "`shell` cannot be split into words: no closing quotation"),
    ),
    "too many steps": (
        HEAD + "limits: {max_steps: 1}\nsteps:\n  - run: x\nfinally:\n  - run: y\n",
        ("E240", 2, 21, "the plan has 2 steps; `max_steps` allows 1; set `limits: {max_steps: 2}`"),
    ),
    "a title that is no template": (
        steps("- run: x", "  title: Version ${{ run.sha }}"),
        ("W301", 4, 12, "`title` is shown as written"),
    ),
    # Gates and policies
    "two options with the same label": (
        steps("- id: a", "  decide: {question: q, options: [{label: b, value: 1}, {label: b, value: 2}]}"),
        ("E250", 4, 67, 'two options of step "a" have the label "b"'),
    ),
    "two options with the same value": (
        steps("- id: a", "  decide: {question: q, options: [{label: b}, {label: c, value: b}]}"),
        ("E250", 4, 67, 'two options of step "a" have the value "b"'),
    ),
    "a default that is no option": (
        steps("- id: a", "  decide: {question: q, options: [{label: redis}], default: redsi}"),
        (
            "E251",
            4,
            63,
            'the default of step "a" is not an option: "redsi"; did you mean "redis"?',
        ),
    ),
    "a default of two choices where one is taken": (
        steps("- id: a", "  decide: {question: q, options: [{label: b}, {label: c}], default: [b, c]}"),
        ("E251", 4, 71, "is not an option"),
    ),
    "a default that takes one option twice": (
        steps(
            "- id: a", "  decide: {question: q, options: [{label: b}], multi_select: true, default: [b, b]}"
        ),
        ("E251", 4, 79, "lists an option twice"),
    ),
    "a default that is neither yes nor no": (
        steps("- id: a", "  ask: {question: q, default: maybe}"),
        ("E222", 4, 33, 'the answer to step "a": its default is "maybe"'),
    ),
    "a default that does not follow the pattern": (
        steps("- id: a", "  ask: {question: q, type: string, pattern: '^v', default: x}"),
        ("E222", 4, 62, 'the answer to step "a": its default'),
    ),
    "a pattern of an answer that is none": (
        steps("- id: a", "  ask: {question: q, type: string, pattern: '('}"),
        ("E221", 4, 47, "the pattern is not a regular expression"),
    ),
    "a decision that reads a step without depending on it": (
        steps("- {id: b, run: x}", "- id: a", "  ask: {question: 'After ${{ steps.b.status }}?'}"),
        ("E213", 5, 32, 'step "a" reads status of "b" but does not depend on it'),
    ),
    "a decision of the plan that waits for a step": (
        HEAD
        + "decisions: {d: {question: q, options: [{label: x, when: steps.a.status == 'completed'}]}}\n"
        + "steps: [{id: a, run: x}]\n",
        ("E213", 2, 57, "does not depend on it"),
    ),
    "when that is not boolean": (
        steps("- id: a", "  decide: {question: q, options: [{label: b, when: run.ref}]}"),
        ("E212", 4, 54, "a condition must be boolean, got a string"),
    ),
    "a folder of a question": (
        steps("- id: a", "  ask: {question: 'Look at ${{ step.dir }}?'}"),
        ("E217", 4, 34, "`step` cannot be used here: a question has no directory"),
    ),
    "an unknown output of a gate": (
        steps(
            "- {id: a, ask: {question: q}}",
            "- {id: b, depends_on: [a], run: 'x ${{ steps.a.outputs.anser }}'}",
        ),
        ("E214", 4, 42, 'undeclared output "anser" of step "a"'),
    ),
    "an answer compared with another type": (
        steps(
            "- {id: a, ask: {question: q}}",
            "- {id: b, depends_on: [a], run: x, condition: steps.a.outputs.answer == 'yes'}",
        ),
        ("E212", 4, 49, ""),
    ),
    "a decision with the id of a step": (
        HEAD + "decisions: {a: {question: q, options: [{label: x}]}}\nsteps: [{id: a, run: x}]\n",
        ("E201", 3, 14, 'duplicate step id "a", first on line 2'),
    ),
    **{
        f"{key} of a question": (
            steps("- id: a", "  ask: {question: q}", f"  {key}: {value}"),
            ("E252", 5, 5, f'`{key}` does not apply to `ask` in step "a"'),
        )
        for key, value in {
            "retries": "1",
            "idempotent": "false",
            "timeout": "5m",
            "idle_timeout": "5m",
            "env": "{A: b}",
            "env_file": "x.env",
            "shell": "bash",
            "workdir": "x",
            "outputs": "{x: string}",
        }.items()
    },
    "secrets of a decision": (
        HEAD
        + "secrets: [KEY]\nsteps: [{id: a, secrets: [KEY], decide: {question: q, options: [{label: x}]}}]\n",
        ("E252", 3, 17, "no process is started"),
    ),
    "a rule about a step that there is not": (
        HEAD + "policy: {rules: [{deny: {step: biuld}}]}\nsteps: [{id: build, run: x}]\n",
        (
            "E202",
            2,
            32,
            'a rule names unknown step "biuld"; did you mean "build"?',
        ),
    ),
    "a rule about a secret that is not declared": (
        HEAD + "secrets: [KEY]\npolicy: {rules: [{require: {secret: [KEYS]}}]}\nsteps: [{run: x}]\n",
        (
            "E232",
            3,
            38,
            'a rule names unknown secret "KEYS"; did you mean "KEY"?',
        ),
    ),
    "a rule about a tool that there is not": (
        HEAD + "policy: {rules: [{deny: {tool: excec}}]}\nsteps: [{run: x}]\n",
        ("E105", 2, 32, 'a rule names unknown tool "excec"; did you mean "exec"?'),
    ),
    "a rule about an effect that there is not": (
        HEAD + "policy: {rules: [{deny: {effect: [destroy]}}]}\nsteps: [{run: x}]\n",
        ("E105", 2, 35, 'a rule names unknown effect "destroy"; did you mean "destroys"?'),
    ),
    "an answer for a step that there is not": (
        HEAD + "policy: {decisions: {stroe: x}}\nsteps: [{id: store, ask: {question: q, type: string}}]\n",
        ("E202", 2, 22, 'answer for unknown step "stroe"; did you mean "store"?'),
    ),
    "an answer for a step that asks for nothing": (
        HEAD + "policy: {decisions: {a: x}}\nsteps: [{id: a, run: x}]\n",
        ("E253", 2, 22, 'answer for step "a", which is not an `ask` or `decide` step'),
    ),
    "a pattern that leaves the workspace": (
        steps("- {id: a, run: x, inputs: ../lib}"),
        ("E265", 3, 29, 'the pattern "../lib" of step "a" leaves the workspace with `..`'),
    ),
    "a pattern of the whole machine": (
        steps("- {id: a, run: x, writes: [/etc/hosts]}"),
        ("E265", 3, 30, 'the pattern "/etc/hosts" of step "a" is not relative to the workspace'),
    ),
    "a pattern that takes away where nothing can be": (
        steps("- {id: a, run: x, produces: ['dist/*', '!dist/x']}"),
        ("E265", 3, 42, 'the pattern "!dist/x" of step "a" begins with `!`, which only `inputs` accepts'),
    ),
    "a file that two steps make at once": (
        steps("- {id: a, run: x, produces: dist/x}", "- {id: b, run: x, produces: ./dist/x}"),
        ("E266", 4, 31, 'steps "a" and "b" may run in parallel and both produce "./dist/x"'),
    ),
    "files of a question": (
        steps("- {id: a, ask: {question: q}, produces: x}"),
        ("E267", 3, 33, '`produces` does not apply to `ask` in step "a"; no process is started'),
    ),
    "a result that must not be used again": (
        steps("- {id: a, run: x, inputs: x, idempotent: false, cache: true}"),
        ("E268", 3, 51, 'step "a" cannot be cached: it has `idempotent: false`'),
    ),
    "a cached step that changes files of others": (
        steps("- {id: a, run: x, inputs: x, writes: y, cache: true}"),
        ("E268", 3, 43, 'step "a" cannot be cached: it has `writes`'),
    ),
    "an answer that is no option": (
        HEAD
        + "policy: {decisions: {a: c}}\nsteps: [{id: a, decide: {question: q, options: [{label: b}]}}]\n",
        ("E251", 2, 25, 'the answer to step "a" is not an option: "c"; valid options: "b"'),
    ),
    "an answer of another type": (
        HEAD + "policy: {decisions: {a: many}}\nsteps: [{id: a, ask: {question: q, type: integer}}]\n",
        ("E251", 2, 25, 'the answer to step "a" is "many", not an integer'),
    ),
    "an output that a policy makes uncertain": (
        HEAD + "policy: {on_failure: {low: continue}}\nsteps:\n  - {id: a, run: x, outputs: {n: string}}\n"
        "  - {id: b, depends_on: [a], run: 'echo ${{ steps.a.outputs.n }}'}\n",
        ("E215", 5, 45, 'the output "n" of step "a" may be absent here'),
    ),
}
"""By name: the plan, and code, line, column and words of its finding."""

GOOD = {
    "the seeds' form": steps(
        "- id: 1",
        "  run: make",
        "- id: 2",
        "  run: make test",
        "  depends_on: [1]",
        "- id: 3",
        "  run: fix",
        "  depends_on: [2]",
        "  condition: step_2_failed",
    ),
    "positions as ids": steps("- run: a", "- run: b", "  depends_on: [1]") + "finally:\n  - run: c\n",
    "finally depends on finally": steps("- run: a")
    + "finally:\n  - {id: y, run: x}\n  - {id: z, run: x, depends_on: {y: done}}\n",
    "finally reads every status": steps("- {id: a, run: x}")
    + "finally:\n  - {run: 'echo ${{ steps.a.status }}', condition: \"steps.a.status != 'completed'\"}\n",
    "a sure output": steps(
        "- {id: a, run: x, outputs: {n: string}}",
        "- {id: b, depends_on: [a], run: 'echo ${{ steps.a.outputs.n }}'}",
    ),
    "a sure output through others": steps(
        "- {id: a, run: x, outputs: {n: string}}",
        "- {id: b, depends_on: [a], run: x}",
        "- {id: c, depends_on: {b: failed}, run: 'echo ${{ steps.a.outputs.n }}'}",
    ),
    "an output over completed": steps(
        "- {id: a, run: x, condition: run.ci, on_failure: continue, outputs: {n: string}}",
        "- {id: b, depends_on: {a: completed}, run: 'echo ${{ steps.a.outputs.n }}'}",
    ),
    "an output with a default": steps(
        "- {id: a, run: x, outputs: {n: string}}",
        "- {id: b, depends_on: {a: done}, run: \"echo ${{ default(steps.a.outputs.n, '') }}\"}",
    ),
    "an output after its step is known to have succeeded": steps(
        "- {id: a, run: x, outputs: {n: integer}}",
        "- id: b",
        "  depends_on: [a]",
        "  condition: step_a_succeeded and steps.a.outputs.n > 3",
        "  run: echo ${{ steps.a.outputs.n }}",
    ),
    "the exit code of a failed step": steps(
        "- {id: a, run: x}", "- {id: b, depends_on: {a: failed}, condition: steps.a.exit_code == 75, run: x}"
    ),
    "an abstract step": steps("- {id: a, title: Think}", "- {id: b, depends_on: [a], run: x}"),
    "recovers and an edge that only waits": steps(
        "- {id: a, run: x, on_failure: continue}", "- {id: b, depends_on: {a: done}, recovers: [a], run: x}"
    ),
    "text where text is wanted": HEAD
    + "params: {v: {type: string, enum: [3.10, no, 0755], default: 3.10}}\nsteps: [run: x]\n",
    "all names": HEAD + "params: {o: {type: object, default: {}}}\nsteps:\n  - id: a\n"
    "    env: {HERE: '${{ step.dir }}'}\n"
    "    run: echo ${{ env.HOME | sh }} ${{ run.id }} ${{ default(params.o.x, 1) }} $${{ no }}\n",
    "parameters that are given or not needed": HEAD
    + "params: {a: {type: string, required: true}, b: integer}\n"
    "steps:\n  - run: echo ${{ params.a }} ${{ default(params.b, 1) }} ${{ params.b | default(2) }}\n",
    "outputs of the plan": HEAD
    + "outputs: {n: '${{ steps.a.outputs.n }}'}\nsteps:\n  - {id: a, run: x, outputs: {n: string}}\n",
    "gates": steps(
        "- {id: go, ask: {question: q, default: true, timeout: 5m}, on_failure: abort, recovers: []}",
        "- {id: n, ask: {question: 'How many?', type: integer, minimum: 1, maximum: 9, default: 3}}",
        "- {id: v, ask: {question: q, type: string, default: 3.10}}",
        "- {id: s, decide: {question: q, options: [{label: A, value: 1}, {label: B, value: '1'}], default: 1}}",
        "- {id: m, decide: {question: q, options: [{label: A}, {label: B}], multi_select: true, default: A}}",
        "- {id: z, depends_on: [go, n, m], condition: steps.go.outputs.answer and steps.n.outputs.answer > 2, run: x}",
        "- {id: y, depends_on: [m], condition: \"contains(steps.m.outputs.answer, 'A')\", run: x}",
    ),
    "long answers that begin alike": steps(
        f"- {{id: a, decide: {{question: q, multi_select: true, default: [{'x' * 70}a, {'x' * 70}b],"
        f" options: [{{label: A, value: {'x' * 70}a}}, {{label: B, value: {'x' * 70}b}}, {{label: C, value: true}},"
        " {label: D, value: 1}]}}"
    ),
    "a decision of the plan counts for no position": HEAD
    + "decisions: {d: {question: q, options: [{label: x}]}}\nsteps:\n  - {run: a, depends_on: [d]}\n"
    "  - {run: 'b ${{ steps.d.outputs.answer }}', depends_on: [1, d]}\n",
    "a policy": HEAD
    + "policy:\n  auto_approve: low\n  decisions: {d: x}\n  rules:\n    - deny: {step: 'deploy-*'}\n"
    "    - allow: {step: a, tool: [run, 'git.*'], risk: medium}\n"
    "decisions: {d: {question: q, options: [{label: x}]}}\nsteps: [{id: a, run: x}]\n",
}
"""By name; nothing is wrong with them."""
