"""Completion in bash, zsh and fish: the script, and the ids of steps and runs it offers."""

from __future__ import annotations

import os

import click
from click.shell_completion import CompletionItem

from planrun.cliutil.defaultplan import default_file, default_steps, is_plan_name
from planrun.errors import PlanrunError
from planrun.plan.load import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from planrun.model.plan import Plan

_MOST_NAMES = 500
"""Of one folder: completion must not take long in a larger one."""


def complete_steps(ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return the step ids of the plan, or of the run, that is named before on the command line."""
    plan = _plan(ctx)
    if plan is None:
        return []
    return _items(typed, [(step.id, step.title) for step in plan.steps])


def complete_tags(ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return the tags of the plan on the command line."""
    plan = _plan(ctx)
    tags = dict.fromkeys(tag for step in plan.steps for tag in step.tags) if plan else {}
    return _items(typed, [(tag, "") for tag in tags])


def complete_params(ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return `NAME=` for each parameter of the plan on the command line."""
    plan = _plan(ctx)
    params = plan.params if plan else ()
    return _items(typed, [(f"{param.name}=", str(param.schema.get("description", ""))) for param in params])


def complete_runs(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return `last` and the ids of the runs in this folder, newest first."""
    from planrun.app.inspect import known_runs

    try:
        return _items(typed, [("last", "the newest run"), *((run, "") for run in known_runs())])
    except PlanrunError:
        return []


def complete_waiting(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return the steps of a run that wait for an answer; of a plan, all its steps."""
    waiting = _waiting(ctx)
    return complete_steps(ctx, param, typed) if waiting is None else _items(typed, waiting.items())


def complete_questions(ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return `STEP=VALUE` for the questions of a plan, or of the run named before."""
    from planrun.approval.answers import asking

    plan = _plan(ctx)
    if plan is None:
        return []
    waiting = _waiting(ctx)
    offers = []
    for name, step in asking(plan).items():
        if waiting is not None and name not in waiting:
            continue
        options = step.action.options
        offers += [(f"{name}={option.value}", option.label) for option in options] or [
            (f"{name}=", step.title)
        ]
    return _items(typed, offers)


def _waiting(ctx: click.Context) -> dict[str, str] | None:
    """Return the open gates of the run on the command line: steps, and what is asked; None when there is no run."""
    from planrun.app.inspect import inspect, is_plan
    from planrun.reports.gates import open_gates

    name = str(ctx.params.get("run") or next(iter(ctx.args), ""))
    if not name or is_plan(name):
        return None
    try:
        return {
            gate.step: gate.question or gate.reason for gate in open_gates(inspect(name).state) if gate.step
        }
    except PlanrunError:
        return {}


def complete_plans(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return the YAML files of a folder and its subfolders; without any, the completions of the shell."""
    folder = os.path.dirname(typed)
    deeper = [
        os.path.join(folder, name) for name in _names(folder) if os.path.isdir(os.path.join(folder, name))
    ]
    files = [os.path.join(place, name) for place in (folder, *deeper) for name in _names(place)]
    plans = [(file, "") for file in files if file.endswith((".yml", ".yaml"))]
    return _items(typed, plans) or [CompletionItem(typed, type="file")]


def complete_plans_or_steps(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return the steps of the plan that runs when none is named, and plan files."""
    steps = _items(typed, default_steps().items())
    plans = complete_plans(ctx, param, typed)
    return [*steps, *[item for item in plans if not steps or item.type == "plain"]]


def _names(folder: str) -> list[str]:
    """Return the first names in a folder that are not hidden, sorted; none where it cannot be read."""
    try:
        return [name for name in sorted(os.listdir(folder or ".")) if not name.startswith(".")][:_MOST_NAMES]
    except OSError:
        return []


def complete_plans_or_runs(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return plans and runs: for verbs that take either."""
    return [*complete_runs(ctx, param, typed), *complete_plans(ctx, param, typed)]


def complete_explained(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return plans, runs, steps of the default plan, and the codes that begin with what was typed, in any case."""
    from planrun.plan.problems import CODES

    codes = [(code, title) for code, title in CODES.items() if typed and code.startswith(typed.upper())]
    steps = _items(typed, default_steps().items())
    return [*complete_plans_or_runs(ctx, param, typed), *steps, *_items("", codes)]


def _items(typed: str, offers: Iterable[tuple[str, str]]) -> list[CompletionItem]:
    return [
        CompletionItem(word, help=" ".join(about.split()) or None)
        for word, about in offers
        if word.startswith(typed) and word.isprintable()
    ]


def _plan(ctx: click.Context) -> Plan | None:
    """Return the plan that the command line names; None when there is none, or none that can be read."""
    # Behind an option that still has no value click does not get to the operands: they are left in `args`.
    names = [ctx.params.get(key) for key in ("plan", "plan_or_run", "run")] + ctx.args[:1]
    name = next(filter(None, names), "")
    takes_plan = any(param.name == "plan" for param in ctx.command.params)
    if takes_plan and not (name and is_plan_name(name)):
        name = default_file()  # a step may stand in the place of the plan
    if not name:
        return None
    from planrun.app.inspect import inspect, is_plan

    try:
        return load(name) if "plan" in ctx.params or is_plan(name) else inspect(name).state.plan
    except PlanrunError:
        return None
