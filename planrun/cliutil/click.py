"""Commands with options from our own table: click has them for help and completion, our parser reads the line.

Shared by the verbs that write plans: options, the file, and the message when no plan was written.

Options of read-only verbs that judge a plan: under which policy, with which parameters.

The task on the command line or on standard input.
"""

from __future__ import annotations

import os
import sys
from inspect import cleandoc

import click
from click.core import ParameterSource

from planrun.cliutil import write_stderr
from planrun.cliutil.completion import complete_params, complete_questions, complete_steps, complete_tags
from planrun.cliutil.failure import printable
from planrun.cliutil.options import APPROVING, PARAM, RUNNING, Option
from planrun.errors import EXIT_DENIED, EXIT_FAILED, InvalidInput
from planrun.folders import write_atomically
from planrun.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Protocol

    from planrun.approval.preview import PolicyPreview
    from planrun.llm.drafts import Fault
    from planrun.model.plan import Plan

    class Unwritten(Protocol):
        """The result of a conversation with a model."""

        @property
        def outcome(self) -> str:
            """A key of the words below."""

        @property
        def message(self) -> str:
            """The message of the model, the service or planrun."""

        @property
        def faults(self) -> Sequence[Fault]:
            """The problem of the last answer."""

        @property
        def refusals(self) -> Sequence[Mapping[str, str]]:
            """The steps that a policy denies: step, rule, reason."""


_FIRST = (
    *(
        "--param",
        "--plan",
        "--only",
        "--from",
        "--until",
        "--skip",
        "--jobs",
        "--output",
        "--dry-run",
        "--watch",
    ),
    *("--strict", "--auto-approve", "--json", "--quiet"),
)
"""The options that are used most, in the order of help."""
_SECTIONS = (
    *("Selection", "Output and reports", "Approval and answers", "Models", "Search", "Cache and machine"),
)
_COMPLETERS = {
    "STEP": complete_steps,
    "TAG": complete_tags,
    "NAME=VALUE": complete_params,
    "STEP=VALUE": complete_questions,
}


def tabled(
    name: str,
    operands: Sequence[click.Parameter],
    options: Sequence[Option],
    text: str,
    run: Callable[[list[str]], int],
) -> click.Command:
    """Return a command that hands the words after it to `run`: two parsers of one line would drift apart.

    The first line of `text` is its short help.
    """

    def hand_over(**_values: Any) -> int:
        words: list[str] = click.get_current_context().find_root().obj
        return run(words[1:])

    params = [*operands, *map(option_of, options)]
    about = cleandoc(text)
    command = _Sectioned(name, callback=hand_over, params=params, help=about)
    command.short_help = about.partition("\n")[0]
    command.table = options
    return command


def _place(option: Option) -> int:
    return _FIRST.index(option.flags[0]) if option.flags[0] in _FIRST else len(_FIRST)


class _Sectioned(click.Command):
    """A command whose help has the options that are used most first, and the others in sections."""

    table: Sequence[Option] = ()

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by their sections, those of none with the first ones."""
        records = {flag: param.get_help_record(ctx) for param in self.get_params(ctx) for flag in param.opts}
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in ("Options", *_SECTIONS)}
        by_use = sorted(self.table, key=_place)
        for option in by_use:
            section = "" if option.flags[0] in _FIRST else option.section
            if record := records.get(option.flags[0]):
                sections[section or "Options"].append(record)
        if record := records.get("--help"):
            sections["Options"].append(record)
        for name, rows in sections.items():
            if rows:
                with formatter.section(name):
                    formatter.write_dl(rows)


def option_of(option: Option) -> click.Option:
    """Return the option of our own table as click knows it; its variable is read by our parser, not by click."""
    about = f"{option.help}  [{option.variable}]"
    if option.kind == "flag":
        return click.Option(option.flags, is_flag=True, help=about, hidden=option.hidden)
    kind: click.Choice[str] | click.Path | None = None
    if option.kind == "choice":
        kind = click.Choice(option.choices)
    elif option.metavar == "DIR":
        kind = click.Path(readable=False)
    return click.Option(
        option.flags,
        metavar=option.metavar or None,
        multiple=option.repeatable,
        type=kind,
        help=about,
        hidden=option.hidden,
        shell_complete=_COMPLETERS.get(option.metavar),
    )


FORCE = Option(flags=("--force",), name="force", kind="flag", help="Overwrite FILE.")
DRY_RUN = Option(
    flags=("--dry-run",),
    name="dry_run",
    kind="flag",
    help="Print the request to the model, and send nothing.",
)
JSON = next(option for option in RUNNING if option.name == "json").but(help="Print one JSON document.")
STANDARD_OUTPUT = "-"


def is_given(name: str) -> bool:
    """Return whether the user gave an option of the current command, on the command line or by its variable."""
    return click.get_current_context().get_parameter_source(name) is not ParameterSource.DEFAULT


_WORDS = {
    "infeasible": "the model reports that this cannot be done",
    "denied": "a policy denies what the model wrote",
    "invalid": "no plan was written",
    "budget": "the budget for models is used up",
    "failed": "the model did not answer",
    "stopped": "stopped",
}
_NO_WAY = "no plan was found"


def tell(message: str) -> None:
    """Write a progress line to stderr; the message may hold control characters."""
    write_stderr(f"planrun: {printable(message)}\n")


def report_failure(result: Unwritten, *, searched: bool = False) -> int:
    """Write to stderr why no plan was written, and return the exit code; `searched`: the answer is that of a search."""
    why = "" if result.refusals else f": {' '.join(result.message.split())}"
    words = _NO_WAY if searched and result.outcome == "infeasible" else _WORDS[result.outcome]
    tell(f"{words}{why}")
    rows = (
        [fault.text for fault in result.faults] if len(result.faults) > 1 else []
    )  # the message contains one
    rows += [f"{each['step'] or 'the plan'}: {each['reason']} [{each['rule']}]" for each in result.refusals]
    write_stderr("".join([f"  {printable(row)}\n" for row in rows]))
    return EXIT_DENIED if result.outcome == "denied" else EXIT_FAILED


def refuse_existing(path: str, *, forced: bool) -> None:
    """Raise InvalidInput when a file is there that must not be overwritten, or when it can never be one."""
    if os.path.isdir(path):
        raise InvalidInput(f"{path} is a folder")
    if os.path.lexists(path) and not forced:
        raise InvalidInput(f"{path} exists already; --force overwrites it, -o FILE names another one")


def write_file(target: str, data: bytes, *, forced: bool) -> None:
    """Write a file that was not there, or with `forced` in the place of one; raises InvalidInput."""
    try:
        os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
        if forced and os.path.lexists(target):
            os.unlink(target)  # a link is replaced; its target stays
        with open(target, "xb") as file:  # exclusive: what appeared in between is not overwritten
            file.write(data)
    except OSError as error:
        raise InvalidInput(f"cannot write {target}: {error.strerror}") from None


def replace_file(target: str, data: bytes, was: bytes | None = None) -> None:
    """Put bytes in the place of a file at once or not at all, its mode kept; raises InvalidInput.

    `was`: what the file must still hold, so that no other change is lost.
    """
    path = os.path.realpath(target)
    try:
        if was is not None:
            with open(path, "rb") as file:
                if file.read() != was:
                    raise InvalidInput(f"{target} was changed meanwhile; it is not overwritten")
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        write_atomically(path, data, mode=os.stat(path).st_mode & 0o7777 if os.path.exists(path) else None)
    except OSError as error:
        raise InvalidInput(f"cannot write {target}: {error.strerror}") from None


_POLICY, _LEVEL = APPROVING


def judged(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options --policy, --auto-approve and --param of `execute`; see `policy_preview`."""
    options = (
        click.option("--policy", metavar="FILE", envvar=_POLICY.variable, default="", help=_POLICY.help),
        click.option(
            "--auto-approve",
            type=click.Choice(_LEVEL.choices),
            envvar=_LEVEL.variable,
            help=_LEVEL.help,
        ),
        click.option(
            *PARAM.flags,
            "params",
            multiple=True,
            metavar=PARAM.metavar,
            help="A parameter that is known, for risks, policy and digest; repeatable.",
            shell_complete=complete_params,
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def policy_preview(
    plan: Plan, policy: str, auto_approve: str | None, params: tuple[str, ...]
) -> PolicyPreview:
    """Return how policies judge a plan; raises InvalidInput, InvalidPlan."""
    from planrun.approval.preview import PolicyPreview  # many verbs import this module; two judge a plan

    return PolicyPreview(plan, Settings(policy=policy, auto_approve=auto_approve or "", params=params))


MAX_TASK = 20_000  # characters


def task(words: Sequence[str], operand: str) -> str:
    """Return the text of the words, `-` for standard input; raises InvalidInput when there is none.

    `operand` is its name on the command line.
    """
    text = _standard_input(operand) if list(words) == ["-"] else " ".join(words)
    if not text.strip():
        raise InvalidInput(f"{operand} is empty")
    if len(text) > MAX_TASK:
        raise InvalidInput(f"{operand} has {len(text)} characters; at most {MAX_TASK} are read")
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise InvalidInput(f"{operand} is not UTF-8 text")
    return text.strip()


def _standard_input(operand: str) -> str:
    try:
        data = b"" if sys.stdin is None else sys.stdin.buffer.read(MAX_TASK * 4 + 1)
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidInput(f"{operand} on standard input is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"cannot read standard input: {getattr(error, 'strerror', None) or error}"
        ) from None
