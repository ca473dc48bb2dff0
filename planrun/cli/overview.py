"""The texts of `planrun help`, made from the table of verbs: without click, which takes long to import."""

from __future__ import annotations

from planrun.cli.verbs import GROUPS, SPELLED, START, TABLE, in_group, listed, spellings

EXIT_CODES = """\
  0    every step completed, or its failure is tolerated (--strict: 1)
  1    a step failed
  2    the plan or the command line is wrong; nothing ran
  3    denied by a policy, rejected, or different from the lock
  4    internal error
  5    paused, or waiting for an approval or an answer; continue with resume
  74   the ledger or a report cannot be written
  124  the plan's deadline passed
  129  cancelled by SIGHUP; 130 by SIGINT, 143 by SIGTERM
"""
"""Of the verbs that run steps; the program states them only here."""

EXAMPLE = """\
version: 1
steps:
  - id: lint
    run: ruff check .
    on_failure: continue       # tolerated: the others continue
  - id: test
    run: pytest -q
    timeout: 10m
    retries: 2
  - id: publish
    depends_on: [test]         # starts when test is done; lint runs beside it
    condition: run.ci          # only in CI
    run: ./publish.sh
"""

_END = "\n"
_COLUMN = 19  # the widest verb with its operands
TOPICS = {
    "all": "every verb",
    "plan": "an example of a plan",
    "exit-codes": "what the exit codes mean",
    "environment": "the variables that planrun reads",
}
"""What `planrun help` knows besides verbs and groups."""

_START = {verb.name: (verb.usage, verb.summary) for verb in reversed(TABLE)}
OVERVIEW = f"""\
planrun runs a reviewed plan in CI, and reports exactly what happened.

Usage: planrun [-C DIR] VERB [OPTIONS] ...
       planrun                 list the plans in this folder and their steps

Start:
{listed([_START[name] for name in START], _COLUMN)}

Options:
  -C, --directory DIR  work in this folder
  -h, --help           this text, or the help of a verb
  -V, --version        the version

RUN is the id of a run, the beginning of one, or `last`.

planrun help all       every verb; also: VERB, plan, exit-codes, environment
planrun help GROUP     {", ".join(GROUPS)}
"""

_ENVIRONMENT = """\
Environment:
  PLANRUN_JOBS, PLANRUN_STRICT, ...    default of the option of that name
  NO_COLOR, FORCE_COLOR                without colours; with colours
  CI, GITHUB_ACTIONS, GITLAB_CI, ...   print plain lines, grouped for that CI
  PLANRUN_CACHE_DIR                    where compiled plans and results are kept
  PLANRUN_CACHE_MAX_SIZE               how much, such as 500M; default 2G
  PLANRUN_CACHE_SIGNATURE_KEY          signs results in a shared cache
  PLANRUN_MACHINE                      this machine's name in shared places
  PLANRUN_QUEUE_LEASE                  seconds of a shared queue's leases
  PLANRUN_CONTAINER_ENGINE             the program for containers
  PLANRUN_DEBUG=1                      show where an internal error happened

`planrun help VERB` names the variable of each option in brackets. A flag is set
by 1, true, yes or on. An option on the command line wins over its variable.
"""


_PLAN = f"""\
A plan is one YAML file, such as plan.yml:

  {EXAMPLE.rstrip(_END).replace(_END, _END + "  ")}

planrun init writes a longer one; planrun run runs it.
"""

_EXIT_CODES = f"""\
Exit codes of run, resume and retry:
{EXIT_CODES}
Of other verbs: 0, 1, 2, 3, 4 and 74 as above; `planrun help VERB` names more.
When several apply: records that cannot be written, then denied, then the end
by a deadline or a signal, then a failed step.
"""

_RUN_AND_HELP = """\
RUN is the id of a run, the beginning of one, or `last`.
`planrun help VERB` shows the options of a verb with examples."""


def all_verbs() -> str:
    """Return every verb by group, with the other spellings."""
    parts = [f"{_heading(group)}\n{_rows(group)}" for group in GROUPS]
    spelled = "\n".join([spellings(group) for group in SPELLED])
    return "\n\n".join(
        [
            "\n\n".join(parts),
            f"Verbs can also be spelled by their group, as in `planrun runs list`:\n{spelled}",
            _RUN_AND_HELP,
        ]
    )


def group_help(group: str) -> str:
    """Return the verbs of a group and how they can be spelled."""
    more = (
        f"\n\nAlso spelled by the group, as in `planrun {group} {next(iter(SPELLED[group]))} ...`:\n{spellings(group)}"
        if group in SPELLED
        else ""
    )
    return f"{_heading(group)}\n{_rows(group)}{more}\n\n`planrun help VERB` shows the options of a verb."


def topic(name: str) -> str:
    """Return the text of a topic, or "" for none."""
    if name == "all":
        return all_verbs()
    return {"plan": _PLAN, "exit-codes": _EXIT_CODES, "environment": _ENVIRONMENT}.get(name, "").rstrip("\n")


def _heading(group: str) -> str:
    return f"{group.capitalize()}: {GROUPS[group]}"


def _rows(group: str) -> str:
    return listed([(verb.usage, verb.summary) for verb in in_group(group)], _COLUMN)
