"""Whether the cache has a result for a step now: its key, and the first part that differs from the last time.

The work of `planrun explain`: the explanation of a step, as text or as JSON.
"""

from __future__ import annotations

import os

from planrun.actions.command import shell_on
from planrun.actions.environment import RunEnvironment, caller_environment
from planrun.actions.keys import upstream
from planrun.actions.prepare import Steps
from planrun.app.caching import cache_of
from planrun.app.inspect import inspect, is_plan
from planrun.app.run import secrets_of
from planrun.approval.digest import review
from planrun.approval.preview import known_params
from planrun.cliutil.click import policy_preview
from planrun.cliutil.failure import printable
from planrun.cliutil.printing import say, say_json
from planrun.clock import SystemClock
from planrun.errors import EvaluationError
from planrun.model.record import Record
from planrun.model.state import RunState
from planrun.plan.load import load
from planrun.reports.describe import FAILURE_MEANS
from planrun.reports.facts import classified, seconds
from planrun.runs.explain import explain_planned, explain_recorded, find_step
from planrun.settings import Settings, ci_context, current_folder
from planrun.values import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.app.caching import StepCache
    from planrun.model.plan import Plan, Step
    from planrun.settings import Settings


class Preview(Record):
    """What the cache has for a step now.

    `hit` and `key`: None when they are known only when steps before it ran; `source`: the run that made the result;
    `why`: the first part that differs from the last time, or why there is no result, "" for a hit; `depends_on`: the
    step before it whose results are not known.
    """

    hit: bool | None = None
    key: str | None = None
    source: str = ""
    why: str = ""
    depends_on: str = ""

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {
            "hit": self.hit,
            "key": self.key,
            "run": self.source or None,
            "why": self.why or None,
            "depends_on": self.depends_on or None,
        }


def preview(plan: Plan, step: Step, settings: Settings) -> Preview:
    """Return what the cache has for a step with `cache`, with the files, parameters and variables of this moment.

    Starts no process and changes nothing.
    """
    params, missing = known_params(plan, settings.params)
    if missing:
        return Preview(why=f"the parameter {missing[0]} has no value (--param {missing[0]}=VALUE)")
    secrets = secrets_of(plan)
    workspace = current_folder()
    state = RunState(secrets.masked(plan) if secrets else plan)
    state.params = params
    env, _ = caller_environment(plan.inherit_env, os.environ, plan.secrets)
    place = RunEnvironment(
        run="",
        workspace=workspace,
        rundir=os.path.join(workspace, ".planrun", "runs", "preview"),  # it is in no key, and is not made
        env=env,
        shell=shell_on(env.get("PATH", os.defpath)),
        context=ci_context(os.environ),
        scripts=dict(review(plan, params, workspace).scripts),
        hidden=(os.path.normpath(settings.report_dir),),
    )
    if secrets:
        place = place.but(secrets=secrets.declared, absent=secrets.absent, masks=secrets.redactor)
    steps = Steps(place)
    cache = cache_of(steps, settings, SystemClock())
    return _Previews(state, steps, cache).of(state.steps[step.id].step)


class _Previews:
    """What the cache has for steps; the results of steps before them stand in `state` as if they had been used."""

    def __init__(self, state: RunState, steps: Steps, cache: StepCache) -> None:
        self._state = state
        self._steps = steps
        self._cache = cache
        self._known: dict[str, Preview] = {}

    def of(self, step: Step) -> Preview:
        """Return what the cache has for one step, after what it has for the steps before it."""
        pending = [step]
        while pending:
            each = pending[-1]
            before = [name for name in upstream(self._state, each) if name not in self._known]
            if before:
                pending += [self._state.steps[name].step for name in before]
            else:
                self._known[pending.pop().id] = self._look(each) if each.cache else Preview()
        return self._known[step.id]

    def _look(self, step: Step) -> Preview:
        if step.container is not None:
            return Preview(why="its image is looked up only when it runs")
        unknown = next(filter(self._is_unknown, upstream(self._state, step)), "")
        try:
            key, entry, why = self._cache.peek(step, self._state, complete=not unknown)
        except EvaluationError as error:
            return Preview(why="" if unknown else str(error), depends_on=unknown)
        if unknown:
            return Preview(why=why, depends_on=unknown)
        if entry is None:
            return Preview(hit=False, key=key, why=why)
        found = self._state.steps[step.id]
        found.restored, found.outputs = entry, entry.outputs
        return Preview(hit=True, key=key, source=entry.source)

    def _is_unknown(self, name: str) -> bool:
        """Whether the outputs or files of a step are known only when it ran."""
        step = self._state.steps[name].step
        if self._known.get(name, Preview()).hit:
            return False
        plain = step.action.timed and not (step.action.name or step.outputs or step.produces or step.keeps)
        return not plain


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
            explanation["cache"] = preview(plan, chosen, settings).as_data()
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
        yield "\nIt runs when"
    yield from [f"  {_one_line(reason)}" for reason in explanation["because"]]
    if explanation.get("advice"):
        yield "\nWhat to do"
        yield from [f"  {_one_line(each)}" for each in explanation["advice"]]
    if explanation["run"] and explanation["edges"]:
        yield "\nDependencies"
        yield from [
            f"  {edge['step']} {edge['wants']}: {edge['became']}, {_judged(edge)}"
            for edge in explanation["edges"]
        ]
    yield from _condition(explanation["condition"])
    yield from _risk(explanation)
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
        "blocked": "and blocks it",
        "tolerated": "and skips it, since its failure is tolerated",
        "upstream": "and skips it",
        "approval": "and skips it, since the approval skipped it",
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
    if step["scripts"]:
        yield f"  scripts: {', '.join(step['scripts'])}"
    decision = explanation["decision"]
    if explanation["run"] is None:
        yield from _foreseen(decision)
    elif decision:
        yield f"  {_ANSWERS[decision['answer']]}" + (
            f" by {_one_line(decision['rule'])}" if decision["rule"] else ""
        )


def _foreseen(decision: dict[str, Any]) -> Iterator[str]:
    """The decision of the policies in force, rule by rule."""
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
        if attempt["log"]:
            yield f"     log: {attempt['log']}"
        if attempt["status"] != "completed":
            yield from [f"     | {row}" for row in attempt["log_end"].rstrip("\n").split("\n") if row]


def _one_line(text: str) -> str:
    return " ".join(text.split())
