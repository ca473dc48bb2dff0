"""Makefiles and justfiles that become plans by the command line, and run as make and just run them.

What is expected of justfiles is what just 1.42 wrote.
"""

from __future__ import annotations

import shutil
import subprocess
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from planrun.convert.convert import Order, convert

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command

MAKEFILE = """\
    SHELL := /bin/bash
    NAME ?= app
    VERSION := $(shell echo 1.2)
    SRC = a.txt b.txt
    OUT = $(SRC:.txt=.up)
    export FLAG = on
    .PHONY: all clean test fail lint
    all: lint $(OUT) test
    \t@echo "all $(NAME) $(VERSION) '$(VERSION)' $$FLAG $(words $(SRC))" >> said
    \t-false
    \tcd sub 2>/dev/null || true; echo done in $$(basename $$PWD) >> said
    lint: ; echo lint >> said
    %.up: %.txt
    \ttr a-z A-Z < $< > $@
    \techo made $@ from $* >> said
    test: $(OUT)
    \tx=1; \\
    \techo test $$x $^ >> said
    \techo "x is '$$x'" >> said
    fail: lint
    \techo one >> said
    \texit 3
    \techo never >> said
    ifeq ($(shell uname -s),Darwin)
    test: missing
    endif
    """


def written(folder: Path) -> list[str]:
    """Return the lines that commands wrote, and forget them."""
    path = folder / "said"
    found = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return found


def made(tmp_path: Path) -> None:
    """Write the Makefile and what it reads."""
    (tmp_path / "Makefile").write_text(dedent(MAKEFILE).replace("\\t", "\t"))
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text(name)


ALL = [
    "lint",
    "made a.up from a",
    "made b.up from b",
    "test 1 a.up b.up",
    "x is ''",
    "all app 1.2 '1.2' on 2",
]


def test_a_makefile_runs_as_make_runs_it(planrun: Command, tmp_path: Path) -> None:
    """Order, a shell for each line, prefixes, automatic and exported variables, and files that are up to date."""
    made(tmp_path)
    assert planrun("convert", "Makefile", "-o", "plan.yml").returncode == 0
    assert planrun("execute", "plan.yml").returncode == 0
    assert written(tmp_path) == [*ALL, f"done in {tmp_path.name}"]
    assert planrun("execute", "plan.yml", "--param", "NAME=other").returncode == 0
    assert written(tmp_path) == ["lint", *ALL[3:5], "all other 1.2 '1.2' on 2", f"done in {tmp_path.name}"]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_agrees(tmp_path: Path) -> None:
    """What the plan is held against is what make writes."""
    made(tmp_path)
    subprocess.run(["make", "-s"], cwd=tmp_path, check=True)
    assert written(tmp_path) == [*ALL, f"done in {tmp_path.name}"]
    assert subprocess.run(
        ["make", "-s", "fail"], cwd=tmp_path, stderr=subprocess.DEVNULL, check=False
    ).returncode
    assert written(tmp_path) == ["lint", "one"]


def test_the_first_line_that_fails_ends_a_target(planrun: Command, tmp_path: Path) -> None:
    """No later line runs."""
    made(tmp_path)
    planrun("convert", "Makefile", "--job", "fail", "-o", "plan.yml")
    assert planrun("execute", "plan.yml").returncode == 1
    assert written(tmp_path) == ["lint", "one"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("all: main.o\n\tcc $^\n", "make has a rule of its own for main.o"),
        ("all:\n\techo $(wildcard *.c)\n", "`$(wildcard *.c)` is known to make alone"),
        ("all::\n\ttrue\n", "it has a double colon"),
        ("include gone.mk\nall:\n\ttrue\n", "the included file gone.mk is not there"),
        (
            "ifeq ($(shell ls),x)\nA = 1\nendif\nall:\n\techo $(A)\n",
            "`A`: the condition in line 1 decides it",
        ),
        ("all: A = 1\nall: b\nb:\n\techo $(A)\n", "it sets variables for the targets that it needs"),
    ],
)
def test_what_only_make_knows_is_run_by_make(tmp_path: Path, text: str, why: str) -> None:
    """The step calls make, and a finding says why."""
    path = tmp_path / "Makefile"
    path.write_text(text)
    found = convert(Order(file=str(path)))
    assert "run: |\n      make all\n" in found.text
    assert [each.message for each in found.findings if each.code == "make" and why in each.message]


def test_reading_a_makefile_runs_nothing(tmp_path: Path) -> None:
    """Neither `$(shell …)` nor `!=` runs while a file is converted."""
    path = tmp_path / "Makefile"
    path.write_text(f"A := $(shell touch {tmp_path}/one)\nB != touch {tmp_path}/two\nall:\n\techo $(A)$(B)\n")
    assert convert(Order(file=str(path))).text
    assert sorted(each.name for each in tmp_path.iterdir()) == ["Makefile"]


JUSTFILE = """\
    set dotenv-load
    name := "app"
    version := `echo 1.2`
    export FLAG := "on"
    full := name + "-" + version
    mode := if os() == "linux" { "L" } else { "N" }
    home := env_var_or_default("NOPE", "nohome")

    # builds all
    build target="x" *rest: (prep "a b") lint && after
        @echo "build {{target}} {{full}} '{{version}}' $FLAG {{mode}} {{home}} {{rest}} {{uppercase(name)}}" >> said
        -false
        cd /; x=1; echo $x >> {{justfile_directory()}}/said
        echo "x=${x:-unset}" >> said; \\
          echo more >> said
    prep what:
        echo "prep {{what}} $E" >> said
    lint: prep2
        echo lint >> said
    prep2:
        echo prep2 >> said
    after: prep2
        echo after >> said
    sh: py
        #!/usr/bin/env bash
        a=({{name}} 2)
        echo "${a[1]} '{{version}}'" >> said
    py:
        #!/usr/bin/env python3
        open("said", "a").write("py {{name}}\\n")
    fail: lint
        echo one >> said
        exit 3
        echo never >> said
    """
BUILD = [
    "prep a b env",
    "prep2",
    "lint",
    "build x app-1.2 '1.2' on L nohome  APP",
    "1",
    "x=unset",
    "more",
    "prep2",
]


@pytest.mark.parametrize(
    ("recipe", "code", "lines"),
    [
        ("build", 0, [*BUILD, "after"]),
        ("sh", 0, ["py app", "2 '1.2'"]),
        ("fail", 1, ["prep2", "lint", "one"]),
    ],
)
def test_a_justfile_runs_as_just_runs_it(
    planrun: Command, tmp_path: Path, recipe: str, code: int, lines: list[str]
) -> None:
    """Arguments, what runs before and after, a shell for each line, whole scripts, and the first failure."""
    (tmp_path / "justfile").write_text(dedent(JUSTFILE))
    (tmp_path / ".env").write_text("E=env\n")
    assert planrun("convert", "justfile", "--job", recipe, "-o", "plan.yml").returncode == 0
    assert planrun("execute", "plan.yml").returncode == code
    assert written(tmp_path) == lines


def test_recipes_are_chosen_where_the_first_one_lists_them(planrun: Command, tmp_path: Path) -> None:
    """A recipe's argument is a parameter that only its own run needs."""
    text = "default:\n  @just --list\na word:\n  echo a {{word}} >> said\nb: (a 'x')\n  echo b >> said\n"
    (tmp_path / "justfile").write_text(text)
    planrun("convert", "justfile", "-o", "plan.yml")
    assert planrun("execute", "plan.yml", "--param", "task=b").returncode == 0
    assert written(tmp_path) == ["a x", "b"]
    missing = planrun("execute", "plan.yml", "--param", "task=a")
    assert (missing.returncode, "give --param word=…" in missing.stdout + missing.stderr) == (1, True)
    assert planrun("execute", "plan.yml", "--param", "task=a", "--param", "word=y").returncode == 0
    assert written(tmp_path) == ["a y"]


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("mod x\na:\n  true\n", "1:1: refused[mod]: the module x is not there"),
        ("a:\n  echo {{blake3('x')}}\n", "2:1: refused[function]: the function `blake3` (recipe a)"),
        ("set shell := ['pwsh', '-c']\na:\n  true\n", "refused[shell]: the shell `pwsh`"),
        ("a: b\n  true\n", "refused[recipe]: there is no recipe `b`"),
    ],
)
def test_what_has_no_equivalent_in_a_justfile_is_refused(tmp_path: Path, text: str, finding: str) -> None:
    """By its name, with its place."""
    path = tmp_path / "justfile"
    path.write_text(text)
    found = convert(Order(file=str(path)))
    texts = [f"{each.line}:{each.col}: {each.text}" for each in found.findings if each.kind == "refused"]
    assert any(finding in each for each in texts), texts


MANY = """\
L = $(foreach a,1 2 3 4 5 6 7 8 9,$(foreach b,1 2 3 4 5 6 7 8 9,$(M)))
M = $(subst 1,$(K),11111)
K = $(subst 1,$(J),1111111111)
J = $(subst 1,1111111111111111111111111111111111,1111)
all:
\techo $(L)
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Makefile", "f = $(call f)\nall:\n\techo $(call f)\n"),
        ("Makefile", "A = $(A)\nall:\n\techo $(A)\n"),
        ("Makefile", MANY),
        ("justfile", f"a:\n  echo {{{{{'(' * 5000}'x'{')' * 5000}}}}}\n"),
        (".gitlab-ci.yml", f"a: {{script: x, rules: [{{if: '{'(' * 5000}$A{')' * 5000}'}}]}}\n"),
    ],
)  # fmt: skip
def test_files_without_end_are_refused(tmp_path: Path, name: str, text: str) -> None:
    """Neither a traceback nor minutes of work."""
    path = tmp_path / name
    path.write_text(text)
    found = convert(Order(file=str(path)))
    assert found.is_refused
    assert {each.code for each in found.findings if each.kind == "refused"} <= {"shape", "too-large"}
