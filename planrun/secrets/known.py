"""The secrets a plan declares, as planrun's own environment has them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def known_secrets(names: Iterable[str], environ: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the values of the secrets of these names, and the names that are not set or empty."""
    wanted = dict.fromkeys(names)
    values = {name: environ[name] for name in wanted if environ.get(name)}
    return values, tuple(name for name in wanted if name not in values)
