"""The key `policy`: its record and its checks, in a plan and in a policy file."""

from __future__ import annotations

from planrun.errors import InvalidPlan
from planrun.model.agenttypes import TOOLS
from planrun.model.mcp import PREFIX
from planrun.model.policy import TOPICS, Match, Policy, Rule, rules_of
from planrun.model.tools import NAMES
from planrun.plan.keys import notify
from planrun.plan.keys.outline import Outline, entries, members
from planrun.plan.keys.table import module
from planrun.plan.keys.top import declared_secrets
from planrun.plan.problems import did_you_mean, in_order, limited
from planrun.plan.schema import shape
from planrun.plan.schema.forms import as_bool, to_data
from planrun.plan.tables import ACTIONS
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node
from planrun.risk.levels import EFFECTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from planrun.plan.keys.checked import Checked
    from planrun.plan.keys.gates import Gate
    from planrun.plan.problems import Problem

LEVELS = ("none", "read-only", "low", "medium", "high")
MAX_RULES = 1_000
"""Of one policy: each is held against every step before it starts."""
OTHERWISE = "otherwise"
_SANDBOXES = ("sandbox", "llm_sandbox")
REVERSIBLE = "reversible"
# Effects that no later step takes back.
_LASTING = frozenset(("destroys", "publishes", "privilege", "secrets", "unknown"))
_MODELS = ("expanded", "replanned", "agent")


def policy_of(node: Node, gates: Mapping[str, Gate]) -> Policy:
    """Return the policy that a mapping without problems says; `gates` say how answers are to be read."""
    fields: dict[str, Any] = {"line": node.line}
    for key in ("auto_approve", "llm_auto_approve", "ask_for"):
        if key in node.value:
            fields[key] = node.value[key].value
    if "rules" in node.value:
        listed = enumerate(node.value["rules"].value, 1)
        fields["rules"] = tuple([_rule(rule, number) for number, rule in listed])
    if "preset" in node.value and node.value["preset"].value != "none":
        preset = node.value["preset"]
        fields["preset"] = preset.value
        fields["rules"] = (*fields.get("rules", ()), *rules_of(preset.value, preset.line))
    if "decisions" in node.value:
        fields["decisions"] = {
            name: gates[name].answer(answer) if name in gates else to_data(answer)
            for name, answer in members(node.value["decisions"])
        }
    if "on_failure" in node.value:
        fields["on_failure"] = {risk: word.value for risk, word in members(node.value["on_failure"])}
    if "notify" in node.value:
        if node.value["notify"].kind == SCALAR:
            fields["plan_notify"] = as_bool(node.value["notify"])
        else:
            fields["notify"] = notify.targets_of(node.value["notify"])
    if not node.value.keys().isdisjoint(_SANDBOXES):
        fields |= module("sandbox").sandboxes_of(node)
    return Policy(**fields)


def _rule(node: Node, number: int) -> Rule:
    verb, matcher = next(members(node))
    match = {
        field: tuple([_meant(field, word.value) for word in entries(words)])
        for field, words in members(matcher)
    }
    return Rule(verb=verb, match=Match(**match), number=number, line=node.keys[verb].line)  # type: ignore[arg-type]


def _meant(field: str, word: str) -> str:
    """Return a word of a matcher; another spelling of a tool as the name of the tool."""
    if field != "tool" or word in ACTIONS:
        return word
    return NAMES.get(word, word)


def failure_word(
    policy: Policy, risk: str, effects: Collection[str], *, reversible: bool | None = None
) -> str:
    """Return what a failure of a step with this risk and these effects means; "" when the policy does not say.

    `reversible`: what the plan states; None: not stated, its effects decide.
    """
    said = policy.on_failure
    can = _LASTING.isdisjoint(effects) if reversible is None else reversible
    return said.get(risk) or (said.get(REVERSIBLE, "") if can else "") or said.get(OTHERWISE, "")


def check(checked: Checked) -> None:
    """Report rules that can never fit and answers that no step asks for, in the policy of a plan."""
    outline, gates = checked.outline, checked.gates
    policy = outline.root.get("policy")
    if policy is None or policy.kind != MAPPING:
        return
    check_rules(outline, policy)
    known: dict[str, Collection[str]] = {"step": _ids(outline), "secret": declared_secrets(outline.root)}
    for field, word in _words(policy):
        if field in known and "*" not in word.value and word.value not in known[field]:
            code = "E202" if field == "step" else "E232"
            hint = (
                outline.suggest(word.value) if field == "step" else outline.nearest(word.value, known[field])
            )
            message = f'a rule names unknown {field} "{word.value}"'
            outline.report(code, message, word, hint)
    for name, answer in members(policy.get("decisions")):
        _check_answer(outline, policy, gates, (name, answer))


def _check_answer(
    outline: Outline, policy: Node, gates: Mapping[str, Gate], decision: tuple[str, Node]
) -> None:
    name, answer = decision
    place = policy.value["decisions"].key(name)
    gate = gates.get(name)
    if name not in outline.by_id:
        outline.report("E202", f'answer for unknown step "{name}"', place, outline.suggest(name))
    elif gate is None:
        asking = outline.nearest(name, gates) or "only `ask` and `decide` steps take answers"
        outline.report(
            "E253", f'answer for step "{name}", which is not an `ask` or `decide` step', place, asking
        )
    elif outline.sound and (refused := gate.refusal(outline, answer)):
        outline.report("E251", f'the answer to step "{name}" {refused[0]}', answer, refused[1])


def check_rules(outline: Outline, policy: Node) -> None:
    """Report what no plan can make right: unknown kinds of actions and effects, and rules that change nothing."""
    known: dict[str, Collection[str]] = {"effect": EFFECTS, "topic": TOPICS}
    for field, word in _words(policy):
        text = word.value
        if field == "tool" and "tool" not in known:
            known["tool"] = (*ACTIONS, *NAMES, *TOOLS)
        is_of_server = field == "tool" and text.startswith(PREFIX)  # which one is known where it runs
        if field in known and "*" not in text and text not in known[field] and not is_of_server:
            hint = did_you_mean(text, known[field]) or f"valid values: {', '.join(known[field])}"
            outline.report("E105", f'a rule names unknown {field} "{text}"', word, hint)
    for node in [policy.value[key] for key in _SANDBOXES if key in policy.value]:
        module("sandbox").check_sandbox(outline, node)
    listed = policy.get("notify")
    if listed is not None:
        notify.check_targets(outline, listed)
    rules = _entries(policy.get("rules"))
    if len(rules) > MAX_RULES:
        message = f"too many rules: {len(rules):,}; a policy has at most {MAX_RULES:,}"
        outline.report("E241", message, rules[MAX_RULES], "put several patterns into one rule")
    for rule in rules:
        for verb, matcher in members(rule):
            if verb == "allow" and matcher.kind == MAPPING and _says_nothing(policy, matcher):
                message = "rule without effect: the risk level of the policy already allows these steps"
                outline.report("W303", message, rule.key(verb), severity="warning")


def _says_nothing(policy: Node, matcher: Node) -> bool:
    """Say whether an `allow` is about steps only whose risk is not above the level that holds for them anyway."""
    origins = [node.value for node in entries(matcher.get("origin"))]
    by_model = any(origin in _MODELS for origin in origins) or (
        not origins and policy.get("llm_auto_approve") is not None
    )
    levels = [] if origins and "file" not in origins else [_level(policy, "auto_approve", "high")]
    if by_model:
        levels.append(_level(policy, "llm_auto_approve", "low"))
    risks = [node.value for node in entries(matcher.get("risk"))]
    highest = max((LEVELS.index(risk) for risk in risks if risk in LEVELS), default=len(LEVELS) - 1)
    return bool(levels) and min(levels) >= highest


def _ids(outline: Outline) -> Collection[str]:
    """Return the ids of the steps, and of the parts that a search may make steps of."""
    if outline.root.get("search") is None:
        return outline.by_id
    from planrun.plan.keys.search import parts_of  # few plans search

    names = [part.get("id") for part in parts_of(outline.root) if part.kind == MAPPING]
    return {*outline.by_id, *[node.value for node in names if node is not None and node.kind == SCALAR]}


def _level(policy: Node, key: str, otherwise: str) -> int:
    node = policy.get(key)
    word = node.value if node is not None and node.kind == SCALAR and node.value in LEVELS else otherwise
    return LEVELS.index(word)


def _words(policy: Node) -> list[tuple[str, Node]]:
    """Return every word of the rules' matchers with the name of its field."""
    return [
        (field, word)
        for rule in _entries(policy.get("rules"))
        for _, matcher in members(rule)
        for field, words in members(matcher)
        for word in entries(words)
    ]


def _entries(node: Node | None) -> list[Node]:
    return node.value if node is not None and node.kind == SEQUENCE else []


def policy_in(data: bytes, file: str, warnings: list[Problem] | None = None) -> Policy:
    """Return the policy in the bytes of a file, which names them in problems; raises InvalidPlan with every problem.

    The file holds the mapping itself, or a mapping whose only key is `policy`. Steps that a rule or an answer names
    are not looked for, since a policy file is about many plans. Findings of severity `warning` go to `warnings`.
    """
    root, problems = shape.read(data, file, "Policy")
    if root is not None and not problems:
        outline = Outline(Node(MAPPING, {}, 1, 1), file, data)
        check_rules(outline, root)
        problems = limited(in_order(outline.problems))
    if root is None or any(problem.severity == "error" for problem in problems):
        raise InvalidPlan(problems, sources={file: data})
    if warnings is not None:
        warnings += problems
    return policy_of(root, {})
