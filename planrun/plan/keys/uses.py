"""What a step says of the plan that it uses, held against what that plan says of itself."""

from __future__ import annotations

from planrun.plan.keys.formulas import OPEN
from planrun.plan.keys.fragments import check_within
from planrun.plan.keys.outline import entries, members, texts_in
from planrun.plan.keys.top import declared_secrets
from planrun.plan.schema.forms import to_data
from planrun.plan.yaml.node import MAPPING, SCALAR, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.expressions.tree import Type
    from planrun.plan.keys.checked import Checked
    from planrun.plan.keys.formulas import Formula
    from planrun.plan.keys.outline import Included, Outline, RawStep

# Keys of a step that say nothing about a plan, and what to do instead.
_MEANINGLESS = {
    "retries": "set it on the steps of that plan",
    "timeout": "set it on the steps of that plan",
    "idle_timeout": "set it on the steps of that plan",
    "idempotent": "set it on the steps of that plan",
    "env": "pass values by `with` and set variables in that plan",
    "env_file": "set it in that plan",
    "secrets": "list them in the steps of that plan",
    "shell": "write `defaults: {shell: …}` in that plan",
    "workdir": "write `defaults: {workdir: …}` in that plan, and pass a directory by `with` if needed",
    "outputs": "that plan has its own `outputs:`",
    "risk": "each step of that plan has its own",
    "parallel": "set it on the steps of that plan",
    "lock": "set it on the steps of that plan that need it",
    "rollback": "add one to each step of that plan that can be undone",
}
# Keys at the top of a plan that count for the plan that is run, and not for those that it uses.
_INEFFECTIVE = ("policy", "llm", "schedule", "concurrency", "notify", "mcp", "search")
_LIMITS_THAT_COUNT = ("max_parallel", "max_steps", "max_items")


def take(outline: Outline, included: Included) -> None:
    """Read and check the plans that the steps of a plan use."""
    for raw in outline.steps:
        node = raw.keys.get("uses")
        if node is not None:
            for key in ("matrix", "foreach"):
                if key in raw.keys:
                    message = f'step "{raw.id}" uses a plan and cannot have instances'
                    hint = "use a matrix in that plan and pass the values by `with`"
                    outline.report("E284", message, raw.node.key(key), hint)
        if node is not None and node.kind == SCALAR and not outline.is_full:
            raw.used = included.take(outline, node)
            for key, hint in _MEANINGLESS.items():
                if key in raw.keys:
                    message = f"`{key}` does not apply to a step with `uses`"
                    outline.report("E292", message, raw.node.key(key), hint)
            for word in entries(raw.keys.get("on_failure")):
                if word.value in ("ask", "replan"):
                    message = f"`on_failure: {word.value}` does not apply to a step with `uses`"
                    outline.report(
                        "E292", message, word, "set it on the steps of that plan, or use another value"
                    )


def find(checked: Checked) -> None:
    """Check what used plans are given, and add what they hand on to the outputs."""
    for raw in checked.outline.steps:
        if "uses" in raw.keys:
            _check_given(checked.outline, raw)
            used = raw.used
            if used is None or used.checked is None:
                found = None
            else:
                types = used.checked.gives
                found = {
                    name: {"type": types.get(name, "any")}
                    for name, _ in members(used.checked.outline.root.get("outputs"))
                }
            if found is not None:
                checked.outputs[raw.id] = found


def _check_given(outline: Outline, raw: RawStep) -> None:
    """Report what does not fit of the values that a used plan is given, and secrets that it wants and does not get."""
    used = raw.used
    if used is None or used.checked is None:
        return
    name = raw.keys["uses"].value
    given, known = raw.keys.get("with"), used.checked.params
    for param, value in members(given):
        assert given is not None
        if param not in known:
            hint = outline.nearest(param, known) or (
                f"known parameters: {', '.join(known)}" if known else "it has no parameters"
            )
            outline.report("E291", f'{name} has no parameter "{param}"', given.key(param), hint)
        elif used.sound and not _has_template(value):
            problem = check_within(outline, known[param], to_data(value, known[param]["type"]))
            if problem:
                outline.report("E291", f'the parameter "{param}" of {name} {problem}', value)
    written = given.value if given is not None and given.kind == MAPPING else {}
    for param, fragment in known.items():
        if fragment.get("required") is True and param not in written:
            message = f'{name} requires the parameter "{param}"'
            outline.report("E291", message, raw.keys["uses"], f"add `with: {{{param}: …}}`")
    declared = declared_secrets(outline.root)
    for secret in declared_secrets(used.checked.outline.root):
        if secret not in declared:
            message = f'{name} uses the secret "{secret}", which this plan does not declare'
            hint = f"declare it at the top level: `secrets: [{', '.join([*declared, secret])}]`"
            outline.report("E232", message, raw.keys["uses"], hint)


def check_types(checked: Checked, type_of: Callable[[Formula], Type]) -> None:
    """Report values of expressions that can never be of the type that a parameter of a used plan has."""
    for formula in checked.formulas.listed:
        raw = formula.owner
        if formula.kind != "given" or raw is None or raw.used is None or raw.used.checked is None:
            continue
        for param, value in members(raw.keys.get("with")):
            fragment = raw.used.checked.params.get(param)
            if value is not formula.node or fragment is None:
                continue
            found = type_of(formula)
            wanted = fragment["type"]
            if not (found in ("any", wanted) or {found, wanted} == {"integer", "number"}):
                message = (
                    f'the parameter "{param}" of {raw.keys["uses"].value} has type {fragment["type"]}, '
                    f"got type {found}"
                )
                checked.outline.report("E291", message, value)


def _has_template(node: Node) -> bool:
    return any([OPEN in text.value for text in texts_in(node)])  # noqa: C419 - half the time


def warn(outline: Outline) -> None:
    """Warn of all that a plan says which does not count where another one uses it."""
    root = outline.root
    ineffective: list[tuple[str, Node]] = [
        (key, root.key(key)) for key in _INEFFECTIVE if root.get(key) is not None
    ]
    limits, defaults = root.get("limits"), root.get("defaults")
    ineffective += [
        (f"limits.{key}", limits.key(key))
        for key, _ in members(limits)
        if limits is not None and key not in _LIMITS_THAT_COUNT
    ]
    if defaults is not None and defaults.get("inherit_env") is not None:
        ineffective.append(("defaults.inherit_env", defaults.key("inherit_env")))
    for key, node in ineffective:
        message = f"`{key}` has no effect in a plan that another plan uses"
        outline.report("W304", message, node, "the plan that is run decides", severity="warning")
    for raw in outline.steps:
        for word in entries(raw.keys.get("on_failure")):
            if word.value == "replan":
                message = "`replan` acts as `block` in a plan that another plan uses"
                outline.report("W304", message, word, "no steps are added to a used plan", severity="warning")
