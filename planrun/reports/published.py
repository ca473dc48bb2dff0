"""What a run leaves on CI systems other than GitHub: variables for later jobs, test results, a page on the build.

GitLab reads a dotenv file, Azure and TeamCity lines of the log, Buildkite its agent. A value that a system cannot carry
is left out and named; none is changed.
"""

from __future__ import annotations

import io
import os

from planrun.model.jsontext import dumps
from planrun.reports.escape import line
from planrun.reports.facts import status_of
from planrun.reports.logcommands import service_message, vso
from planrun.reports.markdown import write_markdown
from planrun.reports.write import write_texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from planrun.model.state import RunState

DOTENV = "planrun.env"
DOTENV_BYTES = 5 * 1024  # GitLab refuses a larger file as a whole
DOTENV_VARIABLES = 20  # so many has the smallest limit of GitLab's
MESSAGE_BYTES = 32 * 1024  # of a value in a line of the log
PAGE_BYTES = 64 * 1024  # of the annotation of a build; Buildkite takes 1 MiB
_AGENT_SECONDS = 20
_AGENT = "buildkite-agent"
_COLOURS = {"completed": "success", "failed": "error", "cancelled": "error"}


def publish(system: str, state: RunState, rundir: str, paths: Mapping[str, str]) -> Iterator[str]:
    """Leave what a system takes; yields whole lines for the log. Raises RecordsLost for a file."""
    if system == "gitlab":
        yield from _dotenv(state, paths)
    elif system == "azure":
        # Azure Pipelines.
        for name, value in variables(state).items():
            if len(value.encode("utf-8", "replace")) > MESSAGE_BYTES:
                yield _warning(name, f"it has more than {MESSAGE_BYTES} bytes")
            else:
                yield f"##vso[task.setvariable variable={vso(name)};isOutput=true]{vso(value)}\n"
        if "markdown" in paths:
            yield f"##vso[task.uploadsummary]{vso(os.path.abspath(paths['markdown']))}\n"
    elif system == "teamcity":
        # TeamCity.
        for name, value in variables(state).items():
            if len(value.encode("utf-8", "replace")) > MESSAGE_BYTES:
                yield _warning(name, f"it has more than {MESSAGE_BYTES} bytes")
            else:
                yield service_message("setParameter", name=name, value=value)
        if "junit" in paths:
            yield service_message("importData", type="junit", path=os.path.abspath(paths["junit"]))
    elif system == "buildkite":
        yield from _buildkite(state, rundir)


def variables(state: RunState) -> dict[str, str]:
    """Return what later jobs may read, by names with dots; outputs of the plan that are no text are JSON."""
    found = {
        "planrun.run_id": state.started.run if state.started else "",
        "planrun.result": status_of(state),
        "planrun.digest": state.plan.digest,
    }
    outputs = state.ended.outputs if state.ended else {}
    return found | {
        f"planrun.output.{name}": value if isinstance(value, str) else dumps(value)
        for name, value in outputs.items()
    }


def _warning(name: str, why: str) -> str:
    return f"  {line(name)} is not passed on: {why}\n"


# GitLab.


def _dotenv(state: RunState, paths: Mapping[str, str]) -> Iterator[str]:
    rows: list[str] = []
    size = 0
    for dotted, value in variables(state).items():
        name = "".join([char if char.isascii() and char.isalnum() else "_" for char in dotted.upper()])
        row = f"{name}={value}\n"
        if not value.isprintable():
            why = "a dotenv report cannot carry line breaks and control characters"
        elif any(char.isspace() for char in value):
            why = "a dotenv report cannot carry blanks"
        else:
            why = "a dotenv report cannot carry quotes" if "'" in value or '"' in value else ""
        if not why and len(rows) == DOTENV_VARIABLES:
            why = f"GitLab takes {DOTENV_VARIABLES} variables of a job"
        if not why and size + len(row.encode("utf-8", "replace")) > DOTENV_BYTES:
            why = f"GitLab takes {DOTENV_BYTES} bytes of variables"
        if not why and any(other.startswith(f"{name}=") for other in rows):
            why = f"another output has the name {name}, too"
        if why:
            yield _warning(dotted, why)
            continue
        rows.append(row)
        size += len(row.encode("utf-8", "replace"))
    if paths:
        write_texts(os.path.dirname(next(iter(paths.values()))) or ".", {DOTENV: "".join(rows)})


# Buildkite.


def _buildkite(state: RunState, rundir: str) -> Iterator[str]:
    from shutil import which  # only here

    agent = which(_AGENT)
    if agent is None:
        return
    for name, value in variables(state).items():
        if not value:  # the agent takes no empty value
            continue
        why = _call(agent, ["meta-data", "set", name.replace(".", ":")], value)
        if why:
            yield _warning(name, why)
            return  # the others would have the same trouble, and each may take its time
    page = io.BytesIO()
    write_markdown(state, rundir, page, budget=PAGE_BYTES)
    words = [
        "annotate",
        "--style",
        _COLOURS.get(status_of(state), "warning"),
        "--context",
        f"planrun {state.plan.name}",
    ]
    why = _call(agent, words, page.getvalue().decode("utf-8", "replace"))
    if why:
        yield _warning("the report", why)


def _call(agent: str, words: list[str], text: str) -> str:
    """Have the agent do something with a text on its input; returns why it failed, or ""."""
    import subprocess

    try:
        done = subprocess.run(
            [agent, *words],
            input=text.encode("utf-8", "replace"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_AGENT_SECONDS,
            check=False,
        )
    except (OSError, ValueError) as error:
        return f"{_AGENT} cannot be started: {error}"
    except subprocess.TimeoutExpired:
        return f"{_AGENT} did not end within {_AGENT_SECONDS} s"
    if done.returncode == 0:
        return ""
    said = line(done.stderr.decode("utf-8", "replace").strip(), 200)
    return f"{_AGENT} {words[0]} failed with exit code {done.returncode}{f': {said}' if said else ''}"
