"""Makefiles, justfiles and Taskfiles: what a conversion leaves alone, what it says, and files that are made to harm."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
import yaml

from planrun.convert.convert import Order, convert
from planrun.plan.load import check_bytes
from tests.convert.cases import JUST, LEFT, MAKE, TASK

if TYPE_CHECKING:
    from pathlib import Path

    from planrun.convert.convert import Converted
    from tests.convert.alike import Case
    from tests.convert.conftest import Workspace


def converted(folder: Path, name: str, text: str, *jobs: str) -> Converted:
    """Return the conversion of a text under a name."""
    (folder / name).write_text(text)
    return convert(Order(file=str(folder / name), jobs=jobs))


def test_reading_a_makefile_runs_nothing(tmp_path: Path) -> None:
    """Neither `$(shell …)` nor `!=` runs while a file is converted."""
    text = f"A := $(shell touch {tmp_path}/one)\nB != touch {tmp_path}/two\nall:\n\techo $(A)$(B)\n"
    assert "make all" in converted(tmp_path, "Makefile", text).text
    assert sorted(each.name for each in tmp_path.iterdir()) == ["Makefile"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("all: main.o\n\tcc $^\n", "whether it is up to date depends on the age of files"),
        (".PHONY: all\nall:\n\techo $(wildcard *.c)\n", "`$(wildcard *.c)`: make or the environment alone knows it"),
        (".PHONY: all\nall::\n\ttrue\n", ": has no rule"),
        ("include gone.mk\nall:\n\ttrue\n", "`include gone.mk`"),
        ("ifeq ($(shell ls),x)\nA = 1\nendif\n.PHONY: all\nall:\n\techo $(A)\n", "`$(A)`: a condition decides it"),
        (".PHONY: all b\nall: A = 1\nall: b\nb:\n\techo $(A)\n", "it has several rules"),
    ],
)  # fmt: skip
def test_what_only_make_knows_is_run_by_make(tmp_path: Path, text: str, why: str) -> None:
    """The step calls make, and a finding says why."""
    found = converted(tmp_path, "Makefile", text)
    assert "run: |\n      make" in found.text
    assert [each.message for each in found.findings if each.code == "make" and why in each.message]


@pytest.mark.parametrize(
    ("name", "text", "rest"),
    [
        ("Makefile", ".PHONY: a b c\na:\n\ttrue\nb c:\n\tfalse\n", "b, c"),
        ("justfile", "a:\n  true\nb:\n  false\nc:\n  false\n_d:\n  false\n", "b, c"),
        ("Taskfile.yml", "version: '3'\ntasks: {default: 'true', b: 'false', c: 'false'}\n", "b, c"),
    ],
)
def test_what_is_left_out_is_named(tmp_path: Path, name: str, text: str, rest: str) -> None:
    """The default becomes a plan, and a finding says how the others do."""
    (told,) = [each.message for each in converted(tmp_path, name, text).findings if "--job" in each.message]
    assert told.endswith(f"--job converts {rest}")


CHOICE = {
    "justfile": "default:\n  @just --list\na word:\n  echo a {{word}} >> said\nb: (a 'x')\n  echo b >> said\n",
    "Taskfile.yml": "version: '3'\ntasks: {default: [task --list], a: echo a y >> said, b: {cmds: [{task: x}, echo b >> said]}, "
    "x: {internal: true, cmds: [echo a x >> said]}}\n",
    "Makefile": ".PHONY: help a b x\nhelp: ; @echo a b\na: ; echo a y >> said\nb: x ; echo b >> said\nx: ; echo a x >> said\n",
}


@pytest.mark.parametrize("name", CHOICE)
def test_a_parameter_chooses_where_the_first_one_lists_the_others(there: Workspace, name: str) -> None:
    """A run has the steps of what it names, and of what that one needs, and no other."""
    (there.folder / name).write_text(CHOICE[name])
    assert there.planrun("convert", name, "-o", "plan.yml").code == 0
    assert there.execute().code == 2  # nothing is named
    assert there.execute("--param", "task=b").code == 0
    assert there.said == ["a x", "b"]
    if name == "justfile":
        missing = there.execute("--param", "task=a")
        assert (missing.code, "give --param word=…" in missing.out + missing.err) == (1, True)
    assert (
        there.execute("--param", "task=a", *(["--param", "word=y"] if name == "justfile" else [])).code == 0
    )
    assert there.said == ["a x", "b", "a y"]


def test_names_and_comments_stay(tmp_path: Path) -> None:
    """What a recipe is for becomes its title."""
    assert "title: Builds all" in converted(tmp_path, "justfile", "# Builds all\na:\n  true\n").text
    assert "title: Builds it" in converted(tmp_path, "Makefile", ".PHONY: a\na: ## Builds it\n\ttrue\n").text
    text = "version: '3'\ntasks: {default: {desc: Does it, cmds: ['true']}}\n"
    assert "title: Does it" in converted(tmp_path, "Taskfile.yml", text).text


def test_a_confirmation_is_a_question(tmp_path: Path) -> None:
    """It is asked before the recipe, and before what that one needs."""
    found = converted(tmp_path, "justfile", "[confirm('Sure?')]\na: b\n  true\nb:\n  true\n")
    assert found.text.index("Sure?") < found.text.index("id: b") < found.text.index("id: a\n")


def test_what_cannot_be_included_costs_only_what_needs_it(tmp_path: Path) -> None:
    """A task of a file that is elsewhere is an abstract step; its text and its place are kept."""
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
    (tmp_path / "near.yml").write_text('version: "3"\ntasks:\n  x: {cmds: ["echo {{now}}"]}\n')
    assert converted(tmp_path, "Taskfile.yml", text).text
    for task, why in (
        ("a", "the task gone:x: it is in a file that is not there: ./gone.yml"),
        ("b", "the task far:x: it is in a file that is fetched from elsewhere"),
        ("c", "the function `now` is known to go-task alone"),
        ("d", "the task self:default: it is in a file that includes itself"),
    ):
        found = converted(tmp_path, "Taskfile.yml", text, task)
        assert [each.text for each in found.findings if each.kind == "todo" and why in each.message]
    assert (
        "description: 'x: {cmds: [\"echo {{now}}\"]}'" in converted(tmp_path, "Taskfile.yml", text, "c").text
    )


KEPT = {
    "justfile": "[confirm]\na: b (c 'x')\n  echo {{blake3('x')}}\nb:\n  true\nc w:\n  true\n",
    "Taskfile.yml": "version: '3'\ntasks: {default: {prompt: Sure?, deps: [b, {task: c, vars: {A: b}}], cmds: ['{{now}}']}, "
    "b: 'true', c: 'true'}\n",
}


@pytest.mark.parametrize("name", KEPT)
def test_an_abstract_step_keeps_what_it_needs_and_its_question(tmp_path: Path, name: str) -> None:
    """The recipe or task that it names runs before it, and somebody is asked."""
    steps = yaml.safe_load(converted(tmp_path, name, KEPT[name]).text)["steps"]
    assert [each["id"] for each in steps if "ask" in each]
    assert "b" in [each["id"] for each in steps if "run" in each]
    waited, by_id = [steps[-1]["id"]], {each["id"]: each for each in steps}
    for each in waited:
        waited += by_id[each].get("depends_on", [])
    assert set(waited) == set(by_id)
    assert "run" not in steps[-1]


TWICE = "".join(f"V{at} := V{at - 1} + V{at - 1}\n" for at in range(1, 60))
HARM = {
    "Makefile": [
        "f = $(call f)\nall:\n\techo $(call f)\n",
        "A = $(A)\nall:\n\techo $(A)\n",
        ".PHONY: all\n" + "".join(f"V{at} = $(V{at - 1})$(V{at - 1})\n" for at in range(1, 60)) + "all:\n\techo $(V59)\n",
        "L = $(foreach a,1 2 3 4 5 6 7 8 9,$(foreach b,1 2 3 4 5 6 7 8 9,$(L)))\nall:\n\techo $(L)\n",
        "all: a\n" + "".join(f"{at}: {at + 1}\n\ttrue\n" for at in range(3000)),
        "(" * 50_000, "$(" * 30_000, "a:" * 30_000, "\\\n" * 30_000, "\x00\xff",
    ],
    "justfile": [
        f"a:\n  echo {{{{{'(' * 5000}'x'{')' * 5000}}}}}\n",
        f"V0 := 'x'\n{TWICE}a:\n  echo {{{{V59}}}}\n",
        "a x='y': (b x + x)\n" + "".join(f"r{at} x: (r{at + 1} x + x)\n  true\n" for at in range(60)) + "b x: (r0 x)\n  true\nr60 x:\n  true\n",
        "a: (a 'x')\n  true\n",
        "a:\n" + "  echo {{" * 20_000, "[" * 30_000, "a := " + "if " * 20_000, "'" * 30_001, "a: " + "(b " * 20_000,
    ],
    "Taskfile.yml": [
        "version: '3'\ntasks:\n  default: '" + "{{" * 30_000 + "'\n",
        "version: '3'\ntasks:\n  default: '" + "{{if .A}}" * 8_000 + "'\n",
        "version: '3'\ntasks:\n  default: '" + "{{" + "(" * 30_000 + "'\n",
        "version: '3'\nvars:\n  V0: x\n" + "".join(f"  V{at}: '{{{{.V{at - 1}}}}}{{{{.V{at - 1}}}}}'\n" for at in range(1, 60)) + "tasks: {default: 'echo {{.V59}}'}\n",
        "version: '3'\ntasks:\n  default: 'echo {{repeat 99999999 (repeat 99999999 \"x\")}}'\n",
        "version: '3'\ntasks:\n  default: {cmds: [{for: {matrix: {A: &a [1,2,3,4,5,6,7,8,9], B: *a, C: *a, D: *a, E: *a, F: *a, G: *a, H: *a, I: *a}}, cmd: x}]}\n",
        "version: '3'\ntasks: {default: {deps: [default]}}\n",
        "version: '3'\ntasks:\n" + "".join(f"  t{at}: {{deps: [t{at + 1}, t{at + 1}]}}\n" for at in range(60)) + "  t60: x\n  default: {deps: [t0]}\n",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in HARM.items() for text in texts])
def test_files_that_are_made_to_harm_end_soon(tmp_path: Path, name: str, text: str) -> None:
    """A plan or a refusal; neither a traceback nor minutes of work."""
    began = time.process_time()
    try:
        found = converted(tmp_path, name, text)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is named
        assert type(error).__module__ == "planrun.errors"  # noqa: PT017
    else:
        assert found.text or found.is_refused
    assert time.process_time() - began < 5


@pytest.mark.parametrize("case", [*MAKE.values(), *JUST.values(), *TASK.values(), *LEFT.values()])
def test_every_text_that_is_written_is_a_valid_plan(case: Case, tmp_path: Path) -> None:
    """Also where a step is left to a person; and it is no file of another tool, nor refused as one."""
    from tests.convert.alike import NAMES, folder_of

    folder_of(case, tmp_path / "case")
    path = tmp_path / "case" / "work" / NAMES[case.tool]
    for jobs in ((), (case.goal,) if case.goal else ()):
        found = convert(Order(file=str(path), jobs=jobs))
        problems = check_bytes(found.text.encode(), "plan.yml").problems if found.text else ()
        assert not [each.text for each in problems if each.severity == "error"]
