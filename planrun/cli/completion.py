"""`planrun completion`: the script that makes a shell complete verbs, options, files, step ids and run ids."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from planrun.cli.group import COMPLETE_VARIABLE, PROGRAM, planrun
from planrun.cliutil.printing import say

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
    # `source` of bash starts a bash to look at its version; the script is all we want.
    script = completer(planrun, {}, PROGRAM, COMPLETE_VARIABLE)
    say(script.source_template % script.source_vars())
    return 0
