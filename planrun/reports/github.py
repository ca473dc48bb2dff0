"""What a run leaves on GitHub besides its log: the step summary and the outputs of the action."""

from __future__ import annotations

import os

from planrun.errors import RecordsLost
from planrun.model.jsontext import dumps
from planrun.reports.facts import status_of
from planrun.reports.markdown import SUMMARY_BYTES, write_markdown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from planrun.model.state import RunState


def write_files(state: RunState, rundir: str, paths: Mapping[str, str], head: str) -> None:
    """Write step summary and outputs where the job asks for them; `paths`: of the reports by name.

    Raises RecordsLost naming a file that cannot be written.
    """
    summary, results = os.environ.get("GITHUB_STEP_SUMMARY"), os.environ.get("GITHUB_OUTPUT")
    try:
        if summary:
            write_summary(state, rundir, summary, head=head)
    finally:  # a step that reads the outputs has a right to them, whatever became of the summary
        if results:
            write_outputs(outputs(state, paths), results)


def write_summary(state: RunState, rundir: str, path: str, *, head: str = "") -> None:
    """Append the run to the step summary at `path`, within 900 KiB of what is there already.

    Raises RecordsLost naming the file that cannot be written.
    """
    try:
        with open(path, "ab") as out:
            write_markdown(state, rundir, out, budget=max(0, SUMMARY_BYTES - out.tell()), head=head)
    except OSError as error:
        raise RecordsLost(f"cannot write the step summary {path}: {error.strerror}") from None


_CUT = b"\n\nThe rest is left out: the step summary ends at its size limit.\n"
OUTPUTS_BYTES = 512 * 1024  # of the plan's outputs: all outputs of a job together may have 1 MB


def append_summary(text: str, path: str) -> None:
    """Append markdown to the step summary at `path`, as far as it fits into what GitHub shows of one step.

    Raises RecordsLost naming the file that cannot be written.
    """
    data = text.encode("utf-8", "replace")
    try:
        with open(path, "ab") as out:
            left = SUMMARY_BYTES - out.tell()
            if len(data) > left:
                kept = data[: max(0, left - len(_CUT))].rpartition(b"\n\n")[0]
                data = kept + _CUT if kept else b""
            out.write(data)
    except OSError as error:
        raise RecordsLost(f"cannot write the step summary {path}: {error.strerror}") from None


def outputs(state: RunState, reports: Mapping[str, str]) -> dict[str, str]:
    """Return the outputs of the action; `reports` maps junit, json and markdown to paths.

    `failed-steps` is a JSON list, since ids may contain commas and a workflow reads it by `fromJSON`.
    """
    failed = [name for name, step in state.steps.items() if step.status == "failed"]
    return {
        "run-id": state.started.run if state.started else "",
        "result": status_of(state),
        "failed-steps": dumps(failed),
        "junit-path": reports.get("junit", ""),
        "ledger-path": reports.get("json", ""),
        "report-path": reports.get("markdown", ""),
        "digest": state.plan.digest,
        "outputs": _of_plan(state),
    }


def _of_plan(state: RunState) -> str:
    """The outputs of the plan as a JSON object; empty for more than the limit."""
    text = dumps(state.ended.outputs if state.ended else {})
    return text if len(text) <= OUTPUTS_BYTES else ""


def write_outputs(values: Mapping[str, str], path: str) -> None:
    """Append outputs to the file at `path`; raises RecordsLost naming the file that cannot be written."""
    text = "".join([_assignment(name, value) for name, value in values.items()])
    try:
        with open(path, "ab") as out:
            out.write(text.encode("utf-8", "replace"))
    except OSError as error:
        raise RecordsLost(f"cannot write the step outputs {path}: {error.strerror}") from None


def _assignment(name: str, value: str) -> str:
    """One output; a value of several lines stands between two random words."""
    if "\n" not in value and "\r" not in value:
        return f"{name}={value}\n"
    word = f"planrun_{os.urandom(16).hex()}"
    return f"{name}<<{word}\n{value}\n{word}\n"
