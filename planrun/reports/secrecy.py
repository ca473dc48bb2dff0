"""What a run says of its secrets before anything starts: names and places, never values."""

from __future__ import annotations

from planrun.reports.clean import line
from planrun.reports.facts import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def warnings(about: Any, file: str) -> Iterator[str]:
    """Yield a line for each thing that people should know; `about` is `options.secrets` of a run, `file` its plan."""
    for secret, steps in about.get("missing", {}).items():
        told = names([line(step) for step in steps])
        yield f"the secret {line(secret)} has no value in planrun's environment; it is needed by: {told}"
    unmasked = about.get("unmasked", ())
    if unmasked:
        several = len(unmasked) > 1
        yield (
            f"not masked, since {'their values are' if several else 'its value is'} too short or too common: "
            f"{names([line(secret) for secret in unmasked])}"
        )
    for place in about.get("in_plan", ()):
        where, _, secret = place.rpartition(" ")
        if where.count(":") > 1:  # in a plan that it uses, as seen from its folder
            yield f"{line(where)}: a plan that is used holds the value of the secret {line(secret)}"
            continue
        yield f"{line(file)}:{where}: the plan itself holds the value of the secret {line(secret)}"
