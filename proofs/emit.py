"""What a careless step does with its secrets: it prints them in every form that programs of this library know.

Steps run this file as a program, `emit.py HOW NAME...`, with the secrets in their environment; it knows nothing of
planrun. The proof imports it to know what to look for.
"""

from __future__ import annotations

import base64
import html
import json
import os
import shlex
import sys
import urllib.parse
from collections.abc import Callable
from xml.sax import saxutils

ENCODINGS: dict[str, Callable[[bytes], bytes]] = {
    "as it is": lambda data: data,
    "base64": base64.b64encode,
    "base64 for addresses": base64.urlsafe_b64encode,
    "base64 behind one": lambda data: base64.b64encode(b":" + data + b"@"),
    "base64 behind two": lambda data: base64.b64encode(b"u:" + data + b"@"),
    "base64 in lines": base64.encodebytes,
    "hex": lambda data: data.hex().encode(),
    "HEX": lambda data: data.hex().upper().encode(),
    "hex with colons": lambda data: data.hex(":").encode(),
    "list of numbers": lambda data: str(list(data)).encode().strip(b"[]"),
    "JSON": lambda data: json.dumps(data.decode()).encode()[1:-1],
    "JSON with all letters": lambda data: json.dumps(data.decode(), ensure_ascii=False).encode()[1:-1],
    "address": lambda data: urllib.parse.quote(data, safe="").encode(),
    "form": lambda data: urllib.parse.quote_plus(data).encode(),
    "shell": lambda data: shlex.quote(data.decode()).encode(),
    "HTML": lambda data: html.escape(data.decode()).encode(),
    "XML": lambda data: saxutils.quoteattr(data.decode()).encode()[1:-1],
    "repr": lambda data: repr(data.decode()).encode()[1:-1],
    "ascii": lambda data: ascii(data.decode()).encode()[1:-1],
    "UTF-16": lambda data: data.decode().encode("utf-16-le"),
}

TEXTS = [encode for how, encode in ENCODINGS.items() if how != "UTF-16"]
"""Those that are UTF-8."""


def printed(names: list[str]) -> list[bytes]:
    """Return a line for each secret in each form."""
    return [
        f"[{name}, {how}] ".encode() + encode(os.environb[name.encode()]) + b"\n"
        for name in names
        for how, encode in ENCODINGS.items()
    ]


def print_all(names: list[str]) -> None:
    """Print each secret in each form, on both streams, and once more in pieces that no secret has the size of."""
    lines = printed(names)
    for at, line in enumerate(lines):
        os.write(1 + at % 2, line)
    whole = b"".join(lines)
    for start in range(0, len(whole), 1021):
        os.write(1, whole[start : start + 1021])


def hand_on(names: list[str]) -> None:
    """Write each secret in each form of text as an output."""
    with open(os.environ["PLANRUN_OUTPUT"], "ab") as out:
        for name in names:
            texts = [encode(os.environb[name.encode()]) for encode in TEXTS]
            out.writelines(b"%s_%d<<END\n%s\nEND\n" % (name.encode(), *found) for found in enumerate(texts))


def write_data(names: list[str]) -> None:
    """Write the secrets into a file of the workspace, which is the step's own business."""
    with open("data.json", "w", encoding="utf-8") as file:
        json.dump({name: os.environ[name] for name in names}, file)


def fail(names: list[str]) -> None:
    """Fail with the secrets in the last words."""
    sys.stderr.write("fatal: " + ", ".join(os.environ[name] for name in names) + "\n")
    sys.exit(9)


if __name__ == "__main__":
    {"print": print_all, "outputs": hand_on, "data": write_data, "fail": fail}[sys.argv[1]](sys.argv[2:])
