"""Whether a step may start unasked: every policy in force is evaluated, and the strictest answer wins.

In each policy deny wins over require, and require over allow. Where no rule matches, the level decides: the highest
risk that runs unasked, with a level of its own for steps that a model wrote. In a rule's pattern `*` matches any text,
every other character itself.
"""

from __future__ import annotations

from planrun.model.policy import REVIEWED, TOPICS, Policy, fits_topic
from planrun.model.record import Record
from planrun.reports.policies import NO_POLICY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_GLOBS = frozenset("*?[")
_ADDERS = frozenset(("xargs", "parallel"))  # programs that run another one with words from their input
_MOST = 64  # places of a command, and options, that are searched
_PARTED: dict[str, tuple[list[str], list[tuple[str, list[str]]]]] = {}  # of the last text
_WORDS: dict[str, str] = {}  # of the last texts, and of what rules look for
_KEPT = 8_000
_FOUND: dict[str, bool] = {}  # which patterns fit the last text
_TRIES = [0]  # words of the last text that patterns were held against
_MOST_TRIES = 30_000
"""With more steps a pattern counts as matching: this takes a fraction of a second, and no real text needs so many."""
_QUOTING = str.maketrans("", "", "'\"\\")
_PARTING = str.maketrans(dict.fromkeys(";&|(){}`", "\n"))


def fits(pattern: str, text: str) -> bool:
    """Return whether a whole text fits a pattern."""
    first, *rest = pattern.split("*")
    if not rest:
        return first == text
    last = rest.pop()
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in rest:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def any_fits(patterns: Iterable[str], texts: Iterable[str]) -> bool:
    """Return whether one of several texts fits one of several patterns."""
    known = list(texts)
    return any(fits(pattern, text) for pattern in patterns for text in known)


def in_command(pattern: str, words: Sequence[str | None]) -> bool:
    """Return whether a command may match a pattern, itself or inside: `timeout 5 git push` matches `git push*`.

    It errs on the side of yes: every word may begin the command that is meant, wherever its program is and whatever
    options stand before its arguments (`/usr/bin/git -C . push`), and where a word is not known before the command
    runs (None, or what a shell may take for names of files, or what `xargs` adds) its first one is enough.
    """
    pattern = one_blank(pattern)
    head = pattern.partition(" ")[0].partition("*")[0]
    known = [None if word is not None and _GLOBS.intersection(word) else word for word in words]
    places = [at for at, word in enumerate(known) if (head in word if word is not None else not at)]
    if len(places) > _MOST:
        return True  # no ordinary command repeats a program so often; one that does tries to avoid the match
    adds = next((at for at, word in enumerate(known) if word and _name(word) in _ADDERS), len(known))
    return any(_from_here(pattern, _added_to(known[at:]) if at > adds else known[at:]) for at in places)


def _added_to(words: list[str | None]) -> list[str | None]:
    """Return a command as `xargs` may complete it; its action is known when it has more than options."""
    is_open = all(word is not None and word[:1] == "-" for word in words[1:])
    return [*words, None] if is_open else words


def _from_here(pattern: str, words: Sequence[str | None]) -> bool:
    first, program = words[0], pattern.partition(" ")[0]
    known = [word for word in words if word is not None]
    is_program = first is None or fits(program, first) or fits(program, _name(first))
    if len(known) < len(words):
        return is_program
    return any(
        _is_text(pattern, [name, *known[1:]]) for name in dict.fromkeys((known[0], _name(known[0])))
    ) or (is_program and _behind_options(pattern, known))


def _is_text(pattern: str, words: Sequence[str]) -> bool:
    text = " ".join(words)
    return fits(pattern, text) or fits(pattern, f"{text} ")


def _behind_options(pattern: str, words: Sequence[str]) -> bool:
    """Return whether a pattern fits without the options before the first argument, each with a value or without one."""
    starts = {1}
    for at in range(1, len(words)):
        if at in starts and words[at][:1] == "-":
            starts |= {at + 1, at + 2}
        if at > _MOST:
            return True
    name = _name(words[0])
    return any(_is_text(pattern, [name, *words[at:]]) for at in starts if 1 < at <= len(words))


def in_text(pattern: str, text: str) -> bool:
    """Return whether a text may contain a command that matches a pattern, whichever program interprets the text.

    Quotes count for nothing here, so that it is found in `bash -c '…'`, behind `eval`, and in what another shell reads.
    """
    if text not in _PARTED:
        plain = _plain(text)
        pieces = [(piece, piece.split()) for piece in plain.translate(_PARTING).split("\n")]
        _PARTED.clear()
        _FOUND.clear()
        _TRIES[0] = 0
        _PARTED[text] = ([one_blank(line) for line in plain.split("\n")], [one for one in pieces if one[1]])
    lines, commands = _PARTED[text]
    found = _FOUND.get(pattern)
    if found is None:
        found = _FOUND[pattern] = _in_parts(one_blank(pattern), lines, commands)
    return found


def _in_parts(pattern: str, lines: list[str], commands: list[tuple[str, list[str]]]) -> bool:
    head = pattern.partition(" ")[0].partition("*")[0]
    if any(fits(f"*{pattern}*", line) for line in lines if head in line):
        return True
    for line, words in commands:
        if head in line:
            _TRIES[0] += len(words)
            if _TRIES[0] > _MOST_TRIES or in_command(pattern, words):
                return True
    return False


def _plain(text: str) -> str:
    """Return a text without quotes and escapes, and with continued lines in one."""
    return text.replace("\\\n", "").translate(_QUOTING)


def one_blank(text: str) -> str:
    """Return a text with one blank between its words and none around them."""
    return " ".join(text.split())


def _name(program: str) -> str:
    return program.rpartition("/")[2]


def is_command(pattern: str, words: Sequence[str | None]) -> bool:
    """Return whether a command certainly matches a pattern."""
    known = [word for word in words if word is not None]
    return len(known) == len(words) and fits(one_blank(pattern), " ".join(known))


def has_words(wanted: str, text: str) -> bool:
    """Return whether a text has a word, or several in a row, whatever their case: `deploy` is in `Deploy-to-prod`.

    Quotes do not hide one: `de''ploy` is `deploy` to a shell.
    """
    sought = _words(wanted)
    return bool(sought.strip()) and any(
        sought in _words(plain) for plain in dict.fromkeys((text, _plain(text)))
    )


def _words(text: str) -> str:
    found = _WORDS.get(text)
    if found is None:
        if len(_WORDS) >= _KEPT:
            _WORDS.clear()
        words = "".join([char if char.isalnum() else " " for char in text.lower()]).split()
        found = _WORDS[text] = f" {' '.join(words)} "
    return found


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
    """A step and its action; `commands` as words, None for one that is unknown before it runs."""

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
    """A policy from the command line: no plan can override it.

    `commit`: the full name of the commit that it was read from; `ignored`: what in the checkout does not count for it.
    """

    policy: Policy
    file: str
    sha256: str = ""
    commit: str = ""
    ignored: str = ""


class Layers(Record):
    """The policies in force: the plan's policy, the command line's level in place of the plan's, and ceilings."""

    plan: Policy | None = None
    file: str = ""  # of the plan
    option: str = ""
    ceilings: tuple[Ceiling, ...] = ()


class Decision(Record):
    """The answer, the rule or level that gave it (`plan:rules.2`, `ceiling:auto_approve` …), and why in words."""

    answer: Answer
    rule: str
    reason: str


def decide(facts: Facts, layers: Layers) -> Decision:
    """Return the strictest of all answers; the first one where several are equally strict."""
    return max(decisions(facts, layers), key=lambda found: _STRICTNESS[found.answer])


def decisions(facts: Facts, layers: Layers) -> list[Decision]:
    """Return the decision of each policy, ceilings first."""
    found = [_of_policy(facts, ceiling.policy, _place(ceiling), "ceiling") for ceiling in layers.ceilings]
    policy = layers.plan or Policy()
    name = "plan" if layers.plan else "default"
    if layers.option:
        policy = policy.but(auto_approve=layers.option)
    return [*found, _of_policy(facts, policy, f"{layers.file}:", name, option=layers.option)]


def _place(ceiling: Ceiling) -> str:
    """Return the prefix of a line of a ceiling; a full commit id is shortened."""
    ref, _, path = ceiling.file.partition(":")
    is_full = bool(ceiling.commit) and ref == ceiling.commit
    return f"{ref[:12]}:{path}:" if is_full else f"{ceiling.file}:"


def _of_policy(facts: Facts, policy: Policy, place: str, name: str, option: str = "") -> Decision:
    for verb, answer in _VERBS:
        for rule in policy.rules:
            if rule.verb == verb and matches(rule, facts):
                return Decision(
                    answer=answer, rule=f"{name}:{rule.name}", reason=_reason_text(rule, facts, place)
                )
    written = facts.step.origin in REVIEWED
    level = policy.auto_approve if written else policy.llm_auto_approve
    key = "auto_approve" if written else "llm_auto_approve"
    source = "option" if option and written else name
    rule_id = f"{source}:{key}"
    if source == "option":
        where = " by --auto-approve"
    elif source == "default":
        where = ", since the plan has no policy"
    else:
        where = f" ({place}{policy.line})" if policy.line else f" ({place.rstrip(':')})"
    if LEVELS.index(facts.risk) <= LEVELS.index(level):
        if facts.step.secrets and facts.step.origin in ("expanded", "replanned") and name != "ceiling":
            reason = f"a model wrote it or what comes before it, and it gets {', '.join(facts.step.secrets)}"
            return Decision(answer="ask", rule=f"{name}:secrets", reason=reason)
        reason = f"its risk is {facts.risk}, and {key} is {level}{where}"
        return Decision(answer="allow", rule=rule_id, reason=reason)
    because = f" ({facts.reason})" if facts.reason else ""
    reason = f"its risk is {facts.risk}{because}, and {key} is {level}{where}"
    answer = "ask" if written or name != "ceiling" else "deny"
    return Decision(answer=answer, rule=rule_id, reason=reason)


def _reason_text(rule: Rule, facts: Facts, place: str) -> str:
    what = {"deny": "denies it", "require": "requires an approval", "allow": "allows it"}[rule.verb]
    line = f"{place}{rule.line}" if rule.line else place.rstrip(":")
    risk = f"; its risk is {facts.risk}" + (f" ({facts.reason})" if facts.reason else "")
    called = f"rule {rule.number}" if rule.number else f"preset rule {rule.label}"
    return f"{called} ({line}) {what}{risk if rule.verb != 'allow' else ''}"


def matches(rule: Rule, facts: Facts) -> bool:
    """Return whether a rule is about a step: all its keys must match."""
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
    """Return the ids of a step for rules: its own, and those of its groups, which are prefixes of it.

    What an item adds to an id may look like more of them, which only takes something away.
    """
    if rule.verb == "allow":
        return (step.id, step.group) if step.group else (step.id,)
    return (*[step.id[:at] for at, letter in enumerate(step.id) if letter in "/["], step.id)


def _tools(rule: Rule, step: Step) -> tuple[str, ...]:
    """Return the action names of a step for rules: a `run` is also a `shell`, where a rule restricts."""
    if step.action.name:
        return (step.kind, step.action.name)
    return (step.kind, "shell") if step.action.is_script and rule.verb != "allow" else (step.kind,)


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
    if facts.is_understood and facts.risk != "high":  # such a text passes no code to another interpreter
        return False
    return any(in_text(pattern, facts.text) for pattern in patterns)


def asks_for_commands(layers: Layers) -> bool:
    """Return whether a rule of any policy in force is about commands."""
    policies = [*[ceiling.policy for ceiling in layers.ceilings], layers.plan or Policy()]
    return any(rule.match.command for policy in policies for rule in policy.rules)


def in_force(layers: Layers) -> str:
    """Return the policies in force in one line."""
    policy = layers.plan or Policy()
    level = layers.option or policy.auto_approve
    line = f"auto-approve {level}, model-written {policy.llm_auto_approve}{_more(policy)}"
    if layers.option:
        line += " (--auto-approve)"
    elif layers.plan is None:
        line = "none in the plan" if layers.ceilings else NO_POLICY
    else:
        line += f" ({layers.file}:{policy.line})" if policy.line else ""
    for ceiling in layers.ceilings:
        found = ceiling.policy
        line += f"; at most {found.auto_approve}, model-written {found.llm_auto_approve}{_more(found)}"
        line += f" ({_named(ceiling)})" + (f"; {ceiling.ignored}" if ceiling.ignored else "")
    return line


def _more(policy: Policy) -> str:
    count = sum(not rule.label for rule in policy.rules)
    rules = f", {count} rule{'' if count == 1 else 's'}" if count else ""
    rules += f", preset {policy.preset}" if policy.preset and policy.preset != "none" else ""
    return rules + (", one approval for the plan" if policy.ask_for == "plan" else "")


def _named(ceiling: Ceiling) -> str:
    ref, _, path = ceiling.file.partition(":")
    if not ceiling.commit:
        return ceiling.file
    named = "" if ceiling.commit.startswith(ref) else f"{ref}, "
    return f"{path} of {named}commit {ceiling.commit[:12]}"
