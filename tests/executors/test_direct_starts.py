"""A script that is one plain command starts without bash, and nobody sees a difference.

Each case runs twice, by bash and without it where planrun leaves it out. Everything that a user can see is compared:
the bytes of the log, exit code, signal, reason and message; and words, environment, folder, descriptors, limits,
signals and session as a program sees them.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from planrun.actions.command import BASH
from planrun.executors.local import ExecutorOptions, LocalExecutor
from planrun.model.record import Record
from tests.executors.conftest import Bench
from tests.executors.test_spawning import script

if TYPE_CHECKING:
    from pathlib import Path

    from planrun.model.job import Outcome

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    pytest.mark.skipif(not shutil.which("bash"), reason="needs bash"),
]
AT_ONCE = 4
LEAST = 300
DUMP = """
import os, resource, signal, sys
own = os.getpid()
print(sys.orig_argv, os.path.realpath("/proc/self/exe"), os.getcwd(), os.umask(0o22))
print(sorted(os.environb.items()))
print(os.getppid(), os.getsid(0) == own, os.getpgid(0) == own, os.nice(0), os.getgroups())
print([(name, os.readlink(f"/proc/self/fd/{name}")) for name in "0"], sorted(os.listdir("/proc/self/fd")))
print([resource.getrlimit(limit) for limit in range(16) if limit != 10])  # 10 has the mark of the attempt
rows = open("/proc/self/status").read().split("\\n")
print([row for row in rows if row.startswith(("SigBlk", "SigIgn", "SigCgt", "Umask", "NoNewPrivs", "TracerPid"))])
"""
WITHOUT_BASH = r"""
true
false
true x y
false 'a b'
echo
echo ''
echo a  b
echo 'a  b'
echo a=b
echo 'größe 日本'
echo "it's"
echo "done!"
env -0
printenv HOME
ls
ls -1 sub
cat data.txt
cat /dev/null
cat missing
ls /nonexistent
sort data.txt
wc -l data.txt
expr 1 + 2
expr 1 - 1
/bin/echo -n x
/usr/bin/printf '%s|' a '' b
/bin/true
/bin/pwd
/usr/bin/env -0
./tool a 'b c'
sub/../tool x
sub/tool
tool z
./link w
./python -I -S dump.py
./python -I -S dump.py a 'b c' '' x=y --z="u v" 'größe 日本'
python -I -S dump.py '$HOME' '*' '~' "#"
./args 'a b' '' "c" d'e'f "'" '"'
args --a=b c:d e@f g%h i^j k+l m,n
sh -c 'exit 7'
sh -c 'kill -9 $$'
sh -c 'kill $$'
sh -c 'kill -INT $$'
sh -c 'kill -SEGV $$'
sh -c 'kill -PIPE $$'
sh -c 'echo out; echo err >&2; exit 3'
sh -c 'echo "$0"' name
sh -c 'ulimit -a | grep -v locks'
bash -c 'echo "$SHLVL $_ $0"'
bash -c 'echo $-; shopt -o; shopt; trap'
head -c 3 /dev/zero
seq 3
tr a b
cat
tee
basename /a/b
dirname /a/b
uname
id -u
nproc
stat -c %n sub
"""
BY_BASH = r"""
./plain.txt
plain.txt
./sub
/
.
..
./missing
missing
'' x
''
sub
./missing/x
./noline a b
noline
./empty
./badline
./dangling
./loop
./data.txt/x
data.txt
true --help
false -x
true --version
echo -n x
echo -e a
echo --
echo 'a\tb'
echo ok -e
a=b
x=1 env
echo $HOME
echo "$HOME"
echo `echo x`
echo a; echo b
echo a && echo b
echo a | cat
echo a > /dev/null
ls <data.txt
echo *
echo [d]*
echo da??.txt
echo ~
echo a=~
echo {a,b}
echo a # b
echo \a
echo !
echo 'a
(echo a)
! true
%1
echo $'a\n'
exit 5
exit
cd /
pwd
printf '%s\n' x
test -d sub
[ a = b ]
kill -l
umask
type ls
command env
ulimit -n
"""
BUILTINS = """
alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown enable eval exec
exit export fc fg getopts hash help history jobs kill let local logout mapfile popd printf pushd pwd read readarray
readonly return shift shopt source suspend test trap type typeset ulimit umask unalias unset wait : . [
"""
KEYWORDS = "if then elif else fi for in while until do done case esac select function time coproc { } ! [[ ]]"
Env = dict[str, str | None]


class Case(Record):
    """A script, variables that are set (None: that are not) and the folder in the workspace where it runs.

    `direct`: whether it must start without bash; None: whatever planrun likes.
    """

    script: str
    env: Env = {}  # noqa: RUF012 - never written
    folder: str = ""
    direct: bool | None = None


def program(script: str, env: Env | None = None, folder: str = "") -> Case:
    """A case that starts without bash."""
    return Case(script=script, env=env or {}, folder=folder, direct=True)


def shell(script: str, env: Env | None = None) -> Case:
    """A case that needs bash."""
    return Case(script=script, env=env or {}, direct=False)


def commands() -> list[Case]:
    """Programs and what stands for them: found, not found, not executable, ended by signals."""
    builtins = BUILTINS.split()
    return [
        *map(program, [line for line in WITHOUT_BASH.split("\n") if line]),
        *map(shell, [line.replace("\\\\", "\\") for line in BY_BASH.split("\n") if line]),
        *map(program, ["env -0\n", "\techo x \t "]),
        *map(shell, ["env -0\n\n", "echo a\necho b", "echo 'a\nb'"]),
        *map(shell, KEYWORDS.split()),
        *[shell(f"{word} -Z") for word in builtins],
        *[shell(f"{word} x") for word in builtins if word not in ("exec", "suspend")],
    ]


def usual(top: Path) -> list[tuple[Env, str]]:
    """Environments that planrun knows how bash passes them on, each with the folder of the step."""
    path, here, linked = os.environ["PATH"], str(top), str(top.parent / "linked")
    named = {
        "SHLVL": ("0", "1", "7", "07", "998", None),
        "PWD": (here, linked, f"{here}/sub", "/", "relative", "", "/nonexistent", f"{here}/.", None),
        "OLDPWD": (here, "/nonexistent", "", "sub", f"{here}/data.txt", "/"),
        "LC_ALL": ("", "C", "POSIX"),
        "VALUE": ("a\nb\t ü 'x' $y", "() { :; }"),
        "PATH": [
            f"{first}:{path}:{here}"
            for first in (here, "/nonexistent", f"{here}/data.txt", f"{here}/", f"{here}//")
        ],
    }
    found: list[tuple[Env, str]] = [({name: value}, "") for name, values in named.items() for value in values]
    found += [
        ({"PWD": pwd}, "sub") for pwd in (here, f"{here}/sub", f"{linked}/sub", f"{here}/sub/../sub", None)
    ]
    alone = ("LANG", "LC_CTYPE", "A.B", "a-b", "1", "SSH_TTY", "MYBASH", "TMOUT", "COLUMNS", "TERM", "_")
    found += [({name: "x"}, "") for name in alone]
    return [*found, ({"PS1": "> ", "PS2": "x"}, ""), ({"SSH_CLIENT": "x", "SHLVL": "1"}, "")]


def odd(top: Path) -> list[Env]:
    """Environments in which bash does something else first, or finds something else."""
    path, here = os.environ["PATH"], str(top)
    named = {
        "BASH_ENV": (f"{here}/startup", "/nonexistent"),
        "BASH_FUNC_other%%": ("() { echo mine; }",),
        "BASH_FUNC_env%%": ("() { echo mine; }",),
        "ENV": (f"{here}/startup",),
        "SHELLOPTS": ("xtrace",),
        "BASHOPTS": ("extglob",),
        "POSIXLY_CORRECT": ("1",),
        "BASH_XTRACEFD": ("1",),
        "BASH_COMPAT": ("44", "x"),
        "IFS": ("x",),
        "EXECIGNORE": ("*/env",),
        "LC_ALL": ("zz_ZZ.UTF-8", "()"),
        "SHLVL": ("999", "1000", "-1", "x", "", " 3", "9999999999999999999999"),
        "PATH": (f":{path}", f"{path}:", f"sub:{path}", f"{here}::{path}", f".:{path}", f"~:{path}"),
    }
    found: list[Env] = [{name: value} for name, values in named.items() for value in values]
    found += [
        {name: "5"} for name in ("BASH", "BASHPID", "LINENO", "OPTIND", "OPTERR", "PPID", "PS4", "HISTCMD")
    ]
    return [*found, *[{"SSH_CLIENT": "x", "SHLVL": level, "HOME": here} for level in ("0", None)]]


def surroundings(top: Path) -> list[Case]:
    """One command in many environments and folders."""
    path, dump = os.environ["PATH"], f"'{sys.executable}' -I -S '{top}/dump.py'"
    return [
        *[program("env -0", env, folder) for env, folder in usual(top)],
        *[program("tool a", env) for env, folder in usual(top) if not folder],
        *[program(dump, env, folder) for env, folder in usual(top)[::9]],
        *[shell("env -0", env) for env in odd(top)],
        *[shell("other", env) for env in odd(top)[:3]],
        Case(script="env", env={"PATH": f"{top}/nothing"}),
        Case(script="env", env={"PATH": None}),
        Case(script="env", folder="nonexistent"),
        program("env -0", {"PATH": f"{top}/first:{top}/forbidden:{path}"}),
        program("tool", {"PATH": f"{top}/forbidden:{top}:{path}"}, "sub"),
        shell("tool", {"PATH": f"{top}/folders:{top}:{path}"}),
    ]


def by_chance(count: int) -> list[Case]:
    """Commands of random words, most of them plain."""
    chance = random.Random(7)
    signs = "abc1- ,./:=@%^+'\"" * 4 + "!~*?[]{}()|;#$`\\\n"
    heads = ["./args", "/usr/bin/printf '%s\\n'", "echo", "true", "false", "args", "nope", "./plain.txt"]
    return [
        Case(script=f"{chance.choice(heads)} {''.join(chance.choices(signs, k=chance.randint(0, 12)))}")
        for _ in range(count)
    ]


def furnish(top: Path) -> None:
    """Make the programs and files that the cases name."""
    for name in ("sub", "first", "forbidden", "folders/tool"):
        (top / name).mkdir(parents=True)
    for folder in (top, top / "sub", top / "first"):
        script(folder / "tool", '#!/bin/sh\necho "$0" "$@" "$_" "$PWD" "$SHLVL"\n')
    script(top / "forbidden" / "tool", "#!/bin/sh\necho never\n", 0o644)
    script(top / "forbidden" / "env", "#!/bin/sh\necho never\n", 0o644)
    script(top / "args", '#!/bin/sh\nprintf "<%s>" "$#" "$@"\n')
    script(top / "plain.txt", "text\n", 0o644)
    script(top / "data.txt", "b\na\n", 0o644)
    script(top / "noline", 'echo "$0" "$@"\n')
    script(top / "empty", "")
    script(top / "badline", "#!/nonexistent/interpreter\n")
    script(top / "dump.py", DUMP, 0o644)
    script(top / "startup", "echo started\n", 0o644)
    script(top / ".bashrc", "echo bashrc\n", 0o644)
    for name, target in (
        ("link", "tool"),
        ("dangling", "missing"),
        ("loop", "loop"),
        ("python", sys.executable),
    ):
        (top / name).symlink_to(target)
    (top.parent / "linked").symlink_to(top)


def play(
    bench: Bench, top: Path, cases: list[Case], *, always_shell: bool
) -> dict[str, tuple[Outcome, bytes]]:
    """Run all cases, some at once; return the outcome and the log of each."""
    base = {
        "PATH": f"{top}:{os.environ['PATH']}",
        "HOME": "/root",
        "SHLVL": "2",
        "PWD": str(top),
        "LANG": "C.UTF-8",
    }
    waiting = {}
    for number, case in enumerate(cases):
        step = f"s{number}"
        env = {name: value for name, value in {**base, **case.env}.items() if value is not None}
        waiting[step] = bench.job(
            step, *BASH, case.script, env=env, cwd=str(top / case.folder), may_omit_shell=True,
            log=str(bench.logs / f"{always_shell}" / f"{step}.log"),
        )  # fmt: skip
    jobs = list(waiting.values())
    found: dict[str, tuple[Outcome, bytes]] = {}
    options = ExecutorOptions(always_shell=always_shell)
    with LocalExecutor(logs=str(bench.logs / f"{always_shell}"), options=options) as executor:
        while len(found) < len(waiting):
            while jobs and len(executor.running) < AT_ONCE:
                executor.start(jobs.pop(0))
            for job, outcome in executor.wait(10):
                log = bench.logs / f"{always_shell}" / f"{job.step}.log"
                found[job.step] = outcome, log.read_bytes() if log.exists() else b""
    return found


def seen(case: Case, outcome: Outcome, log: bytes) -> tuple[object, ...]:
    """What a user can see of an attempt; the order of an environment means nothing."""
    shown = sorted(log.split(b"\0")) if case.script.split()[0].endswith("env") else log
    return (
        shown,
        outcome.status,
        outcome.reason,
        outcome.exit_code,
        outcome.signal,
        outcome.message,
        outcome.notes,
    )


def test_nobody_sees_whether_bash_was_left_out(tmp_path: Path) -> None:
    """Over 300 commands have the same log, exit code and surroundings with bash and without it."""
    top = tmp_path / "workspace"
    top.mkdir()
    furnish(top)
    cases = [*commands(), *surroundings(top), *by_chance(120)]
    assert len(cases) >= LEAST
    bench = Bench(tmp_path)
    by_bash = play(bench, top, cases, always_shell=True)
    without = play(bench, top, cases, always_shell=False)
    different: list[object] = []
    for number, case in enumerate(cases):
        step = f"s{number}"
        assert by_bash[step][0].program == ""
        if case.direct is not None and bool(without[step][0].program) != case.direct:
            different.append((case, without[step]))
        one, other = seen(case, *by_bash[step]), seen(case, *without[step])
        if one != other:
            different.append((case, one, other))
    assert different == []
