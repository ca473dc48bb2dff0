"""Every verb as a click command, loaded when it is called; help, and the completion of shells."""

from __future__ import annotations

import os
import sys
from importlib import import_module

import click
from click.shell_completion import CompletionItem, get_completion_class

from planrun import __version__
from planrun.cli import verbs
from planrun.cli.overview import OVERVIEW, group_help
from planrun.cliutil.completion import complete_plans
from planrun.cliutil.defaultplan import ENDINGS, default_steps
from planrun.cliutil.failure import complain
from planrun.cliutil.options import EXECUTE
from planrun.cliutil.printing import say
from planrun.cliutil.unknown import FOLDER_FLAGS, folder_hint
from planrun.plan.problems import did_you_mean
from planrun.plan.yaml.near import near_names

VERBS: dict[str, str] = verbs.modules()
PROGRAM = "planrun"
COMPLETE_VARIABLE = "_PLANRUN_COMPLETE"


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
        if cmd_name in verbs.SPELLED:
            command.epilog = f"\b\nVerbs of the group:\n{verbs.spellings(cmd_name)}"
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the verbs that begin with `incomplete`, without loading any; options as click has them."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        return [
            CompletionItem(name, help=verbs.summary(name) or verbs.GROUPS[name])
            for name in verbs.names()
            if name.startswith(incomplete)
        ]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb, also by its group; an unknown one is a usage error that names what was probably meant."""
        words, spelled = verbs.resolved(args)
        ctx.obj = words
        if ctx.resilient_parsing and len(words) == 1 and words[0] in verbs.SPELLED:
            return words[0], _Area(words[0], self.get_command(ctx, words[0])), []
        if not ctx.resilient_parsing:
            _refuse_unknown(words, ctx)
        name, command, rest = super().resolve_command(ctx, words)
        return spelled or name, command, rest

    def get_help(self, ctx: click.Context) -> str:
        """Return the overview, which is the same with and without click."""
        return OVERVIEW.rstrip("\n")


class _Area(click.Command):
    """What completion offers after the name of a group: its words, and what can follow the verb of that name."""

    def __init__(self, name: str, verb: click.Command | None) -> None:
        options = [param for param in verb.params if isinstance(param, click.Option)] if verb else []
        super().__init__(name, params=list(options))
        self._takes_plan = verb is not None and len(options) < len(verb.params)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the words of the group that begin with `incomplete`; plans for a verb that takes one."""
        items = [
            CompletionItem(word, help=verbs.summary(verb))
            for word, verb in verbs.SPELLED[self.name or ""].items()
            if word.startswith(incomplete)
        ]
        plans = complete_plans(ctx, self.params[0], incomplete) if self._takes_plan else []
        return [*items, *plans, *super().shell_complete(ctx, incomplete)]


_OF_RUN = frozenset(flag for option in EXECUTE for flag in option.flags)
ELSEWHERE = {
    "apply": "run",
    "start": "run",
    "plan": "run --dry-run",
    "check": "validate",
    "format": "fmt",
    "ls": "list",
    "new": "init",
    "rerun": "retry",
    "version": "--version",
}
"""Words of other tools, and what means the same here."""


def _refuse_unknown(words: list[str], ctx: click.Context) -> None:
    """Raise UsageError for a word that is no verb: a file, a step, or a verb that is misspelt."""
    word, *rest = words
    if word in verbs.PURE or (word == "runs" and rest and not rest[0].startswith("-")):
        named = f"{word} {rest[0]}" if rest else word
        hint = did_you_mean(rest[0], verbs.SPELLED[word]).replace('"', f'"{word} ', 1) if rest else ""
        known = f"\n  planrun {word} {'|'.join(verbs.SPELLED[word])}"
        raise click.UsageError(f'no such command: "{named}"' + (f"; {hint}" if hint else known), ctx)
    if word in VERBS:
        return
    if word in verbs.GROUPS:
        raise click.UsageError(
            f'"{word}" is a group of the help, no command; to list its verbs: planrun help {word}', ctx
        )
    hint = _meant(word) or did_you_mean(word, verbs.names())
    raise click.UsageError(f'no such command: "{word}"' + (f"; {hint}" if hint else ""), ctx)


def _meant(word: str) -> str:
    """Return the hint for a word that is a plan file, or a step of the plan that runs when none is named."""
    if os.path.isfile(word):
        return f"did you mean: planrun run {word}"
    if word.endswith(ENDINGS):
        near = near_names(word)
        return f"no such file either; {near}" if near else f"did you mean: planrun run {word}"
    if word in default_steps():
        return f"did you mean: planrun run {word}"
    return f"did you mean: planrun {ELSEWHERE[word]}" if word in ELSEWHERE else ""


def _print_version(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - click's
    if wanted and not ctx.resilient_parsing:
        say(f"planrun {__version__}")
        ctx.exit()


def _enter(ctx: click.Context, _option: click.Parameter, folders: tuple[str, ...]) -> None:
    # Only completion gets here with one: `planrun.cli.main` has taken it from every other command line.
    for folder in folders:
        try:
            os.chdir(folder)
        except OSError as error:
            raise click.UsageError(f"-C {folder}: {error.strerror}", ctx) from None


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "-C",
    "--directory",
    multiple=True,
    is_eager=True,
    expose_value=False,
    metavar="DIR",
    type=click.Path(file_okay=False),
    callback=_enter,
    help="Work in this folder.",
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
    if words and words[0] in verbs.PURE and words[1:] in ([], ["-h"], ["--help"]):
        say(group_help(words[0]))
        return 0
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
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        sys.stderr.write(f"{error.format_message()}\n")
        return 2
    path = context.command_path if context else PROGRAM
    message = _lowered(error.format_message())
    if isinstance(error, click.MissingParameter) and isinstance(error.param, click.Option) and context:
        message = f"missing option: {error.param.opts[0]} {error.param.make_metavar(context)}"
    if isinstance(error, click.NoSuchOption) and error.option_name in FOLDER_FLAGS:
        message = f"no such option: {error.option_name}; {folder_hint(path.removeprefix(PROGRAM).strip())}"
    elif isinstance(error, click.NoSuchOption) and path == PROGRAM and error.option_name in _OF_RUN:
        message = f"no such option: {error.option_name}; did you mean: planrun run {error.option_name}"
    complain(f"{message}\n  see: {path} --help")
    return 2


def _lowered(message: str) -> str:
    """Return click's sentence as the end of a line that begins with `planrun: error:`."""
    text = message.strip().replace(":\n\t", ": ").replace("\n\t", " ")  # the choices, one a line
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
