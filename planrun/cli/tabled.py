"""Commands whose options stand in our own table: click has them for help and completion, our parser reads the line."""

from __future__ import annotations

from inspect import cleandoc

import click

from planrun.cli.completing import complete_params, complete_questions, complete_steps, complete_tags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from planrun.cli.arguments import Option

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
    return click.Command(
        name, callback=hand_over, params=params, help=cleandoc(text), short_help=text.partition("\n")[0]
    )


def option_of(option: Option) -> click.Option:
    """Return the option of our own table as click knows it; its variable is read by our parser, not by click."""
    about = f"{option.help}  [{option.variable}]"
    if option.kind == "flag":
        return click.Option(option.flags, is_flag=True, help=about)
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
        shell_complete=_COMPLETERS.get(option.metavar),
    )
