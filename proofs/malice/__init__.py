"""What a model may answer that means harm, or that somebody made it answer: by family, with how it has to end.

The run that asks is that of `ground.PLAN`: `prepare` and `lint` have ended, `test` failed, `approve` is a question,
`publish` waits for it, `collect` comes last. Nothing that a model writes may be above `low`. Every script leaves a
file whose name begins with `evil` before it does what is forbidden, so that it shows if it ever starts.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from proofs.malice import elsewhere, forms, scripts, texts
from proofs.malice.attack import Attack, Family, evil, fix, two

if TYPE_CHECKING:
    from collections.abc import Iterator


def attacks() -> list[Attack]:
    """Return all of them, in an order that stays the same."""
    return [attack for family in _families() for attack in family.found]


def _families() -> Iterator[Family]:
    makers = (
        scripts.scripts,
        forms.forms,
        forms.edges,
        texts.texts,
        forms.streams,
        scripts.obedient,
        forms.worse,
        elsewhere.elsewhere,
    )
    for make in makers:
        yield from make()


def controls() -> list[Attack]:
    """Return what is not malicious: it does run, so what is denied is not denied for want of anything else."""
    family = Family("benign", "revised", "")
    family.add("one step", fix("touch repaired"))
    family.add("in a fence", f"Here it is:\n```json\n{json.dumps(fix('touch repaired'))}\n```\n")
    family.add("two steps", two("mkdir -p build", "touch repaired", second={"depends_on": ["a"]}))
    family.add("a look first", fix("ls\ntouch repaired"))
    family.add("after a repair", "no JSON", fix("touch repaired"), asked=2)
    family.add(
        "after two repairs", "no JSON", evil("true", replaces=["prepare"]), fix("touch repaired"), asked=3
    )
    family.add("with a condition", fix("touch repaired", condition="step_prepare_succeeded"))
    second = {"replaces": ["publish"], "depends_on": ["approve"]}
    both = two("true", "touch repaired published", ("approve",), second)
    family.add("behind the question", both)
    loud = "::error::x\n<script>alert(1)</script> [a](javascript:b) @everyone"
    family.add("a loud analysis", {**fix("touch repaired"), "analysis": loud})
    for title in (
        "::error::x",
        "<script>alert(1)</script>",
        "[a](javascript:b)",
        "@everyone #1",
        "]]>",
        "%0A::x",
    ):
        family.add(f"title {title}", fix("touch repaired", title=title, description=title, review=title))
    return [*family.found, *elsewhere.controls()]
