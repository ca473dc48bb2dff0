"""Taskfiles with templates, includes and loops that become plans by the command line, and run as go-task runs them."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.conftest import Command

ROOT_FILE = """\
    version: "3"
    includes:
      docs: {taskfile: ./docs, dir: docs, aliases: [d], vars: {KIND: manual}}
      shared: {taskfile: ./shared.yml, flatten: true}
      gone: {taskfile: ./gone.yml, optional: true}
    vars:
      NAME: Some-App
      MODE: '{{.MODE | default "debug"}}'
      WHO: {sh: echo World}
      NUMBERS: {sh: printf '3\\n4\\n'}
      PARTS: {ref: 'splitList "," "x,y"'}
      CONF: {map: {port: 80}}
    tasks:
      default:
        cmds:
          - >-
            echo "{{.NAME | lower}} {{.WHO | upper}} {{if eq .MODE "release"}}-O2 -DX="r"{{else}}-O0 -DX="d"{{end}}"
            >> said
          - echo '{{.WHO}}!' >> said
          - {for: {var: NUMBERS}, cmd: "echo n{{.ITEM}} >> said"}
          - {for: {var: PARTS}, cmd: "echo part {{.ITEM}} {{.CONF.port}} >> said"}
          - '{{if .SKIPPED}}echo no >> said{{else if eq OS "linux"}}echo linux >> said{{else}}echo no >> said{{end}}'
          - task: d:build
          - task: common
            vars: {FLAGS: '{{if eq .MODE "release"}}--flag="a b"{{else}}--flag="c d"{{end}}'}
          - echo '{{range $i, $x := splitList "-" "p-q"}}{{$i}}{{$x}} {{end}}{{printf "%s/%s" .NAME "z"}}' >> said
          - task: files
      last: {cmds: [echo last >> said]}
      files:
        sources: ["*.in"]
        cmds:
          - {for: sources, cmd: "echo file {{.ITEM}} >> said"}
"""
INCLUDED = {
    "shared.yml": """\
        version: "3"
        tasks:
          common: {cmds: ["printf '%s|' {{.FLAGS}} >> said", echo >> said]}
        """,
    "docs/Taskfile.yml": """\
        version: "3"
        vars: {OUT: out}
        tasks:
          build:
            deps: [prepare]
            cmds: ['echo {{.KIND}} {{.OUT}} {{.NAME}} $(basename $PWD) >> ../said', {task: ":last"}]
          prepare: {cmds: [echo prepare >> ../said]}
        """,
    "a.in": "",
    "b.in": "",
}
# What go-task 3.54 writes for the same files, with `task` and with `MODE=release task`.
SAID = """\
some-app WORLD {flags}
World!
n3
n4
part x 80
part y 80
linux
prepare
manual out Some-App docs
last
{words}|
0p 1q Some-App/z
file a.in
file b.in
"""


def write(folder: Path, files: dict[str, str]) -> None:
    """Write files into a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(dedent(text), "utf-8")


def test_templates_includes_and_loops_do_what_go_task_does(planrun: Command, tmp_path: Path) -> None:
    """Nothing has to be accepted, and both values of a parameter give what go-task gives."""
    write(tmp_path, {"Taskfile.yml": ROOT_FILE, **INCLUDED})
    done = planrun("convert", "Taskfile.yml", "-o", "plan.yml")
    assert done.returncode == 0, done.stderr
    assert "refused" not in done.stderr
    for mode, flags, words in (("debug", "-O0 -DX=d", "--flag=c d"), ("release", "-O2 -DX=r", "--flag=a b")):
        (tmp_path / "said").unlink(missing_ok=True)
        ran = planrun("execute", "plan.yml", "--param", f"MODE={mode}", "--no-cache")
        assert ran.returncode == 0, ran.stdout
        assert (tmp_path / "said").read_text("utf-8") == SAID.format(flags=flags, words=words)


def test_what_cannot_be_included_is_refused_where_it_is_called(planrun: Command, tmp_path: Path) -> None:
    """A file that is not there, or elsewhere, costs only the tasks that need it; findings name the included file."""
    text = """\
        version: "3"
        includes: {gone: ./gone.yml, far: "https://host.invalid/Taskfile.yml", near: ./near.yml, self: ./Taskfile.yml}
        tasks:
          default: echo fine
          a: {cmds: [{task: gone:x}]}
          b: {cmds: [{task: far:x}]}
          c: {cmds: [{task: near:x}]}
          d: {cmds: [{task: self:default}]}
        """
    near = 'version: "3"\ntasks:\n  x: {cmds: ["echo {{now}}"]}\n'
    write(tmp_path, {"Taskfile.yml": text, "near.yml": near})
    assert planrun("convert", "Taskfile.yml").returncode == 0
    for task, why in (
        (
            "a",
            "Taskfile.yml:5:14: refused[includes]: the task gone:x: it is in a file that is not there: ./gone.yml",
        ),
        ("b", "refused[includes]: the task far:x: it is in a file that is fetched from elsewhere"),
        ("c", "near.yml:3:6: refused[template]: the function `now` is worked out by go-task"),
        ("d", "refused[includes]: the task self:default: it is in a file that includes itself"),
    ):
        done = planrun("convert", "Taskfile.yml", "--job", task)
        assert done.returncode == 2
        assert why in done.stderr
        assert "Traceback" not in done.stderr


CHOICE = """\
    version: "3"
    tasks:
      default: [task --list]
      build: {deps: [gen], cmds: [echo build >> said]}
      test: {cmds: [echo first >> said, {task: build}, echo test >> said]}
      gen: {internal: true, cmds: [echo gen >> said]}
      nothing: {desc: Does nothing}
    """


def test_without_a_default_task_a_parameter_chooses_one(planrun: Command, tmp_path: Path) -> None:
    """A run has the steps of the task that it names, and of what that one needs, and no other."""
    write(tmp_path, {"Taskfile.yml": dedent(CHOICE)})
    done = planrun("convert", "Taskfile.yml", "-o", "plan.yml")
    assert "differs[task]: the task `default` only lists the others" in done.stderr
    assert planrun("execute", "plan.yml").returncode == 2  # none is named
    for task, lines in (("test", "first gen build test"), ("build", "gen build"), ("nothing", "")):
        (tmp_path / "said").write_text("")
        assert planrun("execute", "plan.yml", "--param", f"task={task}").returncode == 0
        assert (tmp_path / "said").read_text().split() == lines.split()


CALLS = """\
    version: "3"
    tasks:
      default:
        cmds:
          - task: '{{if eq .MODE "fast"}}quick{{else}}slow{{end}}'
          - {task: never, if: test -e missing}
          - {defer: {task: bye}}
          - echo "{{now | date "2006"}}" >> said
          - exit 3
      quick: [echo quick >> said]
      slow: [echo slow >> said]
      never: [echo never >> said]
      bye: [echo bye >> said]
    """


def test_calls_under_a_test_and_at_the_end(planrun: Command, tmp_path: Path) -> None:
    """A test of the shell chooses the task when the plan runs; what is deferred runs after a failure, too."""
    write(tmp_path, {"Taskfile.yml": dedent(CALLS)})
    planrun("convert", "Taskfile.yml", "-o", "plan.yml")
    assert planrun("execute", "plan.yml", env={"MODE": "fast"}).returncode == 1
    quick, year, bye = (tmp_path / "said").read_text().split()
    assert (quick, bye, len(year), year.isdecimal()) == ("quick", "bye", 4, True)


def test_files_that_a_task_makes_are_demanded_and_that_is_said(planrun: Command, tmp_path: Path) -> None:
    """go-task does not look whether `generates` came to be; a plan does, and the conversion says so."""
    text = 'version: "3"\ntasks:\n  default: {generates: [out.txt], cmds: ["true"]}\n'
    write(tmp_path, {"Taskfile.yml": text})
    done = planrun("convert", "Taskfile.yml", "-o", "plan.yml")
    assert (
        "differs[generates]: a file under `generates` that is missing after the task fails the step"
        in done.stderr
    )
    assert planrun("execute", "plan.yml").returncode == 1
