"""`planrun generate` writes a plan for a goal, for review; `planrun classify` shows the complexity of a task."""

from __future__ import annotations

import os

import click

from planrun.app.run import RunRequest, execute, secrets_of
from planrun.approval.preview import PolicyPreview, digest_preview
from planrun.cli.run import planner
from planrun.cliutil import click as written
from planrun.cliutil import write_stderr
from planrun.cliutil.click import DRY_RUN, FORCE, JSON, report_failure, tabled, task
from planrun.cliutil.failure import printable
from planrun.cliutil.options import APPROVING, EXPAND, MODEL_OPTIONS, Option, parse_all
from planrun.cliutil.printing import say, say_bytes, say_json
from planrun.cliutil.searching import CANDIDATES, LIMITS, SEARCH, limits_in
from planrun.errors import EXIT_OK, InvalidInput
from planrun.llm.drafts import as_data as faults_data
from planrun.llm.fitting import LEAST_CONTEXT_TOKENS
from planrun.llm.offline import LEVELS, THRESHOLD
from planrun.llm.offline import classify as classify_text
from planrun.model.planning import Llm
from planrun.plan.project import project
from planrun.plan.schema.forms import as_duration
from planrun.planner.compose import compose
from planrun.planner.generate import Order, grants, money, request_text, total
from planrun.planner.generate import generate as write_plan
from planrun.planner.generate import told as model_words
from planrun.planner.repository import project_memory, read_repository
from planrun.planner.sources import fitting_templates, usable_plans
from planrun.settings import Settings, current_folder, settings_of
from planrun.show.cli import overview

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.app.session import Result
    from planrun.llm.offline import Complexity, Level
    from planrun.model.plan import Plan
    from planrun.plan.project import Project
    from planrun.planner.generate import Generated

_ADVICE = {
    "not needed": "not needed: a single command or change will do",
    "optional": "optional",
    "suggested": "suggested: planrun generate writes one for review",
}


@click.command(short_help="Show whether a task is simple, medium or complex, and why.")
@click.argument("text", nargs=-1, required=True)
@click.option(
    "--threshold",
    type=click.Choice(LEVELS[1:]),
    envvar="PLANRUN_THRESHOLD",
    help=f"The level from which on a plan is suggested. Default: that of the project, or {THRESHOLD}  "
    "[PLANRUN_THRESHOLD]",
)
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def classify(text: tuple[str, ...], threshold: Level | None, *, as_json: bool) -> int:
    """Show the complexity of the task in TEXT, and the rules that decided it. No model is called.

    Complex keywords, more than three files or more than 30 words make it complex; medium ones, two files or more than
    15 words make it medium. Keywords are whole words. Only names of files in this repository count. `-` reads the
    text from standard input.

    \b
    Examples:
      planrun classify "migrate the tests to pytest"
      planrun classify --json "explain src/app.py" | jq -r .level
      gh issue view 12 --json body --jq .body | planrun classify -
    """
    found = project()
    level: Any = threshold or found.threshold or THRESHOLD
    suggests = found.auto_detect or threshold is not None
    complexity = classify_text(task(text, "TEXT"), read_repository().paths)
    if as_json:
        say_json(as_data(complexity, level if suggests else None))
        return 0
    say(f"complexity: {complexity.level}")
    for reason in complexity.reasons:
        matched = f": {', '.join(reason.matched)}" if reason.matched and reason.rule == "files" else ""
        say(f"  {reason.rule}: {reason.message}{matched}")
    if suggests:
        say(f"plan: {_ADVICE[complexity.advice(level)]}")
    return 0


def as_data(complexity: Complexity, threshold: Level | None) -> dict[str, Any]:
    """Return a classification as JSON data; `threshold`: from which on a plan is suggested, None: never."""
    return {
        "level": complexity.level,
        "planning": complexity.advice(threshold) if threshold else None,
        "threshold": threshold,
        "reasons": [{**vars(reason), "matched": list(reason.matched)} for reason in complexity.reasons],
        "words": complexity.words,
        "files": list(complexity.files),
    }


FILE = "plan.yml"
STANDARD_OUTPUT = written.STANDARD_OUTPUT
_SCOPE = "GENERATE"
_OWN = (
    Option(
        flags=("--output", "-o"),
        name="target",
        kind="text",
        metavar="FILE",
        help=f"Where the plan goes; `-` is standard output. Default: {FILE}",
        scope=_SCOPE,
    ),
    FORCE.but(scope=_SCOPE),
    Option(
        flags=("--offline",),
        name="offline",
        kind="flag",
        help="Call no model: use planrun's own pattern for the goal.",
    ),
    SEARCH.but(help="Call no model: compose the plan for the facts in GOAL of steps of this project."),
    Option(
        flags=("--parts",),
        name="parts",
        kind="list",
        section="Search",
        metavar="FILE",
        help="With --search: plans whose steps may be used; repeatable. Default: those here and in plans/.",
        scope=_SCOPE,
    ),
    *LIMITS,
    CANDIDATES,
    Option(
        flags=("--fallback",),
        name="fallback",
        kind="choice",
        choices=("fail", "template"),
        help="When the model gives no valid plan: fail, or use planrun's own pattern.",
    ),
    Option(
        flags=("--execute",),
        name="execute",
        kind="flag",
        help="Run the plan at once, as a model's plan: see llm_auto_approve.",
        scope=_SCOPE,
    ),
    EXPAND.but(
        help="With --execute: let a model expand abstract steps before anything starts.", scope=_SCOPE
    ),
    DRY_RUN.but(scope=_SCOPE),
    Option(
        flags=("--no-auto-detect",),
        name="no_auto_detect",
        kind="flag",
        help="Do not classify the goal.",
    ),
    Option(
        flags=("--threshold",),
        name="threshold",
        kind="choice",
        choices=("medium", "complex"),
        help="Suggest a plan from this level up, as for classify.",
    ),
)
_LLM = (
    Option(
        flags=("--llm-effort",),
        name="effort",
        kind="choice",
        choices=("low", "medium", "high", "xhigh", "max"),
        help="The effort of the model. Default: medium",
    ),
    Option(
        flags=("--plan-max-tokens",),
        name="plan_max_tokens",
        kind="count",
        metavar="N",
        help="The longest answer, in tokens; doubled once when one is cut off. Default: 8000",
    ),
    Option(
        flags=("--max-generated-steps",),
        name="max_generated_steps",
        kind="count",
        metavar="N",
        help="How many steps the model may write. Default: 10",
    ),
    Option(
        flags=("--max-context-tokens",),
        name="max_context_tokens",
        kind="count",
        metavar="N",
        help="How many tokens all that is sent in one call may have, at least 10000. Default: 100000",
    ),
    Option(
        flags=("--planning-timeout",),
        name="planning_timeout",
        kind="span",
        metavar="DURATION",
        help="How long all calls may take together. Default: 1m",
    ),
)
GENERATE = (*_OWN, *MODEL_OPTIONS, *_LLM, *APPROVING, JSON)
_HELP = f"""Write a plan for a goal, for review.

    GOAL is the goal in words; `-` reads it from standard input, as untrusted text. The request describes this
    repository: languages, build files, the tree, the beginning of README and CI files; never files that hold secrets.
    The model can only write steps. Its plan is checked like any plan, repaired at most twice, and written to {FILE}
    with comments for the reviewer. Nothing runs without --execute.

    \b
    Examples:
      planrun generate "release version 1.2" --llm-model NAME
      planrun generate "fix the login" --offline -o plans/login.yml
      planrun generate "update the docs" --dry-run
      gh issue view 12 --json body --jq .body | planrun generate - -o -

    \b
    Exit codes:
      0    the plan is written; with --execute: how the run ended
      1    the model reports that it cannot be done, or gave no valid plan
      2    the command line is wrong, no model is available, or FILE exists already
      3    --policy denies what the model wrote
    """


def _generate(words: list[str]) -> int:
    operands, values = parse_all(words, GENERATE)
    own = {option.name: values.pop(option.name, None) for option in (*_OWN, *_LLM)}
    limits = limits_in(own, without=("offline", "fallback", "dry_run"))
    settings = settings_of({**values, **limits, "expand": bool(own["expand"])})
    target = own["target"] or FILE
    if own["expand"] and (own["offline"] or not own["execute"]):
        raise InvalidInput("--expand is for --execute, and asks a model: it does not go with --offline")
    if own["execute"] and target == STANDARD_OUTPUT:
        raise InvalidInput("--execute needs a file: -o FILE")
    if target != STANDARD_OUTPUT and not own["dry_run"]:
        written.refuse_existing(target, forced=bool(own["force"]))
    order = _order(operands, own, settings, target)
    if own["dry_run"]:
        parts = request_text(order)
        say("\n\n".join(parts))
        size = sum(len(part.encode("utf-8", "replace")) for part in parts)
        written.tell(f"{size} bytes, at most {size // 2} tokens; no model was asked")
        return EXIT_OK
    files = tuple(own["parts"] or ()) if own["search"] else None
    return _made(order, target, files, forced=bool(own["force"]), at_once=bool(own["execute"]))


def written_plan(goal: str, file: str, *, offline: bool, options: dict[str, Any]) -> Plan:
    """Return the plan for a goal, and write it to a file that does not exist, for `planrun.generate`.

    Raises InvalidInput.
    """
    if file:
        written.refuse_existing(file, forced=False)
    own: dict[str, Any] = dict.fromkeys([option.name for option in (*_OWN, *_LLM)])
    own["offline"] = offline
    order = _order([goal], own, Settings(**options), file or FILE)
    generated = write_plan(order, lambda _activity, _message: None)
    if generated.plan is None:
        raise InvalidInput(f"no plan: {generated.message or generated.outcome}")
    if file:
        written.write_file(file, generated.text.encode(), forced=False)
    return generated.plan


def _order(operands: list[str], own: dict[str, Any], settings: Settings, target: str) -> Order:
    found = project()
    classifies = found.auto_detect and not own["no_auto_detect"]
    level: Any = own["threshold"] or found.threshold or THRESHOLD
    return Order(
        goal=task(operands, "GOAL"),
        trusted=operands != ["-"],
        file=FILE if target == STANDARD_OUTPUT else target,
        settings=settings,
        llm=_llm(own, found),
        project=None if own["offline"] else project_memory(str),
        remembers=found.remembers_plans,
        offline=bool(own["offline"]),
        plans={} if own["offline"] or own["search"] else usable_plans(target),
        threshold=level if classifies else None,
    )


def _llm(own: dict[str, Any], project: Project) -> Llm:
    names = (*[option.name for option in _LLM], "fallback")
    fields = {name: own[name] for name in names if own[name] is not None}
    if "planning_timeout" in fields:
        fields["planning_timeout"] = as_duration(fields["planning_timeout"])
    if fields.get("max_generated_steps", 1) > 100:
        raise InvalidInput("--max-generated-steps takes at most 100")
    if fields.get("max_context_tokens", LEAST_CONTEXT_TOKENS) < LEAST_CONTEXT_TOKENS:
        raise InvalidInput(f"--max-context-tokens takes at least {LEAST_CONTEXT_TOKENS}")
    if project.max_context_tokens:
        fields.setdefault("max_context_tokens", project.max_context_tokens)
    return Llm(**fields)


def _made(order: Order, target: str, files: tuple[str, ...] | None, *, forced: bool, at_once: bool) -> int:
    """Write a plan and show it; `files`: where a search takes steps from, None: a model or a pattern writes it."""
    activities: list[dict[str, str]] = []

    def tell(activity: str, message: str) -> None:
        activities.append({"activity": activity, "message": message})
        written.tell(message)

    generated = write_plan(order, tell) if files is None else compose(order, files, tell)
    result = None
    if generated.outcome == "accepted":
        if generated.source == "template" and not order.offline:
            why = " ".join(generated.message.split())
            written.tell(
                f"WARNING: the model gave no valid plan ({why}); this plan is planrun's own pattern, not the model's"
            )
        data = generated.text.encode()
        if target == STANDARD_OUTPUT:
            say_bytes(data)
        else:
            tell("writing", f"writing {target}")
            written.write_file(target, data, forced=forced)
        if not order.settings.json:
            text = "\n".join(_lines(generated, order, target))
            if target == STANDARD_OUTPUT:
                write_stderr(f"{text}\n")
            else:
                say(text)
        if at_once:
            tell("executing_plan", f"executing {target}")
            result = _run(generated, order.settings)
    if order.settings.json:
        say_json(_document(generated, order, target, activities, result))
    if result is not None and result.lost:
        raise result.lost
    if generated.outcome != "accepted":
        code = report_failure(generated, searched=generated.source == "search")
        if generated.calls:
            written.tell(f"asked {_model(generated)}")
        return code
    return result.exit_code if result is not None else EXIT_OK


def _lines(generated: Generated, order: Order, target: str) -> Iterator[str]:
    plan = generated.plan
    assert plan is not None
    digests = digest_preview(plan, (), current_folder())
    plan = plan.but(digest=digests.reviewed.digest)
    yield from overview(digests, PolicyPreview(plan, order.settings))
    yield ""
    yield from map(printable, grants(plan))
    if generated.source == "template":
        yield from [f"A template fits: {printable(text)}" for text in fitting_templates(order.goal)]
    if generated.calls:
        source = ", from a recording" if any(call.replayed for call in generated.calls) else ""
        yield f"Model: {printable(_model(generated))}{source}"
    if generated.estimate:
        tokens = sum(step.estimated_tokens for step in plan.steps)
        yield f"Cost estimate: ~{tokens} tokens{money(generated)}"
    if order.threshold:
        assert order.threshold is not None
        words = {
            "not needed": "a plan may not be needed",
            "optional": "a plan is optional",
            "suggested": "a plan is suggested",
        }
        yield f"Goal: {generated.complexity.level}; {words[generated.complexity.advice(order.threshold)]}"
    if target != STANDARD_OUTPUT:
        verb = "expand" if any(step.kind == "abstract" for step in plan.steps) else "execute"
        yield f"Written: {printable(target)}; review it, then planrun {verb} {printable(target)}"


def _model(generated: Generated) -> str:
    return model_words(generated.calls, generated.rounds, generated.prices)


def _run(generated: Generated, settings: Settings) -> Result:
    """Run the plan that was written; all its steps count as a model's."""
    assert generated.plan is not None
    steps = tuple([step.but(origin="expanded") for step in generated.plan.steps])
    plan = generated.plan.but(steps=steps)
    run_settings = settings.but(
        output="quiet" if settings.json else settings.output, json=False, generation=_generation(generated)
    )
    return execute(plan, run_settings, RunRequest(planner=planner, secrets=secrets_of(plan)))


def _generation(generated: Generated) -> dict[str, Any] | None:
    """Return what the run records of the calls that wrote its plan; None where none was made."""
    if not generated.calls:
        return None
    usage = {
        **vars(total(generated.calls)),
        **({"usd": generated.cost} if generated.cost is not None else {}),
    }
    return {"model": generated.calls[-1].model, "calls": len(generated.calls), "usage": usage}


def _document(
    generated: Generated, order: Order, target: str, activities: list[dict[str, str]], result: Result | None
) -> dict[str, Any]:
    plan = generated.plan
    return {
        "outcome": generated.outcome,
        "source": generated.source,
        "file": target if plan is not None and target != STANDARD_OUTPUT else None,
        "message": generated.message,
        "complexity": as_data(generated.complexity, order.threshold) if order.threshold else None,
        "steps": [
            {
                "id": step.id,
                "title": step.title,
                "kind": step.kind,
                "risk": step.risk,
                "depends_on": [edge.on for edge in step.edges],
                "estimated_tokens": step.estimated_tokens,
            }
            for step in (plan.steps if plan is not None else ())
        ],
        "rounds": generated.rounds,
        "cut": list(generated.cut),
        "faults": faults_data(generated.faults),
        "refusals": list(generated.refusals),
        "calls": [
            {
                "model": call.model,
                "request_id": call.request_id,
                "ending": call.ending,
                "usage": call.usage,
                "replayed": call.replayed,
            }
            for call in generated.calls
        ],
        "usage": {name: value for name, value in vars(total(generated.calls)).items() if value},
        "usd": generated.cost,
        "estimate_usd": list(generated.estimate) if generated.estimate else None,
        "activities": activities,
        "run": _run_data(result),
    }


def _run_data(result: Result | None) -> dict[str, Any] | None:
    if result is None:
        return None
    return {"run_id": os.path.basename(result.rundir), "exit_code": result.exit_code}


generate = tabled("generate", [click.Argument(["goal"], nargs=-1, required=True)], GENERATE, _HELP, _generate)
