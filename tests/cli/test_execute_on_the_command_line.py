"""What the verbs that run plans leave on stdout and stderr, and the options they read from variables."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from planrun.cliutil.options import EXECUTE, parse
from planrun.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command

PLAN = "version: 1\nsteps: [{id: a, run: echo hi}, {id: b, run: test -e ok, depends_on: [a]}]\n"


def test_json_is_one_document_and_all_of_stdout(planrun: Command) -> None:
    """`--json` prints ledger.json on stdout and nothing else; a resumed and a finished run print theirs."""
    (planrun.folder / "plan.yml").write_text(PLAN)
    done = planrun("execute", "plan.yml", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["verdict"] == "failed"
    assert done.stdout == (planrun.folder / "planrun-out" / "ledger.json").read_text()
    (planrun.folder / "ok").write_text("")
    done = planrun("resume", "last", "--json")
    assert (done.returncode, json.loads(done.stdout)["verdict"]) == (0, "completed")
    done = planrun("resume", "last", "--json")
    assert (done.returncode, json.loads(done.stdout)["verdict"]) == (0, "completed")
    assert "the run is finished; nothing to do" in done.stderr


@pytest.mark.parametrize(
    ("variables", "words", "wanted"),
    [
        ({"PLANRUN_JOBS": "3"}, [], {"jobs": 3}),
        ({"PLANRUN_JOBS": "3"}, ["--jobs", "5"], {"jobs": 5}),
        ({"PLANRUN_ONLY": "a,b"}, [], {"only": ("a", "b")}),
        ({"PLANRUN_ONLY": "a,b"}, ["--only=c", "--only", "d"], {"only": ("c", "d")}),
        ({"PLANRUN_STRICT": "1", "PLANRUN_QUIET": "no"}, [], {"strict": True}),
        ({"PLANRUN_NO_CACHE": "true"}, [], {"cache": False}),
        ({"PLANRUN_FROM": "", "PLANRUN_LOGS": "none"}, ["-q"], {"output": "quiet"}),
        ({"PLANRUN_STRICT": "On", "PLANRUN_QUIET": "off", "PLANRUN_JSON": ""}, [], {"strict": True}),
        ({"PLANRUN_PARAM": "t=hello, world"}, [], {"params": ("t=hello, world",)}),
        ({"PLANRUN_PARAM": 't=a\nl=["x","y"]\n'}, [], {"params": ("t=a", 'l=["x","y"]')}),
        ({"PLANRUN_PARAM": "  t= a\u2028u=b \r\nv=\x85 "}, [], {"params": ("t= a\u2028u=b ", "v=\x85 ")}),
        ({}, ["-qj2"], {"output": "quiet", "jobs": 2}),
        ({}, ["-qj", "2"], {"output": "quiet", "jobs": 2}),
        ({}, ["-qj=2"], {"output": "quiet", "jobs": 2}),
        ({}, ["-qpx=1"], {"output": "quiet", "params": ("x=1",)}),
        ({"PLANRUN_OUTPUT": "failed"}, [], {"output": "failed"}),
        ({"PLANRUN_OUTPUT": "failed"}, ["-q"], {"output": "quiet"}),
        ({"PLANRUN_QUIET": "1"}, ["--output", "stream"], {"output": "stream"}),
        ({"PLANRUN_LOGS": "all"}, [], {"output": "group"}),
        ({}, ["--logs", "failed"], {"output": "failed"}),
        ({}, ["-q", "--logs=auto"], {"output": "auto"}),
        ({}, ["-p", "x=a=b", "--param", "y="], {"params": ("x=a=b", "y=")}),
    ],
)
def test_options_come_from_the_line_first_and_from_variables_second(
    variables: dict[str, str], words: list[str], wanted: dict[str, object]
) -> None:
    """An option on the command line wins over its variable; lists in a variable are split at commas, params at
    line ends.
    """
    assert parse([*words, "plan.yml"], EXECUTE, "PLAN", variables) == ("plan.yml", wanted)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a.yml", "--jobs"], "--jobs needs a value: --jobs N"),
        (["a.yml", "--strict=yes"], "--strict takes no value"),
        (["a.yml", "--jobs=2.5"], '--jobs takes a number from 1 up, not "2.5"'),
        (["a.yml", "--logs", "some"], '--logs takes auto, all, failed, none, not "some"'),
        (["a.yml", "b.yml"], "needs one PLAN; got 2: a.yml b.yml"),
        (["--", "--jobs", "a.yml"], "needs one PLAN; got 2: --jobs a.yml"),
        (["a.yml", "-q=1"], "-q takes no value"),
        (["a.yml", "-q-"], "-q takes no value"),
        (["a.yml", "-qx"], "no such option: -x"),
        (["a.yml", "-qj"], "-j needs a value: -j N"),
        ([], "needs one PLAN"),
    ],
)
def test_what_the_parser_refuses(words: list[str], message: str) -> None:
    """Each mistake on the line is reported in one sentence."""
    with pytest.raises(InvalidInput) as refused:
        parse(words, EXECUTE, "PLAN", {})
    assert str(refused.value) == message


def test_a_bad_variable_is_named(planrun: Command) -> None:
    """A variable with a value that its option does not take is exit 2 and named."""
    done = planrun("execute", "plan.yml", env={"PLANRUN_JOBS": "many"})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == 'planrun: error: PLANRUN_JOBS takes a number from 1 up, not "many"\n'


@pytest.mark.parametrize("value", ["banana", "y", "enabled", "2", "tru"])
def test_a_flag_that_is_neither_on_nor_off_is_refused(planrun: Command, value: str) -> None:
    """A variable that asks for a flag in a word that planrun does not know is exit 2, never silently off."""
    (planrun.folder / "plan.yml").write_text(PLAN)
    done = planrun("execute", "plan.yml", env={"PLANRUN_STRICT": value})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f'planrun: error: PLANRUN_STRICT takes 1, true, yes or on, or 0, false, no or off, not "{value}"\n'
    )
    assert not (planrun.folder / ".planrun").exists()


@pytest.mark.parametrize("name", ["GITHUB_ACTIONS", "GITLAB_CI", "TF_BUILD", "BUILDKITE"])
def test_progress_is_on_stderr_but_where_ci_folds_stdout(planrun: Command, name: str) -> None:
    """Progress goes to stderr; to stdout under the systems that look for sections there, unless --json holds it."""
    (planrun.folder / "plan.yml").write_text("version: 1\nsteps: [{id: a, run: echo hi}]\n")
    plain = planrun("execute", "plan.yml", env={"CI": "false"})
    assert (plain.stdout, "completed" in plain.stderr) == ("hi\n", True)
    folded = planrun("execute", "plan.yml", env={"CI": "true", name: "true"})
    assert ("completed" in folded.stdout, folded.stderr) == (True, "")
    both = planrun("execute", "plan.yml", "--json", env={"CI": "true", name: "true"})
    assert json.loads(both.stdout)["verdict"] == "completed"
    assert "completed" in both.stderr


def test_a_run_inside_of_a_step_does_not_take_the_file_for_outputs_for_an_option(tmp_path: Path) -> None:
    """PLANRUN_OUTPUT is that file in a step, and the variable of --output elsewhere."""
    (tmp_path / "inner.yml").write_text("version: 1\nsteps: [{id: a, run: touch ran}]\n")
    inner = f"mkdir inside; cd inside; {sys.executable} -m planrun execute ../inner.yml"
    (tmp_path / "plan.yml").write_text(f"version: 1\nsteps: [{{id: outer, run: '{inner}'}}]\n")
    words = [sys.executable, "-m", "planrun", "execute", "plan.yml"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0
    assert (tmp_path / "inside" / "ran").exists()
