"""Generate the text of a plan from a goal, for review: by a model within limits, or by planrun's own patterns.

The plan is valid, and comments above each step show what to review.
"""

from __future__ import annotations

import os
import re

from planrun.actions.environment import holds_credential
from planrun.approval.policies import ceilings_of, layers_of, static_decision
from planrun.approval.rules import Layers
from planrun.clock import SystemClock
from planrun.errors import InvalidInput, InvalidPlan
from planrun.llm.drafts import PLAN, Fault, estimated
from planrun.llm.fitting import Piece
from planrun.llm.fitting import told as cuts
from planrun.llm.offline import classify, draft_of, fallback_of
from planrun.llm.plantext import faults_of, plan_text, step_text
from planrun.llm.prompts import EXAMPLES, GENERATE_SYSTEM, described, generate_prompt, project_memory
from planrun.model import events as ev
from planrun.model.agenttypes import MODES
from planrun.model.call import TOKENS, Usage
from planrun.model.plan import Limits
from planrun.model.planning import Llm
from planrun.model.policy import Policy
from planrun.model.record import Record
from planrun.plan.load import load_bytes
from planrun.plan.yaml.document import parse
from planrun.planner.conversation import Accepted, Conversation, Question, Refused, fit, hold
from planrun.planner.inspect import told_limits
from planrun.planner.models import insecure, llm_of, open_model, spending, why_no_model
from planrun.planner.repository import read_repository
from planrun.planner.sources import fitting_templates
from planrun.records.planmemory import MAX_TEXT, alike, kept
from planrun.reports.escape import line
from planrun.reports.models import crossing_line, repeat_line
from planrun.secrets.masker import PROVIDER_KEYS, Masker, known_secrets
from planrun.settings import ci_context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from planrun.llm.drafts import Draft, DraftStep
    from planrun.model.plan import Plan, Step
    from planrun.settings import Settings

POLICY = Policy(auto_approve="medium", llm_auto_approve="low")
"""The policy of a new plan: as from `planrun init`, with only low risk for steps of models."""
_REASON = 200  # characters of a reason in a comment


class Frame(Record):
    """The context of a draft: the name of the file, the goal, and the settings with the policies."""

    file: str
    goal: str
    settings: Settings
    context: Mapping[str, Any] = {}
    plans: tuple[str, ...] = ()  # of this project, that a step can use


class Composed(Record):
    """A plan to write: its text, and the loaded plan."""

    text: str
    plan: Plan


def check(draft: Draft, frame: Frame) -> Accepted | Refused | list[Fault]:
    """Check that a draft becomes a valid plan within the ceilings; the value is the draft with its estimates."""
    if faults := list(_of_uses(draft, frame)):
        return faults
    draft = draft.but(steps=tuple(map(estimated, draft.steps)))
    data = _text(draft, frame, [], {}).encode("utf-8", "surrogatepass")
    try:
        plan = load_bytes(data, frame.file, cache=False)
    except InvalidPlan as error:
        found: dict[tuple[str, int], int] = {}
        for number, step in enumerate(draft.steps):
            section = "finally" if step.cleanup else "steps"
            found[section, sum(known == section for known, _ in found)] = number
        return faults_of(error.problems, data, found, [step.id for step in draft.steps])
    if smuggled := tuple(_smuggled(data)):
        return Refused(refusals=smuggled)
    refusals = tuple(_denied(plan, frame))
    return Refused(refusals=refusals, repairable=True) if refusals else Accepted(value=draft)


def _of_uses(draft: Draft, frame: Frame) -> Iterator[Fault]:
    for number, step in enumerate(draft.steps):
        if step.uses and os.path.normpath(step.uses) not in map(os.path.normpath, frame.plans):
            message = f'"{step.uses[:_REASON]}" is no plan of this project that a step can use'
            yield Fault(path=f"steps[{number}].uses", rule="uses", message=message, allowed=frame.plans)


def compose(draft: Draft, frame: Frame, heading: Sequence[str]) -> Composed:
    """Return the plan of a checked draft, with comments above each step; `heading`: comments at the top."""
    plain = load_bytes(_text(draft, frame, [], {}).encode(), frame.file, cache=False)
    layers = layers_of(plain, frame.settings, ceilings_of(frame.settings))
    notes = {step.id: list(notes_of(step, layers, frame.context)) for step in plain.steps}
    for step in draft.steps:
        if step.mode and not step.acts:
            mode = MODES[step.mode]
            given_to_an_agent = (
                f"mode {mode.name}, {mode.planner}; for an agent: `agent: {{mode: {mode.name}, prompt: ...}}`"
            )
            notes[step.id].append(given_to_an_agent)
    text = _text(draft, frame, [*heading, *_first_looks(plain)], notes)
    return Composed(text=text, plan=load_bytes(text.encode(), frame.file, cache=False))


def _text(draft: Draft, frame: Frame, heading: Sequence[str], notes: Mapping[str, Sequence[str]]) -> str:
    keys: dict[str, Any] = {"version": 1}
    if name := name_of(frame.goal):
        keys["name"] = name
    keys["goal"] = frame.goal
    if secrets := dict.fromkeys([name for step in draft.steps for name in step.secrets]):
        keys["secrets"] = list(secrets)
    keys["policy"] = {"auto_approve": POLICY.auto_approve, "llm_auto_approve": POLICY.llm_auto_approve}
    rules = [
        {"require": {"step": step.id, "secret": list(step.secrets)}} for step in draft.steps if step.secrets
    ]
    if rules:  # nobody has granted them yet
        keys["policy"]["rules"] = rules
    texts: dict[bool, list[str]] = {False: [], True: []}
    for step in draft.steps:
        texts[step.cleanup].append(
            step_text(step, 2, {**_from_here(step, frame.file)}, notes.get(step.id, ()))
        )
    return plan_text(heading, keys, texts[False], texts[True])


def _from_here(step: DraftStep, file: str) -> dict[str, str]:
    """Return `uses` as the plan must have it: from the folder of its file."""
    if not step.uses:
        return {}
    return {"uses": os.path.join(".", os.path.relpath(step.uses, os.path.dirname(file) or "."))}


def name_of(goal: str) -> str:
    """Return a name for a plan: the first words of its goal; empty when it has none."""
    words = re.findall(r"[^\W_]+", goal)[:6]
    return "-".join(words).lower()[:60].strip("-")


def _smuggled(data: bytes) -> Iterator[dict[str, str]]:
    """Yield a refusal for each key of a step that no draft can contain; guards against injection into the text."""
    root, _ = parse(data, "")
    found = [root.get(section) for section in ("steps", "finally")] if root is not None else []
    for step in [step for steps in found if steps is not None for step in steps.value]:
        extra = [key for key in step.value if key not in PLAN.written]
        if extra:
            reason = f"the step would have the keys {', '.join(extra)}"
            yield {
                "step": str(step.value["id"].value),
                "rule": "bounds:keys",
                "reason": line(reason, _REASON),
            }


def _denied(plan: Plan, frame: Frame) -> Iterator[dict[str, str]]:
    """Yield a refusal for each step that a ceiling of the caller denies to models."""
    layers = layers_of(plan, frame.settings, ceilings_of(frame.settings))
    for step in plan.steps:
        decision = static_decision(step.but(origin="expanded"), layers, frame.context)
        if decision.answer == "deny":
            yield {"step": step.id, "rule": decision.rule, "reason": line(decision.reason, _REASON * 3)}


def notes_of(step: Step, layers: Layers, context: Mapping[str, Any]) -> Iterator[str]:
    """Yield the notes for the reviewer of a step, from the classifier and the policies in force."""
    if step.kind == "abstract":
        yield "written without a script: `planrun expand` makes it concrete, or write it under `run`"
        return
    if step.risk == "read-only" and not step.open_risk:
        return
    effects = f" ({', '.join(step.effects)})" if step.effects else ""
    later = "; values that come later may change it" if step.open_risk else ""
    yield f"risk: {step.risk}{effects}: {line(step.risk_reason, _REASON)}{later}"
    decision = static_decision(step, layers, context)
    if decision.answer != "allow":
        word = "waits for an approval" if decision.answer == "ask" else "denied"
        # The line of the plan's own policy differs from that in the checked text.
        own = decision.rule == "plan:auto_approve"
        reason = f"auto_approve is {POLICY.auto_approve}" if own else decision.reason
        yield f"{word}: {line(reason, _REASON)}"
    elif static_decision(step.but(origin="expanded"), layers, context).answer != "allow":
        yield "above llm_auto_approve: it would need an approval if a model had written it during a run"


def grants(plan: Plan) -> list[str]:
    """Return what steps ask for that only a person grants, a line for each of them."""
    asking = {step.group or step.id: ", ".join(step.secrets) for step in plan.steps if step.secrets}
    return [
        f"{name} asks for {secrets}: an approval grants it, or removing its rule under `policy.rules`"
        for name, secrets in asking.items()
    ]


def _first_looks(plan: Plan) -> Iterator[str]:
    """Yield what to review first, the riskiest steps first."""
    for level in ("high", "medium"):
        found = [step for step in plan.steps if step.kind != "abstract" and step.risk == level]
        if found:
            names = [f"{step.id} ({', '.join(step.effects)})" if step.effects else step.id for step in found]
            yield f"look at: risk {level}: {', '.join(names)}"
    yield from grants(plan)
    todo = [step.id for step in plan.steps if step.kind == "abstract"]
    if todo:
        yield f"written without a script: {', '.join(todo)}"


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Literal

    from planrun.llm.drafts import Draft, Fault
    from planrun.llm.offline import Complexity, Level
    from planrun.llm.projectfile import ProjectFile
    from planrun.llm.repository import Repository
    from planrun.model.plan import Plan
    from planrun.planner.conversation import Conversation, Question, Result
    from planrun.planner.models import Spending
    from planrun.ports import Model
    from planrun.records.planmemory import KeptPlan
    from planrun.settings import Settings

    Activity = Literal["reading", "analyzing", "planning", "synthesizing", "writing", "executing_plan"]
    OnProgress = Callable[[Activity, str], None]

FALLBACK = "template"
MAX_EXAMPLES = 2
_GOAL = 200  # characters of the goal of an example


class Order(Record):
    """A request for a plan: the goal, whether the user wrote it, the target file, and the method."""

    goal: str
    trusted: bool
    file: str
    settings: Settings
    llm: Llm = Llm()
    offline: bool = False
    project: ProjectFile | None = None  # what models should know of the project
    remembers: bool = False  # plans that completed for goals alike are told as examples
    plans: Mapping[str, str] = {}  # of this project, that a step can use, each with what it says of itself
    threshold: Level | None = "complex"  # from this complexity on a plan is suggested; None: never

    @property
    def frame(self) -> Frame:
        """The context of every draft."""
        return Frame(
            file=self.file,
            goal=self.goal,
            settings=self.settings,
            context=ci_context(os.environ),
            plans=tuple(self.plans),
        )


class Generated(Record):
    """The result of an order; `text` and `plan` are set for `accepted`, `faults` and `refusals` say why not.

    `source`: model, template for planrun's own patterns, or search for the project's own steps; `cost`: usd of all
    calls, None if unknown; `estimate`: the range of costs of the steps that a model still has to do.
    """

    outcome: Literal["accepted", "denied", "invalid", "infeasible", "failed", "budget", "stopped"]
    source: Literal["model", "template", "search"]
    complexity: Complexity
    text: str = ""
    plan: Plan | None = None
    message: str = ""
    rounds: int = 0
    faults: tuple[Fault, ...] = ()
    refusals: tuple[dict[str, str], ...] = ()
    calls: tuple[ev.ModelAnswered, ...] = ()
    cut: tuple[dict[str, Any], ...] = ()  # of the question, to fit into the context: name, bytes, kept
    cost: float | None = None
    estimate: tuple[float, float] | None = None
    prices: str = ""  # the date of the prices


def generate(order: Order, on_progress: OnProgress) -> Generated:
    """Return the result of an order; writes nothing. Raises InvalidInput, also when no model can be called."""
    mask = masker(order.goal)
    if not order.offline and (why := why_no_model(order.settings, order.llm)):
        raise InvalidInput(f"{why}; --offline makes a plan without a model")
    ceilings_of(order.settings)  # an unreadable policy is reported before any call
    on_progress("reading", "reading the repository")
    repository = repository_of(order)
    on_progress("analyzing", "analyzing the goal")
    complexity = classify(order.goal, repository.paths)
    if order.offline:
        return _by_pattern(order, repository, complexity, on_progress)
    for score, plan in similar(order):
        on_progress("analyzing", f"example: {line(plan.goal, _GOAL)} (run {plan.run}, likeness {score:.2f})")
    found = _by_model(order, _question(order, repository, mask), complexity, on_progress)
    if order.llm.fallback == FALLBACK and found.outcome in ("invalid", "failed"):
        instead = _by_pattern(order, repository, complexity, on_progress, found.message)
        kept = {"message": found.message, "calls": found.calls, "cost": found.cost, "rounds": found.rounds}
        return instead.but(**kept, faults=found.faults)
    return found


def masker(goal: str) -> Callable[[str], str]:
    """Return a function that masks credentials of planrun's environment; raises InvalidInput for a goal with one."""
    secrets = known_secrets(PROVIDER_KEYS, os.environ)[0]
    secrets |= {name: value for name, value in os.environ.items() if value and holds_credential(name)}
    masks = Masker(secrets)
    if masks.mask_text(goal) != goal:
        raise InvalidInput("the goal holds the value of a credential of this environment; goals are recorded")
    return masks.mask_text


def request_text(order: Order) -> tuple[str, ...]:
    """Return the whole request: the stable beginning, then the question."""
    found = _question(order, repository_of(order), masker(order.goal))
    return (*found.system, fit(found, llm_of(order.settings, order.llm)).text)


def repository_of(order: Order) -> Repository:
    """Return the project without files that the order itself writes, so that a repeated order asks the same."""
    made = (order.file, order.settings.llm_record, order.settings.llm_replay, order.settings.report_dir)
    return read_repository(without=[path for path in made if path])


def _examples(order: Order, mask: Callable[[str], str]) -> list[Piece]:
    """Return plans that completed for goals alike, as examples, where the project keeps such plans."""
    return [
        Piece(
            name=f"plan of an earlier run that completed, for the goal {plan.goal[:_GOAL]}",
            text=mask(plan.text),
            limit=MAX_TEXT,
            rank=EXAMPLES + at,
        )
        for at, (_, plan) in enumerate(similar(order))
    ]


def similar(order: Order) -> list[tuple[float, KeptPlan]]:
    """Return the plans that are told as examples, each with its score."""
    return alike(kept(os.getcwd()), order.goal, MAX_EXAMPLES) if order.remembers else []


def _question(order: Order, repository: Repository, mask: Callable[[str], str]) -> Question:
    frame = order.frame
    told = order.project.but(text=mask(order.project.text)) if order.project else None
    usable = "\n".join([f"{path}: {about}" for path, about in order.plans.items()])
    blocks = [*described(repository, mask), *project_memory(told), *_examples(order, mask)]
    if usable:
        blocks.append(
            Piece(name="plans of this project for `uses`", text=mask(usable), limit=MAX_TEXT, rank=2)
        )
    ceilings = ceilings_of(order.settings)
    limits = told_limits(
        Layers(plan=POLICY, file=order.file, ceilings=ceilings.known), order.llm.max_generated_steps
    )
    pieces = generate_prompt(order.goal, blocks, limits, mask, trusted=order.trusted)
    return Question(
        purpose="generate",
        system=GENERATE_SYSTEM,
        pieces=pieces,
        check=lambda draft: check(draft, frame),
        form=PLAN,
    )


def _by_model(order: Order, question: Question, complexity: Complexity, on_progress: OnProgress) -> Generated:
    llm = llm_of(order.settings, order.llm)
    talk = Talk(order.settings, llm, Limits(), on_progress)
    try:
        result = talk.ask(question)
    finally:
        talk.close()
    found = Generated(
        outcome=result.outcome,
        source="model",
        complexity=complexity,
        message=result.message,
        rounds=result.rounds,
        faults=result.faults,
        refusals=result.refusals,
        calls=tuple(talk.calls),
        cut=tuple(talk.cut),
        cost=cost_of(talk.calls),
        prices=talk.spent.prices.as_of if talk.spent.prices else "",
    )
    if result.outcome != "accepted":
        return found
    draft: Draft = result.value
    found = found.but(estimate=_estimate(draft, llm.model, talk.spent))
    composed = compose(draft, order.frame, list(_heading(order, draft, found)))
    return found.but(text=composed.text, plan=composed.plan)


class Talk:
    """A model as a command without a run asks it, with one budget; opened by its first question.

    `calls`: its answers; `cut`: what was cut from the last question to fit into the context.
    """

    def __init__(self, settings: Settings, llm: Llm, limits: Limits, on_progress: OnProgress) -> None:
        self.llm = llm
        self.calls: list[ev.ModelAnswered] = []
        self.cut: list[dict[str, Any]] = []
        self.spent = spending(limits, settings, is_bound=bool(settings.policy) and limits != Limits())
        self.spent.refuse_unpriced(llm.model)
        self._settings = settings
        self._on_progress = on_progress
        self._model: Model | None = None
        self._conversation: Conversation | None = None

    def ask(self, question: Question) -> Result:
        """Ask one question; raises InvalidInput."""
        if self._conversation is None:
            for note in (*self.spent.notes, *filter(None, [insecure(self._settings)])):
                self._on_progress("planning", note)
            self._model = open_model(self._settings, self.llm)
            self._conversation = Conversation(self._model, self.llm, self.spent.budget(), SystemClock())
        return hold(self._conversation, self._conversation.ask(question), self._on_event)

    def say(self, text: str) -> None:
        """Report something about an answer."""
        self._on_progress("planning", text)

    def close(self) -> None:
        """Leave no process running."""
        if self._model:
            self._model.close()

    def _on_event(self, event: ev.Event) -> None:
        if isinstance(event, ev.ModelAsked):
            again = f", call {event.call}" if event.call > 1 else ""
            if event.cut:
                self._on_progress("planning", f"cut to fit into the context: {cuts(event.cut)}")
            self.cut[:] = event.cut
            self._on_progress("planning", f"asking {event.model}{again}")
        elif isinstance(event, ev.ModelRepeated):
            self._on_progress("planning", repeat_line(event))
        elif isinstance(event, ev.ModelAnswered):
            self.calls.append(event)
            if event.ending == "answered":
                self._on_progress("synthesizing", "checking the answer")
        elif isinstance(event, ev.BudgetCrossed):
            self._on_progress("planning", crossing_line(event, "this command"))


def _by_pattern(
    order: Order, repository: Repository, complexity: Complexity, on_progress: OnProgress, why: str = ""
) -> Generated:
    """Return planrun's own plan; `why`: the reason that no model wrote one."""
    on_progress("planning", "following a built-in pattern")
    draft = fallback_of(order.goal, repository) if why else draft_of(order.goal, repository)
    found = Generated(outcome="accepted", source="template", complexity=complexity)
    heading = list(_heading(order, draft, found))
    if why:
        heading.insert(1, f"NOT WRITTEN BY THE MODEL, which gave no usable plan: {why}")
    composed = compose(draft, order.frame, heading)
    return found.but(text=composed.text, plan=composed.plan)


def _heading(order: Order, draft: Draft, generated: Generated) -> Iterator[str]:
    """Yield the comments above a plan: its author, its goal, and the estimates."""
    yield "Written by `planrun generate`, for review: read every command before this runs."
    if generated.source == "model":
        yield f"model: {told(generated.calls, generated.rounds, generated.prices)}"
    else:
        yield "model: none; a built-in pattern"
        yield from [f"a template fits: {text}" for text in fitting_templates(order.goal)]
    if generated.cut:
        yield f"cut from what the model was told, to fit into the context: {cuts(generated.cut)}"
    if order.threshold:
        reasons = "; ".join([reason.message for reason in generated.complexity.reasons])
        yield f"complexity of the goal: {generated.complexity.level} ({reasons})"
    if draft.analysis.strip():
        yield f"analysis: {draft.analysis}"
    tokens = sum(step.estimated_tokens for step in draft.steps)
    if tokens:
        yield f"estimate: ~{tokens} tokens for the steps that a model has to do{money(generated)}"


def told(calls: Sequence[ev.ModelAnswered], rounds: int, prices: str) -> str:
    """Return one line about the model, its request and its usage; `prices`: their date."""
    usage, cost, last = total(calls), cost_of(calls), calls[-1]
    parts = [
        last.model or "unknown",
        f"request {last.request_id}" if last.request_id else "",
        f"{len(calls)} call{'' if len(calls) == 1 else 's'}",
        f"{rounds} repair{'' if rounds == 1 else 's'}" if rounds else "",
        f"{usage.total - usage.output_tokens} tokens read, {usage.output_tokens} written",
        f"${cost:.4f} by the prices of {prices}" if cost is not None and prices else "",
    ]
    return ", ".join(filter(None, parts))


def money(generated: Generated) -> str:
    """Return the estimated cost, for the end of a line; empty when unknown."""
    if not generated.estimate:
        return ""
    least, most = generated.estimate
    return f", ${least:.2f} to ${most:.2f} by the prices of {generated.prices}"


def total(calls: Sequence[ev.ModelAnswered]) -> Usage:
    """Return the tokens of all calls."""
    return Usage(**{name: int(sum(call.usage.get(name, 0) for call in calls)) for name in TOKENS})


def cost_of(calls: Sequence[ev.ModelAnswered]) -> float | None:
    """Return what calls cost in US dollars; None where that is not known."""
    known = [call.usage["usd"] for call in calls if "usd" in call.usage]
    return sum(known) if known and len(known) == len([call for call in calls if call.usage]) else None


def _estimate(draft: Draft, model: str, spent: Spending) -> tuple[float, float] | None:
    """Return the cost of the estimated tokens as input, and as output."""
    tokens = sum(step.estimated_tokens for step in draft.steps)
    if not tokens or not spent.prices:
        return None
    least = spent.prices.cost(model, Usage(input_tokens=tokens))
    most = spent.prices.cost(model, Usage(output_tokens=tokens))
    return (least, most) if least is not None and most is not None else None
