"""The client of one MCP server: it starts or reaches the server, and answers questions about its tools on a socket.

What a server may ask of its client is declined: sampling, elicitation and roots are not offered.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import resource
import warnings

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from planrun.mcp.call import SOCKET
from planrun.model.mcp import digest_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

MOST_TEXT = 400 * 1024
"""Characters of one result that are passed on: the beginning and the end of a longer one."""
_HEAD = 300 * 1024
_MEMORY = 2 << 30  # bytes that this process may map: what a server sends is held here
_PAGES = 50  # of a list of tools
_QUESTION = 4 << 20  # bytes of a question
_NONE_LEFT = ("closed", "broken", "endofstream")


class Answer(Exception):
    """An answer other than a result; `kind`: failed, changed, ended."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def main(words: Sequence[str]) -> int:
    """Serve in a folder: `serve FOLDER SPEC`; or print the tools of a server: `list SPEC`."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    what, *folders, spec = words
    link = Link(json.loads(spec))
    try:
        return asyncio.run(link.serve(folders[0]) if what == "serve" else link.print_tools())
    except KeyboardInterrupt:
        return 130


class Link:
    """One server, as `spec` describes it: name, command or url, cwd, headers, secret_headers, seconds, start."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._spec = spec
        self._client: Client | None = None
        self._ready = asyncio.Event()
        self._why = ""  # there is no connection
        self._strange = 0  # lines that are no messages

    async def serve(self, folder: str) -> int:
        """Listen in a folder until this process is ended."""
        os.chdir(folder)
        part = f"{SOCKET}.part"
        await asyncio.start_unix_server(self._attend, path=part, limit=_QUESTION)
        os.rename(part, SOCKET)  # under its name it listens already
        await self._connect(hold=True)
        await asyncio.Event().wait()  # why there is no server is told to all who ask
        return 0

    async def print_tools(self) -> int:
        """Print the tools as JSON, or why there are none."""
        connecting = asyncio.create_task(self._connect(hold=True))
        try:
            await self._ready.wait()
            found = await self._answer({"do": "list"})
        except Answer as answer:
            print(answer)
            return 1
        finally:
            connecting.cancel()
            await asyncio.gather(connecting, return_exceptions=True)
        print(found)
        return 0

    # The server.

    def _server(self) -> Any:
        spec = self._spec
        if spec["url"]:
            headers = {
                **spec["headers"],
                **{name: os.environ[var] for name, var in spec["secret_headers"].items()},
            }
            return streamable_http_client(spec["url"], http_client=create_mcp_http_client(headers=headers))
        command, *args = spec["command"]
        return StdioServerParameters(command=command, args=args, env=dict(os.environ), cwd=spec["cwd"])

    async def _connect(self, *, hold: bool) -> None:
        """Connect, and stay connected."""
        seconds, start = self._spec["seconds"], self._spec["start"]
        try:
            async with asyncio.timeout(start) as limit:
                client = Client(
                    self._server(), read_timeout_seconds=seconds, cache=None, message_handler=self._see
                )
                async with client:
                    limit.reschedule(None)
                    _limit_memory()
                    self._client = client
                    self._ready.set()
                    if hold:
                        await asyncio.Event().wait()
        except TimeoutError:
            self._why = f"it did not start within {start:g} s{self._oddities()}"
        except BaseException as error:  # of whatever kind: it is told to who asks
            if isinstance(error, asyncio.CancelledError) and self._client is not None:
                raise
            self._why = f"it could not be started: {_reason(error)}{self._oddities()}"
        finally:
            self._client = None
            self._ready.set()

    async def _see(self, message: object) -> None:
        """Count what the server sends that is no message."""
        self._strange += isinstance(message, Exception)

    def _oddities(self) -> str:
        if not self._strange:
            return ""
        what = "1 line on its stdout is no MCP message"
        return (
            f" ({what if self._strange == 1 else f'{self._strange} lines on its stdout are no MCP messages'})"
        )

    # Questions.

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            question = json.loads(await reader.readline())
            await self._ready.wait()
            try:
                found = {"kind": "answered", "text": await self._answer(question)}
            except Answer as answer:
                found = {"kind": answer.kind, "text": str(answer)}
            writer.write(json.dumps(found).encode() + b"\n")
            await writer.drain()
        except (OSError, ValueError):
            return  # who asked is gone
        finally:
            writer.close()

    async def _answer(self, question: dict[str, Any]) -> str:
        client = self._client
        if client is None:
            raise Answer(
                "ended", f"the MCP server {self._spec['name']} is not there: {self._why or 'it has ended'}"
            )
        try:
            tools = await self._tools(client)
            if question["do"] == "list":
                return json.dumps(tools)
            self._check(question, tools)
            result = await client.call_tool(question["tool"], question["args"])
        except (Answer, asyncio.CancelledError):
            raise
        except Exception as error:  # noqa: BLE001 - of whatever kind: it is told to who asks
            raise self._failure(error) from None
        text = _text_of(result)
        if result.is_error:
            raise Answer("failed", text or "the tool failed, and does not say why")
        return text

    def _failure(self, error: BaseException) -> Answer:
        name, why = self._spec["name"], _reason(error)
        if "timed out" in why.lower():
            return Answer(
                "failed",
                f"the MCP server {name} did not answer within {self._spec['seconds']:g} s{self._oddities()}",
            )
        if any(word in f"{type(error).__name__} {why}".lower() for word in _NONE_LEFT):
            return Answer("ended", f"the MCP server {name} has ended")
        if type(error).__name__ == "ValidationError":
            return Answer("failed", f"the MCP server {name} answered in a form that MCP does not have")
        return Answer("failed", f"the MCP server {name} refused the call: {why}")

    async def _tools(self, client: Client) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        cursor = None
        for _ in range(_PAGES):
            page = await client.list_tools(cursor=cursor)
            found += [
                {"name": tool.name, "description": tool.description or "", "schema": tool.input_schema}
                for tool in page.tools
            ]
            cursor = page.next_cursor
            if cursor is None:
                break
        return found

    def _check(self, question: dict[str, Any], tools: list[dict[str, Any]]) -> None:
        """Raise Answer when a tool is not described as it was when the agent was offered it."""
        name = question["tool"]
        now = [tool for tool in tools if tool["name"] == name]
        if not now:
            raise Answer(
                "changed", f"the MCP server {self._spec['name']} does not list the tool {name} any more"
            )
        if digest_of(**now[0]) != question["digest"]:
            raise Answer(
                "changed",
                f"the MCP server {self._spec['name']} has changed the description of the tool {name}",
            )


def _limit_memory() -> None:
    """Limit the memory of this process; the server, which has started, keeps its own limits."""
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    limit = _MEMORY if most == resource.RLIM_INFINITY else min(_MEMORY, most)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (limit, most))
    except (ValueError, OSError):
        return  # this system does not have it


def _reason(error: BaseException) -> str:
    """Return the innermost reason of an error in one line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, FileNotFoundError) and error.filename:
        return f"there is no {error.filename}"
    return " ".join(str(error).split())[:400] or type(error).__name__


def _text_of(result: Any) -> str:
    """Return the parts of a result as text; pictures and sounds are only named."""
    parts = [_part(block) for block in result.content]
    if not parts and result.structured_content is not None:
        parts = [json.dumps(result.structured_content, ensure_ascii=False, indent=1)]
    text = "\n".join(parts)
    if len(text) <= MOST_TEXT:
        return text
    left_out = len(text) - MOST_TEXT
    return f"{text[:_HEAD]}\n[{left_out} characters left out]\n{text[-(MOST_TEXT - _HEAD) :]}"


def _part(block: Any) -> str:
    kind = block.type
    if kind == "text":
        return str(block.text)
    if kind == "resource":
        text = getattr(block.resource, "text", None)
        return str(text) if isinstance(text, str) else f"[{kind} {block.resource.uri}, left out]"
    if kind == "resource_link":
        return f"[link {block.uri}]"
    return (
        f"[{kind} {getattr(block, 'mime_type', '')}, {len(getattr(block, 'data', ''))} characters left out]"
    )
