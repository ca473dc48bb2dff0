"""Wrong command lines, broken terminals and odd names: an exit code and a line for people, never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planrun.cli.group import ELSEWHERE
from planrun.cli.verbs import names
from planrun.cliutil.options import EXECUTE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Said
    from tests.conftest import Command


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["exceute", "plan.yml"], 'no such command: "exceute"; did you mean "execute"?'),
        (["frobnicate"], 'no such command: "frobnicate"'),
        (["--fast"], "no such option"),
        (["--dry-run"], "no such option: --dry-run; did you mean: planrun run --dry-run"),
        (["validate"], "no plan named; looked for"),
        (["show", "plan.yml", "--graf", "dot"], "did you mean"),
        (["show", "plan.yml", "--graph", "png"], "'png' is not one of"),
        (["show", "plan.yml", "--levels", "--order"], "exclude each other"),
        (["show", "a.yml", "b.yml"], "a step needs --patch: planrun show RUN STEP --patch"),
        (["show", "a.yml", "b", "c"], "unexpected extra argument"),
        (["runs", "--limit", "many"], "'many' is not a valid integer"),
        (["completion", "tcsh"], "'tcsh' is not one of"),
        (["execute"], "no plan named; looked for"),
        (["execute", "plan.yml", "--job", "3"], 'no such option: --job; did you mean "--jobs"?'),
        (["execute", "a.yml", "--jobs", "0"], "--jobs takes a number from 1 up"),
        (["resume", "last"], "no runs in this folder"),
        (["status"], "no runs in this folder"),
        (["explain", "last", "x"], "no runs in this folder"),
        (["verify", "\x1b[2J"], "no runs in this folder"),
        (["schema", "plant"], "'plant' is not one of"),
    ],
)
def test_a_wrong_command_line_is_exit_2_and_one_message(
    say: Callable[..., Said], words: list[str], expected: str
) -> None:
    """Usage errors name the mistake and the probable intention; stdout stays empty."""
    said = say(*words)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("planrun: error: ")
    assert expected.lower() in said.err.lower()
    assert "\x1b" not in said.err


@pytest.mark.parametrize("words", [["show"], ["validate"], ["explain", "x"], ["execute"]])
def test_a_missing_plan_is_exit_2_with_its_name(say: Callable[..., Said], words: list[str]) -> None:
    """A missing plan is named with its place by every verb."""
    said = say(words[0], "missing.yml", *words[1:])
    assert said.code == 2
    assert "missing.yml:1:1: error[E001]" in said.out + said.err


@pytest.mark.parametrize(
    "name", [b"caf\xe9.yml", "snow\u2603.yml".encode(), b"line\nbreak.yml", b"\x1b[31mred.yml"]
)
@pytest.mark.parametrize("locale", ["C.UTF-8", "POSIX"])
def test_odd_file_names_are_shown_and_harmless(tmp_path: Path, name: bytes, locale: str) -> None:
    """A plan whose name is no text, or would steer a terminal, is validated like any other."""
    with open(os.path.join(os.fsencode(tmp_path), name), "wb") as file:
        file.write(b"version: 1\nsteps: [{run: 'true'}]\n")
    env = {**os.environ, "LC_ALL": locale, "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    words = [os.fsencode(sys.executable), b"-m", b"planrun", b"validate", name]
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.endswith(b": ok, 1 step\n")
    assert b"\x1b" not in done.stdout


@pytest.mark.parametrize(
    "words", ["show --json", "validate --json", "explain 1 --json", "validate --format sarif"]
)
def test_json_never_holds_half_a_character(tmp_path: Path, words: str) -> None:
    """A file name that is not UTF-8 is in JSON with its bytes escaped, so that strict readers accept it."""
    name = b"caf\xe9.yml"
    for text in (b"version: 1\nsteps: [{run: 'true'}]\n", b"version: 2\nsteps: [{run: 'true'}]\n"):
        with open(os.path.join(os.fsencode(tmp_path), name), "wb") as file:
            file.write(text)
        verb, *more = words.split()
        line = [os.fsencode(sys.executable), b"-m", b"planrun", verb.encode(), name, *map(str.encode, more)]
        done = subprocess.run(line, cwd=tmp_path, capture_output=True, timeout=300, check=False)
        assert b"\\ud" not in done.stdout
        assert done.stdout == b"" or json.loads(done.stdout)
        if text.startswith(b"version: 1") and "sarif" not in words and verb != "validate":
            assert b"caf\\\\xe9.yml" in done.stdout


@pytest.mark.parametrize("words", ["--version", "schema", "show plan.yml", "validate plan.yml"])
def test_a_closed_pipe_is_no_error(tmp_path: Path, words: str) -> None:
    """A pipe that is closed early, or a stdout that was never open, leaves no traceback."""
    (tmp_path / "plan.yml").write_text("version: 1\nsteps: [{run: 'true'}]\n")
    for ending in ("| head -c 0", ">&-"):
        line = f"{sys.executable} -m planrun {words} {ending}"
        done = subprocess.run(
            ["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
        )
        assert "Traceback" not in done.stderr
        assert "internal error" not in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this machine has no /dev/full")
@pytest.mark.parametrize(
    "words", ["schema", "show plan.yml --json", "validate plan.yml --format sarif", "completion zsh"]
)
def test_a_result_that_cannot_be_written_is_exit_74(planrun: Command, words: str) -> None:
    """A full disk behind stdout is said, not swallowed."""
    (planrun.folder / "plan.yml").write_text("version: 1\nsteps: [{run: 'true'}]\n")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "planrun", *words.split()],
            cwd=planrun.folder, stdout=full, stderr=subprocess.PIPE, text=True, timeout=300, check=False,
        )  # fmt: skip
    assert done.returncode == 74
    assert done.stderr == "planrun: error: cannot write to stdout: No space left on device\n"


def test_a_verb_loads_only_what_it_needs(planrun: Command) -> None:
    """Looking at a plan or at runs imports neither the engine's children nor the libraries of other verbs."""
    (planrun.folder / "plan.yml").write_text("version: 1\nsteps: [{run: 'true'}]\n")
    script = "import sys; from planrun.cli import main; main(sys.argv[1:]); sys.stderr.write(' '.join(sys.modules))"
    for words in (["show", "plan.yml"], ["runs"], ["completion", "bash"]):
        done = subprocess.run(
            [sys.executable, "-c", script, *words],
            cwd=planrun.folder, capture_output=True, text=True, timeout=300, check=True,
        )  # fmt: skip
        assert not {"asyncio", "pydantic", "rich", "jsonschema", "anthropic", "junit_xml"} & set(
            done.stderr.split()
        )


WORDS = st.one_of(
    st.sampled_from(
        ["show", "validate", "explain", "status", "runs", "verify", "report", "schema", "completion", "resume"]
    ),
    st.sampled_from(["plan.yml", "last", "a", "bash", "plan", ".", "/dev/null", "", "--", "-", "--json", "--help"]),
    st.sampled_from(["--graph", "text", "--levels", "--order", "--format", "junit", "--limit", "0", "--head", "-o"]),
    st.text(st.characters(exclude_characters="\0", exclude_categories=[]), max_size=6),
)  # fmt: skip


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(words=st.lists(WORDS, min_size=1, max_size=5))
def test_no_command_line_is_an_internal_error(
    say: Callable[..., Said], tmp_path: Path, words: list[str]
) -> None:
    """Every command line is executed, refused or cannot be written; none is an internal error."""
    (tmp_path / "plan.yml").write_text("version: 1\nsteps: [{id: a, run: 'true'}]\n")
    if "-o" in words:  # would write files of any name
        words = [word for word in words if word != "-o"]
    said = say(*words)
    assert said.code in {0, 1, 2, 74}, said
    assert "Traceback" not in said.err
    assert "\x1b" not in said.err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["execute", "plann.yml"], 'no such file; did you mean "plan.yml"?'),
        (["run", "plans/relaese.yml"], 'no such file; did you mean "plans/release.yml"?'),
        (["show", "zzz.yml"], "no such file; there are: plan.yml, plans/release.yml"),
        (["validate", "nowhere/zzz.yml"], "no such file; there are: plan.yml, plans/release.yml"),
        (["plan.yml"], 'no such command: "plan.yml"; did you mean: planrun run plan.yml'),
        (
            ["plans/none.yml"],
            'no such command: "plans/none.yml"; no such file either; there are: plans/release.yml',
        ),
        (["plann.yml"], 'no such command: "plann.yml"; no such file either; did you mean "plan.yml"?'),
        (["apply"], 'no such command: "apply"; did you mean: planrun run\n'),
        (["plan"], 'no such command: "plan"; did you mean: planrun run --dry-run\n'),
        (["version"], 'no such command: "version"; did you mean: planrun --version\n'),
        (["plans"], '"plans" is a group of the help, no command; to list its verbs: planrun help plans\n'),
        (["machine", "doctor"], "to list its verbs: planrun help machine\n"),
        (["completion"], "Choose from: bash, zsh, fish\n  see: planrun completion --help"),
        (["run", "-C", "sub"], "no such option: -C; it stands before the verb: planrun -C DIR VERB\n"),
        (["logs", "-C", "sub"], "no such option: -C; it stands before the verb: planrun -C DIR logs\n"),
        (["show", "--directory", "sub"], "--directory; it stands before the verb: planrun -C DIR show\n"),
        (["build"], 'no such command: "build"; did you mean: planrun run build'),
        (["excute", "plan.yml"], 'no such command: "excute"; did you mean "execute"?'),
        (["run", "plan.yml", "--onyl", "x"], '--onyl; did you mean "--only"?\n  see: planrun run --help'),
        (["run", "--jobs"], "--jobs needs a value: --jobs N\n  see: planrun run --help"),
        (
            ["run", "plan.yml", "--parallel", "2"],
            '--parallel; did you mean "--jobs"?\n  see: planrun run --help',
        ),
        (["run", "target=prod"], "a parameter is given by -p: planrun run -p target=prod"),
        (["resume"], "no runs in this folder"),
        (
            ["resume", "a", "b"],
            "takes one RUN id, `last` without one; got 2: a b\n  see: planrun resume --help",
        ),
        (["prune"], "missing option: --keep N\n  see: planrun prune --help"),
        (["run", "-", "--watch"], "--watch needs the file of a plan, not standard input"),
        (["lock", "-"], "a lock file stands beside its plan: name the file of the plan"),
        (["queue", "add", "-"], "a queue runs a plan later: name the file of the plan"),
        (["-C"], "-C needs a value: -C DIR"),
        (["-C", "nowhere", "run"], "-C nowhere: no such file or directory"),
        (["-C", "plan.yml", "run"], "-C plan.yml: not a directory"),
    ],
)
def test_a_mistake_is_answered_with_what_was_meant(
    say: Callable[..., Said], tmp_path: Path, words: list[str], hint: str
) -> None:
    """Near names of files, verbs, steps and options are offered, and the help of the verb."""
    (tmp_path / "plans").mkdir()
    for name in ("plan.yml", "plans/release.yml"):
        (tmp_path / name).write_text("version: 1\nsteps: [{id: build, run: 'true'}]\n")
    said = say(*words)
    assert said.code == 2
    assert hint in said.out + said.err


@pytest.mark.parametrize("option", [["-C", "sub"], ["-Csub"], ["--directory", "sub"], ["--directory=sub"]])
def test_another_folder(say: Callable[..., Said], tmp_path: Path, option: list[str]) -> None:
    """With -C before the verb everything happens in that folder; several count from left to right."""
    (tmp_path / "sub" / "deep").mkdir(parents=True)
    for place in ("sub", "sub/deep"):
        (tmp_path / place / "plan.yml").write_text(
            f"version: 1\nname: n{len(place)}\nsteps: [{{id: a, run: ls}}]\n"
        )
    assert say(*option, "list").out.startswith("plan.yml  n3\n")
    os.chdir(tmp_path)
    assert say(*option, "-C", "deep").out.startswith("plan.yml  n8\n")
    os.chdir(tmp_path)
    assert say(*option, "run").code == 0
    assert (tmp_path / "sub" / ".planrun").is_dir()
    os.chdir(tmp_path)
    assert say(*option, "--version").out.startswith("planrun ")


@pytest.mark.parametrize(("word", "command"), ELSEWHERE.items())
def test_words_of_other_tools_lead_to_commands_that_exist(word: str, command: str) -> None:
    """What is offered for a word of another tool is a verb or an option here, and the word is none."""
    assert word not in names()
    verb, *options = command.split()
    assert verb in names() or verb == "--version"
    assert not options or options[0] in {flag for option in EXECUTE for flag in option.flags}


def test_a_verb_with_verbs_of_its_own_prints_them_without_an_error_before_them(
    say: Callable[..., Said],
) -> None:
    """`planrun queue` alone is the help of it, on stderr, with exit code 2."""
    said = say("queue")
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("Usage: planrun queue [OPTIONS] COMMAND")


def test_a_plan_comes_from_standard_input_and_goes_on_without_it(planrun: Command) -> None:
    """`-` is a plan for every verb that reads one; its run keeps a copy."""
    plan = "version: 1\nsteps:\n  - {id: a, run: test -e fixed}\n  - {id: b, depends_on: [a], run: cat; touch ran-b}\n"
    for words, code in ((("validate", "-"), 0), (("show", "-"), 0), (("lint", "-"), 0), (("run", "-"), 1)):
        said = planrun(*words, given=plan)
        assert (said.returncode, "stdin" in said.stdout + said.stderr) == (code, True), said.stderr
    (planrun.folder / "fixed").touch()
    assert planrun("resume", "last").returncode == 0
    assert (planrun.folder / "ran-b").exists()
    (planrun.folder / "ran-b").unlink()
    assert planrun("retry", "last", "b").returncode == 0
    assert (planrun.folder / "ran-b").exists()
    assert planrun("run", "-", "a", given=plan).returncode == 0
    wrong = planrun("run", "-", given=plan.replace("run:", "rum:", 1))
    assert (wrong.returncode, "stdin:3:13: error[E104]" in wrong.stderr) == (2, True)
    for text, why in (("", "no plan in this file"), (" " * (9 << 20), "the plan is larger than 8 MiB")):
        said = planrun("run", "-", given=text)
        assert (said.returncode, why in said.stderr) == (2, True), said.stderr
