"""Traces: what steps get in TRACEPARENT, what `planrun trace` sends, and what `--otel` sends while a run runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.agents.worlds import FIXING, agent, repository
from tests.conftest import LIMIT, Command
from tests.fakes.collector import Collector
from tests.fakes.messages import FakeMessages

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fakes.collector import Received

OUTER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
PLAN = """\
version: 1
name: demo
secrets: [TOKEN]
steps:
  - id: again
    tags: [test]
    run: echo "$TRACEPARENT ${TRACESTATE:-}"; test "$PLANRUN_ATTEMPT" = 2
    retries: {max: 1, backoff: {initial: 10ms}}
  - {id: many, matrix: {n: [1, 2]}, run: echo "$TRACEPARENT"}
  - {id: never, condition: 1 == 2, run: exit 0}
  - {id: bad, depends_on: [again], secrets: [TOKEN], run: "test -e mended || { echo $TOKEN >&2; exit 3; }"}
  - {id: behind, depends_on: [bad], run: exit 0}
finally:
  - {id: clean, run: exit 0}
"""
SLOW = (
    "version: 1\nname: slow\nsteps:\n  - {id: a, run: exit 0}\n  - {id: b, depends_on: [a], run: sleep 3}\n"
)


class Traced:
    """A run that failed, was mended and resumed in another trace: its spans as a collector got them."""

    def __init__(self, folder: Path) -> None:
        planrun = self.planrun = Command(folder)
        (folder / "plan.yml").write_text(PLAN, "utf-8")
        env = {"TOKEN": "sekret-of-mine", "TRACEPARENT": OUTER, "TRACESTATE": "vendor=1"}
        first = planrun("execute", "plan.yml", env=env)
        assert first.returncode == 1, first.stderr
        (folder / "mended").touch()
        other = OUTER.replace("0af7", "0bf7")
        second = planrun("resume", "last", env={**env, "TRACEPARENT": other})
        assert second.returncode == 0, second.stderr
        with Collector() as collector:
            self.sent = planrun("trace", "last", "--otlp", collector.url, "--file", "out.json")
        self.spans = collector.spans
        self.collector = collector
        self.document: dict[str, Any] = json.loads((folder / "out.json").read_text("utf-8"))

    def logged(self, step: str, n: int) -> str:
        """Return what an attempt printed."""
        (log,) = self.planrun.folder.glob(f".planrun/runs/*/logs/{step}/{n}.log")
        return log.read_text("utf-8").strip()

    def of(self, name: str, session: str = "RUN demo") -> Received:
        """Return the span of a step in the session of a name."""
        (found,) = [span for span in self.spans if span.name == name and self.session_of(span) == session]
        return found

    def session_of(self, span: Received) -> str:
        """Return the name of the session that a span is part of."""
        ids = {each.span: each for each in self.spans}
        while span.parent in ids:
            span = ids[span.parent]
        return span.name


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Traced:
    """The run and its spans."""
    return Traced(tmp_path_factory.mktemp("traced"))


def test_a_step_continues_the_trace_of_the_caller(traced: Traced) -> None:
    """TRACEPARENT of each attempt has the caller's trace and the attempt's own span; TRACESTATE is passed on."""
    carried, state = traced.logged("again", 2).split()
    version, trace, span, flags = carried.split("-")
    assert (version, trace, flags, state) == ("00", OUTER[3:35], "01", "vendor=1")
    assert span == traced.collector.named("again attempt 2").span
    assert span != traced.logged("again", 1).split()[0].split("-")[2]


def test_spans_have_the_parents_that_steps_have(traced: Traced) -> None:
    """Run, step, attempt; a member below its group; all in the caller's trace and below the caller's span."""
    parents = {span.name: traced.collector.parent_of(span) for span in traced.spans}
    assert {
        name: parents[name] for name in ("many", "many[n=1]", "many[n=1] attempt 1", "clean attempt 1")
    } == {
        "many": "RUN demo",
        "many[n=1]": "many",
        "many[n=1] attempt 1": "many[n=1]",
        "clean attempt 1": "clean",
    }
    assert {span.trace for span in traced.spans} == {OUTER[3:35]}
    assert {traced.collector.named(name).parent for name in ("RUN demo", "RESUME demo")} == {OUTER[36:52]}
    assert len({span.span for span in traced.spans}) == len(traced.spans)
    assert all(span.start <= span.end for span in traced.spans)


def test_retries_and_resumes_are_linked(traced: Traced) -> None:
    """An attempt links to the one before, a resume to the session before and to the trace of its own caller."""
    first, second = (traced.collector.named(f"again attempt {n}") for n in (1, 2))
    assert second.links == [first.span]
    resumed = traced.collector.named("RESUME demo")
    assert resumed.links == [traced.collector.named("RUN demo").span, OUTER[36:52]]
    assert resumed.linked_traces[1].startswith("0bf7")
    assert traced.of("bad", "RESUME demo").links == [traced.of("bad").span]
    assert [span.name for span in traced.spans if span.name == "again"] == ["again"]  # it did not run again


def test_results_follow_the_conventions(traced: Traced) -> None:
    """Kind, result, error and type of a run and its tasks are those of OpenTelemetry's conventions for CI/CD."""
    run, bad, never = (traced.of(name) for name in ("RUN demo", "bad", "never"))
    assert (run.kind, run.attributes["cicd.pipeline.result"], run.error) == (2, "failure", True)
    assert run.attributes["cicd.pipeline.action.name"] == "RUN"
    assert (bad.kind, bad.error, bad.attributes["cicd.pipeline.task.run.result"]) == (1, True, "failure")
    assert bad.attributes["error.type"]
    assert never.attributes["cicd.pipeline.task.run.result"] == "skip"
    assert traced.of("again").attributes["cicd.pipeline.task.type"] == "test"
    again = traced.collector.named("again attempt 1").attributes
    assert (again["process.exit.code"], again["planrun.attempt"]) == (1, 1)
    assert traced.collector.named("RESUME demo").attributes["cicd.pipeline.result"] == "success"
    resource = run.resource
    assert (resource["service.name"], resource["cicd.pipeline.name"]) == ("planrun", "demo")
    assert resource["cicd.pipeline.run.id"] == run.attributes["cicd.pipeline.run.id"]


def test_the_file_has_the_same_spans(traced: Traced) -> None:
    """`--file` writes OTLP in JSON with the ids, parents and names that the collector got; no secret is in it."""
    assert traced.sent.returncode == 0, traced.sent.stderr
    (resource,) = traced.document["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    written = {(span["spanId"], span.get("parentSpanId", ""), span["name"]) for span in scope["spans"]}
    assert written == {(span.span, span.parent, span.name) for span in traced.spans}
    assert "sekret" not in json.dumps(traced.document)
    assert "sekret" not in str([(span.attributes, span.name) for span in traced.spans])


@pytest.mark.parametrize("carried", ["00-00000000000000000000000000000000-b7ad6b7169203331-01", "hello", ""])
def test_an_invalid_traceparent_begins_a_new_trace(planrun: Command, carried: str) -> None:
    """A new trace is made, recorded, and the same for all steps; a TRACESTATE without a trace is dropped."""
    (planrun.folder / "plan.yml").write_text(
        "version: 1\nsteps:\n"
        '  - id: a\n    run: echo "$TRACEPARENT ${TRACESTATE-none}"\n'
        "  - {id: b, exec: [printenv, TRACEPARENT], depends_on: [a]}\n"
    )
    done = planrun("execute", "plan.yml", env={"TRACEPARENT": carried, "TRACESTATE": "vendor=1"})
    assert done.returncode == 0, done.stderr
    (ledger,) = planrun.folder.glob(".planrun/runs/*/ledger.jsonl")
    trace = json.loads(ledger.read_text("utf-8").splitlines()[0])["options"]["trace"]
    assert set(trace) == {"id"}
    assert int(trace["id"], 16)
    a, b = (next(planrun.folder.glob(f".planrun/runs/*/logs/{step}/1.log")).read_text() for step in "ab")
    assert a.split()[1] == "none"
    assert {a.split()[0][:36], b[:36]} == {f"00-{trace['id']}-"}


def test_an_agent_its_tools_and_its_model_calls_are_spans(planrun: Command) -> None:
    """Attempt, agent, calls of tools and of the model, by the conventions for generative AI, with tokens."""
    repository(planrun.folder)
    (planrun.folder / "plan.yml").write_text(agent(apply="never"))
    with FakeMessages(FIXING) as api:
        done = planrun("execute", "plan.yml", env=api.env)
    assert done.returncode == 0, done.stderr
    with Collector() as collector:
        assert planrun("trace", "--otlp", f"{collector.url}/v1/traces").returncode == 0
    (invoked,) = [span for span in collector.spans if span.name == "invoke_agent general"]
    assert collector.parent_of(invoked) == "fix attempt 1"
    chats = [span for span in collector.spans if span.name == "chat model-a"]
    assert len(chats) == 3
    assert {span.parent for span in chats} == {invoked.span}
    assert {span.kind for span in chats} == {3}
    facts = chats[0].attributes
    assert (facts["gen_ai.operation.name"], facts["gen_ai.provider.name"]) == ("chat", "anthropic")
    assert facts["gen_ai.usage.input_tokens"] > 100
    assert facts["gen_ai.usage.output_tokens"] > 0
    edit = collector.named("execute_tool edit")
    assert (edit.parent, edit.attributes["gen_ai.tool.name"]) == (invoked.span, "edit")
    assert all("planrun.result" in span.attributes for span in (invoked, edit, *chats))


def test_spans_are_sent_while_the_run_runs(planrun: Command) -> None:
    """The first step is at the collector before the second ends; of a killed run, too, each span comes once."""
    (planrun.folder / "plan.yml").write_text(SLOW.replace("sleep 3", "sleep 30"))
    with Collector() as collector:
        env = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_SERVICE_NAME": "ci"}
        words = [sys.executable, "-m", "planrun", "execute", "plan.yml", "--otel"]
        process = subprocess.Popen(words, cwd=planrun.folder, env=env, stderr=subprocess.DEVNULL)
        _wait_for(lambda: any(span.name == "a attempt 1" for span in collector.spans))
        assert not any(span.name == "b" for span in collector.spans)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=LIMIT)
        _wait_for(lambda: any(span.name == "RUN slow" for span in collector.spans))
        (planrun.folder / "plan.yml").write_text(SLOW.replace("sleep 3", "exit 0"))
        resumed = planrun("resume", "last", "--plan", "plan.yml", "--otel", env=env)
        assert resumed.returncode == 0, resumed.stderr
        _wait_for(lambda: any(span.name == "RESUME slow" for span in collector.spans))
    killed = collector.named("RUN slow")
    assert (killed.attributes["cicd.pipeline.result"], killed.error) == ("error", True)
    assert killed.resource["service.name"] == "ci"
    assert collector.named("b attempt 1").attributes["error.type"] == "lost"
    assert collector.named("RESUME slow").links == [killed.span]
    assert len({span.span for span in collector.spans}) == len(collector.spans)


@pytest.mark.parametrize("silent", [True, False])
def test_a_collector_that_does_not_answer_changes_nothing(planrun: Command, *, silent: bool) -> None:
    """The run completes with its exit code and a warning, whether the collector hangs or is not there."""
    (planrun.folder / "plan.yml").write_text("version: 1\nsteps:\n  - {id: a, run: exit 3}\n")
    with Collector(silent=silent) as collector:
        url = collector.url if silent else "http://127.0.0.1:1"
        done = planrun("execute", "plan.yml", "--otel", env={"OTEL_EXPORTER_OTLP_ENDPOINT": url})
    assert done.returncode == 1
    assert "planrun: warning: not all spans were sent" in done.stderr
    assert (planrun.folder / "planrun-out" / "junit.xml").exists()


def test_what_cannot_be_sent_is_refused_before_anything_runs(planrun: Command) -> None:
    """No address, or one that is no URL: exit code 2, and no run is made. `trace` reports what was not taken."""
    (planrun.folder / "plan.yml").write_text("version: 1\nsteps:\n  - {id: a, run: touch ran}\n")
    for env in ({}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4318"}):
        done = planrun("execute", "plan.yml", "--otel", env=env)
        assert (done.returncode, (planrun.folder / "ran").exists()) == (2, False), done.stderr
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in planrun("execute", "plan.yml", "--otel").stderr
    assert planrun("execute", "plan.yml").returncode == 0
    refused = planrun("trace", "--otlp", "http://127.0.0.1:1", env={"OTEL_EXPORTER_OTLP_TIMEOUT": "1"})
    assert refused.returncode == 1
    assert "3 of 3 spans were not sent to http://127.0.0.1:1/v1/traces" in refused.stderr


def _wait_for(happens: Any) -> None:
    until = time.monotonic() + LIMIT
    while not happens():
        assert time.monotonic() < until
        time.sleep(0.05)
