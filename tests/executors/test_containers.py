"""Steps in containers of a real engine, which these tests start and stop themselves: nothing of them is left."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import LIMIT
from tests.users import NOBODY, admitted

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.xdist_group("containers")
ROOT = Path(__file__).parents[2]
PLANRUN = (sys.executable, "-m", "planrun")
APPLETS = (
    "sh", "sleep", "id", "cat", "test", "ls", "wget", "httpd", "touch", "env", "grep", "tail", "chmod", "setsid",
    "find", "stat", "chown", "ps",
)  # fmt: skip
ENGINE = ("--storage-driver=vfs", "--iptables=false", "--bridge=none")


class Engine:
    """A daemon of our own on a socket of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = f"unix://{folder}/engine.sock"
        self.client = shutil.which("docker") or ""
        words = [
            "--data-root",
            f"{folder}/data",
            "--exec-root",
            f"{folder}/exec",
            "--pidfile",
            f"{folder}/pid",
        ]
        with open(folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                ["dockerd", *ENGINE, *words, "-H", self.socket],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def call(self, *words: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Call the client."""
        env = {**os.environ, "DOCKER_HOST": self.socket}
        return subprocess.run([self.client, *words], env=env, input=data, capture_output=True, check=False)

    def left(self) -> list[str]:
        """The names of all containers that there are."""
        return self.call("ps", "-a", "--format", "{{.Names}}").stdout.decode().split()

    def gone(self) -> bool:
        """Whether no container is left, sooner or later."""
        end = time.monotonic() + LIMIT
        while self.left() and time.monotonic() < end:
            time.sleep(0.05)
        return not self.left()


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A running engine with the image `box:1`."""
    busybox = shutil.which("busybox")
    if os.getuid() or not (shutil.which("dockerd") and shutil.which("docker") and busybox):
        pytest.skip("no engine of containers: needs root, dockerd, docker and a static busybox")
    folder = tmp_path_factory.mktemp("engine")
    found = Engine(folder)
    try:
        end = time.monotonic() + LIMIT
        while found.call("version").returncode and found.process.poll() is None and time.monotonic() < end:
            time.sleep(0.1)
        root = folder / "root"
        (root / "bin").mkdir(parents=True)
        (root / "tmp").mkdir()
        shutil.copy(busybox, root / "bin" / "busybox")
        for name in APPLETS:
            (root / "bin" / name).symlink_to("busybox")
        with tarfile.open(folder / "root.tar", "w") as archive:
            archive.add(root, ".")
        made = found.call("import", "-", "box:1", data=(folder / "root.tar").read_bytes())
        if made.returncode:
            pytest.skip(f"no engine of containers can be started here: {(folder / 'log').read_text()[-300:]}")
        yield found
    finally:
        found.process.terminate()
        try:
            found.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            found.process.kill()


def start(
    engine: Engine, folder: Path, plan: str, user: int | None = None, **env: str
) -> subprocess.Popen[bytes]:
    """Start a run of a plan, as another user than this one where `user` is given."""
    (folder / "plan.yml").write_text(f"version: 1\n{plan}", encoding="utf-8")
    known = {**os.environ, "DOCKER_HOST": engine.socket, "PLANRUN_CONTAINER_ENGINE": engine.client, **env}
    return subprocess.Popen(
        [*PLANRUN, "execute", "plan.yml"],
        cwd=folder,
        env=known,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        user=user,
        group=user,
        extra_groups=None if user is None else [],
    )


def steps_of(folder: Path) -> dict[str, dict[str, object]]:
    """The steps of a run by id, as ledger.json has them."""
    ledger = json.loads((folder / "planrun-out" / "ledger.json").read_text(encoding="utf-8"))
    return {step["id"]: step for step in ledger["steps"]}


@pytest.mark.shows("GP-58")
def test_a_step_in_a_container_has_its_workspace_and_nothing_of_the_caller(
    engine: Engine, tmp_path: Path
) -> None:
    """Files and outputs come back, variables by name, records stay hidden; image and container are reported."""
    plan = """secrets: [TOKEN]
steps:
  - id: inside
    container: {image: "box:1", network: none, env: {INNER: "x y"}}
    env: {OUTER: "1"}
    secrets: [TOKEN]
    run: |
      test "$INNER$OUTER" = "x y1" && test "$TOKEN" = sekret-of-mine && test -z "${CALLERS:-}"
      test ! -e .planrun/runs/*/ledger.jsonl
      echo made > made.txt
      echo "v=5" >> "$PLANRUN_OUTPUT"
    outputs: {v: integer}
    verify: [test -s made.txt, [cat, made.txt]]
  - {id: fails, container: {image: "box:1", network: none}, run: exit 3}
"""
    run = start(engine, tmp_path, plan, TOKEN="sekret-of-mine", CALLERS="1")
    output, _ = run.communicate(timeout=LIMIT)
    steps = steps_of(tmp_path)
    assert steps["inside"]["status"] == "completed", output.decode()
    assert steps["inside"]["outputs"] == {"v": 5}
    assert (tmp_path / "made.txt").stat().st_uid == os.getuid()
    attempts = steps["inside"]["attempts"]
    assert isinstance(attempts, list)
    kinds = [(each["kind"], each["action"]) for each in attempts[0]["resources"]]
    assert kinds == [("image", "used"), ("container", "created"), ("container", "deleted")]
    assert attempts[0]["resources"][0]["id"].startswith("sha256:")
    fails = steps["fails"]["attempts"]
    assert isinstance(fails, list)
    assert fails[0]["exit_code"] == 3
    assert engine.left() == []


@pytest.mark.parametrize("inside", ["", "1234", "0"])
def test_an_ordinary_user_runs_steps_in_containers(engine: Engine, inside: str) -> None:
    """With access to the engine's socket: outputs, own folder and covered records, for any user of the container."""
    if not admitted(NOBODY):
        pytest.skip("an ordinary user may not read this folder or this Python")
    user = f', user: "{inside}"' if inside else ""
    plan = f"""steps:
  - id: inside
    container: {{image: "box:1", network: none{user}}}
    run: |
      test "$(id -u)" = {inside or NOBODY}
      test ! -e .planrun/runs/*/ledger.jsonl
      echo x > ${{{{ step.dir }}}}/own
      echo "v=5" >> "$PLANRUN_OUTPUT"
    outputs: {{v: integer}}
    verify: [[cat, plan.yml]]
"""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        os.chown(folder, NOBODY, NOBODY)
        os.chmod(engine.folder, 0o711)
        for path in [engine.folder, *engine.folder.parents]:
            if path.owner() == folder.parent.owner() and path.stat().st_mode & 0o777 == 0o700:
                path.chmod(0o711)
        os.chmod(engine.folder / "engine.sock", 0o666)
        env = {"HOME": name, "XDG_CACHE_HOME": name, "XDG_CONFIG_HOME": name}
        run = start(engine, folder, plan, user=NOBODY, **env)
        output, _ = run.communicate(timeout=LIMIT)
        steps = steps_of(folder)
        assert steps["inside"]["status"] == "completed", output.decode()
        assert steps["inside"]["outputs"] == {"v": 5}
    assert engine.left() == []


@pytest.mark.parametrize("limit", ["100ms", "200ms", "400ms", "800ms"])
def test_no_container_stays_that_was_being_made_when_its_time_was_over(
    engine: Engine, tmp_path: Path, limit: str
) -> None:
    """Its client is killed, the engine still makes the container, and it is deleted before the run ends."""
    plan = f"""steps:
  - {{id: a, timeout: {limit}, container: {{image: "box:1", network: none}}, run: sleep 600}}
  - {{id: b, timeout: {limit}, container: {{image: "box:1", network: none}}, run: sleep 600}}
"""
    start(engine, tmp_path, plan).communicate(timeout=LIMIT)
    assert engine.left() == []


@pytest.mark.parametrize("verb", ["finalize", "execute"])
def test_the_next_use_of_a_workspace_takes_left_containers_away(
    engine: Engine, tmp_path: Path, verb: str
) -> None:
    """Those whose planrun and guardian are gone; others of the same engine stay."""
    plan = """steps:
  - {id: a, container: {image: "box:1", network: none}, run: "test -e .planrun || exit 1; exit 0"}
"""
    start(engine, tmp_path, plan).communicate(timeout=LIMIT)
    (run,) = [path.name for path in (tmp_path / ".planrun" / "runs").iterdir()]
    for name, of in (("mine", run), ("other", "20200101-000000-abcdef")):
        engine.call("create", "--name", name, "--label", f"planrun.run={of}", "box:1", "sleep", "600")
    env = {**os.environ, "DOCKER_HOST": engine.socket, "PLANRUN_CONTAINER_ENGINE": engine.client}
    words = ["finalize", "last"] if verb == "finalize" else ["execute", "plan.yml"]
    subprocess.run([*PLANRUN, *words], cwd=tmp_path, env=env, check=False, timeout=LIMIT, capture_output=True)
    left = engine.left()
    engine.call("rm", "-f", "other")
    assert left == ["other"]


def test_a_service_in_a_container_is_probed_inside(engine: Engine, tmp_path: Path) -> None:
    """It is ready for those who need it, and gone when they have ended."""
    plan = """steps:
  - id: server
    service: true
    container: {image: "box:1", network: none}
    run: exec httpd -f -p 127.0.0.1:8000 -h .
    ready: {run: "wget -q -O /dev/null http://127.0.0.1:8000/plan.yml", interval: 100ms, timeout: 60s}
  - {id: uses, depends_on: [server], run: "true"}
"""
    run = start(engine, tmp_path, plan)
    output, _ = run.communicate(timeout=LIMIT)
    steps = steps_of(tmp_path)
    assert (steps["server"]["status"], steps["server"]["reason"]) == ("completed", "stopped"), output.decode()
    assert engine.left() == []


@pytest.mark.parametrize("how", ["timeout", "cancel", "kill -9"])
def test_no_container_outlives_its_step(engine: Engine, tmp_path: Path, how: str) -> None:
    """Whether it ran out of time, the run was cancelled, or planrun was killed; it ignores SIGTERM."""
    ignoring = "trap '' TERM INT; touch up; sleep 600"
    limit = "3s" if how == "timeout" else "10m"
    plan = f"""steps:
  - {{id: ignoring, timeout: {limit}, container: {{image: "box:1", network: none}}, run: "{ignoring}"}}
"""
    run = start(engine, tmp_path, plan)
    end = time.monotonic() + LIMIT
    while how != "timeout" and not (tmp_path / "up").exists() and time.monotonic() < end:
        time.sleep(0.05)
    if how != "timeout":
        assert len(engine.left()) == 1
        run.send_signal(signal.SIGTERM if how == "cancel" else signal.SIGKILL)
    run.communicate(timeout=LIMIT)
    if how == "kill -9":
        assert engine.gone()
    else:
        assert engine.left() == []


def test_without_an_engine_a_step_fails_with_a_sentence(tmp_path: Path) -> None:
    """Nothing is started, and the sentence names what is missing."""
    (tmp_path / "plan.yml").write_text(
        "version: 1\nsteps:\n  - {id: a, container: box, run: ls}\n", encoding="utf-8"
    )
    env = {**os.environ, "PLANRUN_CONTAINER_ENGINE": "no-such-engine"}
    run = subprocess.run(
        [*PLANRUN, "execute", "plan.yml"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        check=False,
        timeout=LIMIT,
    )
    assert steps_of(tmp_path)["a"]["reason"] == "spawn"
    assert b"no program no-such-engine, which PLANRUN_CONTAINER_ENGINE names" in run.stdout + run.stderr


SHARED = """containers:
  box: {image: "box:1", network: none, env: {INNER: "x y"}%s}
steps:
  - id: install
    container: {shared: box}
    run: |
      printf '#!/bin/sh\\necho tool "$@"\\n' > /bin/tool && chmod +x /bin/tool
      sleep 1000 > /dev/null 2>&1 &
      echo "v=5" >> "$PLANRUN_OUTPUT"
      umask 077 && echo made > made.txt
    outputs: {v: integer}
"""


def ledger_after(run: subprocess.Popen[bytes], folder: Path) -> tuple[dict[str, dict[str, object]], str]:
    """Return the steps and what was printed when a run has ended."""
    output, _ = run.communicate(timeout=LIMIT)
    return steps_of(folder), output.decode()


@pytest.mark.shows("GP-58")
def test_steps_share_a_container(engine: Engine, tmp_path: Path) -> None:
    """What one step installs is there for the next, its processes are not; an empty image means no container."""
    plan = (
        SHARED % ""
        + """  - id: use
    depends_on: [install]
    container: {shared: box}
    secrets: [TOKEN]
    run: |
      test "$(tool "$INNER" ${{ steps.install.outputs.v }})" = "tool x y 5" && test "$TOKEN"
      if ps | grep -q "[s]leep 1000"; then exit 9; fi
      test "$(id -u)" = 0 && echo own > ${{ step.dir }}/own.txt
    verify: [tool again, [test, -s, made.txt]]
  - id: either
    matrix: {image: ["box:1", ""]}
    container: ${{ matrix.image }}
    run: if test "${{ matrix.image }}"; then test ! -e /usr; else test -e /usr; fi
secrets: [TOKEN]
"""
    )
    steps, output = ledger_after(start(engine, tmp_path, plan, TOKEN="sekret-of-mine"), tmp_path)
    assert {name: step["status"] for name, step in steps.items()} == dict.fromkeys(
        ["install", "use", "either", "either[image=box:1]", "either[image=]"], "completed"
    ), output
    assert steps["install"]["outputs"] == {"v": 5}
    assert engine.left() == []


def test_a_timeout_ends_a_step_in_a_shared_container_and_keeps_the_container(
    engine: Engine, tmp_path: Path
) -> None:
    """All that the step started there is ended, also with another environment; the next step finds the container."""
    plan = (
        SHARED % ""
        + """  - id: slow
    depends_on: [install]
    container: {shared: box}
    timeout: 2s
    on_failure: continue
    run: "trap '' TERM; sleep 301 & env -i /bin/sleep 302 & setsid sleep 303 & sleep 304"
  - id: after
    depends_on: {slow: done}
    container: {shared: box}
    run: "ps; tool again; if ps | grep -q '[s]leep 30'; then exit 9; fi"
"""
    )
    steps, output = ledger_after(start(engine, tmp_path, plan), tmp_path)
    assert (steps["slow"]["status"], steps["slow"]["reason"]) == ("failed", "timeout"), output
    assert steps["after"]["status"] == "completed", output
    assert engine.left() == []


@pytest.mark.parametrize("how", ["cancel", "kill -9"])
def test_no_shared_container_outlives_its_run(engine: Engine, tmp_path: Path, how: str) -> None:
    """Whether the run was cancelled, or planrun was killed."""
    plan = (
        SHARED % ""
        + "  - {id: b, depends_on: [install], container: {shared: box}, run: touch on; sleep 300}\n"
    )
    run = start(engine, tmp_path, plan)
    end = time.monotonic() + LIMIT
    while not (tmp_path / "on").exists() and time.monotonic() < end:
        time.sleep(0.05)
    run.send_signal(signal.SIGTERM if how == "cancel" else signal.SIGKILL)
    run.communicate(timeout=LIMIT)
    assert engine.gone()


def test_a_resumed_run_prepares_its_new_container(engine: Engine, tmp_path: Path) -> None:
    """Steps under `setup` run again before the others, which do not; without it the lost work is named."""
    rest = """  - {id: deploy, depends_on: [install], container: {shared: box}, run: echo once >> deployed.txt}
  - {id: smoke, depends_on: [deploy], container: {shared: box}, run: test -e go && tool}
"""
    env = {**os.environ, "DOCKER_HOST": engine.socket, "PLANRUN_CONTAINER_ENGINE": engine.client}
    for setup in (", setup: [install]", ""):
        folder = tmp_path / ("with" if setup else "without")
        folder.mkdir()
        ledger_after(start(engine, folder, SHARED % setup + rest), folder)
        (folder / "go").touch()
        words = [*PLANRUN, "resume", "last"]
        output = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False)
        assert (folder / "deployed.txt").read_text(encoding="utf-8") == "once\n"
        if setup:
            assert 'install: the container "box" is new' in output.stderr
            assert output.returncode == 0, output.stdout
        else:
            assert "changes that install, deploy made in it are lost" in output.stderr
            assert output.returncode == 1
        assert engine.left() == []


def test_what_cannot_stand_beside_a_shared_container_is_named(tmp_path: Path) -> None:
    """Each has its line and column, and the name that was probably meant."""
    (tmp_path / "plan.yml").write_text(
        """version: 1
containers:
  build: {image: "a:${{ matrix.v }}", setup: [other]}
steps:
  - {id: other, run: "true"}
  - {id: c, run: "true", container: {shared: biuld}}
  - {id: e, run: "true", container: {shared: build}, cache: true, inputs: x, matrix: {v: [1]}}
""",
        encoding="utf-8",
    )
    words = [*PLANRUN, "validate", "plan.yml"]
    output = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert output.returncode == 2
    for line in (
        'plan.yml:3:18: error[E293]: the container "build" reads values of an instance, but all instances share it',
        'plan.yml:3:47: error[E293]: no step "other" runs in the container "build"',
        'plan.yml:6:46: error[E293]: unknown container "biuld"; did you mean "build"?',
        "plan.yml:7:54: error[E293]: `cache` is not allowed with a shared container",
    ):
        assert line in output.stdout + output.stderr


@pytest.mark.parametrize("user", [0, NOBODY])
def test_planrun_in_a_container_confines_steps_where_namespaces_are_allowed(
    engine: Engine, tmp_path: Path, user: int
) -> None:
    """Root of a container is no administrator and needs a user namespace too; doctor names the option for one."""
    (tmp_path / "plan.yml").write_text(
        """version: 1
steps:
  - id: held
    sandbox: {level: low}
    run: |
      echo made > made.txt
      ! touch .planrun/mark || exit 3
      ! touch /usr/mark || exit 4
""",
        encoding="utf-8",
    )
    tmp_path.chmod(0o777)
    python = Path(sys.base_prefix).resolve()
    places = ["/usr", "/lib", "/lib64", "/etc", str(python), sys.prefix, str(ROOT)]
    binds = [
        word
        for place in dict.fromkeys(places)
        if Path(place).exists()
        for word in ("-v", f"{place}:{place}:ro")
    ]
    words = [
        "run",
        "--rm",
        "--network",
        "none",
        "-u",
        f"{user}:{user}",
        "-w",
        "/work",
        "-v",
        f"{tmp_path}:/work",
        *binds,
    ]
    words += ["-e", "HOME=/tmp", "-e", "PATH=/usr/bin:/bin", "-e", f"PYTHONPATH={ROOT}"]
    command = ["box:1", sys.executable, "-m", "planrun"]
    if user and not admitted(user):
        pytest.skip("an ordinary user may not read this folder or this Python")
    refused = engine.call(*words, *command, "doctor")
    assert b"start the container with --security-opt seccomp=unconfined" in refused.stdout
    done = engine.call(*words, "--security-opt", "seccomp=unconfined", *command, "execute", "plan.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "made.txt").read_text(encoding="utf-8") == "made\n"
