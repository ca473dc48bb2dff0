"""The server: 127.0.0.1 only, one thread for each connection, and nothing that outlives it."""

from __future__ import annotations

import os
import secrets
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR
from urllib.parse import parse_qs, quote, unquote, urlsplit

from planrun.approval.responses import user_name
from planrun.cliutil import write_stderr
from planrun.cliutil.failure import printable
from planrun.errors import PlanrunError
from planrun.executors.logs import elsewhere
from planrun.executors.owners import from_step
from planrun.executors.tree import HAS_PROC
from planrun.records.logfiles import open_log
from planrun.reports.escape import line
from planrun.reports.html.page import script, style
from planrun.serve import downloads, streams
from planrun.serve.access import Access, Refused
from planrun.serve.pages import Pages, attempt_of, existing, text_page

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from socket import socket
    from typing import Any

    from planrun.app.inspect import Inspected

    Form = Mapping[str, Sequence[str]]
    from collections.abc import Iterator


_LOCAL = "0100007F"  # 127.0.0.1, as /proc/net/tcp has it on little-endian machines
_LOCALS = (_LOCAL, "7F000001")


def refuse_steps_at(client_port: int, own_port: int) -> None:
    """Refuse a connection from a step of any run, and one whose process is not known; raises Refused."""
    if not HAS_PROC:
        return
    inode = _inode(client_port, own_port)
    pids = list(_holders(inode)) if inode else []
    if not pids:
        raise Refused(403, "the process that answers is not known: it is another user's; use planrun approve")
    if any(from_step(pid) for pid in pids):
        raise Refused(403, "a step of a run cannot answer gates")


def _inode(client_port: int, own_port: int) -> str:
    """Return the inode of the client's socket; "" where the kernel lists none."""
    try:
        with open("/proc/net/tcp", encoding="ascii") as file:
            rows = [row.split() for row in file.readlines()[1:]]
    except OSError:
        return ""
    for row in rows:
        local, remote = row[1].split(":"), row[2].split(":")
        if (
            local[0] in _LOCALS
            and remote[0] in _LOCALS
            and (int(local[1], 16), int(remote[1], 16)) == (client_port, own_port)
        ):
            return row[9]
    return ""


def _holders(inode: str) -> Iterator[int]:
    """Yield the processes that have a socket open, as far as this user may see."""
    wanted = f"socket:[{inode}]"
    for name in os.listdir("/proc"):
        if not name.isdecimal() or int(name) == os.getpid():
            continue
        try:
            opened = os.listdir(f"/proc/{name}/fd")
            if any(_target(f"/proc/{name}/fd/{fd}") == wanted for fd in opened):
                yield int(name)
        except OSError:  # it ended, or is another user's
            continue


def _target(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def words_of(what: str, inspected: Inspected, form: Form, by: str) -> tuple[str, ...]:
    """Return the words of the verb that a form asks for; raises Refused."""
    run = inspected.run
    if what == "answer":
        return _answer(run, form, by)
    if what == "cancel":
        return ("cancel", run)
    if what == "resume":
        return _again(("resume", run), inspected, form)
    if what == "retry":
        step = _first(form, "step")
        if step not in inspected.state.steps or step.startswith("-"):
            raise Refused(400, "no step has this id")
        return _again(("retry", run, step), inspected, form)
    raise Refused(404, "there is no such page")


def _first(form: Form, name: str) -> str:
    return form.get(name, [""])[0]


def _again(words: tuple[str, ...], inspected: Inspected, form: Form) -> tuple[str, ...]:
    """Return the words of a verb that runs steps, if the run still has the plan that the page showed."""
    if _first(form, "digest") != str(inspected.state.named.get("digest", "")):
        raise Refused(409, "the run has another plan than this page showed; load the page again")
    return (*words, "--output", "quiet")


def _answer(run: str, form: Form, by: str) -> tuple[str, ...]:
    verb, step, digest = (_first(form, name) for name in ("verb", "step", "digest"))
    reason = line(_first(form, "reason"))
    end = ["--by", line(by or user_name())]
    end += [f"--reason={reason}"] if reason else []
    if step.startswith("-"):
        raise Refused(400, "no step has this id")
    if verb == "decide":
        values = [value for value in form.get("value", []) if value]
        if not values or not step:
            raise Refused(400, "choose an answer")
        return ("decide", run, f"{step}={','.join(values)}", *end)
    if verb not in ("approve", "reject"):
        raise Refused(400, "an answer is approve, reject or decide")
    end += ["--digest", digest] if digest else []
    return (verb, run, *([step] if step else []), *end)


HOST = "127.0.0.1"
_CONNECTIONS = 64
_FORM = 64 * 1024  # bytes of a form
_HTML = "text/html; charset=utf-8"
_PATIENCE = 10.0  # seconds for a whole request
_FIELDS = 20  # of an address
_STATUS = {501: 405, 505: 400}  # those of the library that blame the server
_KEPT = 200  # messages that no page has shown yet
_NICE = 5
"""Runs come first where processors are short: they have the priority of the shell of this server."""


class Server(ThreadingHTTPServer):
    """Serves the runs of this folder; `allow_answers`: forms may answer (by `by`), cancel, resume and retry."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = _CONNECTIONS

    def __init__(self, port: int, *, allow_answers: bool, by: str = "") -> None:
        self.access = Access()
        self.allow_answers, self.by = allow_answers, by
        self.pages = Pages(self.access.csrf if allow_answers else "")
        self.said: dict[str, str] = {}  # what verbs said, by the word in the address that shows it
        self.asking: dict[socket, float] = {}
        """Connections without a whole request yet, the oldest first, and until when they may send it."""
        self.is_over = threading.Event()
        self._slots = threading.BoundedSemaphore(_CONNECTIONS)
        super().__init__((HOST, port), Exchange)

    @property
    def port(self) -> int:
        """The port that it got."""
        return int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread; where there are too many, the oldest one that has not asked yet gives way."""
        if not self._slots.acquire(blocking=False):
            self._give_up(next(iter(self.asking.copy()), None))
            free = self._slots.acquire(timeout=1.0)
        else:
            free = True
        if free:
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a connection, and free its place."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def service_actions(self) -> None:
        """End the connections whose request has not come in time."""
        now = time.monotonic()
        for connection, until in self.asking.copy().items():
            if now > until:
                self._give_up(connection)

    def _give_up(self, connection: socket | None) -> None:
        if connection is not None:
            try:
                connection.shutdown(SHUT_RDWR)  # wakes its thread, which frees its place
            except OSError:
                return

    def handle_error(self, request: socket | tuple[bytes, socket], client_address: Any) -> None:  # noqa: ARG002 - the library's
        """Report an error of ours; a reader that is gone is none."""
        error = sys.exception()
        if not isinstance(error, OSError):
            write_stderr(f"planrun: internal error: {type(error).__name__}: {printable(str(error))}\n")

    def say(self, text: str) -> str:
        """Keep a message for the page that shows it next; return its word."""
        if len(self.said) >= _KEPT:
            self.said.clear()
        word = secrets.token_urlsafe(8)
        self.said[word] = text
        return word

    def sleep(self, seconds: float) -> None:
        """Wait; raises OSError when the server ends meanwhile."""
        if self.is_over.wait(seconds):
            raise ConnectionAbortedError


class Exchange(BaseHTTPRequestHandler):
    """One request and its response."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "planrun", ""
    timeout = 30  # seconds without a byte from or to a reader

    def setup(self) -> None:
        """Begin the time in which the request must come."""
        self.server.asking[self.request] = time.monotonic() + _PATIENCE
        super().setup()

    def finish(self) -> None:
        """Forget a connection that asked for nothing."""
        self.server.asking.pop(self.request, None)
        super().finish()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002 - the library's
        """Answer a request that the library cannot read as all that are refused."""
        self.close_connection, self._has_begun, self.request_version = True, False, self.protocol_version
        self._fail(_STATUS.get(code, code), message or "the request is malformed")

    def do_GET(self) -> None:
        """Answer a request for a page, a file or events."""
        if sys.platform == "linux":  # where a thread has a priority of its own: verbs are started by others
            os.nice(_NICE)
        self._answer(self._get)

    def do_POST(self) -> None:
        """Answer a form."""
        self._answer(self._post)

    def log_message(self, *_words: object) -> None:
        """Print nothing: an address would have the token."""

    def _answer(self, what: Callable[[], None]) -> None:
        self.close_connection = True
        self._has_begun = False
        try:
            self._read()
            self.server.access.check_origin(self.headers, self.server.port, is_post=self.command == "POST")
            what()
        except Refused as error:
            self._fail(error.status, str(error))
        except PlanrunError as error:
            self._fail(409, str(error))
        except FileNotFoundError:
            self._fail(404, "the run was deleted")

    def _read(self) -> None:
        """Read the rest of a request, before anything is refused, so that the refusal arrives; raises Refused."""
        try:
            self._parts = urlsplit(self.path)
            query = parse_qs(self._parts.query, max_num_fields=_FIELDS)
            self._names = [unquote(name) for name in self._parts.path.split("/")[1:]]
            self._form = self._read_form() if self.command == "POST" else {}
        except ValueError:
            raise Refused(400, "the request is malformed") from None
        self._query = {name: values[0] for name, values in query.items()}
        self.server.asking.pop(self.request, None)

    def _fail(self, status: int, text: str) -> None:
        if not self._has_begun:
            self._send(text_page("Not available", text), status=status)

    # What is asked for.

    def _get(self) -> None:
        access, port = self.server.access, self.server.port
        query = self._query
        if access.opens(query.get("token", "")):
            # A page and no redirect: then the next request is one of this site, and has the cookie.
            to = "/" + self._parts.path.lstrip("/\\")
            page = text_page("planrun", "The runs of this folder.", to=to)
            self._send(page, more={"Set-Cookie": access.cookie(port)})
            return
        access.check_cookie(self.headers, port)
        match self._names:
            case [""]:
                self._send(self.server.pages.runs())
            case ["live.js"]:
                self._send(script(), kind="text/javascript; charset=utf-8")
            case ["events"]:
                self._stream(streams.of_list(self.server.pages, self.server.sleep))
            case ["runs", run]:
                said = self.server.said.pop(query.get("said", ""), "")
                self._send(self.server.pages.run(run, said))
            case ["runs", run, "events"]:
                existing(run)
                self._stream(streams.of_run(run, self.server.pages, self.server.sleep))
            case ["runs", run, "log", *more]:
                self._log(run, "/".join(more), query)
            case ["runs", run, "report", name]:
                existing(run)
                self._download(name, [downloads.report(self.server.pages.read(run), name)])
            case ["runs", run, "file", number]:
                existing(run)
                found, fd = downloads.open_artifact(self.server.pages.read(run), number)
                self._download(found.path.rpartition("/")[2], downloads.pieces(fd), length=found.bytes)
            case _:
                raise Refused(404, "there is no such page")

    def _log(self, run: str, what: str, query: dict[str, str]) -> None:
        existing(run)
        inspected = self.server.pages.read(run)
        step, attempt = attempt_of(inspected, query.get("step", ""), query.get("attempt", ""))
        if what == "":
            self._send(self.server.pages.log(inspected, step, attempt))
        elif what == "events":
            self._stream(streams.of_log(self.server.pages.follow(run), step, attempt, self.server.sleep))
        elif what == "raw":
            log = attempt.started.log
            fd = open_log(inspected.rundir, log, elsewhere(f"{inspected.rundir}/logs"))
            name = f"{step.step.folder or step.step.id}.{attempt.n}.log"
            self._download(name, downloads.pieces(fd) if fd >= 0 else [])
        else:
            raise Refused(404, "there is no such page")

    def _post(self) -> None:
        if not self.server.allow_answers:
            raise Refused(403, "this server is read-only: planrun serve --allow-answers allows answers")
        access = self.server.access
        access.check_cookie(self.headers, self.server.port)
        form = self._form
        access.check_form(form.get("csrf", [""])[0])
        refuse_steps_at(self.client_address[1], self.server.port)
        match self._names:
            case ["runs", run, what]:
                existing(run)
                words = words_of(what, self.server.pages.read(run), form, self.server.by)
                said = self.server.pages.verbs.perform(words)
            case _:
                raise Refused(404, "there is no such page")
        word = self.server.say(said)
        self._send(b"", status=303, more={"Location": f"/runs/{quote(run)}?said={word}"})

    def _read_form(self) -> dict[str, list[str]]:
        """Return what a form has; raises Refused, ValueError."""
        kind = self.headers.get_content_type()
        lengths = self.headers.get_all("Content-Length", [])
        if kind != "application/x-www-form-urlencoded" or len(lengths) != 1 or not lengths[0].isdecimal():
            raise Refused(400, "a form is expected")
        if len(lengths[0]) > len(str(_FORM)) or int(lengths[0]) > _FORM:
            raise Refused(413, "the form is too long")
        data = self.rfile.read(int(lengths[0])).decode("utf-8", "replace")
        return parse_qs(data, keep_blank_values=True, max_num_fields=200)

    # How it is answered.

    def _head(self, status: int, more: dict[str, str]) -> None:
        self._has_begun = True
        forms = "'self'" if self.server.allow_answers else "'none'"
        policy = (
            f"default-src 'none'; script-src 'self'; style-src 'sha256-{style(live=True)[1]}'; "
            f"connect-src 'self'; form-action {forms}; base-uri 'none'; frame-ancestors 'none'"
        )
        self.send_response(status)
        for name, value in {
            "Content-Security-Policy": policy,
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Referrer-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cache-Control": "no-store",
            "Connection": "close",
            **more,
        }.items():
            self.send_header(name, value)
        self.end_headers()

    def _send(
        self, data: bytes, *, status: int = 200, kind: str = _HTML, more: dict[str, str] | None = None
    ) -> None:
        self._head(status, {"Content-Type": kind, "Content-Length": str(len(data)), **(more or {})})
        self.wfile.write(data)

    def _download(self, name: str, parts: Iterable[bytes], length: int = -1) -> None:
        """Send a file that no browser shows in a page, whatever it is."""
        named = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
        more = {"Content-Disposition": named, "Content-Security-Policy": "sandbox; default-src 'none'"}
        if length >= 0:
            more["Content-Length"] = str(length)
        self._head(200, {"Content-Type": "application/octet-stream", **more})
        for part in parts:
            self.wfile.write(part)

    def _stream(self, events: Iterable[bytes]) -> None:
        self._head(200, {"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
        for event in events:
            self.wfile.write(event)


class Stopped(BaseException):
    """A signal asks the server to end; no handler of errors takes it."""


def serve_until_stopped(server: Server) -> None:
    """Serve until a signal; then let threads end, for a moment."""
    import signal

    def stop(_signum: int, _frame: object) -> None:
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_IGN)
        raise Stopped

    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, stop)
    try:
        server.serve_forever(poll_interval=0.2)
    except Stopped:
        pass
    finally:
        server.is_over.set()
        server.server_close()
        until = time.monotonic() + 1.0
        while threading.active_count() > 1 and time.monotonic() < until:
            time.sleep(0.02)
