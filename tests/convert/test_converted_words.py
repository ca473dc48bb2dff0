"""What files of other tools hand on from step to step, and the programs that they start: run with stand-ins."""

# ruff: noqa: E501 - one line for each case, and files of other tools as they are
from __future__ import annotations

import os
import subprocess
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from planrun.convert.convert import Converted
    from tests.convert.conftest import Workspace

DAG = """\
    name: big one
    type: graph
    params: [{target: prod}]
    env: [{HOST: "api.${params.target}.internal"}]
    defaults: {env: [{LEVEL: info}]}
    steps:
      - id: build
        run: |
          printf 'image=v1.2\\n' >> "$DAGU_OUTPUT_FILE"
          echo "$LEVEL $HOST" >> said
        outputs: [{name: image}]
      - id: use
        depends: [build]
        env: {TAG: "${steps.build.outputs.image}", LEVEL: debug}
        run: |
          echo '${steps.build.outputs.image}' "${build.outputs.image}" $TAG $LEVEL >> said
          cat <<'EOF' >> said
          ${steps.build.outputs.image} ${params.target}
          EOF
      - {id: lines, depends: [use], run: "printf 'a\\\\nb\\\\n'"}
      - {id: count, depends: [lines], run: "echo $(wc -l < ${lines.stdout}) ${lines.exit_code} >> said"}
      - id: poll
        depends: [count]
        run: echo x >> polled; wc -l < polled | tr -d ' '
        output: N
        repeat_policy: {repeat: until, condition: "${N}", expected: "3", limit: 9}
      - {id: router, depends: [poll], type: router, value: "${N}", routes: {"3": [yes], "re:^[0-9]$": [also], "9": [no]}}
      - {id: "yes", run: echo yes $N >> said}
      - {id: also, depends: ["yes"], run: echo also >> said}
      - {id: "no", run: echo no >> said}
      - {id: items, depends: [also], run: "echo '[\\"p q\\", \\"r\\"]'", output: ITEMS}
      - id: each
        depends: [items]
        call: child
        parallel: {items: "${ITEMS}", max_concurrent: 1}
        params: "V=${ITEM} W=${params.target}"
      - {id: one, depends: [each], call: child, params: {V: solo}, output: OUT}
      - {id: last, depends: [one], run: 'echo "got ${OUT.outputs.R}" >> said'}
      - {id: write, action: file.write, with: {path: f/x.txt, content: ok, create_dirs: true}}
      - {id: ask, depends: [last], action: harness.run, with: {provider: claude, model: m, prompt: 'Say "hi", `x`'}}
    handler_on:
      init: {run: echo init >> said}
      exit: {run: 'echo "$DAG_RUN_STATUS $DAG_NAME" >> said'}
    ---
    name: child
    params: [{V: d}, {W: e}]
    steps:
      - {id: one, run: 'echo "$V-$W" >> said'}
      - {id: two, run: 'echo "r-$V"', output: R}
    """


def stand_in(folder: Path, name: str) -> None:
    """Put a program on the path of steps that writes its words to `said`."""
    path = folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        '#!/bin/sh\nprintf "[%s]" "${0##*/}" "$@" >> "$PLANRUN_WORKSPACE/said"; echo >> "$PLANRUN_WORKSPACE/said"\n'
    )
    path.chmod(0o755)


def path_of(folder: Path) -> str:
    """Return a PATH that begins with the stand-ins."""
    return f"{folder / 'bin'}:{os.environ['PATH']}"


def test_steps_of_dagu_read_what_others_hand_on(there: Workspace) -> None:
    """Outputs in every kind of quotes, streams, repetitions, routes, items, results of sub-DAGs and handlers."""
    stand_in(there.folder, "claude")
    ended = there.convert(DAG, "--from", "dagu")
    assert ended.code == 0, ended.err
    ended = there.execute("--jobs", "1", PATH=path_of(there.folder))
    assert ended.code == 0, ended.out + ended.err
    assert there.said == [
        "init", "info api.prod.internal", "v1.2 v1.2 v1.2 debug", "v1.2 prod", "2 0", "yes 3", "also", "p q-prod",
        "r-prod", "solo-e", "got r-solo", '[claude][-p][Say "hi", `x`][--model][m]', "succeeded big one",
    ]  # fmt: skip
    assert (there.folder / "f" / "x.txt").read_text() == "ok"


PIPELINE = """\
    stages: [a, b, c]
    variables: {TAG: v1, MODE: base}
    mk:
      stage: a
      script: ['echo "VER=1 2 = 3" > build.env', 'echo N=x >> build.env']
      artifacts: {reports: {dotenv: build.env}}
    use:
      stage: b
      script: echo "$VER|$N|$MODE" >> said
      rules:
        - {if: $TAG == "v0", variables: {MODE: old}}
        - {changes: [src/**/*, "*.{md,txt}"], variables: {MODE: "$TAG changed"}}
    never:
      stage: b
      script: echo never >> said
      rules: [{changes: [docs/*]}, {exists: ["missing*.x"]}]
    there: {stage: b, script: echo there >> said, rules: [{exists: ["src/*.py"]}]}
    codes: {stage: b, script: exit 7, allow_failure: {exit_codes: [7, 9]}, inherit: {variables: [TAG]}}
    rel: {stage: c, script: 'echo "${MODE-unset}" >> said', inherit: {variables: [TAG]}, release: {tag_name: $TAG}}
    apart: {stage: c, dependencies: [], script: 'echo "[$VER]" >> said'}
    start: {stage: c, variables: {UP: "1"}, trigger: {project: group/sub, branch: dev}}
    twice: {stage: c, script: [exit 1], script: ['echo two >> said']}
    """


def test_jobs_of_gitlab_read_reports_changes_and_files(there: Workspace) -> None:
    """Variables of reports and rules, changed and existing files, releases, other pipelines, and doubled keys."""
    for program in ("release-cli", "curl"):
        stand_in(there.folder, program)
    (there.folder / "src").mkdir()
    git = ["git", "-C", str(there.folder), "-c", "user.email=a@b", "-c", "user.name=a"]
    subprocess.run([*git, "init", "-q"], check=True)
    for number in "12":
        (there.folder / "src" / "a.py").write_text(number)
        subprocess.run([*git, "add", "src"], check=True)
        subprocess.run([*git, "commit", "-qm", number], check=True)
    before = subprocess.run(
        [*git, "rev-parse", "HEAD~1"], check=True, capture_output=True, text=True
    ).stdout.strip()
    ended = there.convert(PIPELINE, "--from", "gitlab")
    assert ended.code == 0, ended.err
    assert 'differs[duplicate]: duplicate key "script"' in ended.err
    env = {"PATH": path_of(there.folder), "CI_JOB_TOKEN": "token-of-a-job", "CI_API_V4_URL": "http://x/api"}
    ended = there.execute(CI_COMMIT_BEFORE_SHA=before, **env)
    assert ended.code == 0, ended.out + ended.err
    request = "[--silent][--show-error][--fail-with-body][--request][POST][--form][token=token-of-a-job][--form][ref=dev]"
    assert there.said == [
        "1 2 = 3|x|v1 changed", "there", "unset", "[release-cli][create][--tag-name][v1]", "[]",
        f"[curl]{request}[--form][variables[UP]=1][http://x/api/projects/group%2Fsub/trigger/pipeline]", "two",
    ]  # fmt: skip


def test_recipes_of_just_choose_by_what_a_run_finds(there: Workspace) -> None:
    """As just 1.59 runs them: modules with their own shell and folder, `if` over variables and commands."""
    (there.folder / "sub").mkdir()
    (there.folder / "m.just").write_text(
        "v := 'mv'\nbuild: dep\n    echo build {{v}} >> said\ndep:\n    echo dep {{v}} >> said\n"
    )
    (there.folder / "sub" / "n.just").write_text(
        'set shell := ["bash", "-c"]\nsay word="d":\n    [[ a == a ]] && echo say {{word}} $(basename $PWD) >> ../said\n'
    )
    (there.folder / "justfile").write_text(
        dedent("""\
            who := env("WHO_X", "nobody")
            kind := if who == "nobody" { "none" } else if who =~ '^a' { "a-kind" } else { "other" }
            where := absolute_path("x/../y")
            mod m
            mod n 'sub/n.just'
            default: m::build (n::say "hey")
                # nothing but {{kind}}
                echo "{{kind}} {{ if where =~ '/y$' { "Y" } else { "N" } }} {{ `echo in line` }} {{path_exists("sub")}}" >> said
            """)
    )
    assert there.planrun("convert", "justfile", "-o", "plan.yml").code == 0
    assert there.execute(WHO_X="ann").code == 0
    assert there.said == ["dep mv", "build mv", "say hey sub", "a-kind Y in line true"]


def test_a_rule_of_make_need_not_make_its_file(there: Workspace) -> None:
    """What waits for it is out of date then; a recipe of comments does nothing."""
    (there.folder / "Makefile").write_text("all: a\n\t# only said\n\techo all >> said\na:\n\t# nothing\n")
    assert there.planrun("convert", "Makefile", "-o", "plan.yml").code == 0
    assert there.execute().code == 0
    assert there.said == ["all"]


def test_tasks_make_their_folders_and_end_in_time(there: Workspace) -> None:
    """As in go-task 3.54: limits count, unknown keys are ignored, and a task that is not there fails."""
    text = """\
        version: '3'
        vars: {TOK: {value: abc, secret: true}, SUB: sub}
        tasks:
          default:
            deps: [d, 'e:{{.PM | default "npm"}}']
            cmds:
              - {cmd: sleep 30; echo late >> said, timeout: 200ms, ignore_error: true}
              - echo {{.ALIAS}} {{.TOK}} "it's" >> said
              - task: missing
          d: {dir: '{{.WHERE | default "x"}}/{{.SUB}}', cmds: ['basename $PWD >> {{.ROOT_DIR}}/said']}
          e:npm: {cmds: [echo npm >> said], unknown: 1}
        """
    ended = there.convert(text, "--from", "taskfile")
    assert ended.code == 0, ended.err
    assert "todo[task]: the task missing is not there: its step fails" in ended.err
    assert there.execute("--jobs", "1").code == 1
    assert sorted(there.said[:2]) == ["npm", "sub"]
    assert there.said[2:] == ["default abc it's"]


@pytest.mark.parametrize(
    ("step", "line"),
    [
        ("{type: redis, config: {host: h, command: SET, key: k, value: 'a b', ttl: 5}}", 'redis-cli -e --no-auth-warning -h "h" --json SET "k" "a b" EX "5"'),
        ("{action: s3.upload, with: {bucket: b, key: k/x, source: f}}", 'aws s3 cp "f" "s3://b/k/x"'),
        ("{type: sftp, config: {host: h, user: u, direction: download, source: /a, destination: b}}", 'scp -rq -o BatchMode=yes "u@h:/a" "b"'),
        ("{type: postgres, config: {dsn: d, params: {x: '1'}}, command: 'SELECT :x AS a'}", "SELECT row_to_json(planrun_row) FROM ("),
        ("{type: sqlite, config: {dsn: 'file:t.db', output_format: csv}, command: 'SELECT 1'}", 'sqlite3 -batch -bail -csv "t.db" <<'),
        ("{type: archive, config: {source: a.tgz, destination: b}, command: extract}", 'tar --extract --gzip --keep-old-files --file="a.tgz" --directory="b"'),
        ("{type: chat, llm: {provider: anthropic, model: m}, messages: [{role: user, content: 'Hi `x`'}]}", '--arg m0 "Hi \\`x\\`"'),
        ("{type: template, config: {data: {a: '${X}'}}, script: 'Hi {{ .a }}'}", "Hi ${X}"),
        ("{type: http, config: {url: 'http://h', method: PUT, json: true}}", '--request "PUT" "http://h" --write-out'),
        ("{container: {exec: box, user: u}, run: ls}", 'docker exec --interactive --user "u" "box" sh -e'),
        ("{action: human.task, with: {prompt: Go, form: {properties: {n: {type: integer, minimum: 1}}}}}", "type: integer, minimum: 1"),
        ("{type: agent, messages: [{role: user, content: Fix it}]}", 'agent: {type: general, prompt: "Fix it"}'),
        ("{type: mail, config: {to: a@b, subject: s, attachments: [f]}}", "} | sendmail -t"),
        ("{action: git.checkout, with: {repository: r, ref: main, path: p}}", 'git clone --quiet "r" "p"'),
        ("{type: k8s, config: {image: i}, command: ls}", '--image="i" --command -- "sh" "-c" "ls"'),
    ],
)  # fmt: skip
def test_executors_of_dagu_are_command_lines(made: Callable[..., Converted], step: str, line: str) -> None:
    """Those that a person would type."""
    converted = made(f"steps:\n  - {step}\n", source="dagu")
    assert not converted.is_refused, converted.findings
    assert line in converted.text


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("steps:\n  - {id: a, run: 'echo ${nothing.outputs.x}'}\n", "reference"),
        ("steps:\n  - {id: a, run: 'echo $DAG_PARAMS_JSON'}\n", "reference"),
        ("steps:\n  - {run: x, output: R}\nhandler_on: {exit: {run: 'echo $R'}}\n", "reference"),
        ("steps:\n  - {call: elsewhere, output: R}\n", "sub-dag"),
        ("steps:\n  - {type: chat, llm: {provider: openai, model: m, tools: [t]}, messages: [{content: x}]}\n", "key:tools"),
        ("steps:\n  - {type: redis, config: {pipeline: [a]}}\n", "key:pipeline"),
        ("steps:\n  - {type: duckdb, command: x}\n", "executor:duckdb"),
        ("steps:\n  - {action: state.get, with: {key: k}}\n", "action:state.get"),
    ],
)  # fmt: skip
def test_what_only_dagu_knows_is_refused(made: Callable[..., Converted], text: str, code: str) -> None:
    """By its name."""
    converted = made(text, source="dagu")
    assert code in [each.code for each in converted.findings if each.kind == "refused"]


def test_words_that_no_shell_reads_have_the_variables_of_their_step(made: Callable[..., Converted]) -> None:
    """Those of the step and of the file, by their texts; positions and files of variables are refused."""
    text = "env: [{BASE: '${HOME}/b'}]\nparams: [{p: x}]\nsteps:\n  - {env: {T: '${params.p}'}, action: exec, with: {command: a, args: ['${T}', '$BASE']}}\n"
    plan = made(text, source="dagu").text
    assert 'exec: [a, "${{ params.p }}", "${{ default(env.HOME, \'\') }}/b"]' in plan
    refused = made("steps:\n  - {action: exec, with: {command: a, args: ['$1']}}\n", source="dagu")
    assert "path" in [each.code for each in refused.findings if each.kind == "refused"]
    refused = made("dotenv: .env\nsteps:\n  - {working_dir: $WHERE, run: ls}\n", source="dagu")
    assert "reference" in [each.code for each in refused.findings if each.kind == "refused"]
