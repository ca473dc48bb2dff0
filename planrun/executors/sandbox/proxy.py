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

from planrun.executors.sandbox.starter import descriptors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_SOCKET = 3
_HEAD = 65536  # bytes of a request's head
_PATIENCE = 30.0  # seconds for a request's head, and for a connection
_IDLE = 600.0  # seconds without a byte in either direction
_PIECE = 65536
_HTTP, _HTTPS = 80, 443
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
    """Pass one request on, and all that follows on its connection."""
    received = b""
    while b"\r\n\r\n" not in received:
        part = client.recv(_PIECE)
        received += part
        if not part or len(received) > _HEAD:
            raise Refused("this is no request")
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise Refused("this is no request")
    method, target, version = words
    if method == "CONNECT":
        host, port = split(target, 0)
        with _connected(host, port, hosts) as server:
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            server.sendall(body)
            _relay(client, server)
        return
    host, port, path = _parts(target)
    if any(not line.partition(":")[0].replace("-", "").replace("_", "").isalnum() for line in lines):
        raise Refused("a header has no plain name")
    named = [line.partition(":")[2].strip() for line in lines if line.lower().startswith("host:")]
    if [split(name, _HTTP) for name in named] != [(host, port)]:
        raise Refused("the header Host and the address differ")
    kept = [line for line in lines if not line.lower().startswith(("connection:", "proxy-"))]
    request = "\r\n".join([f"{method} {path} {version}", *kept, "Connection: close", "", ""])
    with _connected(host, port, hosts) as server:
        server.sendall(request.encode("latin-1") + body)
        _relay(client, server)


def _parts(target: str) -> tuple[str, int, str]:
    """Return host, port and path of an absolute address."""
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
    """Pass bytes on in both directions until both sides have ended."""
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
