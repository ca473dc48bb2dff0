"""What a model is told when it is to plan anew: the same beginning for every run, then all that is about this one."""

from __future__ import annotations

import json

from planrun.llm.untrusted import RULES, data_block
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

LOG_BYTES = 4096  # of the end of each failed step's log
GOAL_BYTES = 4096
_MOST_LOGS = 5  # failed steps whose log is shown
_MOST_ROWS = 200  # steps in the table; of more, those that have ended well are left out first

SYSTEM = (
    """\
You are the planner of planrun, which runs reviewed plans in continuous integration with nobody watching. A step of the
plan has failed. Write steps that take the place of what failed and of what cannot go on after it, so that the goal of
the plan is still reached. Answer with the JSON object that is asked for and nothing else.

How it works:
- `analysis`: why it failed, judged from the error and the log, and what you do about it. A few sentences.
- `keep`: ids of pending steps that stay exactly as they are. A pending step that you neither keep nor replace is
  dropped.
- `steps`: new steps, in the order in which they are to run. Every failed step listed under "failed" must be named in
  the `replaces` of at least one new step. Put into `replaces` also each pending step whose work a new step does.
- A pending step that waited for a replaced one waits, when it is kept, for the steps that replace it. You need not
  repeat it.
- What has ended cannot be changed, repeated or replaced. New steps may depend on steps that completed, on kept steps
  and on each other; never on failed, blocked or replaced ones.
- `run` is a bash script started with `bash -euo pipefail`; stdin is empty; nobody can be asked anything. It must not
  be empty here.
- Steps have no memory of each other but files in the workspace, where every step begins.
- Write as few steps as do the work, usually one to three. Repair the cause that the error shows; do not disable a
  test, a check or a gate to make it pass.
- If there is no way within the rules, leave `steps` empty and say why in `infeasible`. That is a good answer.

What decides about your steps: each command is classified (read-only, low, medium, high) and weighed against the policy
of the run, which you cannot change. Steps at or below the level for model-written steps run at once; those above it
wait for a person or are refused for good. Prefer plain, well-known programs that read, build and test in the workspace;
avoid network access, installation, deletion, publishing, `eval`, and anything outside the workspace.
""",
    RULES,
)


class Situation(Record):
    """What a run tells of itself; texts are masked and not yet cleaned.

    `steps`: id, title, status, reason, depends_on, does (what it runs), risk, as far as known. `failed`: id, error
    (class, rule, message) and the name and the end of the log. `numbers`: the first of the numbers that new steps get,
    0 where they get names.
    """

    goal: str
    plan: str
    policy: str
    steps: Sequence[Mapping[str, Any]]
    failed: Sequence[Mapping[str, Any]]
    budget: Sequence[str]
    pending: Sequence[str] = ()
    numbers: int = 0


def question(found: Situation) -> str:
    """Return the question about one run."""
    parts = [
        f"Plan: {_json(found.plan)}",
        _goal(found.goal),
        f"Policy in force: {found.policy}",
        "What is left: " + "; ".join(found.budget),
        "Steps of the plan, one JSON object a line:\n"
        + "\n".join([_json(row) for row in _rows(found.steps)]),
        "pending: " + _json(list(found.pending)),
        "failed: " + _json([row["id"] for row in found.failed]),
        *[_failure(row, shown=at < _MOST_LOGS) for at, row in enumerate(found.failed)],
        _ids(found.numbers),
    ]
    return "\n\n".join(parts) + "\n"


def _goal(goal: str) -> str:
    if not goal.strip():
        return "The plan names no goal: what its steps were to do is to be done."
    return "Goal, as the plan's reviewers wrote it: " + _json(goal[:GOAL_BYTES])


def _rows(steps: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    if len(steps) <= _MOST_ROWS:
        return list(steps)
    first = [row for row in steps if row.get("status") != "completed"]
    return [*first, *[row for row in steps if row.get("status") == "completed"]][:_MOST_ROWS]


def _failure(row: Mapping[str, Any], *, shown: bool) -> str:
    error = row["error"]
    told = f"step {_json(row['id'])} failed: class {error['class']}, rule {error['rule']}"
    message = data_block(f"error message of {row['id']}", error["message"], LOG_BYTES // 4)
    if not shown or not row["log"]:
        return f"{told}\n{message}"
    return f"{told}\n{message}\n{data_block('end of the log of ' + row['id'], row['log'], LOG_BYTES)}"


def _ids(first: int) -> str:
    if first:
        return (
            f"Ids of new steps are numbers from {first} on, in the order of `steps`: {first}, {first + 1}, …"
        )
    return "Ids of new steps must be new: none that any step of the plan has or had."


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
