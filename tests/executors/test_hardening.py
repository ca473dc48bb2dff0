"""What steps can read of planrun: nothing, and planrun itself keeps its access."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.users import NOBODY, admitted

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such thing")
VALUE = "wonderland-4711"
# Stands for planrun; what it starts stands for a step and says what it got.
PROGRAM = """
import json, os, subprocess, sys
sys.path[:] = {path!r}
from planrun.executors.hardening import harden
said = dict(granted={harden}(["HIDDEN"]), heavy="ctypes" in sys.modules, value=os.environ["HIDDEN"])
def step(program, **fields):
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program, str(os.getpid())], capture_output=True, **fields)
    return done.stdout.decode()
said |= {{name: step(program) for name, program in {steps!r}.items()}}
said["inherited"] = step("import os; print(os.environ['HIDDEN'])")
print(json.dumps(said))
"""
TRY = """
import os, sys
pid = sys.argv[1]
try:
    {}
except OSError as error:
    print(error.strerror)
"""
STEPS = {
    "environ": TRY.format("print(open('/proc/%s/environ' % pid).read())"),
    "memory": TRY.format("open('/proc/%s/mem' % pid, 'rb'); print('opened')"),
    "files": TRY.format("print(os.readlink('/proc/%s/fd/1' % pid))"),
    "limits": TRY.format(
        "import resource; print(resource.getrlimit(resource.RLIMIT_CORE)[0],"
        " resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1])))"
    ),
    "own child": """
import subprocess
with subprocess.Popen(["cat"], env={"A": "b"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as child:
    child.stdin.write(b"x")
    child.stdout.read(1)
    print(open(f"/proc/{child.pid}/environ").read(), end="")
    child.stdin.close()
""",
}


@pytest.fixture(params=["root", "an ordinary user"])
def user(request: pytest.FixtureRequest) -> int:
    """Run the test as root and as an ordinary user; as the latter alone where this one is no other."""
    own = os.getuid()
    if request.param == "root" and own:
        pytest.skip("only root can be root")
    if request.param != "root" and not own and not admitted(NOBODY):
        pytest.skip("an ordinary user may not read this folder or this Python")
    return 0 if request.param == "root" else own or NOBODY


def said(user: int, folder: Path, harden: str = "harden") -> dict[str, Any]:
    """Run the program as this user and return its output."""
    program = PROGRAM.format(path=sys.path, steps=STEPS, harden=harden)
    fields: dict[str, Any] = {"user": user, "group": user, "extra_groups": []} if user != os.getuid() else {}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"HIDDEN": VALUE, "SEEN": "by-all", "HOME": str(folder)},
        cwd="/",
        check=True,
        stdout=subprocess.PIPE,
        **fields,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.shows("R16")
def test_a_step_reads_nothing_of_planrun(user: int, tmp_path: Path) -> None:
    """Neither its memory nor its files can be opened, and its environment lacks the hidden variables."""
    found = said(user, tmp_path)
    assert found["granted"] in ("hidden", "open to root")
    assert found["memory"] == found["files"] == "Permission denied\n"
    assert VALUE not in found["environ"]
    assert (
        found["environ"] == "Permission denied\n" if user else "HIDDEN=\0" in found["environ"] + "HIDDEN=\0"
    )


def test_without_hardening_it_reads_everything(user: int, tmp_path: Path) -> None:
    """The same steps find the value where nothing is hidden: they would have seen it."""
    found = said(user, tmp_path, harden="(lambda names: '')")
    assert VALUE in found["environ"]
    assert found["memory"] == "opened\n"
    assert found["files"] != "Permission denied\n"


def test_planrun_has_all_it_had(user: int, tmp_path: Path) -> None:
    """The variable is still there for planrun and for what it starts with its own environment."""
    found = said(user, tmp_path)
    assert (found["value"], found["inherited"]) == (VALUE, f"{VALUE}\n")
    assert not found["heavy"]


def test_steps_may_do_what_they_could(user: int, tmp_path: Path) -> None:
    """A step reads what it starts itself, and leaves a core file only when it asks for one."""
    found = said(user, tmp_path)
    assert found["own child"] == "A=b\0"
    assert found["limits"].split()[0] == "0"


def test_a_python_without_libffi_is_reported(tmp_path: Path) -> None:
    """When the system calls are out of reach nothing is hidden, and the result reports it."""
    harden = "(sys.modules.__setitem__('_ctypes', None), harden)[1]"
    found = said(os.getuid(), tmp_path, harden=harden)
    assert found["granted"] == "open"
    assert found["value"] == VALUE
