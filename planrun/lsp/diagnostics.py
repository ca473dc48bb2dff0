"""The problems of a plan as an editor shows them, and what can be done about them."""

from __future__ import annotations

import os
import re

from lsprotocol import types

from planrun.lsp.uris import uri_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from planrun.lsp.analysis import Analysis
    from planrun.plan.problems import Problem

_SEVERITY = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "advice": types.DiagnosticSeverity.Information,
}
_QUOTED = re.compile(r"\"([^\"]+)\"|`([^`]+)`")
_MEANT = re.compile(r'did you mean "([^"]+)"\?')


def diagnostics(analysis: Analysis, link: Callable[[str], str]) -> list[types.Diagnostic]:
    """Return what is shown in a document; `link` gives the URI of the description of a code, or ""."""
    return [_diagnostic(problem, analysis, link) for problem in analysis.problems]


def _diagnostic(problem: Problem, analysis: Analysis, link: Callable[[str], str]) -> types.Diagnostic:
    uri = link(problem.code)
    is_here = os.path.abspath(problem.file) == analysis.path
    related = [
        types.DiagnosticRelatedInformation(
            location=types.Location(uri_of(analysis.path), analysis.text.word_span(line, col)), message=text
        )
        for line, col, text in (problem.related if is_here else ())
    ]
    if not is_here:
        place = types.Position(problem.line - 1, problem.col - 1)
        related.append(
            types.DiagnosticRelatedInformation(
                location=types.Location(uri_of(os.path.abspath(problem.file)), types.Range(place, place)),
                message=problem.text,
            )
        )
    where = "" if is_here else f"{os.path.relpath(problem.file, os.path.dirname(analysis.path))}: "
    return types.Diagnostic(
        range=range_of(problem, analysis) if is_here else _named(problem, analysis),
        message=f"{where}{problem.text}",
        severity=_SEVERITY[problem.severity],
        code=problem.code,
        code_description=types.CodeDescription(uri) if uri else None,
        source="planrun",
        related_information=related or None,
        data={"hint": problem.hint} if problem.hint else None,
    )


def range_of(problem: Problem, analysis: Analysis) -> types.Range:
    """Return the range of a problem in its document; of one whose end is not known, the word there."""
    text = analysis.text
    if problem.end_col > problem.col:
        return text.span(problem.line, problem.col, problem.end_col - problem.col)
    return text.word_span(problem.line, problem.col)


def _named(problem: Problem, analysis: Analysis) -> types.Range:
    """Return where the document names the file of a problem, else its first line."""
    wanted = os.path.abspath(problem.file)
    for spot in analysis.tree.texts():
        keys = [step for step in spot.path if isinstance(step, str)]
        if (
            keys
            and keys[-1] in ("uses", "extends", "template")
            and analysis.beside(spot.node.value) == wanted
        ):
            return analysis.text.word_span(spot.node.line, spot.node.col)
    return analysis.text.word_span(1, 1)


def fixes(diagnostic: types.Diagnostic, analysis: Analysis) -> Iterator[types.CodeAction]:
    """Yield what applies the hint of a problem: the word that was probably meant."""
    hint = diagnostic.data.get("hint", "") if isinstance(diagnostic.data, dict) else ""
    found = _MEANT.search(str(hint))
    if not found:
        return
    word, place = found[1], diagnostic.range
    line, col = analysis.text.place(place.start)
    end = analysis.text.place(place.end)[1]
    row = analysis.text.line(line)
    old = row[col - 1 : end - 1]
    message = diagnostic.message
    if old.replace("-", "_").isidentifier():
        new = word
    else:
        quoted = [one or other for one, other in _QUOTED.findall(message)]
        wrong = next((each for each in quoted if each != word and each in old), "")
        new = "" if not wrong or ("-" in word and f".{wrong}" in old) else old.replace(wrong, word, 1)
    if place.start.line != place.end.line or not new:
        return
    edit = types.TextEdit(place, new)
    yield types.CodeAction(
        title=f'Replace "{old}" by "{new}"',
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[diagnostic],
        edit=types.WorkspaceEdit(changes={uri_of(analysis.path): [edit]}),
        is_preferred=True,
    )
