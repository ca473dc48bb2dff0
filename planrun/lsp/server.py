"""The language server itself: requests of an editor, answered from the analyses of the open documents.

Diagnostics are sent when nothing was typed for a moment; every other answer is from the newest text. An error in an
answer is an empty answer: an editor shows what a server throws, and stops asking one that throws often.
"""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from functools import wraps

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from planrun import __version__
from planrun.errors import InvalidInput, InvalidPlan, PlanrunError
from planrun.lsp import navigation
from planrun.lsp.analysis import Analysis, is_plan
from planrun.lsp.completion import Known, completion
from planrun.lsp.diagnostics import diagnostics, fixes
from planrun.lsp.hover import hover
from planrun.lsp.symbols import lenses, symbols
from planrun.lsp.text import Text
from planrun.lsp.uris import path_of, uri_of
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from planrun.plan.problems import Problem

QUIET = 0.25  # seconds without typing before a document is checked
_REORDER = "L412"


class Tools(Record):
    """What other features of planrun do for the server: each takes the bytes of a plan and the path of its file.

    `reordered` gives None where the order is good. `link`: the URI of the description of a code, or "".
    """

    advice: Callable[[bytes, str], tuple[Problem, ...]]
    formatted: Callable[[bytes, str], bytes]
    reordered: Callable[[bytes, str], bytes | None]
    link: Callable[[str], str]


class PlanServer(LanguageServer):
    """The server and the analyses of the documents that are open."""

    def __init__(self, tools: Tools) -> None:
        super().__init__("planrun", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full)
        self.tools = tools
        self.open: dict[str, Analysis] = {}
        self.valid: dict[str, Analysis] = {}  # the last version of each that could be checked
        self._due: dict[str, asyncio.TimerHandle] = {}
        self._checking: set[asyncio.Task[None]] = set()
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="check")

    def take(self, uri: str) -> None:
        """Take the newest text of a document, and check it soon."""
        document = self.workspace.get_text_document(uri)
        text = Text(document.source, self.workspace.position_encoding or "utf-16")
        self.open[uri] = Analysis(path_of(uri), text, self.tools.advice)
        if uri in self._due:
            self._due.pop(uri).cancel()
        self._due[uri] = asyncio.get_running_loop().call_later(QUIET, self.check, uri)

    def check(self, uri: str) -> None:
        """Check a document beside the answers to requests, and send its diagnostics."""
        self._due.pop(uri, None)
        task = asyncio.get_running_loop().create_task(self._check(uri))
        self._checking.add(task)  # the loop itself would forget it
        task.add_done_callback(self._checking.discard)

    async def _check(self, uri: str) -> None:
        analysis = self.open.get(uri)
        if analysis is None:
            return
        version = self.workspace.get_text_document(uri).version
        found = await asyncio.get_running_loop().run_in_executor(self._pool, self._found, uri, analysis)
        if self.open.get(uri) is not analysis:
            return  # a newer text is checked next
        if analysis.is_compiled and analysis.plan is not None:
            self.valid[uri] = analysis
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri=uri, diagnostics=found, version=version)
        )
        workspace = self.client_capabilities.workspace
        if workspace and workspace.code_lens and workspace.code_lens.refresh_support:
            self.workspace_code_lens_refresh(None)

    def _found(self, uri: str, analysis: Analysis) -> list[types.Diagnostic]:
        """Return the diagnostics of a document, in the thread of checks."""
        if self.open.get(uri) is not analysis or not is_plan(analysis.path, analysis.text.whole):
            return []
        try:
            found = diagnostics(analysis, self.tools.link)
            _ = analysis.digest  # with the compiled plan: answers do not wait for it
        except PlanrunError as error:  # as an unknown code in `x-lint`
            message = str(error)
            start = types.Position(0, 0)
            whole = types.Diagnostic(range=types.Range(start, start), message=message, source="planrun")
            return [whole]
        return found

    def close(self, uri: str) -> None:
        """Forget a document, and its diagnostics."""
        for table in (self.open, self.valid):
            table.pop(uri, None)
        if uri in self._due:
            self._due.pop(uri).cancel()
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri=uri, diagnostics=[]))

    def checked_again(self, path: str) -> None:
        """Check the other open documents again when a file was saved that they may use."""
        for uri, analysis in list(self.open.items()):
            if analysis.path != path:
                self.open[uri] = Analysis(analysis.path, analysis.text, self.tools.advice)
                self.check(uri)

    def plan(self, uri: str) -> Analysis | None:
        """Return the analysis of an open document that is a plan."""
        analysis = self.open.get(uri)
        return analysis if analysis is not None and is_plan(analysis.path, analysis.text.whole) else None

    def files(self, analysis: Analysis, *, everywhere: bool = False) -> navigation.Files:
        """Return the files that make one plan with a document; `everywhere`: closed files of the folder, too."""
        root = self.workspace.root_path or os.getcwd()
        return navigation.Files(analysis, list(self.open.values()), folder=root if everywhere else "")


def serve(tools: Tools) -> None:
    """Serve one editor over standard input and output, until it ends."""
    server_of(tools).start_io()


def server_of(tools: Tools) -> PlanServer:
    """Return a server that knows all requests."""
    server = PlanServer(tools)
    _documents(server)
    for method, answer in _ANSWERS.items():
        server.feature(method, _OPTIONS.get(method))(_safe(answer))
    server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))(_rename)
    server.command("planrun.digest")(_shown)
    return server


def _documents(server: PlanServer) -> None:
    """Register what tells of documents."""

    @server.feature(types.INITIALIZED)
    def initialized(ls: PlanServer, _params: types.InitializedParams) -> None:
        root = ls.workspace.root_path
        if root and os.path.isdir(root):
            os.chdir(root)  # as planrun is called there: files that plans use are below it

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(ls: PlanServer, params: types.DidOpenTextDocumentParams) -> None:
        ls.take(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(ls: PlanServer, params: types.DidChangeTextDocumentParams) -> None:
        ls.take(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def saved(ls: PlanServer, params: types.DidSaveTextDocumentParams) -> None:
        ls.checked_again(path_of(params.text_document.uri))

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def closed(ls: PlanServer, params: types.DidCloseTextDocumentParams) -> None:
        ls.close(params.text_document.uri)


def _safe(answer: Callable[[PlanServer, Any], Any]) -> Callable[[PlanServer, Any], Any]:
    """Return an answer that is empty where planrun refuses the document."""

    @wraps(answer)
    def answered(ls: PlanServer, params: Any) -> Any:
        try:
            return answer(ls, params)
        except PlanrunError:
            return None

    return answered


def _place(ls: PlanServer, params: Any) -> tuple[Analysis, tuple[int, int]] | None:
    analysis = ls.plan(params.text_document.uri)
    return (analysis, analysis.text.place(params.position)) if analysis else None


def _hover(ls: PlanServer, params: types.HoverParams) -> types.Hover | None:
    found = _place(ls, params)
    return hover(found[0], ls.valid.get(params.text_document.uri), found[1]) if found else None


def _completion(ls: PlanServer, params: types.CompletionParams) -> types.CompletionList | None:
    found = _place(ls, params)
    if found is None:
        return None
    known = Known(now=found[0], valid=ls.valid.get(params.text_document.uri))
    return types.CompletionList(is_incomplete=False, items=completion(known, *found[1]))


def _definition(ls: PlanServer, params: types.DefinitionParams) -> list[types.Location]:
    found = _place(ls, params)
    return navigation.definition(found[0], ls.files(found[0]), *found[1]) if found else []


def _references(ls: PlanServer, params: types.ReferenceParams) -> list[types.Location]:
    found = _place(ls, params)
    if found is None:
        return []
    declared = params.context.include_declaration
    files = ls.files(found[0], everywhere=True)
    return navigation.references(found[0], files, found[1], declared=declared)


def _prepare_rename(ls: PlanServer, params: types.PrepareRenameParams) -> types.Range | None:
    found = _place(ls, params)
    return navigation.renamable(found[0], *found[1]) if found else None


def _rename(ls: PlanServer, params: types.RenameParams) -> types.WorkspaceEdit | None:
    """Rename, or say why not: an editor shows the message."""
    found = _place(ls, params)
    if found is None:
        return None
    try:
        return navigation.renamed(found[0], ls.files(found[0], everywhere=True), found[1], params.new_name)
    except InvalidInput as error:
        raise JsonRpcInvalidParams(str(error)) from None


def _symbols(ls: PlanServer, params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
    analysis = ls.plan(params.text_document.uri)
    return symbols(analysis) if analysis else []


def _formatting(ls: PlanServer, params: types.DocumentFormattingParams) -> list[types.TextEdit]:
    analysis = ls.plan(params.text_document.uri)
    if analysis is None:
        return []
    try:
        made = ls.tools.formatted(analysis.data, analysis.file)
    except InvalidPlan:  # its diagnostics show why
        return []
    except InvalidInput as error:
        ls.window_show_message(types.ShowMessageParams(types.MessageType.Warning, f"planrun: {error}"))
        return []
    return [] if made == analysis.data else [types.TextEdit(analysis.text.end, made.decode("utf-8"))]


def _actions(ls: PlanServer, params: types.CodeActionParams) -> list[types.CodeAction]:
    analysis = ls.plan(params.text_document.uri)
    if analysis is None:
        return []
    found: list[types.CodeAction] = []
    for diagnostic in params.context.diagnostics:
        if diagnostic.source == "planrun":
            found += fixes(diagnostic, analysis)
        if diagnostic.code == _REORDER:
            found += _reordering(ls, analysis, diagnostic)
    return found


def _reordering(ls: PlanServer, analysis: Analysis, diagnostic: types.Diagnostic) -> list[types.CodeAction]:
    made = ls.tools.reordered(analysis.data, analysis.file)
    if made is None:
        return []
    edit = types.TextEdit(analysis.text.end, made.decode("utf-8"))
    return [
        types.CodeAction(
            title="Put the longest path first",
            kind=types.CodeActionKind.QuickFix,
            diagnostics=[diagnostic],
            edit=types.WorkspaceEdit(changes={uri_of(analysis.path): [edit]}),
        )
    ]


def _lenses(ls: PlanServer, params: types.CodeLensParams) -> list[types.CodeLens]:
    analysis = ls.plan(params.text_document.uri)
    return lenses(analysis) if analysis and analysis.is_compiled else []


def _shown(ls: PlanServer, digest: str) -> None:
    """Show the digest of a plan, to be copied."""
    ls.window_show_message(types.ShowMessageParams(types.MessageType.Info, f"planrun: digest {digest}"))


_ANSWERS: dict[str, Callable[[PlanServer, Any], Any]] = {
    types.TEXT_DOCUMENT_HOVER: _hover,
    types.TEXT_DOCUMENT_COMPLETION: _completion,
    types.TEXT_DOCUMENT_DEFINITION: _definition,
    types.TEXT_DOCUMENT_REFERENCES: _references,
    types.TEXT_DOCUMENT_PREPARE_RENAME: _prepare_rename,
    types.TEXT_DOCUMENT_DOCUMENT_SYMBOL: _symbols,
    types.TEXT_DOCUMENT_FORMATTING: _formatting,
    types.TEXT_DOCUMENT_CODE_ACTION: _actions,
    types.TEXT_DOCUMENT_CODE_LENS: _lenses,
}
_OPTIONS: dict[str, Any] = {
    types.TEXT_DOCUMENT_COMPLETION: types.CompletionOptions(trigger_characters=[".", "'", "[", "{", " "]),
    types.TEXT_DOCUMENT_CODE_ACTION: types.CodeActionOptions([types.CodeActionKind.QuickFix]),
}
