"""What programs print of a secret: real tools, and the encoders of Python's standard library and of MarkupSafe.

None of this shares code or tables with the masks that it is to prove.
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
import shlex
import shutil
import subprocess
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from xml.etree import ElementTree as ET
from xml.sax import saxutils

from markupsafe import escape

Writer = Callable[[str], bytes]
QUOTES = rb"b?[\s\0{\"'$+:]*"
"""What may be left of most outputs when the masks are taken out; a brace: a line too short to begin a mask."""


@dataclass(frozen=True)
class Printer:
    """A way to print a secret; `left` matches all that it may print besides."""

    name: str
    write: Writer
    left: bytes = QUOTES
    tool: str = ""

    @property
    def missing(self) -> bool:
        """Whether the tool it needs is not installed."""
        return bool(self.tool) and shutil.which(self.tool) is None


def _tool(name: str, *words: str, left: bytes = QUOTES) -> Printer:
    """Return a printer that gives the secret to a tool as input."""

    def write(secret: str) -> bytes:
        return subprocess.run([*words], input=secret.encode(), capture_output=True, check=True).stdout

    return Printer(name, write, left, words[0])


def _script(name: str, *words: str, left: bytes = QUOTES, locale: str = "C.UTF-8") -> Printer:
    """Return a printer that has the secret in its environment as S; both its outputs count."""

    def write(secret: str) -> bytes:
        env = {"S": secret, "LC_ALL": locale, "PATH": os.environ["PATH"]}
        return subprocess.run(
            words, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True
        ).stdout

    return Printer(name, write, left, words[0])


def _text(name: str, write: Callable[[str], str]) -> Printer:
    return Printer(name, lambda secret: write(secret).encode())


def _amid(before: bytes, after: bytes, write: Callable[[bytes], bytes]) -> Writer:
    return lambda secret: write(before + secret.encode() + after)


def _indented(secret: str) -> bytes:
    return "".join(f"    {line}\n" for line in secret.splitlines()).encode()


def _lower_quote(secret: str) -> str:
    return re.sub("%..", lambda match: match[0].lower(), urllib.parse.quote(secret, safe=""))


def _attribute(secret: str) -> str:
    return ET.tostring(ET.Element("e", {"a": secret}), "unicode")[6:-4]


# What is left of base64 and of dumps: characters in which neighbours have a part, addresses.
_NEIGHBOURS = rb"\s*([A-Za-z0-9+/=_-]\s*){0,10}"
_ADDRESSES = rb"[0-9a-f]{7,8}:?\s+([0-9a-f]{7,8}\s+)?\|?\s*"

PRINTERS: tuple[Printer, ...] = (
    _text("as it is", str),
    _text("with CRLF", lambda secret: secret.replace("\n", "\r\n")),
    Printer("line by line", _indented, rb"(\s|-----[A-Z ]+-----|[{}\"]|\b(ab|cd|e)\b)*"),
    Printer("UTF-16", lambda secret: secret.encode("utf-16-le")),
    Printer("base64 of Python", lambda secret: base64.b64encode(secret.encode())),
    Printer("base64 for addresses", lambda secret: base64.urlsafe_b64encode(secret.encode()).rstrip(b"=")),
    *(
        Printer(f"base64 behind {len(before)}", _amid(before, after, write), _NEIGHBOURS)
        for before, after in ((b"u", b"@"), (b"u:", b""), (b"us:", b"\n"), (b"", b"!"), (b"", b"!!"))
        for write in (base64.b64encode, base64.urlsafe_b64encode, base64.encodebytes)
    ),
    Printer("base64 of UTF-16", lambda secret: base64.b64encode(secret.encode("utf-16-le")), _NEIGHBOURS),
    _tool("base64", "base64"),
    _tool("openssl base64", "openssl", "base64"),
    _tool("base64 of a line", "sh", "-c", "(cat; echo) | base64"),
    Printer("hex", lambda secret: secret.encode().hex().encode()),
    Printer("HEX", lambda secret: secret.encode().hex().upper().encode()),
    Printer("hex with colons", lambda secret: secret.encode().hex(":").encode()),
    Printer("hex with dashes", lambda secret: secret.encode().hex("-").upper().encode()),
    Printer("hex in C", lambda secret: "".join(f"\\x{b:02x}" for b in secret.encode()).encode(), rb"\\x"),
    Printer("hex in a list", lambda secret: ", ".join(map(hex, secret.encode())).encode()),
    Printer("list of numbers", lambda secret: str(list(secret.encode())).encode(), rb"\[\]"),
    _tool("xxd", "xxd", left=_ADDRESSES),
    _tool("xxd -p", "xxd", "-p"),
    _tool("xxd of a line", "sh", "-c", "(cat; echo) | xxd", left=_ADDRESSES),
    _tool("hexdump -C", "hexdump", "-C", left=_ADDRESSES),
    _tool("od -t x1", "od", "-v", "-t", "x1", left=_ADDRESSES),
    _tool("od without addresses", "od", "-v", "-An", "-t", "x1"),
    _text("JSON", json.dumps),
    _text("JSON with all letters", lambda secret: json.dumps(secret, ensure_ascii=False)),
    _text("JSON in JSON", lambda secret: json.dumps(json.dumps({"k": secret}))[11:-4]),
    _text("JSON with \\/", lambda secret: json.dumps(secret).replace("/", "\\/")),
    _tool("jq", "jq", "-Rs", "."),
    _tool("jq -a", "jq", "-aRs", "."),
    _tool("jq @uri", "jq", "-Rrs", "@uri"),
    _tool("jq @html", "jq", "-Rrs", "@html"),
    _tool("jq @sh", "jq", "-Rrs", "@sh"),
    _tool("jq @csv", "jq", "-Rrs", "[.]|@csv"),
    _script("JSON.stringify", "node", "-p", "JSON.stringify(process.env.S)"),
    _script("encodeURIComponent", "node", "-p", "encodeURIComponent(process.env.S)"),
    _script("encodeURI", "node", "-p", "encodeURI(process.env.S)"),
    _script("URLSearchParams", "node", "-p", "String(new URLSearchParams({k: process.env.S})).slice(2)"),
    _text("quote", urllib.parse.quote),
    _text("quote everything", lambda secret: urllib.parse.quote(secret, safe="")),
    _text("quote_plus", urllib.parse.quote_plus),
    _text("quote in lower case", _lower_quote),
    _text("shlex.quote", shlex.quote),
    _script("printf %q", "bash", "-c", "printf '%q' \"$S\""),
    _script("printf %q in C", "bash", "-c", "printf '%q' \"$S\"", locale="C"),
    _script("bash's @Q", "bash", "-c", 'echo "${S@Q}"'),
    _script("bash -x", "bash", "-xc", ': "$S"'),
    _script("dash -x", "dash", "-xc", ': "$S"'),
    _script("declare -p", "bash", "-c", "declare -p S", left=rb"declare -x S=" + QUOTES),
    _text("repr", repr),
    _text("ascii", ascii),
    _text("repr of bytes", lambda secret: repr(secret.encode())),
    _text("html.escape", html.escape),
    _text("html.escape without quotes", lambda secret: html.escape(secret, quote=False)),
    _text("MarkupSafe", lambda secret: str(escape(secret))),
    _text("XML", saxutils.escape),
    _text("XML in quotes", saxutils.quoteattr),
    _text("XML of ElementTree", _attribute),
    _text(
        "XML in ASCII", lambda secret: saxutils.escape(secret).encode("ascii", "xmlcharrefreplace").decode()
    ),
)
