"""May a step start unasked? Every policy in force is asked, and the strictest answer counts.

In each of them deny wins over require, require over allow, and where no rule fits, the level decides: the highest risk
that runs unasked, with a level of its own for steps that a model wrote.
"""

from __future__ import annotations

from planrun.model.policy import Policy
from planrun.model.record import Record
from planrun.policy.patterns import any_fits, has_words, in_command, in_text, is_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from planrun.model.plan import Step
    from planrun.model.policy import Match, Rule

    Answer = Literal["allow", "ask", "deny"]

LEVELS = ("none", "read-only", "low", "medium", "high")
_STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}
_VERBS: tuple[tuple[Literal["deny", "require", "allow"], Answer], ...] = (
    ("deny", "deny"),
    ("require", "ask"),
    ("allow", "allow"),
)


class Facts(Record):
    """A step, and what it is about to do; `commands` as words, None for one that is not known before it runs."""

    step: Step
    risk: str
    reason: str = ""
    effects: tuple[str, ...] = ()
    commands: tuple[Sequence[str | None], ...] = ()
    text: str = ""  # of the action
    is_understood: bool = True
    is_bare: bool = False  # the commands are all there is: nothing is redirected, no variable set
    inherited: tuple[str, ...] = ()  # names of credentials that the step sees without listing them
    ref: str = ""
    event: str = ""


class Ceiling(Record):
    """A policy that comes with the command line: nothing in a plan lifts it.

    `commit`: the full name of the commit that it was read from; `ignored`: what in the checkout does not count for it.
    """

    policy: Policy
    file: str
    sha256: str = ""
    commit: str = ""
    ignored: str = ""


class Layers(Record):
    """All that is in force: the plan's policy, the command line's level in place of the plan's, and ceilings."""

    plan: Policy | None = None
    file: str = ""  # of the plan
    option: str = ""
    ceilings: tuple[Ceiling, ...] = ()


class Decision(Record):
    """The answer, the rule or level that gave it (`plan:rules.2`, `ceiling:auto_approve` …), and why in words."""

    answer: Answer
    rule: str
    reason: str
    by_level: bool = False  # its risk alone let it pass


def decide(facts: Facts, layers: Layers) -> Decision:
    """Return the strictest of all answers; the first one where several are equally strict."""
    return max(decisions(facts, layers), key=lambda found: _STRICTNESS[found.answer])


def decisions(facts: Facts, layers: Layers) -> list[Decision]:
    """Return what each policy says, ceilings first."""
    found = [_of_policy(facts, ceiling.policy, _place(ceiling), "ceiling") for ceiling in layers.ceilings]
    policy = layers.plan or Policy()
    name = "plan" if layers.plan else "default"
    if layers.option:
        policy = policy.but(auto_approve=layers.option)
    return [*found, _of_policy(facts, policy, f"{layers.file}:", name, option=layers.option)]


def _place(ceiling: Ceiling) -> str:
    """Return what stands before a line of a ceiling; of a full name of a commit its beginning."""
    ref, _, path = ceiling.file.partition(":")
    is_full = bool(ceiling.commit) and ref == ceiling.commit
    return f"{ref[:12]}:{path}:" if is_full else f"{ceiling.file}:"


def _of_policy(facts: Facts, policy: Policy, place: str, name: str, option: str = "") -> Decision:
    for verb, answer in _VERBS:
        for rule in policy.rules:
            if rule.verb == verb and matches(rule, facts):
                return Decision(answer=answer, rule=f"{name}:{rule.name}", reason=_told(rule, facts, place))
    written = facts.step.origin == "file"
    level = policy.auto_approve if written else policy.llm_auto_approve
    key = "auto_approve" if written else "llm_auto_approve"
    source = "option" if option and written else name
    rule_id = f"{source}:{key}"
    where = _level_place(policy, place, source)
    if LEVELS.index(facts.risk) <= LEVELS.index(level):
        reason = f"its risk is {facts.risk}, and {key} is {level}{where}"
        return Decision(answer="allow", rule=rule_id, reason=reason, by_level=True)
    because = f" ({facts.reason})" if facts.reason else ""
    reason = f"its risk is {facts.risk}{because}, and {key} is {level}{where}"
    answer = "ask" if written or name != "ceiling" else "deny"
    return Decision(answer=answer, rule=rule_id, reason=reason)


def _level_place(policy: Policy, place: str, source: str) -> str:
    if source == "option":
        return " by --auto-approve"
    if source == "default":
        return ", since the plan has no policy"
    return f" ({place}{policy.line})" if policy.line else f" ({place.rstrip(':')})"


def _told(rule: Rule, facts: Facts, place: str) -> str:
    what = {"deny": "denies it", "require": "requires an approval", "allow": "allows it"}[rule.verb]
    line = f"{place}{rule.line}" if rule.line else place.rstrip(":")
    risk = f"; its risk is {facts.risk}" + (f" ({facts.reason})" if facts.reason else "")
    called = f"rule {rule.number}" if rule.number else f"preset rule {rule.label}"
    return f"{called} ({line}) {what}{risk if rule.verb != 'allow' else ''}"


def matches(rule: Rule, facts: Facts) -> bool:
    """Say whether a rule is about a step: all that it names has to fit."""
    match, step = rule.match, facts.step
    named: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
        (match.step, _names(rule, step)),
        (match.tool, _tools(rule, step)),
        (match.origin, (step.origin,)),
        (match.ref, (facts.ref,)),
        (match.event, (facts.event,)),
        (match.secret, step.secrets if rule.verb == "allow" else (*step.secrets, *facts.inherited)),
    )
    return (
        all(any_fits(patterns, found) for patterns, found in named if patterns)
        and (not match.effect or _effects_fit(rule, facts.effects))
        and (not match.risk or _risk_fits(rule, facts.risk))
        and (not match.words or _words_fit(match, facts))
        and (not match.topic or _topic_fits(match, facts))
        and (not match.command or _command_fits(rule, facts))
    )


def _names(rule: Rule, step: Step) -> tuple[str, ...]:
    """Return what a step is called by rules: its id, and the groups that it is in, whose ids are beginnings of it.

    What an item adds to an id may look like more of them, which only takes something away.
    """
    if rule.verb == "allow":
        return (step.id, step.group) if step.group else (step.id,)
    return (*[step.id[:at] for at, letter in enumerate(step.id) if letter in "/["], step.id)


def _tools(rule: Rule, step: Step) -> tuple[str, ...]:
    """Return what a step is called by rules: a `run` is a `shell`, too, where that takes something away."""
    if step.kind == "tool":
        return (step.kind, getattr(step.action, "name", ""))
    return (step.kind, "shell") if step.kind == "run" and rule.verb != "allow" else (step.kind,)


def _effects_fit(rule: Rule, effects: tuple[str, ...]) -> bool:
    """Whether one effect fits or, where a rule allows, all of them: what fetches and publishes does not only fetch."""
    fits = [any_fits(rule.match.effect, (effect,)) for effect in effects]
    return bool(fits) and (all(fits) if rule.verb == "allow" else any(fits))


def _risk_fits(rule: Rule, risk: str) -> bool:
    wanted = rule.match.risk
    if len(wanted) > 1:
        return risk in wanted
    at, level = LEVELS.index(risk), LEVELS.index(wanted[0])
    return at <= level if rule.verb == "allow" else at >= level


def _words_fit(match: Match, facts: Facts) -> bool:
    step = facts.step
    texts = (step.id, step.title, step.description, facts.text)
    return any(has_words(words, text) for words in match.words for text in texts)


def _topic_fits(match: Match, facts: Facts) -> bool:
    from planrun.model.topics import TOPICS, fits_topic  # few policies have topics

    step = facts.step
    topics = [topic for topic in TOPICS if any_fits(match.topic, (topic,))]
    return fits_topic(topics, (step.id, step.title, step.description), facts.text)


def _command_fits(rule: Rule, facts: Facts) -> bool:
    patterns = rule.match.command
    if rule.verb == "allow":
        return (
            facts.is_bare
            and bool(facts.commands)
            and all(any(is_command(pattern, words) for pattern in patterns) for words in facts.commands)
        )
    if any(in_command(pattern, words) for pattern in patterns for words in facts.commands):
        return True
    if facts.is_understood and facts.risk != "high":  # such a text hands no code to anybody
        return False
    return any(in_text(pattern, facts.text) for pattern in patterns)


def asks_for_commands(layers: Layers) -> bool:
    """Say whether a rule of any policy in force is about commands."""
    policies = [*[ceiling.policy for ceiling in layers.ceilings], layers.plan or Policy()]
    return any(rule.match.command for policy in policies for rule in policy.rules)


def in_force(layers: Layers) -> str:
    """Return in one line which policy holds."""
    policy = layers.plan or Policy()
    level = layers.option or policy.auto_approve
    told = f"auto-approve {level}, model-written {policy.llm_auto_approve}{_more(policy)}"
    if layers.option:
        told += " (--auto-approve)"
    elif layers.plan is None:
        told += " (no policy: all steps run without approval)"
    else:
        told += f" ({layers.file}:{policy.line})" if policy.line else ""
    for ceiling in layers.ceilings:
        found = ceiling.policy
        told += f"; at most {found.auto_approve}, model-written {found.llm_auto_approve}{_more(found)}"
        told += f" ({_named(ceiling)})" + (f"; {ceiling.ignored}" if ceiling.ignored else "")
    return told


def _more(policy: Policy) -> str:
    """What a policy says besides its levels."""
    count = sum(not rule.label for rule in policy.rules)
    rules = f", {count} rule{'' if count == 1 else 's'}" if count else ""
    rules += f", preset {policy.preset}" if policy.preset and policy.preset != "none" else ""
    return rules + (", one approval for the plan" if policy.ask_for == "plan" else "")


def _named(ceiling: Ceiling) -> str:
    """Return the name of a ceiling's file, with its commit where it has one."""
    ref, _, path = ceiling.file.partition(":")
    if not ceiling.commit:
        return ceiling.file
    named = "" if ceiling.commit.startswith(ref) else f"{ref}, "
    return f"{path} of {named}commit {ceiling.commit[:12]}"
