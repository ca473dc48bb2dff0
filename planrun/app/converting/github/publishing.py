"""Actions that send something away: steps that do the same, for a person to release."""

from __future__ import annotations

from planrun.app.converting.draft import DraftStep
from planrun.app.converting.findings import UntranslatableError
from planrun.app.converting.github.names import PlaceNames
from planrun.app.converting.github.texts import template
from planrun.app.converting.github.variables import Variables
from planrun.app.converting.reading import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.app.converting.github.actions import Actions
    from planrun.source.node import Node

_TOKEN = "CODECOV_TOKEN"  # noqa: S105 - the name of a variable
_UPLOAD_COVERAGE = "upload_coverage"


def publisher(actions: Actions, action: str, node: Node, name: str) -> DraftStep:
    """Return the step that does what a publishing action does."""
    step = DraftStep(name)
    names = PlaceNames(actions.workflow, actions.job, node, ({}, actions.job.env, actions.workflow.env))
    before = {key: f"${{{{ {value} }}}}" for key, value in actions.job.exported.items()}
    if before:
        step.keys["env"] = before
    try:
        (_coverage if action in _COVERAGE else _pypi)(actions, step, node, names)
    except UntranslatableError as why:
        step.make_abstract(actions.found.refuse(f"uses:{action}", why.message, node.value["uses"], name))
    return step


def _pypi(actions: Actions, step: DraftStep, node: Node, names: PlaceNames) -> None:
    """Upload by twine, with a token where GitHub may use its own identity."""
    inputs = actions.inputs
    folder = text_of(inputs.get("packages-dir") or inputs.get("packages_dir")) or "dist"
    address = text_of(inputs.get("repository-url") or inputs.get("repository_url"))
    skips = text_of(inputs.get("skip-existing") or inputs.get("skip_existing")).lower() == "true"
    variables = Variables()
    password = inputs.get("password")
    if password is not None:
        variables.read({"TWINE_PASSWORD": password}, names)
    else:
        variables.secrets.append("TWINE_PASSWORD")
        message = (
            "there is no trusted publishing here: give a token of the index as the secret TWINE_PASSWORD"
        )
        step.notes.append(actions.found.todo("publish", message, node.value["uses"], step.id))
    user = text_of(inputs.get("user")) or "__token__"
    env = {"TWINE_USERNAME": template(user, names), "PACKAGES": template(folder.rstrip("/"), names)}
    words = ["twine upload --non-interactive"]
    if skips:
        words.append("--skip-existing")
    if address:
        env["TWINE_REPOSITORY_URL"] = template(address, names)
    step.keys["env"] = {**step.keys.get("env", {}), **env, **variables.env}
    step.prelude = variables.lines
    step.keys["secrets"] = list(dict.fromkeys(variables.secrets))
    for secret in step.keys["secrets"]:
        actions.workflow.plan.secret(secret)
    step.keys["run"] = f'{" ".join(words)} "$PACKAGES"/*'
    step.keys["risk"] = "high"
    message = "packages are uploaded by twine, which must be there; no attestations are made"
    actions.found.differs("publish", message, node.value["uses"])


def _coverage(actions: Actions, step: DraftStep, node: Node, names: PlaceNames) -> None:
    """Upload by Codecov's command line, only where a parameter asks for it."""
    inputs = actions.inputs
    actions.workflow.param(
        _UPLOAD_COVERAGE,
        {"type": "boolean", "default": False, "description": "Send coverage reports to Codecov."},
    )
    words = ["codecovcli upload-process"]
    env = {}
    for key, option in (("files", "--file"), ("file", "--file"), ("flags", "--flag"), ("name", "--name")):
        values = [each.strip() for each in text_of(inputs.get(key)).split(",") if each.strip()]
        for number, value in enumerate(values, 1):
            env[f"{key.upper()}_{number}"] = template(value.removeprefix("./"), names)
            words.append(f'{option} "${key.upper()}_{number}"')
    variables = Variables()
    is_set = any(_TOKEN in level for level in (actions.job.exported, actions.job.env, actions.workflow.env))
    if text_of(inputs.get("token")):
        variables.read({_TOKEN: inputs["token"]}, names)
    elif not is_set:
        variables.secrets.append(_TOKEN)
    step.keys["env"] = {**step.keys.get("env", {}), **env, **variables.env}
    step.prelude = variables.lines
    step.keys["secrets"] = variables.secrets
    for secret in variables.secrets:
        if secret not in actions.workflow.plan.secrets:
            actions.workflow.plan.optional.add(secret)
        actions.workflow.plan.secret(secret)
    step.keys["run"] = " ".join(words)
    step.keys["risk"] = "high"
    step.keys["on_failure"] = "continue"
    step.condition = f"params.{_UPLOAD_COVERAGE}"
    message = (
        f"coverage is sent by codecovcli with CODECOV_TOKEN, only with `--param {_UPLOAD_COVERAGE}=true`"
    )
    actions.found.differs("coverage", message, node.value["uses"])


_COVERAGE = frozenset(("codecov/codecov-action",))
PUBLISHERS = frozenset(("pypa/gh-action-pypi-publish", *_COVERAGE))
