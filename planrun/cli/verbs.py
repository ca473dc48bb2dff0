"""Every verb in one table: help, groups, completion and the pages in docs/ are made from it. Imports nothing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Verb:
    """One verb: `module` is where its command is, `operands` and `summary` what help lists."""

    __slots__ = ("group", "module", "name", "operands", "summary")

    def __init__(self, name: str, operands: str, group: str, summary: str, module: str) -> None:
        self.name = name
        self.operands = operands
        self.group = group
        self.summary = summary
        self.module = module

    @property
    def usage(self) -> str:
        """The verb with its operands."""
        return f"{self.name} {self.operands}".rstrip()


TABLE = (
    Verb("init", "[FILE]", "plans", "write a first plan: plan.yml", "start.cli:init"),
    Verb("list", "", "plans", "list the plans in this folder and their steps", "listing.cli:list_"),
    Verb(
        "validate",
        "[PLAN]...",
        "plans",
        "report every problem, with its line and column",
        "cli.validate:validate",
    ),
    Verb("lint", "[PLAN]...", "plans", "report risks and mistakes in valid plans", "lint.cli:lint"),
    Verb("fmt", "[PLAN]...", "plans", "format plan files, and keep every comment", "fmt.cli:fmt"),
    Verb("show", "[PLAN]", "plans", "show what it would do: steps, risks, order", "show.cli:show"),
    Verb("show", "RUN STEP --patch", "review", "print the patch that an agent made", "show.cli:show"),
    Verb("explain", "CODE", "plans", "explain a problem code, such as E104", "cli.explain:explain"),
    Verb(
        "explain",
        "[PLAN] STEP",
        "plans",
        "explain when a step would run, and its risk",
        "cli.explain:explain",
    ),
    Verb("lsp", "", "plans", "serve an editor: problems, help and completion", "cli.lsp:lsp"),
    Verb(
        "convert",
        "FILE",
        "plans",
        "convert a workflow, a Taskfile, a Makefile and others",
        "convert.cli:convert",
    ),
    Verb(
        "templates",
        "[VERB]",
        "plans",
        "list templates, and make plans from them",
        "templates.cli:templates",
    ),
    Verb("notify", "[PLAN]", "plans", "send a test message to whom it notifies", "cli.notify:notify"),
    Verb("tools", "[NAME]", "plans", "list the tools that a plan can call", "cli.agents:tools"),
    Verb("agents", "[PLAN]", "plans", "list the types of agents, with their tools", "cli.agents:agents"),
    Verb("mcp", "VERB [PLAN]", "plans", "list and pin the tools of MCP servers", "cli.mcp:mcp"),
    Verb("modes", "", "plans", "list the modes of agents, with their limits", "cli.agents:modes"),
    Verb("run", "[PLAN] [STEP]", "runs", "run a plan, or a step and what it depends on", "cli.execute:run"),
    Verb("execute", "[PLAN]", "runs", "the same as run", "cli.execute:execute"),
    Verb("logs", "[RUN] [STEP]", "runs", "print the output of the steps", "logs.cli:logs"),
    Verb("status", "[RUN]", "runs", "show the progress of a run, and what blocks it", "runs.cli:status"),
    Verb("watch", "[RUN]", "runs", "watch a run on the whole screen, and answer it", "live.cli:watch"),
    Verb("serve", "", "runs", "show the runs of this folder in a browser", "serve.cli:serve"),
    Verb("runs", "", "runs", "list the runs in this folder", "runs.cli:runs"),
    Verb(
        "report",
        "[RUN]",
        "runs",
        "write a report as HTML, JUnit, markdown, JSON or text",
        "cli.report:report",
    ),
    Verb(
        "explain",
        "RUN STEP",
        "runs",
        "explain why a step ran, failed or did not run",
        "cli.explain:explain",
    ),
    Verb("resume", "[RUN]", "runs", "continue a run that failed or was killed", "cli.execute:resume"),
    Verb("retry", "[RUN] STEP...", "runs", "run steps again, and their dependents", "cli.execute:retry"),
    Verb("pause", "RUN", "runs", "pause a run until it is resumed", "cli.stop:pause"),
    Verb("cancel", "RUN", "runs", "cancel a run from another shell", "cli.stop:cancel"),
    Verb("finalize", "RUN", "runs", "roll back and clean up a run that was interrupted", "cli.stop:finalize"),
    Verb("shard", "N/M|M [PLAN]", "runs", "split a plan over several machines", "shards.cli:shard"),
    Verb("merge", "DIR...", "runs", "merge the reports of shards into one verdict", "shards.cli:merge"),
    Verb("stats", "", "runs", "show durations and failures over many runs", "stats.cli:stats"),
    Verb(
        "trace", "[RUN]", "runs", "write the spans of a run, or send them to a collector", "trace.cli:trace"
    ),
    Verb("attest", "[RUN]", "runs", "write an in-toto statement about a run", "attest.cli:attest"),
    Verb("replay", "[RUN]", "runs", "replay its records, also under another plan", "replays.cli:replay"),
    Verb("publish", "[RUN]", "runs", "send a run to where a team lists its runs", "runs.cli:publish"),
    Verb("verify", "[RUN]", "runs", "check that the ledger of a run is unchanged", "runs.cli:verify"),
    Verb("prune", "", "runs", "delete finished runs", "runs.cli:prune"),
    Verb("review", "[PLAN]", "review", "review a change of a plan, for pull requests", "diff.cli:review"),
    Verb("diff", "[OLD] [NEW]", "review", "show what changed in the meaning of a plan", "diff.cli:diff"),
    Verb(
        "comment",
        "[REVIEW.JSON]",
        "review",
        "write a review as one comment of a pull request",
        "pullrequests.cli:comment",
    ),
    Verb("risk", "COMMAND", "review", "show the class of risk of a command, and why", "cli.risk:risk"),
    Verb(
        "approve",
        "RUN|PLAN",
        "review",
        "approve what a run waits for, or a plan",
        "cli.approve:approve",
    ),
    Verb("reject", "RUN [STEP]", "review", "reject it: the run ends with exit code 3", "cli.approve:reject"),
    Verb("decide", "RUN STEP=X", "review", "answer a run's questions", "cli.approve:decide"),
    Verb("lock", "[PLAN]", "review", "write a lockfile, for run --locked", "cli.approve:lock"),
    Verb("generate", "GOAL", "model", "write a plan for a goal, for review", "cli.generate:generate"),
    Verb("expand", "PLAN", "model", "expand its abstract steps, for review", "cli.expand:expand"),
    Verb(
        "tree",
        "PLAN|RUN",
        "model",
        "show a search for a plan: nodes, scores, why others lost",
        "cli.tree:tree",
    ),
    Verb("replan", "RUN", "model", "ask a model for a recovery plan", "cli.replan:replan"),
    Verb(
        "classify",
        "TEXT",
        "model",
        "show whether a task is simple, medium or complex",
        "cli.generate:classify",
    ),
    Verb("memory", "[RUN] [KEY]", "model", "show the memory that a run's agents shared", "cli.memory:memory"),
    Verb("errors", "[VERB]", "model", "list or clear what agents learned", "cli.memory:errors"),
    Verb("cache", "[VERB]", "cache", "inspect or clear the cache", "cli.cache:cache"),
    Verb("queue", "VERB", "queue", "queue plans in this folder and run them", "queue.cli:queue"),
    Verb("doctor", "", "machine", "check Python, git, shell, space, containers, CI ...", "doctor.cli:doctor"),
    Verb("schema", "[NAME]", "machine", "print the JSON Schema of plans, for editors", "start.cli:schema"),
    Verb(
        "completion",
        "SHELL",
        "machine",
        "print the completion script for bash, zsh or fish",
        "cli.group:completion",
    ),
    Verb("help", "[TOPIC]", "machine", "show the help of a verb, a group or a topic", "cli.helpverb:help_"),
)
"""A verb with several uses has a row for each; all name the same module."""

GROUPS = {
    "plans": "write, check, list and show plans",
    "runs": "run plans; list, print, continue and delete runs",
    "review": "review, compare, approve and lock plans",
    "model": "have a language model write, extend or repair plans",
    "cache": "inspect or clear the results of cached steps",
    "queue": "queue plans and run them in order",
    "machine": "this machine: doctor, schemas, shell completion",
}
"""The groups of help, in its order, each with its line."""

_GROUP = 8  # characters of the longest name of a group
_WIDTH = 76
START = ("init", "validate", "show", "run", "logs", "resume", "approve", "report")
"""The verbs of the first hour."""

SPELLED = {
    "runs": {
        "list": "runs",
        "show": "status",
        **{name: name for name in ("logs", "report", "explain", "resume", "retry", "pause", "cancel")},
        **{name: name for name in ("finalize", "shard", "merge", "stats", "trace", "attest", "replay")},
        **{name: name for name in ("verify", "prune", "watch", "serve", "publish")},
    },
    "review": {
        "plan": "review",
        **{name: name for name in ("diff", "comment", "risk", "approve", "reject", "decide", "lock")},
    },
    "model": {
        name: name for name in ("generate", "expand", "replan", "tree", "classify", "memory", "errors")
    },
}
"""`planrun GROUP WORD`: the verb that it means. `cache` and `queue` have verbs of their own."""


def modules() -> dict[str, str]:
    """Return the module of each verb."""
    return {verb.name: verb.module for verb in TABLE}


def summary(name: str) -> str:
    """Return the summary of a verb, of its first use where it has several."""
    return next((verb.summary for verb in TABLE if verb.name == name), "")


def in_group(group: str) -> list[Verb]:
    """Return the rows of a group."""
    return [verb for verb in TABLE if verb.group == group]


PURE = tuple([group for group in SPELLED if group not in [verb.name for verb in TABLE]])
"""Groups that are no verb."""


def names() -> list[str]:
    """Return every word that can follow `planrun`: verbs, and groups that are no verb."""
    return list(dict.fromkeys([*[verb.name for verb in TABLE], *PURE]))


def resolved(words: list[str]) -> tuple[list[str], str]:
    """Return a command line with `GROUP WORD` replaced by the verb, and the two words; "" where there are none."""
    if len(words) > 1 and (verb := SPELLED.get(words[0], {}).get(words[1])):
        return [verb, *words[2:]], f"{words[0]} {words[1]}"
    return words, ""


def spellings(group: str) -> str:
    """Return the words that may follow the name of a group, in lines that fit a terminal."""
    start = f"  {group.ljust(_GROUP)}  "
    row, rows = start, []
    words = list(SPELLED[group])
    for word in words:
        if len(row) + len(word) > _WIDTH:
            rows.append(row.rstrip())
            row = " " * len(start)
        row += word if word == words[-1] else f"{word}, "
    return "\n".join([*rows, row])


def listed(rows: Iterable[tuple[str, str]], width: int = 0) -> str:
    """Return lines of two columns, as help has them."""
    pairs = list(rows)
    widest = width or max(len(left) for left, _ in pairs)
    return "\n".join([f"  {left.ljust(widest)}  {right}" for left, right in pairs])
