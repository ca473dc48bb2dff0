"""Replanning by a model during a run: the effect of its answers, and the records."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from planrun.errors import Denied, InvalidInput
from planrun.model import events as ev
from planrun.model.call import Answer
from planrun.model.planning import lineage
from planrun.plan.load import load
from planrun.reports.gates import commands
from tests.app.replans import PLAN, REPAIRED, Shop, draft, ends, newest, planrun, step
from tests.fakes.messages import FakeMessages

DONE = {
    "1": "completed(ran)",
    "2": "completed(ran)",
    "3": "failed(exit)",
    "4": "skipped(replaced_by_replan)",
    "5": "completed(ran)",
    "7": "completed(ran)",
    "8": "completed(ran)",
    "6": "completed(ran)",
}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A shop with a scripted model."""
    return Shop(tmp_path, monkeypatch)


def test_a_fatal_failure_is_planned_anew(shop: Shop) -> None:
    """New steps take the next numbers, run in the place of the others, and the run is partial with exit code 0."""
    result = shop.run(REPAIRED)
    assert (result.exit_code, result.state.verdict()) == (0, "partial")
    assert ends(result.state) == DONE
    assert shop.ran == ["1", "2", "3", "7", "8", "5", "6"]
    assert result.state.plan.version == 2
    assert newest(shop.folder)[1].plan.digest == result.state.plan.digest
    assert shop.model.closed


def test_the_new_version_is_the_old_one_and_more(shop: Shop) -> None:
    """Not one byte of what was reviewed changes, and the digest is another one."""
    result = shop.run(REPAIRED)
    rundir = newest(shop.folder)[0]
    with open(f"{rundir}/plan.v2.yml", encoding="utf-8") as file:
        second = file.read()
    before, _, after = PLAN.partition("finally:")
    assert second.startswith(before)
    assert second.endswith(after)
    started = result.state.started
    assert started is not None
    assert started.plan["digest"] != result.state.plan.digest


def test_origins_are_those_of_a_model(shop: Shop) -> None:
    """New steps and what comes after them count as written by a model, in the ledger, too."""
    shop.run(REPAIRED)
    state = newest(shop.folder)[1]
    origins = {name: found.step.origin for name, found in state.steps.items()}
    assert {name for name, origin in origins.items() if origin == "replanned"} == {"5", "7", "8"}


def test_what_the_model_is_sent(shop: Shop) -> None:
    """Goal, policy, statuses, the classified error, and the end of the log as data that cannot end its block."""
    shop.run(REPAIRED)
    request = shop.model.requests[0]
    prompt = request.messages[0]["content"]
    assert "The shop is packed." in prompt
    assert "model-written ones up to low" in prompt
    assert '"id": "3", "status": "failed"' in prompt
    assert 'step "3" failed: class fatal, rule exit:EX_NOPERM' in prompt
    assert "Permission denied" in prompt.partition("<untrusted-data")[2]
    assert "Ids of new steps are numbers from 7 on" in prompt
    assert request.schema is not None
    assert shop.model.requests[0].system == shop.model.requests[-1].system


@pytest.mark.parametrize(
    ("wrong", "path", "rule"),
    [
        (draft(step("7", "true", replaces=["4"])), "steps", "must_replace"),
        (draft(step("3", "true", replaces=["3"])), "steps[0].id", "id_taken"),
        (draft(step("8", "true", replaces=["3"]), keep=["4", "5"]), "", ""),
        (draft(step("7", "true", replaces=["3", "1"])), "steps[0].replaces[1]", "not_replaceable"),
        (draft(step("7", "true", replaces=["3"]), keep=["2"]), "keep[0]", "not_pending"),
        (draft(step("7", "true", replaces=["3", "4"]), keep=["4"]), "keep[0]", "kept_and_replaced"),
        (draft(step("7", "true", replaces=["3"], depends_on=["9"])), "steps[0].depends_on[0]", "depends_on"),
        (draft(step("7", "true", replaces=["3"], depends_on=["3"])), "steps[0].depends_on[0]", "depends_on"),
        (draft(step("7", "true", replaces=["3"], depends_on=["7"])), "steps[0].depends_on[0]", "depends_on"),
        (draft(step("7", "true", replaces=["3"], depends_on=["5"]), keep=["5"]), "steps", "E204"),
        (draft(step("7", "true", replaces=["3"], condition="1 +")), "steps[0]", "E210"),
        (draft(step("7", " ", replaces=["3"])), "steps[0].run", "required"),
    ],
)
def test_a_wrong_draft_is_sent_back_with_its_faults(shop: Shop, wrong: Any, path: str, rule: str) -> None:
    """The second request names the place and the rule; the repaired answer is accepted."""
    result = shop.run(wrong, REPAIRED)
    assert result.exit_code == 0
    if rule:
        expected = shop.model.requests[1].messages[-1]["content"]
        assert f'"path": "{path}"' in expected
        assert f'"rule": "{rule}"' in expected
    else:
        assert len(shop.model.requests) == 1


def test_references_follow_the_numbers(shop: Shop) -> None:
    """A model may name its steps as it likes; planrun numbers them, and what refers to them refers to the numbers."""
    answer = draft(
        step("make", 'echo size=3 >> "$PLANRUN_OUTPUT"', replaces=["3"], outputs=["size"]),
        step(
            "check",
            "echo ${{ steps.make.outputs.size }} >> ran",
            replaces=["4"],
            depends_on=["make"],
            condition="steps.make.outputs.size == '3'",
        ),
    )
    result = shop.run(answer)
    assert result.exit_code == 1  # nothing that was reviewed checks it
    assert ends(result.state)["8"] == "completed(ran)"
    assert ends(result.state)["5"] == "skipped(replaced_by_replan)"  # not in `keep`
    assert result.state.steps["8"].step.replaces == ("4", "5")
    assert shop.ran == ["1", "2", "3", "3", "6"]


def test_a_draft_is_repaired_twice_and_no_more(shop: Shop) -> None:
    """After three useless answers the failure counts, and what was wrong is on record."""
    wrong = draft(step("7", "true", replaces=["1"]))
    result = shop.run(wrong, wrong, wrong)
    assert result.exit_code == 1
    planning = result.state.planning
    assert planning is not None
    assert [(event.outcome, event.rounds) for event in planning.ended] == [("invalid", 2)]
    assert any("steps[0].replaces[0]" in problem for problem in planning.ended[0].problems)
    assert ends(result.state)["4"] == "blocked(upstream)"


def test_what_needs_an_approval_waits_at_its_gate(shop: Shop) -> None:
    """A new step above the level for models waits, and the run rests with exit code 5."""
    result = shop.run(draft(step("7", "curl https://example.org", replaces=["3"]), keep=["4", "5"]))
    assert result.exit_code == 5
    assert result.state.steps["7"].at_gate
    assert shop.ran == ["1", "2", "3"]


def test_a_plan_that_a_model_wrote_is_no_file_that_changed(shop: Shop) -> None:
    """While a new step waits, no file is named that lacks the step, and a resume does not call the file changed."""
    waits = draft(step("7", "curl -o f https://example.org", replaces=["3"]), keep=["4", "5"])
    state = shop.run(waits).state
    opened = next(found.gate.opened for found in state.steps.values() if found.gate and found.gate.opened)
    assert [row.split()[1] for row in commands(state, opened)] == ["approve", "reject"]
    assert not [row for row in commands(state, opened) if "plan.yml" in row]
    assert "has changed" not in planrun(shop.folder, "resume", "last").stderr
    with open(shop.folder / "plan.yml", "a", encoding="utf-8") as file:
        file.write("# more\n")
    assert "plan.yml has changed" in planrun(shop.folder, "resume", "last").stderr


def test_above_a_ceiling_nothing_runs(shop: Shop) -> None:
    """A step that a ceiling denies ends the planning, and the run with exit code 3; nothing is repaired."""
    (shop.folder / "ceiling.yml").write_text("auto_approve: high\nllm_auto_approve: low\n", encoding="utf-8")
    answer = draft(step("7", "rm -rf build ~/x", replaces=["3"]), keep=["4", "5"])
    result = shop.run(answer, policy="ceiling.yml")
    assert result.exit_code == 3
    planning = result.state.planning
    assert planning is not None
    assert planning.ended[0].outcome == "denied"
    assert [refusal["step"] for refusal in planning.ended[0].refusals] == ["7"]
    assert "7" not in result.state.steps
    assert len(shop.model.requests) == 1
    assert shop.ran == ["1", "2", "3", "6"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("llm: {model: model-a}", "llm: {model: model-a, replan_on_failure: never}"),
        ("llm: {model: model-a}", "llm: {model: model-a, enabled: false}"),
        ("llm: {model: model-a}", "llm: {model: model-a}\nlimits: {max_replans: 0}"),
        ("echo Permission denied; exit 77", "exit 1"),
        ("echo Permission denied; exit 77", "echo Permission denied >&2; exit 1"),  # only a text says fatal
        ("depends_on: [2], run: echo 3", "depends_on: [2], on_failure: skip, run: echo 3"),
        ("depends_on: [2], run: echo 3", "depends_on: [2], on_failure: block, run: echo 3"),
        ("llm: {model: model-a}", "llm: {model: model-a}\ndefaults: {on_failure: block}"),
    ],
)
def test_when_no_model_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    """Where the plan does not want it, a failure is a failure."""
    assert old in PLAN
    shop = Shop(tmp_path, monkeypatch, PLAN.replace(old, new))
    result = shop.run()
    assert result.state.planning is None
    assert shop.ran == ["1", "2", "3", "6"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("llm: {model: model-a}", "llm: {model: model-a, replan_on_failure: any}"),
        ("depends_on: [2], run: echo 3", "depends_on: [2], on_failure: replan, run: echo 3"),
    ],
)
def test_when_any_failure_is_planned_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    """The plan, or the step itself, may say so for failures that are not fatal."""
    text = PLAN.replace("echo Permission denied; exit 77", "exit 1").replace(old, new)
    assert Shop(tmp_path, monkeypatch, text).run(REPAIRED).exit_code == 0


def test_three_plannings_are_the_most(shop: Shop) -> None:
    """The fourth failure of a replacement is a failure."""
    fails = "echo Permission denied; exit 77"
    answers = [
        draft(step(str(n), fails, replaces=[str(n - 1) if n > 7 else "3"]), keep=["4", "5"])
        for n in (7, 8, 9)
    ]
    result = shop.run(*answers)
    assert result.exit_code == 1
    assert result.state.plan.version == 4
    planning = result.state.planning
    assert planning is not None
    assert [event.outcome for event in planning.ended] == ["revised"] * 3
    assert ends(result.state)["4"] == "blocked(upstream)"


def test_no_answer_is_a_failure(shop: Shop) -> None:
    """What a service says instead of an answer is on record, and nothing runs."""
    result = shop.run(Answer(ending="overloaded", message="the service is overloaded"))
    assert result.exit_code == 1
    planning = result.state.planning
    assert planning is not None
    assert planning.ended[0].outcome == "failed"
    assert planning.ended[0].message.startswith(
        "the service is overloaded; "
    )  # and what can be done about it


def test_a_model_may_say_that_there_is_no_way(shop: Shop) -> None:
    """`infeasible` ends the planning, with its reason."""
    answer = {"analysis": "a", "infeasible": "The key is missing.", "keep": [], "steps": []}
    result = shop.run(answer)
    planning = result.state.planning
    assert planning is not None
    assert (planning.ended[0].outcome, planning.ended[0].message) == ("infeasible", "The key is missing.")
    assert result.exit_code == 1


def test_credentials_are_in_no_record(shop: Shop) -> None:
    """The key of the model is neither in the run's folder nor in the reports, also when a step prints it."""
    answer = draft(
        step(
            "7",
            "echo fake-key-0123456789abcdef >> log; echo fake-key-0123456789abcdef",
            replaces=["3", "4", "5"],
        )
    )
    assert shop.run(answer).exit_code == 1  # nothing that was reviewed checks it
    for folder in (".planrun/runs", "planrun-out"):
        for path in (shop.folder / folder).rglob("*"):
            if path.is_file() and not path.name.startswith("plan"):
                assert b"fake-key" not in path.read_bytes(), path


def test_without_credentials_the_run_says_so(tmp_path: Path) -> None:
    """A note at the start, and the failure is a failure."""
    (tmp_path / "plan.yml").write_text(PLAN, encoding="utf-8")
    done = planrun(tmp_path, "execute", "plan.yml")
    assert done.returncode == 1
    assert "replan: no model can replan: there are no credentials" in done.stderr


def test_the_whole_way_through_a_real_service(tmp_path: Path) -> None:
    """Command line, model process, HTTP, ledger, verify: nothing stands in for anything but the service itself."""
    (tmp_path / "plan.yml").write_text(PLAN, encoding="utf-8")
    answer = REPAIRED
    with FakeMessages([answer]) as api:
        done = planrun(tmp_path, "execute", "plan.yml", **api.env)
    assert done.returncode == 0, done.stderr
    assert "replan: model-a may replan up to 3 times, after a fatal failure" in done.stderr
    assert ends(newest(tmp_path)[1]) == DONE
    assert api.journal.verdicts() == []
    assert planrun(tmp_path, "verify", "last").returncode == 0


# A replanned run continues after a kill or a pause.


def cut(shop: Shop, upto: type[ev.Event] | str, number: int = 1) -> None:
    """Cut the newest ledger off behind an event of a type, as a kill would have."""
    rundir = Path(newest(shop.folder)[0])
    ledger = rundir / "ledger.jsonl"
    lines = ledger.read_text(encoding="utf-8").splitlines(keepends=True)
    wanted = upto if isinstance(upto, str) else ev.NAMES[upto]
    at = [n for n, row in enumerate(lines) if f'"type":"{wanted}"' in row][number - 1]
    ledger.write_text("".join(lines[: at + 1]), encoding="utf-8")
    (shop.folder / "ran").unlink()


@pytest.mark.parametrize(
    ("upto", "again"),
    [
        (ev.PlanningStarted, ["3", "7", "8", "5", "6"]),
        (ev.ModelAsked, ["3", "7", "8", "5", "6"]),
        (ev.ModelAnswered, ["3", "7", "8", "5", "6"]),
        (ev.PlanningEnded, ["7", "8", "5", "6"]),
        (ev.StepMoved, ["7", "8", "5", "6"]),
    ],
)
def test_a_run_continues_after_a_kill_at_any_event(
    shop: Shop, upto: type[ev.Event], again: list[str]
) -> None:
    """A failed step runs again until there is a new plan, then never; all else that finished stays finished."""
    shop.run(REPAIRED)
    cut(shop, upto)
    result = shop.resume(REPAIRED)
    assert result is not None
    assert (result.exit_code, ends(result.state)) == (0, DONE)
    assert shop.ran == again
    assert result.state.planning is not None
    assert result.state.planning.going is None
    origins = {name for name, found in result.state.steps.items() if found.step.origin == "replanned"}
    assert origins == {"5", "7", "8"}
    assert planrun(shop.folder, "verify", "last").returncode == 0


def test_a_resume_of_a_replanned_run_runs_what_failed_of_it(shop: Shop) -> None:
    """Failed steps of the new plan run again; replaced steps do not, whatever their result."""
    broken = draft(
        step("7", "echo 7 >> ran; test -e mended", replaces=["3"]),
        step("8", "echo 8 >> ran", replaces=["4"], depends_on=["7"]),
        keep=["5"],
    )
    assert shop.run(broken).exit_code == 1
    (shop.folder / "mended").touch()
    (shop.folder / "ran").unlink()
    result = shop.resume()
    assert result is not None
    assert (result.exit_code, ends(result.state)) == (0, {**DONE, "7": "completed(ran)"})
    assert shop.ran == ["7", "8", "5", "6"]
    assert shop.resume() is None


def test_a_replaced_step_is_not_retried(shop: Shop) -> None:
    """`retry` says by what it was replaced."""
    shop.run(REPAIRED)
    with pytest.raises(InvalidInput, match='"3" was replaced by 7, and cannot run again'):
        shop.resume(steps=("3",))


def test_who_resumes_with_the_text_of_a_model_has_reviewed_it(shop: Shop) -> None:
    """The same text, named by a person, is a version of its own whose steps count as reviewed."""
    waits = draft(step("7", "curl -o f https://example.org; echo 7 >> ran", replaces=["3"]), keep=["4", "5"])
    assert shop.run(waits).exit_code == 5
    text = Path(newest(shop.folder)[0], "plan.v2.yml").read_text(encoding="utf-8")
    (shop.folder / "reviewed.yml").write_text(
        text.replace("curl -o f https://example.org", "true"), encoding="utf-8"
    )
    result = shop.resume(plan=load("reviewed.yml", cache=False))
    assert result is not None
    assert result.exit_code == 0
    assert {found.step.origin for found in result.state.steps.values()} == {"file"}
    assert ends(result.state)["4"] == "completed(ran)"
    same = Shop(shop.folder, shop.patch)
    assert same.run(waits).exit_code == 5
    (shop.folder / "same.yml").write_text(text, encoding="utf-8")
    settled = same.resume(plan=load("same.yml", cache=False))
    assert settled is not None
    assert settled.state.plan.version == 3
    assert not settled.state.steps["7"].at_gate


def test_a_used_up_budget_pauses_the_run_until_there_is_more(shop: Shop) -> None:
    """Nothing is asked, the run rests with exit code 5, and a resume with more of it goes through."""
    result = shop.run(REPAIRED, max_tokens=500)
    assert result.exit_code == 5
    assert shop.model.requests == []
    assert result.state.planning is not None
    assert result.state.planning.ended[0].outcome == "budget"
    again = shop.resume(REPAIRED, max_tokens=100000)
    assert again is not None
    assert (again.exit_code, ends(again.state)) == (0, DONE)
    assert shop.ran == ["1", "2", "3", "3", "7", "8", "5", "6"]


def test_a_selection_takes_what_replaces_its_steps(shop: Shop) -> None:
    """New steps run under --only, and so they do after a resume."""
    result = shop.run({**REPAIRED, "keep": []}, until=("4",))
    assert result.exit_code == 1  # nothing that was reviewed checks it
    assert ends(result.state)["5"] == "skipped(replaced_by_replan)"
    assert shop.ran == ["1", "2", "3", "7", "8", "6"]
    cut(shop, ev.PlanningEnded)
    again = shop.resume()
    assert again is not None
    assert shop.ran == ["7", "8", "6"]


# Replanning on request.


@pytest.fixture
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A shop whose plan asks for no planning by itself."""
    text = PLAN.replace("model: model-a", "model: model-a, replan_on_failure: never")
    return Shop(tmp_path, monkeypatch, text)


@pytest.mark.shows("GP-11", "GP-51")
def test_a_failed_run_is_replanned_on_request(plain: Shop) -> None:
    """The new version continues: failed, approved, executing; the failed step does not run again."""
    assert plain.run().exit_code == 1
    (plain.folder / "ran").unlink()
    result = plain.resume(REPAIRED, replan=())
    assert result is not None
    assert (result.exit_code, ends(result.state)) == (0, DONE)
    assert plain.ran == ["7", "8", "5", "6"]
    rows = Path(newest(plain.folder)[0], "ledger.jsonl").read_text(encoding="utf-8").splitlines()
    kinds = [json.loads(row)["type"] for row in rows]
    later = kinds[kinds.index("run_resumed") :]
    assert later[:3] == ["run_resumed", "plan_moved", "planning_started"]
    assert planrun(plain.folder, "verify", "last").returncode == 0


def test_a_failed_replanning_leaves_the_failure(plain: Shop) -> None:
    """What waited for it is blocked as before."""
    plain.run()
    answer = {"analysis": "a", "infeasible": "There is no way.", "keep": [], "steps": []}
    result = plain.resume(answer, replan=("3",))
    assert result is not None
    assert result.exit_code == 1
    assert ends(result.state)["4"] == "blocked(upstream)"


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (("2",), 'the step "2" has not failed: it is completed'),
        (("6",), 'the step "6" has not failed'),
        (("33",), 'no step "33" in this run; did you mean "3"'),
    ],
)
def test_only_failures_are_planned_anew(plain: Shop, steps: tuple[str, ...], expected: str) -> None:
    """The name of another step is refused with the reason, and nothing is recorded."""
    plain.run()
    before = Path(newest(plain.folder)[0], "ledger.jsonl").read_bytes()
    with pytest.raises(InvalidInput, match=re.escape(expected)):
        plain.resume(REPAIRED, replan=steps)
    assert Path(newest(plain.folder)[0], "ledger.jsonl").read_bytes() == before


def test_nothing_is_planned_anew_after_a_refusal(shop: Shop) -> None:
    """What a ceiling forbade is final for the run."""
    (shop.folder / "ceiling.yml").write_text("auto_approve: high\nllm_auto_approve: low\n", encoding="utf-8")
    shop.run(draft(step("7", "rm -rf ~/x", replaces=["3"])), policy="ceiling.yml")
    with pytest.raises(Denied, match="is not asked again"):
        shop.resume(REPAIRED, replan=())


def test_a_proposal_is_a_file_for_review(tmp_path: Path) -> None:
    """Text and difference are written, nothing runs or is recorded; a resume uses the reviewed file."""
    text = PLAN.replace("model: model-a", "model: model-a, replan_on_failure: never")
    (tmp_path / "plan.yml").write_text(text, encoding="utf-8")
    answer = REPAIRED
    with FakeMessages([answer]) as api:
        assert planrun(tmp_path, "execute", "plan.yml", **api.env).returncode == 1
        ledger = Path(newest(tmp_path)[0], "ledger.jsonl")
        before = ledger.read_bytes()
        done = planrun(tmp_path, "replan", "last", "--propose", **api.env)
    assert done.returncode == 0, done.stderr
    assert ledger.read_bytes() == before
    assert (tmp_path / "plan.v2.yml").read_text("utf-8").startswith(text.partition("finally")[0])
    difference = (tmp_path / "plan.v2.yml.diff").read_text("utf-8")
    assert "+    title: Generate by hand" in difference
    assert not [row for row in difference.splitlines() if row.startswith("-") and not row.startswith("---")]
    again = planrun(tmp_path, "replan", "last", "--propose", **api.env)
    # No model was asked: the service is gone.
    assert (again.returncode, "exists already" in again.stderr) == (2, True)
    (tmp_path / "ran").unlink()
    resumed = planrun(tmp_path, "resume", "last", "--plan", "plan.v2.yml")
    assert resumed.returncode == 0, resumed.stderr
    assert (tmp_path / "ran").read_text().split() == ["7", "8", "5", "6"]
    state = newest(tmp_path)[1]
    assert {found.step.origin for found in state.steps.values()} == {"file"}
    assert lineage(state.plan) == {"7": "3'", "8": "4'"}


def test_a_proposal_for_programs_is_one_document(tmp_path: Path) -> None:
    """--json names outcome and files; an existing file is reported before any paid request."""
    text = PLAN.replace("model: model-a", "model: model-a, replan_on_failure: never")
    (tmp_path / "plan.yml").write_text(text, encoding="utf-8")
    with FakeMessages([REPAIRED, "no plan", "no plan", "no plan"]) as api:
        planrun(tmp_path, "execute", "plan.yml", **api.env)
        propose = ("replan", "last", "--propose", "--json", "-o", "next.yml")
        expected = json.loads(planrun(tmp_path, *propose, **api.env).stdout)
        assert (expected["outcome"], expected["version"]) == ("accepted", 2)
        assert (expected["file"], expected["difference"]) == ("next.yml", "next.yml.diff")
        again = planrun(tmp_path, *propose, **api.env)
        assert (again.returncode, again.stdout) == (2, "")
        assert len(api.journal.entries) == 1
        failed = planrun(tmp_path, *propose[:-1], "other.yml", **api.env)
    assert failed.returncode == 1
    expected = json.loads(failed.stdout)
    assert (expected["outcome"], expected["file"], expected["faults"][0]["path"]) == ("invalid", None, "$")


def test_a_reviewed_step_that_is_denied_for_what_comes_before_it_says_so(shop: Shop) -> None:
    """A rule about model-written steps covers kept steps behind them; the refusal names which it was."""
    (shop.folder / "ceiling.yml").write_text(
        "rules: [{deny: {origin: replanned, step: '5'}}]\n", encoding="utf-8"
    )
    result = shop.run(REPAIRED, policy="ceiling.yml")
    assert result.exit_code == 3
    planning = result.state.planning
    assert planning is not None
    reasons = {each["step"]: each["reason"] for each in planning.ended[0].refusals}
    assert list(reasons) == ["5"]
    assert reasons["5"].endswith("; it stays, and would now come after a new step")


def test_the_verb_goes_the_whole_way(tmp_path: Path) -> None:
    """`planrun replan last` by a real model process; --offline is none of its options."""
    text = PLAN.replace("model: model-a", "model: model-a, replan_on_failure: never")
    (tmp_path / "plan.yml").write_text(text, encoding="utf-8")
    answer = REPAIRED
    with FakeMessages([answer]) as api:
        planrun(tmp_path, "execute", "plan.yml", **api.env)
        assert planrun(tmp_path, "replan", "last", "--offline", **api.env).returncode == 2
        done = planrun(tmp_path, "replan", "last", "--step", "3", **api.env)
    assert done.returncode == 0, done.stderr
    assert ends(newest(tmp_path)[1]) == DONE
    assert api.journal.verdicts() == []
    nothing = planrun(tmp_path, "replan", "last", **api.env)
    assert nothing.returncode == 2
    assert "no failure of this run can be replanned" in nothing.stderr
