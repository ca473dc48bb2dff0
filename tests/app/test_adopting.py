"""How an active run adopts another version of its plan."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from planrun.app.copies import stored_plan
from planrun.app.run import admission_of
from planrun.app.session import Session
from planrun.approval.digest import named_plan, review
from planrun.model import events as ev
from planrun.model.state import RunState
from planrun.plan.edit.page import append_steps
from planrun.plan.load import load
from planrun.planner.replan import Adoption
from planrun.records import rundir as records
from planrun.records.inputs import add_scripts
from planrun.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from planrun.actions.prepare import Steps
    from planrun.approval.gates import PolicyGates

PLAN = """\
version: 1
policy: {auto_approve: high}
steps:
  - {id: build, run: sh build.sh}
  - {id: ship, run: sh ship.sh, depends_on: [build]}
  - {id: late, run: sh made.sh, depends_on: [build]}
"""
NEW = "- id: check\n  depends_on: [build]\n  run: sh check.sh && sh build.sh && sh made.sh\n"


class Going:
    """An active run, as far as a planner sees it."""

    def __init__(self, session: Session, state: RunState, steps: Steps, gates: PolicyGates | None) -> None:
        self.state = state
        self.steps = steps
        self.gates = gates
        self.adoption = Adoption(session, steps, gates)

    def append(self, text: str) -> dict[str, Any]:
        """Adopt a version with more steps."""
        plan = self.state.plan
        data = append_steps(plan.source, plan.file, text)
        named = self.adoption.adopt(self.adoption.next_version(data, self.state, "replanned"), self.state)
        self.state.apply(
            ev.PlanningEnded(at="", purpose="replan", steps=("build",), outcome="revised", plan=named)
        )
        return named


@contextmanager
def going(folder: Path) -> Iterator[Going]:
    """Begin a run of PLAN."""
    for name in ("build", "ship"):
        (folder / f"{name}.sh").write_text(f"echo {name}\n")
    (folder / "plan.yml").write_text(PLAN)
    plan = load(str(folder / "plan.yml"), cache=False)
    with Session(Settings(), str(folder)) as session:
        session.admission = admission_of(plan, session.settings)
        run = records.new_run_id()
        session.claim(run)
        reviewed = review(plan, {}, str(folder))
        rundir = records.create(records.home(str(folder)), run, plan.source)
        kept = add_scripts(rundir, reviewed.contents)
        ledger = records.open_ledger(rundir, beside=kept)
        state = RunState(plan)
        opening = session.opening(plan, {}, {}, named_plan(plan, reviewed))
        session.record(state, ledger, ev.RunStarted(run=run, **opening))
        steps = session.steps(state, rundir, opening)
        gates = session.admission.gates(opening, steps, session.clock, None) if session.admission else None
        yield Going(session, state, steps, gates)
        if gates:
            gates.close()
        ledger.close()


def test_a_new_version_is_kept_before_the_run_goes_over_to_it(tmp_path: Path) -> None:
    """Its copy is in the run's folder, named by the event with digest and origins, and read back as it was."""
    with going(tmp_path) as run:
        named = run.append("- id: check\n  run: 'true'\n")
        rundir = run.steps.place.rundir
        assert (named["version"], named["origins"]) == (2, {"check": "replanned"})
        assert run.state.plan.version == 2
        assert run.state.plan.digest == named["digest"]
        again = stored_plan(rundir, named)
        assert {step.id: step.origin for step in again.steps}["check"] == "replanned"
        third = run.append("- id: more\n  run: 'true'\n")
        assert (third["version"], third["origins"]) == (3, {"check": "replanned", "more": "replanned"})


def test_scripts_that_were_reviewed_are_not_read_again(tmp_path: Path) -> None:
    """What a step made of a script since does not get into the new version; scripts named first now are read now."""
    with going(tmp_path) as run:
        before = dict(run.state.named["scripts"])
        (tmp_path / "build.sh").write_text("echo other\n")
        (tmp_path / "ship.sh").unlink()
        (tmp_path / "check.sh").write_text("echo check\n")
        (tmp_path / "made.sh").write_text("echo made\n")
        named = run.append(NEW)
        assert {name: named["scripts"][name] for name in ("build.sh", "ship.sh")} == before
        assert set(named["scripts"]) == {*before, "check.sh"}
        assert set(named["uncovered"]) == {"made.sh"}
        assert run.steps.place.scripts == named["scripts"]
        kept = tmp_path / run.steps.place.rundir / "scripts"
        assert (kept / named["scripts"]["check.sh"]).read_text() == "echo check\n"


def test_gates_use_the_new_digest(tmp_path: Path) -> None:
    """An approval of the first version is not valid for the second."""
    with going(tmp_path) as run:
        assert run.gates is not None
        old = run.state.plan.digest
        named = run.append(NEW)
        assert named["digest"] != old
        assert run.gates._context.digest == named["digest"]
