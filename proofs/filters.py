"""A read-only program of sed, awk, jq or yq does nothing but print when the real one runs it.

Programs are drawn from pieces that run, read and write, glued in every way. Those that are said to be read-only run for
real, in a folder with a canary of each kind: a file that only they make, a secret in a file and one in the environment.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

from planrun.risk.classifier import classify_argv
from planrun.risk.programs import filters, sedscripts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

COUNT = 20_000
_CANARY = "leaked-4711"
_SLOW = {"yq": 10}
"""Programs of which fewer are drawn: so many times fewer. One yq is a program of Python around jq."""
_GLUE = ("", "", " ", ";", "\n", "\t", "}", "{", "#", "\\", "\\\n", " ; ", ",", "!")
# Pieces of programs by what they are programs of; two blanks stand between them.
_PIECES = {
    "sed": (
        "a text\ne touch made  i\\\nx\nw made  e touch made  w made  W made  R .env  r .env  s/x/y/w made  "
        "s/.*/touch made/e  e  s/x/y/e  :a  :  ba  b  t  T  ta  b a  a  i\\  c\\\n  a text  a\\text  "
        "a\\\\  i x\\  s/[/]/x/  s/[^]/]*/x/  s,a,b,  s/a/b/  s/a\\/b/c/gp  s;x;y;  y/ab/cd/  y/;/x/  "
        "s/[[:x/  s/\\n/  /x/  /[/]/  \\,x,  $  1  1,3  0~2  1,+2  /a/I  p  d  N  D  =  l 5  q  x}  z  F  "
        "v  /  [  ]  s  y  n  \\  M  g"
    ),
    "awk": (
        'BEGIN  {  }  (  )  print  printf  > "made"  >"made"  >> "made"  | "touch made"  1 > 0  '
        'system("touch made")  sys  tem  system  ("touch made")  getline < ".env"  getline  print $0  END  '
        '"touch made" | getline  ENVIRON["CANARY"]  ENVIRON  @  @f()  f="system"  print x  in  /x/  /[/]/  '
        'close  ||  |  |&  "  "made"  1  x=1  $1  printf("%s", 1)  print("x")  if(1)  function f(){  '
        "awk::"
    ),
    "jq": (
        'env  $ENV  $ ENV  $\nENV  .CANARY  .env  . env  $__prog_args  env.CANARY  "\\(env)"  $ENV.CANARY  '
        'import "x" as x  include "x"  input_filename  input  inputs  |  .  ..  [  ]  {  }  (  )  @text  '
        'keys  to_entries  as $x  $x  def f:  f  #  \\  "  if 1 then  else  end  1  reduce  $__loc__'
    ),
    "yq": (  # one has jq's language, the other its own
        'env(CANARY)  strenv(CANARY)  env (CANARY)  strenv( CANARY )  "${CANARY}" | envsubst  envsubst(nu)  '
        'load(".env")  load_str(".env")  load_props(".env")  loadstr(".env")  eval("load_str(\\".env\\")")  '
        'eval(.x)  system("touch made")  env  $ENV  $ENV.CANARY  $ ENV  .env  input_filename  filename  .x  .  ..  '
        '[  ]  {  }  (  )  |  as $x  $x  keys  to_entries  "x"  "\\(env)"  "\\(strenv(CANARY))"  split_doc  #  1  ,'
    ),
}


@dataclass
class Sum:
    """How many programs were drawn and run, and what those did that were to do nothing."""

    drawn: int = 0
    run: int = 0
    wrong: list[str] = field(default_factory=list)


def real() -> dict[str, list[list[str]]]:
    """Return the programs of this machine by the name that they are classified under."""
    named = {"sed": ("sed",), "awk": ("mawk", "gawk", "original-awk"), "jq": ("jq",), "yq": ("yq", "go-yq")}
    found = {
        name: [[where] for each in names if (where := shutil.which(each))] for name, names in named.items()
    }
    if box := shutil.which("busybox"):
        found["sed"].append([box, "sed"])
        found["awk"].append([box, "awk"])
    if found["sed"] and _has_sandbox(found["sed"][0]):
        found["sed"].append([*found["sed"][0], "--sandbox"])
    return found


def _has_sandbox(sed: list[str]) -> bool:
    return (
        subprocess.run([*sed, "--sandbox", "p"], input=b"", capture_output=True, check=False).returncode == 0
    )


def drawn(name: str, chance: random.Random) -> Iterator[tuple[str, ...]]:
    """Yield words of a command without end: the program, its program text in one or two options, and a file."""
    pieces = _PIECES[name].split("  ")
    while True:
        texts = [
            "".join(f"{chance.choice(pieces)}{chance.choice(_GLUE)}" for _ in range(chance.randint(1, 6)))
            for _ in range(1 if name != "sed" or chance.random() < 0.8 else 2)
        ]
        if len(texts) == 1:
            file = "data" if name == "yq" else "input"
            yield (name, *(["-n"] if name in ("jq", "yq") and chance.random() < 0.5 else []), texts[0], file)
        else:
            yield (name, "-e", texts[0], "-e", texts[1], "input")


def tried(count: int, seed: int, programs: dict[str, list[list[str]]], *, until_wrong: bool = False) -> Sum:
    """Draw so many programs of each kind, and run those that are read-only by each real program.

    `until_wrong` ends with the first that did more than print.
    """
    found = Sum()
    with tempfile.TemporaryDirectory(prefix="filters-") as folder:
        room = Path(folder)
        (room / ".env").write_text(f"SECRET={_CANARY}\n")
        (room / "input").write_text("touch made\nx=1 y\n\n[a]\n")
        (room / "data").write_text('x: load_str(".env")\ny: [${CANARY}]\n')
        before = sorted(path.name for path in room.iterdir())
        for name, ways in programs.items():
            source = drawn(name, random.Random(f"{seed} {name}"))
            for _ in range(count // _SLOW.get(name, 1) if ways else 0):
                words = next(source)
                found.drawn += 1
                if classify_argv(words).level != "read-only":
                    continue
                found.run += 1
                found.wrong += [
                    f"{' '.join(way)} {words[1:]}: {deed}"
                    for way in ways
                    if (deed := _deed(way, words, room, before))
                ]
                if until_wrong and found.wrong:
                    return found
    return found


def _deed(way: list[str], words: Sequence[str], room: Path, before: list[str]) -> str:
    """Run a program, and say what it did besides printing; "" for nothing."""
    try:
        ended = subprocess.run(
            [*way, *words[1:]],
            cwd=room,
            env={"PATH": "/usr/bin:/bin", "CANARY": _CANARY},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=0.5 if words[0] not in _SLOW else 5,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        printed = (late.stdout or b"")[:100_000]
    else:
        printed = ended.stdout + ended.stderr
        if b"sandbox mode" in ended.stderr:
            return "has a command that its own sandbox refuses"
    after = sorted(path.name for path in room.iterdir())
    for new in set(after) - set(before):
        (room / new).unlink()
    if after != before:
        return "made a file"
    return "printed a secret" if _CANARY.encode() in printed else ""


def _long_label(self: sedscripts._Script, *, is_named: bool) -> None:  # noqa: ARG001 - called as the other is
    """Read a label to the end of its line, which was the mistake that let commands through."""
    self._line()


FAULTS: dict[str, tuple[str, Callable[[], AbstractContextManager[object]]]] = {
    "labels are lines": ("sed", lambda: mock.patch.object(sedscripts._Script, "_label", _long_label)),
    "a text hides all that follows": (
        "sed",
        lambda: mock.patch.object(
            sedscripts._Script, "_text_lines", lambda self: setattr(self, "at", len(self.text))
        ),
    ),
    "awk only prints": ("awk", lambda: mock.patch.object(filters, "_AWK", ())),
    "yq has no environment": ("yq", lambda: mock.patch.object(filters, "asks_environment", return_value="")),
    "jq has no environment": ("jq", lambda: mock.patch.object(filters, "asks_environment", return_value="")),
}
"""Faults to plant in the classifier, each with the kind of programs by which it shows."""


def is_caught(fault: str, programs: dict[str, list[list[str]]]) -> bool:
    """Whether a planted fault shows."""
    name, planted = FAULTS[fault]
    with planted():
        found = tried(1000 * min(4, _SLOW.get(name, 1)), 1, {name: programs[name]}, until_wrong=True)
    print(f"planted fault: {fault}: {(*found.wrong, 'NOT CAUGHT')[0]}")
    return bool(found.wrong)


def main(words: Sequence[str]) -> int:
    """Run the proof; 1 when a program did more than print, or a planted fault was not caught."""
    parser = argparse.ArgumentParser(prog="python -m proofs filters", description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT, help="programs of each kind")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    chosen = parser.parse_args(words)
    programs = real()
    print(
        f"seed {chosen.seed}",
        *(f"{name}: {ways or 'not on this machine'}" for name, ways in programs.items()),
        sep="\n",
    )
    found = tried(chosen.count, chosen.seed, programs)
    print(f"{found.drawn} drawn, {found.run} run", *found.wrong[:100], sep="\n")
    missed = [fault for fault in FAULTS if not is_caught(fault, programs)]
    return int(bool(found.wrong or missed))
