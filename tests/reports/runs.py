"""Runs for the report tests: states that are folded from real events, and the logs that belong to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planrun.model import events as ev
from planrun.model.plan import Edge, Plan, Retry, Step
from planrun.model.state import RunState
from planrun.plan.kinds.command import Run
from planrun.plan.kinds.question import Ask, Decide

if TYPE_CHECKING:
    from pathlib import Path

DIGEST = "5f16a3c5" * 8
HEAD = "ab12cd34" * 8
RUN = "20260131-093000-1f2e3d"


def step(name: str, *needs: str, **fields: Any) -> Step:
    """Return a `run` step; `needs` become `ok` edges unless written as `kind:id`."""
    edges = []
    for need in needs:
        kind, colon, on = need.partition(":")
        edges.append(Edge(on=on, kind=kind) if colon else Edge(on=need, kind="ok"))  # type: ignore[arg-type]
    return Step(id=name, action=Run(script="true"), kind="run", edges=tuple(edges), **fields)


def asking(name: str, *needs: str, **fields: Any) -> Step:
    """Return a step that asks."""
    fields = {"action": Ask(question="Publish?"), "kind": "ask", "risk": "read-only", **fields}
    return step(name, *needs).but(**fields)


class Story:
    """A run made event by event; the clock advances by what each attempt takes."""

    def __init__(
        self,
        rundir: Path,
        *steps: Step,
        options: dict[str, Any] | None = None,
        begun: bool = True,
        **plan: Any,
    ) -> None:
        fields: dict[str, Any] = {"name": "release", "file": "plans/release.yml", "digest": DIGEST} | plan
        self.plan = Plan(steps=steps, **fields)
        self.state = RunState(self.plan)
        self.rundir = rundir
        self.clock = 0.0
        self.log_path = ""  # of the next attempts, where the step's id is no file name
        self.events: list[ev.Event] = []
        header = {"name": self.plan.name, "version": 1, "digest": DIGEST, "file": self.plan.file}
        self.add(
            ev.RunStarted(
                at=self.at,
                run=RUN,
                planrun="1.0.0",
                plan=header,
                params={},
                context={"ci": False, "ref": "", "sha": "", "event": ""},
                options={"jobs": 2, "schedule": "dag"} | (options or {}),
                pid=4242,
                host="runner-1",
            )
        )
        for status in ("awaiting_approval", *(("approved", "executing") if begun else ())):
            self.add(ev.PlanMoved(at=self.at, status=status))

    @property
    def at(self) -> str:
        """The present moment as it stands in events."""
        whole = int(self.clock)
        hours, minutes, seconds = 9 + whole // 3600, whole // 60 % 60, whole % 60
        return f"2026-01-31T{hours:02d}:{minutes:02d}:{seconds:02d}.{round((self.clock - whole) * 1000):03d}Z"

    def add(self, event: ev.Event) -> None:
        """Fold an event."""
        self.events.append(event)
        self.state.apply(event)

    def start(self, name: str, log: bytes | None = None) -> int:
        """Start the next attempt of a step, writing its log; returns its number."""
        n = len(self.state.steps[name].attempts) + 1
        path = self.log_path or f"logs/{name}/{n}.log"
        file = self.rundir / path
        if log is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(log)
        self.add(ev.AttemptStarted(at=self.at, step=name, n=n, log=path))
        return n

    def run(
        self, name: str, status: str = "completed", took: float = 0.5, log: bytes = b"", **end: Any
    ) -> Story:
        """Run one attempt of a step to its end; `status` `waiting` is a failure that is repeated."""
        n = self.start(name, log)
        self.clock += took
        failed = status in ("failed", "waiting")
        usual = {"reason": "exit", "exit_code": 1} if failed else {"reason": status, "exit_code": 0}
        end = {**usual, **end}
        if failed and "error" not in end:
            end["error"] = {"class": "unknown", "rule": "none", "message": f"exit status {end['exit_code']}"}
        if status == "completed":
            end.setdefault("step_reason", "flaky" if n > 1 else "ran")
        self.add(
            ev.AttemptEnded(
                at=self.at,
                step=name,
                n=n,
                status="failed" if status == "waiting" else status,
                step_status=status,
                duration=took,
                log_bytes=len(log),
                **end,
            )
        )
        return self

    def move(self, name: str, status: str, reason: str, message: str = "") -> Story:
        """End a step without an attempt."""
        self.add(ev.StepMoved(at=self.at, step=name, status=status, reason=reason, message=message))
        return self

    def ask(self, name: str, kind: str = "approval", **gate: Any) -> Story:
        """Open the gate of a step, or with an empty name that of the plan."""
        self.add(ev.GateOpened(at=self.at, step=name, kind=kind, **gate))
        return self

    def answer(self, name: str, answer: Any, via: str = "command", **how: Any) -> Story:
        """Answer a gate."""
        self.add(ev.GateAnswered(at=self.at, step=name, answer=answer, via=via, **how))
        return self

    def rest(self) -> RunState:
        """Stop the run until its gates are answered."""
        self.ending("gates")
        self.add(ev.PlanMoved(at=self.at, status="paused"))
        return self.state

    def resume(self, *rerun: str, **options: Any) -> Story:
        """Let the ended run go on with these steps."""
        started = self.state.started
        assert started is not None
        fields = {name: getattr(started, name) for name in ("planrun", "plan", "params", "context", "host")}
        fields |= {"options": started.options | options, "pid": 4243, "lost": ()}
        self.add(ev.RunResumed(at=self.at, rerun=rerun, **fields))
        self.add(ev.PlanMoved(at=self.at, status="executing"))
        return self

    def ending(self, why: str, **how: Any) -> Story:
        """End the run early."""
        self.add(ev.RunEnding(at=self.at, why=why, **how))
        return self

    def cancel(self, name: str) -> Story:
        """End the attempt of a step that is running, as a signal does."""
        return self._stop(name, "cancelled", "cancelled")

    def run_out(self, name: str) -> Story:
        """End the attempt of a step that is running, as a deadline does."""
        return self._stop(name, "failed", "timeout")

    def _stop(self, name: str, status: str, reason: str) -> Story:
        n = len(self.state.steps[name].attempts)
        self.add(
            ev.AttemptEnded(at=self.at, step=name, n=n, status=status, step_status=status, reason=reason)
        )
        return self

    def end(self, exit_code: int = 0) -> RunState:
        """End the run with the verdict of its steps."""
        verdict = self.state.verdict()
        self.add(
            ev.RunEnded(
                at=self.at,
                status="completed" if verdict == "partial" else verdict,
                verdict=verdict,
                exit_code=exit_code,
                duration=self.clock,
                summary=self.state.summary(),
                events=len(self.events) + 1,
            )
        )
        return self.state


def waiting_run(rundir: Path) -> Story:
    """Return a run that waits for an approval, an answer and a decision; another gate was answered, one step denied."""
    policy = {
        "plan": {"auto_approve": "medium", "llm_auto_approve": "low", "rules": 2, "ask_for": "steps"},
        "option": "",
        "ceilings": [
            {
                "file": "ci/policy.yml",
                "sha256": "ab12" * 16,
                "auto_approve": "high",
                "llm_auto_approve": "none",
                "rules": 1,
                "ask_for": "steps",
            }
        ],
        "told": "auto-approve medium, model-written low, 2 rules (plans/release.yml:7); "
        "at most high, model-written none, 1 rule (ci/policy.yml)",
    }
    high = {"risk": "high", "risk_reason": "`git push`: publishes", "effects": ("publishes",)}
    story = Story(
        rundir,
        step(
            "test", line=10, risk="medium", risk_reason="`make`: runs code of the project", effects=("code",)
        ),
        step("clean", "test", line=14, risk="medium", effects=("destroys",)),
        step("publish", "test", title="Publish | it", line=18, **high),
        step("notes", "test", line=22, **high),
        step("wipe", line=26, risk="high", effects=("destroys", "unknown")),
        asking("really", "test", line=30),
        asking("where", line=34, action=Decide(question="Where to?", options=()), kind="decide"),
        step("after", "publish", line=38, risk="low", effects=("writes",)),
        options={"policy": policy},
        title="Release & ship",
    )
    story.run("test", took=2.0, log=b"2 passed\n")
    why = "its risk is high (`git push`: publishes), and auto_approve is medium (plans/release.yml:7)"
    story.ask("publish", risk="high", rule="plan:auto_approve", reason=why)
    story.ask("notes", risk="high", rule="plan:auto_approve", reason=why)
    story.answer("notes", "approved", "approval", by="Ann", approval="rel-7")
    story.add(
        ev.AttemptStarted(
            at=story.at, step="notes", n=1, risk="high", rule="approval:rel-7", log="logs/notes/1.log"
        )
    )
    story.add(
        ev.AttemptEnded(
            at=story.at,
            step="notes",
            n=1,
            status="completed",
            step_status="completed",
            reason="ran",
            exit_code=0,
        )
    )
    story.add(
        ev.StepMoved(
            at=story.at,
            step="wipe",
            status="failed",
            reason="denied",
            message="rule 1 (ci/policy.yml:3) denies it; its risk is high",
            rule="ceiling:rules.1",
        )
    )
    story.ask("really", "ask", question="Publish <1.2> to @all?", header="Last look")
    story.ask(
        "where",
        "decide",
        question="Where to?",
        options=(
            {"label": "Staging", "value": "staging", "description": "nobody sees it"},
            {"label": "prod", "value": "prod"},
        ),
        default=("staging",),
        until="2026-01-31T10:00:00.000Z",
    )
    return story


def mixed_run(rundir: Path) -> RunState:
    """Return the end of a run with one of everything."""
    return mixed_story(rundir).state


def mixed_story(rundir: Path) -> Story:
    """Return a run with one of everything: passed, flaky, failed, timed out, repeated, skipped, blocked."""
    story = Story(
        rundir,
        step("build", title="Build the wheel", line=10, col=5, risk="low", effects=("writes",)),
        step("lint", line=14, on_failure="continue"),
        step("test", "build", title="Unit tests", line=18, retries=Retry(max=2)),
        step(
            "fetch",
            line=22,
            risk="medium",
            risk_reason="`curl`: fetches over the network",
            effects=("network",),
        ),
        step("integration", "build", line=26, retries=Retry(max=1), title="Tests | with <tricks> & @all #1"),
        step("deploy", "integration", line=30),
        step("notify", "done:integration", line=34, condition_text="params.target == 'prod'"),
        step("docs", line=38),
        step("collect", line=42, section="finally"),
        title="Release & ship",
    )
    story.run(
        "build", took=12.3, log=b"\x1b[32mok\x1b[0m built\r\nbye\n", outputs={"wheel": "dist/a.whl", "n": 3}
    )
    story.run("lint", "failed", 0.2, b"E501 line too long\n")
    story.run("test", "waiting", 1.0, b"connection reset\n", delay=1.0)
    story.run("test", took=2.0, log=b"2 passed\n")
    timeout = {"class": "transient", "rule": "reason:timeout", "message": "ran longer than 30.0s"}
    story.run("fetch", "failed", 30.0, b"10%\r50%\r", reason="timeout", exit_code=143, error=timeout)
    story.run("integration", "waiting", 3.0, b"first try\n::error::no\n", exit_code=2, delay=1.0)
    story.run("integration", "failed", 3.5, b"second ```` try \xff\n", exit_code=3)
    story.move("deploy", "blocked", "upstream", "integration failed (exit)")
    story.move("notify", "skipped", "condition", "params.target == 'prod'")
    story.move("docs", "skipped", "not_selected")
    story.run("collect", took=0.1)
    story.end(1)
    return story
