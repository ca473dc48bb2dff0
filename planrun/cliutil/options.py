"""The options of the verbs that run plans: one table, read by our own parser on the hot path and by click elsewhere.

Two parsers, because click costs half as much as the whole `execute` of a plan that was run before.
"""

from __future__ import annotations

import os

from planrun.errors import InvalidInput
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Literal

ON = frozenset(("1", "true", "yes", "on"))  # what sets a flag by its variable
OFF = frozenset(("", "0", "false", "no", "off"))


class WrongLine(InvalidInput):
    """A command line that the parser does not accept."""


class Option(Record):
    """One option: `list` and `lines` may be given several times.

    The variable of a `list` holds several values split at commas; that of `lines`, whose values may contain commas,
    one a line.
    """

    flags: tuple[str, ...]
    name: str  # of the field of Settings
    kind: Literal["flag", "text", "count", "amount", "span", "choice", "list", "lines"]
    help: str
    metavar: str = ""
    choices: tuple[str, ...] = ()
    scope: str = ""  # the verb that has its own variable for it
    values: Mapping[str, str] = {}  # what a choice, or a flag by the word "", stands for; empty: for itself
    hidden: bool = False  # in no help: an earlier spelling
    section: str = ""  # of help, where it is not among the first

    @property
    def repeatable(self) -> bool:
        """Whether it may be given several times."""
        return self.kind in ("list", "lines")

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        scope = f"{self.scope}_" if self.scope else ""
        return "PLANRUN_" + scope + self.flags[0].lstrip("-").replace("-", "_").upper()


PARAM = Option(
    flags=("--param", "-p"),
    name="params",
    kind="lines",
    metavar="NAME=VALUE",
    help="Give a parameter of the plan its value; repeatable. The variable holds one NAME=VALUE a line.",
)
CHOOSING = (
    Option(flags=("--only",), name="only", kind="list", metavar="STEP", help="Run this step."),
    Option(
        flags=("--from",),
        name="start",
        kind="list",
        metavar="STEP",
        help="Run this step and all that depend on it.",
    ),
    Option(
        flags=("--until",),
        name="until",
        kind="list",
        metavar="STEP",
        help="Run this step and all it depends on.",
    ),
    Option(
        flags=("--skip",),
        name="skip",
        kind="list",
        metavar="STEP",
        help="Skip this step, even if another option selects it.",
    ),
    Option(
        flags=("--tag",),
        name="tag",
        section="Selection",
        kind="list",
        metavar="TAG",
        help="Run the steps with this tag.",
    ),
    Option(
        flags=("--skip-abstract",),
        name="skip_abstract",
        section="Selection",
        kind="flag",
        help="Skip all steps without an action, as --skip does.",
    ),
    Option(
        flags=("--shard",),
        name="shard",
        section="Selection",
        kind="text",
        metavar="N/M",
        help="Run shard N of M, as the verb shard splits the plan; auto: from the variables of parallel jobs.",
    ),
    Option(
        flags=("--legs",),
        name="legs",
        section="Selection",
        kind="lines",
        metavar="STEP",
        help="With --shard: split the instances of this step; repeatable. The variable holds one step a line.",
    ),
    Option(
        flags=("--timings",),
        name="timings",
        section="Selection",
        kind="text",
        metavar="FILE",
        help="With --shard: durations for the split: a ledger.json, or `history` for those of this folder.",
    ),
)
OUTPUT = Option(
    flags=("--output",),
    name="output",
    kind="choice",
    choices=("auto", "stream", "group", "failed", "quiet"),
    help="What steps print: stream shows it as it happens, group a section for each step, failed the last lines of "
    "failed steps, quiet these and the result. auto: group in CI with sections, else stream.",
)
RUNNING = (
    Option(
        flags=("--jobs", "-j"),
        name="jobs",
        kind="count",
        metavar="N",
        help="How many steps run at once, instead of the plan's max_parallel. Default: the processors.",
    ),
    Option(flags=("--strict",), name="strict", kind="flag", help="Exit 1 for tolerated failures, too."),
    Option(
        flags=("--fail-on-flaky",),
        name="fail_on_flaky",
        section="Output and reports",
        kind="flag",
        help="Exit 1 when a retry was needed.",
    ),
    Option(
        flags=("--no-rollback",),
        name="no_rollback",
        section="Cache and machine",
        kind="flag",
        help="Undo nothing when the run fails.",
    ),
    Option(
        flags=("--always-shell",),
        name="always_shell",
        section="Cache and machine",
        kind="flag",
        help="Start bash for every script. Default: one command of plain words starts without it.",
    ),
    Option(
        flags=("--executor",),
        name="executor",
        section="Cache and machine",
        kind="text",
        metavar="ADDRESS",
        help="Where steps run: local, or on the workers of a Dask cluster by dask://HOST:PORT or tls://HOST:PORT.",
    ),
    Option(
        flags=("--cluster-store",),
        name="cluster_store",
        section="Cache and machine",
        kind="text",
        metavar="WHERE",
        help="How files reach workers: a folder or URL that they and planrun reach, or connection. Default: the "
        "shared workspace, else connection.",
    ),
    Option(
        flags=("--sandbox-backend",),
        name="sandbox_backend",
        section="Cache and machine",
        kind="choice",
        help="What confines steps with a sandbox. Default: auto, the first that works.",
        choices=("auto", "landlock", "bubblewrap"),
    ),
    Option(
        flags=("--report-dir",),
        name="report_dir",
        section="Output and reports",
        kind="text",
        metavar="DIR",
        help="Where junit.xml, report.md and ledger.json go. Default: planrun-out",
    ),
    Option(
        flags=("--html",),
        name="html",
        section="Output and reports",
        kind="flag",
        help="Also write report.html: the run as one page, as `planrun report --format html` does.",
    ),
    Option(
        flags=("--events",),
        name="events",
        section="Output and reports",
        kind="text",
        metavar="TARGET",
        help="Write events as JSON Lines to a file, or to an open file descriptor: 3 or fd:3.",
    ),
    Option(
        flags=("--otel",),
        name="otel",
        section="Output and reports",
        kind="flag",
        help="Send the spans of the run to OTEL_EXPORTER_OTLP_ENDPOINT while it runs; needs planrun[otel].",
    ),
    Option(
        flags=("--junit-dialect",),
        name="junit_dialect",
        section="Output and reports",
        kind="choice",
        choices=("default", "jenkins-xunit", "surefire", "ant"),
        help="The JUnit dialect of junit.xml.",
    ),
    Option(
        flags=("--wait-lock",),
        name="wait_lock",
        section="Cache and machine",
        kind="span",
        metavar="DURATION",
        help="How long to wait for another run in this folder, such as 5m. Default: do not wait.",
    ),
    OUTPUT,
    Option(
        flags=("--logs",),
        name="output",
        section="Output and reports",
        kind="choice",
        choices=("auto", "all", "failed", "none"),
        values={"auto": "auto", "all": "group", "failed": "failed", "none": "quiet"},
        help="The earlier name of --output.",
        hidden=True,
    ),
    Option(
        flags=("--color",),
        name="color",
        section="Output and reports",
        kind="choice",
        choices=("auto", "always", "never"),
        help="Colours; auto follows NO_COLOR, FORCE_COLOR and the terminal.",
    ),
    Option(
        flags=("--log-level",),
        name="log_level",
        section="Output and reports",
        kind="choice",
        choices=("debug", "info", "warning", "error"),
        help="debug: the output of all steps. warning: as --quiet. error: as --quiet, without warnings. Default: info",
    ),
    Option(
        flags=("--quiet", "-q"),
        name="output",
        kind="flag",
        values={"": "quiet"},
        help="Print only failures and the result, as --output quiet.",
    ),
    Option(
        flags=("--verbose", "-v"),
        name="verbose",
        section="Output and reports",
        kind="flag",
        help="Print each step's command as it starts; at the end slow steps, withheld variables, the ledger's hash.",
    ),
    Option(
        flags=("--json",),
        name="json",
        section="Output and reports",
        kind="flag",
        help="Print the run's ledger.json on stdout.",
    ),
    Option(
        flags=("--ci-masks",),
        name="ci_masks",
        section="Output and reports",
        kind="flag",
        help="Have the CI system mask the plan's secrets in the whole job. The commands in the log contain the values.",
    ),
    Option(
        flags=("--no-input",),
        name="no_input",
        section="Approval and answers",
        kind="flag",
        help="Ask nothing on the terminal: what needs an answer waits, and the run ends with exit code 5.",
    ),
)
ANSWERING = (
    Option(
        flags=("--decide",),
        name="decide",
        section="Approval and answers",
        kind="lines",
        metavar="STEP=VALUE",
        help="Answer a step's question in advance; repeatable. The variable holds one STEP=VALUE a line.",
    ),
    Option(
        flags=("--decisions",),
        name="decisions",
        section="Approval and answers",
        kind="text",
        metavar="FILE",
        help="Answers in a YAML or JSON file: a mapping of step ids to values.",
    ),
)
APPROVING = (
    Option(
        flags=("--policy",),
        name="policy",
        section="Approval and answers",
        kind="text",
        metavar="FILE",
        help="A policy that the plan cannot override: what it denies is denied, whatever the plan says.",
    ),
    Option(
        flags=("--auto-approve",),
        name="auto_approve",
        kind="choice",
        choices=("none", "read-only", "low", "medium", "high"),
        help="The highest risk that runs without approval, instead of the plan's auto_approve; never above --policy.",
    ),
)
LOCKED = Option(
    flags=("--locked",),
    name="locked",
    section="Approval and answers",
    kind="flag",
    help="Run only what the lock beside the plan holds; otherwise exit 3 and show the differences.",
)
APPROVAL = Option(
    flags=("--approval",),
    name="approvals",
    section="Approval and answers",
    kind="lines",
    metavar="FILE",
    help="An approval, as `planrun approve PLAN` writes it; repeatable. The variable holds one file a line.",
)
MODEL_OPTIONS = (
    Option(
        flags=("--no-llm",),
        name="no_llm",
        section="Models",
        kind="flag",
        help="Call no model, whatever the plan says: as llm.enabled: false.",
    ),
    Option(
        flags=("--llm-model",),
        name="llm_model",
        section="Models",
        kind="text",
        metavar="NAME",
        help="The language model to use, instead of the plan's llm.model.",
    ),
    Option(
        flags=("--llm-base-url",),
        name="llm_base_url",
        section="Models",
        kind="text",
        metavar="URL",
        help="The URL of the Messages API. Default: ANTHROPIC_BASE_URL, or Anthropic's own; never from a plan.",
    ),
    Option(
        flags=("--llm-record",),
        name="llm_record",
        section="Models",
        kind="text",
        metavar="DIR",
        help="Record the model's answers in this folder.",
    ),
    Option(
        flags=("--llm-replay",),
        name="llm_replay",
        section="Models",
        kind="text",
        metavar="DIR",
        help="Replay the answers from this folder, and call no model.",
    ),
    Option(
        flags=("--llm-prices",),
        name="llm_prices",
        section="Models",
        kind="text",
        metavar="FILE",
        help="Prices of models, instead of planrun's own table.",
    ),
    Option(
        flags=("--max-tokens",),
        name="max_tokens",
        section="Models",
        kind="count",
        metavar="N",
        help="Tokens that models may use in all, instead of the plan's limits.max_tokens.",
    ),
    Option(
        flags=("--max-usd",),
        name="max_usd",
        section="Models",
        kind="amount",
        metavar="USD",
        help="US dollars that models may cost in all, instead of the plan's limits.max_usd.",
    ),
    Option(
        flags=("--max-turns",),
        name="max_turns",
        section="Models",
        kind="count",
        metavar="N",
        help="Calls to models in all, instead of the plan's limits.max_turns.",
    ),
)
EXPAND = Option(
    flags=("--expand",),
    name="expand",
    section="Models",
    kind="flag",
    help="Let a model expand abstract steps before anything starts; see llm_auto_approve.",
)
PROPOSE = Option(
    flags=("--propose",),
    name="propose",
    section="Models",
    kind="flag",
    help="Keep the patches of agents, for a pull request, and apply none of them.",
)
PERSIST = Option(
    flags=("--no-persist",),
    name="no_persist",
    section="Cache and machine",
    kind="flag",
    help="Keep no records of a run that completed; its reports are written.",
)
CACHE = Option(
    flags=("--no-cache",),
    name="no_cache",
    section="Cache and machine",
    kind="flag",
    help="Run every step; use no compiled plan.",
)
STORE = Option(
    flags=("--cache-store",),
    name="cache_store",
    section="Cache and machine",
    kind="text",
    metavar="DIR|URL",
    help="A cache shared with others: a folder, or a URL such as s3://BUCKET/NAME (needs planrun[shared]).",
)
PUBLISH = Option(
    flags=("--publish",),
    name="publish",
    section="Output and reports",
    kind="text",
    metavar="DIR|URL",
    help="Send record, ledger and logs of the run there, where a team lists its runs.",
)
ASKING = (EXPAND, PROPOSE, *MODEL_OPTIONS)
DRY_RUN = Option(
    flags=("--dry-run",),
    name="dry_run",
    kind="flag",
    help="Show what would run, in which order and why; start nothing and write nothing.",
)
WATCH = Option(
    flags=("--watch", "-w"),
    name="watch",
    kind="flag",
    help="Run again whenever the plan or a file that it reads changes; not in CI.",
)
QUEUED = (
    PARAM,
    *CHOOSING,
    *ANSWERING,
    *APPROVING,
    APPROVAL,
    LOCKED,
    *ASKING,
    *RUNNING,
    CACHE,
    STORE,
    PUBLISH,
    PERSIST,
)
"""Options of an execution that a queue may start later."""
EXECUTE = (*QUEUED, DRY_RUN, WATCH)
REVISING = (
    # Variables of their own: those of `execute` are often set for a whole job.
    Option(
        flags=("--plan",),
        name="plan",
        kind="text",
        metavar="FILE",
        help="Continue with this plan: changed steps run again, new steps run.",
        scope="RESUME",
    ),
    PARAM.but(
        help="With --plan: give a parameter a new value; repeatable. The variable holds one NAME=VALUE a line.",
        scope="RESUME",
    ),
)
ADOPT = Option(
    flags=("--adopt",),
    name="adopt",
    section="Cache and machine",
    kind="flag",
    help="Resume a run that began in another folder: its records were moved or copied here.",
)
DISCARD = Option(
    flags=("--discard",),
    name="discard",
    section="Cache and machine",
    kind="flag",
    help="Drop the invalid end of an altered ledger; its bytes are kept in ledger.discarded.jsonl.",
)
AGAIN = (*RUNNING, CACHE, STORE, PUBLISH, ADOPT, DRY_RUN)
RESUME = (
    *REVISING,
    *ANSWERING,
    *APPROVING,
    APPROVAL,
    LOCKED.but(scope="RESUME"),
    *ASKING,
    *AGAIN,
    DISCARD,
    PERSIST,
)
RETRY = (*ANSWERING, *APPROVING, APPROVAL, *MODEL_OPTIONS, *AGAIN, PERSIST)


def parse(
    argv: Sequence[str], options: Sequence[Option], operand: str, environ: Mapping[str, str] | None = None
) -> tuple[str, dict[str, Any]]:
    """Return the one operand and the fields that were given, on the command line or by their variables.

    Raises InvalidInput for anything that is not in the table.
    """
    operands, values = parse_all(argv, options, environ)
    if len(operands) != 1:
        got = f"; got {len(operands)}: {' '.join(operands)}" if operands else ""
        raise WrongLine(f"needs one {operand}{got}")
    return operands[0], values


def parse_all(
    argv: Sequence[str], options: Sequence[Option], environ: Mapping[str, str] | None = None
) -> tuple[list[str], dict[str, Any]]:
    """Return all operands, and the fields as `parse` does; raises InvalidInput for what is not in the table."""
    values = _from_variables(options, os.environ if environ is None else environ)
    operands, given = _from_line(argv, options)
    values.update(given)
    if values.pop("no_cache", False):
        values["cache"] = False
    return operands, values


def _from_line(argv: Sequence[str], options: Sequence[Option]) -> tuple[list[str], dict[str, Any]]:
    known = {flag: option for option in options for flag in option.flags}
    given: dict[str, Any] = {}
    operands: list[str] = []
    words = list(argv)
    while words:
        word = words.pop(0)
        if word == "--":
            operands += words
            break
        if not word.startswith("-") or word == "-":
            operands.append(word)
            continue
        flag, more, value = _split(word)
        option = known.get(flag)
        if option is None:
            from planrun.cliutil.unknown import suggestion  # for messages only

            raise WrongLine(f"no such option: {flag}{suggestion(flag, known)}")
        if option.kind == "flag":
            if more:
                if flag.startswith("--") or value.startswith(("=", "-")):
                    raise WrongLine(f"{flag} takes no value")
                words.insert(0, "-" + value)
        elif more:
            value = value if word.startswith("--") else value.removeprefix("=")
        elif words:
            value = words.pop(0)
        else:
            raise WrongLine(f"{flag} needs a value: {flag} {option.metavar or option.name.upper()}")
        _take(option, flag, value, given)
    return operands, given


def _split(word: str) -> tuple[str, bool, str]:
    """Split `--jobs=4`, `-j4` and `-qj4` after the first option; return whether the word has more."""
    if word.startswith("--") or len(word) == 2:
        flag, equals, value = word.partition("=")
        return flag, bool(equals), value
    return word[:2], True, word[2:]


def _take(option: Option, where: str, value: str, into: dict[str, Any]) -> None:
    if option.kind == "flag":
        into[option.name] = option.values.get("", True)
    elif option.repeatable:
        into[option.name] = (*into.get(option.name, ()), value)
    elif option.kind == "count":
        if not (value.isascii() and value.isdecimal() and int(value) > 0):
            raise InvalidInput(f'{where} takes a number from 1 up, not "{value}"')
        into[option.name] = int(value)
    elif option.kind == "amount":
        from planrun.cliutil.values import amount  # few command lines have one

        into[option.name] = amount(where, value)
    elif option.kind == "span":
        from planrun.cliutil.values import span  # the same

        into[option.name] = span(where, value)
    elif option.kind == "choice" and value not in option.choices:
        from planrun.plan.problems import did_you_mean  # for messages only

        hint = did_you_mean(value, option.choices)
        known = ", ".join(option.choices)
        raise InvalidInput(f'{where} takes {known}, not "{value}"' + (f"; {hint}" if hint else ""))
    elif not value:  # such as an unset variable of the caller, which must not count as a choice
        raise InvalidInput(f"{where} takes {option.metavar}, not nothing")
    else:
        into[option.name] = option.values.get(value, value)


def _several(option: Option, text: str) -> list[str]:
    """Return the values in a variable, one per line; blanks at the end of a line are data."""
    if option.kind == "list":
        return [value.strip() for value in text.split(",") if value.strip()]
    return [row.removesuffix("\r").lstrip(" \t") for row in text.split("\n") if row.strip()]


_OUTPUTS = "PLANRUN_OUTPUT"
"""In a step it names the file for the step's outputs: a run inside of a step takes no option from it."""


def _from_variables(options: Sequence[Option], environ: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for option in options:
        text = environ.get(option.variable, "")
        if not text or (option.variable == _OUTPUTS and "PLANRUN_STEP" in environ):
            continue
        if option.kind == "flag":
            if _is_on(option, text):
                _take(option, option.variable, "", values)
        elif option.repeatable:
            for value in _several(option, text):
                _take(option, option.variable, value, values)
        else:
            _take(option, option.variable, text, values)
    return values


def _is_on(option: Option, text: str) -> bool:
    word = text.strip().lower()
    if word in ON or word in OFF:
        return word in ON
    raise InvalidInput(f'{option.variable} takes 1, true, yes or on, or 0, false, no or off, not "{text}"')
