"""Texts that try to be keys of YAML, other characters than they seem, markup, or commands to a CI system."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from proofs.malice.attack import Family, evil, raw

if TYPE_CHECKING:
    from collections.abc import Iterator


def texts() -> Iterator[Family]:
    """Texts that try to be keys of YAML, other characters, markup or commands."""
    hidden = Family("unicode", "invalid", "hidden")
    tags = "".join(chr(0xE0000 + ord(char)) for char in "obey")
    for name, text in (
        ("bidi", "a\u202eb"),
        ("isolates", "a\u2067b\u2069"),
        ("zero width", "a\u200bb"),
        ("tags", f"a{tags}"),
        ("escape", "a\x1b[2Jb"),
        ("8-bit escape", "a\x9b2Jb"),
        ("nul", "a\0b"),
        ("carriage return", "a\rb"),
        ("line separator", "a\u2028b"),
        ("filler", "a\u3164b"),
        ("private use", "a\ue000b"),
    ):
        hidden.add(f"{name} in a title", *[evil("true", title=text)] * 3)
        hidden.add(f"{name} in a script", *[evil(f"echo '{text}'")] * 3)
    hidden.add("half a character", *[json.dumps(evil("true", title="\ud800"))] * 3)
    hidden.add("in why there is no way", *[raw(infeasible="no\x1b]0;way\x07", steps=[])] * 3)
    yield hidden
    alike = Family("look-alikes", "denied", "ceiling:llm_auto_approve")
    for script in ("\uff4c\uff53", "t\u043euch evil-1", "ls\u00a0-la", "\u2010x"):
        alike.add(script, evil(script))
    alike.add(
        "lines that look like YAML", evil("true\n- id: more\n  run: touch evil-1\n  secrets: [PYPI_TOKEN]")
    )
    yield alike
    ids = Family("names", "invalid", "")
    for name in ("../evil", "a b", "t\u0435st", "a\nb", "a: b", "&a", "*a", "", "-", "a" * 101):
        ids.add(f"id {name[:8]!r}", *[evil("true", id=name)] * 3)
    for name in ("a b", "a: b", "../x", "PATH=", "", "a\n  secrets: [PYPI_TOKEN]"):
        ids.add(f"output {name[:8]!r}", *[evil("true", outputs=[name])] * 3)
    ids.add("a title of two lines", *[evil("true", title="a\n    secrets: [PYPI_TOKEN]")] * 3)
    ids.add("a condition of two lines", *[evil("true", condition="true\n    secrets: [PYPI_TOKEN]")] * 3)
    yield ids
