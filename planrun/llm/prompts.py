"""The prompts for models. Each begins with the same text in every request, so that a service can cache it."""

from __future__ import annotations

import json

from planrun.llm.drafts import CANDIDATES, PIECES, PLAN, STEPS
from planrun.llm.fitting import Piece
from planrun.llm.projectfile import BLOCK, MAX_BYTES
from planrun.llm.repository import parts
from planrun.llm.untrusted import RULES, clean, data_block
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from typing import Any

    from planrun.llm.drafts import Form
    from planrun.llm.plantext import Whole
    from planrun.llm.projectfile import ProjectFile
    from planrun.llm.repository import Repository

_LANGUAGE = """\
You write steps of a plan that planrun, a runner for CI, executes without anybody watching. People review it first.

You answer with one JSON object that follows the given schema, and with nothing else. Its keys:
"""
_JUDGED = """

Policy, risk, environment variables, network rights and tools are not yours to set: there are no keys for them. The
commands themselves are judged by fixed rules before they run: what only reads passes; what writes outside of the
project, uses the network, publishes, deletes, needs privileges or cannot be understood waits for a person or is
refused. So write plain commands with literal arguments, each doing one thing; no eval, no code from the network, no
tricks."""


def language(form: Form) -> str:
    """Return what a model must know to write an answer of a form."""
    return f"{_LANGUAGE}{form.words}{_JUDGED}"


_TASK = """\
Your task: write a whole plan that reaches the goal below in the project that the data blocks tell of.

- Look before you change, and check afterwards: the last steps show by exit codes that the goal is reached, with the
  project's own commands for tests where there are any.
- Use files, commands and tools that the project really has. Where a change needs thinking that no command can do, leave
  `run` empty and describe in `description` exactly what is to be done; do not invent a command for it.
- As few steps as the goal takes. Each can fail for one reason, and says so by its exit code.
- What a person has to decide is a step with `ask`; what always has to happen at the end has `cleanup`. A plan has no
  schedule: say in `analysis` when it is to be run, and CI or cron runs it."""
GENERATE_SYSTEM = (language(PLAN), RULES, _TASK)
"""The stable beginning of every such request."""
MAX_GOAL = 24_000  # bytes


def generate_prompt(
    goal: str,
    blocks: Sequence[Piece],
    limits: Sequence[str],
    mask: Callable[[str], str],
    *,
    trusted: bool,
) -> list[Piece]:
    """Return the question; `blocks`: about the project, `mask` hides secrets, `trusted`: the user wrote the goal.

    `limits`: lines about the policies in force and the number of steps.
    """
    asked = (
        goal
        if trusted
        else "what the block named `goal` asks for.\n" + data_block("goal", mask(goal), MAX_GOAL)
    )
    return [
        *blocks,
        Piece(text=f"Goal: {asked}"),
        Piece(text="\n".join(limits)),
    ]


def described(repository: Repository, mask: Callable[[str], str], *, listed: bool = True) -> list[Piece]:
    """Return the pieces about a project; those that come last matter least. `listed`: with all files."""
    found = [Piece(text="The project:")]
    for rank, (name, text, limit) in enumerate(parts(repository, listed=listed), 1):
        # Characters have up to four bytes.
        found.append(Piece(name=name, text=mask(text), limit=limit * 4, rank=_PROJECT + rank))
    return found if found[1:] else []


def project_memory(file: ProjectFile | None) -> list[Piece]:
    """Return the piece with what people wrote about the project for models; it is cut last."""
    if file is None:
        return []
    return [Piece(name=f"{BLOCK}: {file.name}", text=file.text, limit=MAX_BYTES, rank=1)]


# Ranks of pieces: what has the highest is cut first.
_PLAN = 1
_STEPS = 2
_LOGS = 10
_PROJECT = 100
EXAMPLES = 1000


_EXPAND_TASK = """\
Your task: make one abstract step of a plan concrete. It says what is to be done and has no script yet; you write the
steps with scripts that do it, and nothing besides. The rest of the plan stays as it is: it stands in a data block so
that you know what comes before and after.

- Every step has a script. One step is enough where one script does it; several where they can fail for different
  reasons, or where one of them needs another risk than the rest.
- The last step keeps the id of the abstract step: what waits for that waits for your last one. The ids of all others
  begin with that id and `-`, as in `migrate-check` for `migrate`. The last step waits for all others, itself or by
  others; planrun adds the edges for that.
- depends_on names your own steps, and those that the abstract step waits for. Steps of yours without any get the edges
  of the abstract step.
- What the plan says of the abstract step (time, retries, environment, folder, condition …) holds for each of yours.
- Use files, commands and tools that the project really has. Look before you change, and check afterwards.
- If it cannot be done by commands in this project, say so in `infeasible`."""
EXPAND_SYSTEM = (language(PIECES), RULES, _EXPAND_TASK)
"""The stable beginning of every such request."""
MAX_PLAN = 48 * 1024  # bytes of the plan's text
_MAX_WORDS = 4000  # characters of what a step says


def expand_prompt(
    whole: Whole,
    text: str,
    blocks: Sequence[Piece],
    limits: Sequence[str],
    mask: Callable[[str], str],
) -> list[Piece]:
    """Return the question for one step; `text`: the plan by now, `blocks`: about the project, `mask` hides secrets.

    `limits`: lines about the policies in force and the number of steps.
    """
    return [
        *blocks,
        Piece(text="The plan:"),
        Piece(name="plan", text=mask(text), limit=MAX_PLAN, rank=_PLAN),
        Piece(text=f"Make this step concrete: {whole.id}"),
        Piece(text="\n".join(_about(whole, mask))),
        Piece(text="\n".join(limits)),
    ]


def _about(whole: Whole, mask: Callable[[str], str]) -> list[str]:
    rows = [
        f"{name}: {json.dumps(clean(mask(said)).text[:_MAX_WORDS], ensure_ascii=False)}"
        for name, said in (("title", whole.title), ("description", whole.description))
        if said
    ]
    if whole.edges:
        rows.append("waits for: " + ", ".join([f"{edge.on} ({edge.kind})" for edge in whole.edges]))
    if whole.followers:
        rows.append("steps that wait for it: " + ", ".join(whole.followers))
    if whole.copied:
        rows.append("the plan says besides: " + ", ".join(sorted(whole.copied)))
    if whole.shell:
        rows.append(f"its scripts are for this shell, not for bash: {whole.shell}")
    if whole.outputs:
        rows.append("the last step has to write the outputs: " + ", ".join(whole.outputs))
    return rows


LOG_BYTES = 4096  # of the end of each failed step's log
GOAL_BYTES = 4096
_MOST_LOGS = 5  # failed steps whose log is shown
_MOST_ROWS = 200  # steps in the table; of more, those that have ended well are left out first

_REPLAN_TASK = """\
Your task: a step of a running plan has failed. Write steps that take the place of what failed and of what cannot go on
after it, so that the goal of the plan is still reached.

- analysis says why it failed, judged from the error and the log, and what you do about it.
- Every failed step listed under "failed" is named in the `replaces` of at least one new step.
- A pending step that waited for a replaced one waits, when it is kept, for the steps that replace it. What it reads of
  the outputs of a replaced step, it reads of the one that replaces it: write the same outputs.
- What has ended cannot be changed, repeated or replaced. New steps may depend on steps that completed, on kept steps
  and on each other; never on failed, blocked or replaced ones.
- Each new step has an action. `secrets` are some of those that the plan declares.
- Write as few steps as do the work, usually one to three. Repair the cause that the error shows; do not disable a
  test, a check or a gate to make it pass.
- Steps at or below the level for model-written steps run at once; those above it wait for a person or are refused for
  good."""
REPLAN_SYSTEM = (language(STEPS), RULES, _REPLAN_TASK)
"""The stable beginning of every such request."""


CANDIDATES_SYSTEM = (
    """\
You offer steps to planrun, which runs reviewed plans in continuous integration with nobody watching. A search looks for
the cheapest way to facts that are wanted, through steps that people have reviewed; yours join them. It takes a step of
yours where it is expected to cost less, or where nothing else leads on. Answer with the JSON object that is asked for
and nothing else.

FORM
- `steps` are different ways to come closer to the facts that are wanted, each a single step that works by itself. Offer
  few and good ones; the same way twice helps nobody.
- `run` exits with another code than 0 whenever what it provides is not so: check it at the end.
- `requires` and `provides` name facts exactly as in the lists below. What `provides` names is believed when the step
  has completed, and steps that need it start then. Name nothing that the script has not reached and checked.
- If you know no other way, leave `steps` empty and say why in `infeasible`. That is a good answer.

Each command is classified (read-only, low, medium, high) and weighed against the policy in force, which you cannot
change. Steps above the level for model-written steps wait for a person, which costs more than nearly any other way, or
are refused for good. So write plain, well-known commands with literal arguments that read, build and test in the
workspace; no network, installation, deletion, publishing or `eval`, nothing outside of the workspace. A step that only
pretends to reach a fact does harm.
""".replace("FORM", CANDIDATES.words),
    RULES,
)


def known_facts(
    facts: Mapping[str, Collection[str]], actions: Sequence[Mapping[str, Any]], most: int
) -> list[Piece]:
    """Return the pieces about a search; `facts`: by what is said of them."""
    return [
        *[Piece(text=f"Facts that {what}: {_json(sorted(names))}") for what, names in facts.items()],
        Piece(
            text="Steps that are there, one JSON object a line:",
            rows=tuple([_json(row) for row in actions]),
            rank=_STEPS,
        ),
        Piece(text=f"Offer at most {most} steps.\n"),
    ]


class Situation(Record):
    """What a run reports of itself; texts are masked and not yet cleaned.

    `steps`: id, title, status, reason, depends_on, does (what it runs), risk, as far as known. `failed`: id, error
    (class, rule, message) and the name and the end of the log. `numbers`: the first of the numbers that new steps get,
    0 where they get names.
    """

    goal: str
    plan: str
    policy: Sequence[str]
    steps: Sequence[Mapping[str, Any]]
    failed: Sequence[Mapping[str, Any]]
    budget: Sequence[str]
    pending: Sequence[str] = ()
    numbers: int = 0
    log_bytes: int = LOG_BYTES  # of the end of each failed step's log
    project: ProjectFile | None = None  # what models should know of the project
    about: Sequence[Piece] = ()  # the project


def question(found: Situation) -> list[Piece]:
    """Return the question about one run."""
    return [
        Piece(text=f"Plan: {_json(found.plan)}"),
        Piece(text=_goal(found.goal)),
        Piece(text="\n".join(found.policy)),
        Piece(text="What is left: " + "; ".join(found.budget)),
        *found.about,
        *project_memory(found.project),
        Piece(
            text="Steps of the plan, one JSON object a line:",
            rows=tuple([_json(row) for row in _rows(found.steps)]),
            rank=_STEPS,
        ),
        Piece(text="pending: " + _json(list(found.pending))),
        Piece(text="failed: " + _json([row["id"] for row in found.failed])),
        *[piece for at, row in enumerate(found.failed) for piece in _failure(row, at, found.log_bytes)],
        Piece(text=_ids(found.numbers) + "\n"),
    ]


def _goal(goal: str) -> str:
    if not goal.strip():
        return "The plan names no goal: what its steps were to do is to be done."
    return "Goal, as the plan's reviewers wrote it: " + _json(goal[:GOAL_BYTES])


def _rows(steps: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    if len(steps) <= _MOST_ROWS:
        return list(steps)
    first = [row for row in steps if row.get("status") != "completed"]
    return [*first, *[row for row in steps if row.get("status") == "completed"]][:_MOST_ROWS]


def _failure(row: Mapping[str, Any], at: int, most: int) -> Iterator[Piece]:
    error = row["error"]
    summary = f"step {_json(row['id'])} failed: class {error['class']}, rule {error['rule']}"
    message = data_block(f"error message of {row['id']}", error["message"], LOG_BYTES // 4)
    if at >= _MOST_LOGS or not row["log"]:
        yield Piece(text=f"{summary}\n{message}")
        return
    lead = f"{summary}\n{message}\n"
    yield Piece(
        name=f"end of the log of {row['id']}", text=row["log"], limit=most, rank=_LOGS + at, lead=lead
    )


def _ids(first: int) -> str:
    if first:
        return (
            f"Ids of new steps are numbers from {first} on, in the order of `steps`: {first}, {first + 1}, …"
        )
    return "Ids of new steps must be new: none that any step of the plan has or had."


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
