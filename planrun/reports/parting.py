"""The last words of a run: what it waits for, where its reports are, how it goes on; and what a CI system is handed."""

from __future__ import annotations

import os

from planrun.reports import facts
from planrun.reports.ci import from_checkout, vendor
from planrun.reports.clean import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from planrun.model.progress import StepState
    from planrun.model.state import RunState
    from planrun.reports.ci import Look


def words(state: RunState, look: Look, paths: Mapping[str, str], head: str) -> Iterator[str]:
    """Yield the last lines of a console; `head`: of the ledger, `paths`: of the reports by name."""
    waits = facts.is_waiting(state)
    if waits:
        from planrun.reports import waiting  # few runs wait for somebody

        yield from [f"{row}\n" for row in waiting.told(state)]
        if look.sections:
            yield from waiting.notices(state, look.sections, file_of(state))
    if state.undoing or state.cut_short:
        from planrun.reports.undoing import told  # few runs undo anything

        yield from [f"  {row}\n" for row in told(state)]
    if not look.quiet:
        files = ", ".join([os.path.basename(path) for path in paths.values()])
        reports = f"reports in {_folder(paths)}: {files}" if paths else "no report could be written"
        yield f"  {reports}; ledger head {head}\n"
        if state.started and not waits and state.status in ("failed", "cancelled", "paused"):
            yield f"  {facts.going_on(state)}\n"


def file_of(state: RunState, found: StepState | None = None) -> str:
    """Return the file of a step, or the plan's, for annotations, which count from the root of the checkout."""
    file = state.plan.file_of(found.step) if found else state.plan.file
    return line(from_checkout(file, os.environ))


def _folder(paths: Mapping[str, str]) -> str:
    """Return the folder of the reports."""
    folder = os.path.dirname(next(iter(paths.values()), ""))
    return near(folder) if folder else "."


def near(path: str) -> str:
    """Return a path as seen from here, or whole where that is shorter."""
    try:
        near, whole = os.path.relpath(path), os.path.abspath(path)
    except OSError:  # the working directory is gone
        return line(path)
    return line(near if len(near) <= len(whole) else whole)


def hand_over(state: RunState, rundir: str, paths: Mapping[str, str], head: str) -> None:
    """Write step summary and outputs where GitHub, or something that works like it, asks for them."""
    summary, results = os.environ.get("GITHUB_STEP_SUMMARY"), os.environ.get("GITHUB_OUTPUT")
    if vendor(os.environ) not in ("github", "gitea") or not (summary or results):
        return
    from planrun.reports import github  # only there

    try:
        if summary:
            github.write_summary(state, rundir, summary, head=head)
    finally:  # a step that reads the outputs has a right to them, whatever became of the summary
        if results:
            github.write_outputs(github.outputs(state, paths), results)
