"""Jobs in a container that several steps share: the first starts it, and the end of the run removes it."""

from __future__ import annotations

import os

from planrun.model.groups import folder_of
from planrun.steps.containers import COVER, LABEL, engine_of, mount_point, name_of, variables
from planrun.steps.outputs import PROGRESS, SCRIPT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.model.job import Job
    from planrun.model.plan import Step

_SHELL = "/bin/sh"
_SCRIPT = os.path.join(os.path.dirname(__file__), "shared.sh")
_STARTED = os.getpid()  # a container is of one process of planrun: a resumed run starts a new one
# Below a folder that only the caller can enter; the user of an image may be any other.
_OPEN_FOLDER, _OPEN_FILE = 0o777, 0o666


def room_of(step: Step) -> str:
    """Return the name of the container of a step, unique in the run and usable as the name of a folder."""
    container = step.container
    assert container is not None
    outer = step.id[: step.id.rindex("/") + 1] if "/" in step.id else ""  # a plan that is used twice has two
    instance = f"[{step.instance}]" if container.per == "instance" and step.instance else ""
    return f"box.{folder_of(f'{outer}{container.shared}{instance}')}"


def sharing(job: Job, container: Mapping[str, Any], added: Mapping[str, str], step: Step, rundir: str) -> Job:
    """Return a job that runs in a shared container; `added`: what the plan adds to the environment.

    Raises NoEngine, OSError.
    """
    room, run = room_of(step), job.env["PLANRUN_RUN"]
    output = _share(rundir, room, job)
    own = {name: value for name, value in job.env.items() if name.startswith("PLANRUN_")}
    own |= {"PLANRUN_OUTPUT": output, "PLANRUN_PROGRESS": output + PROGRESS, "PLANRUN_EXEC": ""}
    secrets = {name: job.env[name] for name in step.secrets if name in job.env}
    client, named = variables(job, {**added, **container.get("env", {}), **secrets, **own}, step.secrets)
    box = {
        "engine": engine_of(),
        "name": name_of(run, room, _STARTED),
        "image": container["image"],
        "options": _options(container, rundir, room, job),
        "room": room,
        "exec": ["-w", job.cwd, *named],
        "workspace": job.env["PLANRUN_WORKSPACE"] if os.getuid() else "",
        "own": os.path.dirname(output),
    }
    script = job.env["PLANRUN_OUTPUT"] + SCRIPT
    words = tuple([output + SCRIPT if word == script else word for word in job.argv])
    return in_room(job.but(env=client, argv=words), box)


def in_room(job: Job, box: dict[str, Any]) -> Job:
    """Return a job whose words run in a shared container, and which can be found there by its processes."""
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


def _options(container: Mapping[str, Any], rundir: str, room: str, job: Job) -> list[str]:
    workspace = job.env["PLANRUN_WORKSPACE"]
    options = ["--init", "--label", f"{LABEL}={job.env['PLANRUN_RUN']}"]
    records, cover = f"{workspace}/.planrun", os.path.join(rundir, COVER)
    options += ["-v", f"{workspace}:{workspace}", "-v", f"{cover}:{records}:ro"]
    for folder in ("outputs", "work"):
        path = os.path.join(rundir, folder, room)
        mount_point(cover, os.path.relpath(path, records), is_folder=True)
        options += ["-v", f"{path}:{path}"]
    for volume in container.get("volumes", ()):
        options += ["-v", volume]
    options += ["--user", container["user"]] if container.get("user") else []
    return options + (["--network", container["network"]] if "network" in container else [])


def _share(rundir: str, room: str, job: Job) -> str:
    """Make the files of an attempt reachable in its container; returns the path of its outputs there.

    The container gets two folders of the run, in which each file is a second name of the one that planrun reads.
    """
    for folder in ("outputs", "work"):
        path = os.path.join(rundir, folder, room)
        os.makedirs(path, 0o700, exist_ok=True)
        os.chmod(path, _OPEN_FOLDER)
    if job.private:
        os.chmod(job.private, _OPEN_FOLDER)
    output = job.env["PLANRUN_OUTPUT"]
    there = os.path.join(rundir, "outputs", room, os.path.basename(output))
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
            os.unlink(there + ending)  # of an attempt that was cut short and is made again
        os.link(path, there + ending)
    return there


def bring_back(rundir: str, step: Step, output: str) -> None:
    """Put an attempt's files, as the container has them, into their place; the step may have replaced them."""
    there = os.path.join(rundir, "outputs", room_of(step), os.path.basename(output))
    for ending in ("", PROGRESS):
        try:
            os.replace(there + ending, output + ending)
        except OSError:  # it took the file away
            continue
    try:
        os.unlink(there + SCRIPT)
    except OSError:
        pass
