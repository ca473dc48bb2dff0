"""`planrun help` as a click command: its place in completion and in the reference."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from planrun.cli import verbs
from planrun.cli.help import helped
from planrun.cli.overview import TOPICS


def _complete_topics(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    offers = {name: verbs.summary(name) for name in verbs.modules()} | verbs.GROUPS | TOPICS
    return [CompletionItem(name, help=about) for name, about in offers.items() if name.startswith(typed)]


@click.command("help", short_help="Show the help of a verb, a group or a topic.")
@click.argument("topic", nargs=-1, shell_complete=_complete_topics)
def help_(topic: tuple[str, ...]) -> int:
    """Show the help of a verb, the verbs of a group, or a topic: all, plan, exit-codes, environment.

    \b
    Examples:
      planrun help
      planrun help run
      planrun help runs
      planrun help exit-codes
    """
    return helped(list(topic))
