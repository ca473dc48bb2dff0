"""Drawn Makefiles, justfiles and Taskfiles do as plans what they do by their own tools.

Each file is run twice, by its tool and by the plan that it becomes, in folders that are the same before. Green or red,
the arguments that a program was called with, their order, and the files have to be the same; a plan that is not run,
since a part of it is left to a person, is counted.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

from planrun.convert.recipes import scripts
from tests.convert.alike import Case, difference, program

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TOOLS = ("make", "just", "task")
NAMES = "abcdef"
# Lines of a shell; `@V` is a variable of the file.
LINES = (
    "show one", "show 'b c' \"d\"", "false", "true", "false && show x", "false || show y", "false; show z",
    "cd sub; show $(basename $PWD)", "show $(basename $PWD)", "x=1; show $x", 'show "$x"', "exit 0", "exit 3",
    "echo t >> made.txt", "test -e made.txt && show there", "show `false; echo q`", "show $(false; echo q)",
    "export Y=2", 'show "${Y:-no}"', "if false; then show i; fi", "if test -e in.txt; then show in; fi",
    "show a # comment", "# comment", "false | true", "(false; show s)", "show '*' \\*", ":", "! true", "exec show e",
    "set -e; false; show z", "show ${NOPE:-d}", "show @V", 'show "@V"', "show '@V'", "show x@V.y", "show > made.txt",
    "show a; show b", "show $((1 + 1))", "for i in 1 2; do show $i; done", "show \"a'b\"", "trap 'show t' EXIT",
)  # fmt: skip
VALUES = ("v", "a b", "x/y.z", "", "1,2")


def _lines(chance: random.Random, most: int = 4) -> list[str]:
    return [chance.choice(LINES) for _ in range(chance.randint(1, most))]


def _makefile(chance: random.Random) -> Case:
    """Return a drawn Makefile, in which a target needs later ones."""
    names = NAMES[: chance.randint(1, 6)]
    sign = chance.choice(("=", "=", "=", ":=", ":=", ":=", "?=", "+="))
    head = [f"V {sign} {chance.choice(VALUES)}"] if chance.random() < 0.8 else []
    head += chance.choice(
        ([], [], [], ["SHELL := /bin/bash"], [".ONESHELL:"], ["export V"], ["W = $(V)w", "V = last"])
    )
    if chance.random() < 0.1:
        head += ["SHELL = /bin/bash", ".SHELLFLAGS = -eu -o pipefail -c"]
    phony = [
        name for name in names if chance.random() < 0.95
    ]  # make runs what is not certain, which proves little
    body = []
    for at, name in enumerate(names):
        needs = [each for each in names[at + 1 :] if chance.random() < 0.35]
        needs += chance.choice((*[[]] * 18, ["in.txt"], ["nope.txt"]))
        only = ["|", chance.choice(names[at + 1 :])] if names[at + 1 :] and chance.random() < 0.1 else []
        colon = chance.choice((*[":"] * 19, "::"))
        body.append(f"{name}{colon} {' '.join([*needs, *only])}")
        if chance.random() < 0.9:
            body += [
                f"\t{chance.choice(('', '', '@', '-', '-@'))}{line.replace('$', '$$').replace('@V', '$(V)')}"
                for line in _lines(chance)
            ]
        if chance.random() < 0.04:
            body += [f"{chance.choice(names)}: {chance.choice(('X = 1', 'in.txt', ''))}"]
    text = "\n".join([*head, f".PHONY: {' '.join(phony)}", *body]) + "\n"
    env = {"V": chance.choice(VALUES)} if chance.random() < 0.2 else {}
    return Case("make", text, "a", {"in.txt": "", "sub/x": ""}, env)


def _justfile(chance: random.Random) -> Case:
    """Return a drawn justfile, in which a recipe needs later ones."""
    names = NAMES[: chance.randint(1, 6)]
    values = [*map(repr, VALUES), "`echo cmd`", '"q" + `echo w`', "env('E', 'd')"]
    settings = (
        "", "", "set export", "set positional-arguments", 'set shell := ["bash", "-euc"]',
        "set shell := ['bash', '-c']",
    )  # fmt: skip
    head = [f"V := {chance.choice(values)}", chance.choice(settings)]
    takes = {name: chance.choice(("", "", "x='p'", "*x")) for name in names[1:]}
    body = []
    for at, name in enumerate(names):
        needs = []
        for each in names[at + 1 :]:
            if chance.random() < 0.35:
                words = {
                    "": "",
                    "*x": chance.choice(("'1 2' '*'", "'1'")),
                    "x='p'": chance.choice(("'q r'", "V", "")),
                }[takes[each]]
                needs.append(f"({each} {words})" if words else each)
        after = ["&&", chance.choice(names[at + 1 :])] if names[at + 1 :] and chance.random() < 0.15 else []
        given = takes.get(name, "")
        body.append(f"{name} {given}: {' '.join([*needs, *after])}".replace(" :", ":"))
        lines = [line.replace("@V", "{{V}}") for line in _lines(chance)]
        lines += ["show {{x}}", 'show "$@"'] if given and chance.random() < 0.5 else []
        if chance.random() < 0.1:
            body += [f"  {line}" for line in ("#!/usr/bin/env bash", *lines)]
        else:
            body += [f"  {chance.choice(('', '', '@', '-', '@-'))}{line}" for line in lines]
        body.append("")
    return Case("just", "\n".join([*head, *body]) + "\n", "a", {"in.txt": "", "sub/x": ""})


def _taskfile(chance: random.Random) -> Case:
    """Return a drawn Taskfile, in which a task needs later ones; none needs two at once, whose order is open."""
    names = NAMES[: chance.randint(1, 6)]
    tasks: dict[str, dict[str, object]] = {}
    for at, name in enumerate(names):
        commands: list[object] = []
        for line in _lines(chance):
            text = line.replace("@V", chance.choice(("{{.V}}", '{{.V | default "d"}}', "{{.E}}")))
            text = (
                f"{text}\n{chance.choice(LINES[:24])}" if chance.random() < 0.15 and "#" not in text else text
            )
            commands.append({"cmd": text, "ignore_error": True} if chance.random() < 0.15 else text)
            if names[at + 1 :] and chance.random() < 0.2:
                commands.append(
                    {"task": chance.choice(names[at + 1 :]), "vars": {"V": chance.choice(VALUES)}}
                )
            if chance.random() < 0.08:
                commands.append({"for": ["1", "2 3"], "cmd": "show {{.ITEM}}"})
        tasks[name] = {"cmds": commands}
        more: dict[str, object] = {
            "deps": [chance.choice(names[at + 1 :])] if names[at + 1 :] else [], "run": "once", "ignore_error": True,
            "vars": {"V": chance.choice((*VALUES, {"sh": "echo own"}))}, "env": {"Y": chance.choice(VALUES)},
            "status": ["test -e made.txt"], "preconditions": ["test -e in.txt"], "dir": "sub", "if": "test -e in.txt",
        }  # fmt: skip
        tasks[name] |= {key: more[key] for key in more if chance.random() < 0.12}
        if chance.random() < 0.05:
            commands.insert(0, {"defer": "show deferred"})
    top: dict[str, object] = {
        "version": "3",
        "vars": {"V": chance.choice((*VALUES, {"sh": "echo cmd"}))},
        "tasks": tasks,
    }
    if chance.random() < 0.15:
        top["set"] = ["pipefail"]
    if chance.random() < 0.15:
        top["env"] = {"E": "env", "Y": "top"}
    return Case(
        "task",
        json.dumps(top, indent=1),
        "a",
        {"in.txt": "", "sub/x": ""},
        {"E": "e"} if chance.random() < 0.3 else {},
    )


DRAW: dict[str, Callable[[random.Random], Case]] = {"make": _makefile, "just": _justfile, "task": _taskfile}


def tried(tool: str, seed: int, rounds: int, top: Path) -> tuple[Counter[str], list[str]]:
    """Run drawn files of one tool; returns how often plans did the same, or were left, and all differences."""
    ends: Counter[str] = Counter()
    wrong = []
    for number in range(rounds):
        found = difference(DRAW[tool](random.Random(f"{seed} {tool} {number}")), top / f"{tool}{number}")
        kind = found.partition(":")[0] or "alike"
        ends[kind] += 1
        if kind not in ("alike", "abstract", "refused"):
            wrong.append(f"{tool} {number}: {found}")
    return ends, wrong


def broken() -> mock._patch[object]:
    """Return a patch that plants a fault: the failure of a command in brackets is lost."""
    return mock.patch.object(scripts, "_bracketed", lambda text: f"(\n{text}\n) || true")


def main(words: Sequence[str]) -> int:
    """Run the proof; 1 where a plan did something else, or the planted fault was not found."""
    parser = argparse.ArgumentParser(prog="python -m proofs conversions", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=300, help="files of each tool")
    chosen = parser.parse_args(words)
    failed = False
    with tempfile.TemporaryDirectory(prefix="conversions-") as folder:
        for tool in TOOLS:
            if program(tool) is None:
                print(f"{tool}: skipped, it is not installed")
                continue
            ends, wrong = tried(tool, chosen.seed, chosen.rounds, Path(folder) / "right")
            with broken():
                _, missed = tried(tool, chosen.seed, 30, Path(folder) / "broken")
            print(
                f"{tool}, seed {chosen.seed}: {dict(ends)}; {len(missed)} of 30 files show the planted fault"
            )
            print("\n".join(wrong[:5]))
            failed = failed or bool(wrong) or not missed
    return int(failed)
