"""Forty secrets of every kind that CI systems hold, made of a fixed seed."""

from __future__ import annotations

import base64
import json
import random
import string
import textwrap

_CHANCE = random.Random(12)
_LETTERS = string.ascii_letters + string.digits


def _token(length: int, letters: str = _LETTERS) -> str:
    return "".join(_CHANCE.choice(letters) for _ in range(length))


def _pem(kind: str, size: int) -> str:
    body = base64.b64encode(_CHANCE.randbytes(size)).decode()
    return f"-----BEGIN {kind}-----\n{textwrap.fill(body, 64)}\n-----END {kind}-----"


_PERIODIC = "xyxyxyxyz7"
_SHARED = _token(12)
_EC_KEY = _pem("EC PRIVATE KEY", 121)
_SERVICE = {
    "type": "service_account",
    "project_id": f"demo-{_token(6)}",
    "private_key": _pem("PRIVATE KEY", 118) + "\n",
    "client_email": f"ci@{_token(8)}.example",
}

SECRETS: tuple[str, ...] = (
    *(_token(length) for length in (6, 7, 8, 10, 12, 16, 20, 24, 32, 40, 64, 128)),
    _token(40, "0123456789abcdef"),
    base64.b64encode(_CHANCE.randbytes(46)).decode(),
    f"ghx_{_token(36)}",
    f"{_token(20)}.{_token(30)}.{_token(27, _LETTERS + '-_')}",
    f"{_token(9)}~!@#^*()+{_token(4)}",
    "pa\"ss 'w%or$d\\ 42",
    "`$(rm -rf)` & {x} <y> | z; #!?*[q]~",
    "'leading and trailing'' \"quotes\"'x",
    "100%25 sure, a=b&c=d+e/f?",
    "back\\slash\\n \\t \\\\ \\x41 end",
    "tab\there, bell\a and escape\x1b[1m",
    "schlüssel-€-日本語-ключ",
    "naïve 🔑 clé «secrète» ‰",
    _PERIODIC,
    _PERIODIC + _PERIODIC,
    _SHARED,
    _SHARED + _token(10),
    _token(10) + _SHARED,
    f"postgres://app:{_token(14)}%2B@db.internal.example:5432/app?sslmode=require",
    f"https://hooks.example.com/services/T{_token(8)}/B{_token(8)}/{_token(24)}",
    json.dumps({"user": "ci", "password": _token(15) + '"\\', "url": "https://x.example/a?b=1&c=<2>"}),
    json.dumps(_SERVICE, indent=2),
    _EC_KEY,
    _pem("RSA PRIVATE KEY", 609),
    _pem("PRIVATE KEY", 67).replace("\n", "\\n"),
    f"user=ci-{_token(4)}\r\npassword={_token(12)}\r\n\r\nlast={_token(3)} line",
    f"{_token(11)}\nab\ncd\n\n{_token(9)}\ne",
    f'"{_token(18)}"',
)
"""One is the beginning or the end of another, some repeat themselves, some have lines, quotes and other letters."""
