"""A policy: the highest risk that runs unasked, rules about some steps, presets, and topics of words.

A topic has words that require a decision before a step starts, by what a step is called and what it does. The words of
`deploy`, `data` and `money` are those at which agents stop before risky work. `deletion` and `strategy` are looked for
in ids, titles, descriptions and prompts only: the effects of a command show what it deletes.
"""

from __future__ import annotations

from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Literal

    from planrun.model.notify import Target
    from planrun.model.plan import Sandbox

    Level = Literal["none", "read-only", "low", "medium", "high"]
    Origin = Literal["file", "searched", "expanded", "replanned", "agent"]


REVIEWED = ("file", "searched")
"""Origins of steps whose actions a person reviewed as they are."""


class Match(Record):
    """Which steps a rule is about: every field that names something has to fit; of its words one is enough.

    Words are patterns in which `*` stands for any text; all of one case, except `words`.
    """

    step: tuple[str, ...] = ()  # ids
    tool: tuple[str, ...] = ()  # kinds of actions: run, exec, validate, ask …
    command: tuple[str, ...] = ()  # commands, words joined by one blank
    words: tuple[str, ...] = ()  # whole words in id, title, description or action
    topic: tuple[str, ...] = ()  # what its names and its action speak of: `planrun.model.policy`
    secret: tuple[str, ...] = ()  # names of secrets that the step lists
    effect: tuple[str, ...] = ()  # of the step's risk: destroys, network …
    risk: tuple[
        str, ...
    ] = ()  # one level: from it on (deny, require), up to it (allow); several: exactly these
    origin: tuple[str, ...] = ()
    ref: tuple[str, ...] = ()  # what CI works on
    event: tuple[str, ...] = ()  # why CI works on it


class Rule(Record):
    """The rule for the steps that `match` fits; `number` is its place among the rules, from 1.

    A rule of a preset has a `label` (`careful.destroys`) and the number 0.
    """

    verb: Literal["deny", "require", "allow"]
    match: Match
    number: int
    line: int = 0
    label: str = ""

    @property
    def name(self) -> str:
        """Its name in decisions, after the name of its policy."""
        return self.label or f"rules.{self.number}"


class Policy(Record):
    """The policy of one file: the steps that may run without approval.

    A level is the highest risk that runs unasked, `none`: nothing does. `llm_auto_approve` is that of steps which a
    model wrote. `ask_for`: whether one approval is asked for each step or one for the plan before anything starts.
    """

    auto_approve: Level = "high"
    llm_auto_approve: Level = "low"
    rules: tuple[Rule, ...] = ()
    preset: str = ""  # whose rules are among them
    ask_for: Literal["steps", "plan"] = "steps"
    decisions: dict[str, Any] = {}  # noqa: RUF012 - never written; answers to `ask` and `decide` by step
    on_failure: dict[str, str] = {}  # noqa: RUF012 - what a failure means by risk, where a step does not say
    notify: tuple[Target, ...] = ()  # who is notified besides the targets of the plan
    plan_notify: bool = True  # whether the targets of the plan count
    sandbox: Sandbox | None = None  # of every step, which a plan can only make stricter
    llm_sandbox: Sandbox | None = (
        None  # of steps that a model wrote; None: that of their risk class, required
    )
    line: int = 0


CAREFUL = (
    ("destroys", Match(effect=("destroys",))),
    ("publishes", Match(effect=("publishes",))),
    ("privilege", Match(effect=("privilege",))),
    ("unknown", Match(effect=("unknown",))),
    ("checkpoint", Match(topic=("deploy", "data", "money"))),
    ("deletion", Match(topic=("deletion",))),
    ("strategy", Match(topic=("strategy",))),
)
"""Asks before work that destroys, publishes, takes privileges or is not understood, and by topic."""


def rules_of(preset: str, line: int) -> tuple[Rule, ...]:
    """Return the rules of a preset, each with a label in place of a number."""
    return tuple(
        [
            Rule(verb="require", match=match, number=0, line=line, label=f"{preset}.{name}")
            for name, match in CAREFUL
        ]
    )


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


# In a row: `drop|table`.
_WORDS = {
    "deploy": """
        deploy deploys deployed deploying deployment deployments redeploy rollout rollouts production prod release
        releases releasing publish publishes publishing live|traffic go|live canary blue|green cutover dns failover
    """,
    "data": """
        migrate migrates migrating migration migrations drop|table drop|database drop|schema drop|column alter|table
        truncate|table delete|from backfill schema|change schema|changes seed|database restore|database
        database|restore
    """,
    "money": """
        billing payment payments invoice invoices invoicing refund refunds charge|customer charge|customers payout
        payouts subscription subscriptions credit|card checkout|session stripe paypal payroll
    """,
    "deletion": """
        delete deletes deleting deletion remove removes removing removal destroy destroys destroying drop drops
        dropping erase erases wipe wipes wiping purge purges purging truncate truncates overwrite overwrites
        overwriting reset resets rewrite|history force|push prune prunes clear|data uninstall revoke revokes
        decommission teardown tear|down discard discards unpublish
    """,
}
TOPICS = (*_WORDS, "strategy")
"""What a rule may name under `topic`."""
_IN_NAMES_ONLY = frozenset(("deletion", "strategy"))
# A choice of how something is done, by these words alone.
_CHOICES = _set(
    """
    architectural architecture greenfield rearchitect rearchitecture redesign replatform rescope rewrite rewrites
    rewriting rewritten strategic strategies strategy tradeoff tradeoffs versus vs
    """
)
_PHRASES = tuple(
    tuple(phrase.split())
    for phrase in """
re architect
re write
re design
from scratch
instead of
rather than
in favor of
in favour of
alternative to
trade off
trade offs
design decision
which approach
best approach
breaking change
breaking changes
""".strip().split("\n")
)
# Changes, which are strategic when they are of one of the objects, or say what comes in whose place.
_CHANGES = _set(
    """
    adopt adopting adoption adopts change changes changing convert converting converts deprecate downgrade drop
    extract introduce introduces introducing merge migrate migrating migration modernise modernize move moves
    moving overhaul port porting ports rebuild refactor refactoring refactors remove replace replaces replacing
    restructure restructuring rework reworks split swap swapping swaps switch switches switching transition
    transitions upgrade upgrades upgrading
    """
)
_DECIDES = _set(
    """
    choice choose chooses choosing compare compares comparing comparison consider considering considers decide
    decides deciding decision evaluate evaluates evaluating pick picking picks select selecting selection selects
    """
)
_OBJECTS = _set(
    """
    algorithm api apis approach approaches architecture auth authentication authorization backend broker bundler cloud
    contract database databases datastore db dependencies dependency design engine format framework frameworks
    frontend infrastructure interface interfaces language lib libraries library libs microservice microservices
    middleware monolith orm paradigm pattern platform protocol provider runtime schema schemas sdk serialization
    stack storage toolchain transport vendor
    """
)
_BETWEEN = frozenset(("to", "with", "by", "for", "onto", "into"))  # behind a change: what comes in its place


def fits_topic(topics: Iterable[str], names: Sequence[str], action: str) -> bool:
    """Whether one of some topics is spoken of: in what a step is called, or (most topics) in what it does."""
    return any(_speaks(topic, names if topic in _IN_NAMES_ONLY else (*names, action)) for topic in topics)


def _speaks(topic: str, texts: Iterable[str]) -> bool:
    for text in texts:
        words = words_of(text)
        if topic == "strategy":
            if _is_strategic(words):
                return True
        elif any(
            _has(words, phrase)
            for phrase in [tuple(word.split("|")) for word in _WORDS.get(topic, "").split()]
        ):
            return True
    return False


def _has(words: Sequence[str], phrase: tuple[str, ...]) -> bool:
    length = len(phrase)
    if length == 1:
        return phrase[0] in words
    return any(tuple(words[at : at + length]) == phrase for at in range(len(words) - length + 1))


def _is_strategic(words: Sequence[str]) -> bool:
    """Whether words speak of a choice between ways, or of another library, framework, database or interface."""
    known = set(words)
    if known & _CHOICES or any(_has(words, phrase) for phrase in _PHRASES):
        return True
    if known & _DECIDES and (known & _OBJECTS or known & {"between", "whether", "which", "or"}):
        return True
    if not known & _CHANGES:
        return False
    return bool(known & _OBJECTS) or _names_both(words)


def _names_both(words: Sequence[str]) -> bool:
    """Whether a change says what goes and what comes: `replace A with B`, `move from A to B`."""
    first = next(at for at, word in enumerate(words) if word in _CHANGES)
    rest = list(words[first + 1 :])
    replaces = words[first].startswith(("replace", "swap", "replacing"))
    if not (replaces or "from" in rest):
        return False
    return any(word in _BETWEEN for word in rest[1:-1])


def words_of(text: str) -> list[str]:
    """Return the words of a text in small letters; quotes inside of a word do not part it."""
    plain = text.lower().replace("''", "").replace('""', "")
    return "".join([char if char.isalnum() else " " for char in plain]).split()
