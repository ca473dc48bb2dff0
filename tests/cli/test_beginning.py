"""`planrun init` and `schema`, and the plan that newcomers run first."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest
import yaml

from planrun.cliutil.schemas import SCHEMAS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Said
    from tests.conftest import Command

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "options", "steps"),
    [
        *[
            (name, (), 3)
            for name in ("plan.yml", "plans/release.yml", "with space #1.yml", "no.yml", "-dash.yml")
        ],
        ("plan.yml", ("--full",), 6),
    ],
)
def test_init_writes_a_plan_that_validates_and_executes(
    planrun: Command, name: str, options: tuple[str, ...], steps: int
) -> None:
    """The example names its schema for both kinds of editor, follows it, is valid, and its run is no failure."""
    assert planrun("init", *options, "--", name).returncode == 0
    plan = planrun.folder / name
    assert options or plan.read_text().count("\n") <= 20
    first, second, *_ = plan.read_text().split("\n")
    assert first == "# yaml-language-server: $schema=plan.schema.json"
    assert second == "# $schema: plan.schema.json"
    schema = json.loads((plan.parent / "plan.schema.json").read_text())
    jsonschema.Draft7Validator(schema).validate(yaml.safe_load(plan.read_text()))
    assert planrun("validate", "--", name).stdout == f"{name}: ok, {steps} steps\n"
    done = planrun("execute", "--quiet", "--", name)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert "\u2713 completed in " in done.stderr
    assert planrun("lint", "--strict", "--", name).returncode == 0


@pytest.mark.parametrize("repository", [False, True])
def test_the_first_plan_of_init_is_green(planrun: Command, *, repository: bool) -> None:
    """In an empty folder and in a new repository every step completes or is skipped, and nothing shows a failure."""
    if repository:
        subprocess.run(["git", "init", "-q", "."], cwd=planrun.folder, check=True)
    assert planrun("init").returncode == 0
    done = planrun("execute", "plan.yml")
    assert done.returncode == 0
    assert "\u2717" not in done.stderr
    assert "\u2713 completed in " in done.stderr


def test_no_value_of_the_example_is_code(planrun: Command) -> None:
    """Whatever the parameter of the longer example is set to, it is printed and not run."""
    assert planrun("init", "--full").returncode == 0
    for value in (
        "$(touch pwned)",
        "`touch pwned`",
        '"; touch pwned; "',
        "'; touch pwned; '",
        "\ntouch pwned\n",
    ):
        done = planrun("execute", "plan.yml", "--param", f"greeting={value}")
        assert done.returncode == 0
        assert " ".join(value.split()) in " ".join(done.stdout.split())
    assert not (planrun.folder / "pwned").exists()


def test_a_new_plan_asks_before_what_is_riskier_than_medium(planrun: Command) -> None:
    """Who begins with `init` has a policy: a step of class high waits, the example's own steps run."""
    assert planrun("init").returncode == 0
    plan = planrun.folder / "plan.yml"
    plan.write_text(
        plan.read_text().replace('run: echo "this is CI"', "run: git push").replace("run.ci", "true")
    )
    done = planrun("execute", "plan.yml")
    assert done.returncode == 5, done.stderr
    assert "limit medium, plan.yml:5" in done.stderr


def test_init_never_overwrites(say: Callable[..., Said], tmp_path: Path) -> None:
    """A file that exists stays as it is, even a dangling link, and so does a schema that is there."""
    (tmp_path / "plan.yml").write_text("mine")
    (tmp_path / "link.yml").symlink_to("elsewhere.yml")
    (tmp_path / "plan.schema.json").write_text("{}")
    for name in ("plan.yml", "link.yml"):
        said = say("init", name)
        assert (said.code, said.out) == (2, "")
        assert said.err == (
            f"planrun: error: {name} exists already; planrun init never overwrites a file\n"
            f"  next: planrun show {name}; planrun run {name}; or planrun init OTHER.yml\n"
        )
    assert say("init", "other.yml").out.startswith("wrote other.yml\nnext: ")
    assert (tmp_path / "plan.yml").read_text() == "mine"
    assert (tmp_path / "plan.schema.json").read_text() == "{}"
    assert not (tmp_path / "elsewhere.yml").exists()


def test_init_reports_why_it_cannot_write(say: Callable[..., Said], tmp_path: Path) -> None:
    """A folder that cannot be made is exit 2 with its reason."""
    (tmp_path / "file").write_text("")
    said = say("init", "file/plan.yml")
    assert said.code == 2
    assert said.err.startswith("planrun: error: cannot write file/plan.yml: ")


@pytest.mark.parametrize("name", SCHEMAS)
def test_schema_prints_the_shipped_schema(say: Callable[..., Said], name: str) -> None:
    """`planrun schema NAME` prints the file in schemas/ byte for byte; it is a sound draft-07 schema."""
    said = say("schema", name)
    assert (said.code, said.err) == (0, "")
    assert said.out == (ROOT / "schemas" / f"{name}.schema.json").read_text()
    jsonschema.Draft7Validator.check_schema(json.loads(said.out))


@pytest.mark.parametrize(
    ("words", "released"), [((), False), (("--param", "release=true", "-p", "count=12"), True)]
)
def test_the_quickstart_runs_anywhere(planrun: Command, words: tuple[str, ...], *, released: bool) -> None:
    """`plans/quickstart.yml` is short, valid, and runs in an empty folder without git; it cleans up after itself."""
    source = ROOT / "plans" / "quickstart.yml"
    assert source.read_text().count("\n") < 70
    shutil.copy(source, planrun.folder / "quickstart.yml")
    assert planrun("validate", "quickstart.yml").returncode == 0
    done = planrun("execute", "quickstart.yml", "--json", *words)
    assert done.returncode == 0, done.stderr
    ledger = json.loads(done.stdout)
    ends = {step["id"]: step["status"] for step in ledger["steps"]}
    assert ends.pop("release") == ("completed" if released else "skipped")
    assert set(ends.values()) == {"completed"}
    assert ledger["verdict"] == "completed"
    assert bool(list(planrun.folder.glob("dist/squares-*.tar"))) is released
    assert not (planrun.folder / "build" / "quickstart").exists()


COMMITTED = "git init -q . && git add . && git commit -q -m one"
AROUND = {
    "no git at all": "",
    "an empty repository": "git init -q .",
    "untracked and changed files": f"{COMMITTED} && echo >> quickstart.yml && touch new",
    "a detached head": f"{COMMITTED} && git checkout -q --detach",
    "a shallow clone": f"{COMMITTED} && git commit -q --allow-empty -m two"
    ' && git clone -q --depth 1 "file://$PWD" two && rm -rf .git && mv two/.git .',
    "a broken repository": "mkdir .git",
}


@pytest.mark.parametrize("around", AROUND)
def test_the_quickstart_is_green_whatever_is_around_it(planrun: Command, tmp_path: Path, around: str) -> None:
    """It completes without a git program, in no repository, and in one in any state."""
    shutil.copy(ROOT / "plans" / "quickstart.yml", planrun.folder / "quickstart.yml")
    programs = tmp_path / "programs"
    programs.mkdir()
    if AROUND[around]:
        who = {
            "GIT_AUTHOR_NAME": "A",
            "GIT_AUTHOR_EMAIL": "a@b",
            "GIT_COMMITTER_NAME": "A",
            "GIT_COMMITTER_EMAIL": "a@b",
        }
        subprocess.run(["sh", "-ec", AROUND[around]], cwd=planrun.folder, env=os.environ | who, check=True)
        path = os.environ["PATH"]
    else:
        for name in ("sh", "bash", "awk", "tar", "cksum", "tr", "mkdir", "rm", "cat"):
            (programs / name).symlink_to(str(shutil.which(name)))
        path = str(programs)
    done = planrun("execute", "quickstart.yml", env={"PATH": path})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\u2717" not in done.stdout + done.stderr
    assert "completed in" in done.stdout + done.stderr
