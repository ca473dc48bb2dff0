"""Addresses of shared places: which are URLs, and how they are printed."""

from __future__ import annotations


def is_url(text: str) -> bool:
    """Return whether a text is a URL and not a path."""
    scheme, separator, _ = text.partition("://")
    return bool(separator) and scheme.isidentifier()


def masked(url: str) -> str:
    """Return a URL without the password before its host and the values behind `?`."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    rest, mark, query = rest.partition("?")
    host, slash, path = rest.partition("/")
    user, at, host = host.rpartition("@")
    name, colon, _ = user.partition(":")
    hidden = "&".join([f"{part.partition('=')[0]}=***" for part in query.split("&")]) if query else ""
    return f"{scheme}://{name}{colon and ':***'}{at}{host}{slash}{path}{mark}{hidden}"
