"""Texts with GitHub's expressions as templates of planrun."""

from __future__ import annotations

from planrun.app.converting.findings import UntranslatableError
from planrun.app.converting.github.names import cut_text
from planrun.app.converting.github.spelling import spell
from planrun.source.quoting import open_quotes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.app.converting.github.names import PlaceNames
    from planrun.app.converting.github.pieces import Piece

_TOKEN = "GITHUB_TOKEN"  # noqa: S105 - the name of a variable


def cut(text: str) -> list[Piece]:
    """Return the pieces of a text; raises UntranslatableError where one is no expression."""
    return cut_text(text)


def template(text: str, names: PlaceNames) -> str:
    """Return a text with its expressions in planrun's words; raises UntranslatableError."""
    found = ""
    for piece in cut(text):
        if isinstance(piece, str):
            found += piece
            continue
        spelled = spell(piece, names)
        shown = _shown(spelled.value) if spelled.is_known else f"${{{{ {spelled.text} }}}}"
        found = _joined(found, shown)
    return found


def script(text: str, names: PlaceNames) -> tuple[str, list[str]]:
    """Return a script for a shell with its expressions in planrun's words, and the secrets that it reads.

    A secret becomes a variable of the shell, unless it stands where the shell would not read one.
    """
    pieces = cut(text)
    variables = [secret_here(piece, names) or _variable_of(piece, names) for piece in pieces]
    quotes = open_quotes(pieces) if any(variables) else []
    secrets: list[str] = []
    found, hole = "", -1
    for piece, variable in zip(pieces, variables, strict=True):
        if isinstance(piece, str):
            found += piece
            continue
        hole += 1
        if variable:
            code, root = ("secret", "secrets") if secret_of(piece) else ("github-env", "env")
            if quotes[hole] not in ("command", "double", "brace", "member"):
                raise UntranslatableError(
                    code, f"`{root}.{variable}` stands where the shell reads no variable"
                )
            secrets += [variable] if code == "secret" else []
            found = _joined(found, f"${{{variable}}}")
            continue
        spelled = spell(piece, names)
        if not spelled.is_known:
            message = (
                "a value that is put into a script may hold no characters but letters, digits and ._/@:+=,-"
            )
            names.note("value-in-script", f"{message}; any other fails the step")
        shown = _shown(spelled.value) if spelled.is_known else f"${{{{ {spelled.text} }}}}"
        found = _joined(found, shown)
    return found, secrets


def secret_of(piece: Piece) -> str:
    """Return the name of the secret that an expression reads and nothing else; "" for any other."""
    if isinstance(piece, str) or piece[0] != "path":
        return ""
    names = piece[1]
    if names[0] == "secrets" and len(names) == 2:
        return str(names[1])
    return _TOKEN if names == ("github", "token") else ""


def secret_here(piece: Piece, names: PlaceNames) -> str:
    """Return the name in planrun of the secret that an expression reads and nothing else; "" for any other."""
    name = secret_of(piece)
    return names.workflow.secret_names.get(name, name)


def _variable_of(piece: Piece, names: PlaceNames) -> str:
    """Return the name of a variable that an earlier part of the same script sets; "" for anything else."""
    if isinstance(piece, str) or piece[0] != "path" or piece[1][0] != "env" or len(piece[1]) != 2:
        return ""
    return str(piece[1][1]) if piece[1][1] in names.job.handed else ""


def _joined(before: str, shown: str) -> str:
    if before.endswith("$") and shown.startswith("${"):
        raise UntranslatableError("expression", "`$` right before `${{ … }}` cannot be written in a plan")
    return before + shown


def _shown(value: object) -> str:
    """Return a value as GitHub puts it into a text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, dict)):
        raise UntranslatableError("expression", "a list or mapping in the middle of a text")
    return str(value)
