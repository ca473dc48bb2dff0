"""Texts that look like the key of a service, plain or encoded, in a text before it is published.

Not the masks: those know the values. This knows none, and finds what those could not: a key that a user left in a
file, or that a model made up. Nothing is found in hashes, which look like chance, too, and are no secrets.
"""

from __future__ import annotations

import binascii
import html
import re
import urllib.parse
from base64 import b64decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_BEFORE = r"(?<![A-Za-z0-9])"
_SHAPES: tuple[tuple[str, str], ...] = (
    ("a key of Anthropic", r"sk-ant-[A-Za-z0-9_-]{20,}"),
    ("a key of OpenAI", r"sk-[A-Za-z0-9_-]{24,}"),
    ("a key of Stripe", r"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("a key of AWS", r"(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}"),
    ("a token of GitHub", r"(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{40,})"),
    ("a token of GitLab", r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat)-[A-Za-z0-9_-]{20,}"),
    ("a token of Slack", r"(?:xox[abeoprs]-|xapp-)[A-Za-z0-9-]{16,}"),
    ("a webhook of Slack", r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_+-]{20,}"),
    ("a key of Google", r"AIza[0-9A-Za-z_-]{35}"),
    ("a token of Google", r"(?:ya29\.|GOCSPX-)[0-9A-Za-z_-]{20,}"),
    ("a token of Hugging Face", r"hf_[A-Za-z0-9]{30,}"),
    ("a token of npm", r"npm_[A-Za-z0-9]{36}"),
    ("a token of PyPI", r"pypi-[A-Za-z0-9_-]{50,}"),
    ("a key of Groq", r"gsk_[A-Za-z0-9]{40,}"),
    ("a key of xAI", r"xai-[A-Za-z0-9]{40,}"),
    ("a key of SendGrid", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("a token of DigitalOcean", r"do[opr]_v1_[a-f0-9]{64}"),
    ("a key of age", r"AGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    ("a signed token", r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    ("a private key", r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----[^*]{0,200}?[A-Za-z0-9+/]{20}"),
)
_ANYWHERE = tuple(
    (name, re.compile(shape)) for name, shape in _SHAPES
)  # in what was encoded with what stood before
_KNOWN = tuple((name, re.compile(f"{_BEFORE}{shape}")) for name, shape in _SHAPES)
# A value that the name before it marks as a secret.
_NAMED = (
    (
        "a value that its name marks as a secret",
        re.compile(
            r"(?i:api[_-]?key|access[_-]?key|private[_-]?key|secret|token|passwo?r?d|credential)s?\\?[\"']?\s{0,4}[:=]{1,2}"
            r"\s{0,4}\\?[\"']?(?P<value>[A-Za-z0-9+/_.~-]{20,}={0,2})"
        ),
    ),
    (
        "a header with credentials",
        re.compile(
            r"(?i:authorization|x-api-key)[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:(?i:bearer|basic|token)\s{1,4})?"
            r"(?P<value>[A-Za-z0-9._~+/-]{16,}={0,2})"
        ),
    ),
    (
        "an address with a password",
        re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{0,64}:(?P<value>[^\s/@$<>{}*]{8,128})@"),
    ),
)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{24,}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}[ :-]?){16,}")
_BREAK = re.compile(r"[^\S\n]*\\?\r?\n[^\S\n]*")
_ESCAPE = re.compile(r"\\u00([0-9a-fA-F]{2})|\\x([0-9a-fA-F]{2})")
_MOST = 20
_VARIETY = 8  # different characters; what has fewer is a placeholder such as `sk-ant-xxxxxxxx`


def find(text: str) -> list[tuple[int, str]]:
    """Return the line (from 1) and the kind of everything that looks like a credential, at most the first 20.

    What is encoded, or broken over several lines, is looked for when there is nothing else.
    """
    found: dict[int, str] = {}
    for look in (_as_it_is, _encoded, _as_a_whole):
        for at, kind in look(text):
            found.setdefault(text.count("\n", 0, at) + 1, kind)
            if len(found) == _MOST:
                break
        if found:
            break
    return sorted(found.items())


def _as_it_is(text: str) -> Iterator[tuple[int, str]]:
    yield from _shapes(text, _KNOWN + _NAMED)


def _encoded(text: str) -> Iterator[tuple[int, str]]:
    for at, decoded in _decoded(text):
        for _, kind in _shapes(decoded, _ANYWHERE):
            yield at, f"{kind}, encoded"


def _as_a_whole(text: str) -> Iterator[tuple[int, str]]:
    """Look at a text with its escapes resolved, and without its line breaks; the line is unknown then."""
    for form in _whole(text):
        for _, kind in _shapes(form, _ANYWHERE):
            yield 0, f"{kind}, encoded or on several lines"


def _shapes(text: str, shapes: tuple[tuple[str, re.Pattern[str]], ...]) -> Iterator[tuple[int, str]]:
    for kind, pattern in shapes:
        for match in pattern.finditer(text):
            value = match.groupdict().get("value") or match[0]
            if _is_chosen_by_chance(value, named="value" in pattern.groupindex):
                yield match.start(), kind


def _is_chosen_by_chance(value: str, *, named: bool) -> bool:
    """Whether a value may be a key, and no placeholder, word or path."""
    if "example" in value.lower() or len(set(value)) < _VARIETY:
        return False
    if value.startswith("-----"):
        return True
    if not named:
        return any(map(str.isdigit, value))
    kinds = [any(map(test, value)) for test in (str.isdigit, str.islower, str.isupper)]
    return sum(kinds) >= 2 and kinds[0] and "/" not in value[:2]


def _decoded(text: str) -> Iterator[tuple[int, str]]:
    """Yield the decoded base64 and hex parts of a text, with their places."""
    for match in _BASE64.finditer(text):
        word = match[0].replace("-", "+").replace("_", "/")
        for start in range(4):
            part = word[start:]
            part = part[:-1] if len(part) % 4 == 1 else part
            yield match.start(), _plain(b64decode(part + "=" * (-len(part) % 4)))
    for match in _HEX.finditer(text):
        digits = re.sub("[^0-9a-fA-F]", "", match[0])
        yield match.start(), _plain(binascii.unhexlify(digits[: len(digits) // 2 * 2]))


def _whole(text: str) -> Iterator[str]:
    """Yield a text with its escapes resolved, and without its line breaks; only what that changes."""
    forms = {
        urllib.parse.unquote(text, errors="replace") if "%" in text else text,
        html.unescape(text) if "&" in text else text,
        _ESCAPE.sub(lambda found: chr(int(found[1] or found[2], 16)), text) if "\\" in text else text,
        text.replace("\0", ""),
    }
    flat = _BREAK.sub("", text)
    for form in sorted(forms | {flat}):
        if form != text:
            yield form
    for _, decoded in _decoded(flat) if flat != text else ():
        yield decoded


def _plain(data: bytes) -> str:
    return data.replace(b"\0", b"").decode("latin-1")
