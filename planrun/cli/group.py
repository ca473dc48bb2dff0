"""Every verb as a click command, loaded when it is called; help, and the completion of shells."""

from __future__ import annotations

import sys
from importlib import import_module

import click
from click.shell_completion import CompletionItem, get_completion_class

from planrun import __version__
from planrun.cli.overview import OVERVIEW
from planrun.cliutil.failure import complain
from planrun.cliutil.printing import say
from planrun.plan.problems import did_you_mean

# Verb -> module of its command, in the order of the overview.
VERBS: dict[str, str] = {
    "init": "start.cli:init",
    "validate": "cli.validate:validate",
    "lint": "lint.cli:lint",
    "show": "show.cli:show",
    "diff": "diff.cli:diff",
    "review": "diff.cli:review",
    "explain": "runs.cli:explain",
    "risk": "cli.risk:risk",
    "generate": "cli.generate:generate",
    "expand": "cli.expand:expand",
    "classify": "cli.generate:classify",
    "convert": "convert.cli:convert",
    "tools": "cli.tools:tools",
    "templates": "templates.cli:templates",
    "lock": "cli.approve:lock",
    "schema": "start.cli:schema",
    "execute": "cli.execute:execute",
    "resume": "cli.execute:resume",
    "retry": "cli.execute:retry",
    "replan": "cli.replan:replan",
    "approve": "cli.approve:approve",
    "reject": "cli.approve:reject",
    "decide": "cli.approve:decide",
    "finalize": "cli.stop:finalize",
    "pause": "cli.stop:pause",
    "cancel": "cli.stop:cancel",
    "queue": "queue.cli:queue",
    "status": "runs.cli:status",
    "runs": "runs.cli:runs",
    "prune": "runs.cli:prune",
    "stats": "stats.cli:stats",
    "report": "cli.report:report",
    "replay": "replays.cli:replay",
    "verify": "runs.cli:verify",
    "cache": "cli.cache:cache",
    "doctor": "doctor.cli:doctor",
    "completion": "cli.group:completion",
}
PROGRAM = "planrun"
COMPLETE_VARIABLE = "_PLANRUN_COMPLETE"
_SUMMARY_COLUMN = 22  # of the overview, where the summary of a verb begins


class Verbs(click.Group):
    """The group of all verbs; a verb's module is imported when the verb is wanted."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order of the overview."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a verb; None when there is no such verb."""
        if cmd_name not in VERBS:
            return None
        module, name = VERBS[cmd_name].split(":")
        command: click.Command = getattr(import_module(f"planrun.{module}"), name)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the verbs that begin with `incomplete`, without loading any; options as click has them."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        return [CompletionItem(verb, help=_summary(verb)) for verb in VERBS if verb.startswith(incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; an unknown one is a usage error that names the nearest."""
        if args[0] not in VERBS and not ctx.resilient_parsing:
            hint = did_you_mean(args[0], VERBS)
            raise click.UsageError(f'no such command: "{args[0]}"' + (f"; {hint}" if hint else ""), ctx)
        return super().resolve_command(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        """Return the overview, which is the same with and without click."""
        return OVERVIEW.rstrip("\n")


def _summary(verb: str) -> str:
    """Return the text of a verb in the overview."""
    for row in OVERVIEW.splitlines():
        if row.startswith(f"  {verb} "):
            return row[_SUMMARY_COLUMN:].strip()
    return ""


def _print_version(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - click's
    if wanted and not ctx.resilient_parsing:
        say(f"planrun {__version__}")
        ctx.exit()


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "-V",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)
def planrun() -> None:
    """Run a reviewed plan in CI."""


def grouped(words: list[str]) -> int:
    """Run a command line through click and return its exit code; raises PlanrunError."""
    # A file name need not be text in this terminal's encoding, and must not crash us.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = planrun.main(words, PROGRAM, COMPLETE_VARIABLE, standalone_mode=False, obj=words)
    except click.Abort:
        return 130
    except click.ClickException as error:
        return _refuse(error)
    except SystemExit as done:  # how click ends a completion
        code = done.code
    return code if isinstance(code, int) else 0


def _refuse(error: click.ClickException) -> int:
    """Print the problem of a command line in two lines."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context else PROGRAM
    complain(f"{_lowered(error.format_message())}\n  see: {path} --help")
    return 2


def _lowered(message: str) -> str:
    """Return click's sentence as the end of a line that begins with `planrun: error:`."""
    text = message.strip()
    return text[:1].lower() + text[1:].removesuffix(".")


SHELLS = ("bash", "zsh", "fish")


@click.command(short_help="Print the completion script for bash, zsh or fish.")
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> int:
    """Print a script that makes SHELL complete verbs, options, files, step ids and run ids.

    \b
    Examples:
      bash:  echo 'eval "$(planrun completion bash)"' >> ~/.bashrc
      zsh:   echo 'eval "$(planrun completion zsh)"' >> ~/.zshrc
      fish:  planrun completion fish > ~/.config/fish/completions/planrun.fish
    """
    completer = get_completion_class(shell)
    assert completer is not None
    # `source` of bash starts a bash to check its version; only the script is needed.
    script = completer(planrun, {}, PROGRAM, COMPLETE_VARIABLE)
    say(script.source_template % script.source_vars())
    return 0
