"""The process of the proxy: HTTP requests and CONNECT to allowed hosts go on, all others get 403.

Each running step has a network of its own with nothing in it but the socket that this process listens on. So what is
not asked for here is not reached. Names are resolved here: one that leads into this machine or its link is refused,
unless the plan allows that address itself.
"""

from __future__ import annotations

import ipaddress
import marshal
import select
import socket
import struct
import threading
import time

from planrun.executors.sandbox.starter import descriptors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SOCKET = 3
_HEAD = 65536  # bytes of a request's head
_PATIENCE = 30.0  # seconds for a request's head, and for a connection
_IDLE = 600.0  # seconds without a byte in either direction
_PIECE = 65536
_HTTP, _HTTPS = 80, 443
_CONTROLS = bytes((*(code for code in range(0x20) if code != 0x09), 0x7F))
# Headers that are of one connection, and those that are written anew.
_OF_CONNECTION = frozenset(("host", "connection", "keep-alive", "content-length", "transfer-encoding"))
_OF_CONNECTION |= {"te", "trailer", "expect", "upgrade"}
_MOST = 256  # connections of one step at the same time


class Refused(Exception):
    """A request that is not passed on; the text says why."""


def main() -> None:
    """Serve until planrun closes the socket."""
    control = socket.socket(fileno=_SOCKET)
    control.set_inheritable(False)
    served: dict[int, socket.socket] = {}
    while True:
        head, ancillary, _, _ = control.recvmsg(4, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC)
        if len(head) < 4:
            return
        size = struct.unpack("=I", head)[0]
        data = b""
        while len(data) < size:
            part = control.recv(size - len(data))
            if not part:
                return
            data += part
        message = marshal.loads(data)  # noqa: S302 - from planrun itself
        if "open" in message:
            listener = socket.socket(fileno=descriptors(ancillary)[0])
            served[message["open"]] = listener
            target = (listener, tuple(message["hosts"]))
            threading.Thread(target=_serve, args=target, daemon=True).start()
        elif message["close"] in served:
            served.pop(message["close"]).shutdown(socket.SHUT_RDWR)


def _serve(listener: socket.socket, hosts: tuple[str, ...]) -> None:
    room = threading.BoundedSemaphore(_MOST)
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            listener.close()
            return
        if not room.acquire(blocking=False):
            client.close()
            continue
        threading.Thread(target=_attend, args=(client, hosts, room), daemon=True).start()


def _attend(client: socket.socket, hosts: tuple[str, ...], room: threading.BoundedSemaphore) -> None:
    try:
        with client:
            client.settimeout(_PATIENCE)
            try:
                _answer(client, hosts)
            except Refused as refusal:
                text = f"planrun: {refusal}\n".encode()
                head = f"HTTP/1.1 403 Forbidden\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n"
                client.sendall(head.encode() + text)
    except OSError:  # one of the two went away
        return
    finally:
        room.release()


def _answer(client: socket.socket, hosts: tuple[str, ...]) -> None:
    """Pass one request on and its response back; of a CONNECT, all that follows."""
    (method, target, version), headers, rest = _head(client)
    if method == "CONNECT":
        host, port = split(target, 0)
        with _connected(host, port, hosts) as server:
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            server.sendall(rest)
            _relay(client, server)
        return
    host, port, path = _parts(target)
    if [split(value, _HTTP) for name, value in headers if name == "host"] != [(host, port)]:
        raise Refused("the header Host and the address differ")
    length = _length(headers, version)
    named = [
        word.strip().lower() for name, value in headers if name == "connection" for word in value.split(",")
    ]
    kept = [
        f"{name}: {value}"
        for name, value in headers
        if name not in _OF_CONNECTION.union(named) and not name.startswith("proxy-")
    ]
    framed = {0: [], -1: ["transfer-encoding: chunked"]}.get(length, [f"content-length: {length}"])
    authority = host if port == _HTTP else f"{host}:{port}"
    request = "\r\n".join(
        [f"{method} {path} {version}", f"host: {authority}", *kept, *framed, "connection: close", "", ""]
    )
    body = _Body(client, rest)
    with _connected(host, port, hosts) as server:
        server.sendall(request.encode("latin-1"))
        if length and any(name == "expect" for name, _ in headers):
            client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        client.settimeout(_IDLE)
        server.settimeout(_IDLE)
        sending = threading.Thread(target=_send, args=(body, length, server), daemon=True)
        sending.start()
        try:
            while data := server.recv(_PIECE):
                client.sendall(data)
        finally:
            client.shutdown(socket.SHUT_RDWR)
            sending.join()


def _head(client: socket.socket) -> tuple[list[str], list[tuple[str, str]], bytes]:
    """Return the words of a request, its headers, and what came behind them; raises Refused."""
    received = b""
    until = time.monotonic() + _PATIENCE
    while b"\r\n\r\n" not in received:
        part = client.recv(_PIECE)
        received += part
        if not part or len(received) > _HEAD or time.monotonic() > until:
            raise Refused("this is no request")
    head, _, rest = received.partition(b"\r\n\r\n")
    if head.translate(None, _CONTROLS) != head.replace(b"\r\n", b""):
        raise Refused("the head has a control character")
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or words[2] not in ("HTTP/1.0", "HTTP/1.1") or not first.isascii() or "\t" in first:
        raise Refused("this is no request")
    if not _is_token(words[0]):
        raise Refused("this is no request")
    if not all(":" in line and _is_token(line.partition(":")[0]) for line in lines):
        raise Refused("a header has no plain name")
    headers = [
        (name.lower(), value.strip(" \t")) for name, _, value in (line.partition(":") for line in lines)
    ]
    return words, headers, rest


def _is_token(text: str) -> bool:
    return text.isascii() and text.replace("-", "").replace("_", "").isalnum()


def _length(headers: list[tuple[str, str]], version: str) -> int:
    lengths = [value for name, value in headers if name == "content-length"]
    codings = [value.lower() for name, value in headers if name == "transfer-encoding"]
    if codings:
        if codings != ["chunked"] or lengths or version != "HTTP/1.1":
            raise Refused("the length of the body is not clear")
        return -1
    if not lengths:
        return 0
    if len(lengths) > 1 or not _is_number(lengths[0], "0123456789"):
        raise Refused("the length of the body is not clear")
    return int(lengths[0])


def _is_number(text: str, digits: str) -> bool:
    return 0 < len(text) < 16 and all(char in digits for char in text)


class _Body:
    def __init__(self, client: socket.socket, received: bytes) -> None:
        self.client, self.received = client, received

    def read(self, count: int) -> Iterator[bytes]:
        """Yield the next `count` bytes; raises Refused when the client ends before."""
        while count:
            piece = self.received[:count] or self.client.recv(min(_PIECE, count))
            if not piece:
                raise Refused("the body is cut")
            self.received = self.received[len(piece) :]
            count -= len(piece)
            yield piece

    def line(self) -> str:
        """Return the next line; raises Refused when it has an end of its own kind, or none."""
        while b"\n" not in self.received:
            part = self.client.recv(_PIECE)
            self.received += part
            if not part or (len(self.received) > _HEAD and b"\n" not in self.received):
                raise Refused("the body is cut")
        line, _, self.received = self.received.partition(b"\n")
        if line[-1:] != b"\r" or not (text := line[:-1].decode("latin-1")).isprintable():
            if line != b"\r":
                raise Refused("a chunk has no plain size")
            return ""
        return text

    def chunks(self) -> Iterator[bytes]:
        """Yield the chunks, framed anew; extensions and trailers are left out. Raises Refused."""
        while True:
            number = self.line().partition(";")[0].strip()
            if not _is_number(number, "0123456789abcdefABCDEF"):
                raise Refused("a chunk has no plain size")
            count = int(number, 16)
            if not count:
                break
            for piece in self.read(count):
                yield b"%x\r\n%b\r\n" % (len(piece), piece)
            if self.line():
                raise Refused("a chunk is longer than it says")
        while self.line():
            pass
        yield b"0\r\n\r\n"


def _send(body: _Body, length: int, server: socket.socket) -> None:
    """Send a body, and nothing that follows it; a body that is not well-formed ends the connection."""
    try:
        for piece in body.chunks() if length < 0 else body.read(length):
            server.sendall(piece)
        while body.client.recv(_PIECE):
            pass
        server.shutdown(socket.SHUT_WR)
    except (OSError, Refused):
        try:
            server.shutdown(socket.SHUT_RDWR)
        except OSError:
            return


def _parts(target: str) -> tuple[str, int, str]:
    if not target.lower().startswith("http://"):
        raise Refused("only http:// addresses and CONNECT are passed on")
    authority, slash, path = target[7:].partition("/")
    if "@" in authority or "?" in authority or "#" in authority:
        raise Refused("the address has no plain host")
    return (*split(authority, _HTTP), slash + path or "/")


def split(text: str, port: int) -> tuple[str, int]:
    """Return host and port of `host`, `host:port`, `[address]:port`; `port`: where it has none, 0: it must have one."""
    text = text.strip().lower()
    host, colon, number = text.rpartition(":")
    if not colon or (text.startswith("[") and text.endswith("]")):
        host, number = text, str(port)
    if not number.isdecimal() or not 0 < int(number) < 65536 or not host:
        raise Refused("the address has no host and port")
    return host.rstrip(".") or host, int(number)


def allowed(host: str, port: int, hosts: Iterable[str]) -> bool:
    """Whether one of the allowed hosts is this one; one without a port means 80 and 443."""
    for entry in hosts:
        name, number = split(entry, _HTTPS)
        has_port = entry.endswith(f":{number}")
        if port != number and (has_port or port != _HTTP):
            continue
        if name == host or (name.startswith("*.") and host.endswith(name[1:])):
            return True
    return False


def _connected(host: str, port: int, hosts: tuple[str, ...]) -> socket.socket:
    if not allowed(host, port, hosts):
        raise Refused(f"{host}:{port} is not among the allowed hosts of this step")
    bare = host.strip("[]")
    exact = any(split(entry, _HTTPS)[0] == host for entry in hosts)
    try:
        places = socket.getaddrinfo(bare, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise Refused(f"{host} has no address: {error}") from None
    for family, kind, protocol, _, address in places:
        if not _may_lead(bare, str(address[0]), exact=exact):
            raise Refused(f"{host} leads to {address[0]}, which is of this machine or its link")
        server = socket.socket(family, kind, protocol)
        server.settimeout(_PATIENCE)
        try:
            server.connect(address)
        except OSError:
            server.close()
            continue
        return server
    raise Refused(f"{host}:{port} cannot be reached")


def _may_lead(host: str, address: str, *, exact: bool) -> bool:
    """Whether a name may lead to an address: to this machine only if the plan names it so."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    if not (found.is_loopback or found.is_link_local or found.is_unspecified or found.is_multicast):
        return True
    return exact and host in ("localhost", address) and not found.is_link_local


def _relay(one: socket.socket, other: socket.socket) -> None:
    others = {one: other, other: one}
    waiting = [one, other]
    for each in waiting:
        each.settimeout(_PATIENCE)
    while waiting:
        ready, _, _ = select.select(waiting, [], [], _IDLE)
        if not ready:
            return
        for source in ready:
            data = source.recv(_PIECE)
            if data:
                others[source].sendall(data)
                continue
            waiting.remove(source)
            try:
                others[source].shutdown(socket.SHUT_WR)
            except OSError:
                return


if __name__ == "__main__":
    main()
