"""Jobs in containers: the command line of Docker or Podman around a step's own, and the records of both.

Values of variables are never part of a command line, which only names them; the client's environment contains them.

Steps that run in containers: their jobs, their part of the fingerprint, and their records.

Jobs in a container that several steps share: the first starts it, and the end of the run removes it.
"""

from __future__ import annotations

import os
import subprocess

from planrun.actions.outputs import PROGRESS, SCRIPT
from planrun.actions.render import brief
from planrun.errors import EvaluationError
from planrun.expressions.render import render_text
from planrun.model.groups import folder_of
from planrun.model.job import Outcome, Prepared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from planrun.actions.environment import RunEnvironment
    from planrun.actions.render import Recipe
    from planrun.model.job import Job, Script
    from planrun.model.plan import Container, Step

ENGINES = ("docker", "podman")
CHOSEN = "PLANRUN_CONTAINER_ENGINE"
"""The variable of planrun's environment that names the program; default: the first of ENGINES on its PATH."""
_OWN = ("PLANRUN_", "TRACEPARENT", "TRACESTATE")  # what planrun adds to the variables of a step
LABEL = "planrun.run"
COVER = "cover"
"""The folder of a run that hides its records in containers: empty except for mount points."""
_PATIENCE = 10.0  # seconds for a query to the engine
# Variables that the client itself reads: they are passed by value, unless they are secrets.
_OF_CLIENT = ("PATH", "HOME", "LD_PRELOAD", "LD_LIBRARY_PATH", "XDG_RUNTIME_DIR", "TMPDIR")
_OF_ENGINES = ("DOCKER_", "CONTAINER_", "CONTAINERS_", "PODMAN_", "BUILDKIT_")
_NONE_MADE = 125  # the exit code of a client whose engine made no container
_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")


class NoEngine(Exception):
    """No container engine is available; the text is one line for the user."""


def engine_of() -> str:
    """Return the program that runs containers, as an absolute path, by planrun's own environment; raises NoEngine."""
    env = os.environ
    named = env.get(CHOSEN, "")
    for name in (named,) if named else ENGINES:
        for folder in env.get("PATH", os.defpath).split(os.pathsep):
            path = os.path.abspath(os.path.join(folder, name))
            if os.access(path, os.X_OK) and os.path.isfile(path):
                return path
    if named:
        raise NoEngine(f"no program {named}, which {CHOSEN} names, to run containers with")
    raise NoEngine(
        f"neither {' nor '.join(ENGINES)} is on the PATH to run containers with; {CHOSEN} can name another"
    )


def rendered(container: Container, scope: dict[str, Any]) -> dict[str, Any]:
    """Return the container settings of a plan with every value filled in; raises EvaluationError."""

    def text(value: Any) -> str:
        found = value if isinstance(value, str) else render_text(value, scope)
        if "\0" in found:
            raise EvaluationError("a value contains a NUL character")
        return found

    found: dict[str, Any] = {"image": text(container.image)}
    if found["image"].startswith("-"):
        raise EvaluationError(f"{found['image']!r} is no image")
    if container.env:
        found["env"] = {name: text(value) for name, value in container.env.items()}
    if container.volumes:
        found["volumes"] = [text(value) for value in container.volumes]
    if container.user:
        found["user"] = text(container.user)
    for name in ("network", "shared"):
        if said := getattr(container, name):
            found[name] = said
    return found


def contained(
    job: Job, container: Mapping[str, Any], added: Mapping[str, str], secrets: Sequence[str]
) -> Job:
    """Return a job that runs in a container; `added`: the variables that the plan adds. Raises NoEngine."""
    engine = engine_of()
    workspace, output = job.env["PLANRUN_WORKSPACE"], job.env["PLANRUN_OUTPUT"]
    own = {name: value for name, value in job.env.items() if name.startswith(_OWN) and name != CHOSEN}
    inside = {
        **added,
        **container.get("env", {}),
        **{name: job.env[name] for name in secrets if name in job.env},
        **own,
    }
    options = ["--init", "--label", f"{LABEL}={own['PLANRUN_RUN']}"]
    records = f"{workspace}/.planrun"
    cover = os.path.join(os.path.dirname(os.path.dirname(output)), COVER)
    options += ["-v", f"{workspace}:{workspace}", "-v", f"{cover}:{records}:ro"]
    for path in (output, output + PROGRESS):
        with open(path, "ab"):
            pass
    outputs: list[str] = []  # none for post-checks: the outputs were read and deleted before
    mounts = ((output, "", outputs), (output + PROGRESS, "", outputs), (output + SCRIPT, ":ro", options))
    for path, mode, words in (*mounts, (job.private, "", options)):
        if path and os.path.exists(path):
            if container.get(
                "user"
            ):  # another user writes it; outside, the closed records' folder keeps other users out
                os.chmod(path, 0o777 if os.path.isdir(path) else 0o666)
            mount_point(cover, os.path.relpath(path, records), is_folder=os.path.isdir(path))
            words += ["-v", f"{path}:{path}{mode}"]
    for volume in container.get("volumes", ()):
        options += ["-v", volume]
    options += ["-w", job.cwd, "--user", container.get("user") or f"{os.getuid()}:{os.getgid()}"]
    options += ["--network", container["network"]] if "network" in container else []
    client, named = variables(job, inside, secrets)
    options += named
    box = {
        "engine": engine,
        "name": name_of(own["PLANRUN_RUN"], job.step, job.attempt),
        "options": options,
        "image": container["image"],
    }
    found = in_container(job.but(env=client), {**box, "options": [*options, *outputs]}, box["name"])
    return found.but(container=box)


def mount_point(cover: str, path: str, *, is_folder: bool) -> None:
    """Make an empty mount point in the folder that hides the records, with folders that every user may traverse.

    A tmpfs does not work: runc 1.1 gives it the mode of the folder below, which only its owner may enter.
    """
    place = cover
    for name in ("", *path.split("/")[: None if is_folder else -1]):
        place = os.path.join(place, name).rstrip("/")
        if not os.path.isdir(place):
            os.mkdir(place, 0o700)
            os.chmod(place, 0o755)  # noqa: S103 - independent of the umask; it has only empty files
    if not is_folder:
        with open(os.path.join(cover, path), "ab"):
            pass


def variables(
    job: Job, inside: Mapping[str, str], secrets: Sequence[str]
) -> tuple[dict[str, str], list[str]]:
    """Return the environment of a client, and the options by which a process in a container gets variables."""
    client, options = {**client_environment(), **job.env}, []
    for name, value in inside.items():
        if name in secrets or not (name in _OF_CLIENT or name.startswith(_OF_ENGINES)):
            client[name] = value
            options += ["-e", name]
        else:
            client[name] = os.environ.get(name, client.get(name, ""))
            options += ["-e", f"{name}={value}"]
    return client, options


def in_container(job: Job, box: dict[str, Any], name: str) -> Job:
    """Return a job whose words run in a container of this name; `inside` still has the words of the step."""
    before = [box["engine"], "run", "--rm", "-i=false", "--name", name, *box["options"]]
    # An entrypoint of the image could precede the words of a command; the plan does not name it.
    before += ["--entrypoint", job.argv[0], box["image"]]
    return job.but(
        argv=(*before, *job.argv[1:]),
        inside=job.argv,
        container={**box, "name": name},
        scripts=tuple([_moved(script, len(before)) for script in job.scripts]),
    )


def beside(job: Job, box: Mapping[str, Any]) -> Job:
    """Return a job that runs in the container of a running service."""
    before = (box["engine"], "exec", "-w", job.cwd, box["name"])
    return job.but(argv=(*before, *job.argv), inside=job.argv)


def _moved(script: Script, by: int) -> Script:
    # The program itself precedes the image, with its option.
    return script.but(words=tuple([(at + by - 1 if at else by - 2, *rest) for at, *rest in script.words]))


def name_of(run: str, step: str, attempt: int) -> str:
    """Return the name of a container, in the few characters that engines allow."""
    plain = "".join([letter if letter in _SAFE else "_" for letter in folder_of(step)])
    return f"planrun-{run}-{plain}-{attempt}"


def image_id(engine: str, image: str, env: Mapping[str, str]) -> str:
    """Return the id of an image in the engine, `sha256:…`; empty when the engine lacks it."""
    words = (engine, "image", "inspect", "--format", "{{.Id}}", image)
    try:
        found = subprocess.run(
            words,
            env={**client_environment(), **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    answer = found.stdout.decode("utf-8", "replace").strip()
    if found.returncode or not answer:
        return ""
    return answer if answer.startswith("sha256:") else f"sha256:{answer}"


def client_environment() -> dict[str, str]:
    """Return the variables that configure the client of an engine; steps may inherit fewer."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("DOCKER_", "CONTAINER_")) or name == "HOME"
    }


def with_container(job: Job, outcome: Outcome, known: str) -> Outcome:
    """Return an outcome with the resources of its container; `known`: the image's id before it started."""
    image = known or image_id(job.container["engine"], job.container["image"], job.env)
    resources: list[dict[str, Any]] = []
    if image:
        named = {"kind": "image", "id": image, "name": job.container["image"]}
        resources.append({**named, "action": "used" if known else "created"})
    if "room" in job.container:
        resources.append({"kind": "container", "id": job.container["name"], "action": "used"})
    elif outcome.reason != "spawn" and outcome.exit_code != _NONE_MADE:
        resources += [
            {"kind": "container", "id": job.container["name"], "action": action}
            for action in ("created", "deleted")
        ]
    return outcome.but(resources=(*outcome.resources, *resources))


class ContainerJobs:
    """The containers of a run's steps; `images`: the ids of images as they were before each step started."""

    def __init__(self, place: RunEnvironment) -> None:
        self._place = place
        self._images: dict[str, str] = {}
        self._shared: dict[str, dict[str, Any]] = {}  # as first rendered

    def prepare(self, step: Step, scope: dict[str, Any], recipe: Recipe, prepared: Prepared) -> Prepared:
        """Return the same job in a container, or the outcome of the attempt if there can be none."""
        assert step.container is not None
        assert prepared.job is not None
        try:
            found = rendered(step.container, scope)
            if "shared" in found:
                own = {name: value for name, value in found.items() if name != "env"}
                first = self._shared.setdefault(shared_name(step), own)
                if first != own:
                    changed = ", ".join(
                        sorted(name for name in {**first, **own} if first.get(name) != own.get(name))
                    )
                    raise EvaluationError(
                        f'the container "{found["shared"]}" was started with another value of: {changed}'
                    )
        except EvaluationError as error:
            refused = Outcome(status="failed", reason="refused", message=str(error))
            return Prepared(fingerprint="", outcome=refused)
        if not found["image"]:
            return prepared
        try:
            job = self._made(step, prepared.job, found, recipe)
        except (NoEngine, OSError) as error:
            outcome = Outcome(status="failed", reason="spawn", message=str(error))
            return Prepared(fingerprint=prepared.fingerprint, outcome=outcome)
        self._images[step.id] = image_id(job.container["engine"], found["image"], job.env)
        return Prepared(fingerprint=prepared.fingerprint + self._part(found, self._images[step.id]), job=job)

    def _made(self, step: Step, job: Job, found: dict[str, Any], recipe: Recipe) -> Job:
        if "shared" not in found:
            return contained(job, found, recipe.env, step.secrets)

        return sharing(job, found, recipe.env, step, self._place.rundir)

    def take_over(self, step: Step, job: Job, output: str) -> None:
        """Restore the files of an attempt, which a step in a shared container may have replaced."""
        if job.container and not job.part:
            bring_back(self._place.rundir, step, output)

    def is_wanted(self, step: Step, scope: dict[str, Any]) -> bool:
        """Return whether a step runs in a container: an empty image means none. Raises EvaluationError."""
        assert step.container is not None
        return bool(isinstance(step.container.image, str) or rendered(step.container, scope)["image"])

    def part(self, step: Step, scope: dict[str, Any]) -> str:
        """Return the parts of a fingerprint for container and image; raises EvaluationError."""
        assert step.container is not None
        found = rendered(step.container, scope)
        if not found["image"]:
            return ""
        try:
            engine = engine_of()
        except NoEngine:
            return self._part(found, "")
        return self._part(found, image_id(engine, found["image"], self._place.env))

    def _part(self, found: dict[str, Any], image: str) -> str:
        masks = self._place.masks
        known = masks.mask_value(found) if masks else found
        plain = sorted(
            (name, sorted(value.items()) if isinstance(value, dict) else value)
            for name, value in known.items()
        )
        return f" container:{brief(plain)}" + (f" image:{brief(image)}" if image else "")

    def conclude(self, step: Step, job: Job, outcome: Outcome) -> Outcome:
        """Return an outcome with the resources that were used, created and deleted."""
        return (
            with_container(job, outcome, self._images.get(step.id, ""))
            if job.container and not job.part
            else outcome
        )


_SHELL = "/bin/sh"
_SCRIPT = os.path.join(os.path.dirname(__file__), "shared.sh")
_STARTED = os.getpid()  # a container belongs to one planrun process: a resumed run starts a new one
# Below a folder that only the caller can enter; the user of an image may be any other.
_OPEN_FOLDER, _OPEN_FILE = 0o777, 0o666


def shared_name(step: Step) -> str:
    """Return the name of the container of a step, unique in the run and usable as the name of a folder."""
    container = step.container
    assert container is not None
    outer = (
        step.id[: step.id.rindex("/") + 1] if "/" in step.id else ""
    )  # a plan that is included twice has two
    instance = f"[{step.instance}]" if container.per == "instance" and step.instance else ""
    return f"box.{folder_of(f'{outer}{container.shared}{instance}')}"


def sharing(job: Job, container: Mapping[str, Any], added: Mapping[str, str], step: Step, rundir: str) -> Job:
    """Return a job that runs in a shared container; `added`: the variables that the plan adds.

    Raises NoEngine, OSError.
    """
    shared, run = shared_name(step), job.env["PLANRUN_RUN"]
    output = _share(rundir, shared, job)
    own = {name: value for name, value in job.env.items() if name.startswith(_OWN)}
    own |= {"PLANRUN_OUTPUT": output, "PLANRUN_PROGRESS": output + PROGRESS, "PLANRUN_EXEC": ""}
    secrets = {name: job.env[name] for name in step.secrets if name in job.env}
    client, named = variables(job, {**added, **container.get("env", {}), **secrets, **own}, step.secrets)
    box = {
        "engine": engine_of(),
        "name": name_of(run, shared, _STARTED),
        "image": container["image"],
        "options": _options(container, rundir, shared, job),
        "room": shared,
        "exec": ["-w", job.cwd, *named],
        "workspace": job.env["PLANRUN_WORKSPACE"] if os.getuid() else "",
        "own": os.path.dirname(output),
    }
    script = job.env["PLANRUN_OUTPUT"] + SCRIPT
    words = tuple([output + SCRIPT if word == script else word for word in job.argv])
    return in_shared_container(job.but(env=client, argv=words), box)


def in_shared_container(job: Job, box: dict[str, Any]) -> Job:
    """Return a job whose words run in a shared container, with a mark that identifies its processes there."""
    mark = f"{name_of(job.env['PLANRUN_RUN'], job.step, job.attempt)}-{job.part}."
    before = [_SHELL, _SCRIPT, box["engine"], box["name"], mark, box["own"], box["workspace"], box["image"]]
    before += [str(len(box["options"])), *box["options"], *box["exec"], box["name"]]
    return job.but(
        argv=(*before, *job.argv),
        env={**job.env, "PLANRUN_EXEC": mark},
        inside=job.argv,
        container={**box, "mark": mark},
        scripts=tuple(
            [
                script.but(words=tuple([(at + len(before), *rest) for at, *rest in script.words]))
                for script in job.scripts
            ]
        ),
    )


def _options(container: Mapping[str, Any], rundir: str, shared: str, job: Job) -> list[str]:
    workspace = job.env["PLANRUN_WORKSPACE"]
    options = ["--init", "--label", f"{LABEL}={job.env['PLANRUN_RUN']}"]
    records, cover = f"{workspace}/.planrun", os.path.join(rundir, COVER)
    options += ["-v", f"{workspace}:{workspace}", "-v", f"{cover}:{records}:ro"]
    for folder in ("outputs", "work"):
        path = os.path.join(rundir, folder, shared)
        mount_point(cover, os.path.relpath(path, records), is_folder=True)
        options += ["-v", f"{path}:{path}"]
    for volume in container.get("volumes", ()):
        options += ["-v", volume]
    options += ["--user", container["user"]] if container.get("user") else []
    return options + (["--network", container["network"]] if "network" in container else [])


def _share(rundir: str, shared: str, job: Job) -> str:
    """Make the files of an attempt reachable in its container; returns the path of its outputs there.

    The container gets two folders of the run, in which each file is a hard link to the one that planrun reads.
    """
    for folder in ("outputs", "work"):
        path = os.path.join(rundir, folder, shared)
        os.makedirs(path, 0o700, exist_ok=True)
        os.chmod(path, _OPEN_FOLDER)
    if job.private:
        os.chmod(job.private, _OPEN_FOLDER)
    output = job.env["PLANRUN_OUTPUT"]
    there = os.path.join(rundir, "outputs", shared, os.path.basename(output))
    for ending in ("", PROGRESS, SCRIPT):
        path = output + ending
        if ending != SCRIPT:
            with open(path, "ab"):
                os.chmod(path, _OPEN_FILE)
        elif os.path.exists(path):
            os.chmod(path, 0o644)
        else:
            continue
        if os.path.lexists(there + ending):
            os.unlink(there + ending)  # of an interrupted attempt that is repeated
        os.link(path, there + ending)
    return there


def bring_back(rundir: str, step: Step, output: str) -> None:
    """Move the files of an attempt back from the container's folder; the step may have replaced them."""
    there = os.path.join(rundir, "outputs", shared_name(step), os.path.basename(output))
    for ending in ("", PROGRESS):
        try:
            os.replace(there + ending, output + ending)
        except OSError:  # the step deleted the file
            continue
    try:
        os.unlink(there + SCRIPT)
    except OSError:
        pass
