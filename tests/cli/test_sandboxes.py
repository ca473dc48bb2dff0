"""Steps in sandboxes, from the command line: what they may, what they may not, and what is said and recorded of it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from planrun.executors.sandbox.probe import BACKENDS, why_not

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import Command

MISSING = {backend: why_not(backend) for backend in BACKENDS}
EACH = [
    pytest.param(name, marks=pytest.mark.skipif(bool(why), reason=f"{name}: {why}"))
    for name, why in MISSING.items()
]
needs_any = pytest.mark.skipif(all(MISSING.values()), reason=str(MISSING))
needs_landlock = pytest.mark.skipif(bool(MISSING["landlock"]), reason=MISSING["landlock"])
HEAD = "version: 1\n"
# A python3 that needs no file of the user's home: there may be none but a launcher below it.
PYTHON = f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"


def events(folder: Path, kind: str) -> list[dict[str, Any]]:
    """Return the events of one kind of the last run."""
    ledger = max(folder.glob(".planrun/runs/*/ledger.jsonl"), key=lambda path: path.stat().st_mtime_ns)
    found = [json.loads(line) for line in ledger.read_text("utf-8").splitlines()]
    return [each for each in found if each["type"] == kind]


def ended(folder: Path) -> dict[str, str]:
    """Return the status of each step of the last run."""
    return {each["step"]: each["step_status"] for each in events(folder, "attempt_ended")}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder beside the workspace, with a key and caches."""
    folder = tmp_path / "home"
    (folder / ".cache/pip").mkdir(parents=True)
    (folder / ".ssh").mkdir()
    (folder / ".ssh/key").write_text("the key")
    return folder


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace that is a repository."""
    folder = tmp_path / "work"
    (folder / ".github/workflows").mkdir(parents=True)
    (folder / ".github/workflows/ci.yml").write_text("on: push\n")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


LEVELS = """\
version: 1
defaults: {on_failure: continue}
schedule: sequential
steps:
  - {id: reads, sandbox: read-only, run: "cat .github/workflows/ci.yml; echo x > $TMPDIR/x; echo y > ~/y"}
  - {id: writes, sandbox: read-only, run: "echo x > made"}
  - {id: makes, sandbox: low, run: "echo x > made; mkdir -p a/b; chmod +x made; mv made a/made"}
  - {id: git, sandbox: low, run: "echo x > .git/hooks/post-checkout"}
  - {id: ci, sandbox: low, run: "echo x >> .github/workflows/ci.yml"}
  - {id: plan, sandbox: low, run: "echo '# x' >> plans/attack.yml"}
  - {id: cache, sandbox: low, run: "echo x > ~/.cache/pip/low; exit 7"}
  - {id: caches, sandbox: medium, run: "echo x > ~/.cache/pip/medium"}
  - {id: key, sandbox: medium, run: "cat ~/.ssh/key"}
  - {id: outputs, sandbox: read-only, run: 'echo "v=1" >> "$PLANRUN_OUTPUT"', outputs: {v: integer}}
  - {id: proved, sandbox: read-only, run: "true", verify: "echo x > made2"}
  - {id: free, sandbox: off, run: "echo x > free"}
"""


@pytest.mark.parametrize("backend", EACH)
def test_a_workspace_that_is_the_home_folder_is_shown(planrun: Command, home: Path, backend: str) -> None:
    """As in containers of CI systems; its keys are hidden all the same."""
    (home / "input").write_text("mine\n")
    (home / "plan.yml").write_text(
        """version: 1
steps:
  - {id: reads, sandbox: read-only, run: "cat input && ! touch more"}
  - {id: writes, sandbox: low, run: "cat input > copied && ! cat .ssh/*"}
"""
    )
    done = planrun("execute", "plan.yml", "--sandbox-backend", backend, cwd=home, env={"HOME": str(home)})
    assert done.returncode == 0, done.stdout + done.stderr
    assert (home / "copied").read_text() == "mine\n"
    assert not (home / "more").exists()


@pytest.mark.parametrize("backend", EACH)
def test_levels_are_enforced(planrun: Command, work: Path, home: Path, backend: str) -> None:
    """Each level writes what it may, and nothing else; post-checks are confined like their step."""
    (work / "plans").mkdir()
    (work / "plans/attack.yml").write_text(LEVELS)
    env = {"HOME": str(home)}
    done = planrun("execute", "plans/attack.yml", "--sandbox-backend", backend, cwd=work, env=env)
    assert done.returncode == 0, done.stderr
    refused = {"writes", "git", "ci", "plan", "cache", "key", "proved"}
    assert {step for step, status in ended(work).items() if status == "failed"} == refused
    assert (work / "a/made").read_text() == "x\n"
    assert [path.name for path in (home / ".cache/pip").iterdir()] == ["medium"]
    assert sorted(path.name for path in home.iterdir()) == [".cache", ".ssh"]
    assert not (work / ".git/hooks/post-checkout").exists()
    assert (work / ".github/workflows/ci.yml").read_text() == "on: push\n"
    assert {
        each["step"]: each["sandbox"]["level"]
        for each in events(work, "attempt_started")
        if "sandbox" in each
    }["caches"] == "medium"
    assert "free" not in {each["step"] for each in events(work, "attempt_started") if "sandbox" in each}
    assert "the sandbox (level low, network none) may be why" in done.stderr
    assert "docs/how-to/sandbox.md" in (work / "planrun-out/report.md").read_text()


@needs_any
def test_what_was_not_there_may_not_be_made(planrun: Command, tmp_path: Path, home: Path) -> None:
    """A step can make neither a repository nor files of CI where there are none, not at a second attempt either."""
    work = tmp_path / "bare"
    work.mkdir()
    (work / "plan.yml").write_text(
        HEAD + "schedule: sequential\ndefaults: {sandbox: low, on_failure: continue}\nsteps:\n"
        "  - {id: one, run: 'git init -q . && touch made'}\n"
        "  - {id: two, run: 'mkdir .git/hooks'}\n"
        "  - {id: three, run: 'echo x > .git/config'}\n"
        "  - {id: four, run: 'echo x > .gitlab-ci.yml; mkdir .circleci; touch kept'}\n"
    )
    assert planrun("execute", "plan.yml", cwd=work, env={"HOME": str(home)}).returncode == 0
    assert set(ended(work).values()) == {"failed"}
    left = {path.name for path in work.iterdir()}
    assert left == {"plan.yml", "kept", ".planrun", "planrun-out"}
    [message] = [each["error"]["message"] for each in events(work, "attempt_ended") if each["step"] == "four"]
    assert message.startswith(
        "the step made .circleci and .gitlab-ci.yml in the workspace, which controls later work"
    )
    assert list(work.glob(".planrun/runs/*/logs/four/1.refused/.gitlab-ci.yml"))


@needs_any
@pytest.mark.parametrize("backend", EACH)
def test_control_files_in_subfolders_are_protected(planrun: Command, work: Path, backend: str) -> None:
    """A workflow, a plan and a repository below a folder are neither written nor moved; other files are."""
    for name in ("a/b/.github/workflows/ci.yml", "a/plan.yml", "deps/x/.git/hooks/pre-push", "a/code.py"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("mine")
    script = 'try() { if eval "$1" 2>/dev/null; then echo "done: $1" >> a/code.py; fi; }; '
    script += "try 'echo x > a/b/.github/workflows/ci.yml'; try 'echo x > a/plan.yml'; try 'mv a b'; "
    script += "try 'echo x > deps/x/.git/hooks/pre-push'; try 'rm deps/x/.git/hooks/pre-push'; try 'echo x > a/new.py'"
    plan = f"steps: [{{id: one, sandbox: low, run: {json.dumps(script)}}}]\n"
    (work / "plan.yml").write_text(HEAD + plan)
    done = planrun("execute", str(work / "plan.yml"), "--sandbox-backend", backend, cwd=work)
    assert done.returncode == 0, done.stderr
    assert (work / "a/code.py").read_text() == "minedone: echo x > a/new.py\n"
    for name in ("a/b/.github/workflows/ci.yml", "a/plan.yml", "deps/x/.git/hooks/pre-push"):
        assert (work / name).read_text() == "mine"


def test_git_data_can_be_declared(planrun: Command, work: Path, home: Path) -> None:
    """With `write: [.git]` a step can commit, and still plant no hook and no setting."""
    (work / "plan.yml").write_text(
        HEAD
        + "schedule: sequential\ndefaults: {sandbox: {level: low, write: [.git]}, on_failure: continue}\nsteps:\n"
        "  - {id: commit, run: 'echo x > f; git add f; git -c user.name=a -c user.email=a@b.example commit -qm m f'}\n"
        "  - {id: hook, run: 'echo x > .git/hooks/pre-commit'}\n"
        "  - {id: config, run: 'git config core.fsmonitor ./evil'}\n"
        "  - {id: moved, run: 'mv .git/hooks .git/hooks2'}\n"
    )
    assert planrun("execute", "plan.yml", cwd=work, env={"HOME": str(home)}).returncode == 0
    assert ended(work) == {"commit": "completed", "hook": "failed", "config": "failed", "moved": "failed"}


@needs_any
def test_a_policy_is_a_ceiling(planrun: Command, work: Path, home: Path) -> None:
    """A policy confines steps that have no sandbox, and a plan makes it neither weaker nor goes away from it."""
    (work / "policy.yml").write_text("sandbox: {level: low, write: [out]}\n")
    (work / "out").mkdir()
    (work / "plan.yml").write_text(
        HEAD + "steps:\n"
        "  - {id: bare, run: 'true'}\n"
        "  - {id: off, run: 'true', sandbox: off}\n"
        "  - {id: wide, run: 'true', sandbox: {level: medium, network: any, write: [/srv, out/sub], require: false}}\n"
        "  - {id: tight, run: 'true', sandbox: read-only}\n"
    )
    done = planrun("execute", "plan.yml", "--policy", "policy.yml", cwd=work, env={"HOME": str(home)})
    assert done.returncode == 1  # out/sub does not exist
    found = {each["step"]: each["sandbox"] for each in events(work, "attempt_started")}
    assert {step: each["level"] for step, each in found.items()} == {
        "bare": "low",
        "off": "low",
        "wide": "low",
        "tight": "read-only",
    }
    assert found["wide"]["network"] == "none"
    assert found["wide"]["write"] == [str(work / "out/sub")]
    ledger = json.loads((work / "planrun-out/ledger.json").read_text())
    assert ledger["sandboxes"]["tight"]["level"] == "read-only"
    assert "<summary>Sandboxes</summary>" in (work / "planrun-out/report.md").read_text()
    told = planrun("explain", "last", "tight", cwd=work).stdout
    assert "Sandbox: read-only, no network" in told
    assert (
        "Sandbox: read-only, no network (of the plan)"
        in planrun("explain", "plan.yml", "tight", cwd=work).stdout
    )


def test_a_policy_with_a_sandbox_refuses_containers(planrun: Command, tmp_path: Path) -> None:
    """A container would be a way around it, so the run is refused before anything runs."""
    (tmp_path / "policy.yml").write_text("sandbox: low\n")
    (tmp_path / "plan.yml").write_text(HEAD + "steps:\n  - {id: boxed, run: 'true', container: debian:12}\n")
    done = planrun("execute", "plan.yml", "--policy", "policy.yml")
    assert done.returncode == 2
    assert (
        'plan.yml:3: step "boxed" runs in a container, and the policy (policy.yml:1) requires a sandbox'
        in done.stderr
    )
    assert not (tmp_path / ".planrun/runs").exists()


NO_BACKEND = ["execute", "plan.yml", "--sandbox-backend", "bubblewrap"]
"""A backend that is not there where bwrap is not on PATH."""


def _without_bwrap(folder: Path) -> dict[str, str]:
    """Return a PATH with the programs that a run needs, and no bwrap."""
    programs = folder / "bin"
    programs.mkdir()
    for name in ("bash", "sh", "true", "touch"):
        for place in os.environ["PATH"].split(os.pathsep):
            with suppress(OSError):
                if os.access(f"{place}/{name}", os.X_OK):
                    (programs / name).symlink_to(f"{place}/{name}")
                    break
    return {"PATH": str(programs)}


def test_what_cannot_be_had_fails_closed(planrun: Command, tmp_path: Path) -> None:
    """Exit code 2 before anything runs, with the place and what to change; `require: false` runs, and says so."""
    env = _without_bwrap(tmp_path)
    plan = tmp_path / "plan.yml"
    plan.write_text(
        HEAD + "steps:\n  - {id: first, run: touch ran}\n  - id: second\n    sandbox: low\n    run: 'true'\n"
    )
    done = planrun(*NO_BACKEND, env=env)
    assert done.returncode == 2
    assert (
        'plan.yml:5: step "second" requires a sandbox, and it cannot be had here: bubblewrap:' in done.stderr
    )
    assert "install bubblewrap" in done.stderr
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / ".planrun/runs").exists()
    plan.write_text(plan.read_text().replace("sandbox: low", "sandbox: {level: low, require: false}"))
    done = planrun(*NO_BACKEND, env=env)
    assert done.returncode == 0, done.stderr
    assert "WITHOUT a sandbox" in done.stderr
    [started] = [each for each in events(tmp_path, "attempt_started") if each["step"] == "second"]
    assert started["sandbox"] == {"backend": "none", "level": "low", "network": "none"}
    assert "none, although low is wanted" in (tmp_path / "planrun-out/report.md").read_text()


@pytest.fixture
def web() -> Iterator[ThreadingHTTPServer]:
    """A web server of this machine that answers with the path."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = f"got {self.path}\n".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the method it replaces
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


ASK = """\
import os, socket, sys
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener, getproxies
port, mode = sys.argv[1], sys.argv[2]
if mode == "proxy":
    opener = build_opener(ProxyHandler(getproxies()))
    try:
        print(opener.open(f"http://127.0.0.1:{port}/x", timeout=20).read().decode())
    except HTTPError as error:
        print(error.code, error.read().decode())
elif mode == "direct":
    socket.create_connection(("127.0.0.1", int(port)), 10)
    print("connected")
elif mode in ("smuggled", "tunnel"):
    s = socket.create_connection(("127.0.0.1", 3128), 10)
    text = f"GET http://127.0.0.1:{port}/x HTTP/1.1\\r\\nHost: other.example\\r\\n\\r\\n"
    if mode == "tunnel":
        text = f"CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\n\\r\\n"
    s.sendall(text.encode())
    print(s.recv(1000).decode())
elif mode == "datagram":
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", int(port)))
else:
    here = socket.create_server(("127.0.0.1", 0))
    socket.create_connection(here.getsockname(), 10)
    print("own loopback")
"""


@pytest.mark.parametrize("backend", EACH)
def test_only_allowed_hosts_are_reached(
    planrun: Command, work: Path, home: Path, web: ThreadingHTTPServer, backend: str
) -> None:
    """An allowed host answers through the proxy; others get 403, and without the proxy nothing is reached."""
    port = web.server_address[1]
    with socket.create_server(("127.0.0.1", 0)) as other:
        closed = other.getsockname()[1]
        (work / "ask.py").write_text(ASK)
        steps = [
            ("allowed", port, "proxy"),
            ("refused", closed, "proxy"),
            ("direct", port, "direct"),
            ("tunnel", port, "tunnel"),
            ("other-tunnel", closed, "tunnel"),
            ("smuggled", port, "smuggled"),
            ("datagram", port, "datagram"),
            ("loopback", port, "loopback"),
        ]
        (work / "plan.yml").write_text(
            HEAD
            + f"defaults: {{on_failure: continue, sandbox: {{network: {{allow: ['127.0.0.1:{port}']}}}}}}\nsteps:\n"
            + "".join(
                f"  - {{id: {name}, exec: [python3, ask.py, '{number}', {mode}]}}\n"
                for name, number, mode in steps
            )
        )
        env = {"HOME": str(home), "PATH": PYTHON}
        planrun("execute", "plan.yml", "--sandbox-backend", backend, cwd=work, env=env)
    logs = {
        name: "".join(path.read_text() for path in work.glob(f".planrun/runs/*/logs/{name}/1.log"))
        for name, _, _ in steps
    }
    assert "got /x" in logs["allowed"], logs
    assert "403" in logs["refused"]
    assert f"127.0.0.1:{closed} is not among the allowed hosts" in logs["refused"]
    assert "connected" not in logs["direct"]
    assert "200 Connection established" in logs["tunnel"]
    assert "403" in logs["other-tunnel"]
    assert "the header Host and the address differ" in logs["smuggled"]
    assert "own loopback" in logs["loopback"]


@pytest.mark.parametrize("backend", EACH)
def test_limits_are_enforced(planrun: Command, work: Path, home: Path, backend: str) -> None:
    """A file and a process's memory end at their limits."""
    (work / "plan.yml").write_text(
        HEAD + "defaults: {on_failure: continue}\nsteps:\n"
        "  - {id: large, sandbox: {file_size: 1MiB}, run: 'head -c 2000000 /dev/zero > big'}\n"
        "  - {id: fits, sandbox: {file_size: 1MiB}, run: 'head -c 1000000 /dev/zero > small'}\n"
        '  - {id: hungry, sandbox: {memory: 64MiB}, exec: [python3, -c, "x = bytearray(200_000_000)"]}\n'
        '  - {id: modest, sandbox: {memory: 64MiB}, exec: [python3, -c, "x = bytearray(2_000_000)"]}\n'
    )
    env = {"HOME": str(home), "PATH": PYTHON}
    planrun("execute", "plan.yml", "--sandbox-backend", backend, cwd=work, env=env)
    assert ended(work) == {"large": "failed", "fits": "completed", "hungry": "failed", "modest": "completed"}
    assert (work / "big").stat().st_size <= 1 << 20


@needs_landlock
def test_secrets_stay_out_of_reach(planrun: Command, work: Path, home: Path) -> None:
    """A step that lists a secret has it; a sandboxed one that does not finds it in no process and no record."""
    (work / "plan.yml").write_text(
        HEAD + "secrets: [DEPLOY_TOKEN]\nsteps:\n"
        "  - {id: has, sandbox: read-only, secrets: [DEPLOY_TOKEN], run: 'test \"$DEPLOY_TOKEN\" = sesame-1234567'}\n"
        "  - id: looks\n    sandbox: low\n    run: |\n"
        "      cat /proc/[0-9]*/environ /proc/[0-9]*/mem 2> /dev/null > $TMPDIR/all || true\n"
        "      grep -c sesame-1 $TMPDIR/all > found || true\n"
    )
    env = {"HOME": str(home), "DEPLOY_TOKEN": "sesame-1234567"}
    done = planrun("execute", "plan.yml", cwd=work, env=env)
    assert done.returncode == 0, done.stderr
    assert (work / "found").read_text().strip() == "0"


@needs_any
def test_timeouts_and_leftovers_end(planrun: Command, work: Path, home: Path) -> None:
    """A sandboxed step is stopped in time, and what it leaves in the background ends with it."""
    (work / "plan.yml").write_text(
        HEAD + "defaults: {sandbox: low, on_failure: continue}\nsteps:\n"
        "  - {id: slow, timeout: 500ms, run: 'sleep 600'}\n"
        "  - {id: leaves, run: 'setsid sleep 600 > /dev/null 2>&1 &'}\n"
    )
    planrun("execute", "plan.yml", cwd=work, env={"HOME": str(home)})
    assert ended(work) == {"slow": "failed", "leaves": "completed"}
    [left] = [each["notes"] for each in events(work, "attempt_ended") if each["step"] == "leaves"]
    assert left == ["1 background process ended"]


def test_doctor_tries_it(planrun: Command) -> None:
    """The line about sandboxes names what works here, or why not and what to change."""
    line = next(row for row in planrun("doctor").stdout.splitlines() if "  sandbox " in row)
    for backend, why in MISSING.items():
        assert backend in line
        assert not why or why[:20] in line


@needs_any
def test_a_path_with_dots_is_followed(planrun: Command, work: Path, tmp_path: Path) -> None:
    """A program is found through an entry of PATH that leads over a folder which the sandbox does not show."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "docs").mkdir()
    script = tmp_path / "bin" / "greet"
    script.write_text("#!/bin/sh\necho hello\n")
    script.chmod(0o755)
    (work / "plan.yml").write_text(f"{HEAD}steps:\n  - {{id: a, sandbox: low, run: greet; greet}}\n")
    path = f"{tmp_path}/docs/../bin{os.pathsep}{os.environ['PATH']}"
    done = planrun("execute", "plan.yml", cwd=work, env={"PATH": path})
    assert (done.returncode, done.stdout) == (0, "hello\nhello\n"), done.stderr


@pytest.mark.parametrize("backend", EACH)
def test_what_a_step_says_or_wrote_shows_no_key(
    planrun: Command, work: Path, home: Path, backend: str
) -> None:
    """PATH of the plan, of the step and of the caller, an environment of Python, and links: none leads to the key."""
    (work / "venv/bin").mkdir(parents=True)
    (work / "venv/pyvenv.cfg").write_text(f"home = {home}/.ssh/bin\n")
    (work / "keys").symlink_to(home / ".ssh")
    key = f"{home}/.ssh/key"
    own = f"PATH: '{home}/.ssh:/usr/bin:/bin'"
    (work / "plan.yml").write_text(
        f"{HEAD}env: {{{own}}}\ndefaults: {{sandbox: low, on_failure: continue}}\nsteps:\n"
        f"  - {{id: plan, run: 'cat {key}'}}\n"
        f"  - id: step\n    env: {{PATH: '{work}/venv/bin:/proc/self/root{home}/.ssh:/bin'}}\n    run: cat {key}\n"
        "  - {id: linked, sandbox: {level: low, read: [keys]}, run: 'cat keys/key'}\n"
        "  - {id: written, sandbox: {level: read-only, write: [keys]}, run: 'echo x > keys/new'}\n"
    )
    env = {"HOME": str(home), "PATH": f"{os.environ['PATH']}:{work}/venv/bin"}
    planrun("execute", "plan.yml", "--sandbox-backend", backend, cwd=work, env=env)
    assert set(ended(work).values()) == {"failed"}
    logs = "".join([path.read_text() for path in work.glob(".planrun/runs/*/logs/*/1.log")])
    assert "the key" not in logs
    assert "No such file" in logs
    assert [path.name for path in (home / ".ssh").iterdir()] == ["key"]
    messages = {each["step"]: each["error"]["message"] for each in events(work, "attempt_ended")}
    for step in ("linked", "written"):
        assert f"{work}/keys is a symbolic link; name its target, {home}/.ssh" in messages[step]


@pytest.mark.parametrize("backend", EACH)
def test_control_files_that_were_exchanged_are_protected(
    planrun: Command, work: Path, home: Path, backend: str
) -> None:
    """A step without a sandbox may put up new ones; the next one in a sandbox cannot change those either."""
    (work / "plan.yml").write_text(
        HEAD + "schedule: sequential\ndefaults: {on_failure: continue}\nsteps:\n"
        "  - {id: before, sandbox: low, run: 'touch made'}\n"
        "  - {id: free, run: 'rm -r .github; mkdir .github; echo mine > .github/new.yml'}\n"
        "  - {id: after, sandbox: low, run: 'echo x > .github/new.yml'}\n"
    )
    planrun("execute", "plan.yml", "--sandbox-backend", backend, cwd=work, env={"HOME": str(home)})
    assert ended(work) == {"before": "completed", "free": "completed", "after": "failed"}
    assert (work / ".github/new.yml").read_text() == "mine\n"


@needs_any
def test_links_to_control_files_are_put_back(planrun: Command, work: Path, home: Path) -> None:
    """`CLAUDE.md` is often a link to `AGENTS.md`: that is read-only, and a file in place of the link is taken away."""
    (work / "AGENTS.md").write_text("Be careful.\n")
    (work / "CLAUDE.md").symlink_to("AGENTS.md")
    (work / "plan.yml").write_text(
        HEAD + "schedule: sequential\ndefaults: {sandbox: low, on_failure: continue}\nsteps:\n"
        "  - {id: works, run: 'touch made'}\n"
        "  - {id: through, run: 'echo x >> CLAUDE.md'}\n"
        "  - {id: replaced, run: 'rm CLAUDE.md; echo x > CLAUDE.md'}\n"
        "  - {id: removed, run: 'rm CLAUDE.md'}\n"
        "  - {id: new, run: 'mkdir plans .cargo; echo x > plans/evil.yml; echo x > .cargo/config.toml'}\n"
    )
    planrun("execute", "plan.yml", cwd=work, env={"HOME": str(home)})
    assert {step for step, status in ended(work).items() if status == "completed"} == {"works"}
    assert os.readlink(work / "CLAUDE.md") == "AGENTS.md"
    assert (work / "AGENTS.md").read_text() == "Be careful.\n"
    assert list((work / "plans").iterdir()) == []
    assert list((work / ".cargo").iterdir()) == []


OTHERS = """\
import os, socket, sys
victim = int(sys.argv[1])
tries = {
    "priority": lambda: os.setpriority(os.PRIO_PROCESS, victim, 1),
    "affinity": lambda: os.sched_setaffinity(victim, {0}),
    "scheduler": lambda: os.sched_setscheduler(victim, os.SCHED_BATCH, os.sched_param(0)),
    "socket": lambda: socket.socket(socket.AF_UNIX).connect("app.sock"),
    "own priority": lambda: os.setpriority(os.PRIO_PROCESS, 0, 19),
    "own affinity": lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)),
    "own scheduler": lambda: os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0)),
}
for name, attempt in tries.items():
    try:
        attempt()
    except OSError:
        continue
    print(name)
"""


@pytest.mark.parametrize("backend", EACH)
def test_other_processes_are_left_alone(
    planrun: Command, work: Path, home: Path, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step sets its own scheduling, not that of others, and reaches no socket of theirs in the workspace."""
    (work / "others.py").write_text(OTHERS)
    monkeypatch.chdir(work)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("app.sock")
        server.listen()
        (work / "plan.yml").write_text(
            f"{HEAD}steps:\n  - {{id: a, sandbox: low, exec: [python3, others.py, '{os.getpid()}']}}\n"
        )
        env = {"HOME": str(home), "PATH": PYTHON}
        done = planrun("execute", "plan.yml", "--sandbox-backend", backend, cwd=work, env=env)
    assert done.stdout.split("\n") == ["own priority", "own affinity", "own scheduler", ""], done.stderr
