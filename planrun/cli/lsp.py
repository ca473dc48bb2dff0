"""`planrun lsp`: the language server; what it needs of other features is given to it here."""

from __future__ import annotations

from importlib.util import find_spec

import click

from planrun.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.lsp.server import Tools


@click.command(short_help="Serve an editor: problems, help and completion in plans.")
@click.option("--stdio", is_flag=True, help="Accepted and ignored: many editors pass it.")
def lsp(*, stdio: bool) -> int:  # noqa: ARG001
    """Serve one editor by the Language Server Protocol, over standard input and output.

    It shows what `validate` and `lint` find while a plan is typed, describes keys, shows the risk of commands,
    completes keys, steps, parameters and expressions, goes to definitions, renames steps and formats. It runs nothing
    and writes no file. An editor starts it; docs/how-to/editor.md has settings for VS Code, Neovim, Helix and Emacs.

    \b
    Examples:
      planrun lsp
    """
    if find_spec("pygls") is None:
        raise InvalidInput(
            "the language server needs the library pygls; install it with: pip install 'planrun[lsp]'"
        )
    from planrun.lsp.server import serve

    serve(_tools())
    return 0


def _tools() -> Tools:
    from planrun.codes.pages import uri_of_code
    from planrun.fmt.fmt import formatted
    from planrun.lint.lint import advise_bytes, reordered_bytes
    from planrun.lsp.server import Tools

    def reordered(data: bytes, file: str) -> bytes | None:
        found = reordered_bytes(data, file)
        return found[0] if found else None

    return Tools(
        advice=lambda data, file: advise_bytes(data, file).problems,
        formatted=formatted,
        reordered=reordered,
        link=uri_of_code,
    )
