"""The work of `planrun explain`: the explanation of a step, as text or as JSON."""

from __future__ import annotations

from planrun.app.inspect import inspect, is_plan
from planrun.app.preflight import Ahead
from planrun.cliutil.click import policy_preview
from planrun.cliutil.failure import printable
from planrun.cliutil.printing import say, say_json
from planrun.model.sandbox import described
from planrun.plan.load import load
from planrun.reports.describe import FAILURE_MEANS
from planrun.reports.facts import classified, seconds
from planrun.runs.explain import explain_planned, explain_recorded, find_step
from planrun.settings import Settings
from planrun.values import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def explain_step(
    plan_or_run: str, step: str, *, as_json: bool, cache_store: str, report_dir: str, **under: Any
) -> None:
    """Print the explanation of a step of a plan or of a run; `under`: the options of `judged`."""
    if is_plan(plan_or_run):
        plan = load(plan_or_run, cache=False)
        chosen = find_step(plan, step)
        explanation = explain_planned(plan, chosen, policy_preview(plan, **under))
        if chosen.cache:
            settings = Settings(params=under["params"], cache_store=cache_store, report_dir=report_dir)
            explanation["cache"] = Ahead(plan, settings).cached(chosen).as_data()
    else:
        run = inspect(plan_or_run)
        explanation = explain_recorded(run, find_step(run.state.plan, step))
    if as_json:
        say_json(explanation)
    else:
        say("\n".join(printable(row) for row in _text(explanation)))


def _text(explanation: dict[str, Any]) -> Iterator[str]:
    step = explanation["step"]
    title = f": {step['title']}" if step["title"] else ""
    yield f"Step {step['id']}{title}"
    yield f"  {explanation['plan']}:{step['line']}" + (
        ", runs at the end" if step["section"] == "finally" else ""
    )
    if explanation["run"]:
        reason = f" ({explanation['reason']})" if explanation["reason"] else ""
        yield f"  {explanation['status']}{reason} in run {explanation['run']}"
        yield "\nWhy"
    else:
        yield "\nWhen it runs"
    yield from [f"  {_one_line(reason)}" for reason in explanation["because"]]
    if explanation.get("advice"):
        yield "\nWhat to do"
        yield from [f"  {_one_line(each)}" for each in explanation["advice"]]
    if explanation["run"] and explanation["edges"]:
        yield "\nDependencies"
        yield from [
            f"  {edge['step']} {edge['became']}: {_judged(edge)} (required: {edge['wants']})"
            for edge in explanation["edges"]
        ]
    yield from _condition(explanation["condition"])
    yield from _risk(explanation)
    ran = [attempt["sandbox"] for attempt in explanation["attempts"]]
    if ran and ran[-1]:
        yield f"\nSandbox: {_one_line(described(ran[-1]))}"
    elif not ran and explanation["step"]["sandbox"]:
        yield f"\nSandbox: {_one_line(described({**explanation['step']['sandbox'], 'backend': 'of the plan'}))}"
    yield from _cache(explanation["cache"])
    yield from _gate(explanation)
    yield "\nSettings"
    yield from [_setting(setting) for setting in explanation["settings"]]
    if step["secrets"]:
        yield f"\nSecrets: {', '.join(step['secrets'])}"
    if explanation["waited_for_by"]:
        yield f"\nRequired by: {', '.join(explanation['waited_for_by'])}"
    yield from _attempts(explanation["attempts"])
    if explanation["ran_again"]:
        yield "\nRerun"
        yield from [
            f"  {_one_line(again['because'])} (resumed {again['at']})" for again in explanation["ran_again"]
        ]
    if step["action"]:
        yield "\nWhat it does"
        yield from [f"  | {row}" for row in step["action"].rstrip("\n").split("\n")]


def _judged(edge: dict[str, Any]) -> str:
    return {
        "satisfied": "satisfied",
        "blocked": "not satisfied, so this step is blocked",
        "tolerated": "not satisfied; the failure is tolerated, so this step is skipped",
        "upstream": "not satisfied, so this step is skipped",
        "approval": "not satisfied; the approval skipped it, so this step is skipped",
        "open": "not ended",
    }[edge["judgement"]]


def _condition(condition: dict[str, Any] | None) -> Iterator[str]:
    if condition is None or condition["holds"] is None:
        return
    yield f"\nCondition: {_one_line(condition['text'])}"
    yield f"  it was {'true' if condition['holds'] else 'false'}"
    yield from [f"  {path} was {show(value)}" for path, value in condition["read"].items()]


_ANSWERS = {"allow": "allowed", "ask": "asked for", "deny": "denied"}


def _risk(explanation: dict[str, Any]) -> Iterator[str]:
    """The class of the action, the reason, and the decision."""
    step = explanation["step"]
    yield f"\nRisk: {step['risk']}" + (f", {_one_line(step['risk_reason'])}" if step["risk_reason"] else "")
    if step["declared_risk"]:
        yield f"  declared in the plan: {step['declared_risk']}"
    if step["effects"]:
        yield f"  effects: {', '.join(step['effects'])}"
    if step["open_risk"]:
        yield "  it depends on values that are not known yet"
    decision = explanation["decision"]
    if explanation["run"] is None:
        for command in decision.get("commands", ()):
            words = " ".join([word if word is not None else "…" for word in command["words"]])
            yield f"  {command['risk']}: {_one_line(words)}: {_one_line(command['reason'])}"
        yield f"\nPolicy: {_one_line(decision['policy'])}"
        for look in decision["rules"]:
            whose = "" if look["policy"] == "plan" else f"{_one_line(look['policy'])}: "
            fits = "matches" if look["fits"] else "does not match"
            yield f"  {whose}rule {look['rule']} (line {look['line']}) would {look['verb']}: {fits}"
        yield from [
            f"  {_ANSWERS[one['answer']]} by {one['rule']}: {_one_line(one['reason'])}"
            for one in decision["policies"]
        ]
        yield f"  Result: {_ANSWERS[decision['answer']]} ({decision['rule']})"
        if decision["missing"]:
            yield f"  Needs {_one_line(decision['missing'])}"
    elif decision:
        yield f"  {_ANSWERS[decision['answer']]}" + (
            f" by {_one_line(decision['rule'])}" if decision["rule"] else ""
        )


def _cache(explanation: dict[str, Any] | None) -> Iterator[str]:
    """Whether a step has a result in the cache, and why not."""
    if explanation is None:
        return
    why = _one_line(explanation["why"] or "")
    if explanation["hit"] is None:
        yield "\nCache: not known before it runs" + (
            f": {why}" if why and not explanation["depends_on"] else ""
        )
        if explanation["depends_on"]:
            yield f"  its key depends on the results of {explanation['depends_on']}, which are not known yet"
            yield f"  the other parts: {why or 'nothing differs from the last time'}"
        return
    yield (
        f"\nCache: hit, the result of run {explanation['run']}"
        if explanation["hit"]
        else f"\nCache: miss, {why}"
    )
    yield f"  key: {explanation['key']}"


def _gate(explanation: dict[str, Any]) -> Iterator[str]:
    """The question, and the answer."""
    gate = explanation["gate"]
    if gate is None:
        return
    wanted = {"ask": "answer", "decide": "decision", "failure": "decision about its failure"}
    yield f"\nGate: {wanted.get(gate['kind'], 'approval')} {gate['status']}"
    asked = " ".join(filter(None, (gate["header"], gate["question"])))
    if asked:
        yield f"  {_one_line(asked)}"
    if gate["reason"]:
        yield f"  {_one_line(gate['reason'])}" + (f" ({gate['rule']})" if gate["rule"] else "")
    if gate["opened_at"]:
        yield f"  opened {gate['opened_at']}" + (f", until {gate['until']}" if gate["until"] else "")
    if gate["status"] == "answered":
        yield f"  {gate['told']} at {gate['answered_at']}"
    yield from [f"  $ {command}" for command in gate["commands"]]


def _setting(setting: dict[str, Any]) -> str:
    place = {
        "step": "set here",
        "defaults": "from defaults",
        "policy": "from the policy",
        "llm": "from llm",
        "built in": "built in",
    }[setting["source"]]
    place += f", line {setting['line']}" if setting["line"] else ""
    means = f": {FAILURE_MEANS[setting['value']]}" if setting["key"] == "on_failure" else ""
    return f"  {setting['key']}: {setting['value']} ({place}){means}"


def _attempts(attempts: list[dict[str, Any]]) -> Iterator[str]:
    if attempts:
        yield "\nAttempts"
    for attempt in attempts:
        took = f" after {seconds(attempt['duration_s'])}" if attempt["duration_s"] is not None else ""
        why = f" ({attempt['reason']})" if attempt["reason"] else ""
        yield f"  {attempt['n']}. {attempt['status']}{why}{took}"
        if attempt["error"]:
            error = attempt["error"]
            yield f"     {_one_line(error.get('message', ''))}"
            if classified(error):
                yield f"     error class {error.get('class', '')}, by rule {error.get('rule', '')}"
        for check in attempt["checks"]:
            if not check.get("ok"):
                yield f"     check failed: {check.get('name', '')}: {check.get('message', '')}"
        if attempt["delay_s"]:
            yield f"     then a pause of {seconds(attempt['delay_s'])}"
        if attempt["program"]:
            yield f"     started without bash: {attempt['program']}"
        if attempt["log"]:
            yield f"     log: {attempt['log']}"
        if attempt["status"] != "completed":
            yield from [f"     | {row}" for row in attempt["log_end"].rstrip("\n").split("\n") if row]


def _one_line(text: str) -> str:
    return " ".join(text.split())
