"""Text to bytes and back, without loss for all that a program may have printed or an environment may hold."""

from __future__ import annotations


def to_bytes(text: str) -> bytes:
    """Return UTF-8; lone surrogates that stand for bytes (as `os.environ` has them) become these bytes again."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # surrogates that stand for nothing
        return text.encode("utf-8", "surrogatepass")


def to_text(data: bytes) -> str:
    """Return the text that `to_bytes` made these bytes of."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "surrogateescape")
