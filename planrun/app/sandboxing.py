"""The sandboxes of a run: who wants one, what enforces it, and which files they protect; all before anything runs."""

from __future__ import annotations

import os

from planrun.errors import InvalidInput
from planrun.executors.sandbox.view import Site
from planrun.model.record import Record
from planrun.model.sandbox import Confinement
from planrun.plan.revisions import is_file
from planrun.records.rundir import HOME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.approval.rules import Layers
    from planrun.model.plan import Plan, Sandbox, Step
    from planrun.settings import Settings

    # A sandbox, who wants it, where that stands, and what runs without one.
    Wanted = tuple[Sandbox, str, str, str]

_WITHOUT = "sandbox: {require: false}"
_AGENT_WITHOUT = "policy: {llm_sandbox: off}"  # its step cannot do without one


class Sandboxing(Record):
    """What the steps of a run need to start in sandboxes; `options`: what the ledger records of it."""

    confinement: Confinement
    site: Site
    options: dict[str, Any]


def sandboxing_of(plan: Plan, layers: Layers | None, workspace: str, settings: Settings) -> Sandboxing | None:
    """Return how the sandboxes of a run are enforced, None where no step has one.

    Raises InvalidInput where a sandbox is required and cannot be had.
    """
    workspace = os.path.abspath(workspace)
    policies = list(_of_policies(plan, layers))
    confinement = Confinement(
        workspace=workspace,
        home=home_folder(),
        ceilings=tuple([sandbox for sandbox, *_ in policies]),
        for_models=_for_models(layers),
    )
    wanted = [*_of_steps(plan, confinement), *policies]
    options: dict[str, Any] = {}
    if wanted:
        if policies:
            for step in plan.steps:
                inner: Step | None = step.grouping.template if step.kind == "group" else step
                if inner is not None and inner.container is not None:
                    raise InvalidInput(
                        f'{plan.file_of(step)}:{step.line}: step "{step.id}" runs in a container, and {policies[0][1]}'
                        f" ({policies[0][2]}) requires a sandbox, which cannot confine it\n"
                        "  hint: run the step without a container, or take `sandbox` out of the policy"
                    )
        confinement, options = _enforced(wanted, confinement, settings.sandbox_backend)
    elif not (plan.llm or settings.expand or any(step.origin != "file" for step in plan.steps)):
        return None
    site = Site(
        workspace=workspace,
        records=os.path.join(workspace, HOME),
        home=confinement.home,
        protected=tuple(_protected(plan, settings, layers)),
        path=os.environ.get("PATH", os.defpath),
    )
    return Sandboxing(confinement=confinement, site=site, options=options)


def home_folder() -> str:
    """Return the home folder of the user; "" for none."""
    home = os.path.expanduser("~")
    return os.path.normpath(home) if home.startswith("/") else ""


def _enforced(
    wanted: list[Wanted], confinement: Confinement, backend: str
) -> tuple[Confinement, dict[str, Any]]:
    from planrun.executors.sandbox.probe import find

    sandboxes = tuple([sandbox for sandbox, *_ in wanted])
    found, missing = find(backend, sandboxes)
    if found:
        return confinement.but(backend=found), {"sandbox": {"backend": found}}
    for sandbox, who, place, without in wanted:
        alone, missing_alone = find(backend, (sandbox,))
        if sandbox.require and not alone:
            missing = missing_alone
            raise InvalidInput(
                f"{place}: {who} requires a sandbox, and it cannot be had here: {missing}\n"
                f"  hint: `planrun doctor` tries it and says what to change; `{without}` runs without one"
            )
    return confinement.but(backend="none"), {"sandbox": {"backend": "none", "missing": missing}}


def _of_steps(plan: Plan, confinement: Confinement) -> Iterator[Wanted]:
    for step in plan.steps:
        inner = step.grouping.template if step.kind == "group" else step
        if inner is not None and inner.sandbox is not None:
            sandbox = confinement.of(inner.sandbox)
            if sandbox is not None:
                line = inner.sandbox.line or step.line
                yield sandbox, f'step "{step.id}"', f"{plan.file_of(step)}:{line}", _WITHOUT
        if inner is not None and inner.kind == "agent":
            sandbox = confinement.of_agent(inner.sandbox, "medium")
            if sandbox is not None:
                place = f"{plan.file_of(step)}:{step.line}"
                yield sandbox, f'the agent of step "{step.id}"', place, _AGENT_WITHOUT


def _of_policies(plan: Plan, layers: Layers | None) -> Iterator[Wanted]:
    if layers is None:
        return
    if layers.plan and layers.plan.sandbox and layers.plan.sandbox.is_on:
        yield (
            layers.plan.sandbox,
            "the policy of the plan",
            f"{plan.file}:{layers.plan.sandbox.line}",
            _WITHOUT,
        )
    for ceiling in layers.ceilings:
        sandbox = ceiling.policy.sandbox
        if sandbox and sandbox.is_on:
            yield sandbox, "the policy", f"{ceiling.file}:{sandbox.line}", _WITHOUT


def _for_models(layers: Layers | None) -> tuple[Sandbox, ...]:
    if layers is None:
        return ()
    policies = [layers.plan, *[ceiling.policy for ceiling in layers.ceilings]]
    return tuple([policy.llm_sandbox for policy in policies if policy and policy.llm_sandbox])


def _protected(plan: Plan, settings: Settings, layers: Layers | None) -> Iterator[str]:
    """Yield the files of plans, policies and approvals, wherever they stand in the workspace."""
    folder = os.path.dirname(os.path.abspath(plan.file))
    names = [os.path.abspath(plan.file), *[os.path.join(folder, name) for name in plan.files]]
    if layers is not None:
        names += [ceiling.file for ceiling in layers.ceilings if is_file(ceiling.file)]
    names += [name for name in settings.approvals if is_file(name)]
    for name in names:
        yield os.path.normpath(os.path.abspath(name))
