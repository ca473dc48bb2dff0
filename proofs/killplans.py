"""The plans that are killed; every step writes its name and the number of its attempt into a file outside.

As long as there is a file that holds it, a step does not end.
"""

from __future__ import annotations

_HEAD = """\
version: 1
name: kills
defaults: {shell: sh, timeout: 2m}
steps:
"""
_EFFECT = """\
echo "{id} $PLANRUN_ATTEMPT" >> ../effects
while test -e ../hold-{id}; do sleep 0.01; done"""


def _step(name: str, then: str = "", **keys: str) -> str:
    rows = [f"  - id: {name}", *(f"    {key}: {value}" for key, value in keys.items())]
    script = "\n".join([_EFFECT.format(id=name), *filter(None, [then])])
    return "\n".join([*rows, "    run: |", *(f"      {row}" for row in script.splitlines())]) + "\n"


ONCE = "once"
"""The step that must not be repeated."""
DAEMON = "daemon"
"""The step that leaves a process in a session of its own."""
CLEANUP = "bye"
"""The step that runs at every end of a run."""
NEVER = "never"
"""The step that is skipped."""

_DAEMON = _step(DAEMON, "setsid sleep 3600 > /dev/null 2>&1 &\nsleep 0.1")
_ONCE = _step(ONCE, "sleep 0.1", idempotent="false", on_failure="continue")
_FAILS = _step("fails", "echo no >&2\nexit 3", on_failure="continue")
_BYE = "finally:\n" + _step(CLEANUP, "echo bye")

VARIED = (
    _HEAD
    + _step("first", 'echo "colour=red" >> "$PLANRUN_OUTPUT"\necho said', outputs="{colour: string}")
    + _step(
        "reads",
        'echo "it is $COLOUR"',
        depends_on="[first]",
        env="{COLOUR: '${{ steps.first.outputs.colour }}'}",
    )
    + _step(
        "flaky",
        'echo try\ntest "$PLANRUN_ATTEMPT" -gt 1',
        retries="{max: 2, backoff: {initial: 30ms, jitter: 0}}",
    )
    + _FAILS
    + _step("after", "echo all the same", depends_on="[fails]")
    + _ONCE
    + _DAEMON
    + _step("asked", "sleep 0.02", depends_on="[first]", condition='steps.first.outputs.colour == "red"')
    + _step(NEVER, depends_on="[first]", condition='steps.first.outputs.colour == "blue"')
    + "  - id: checked\n    depends_on: [reads]\n    validate:\n      - files_exist: [plan.yml]\n"
    + _step("long", "for n in 1 2 3; do echo $n; sleep 0.02; done")
    + _step("joins", "echo together", depends_on="[reads, flaky, asked, long]")
    + _BYE
)
"""Thirteen steps: parallel, flaky, tolerated, conditional, reading outputs, not to be repeated, cleanup."""

WIDE = (
    _HEAD
    + _FAILS
    + _ONCE
    + _DAEMON
    + "".join(_step(f"s{n}", f"echo {n}\nsleep 0.0{n % 4}") for n in range(47))
    + _BYE
)
"""Fifty short steps that run at once, as far as --jobs allows, and cleanup."""
CUT = (
    _HEAD
    + _step("first", 'echo "colour=red" >> "$PLANRUN_OUTPUT"\necho said', outputs="{colour: string}")
    + _step("reads", "echo read", depends_on="[first]", env="{COLOUR: '${{ steps.first.outputs.colour }}'}")
    + _FAILS
    + _step(ONCE, "echo one", idempotent="false", on_failure="continue", depends_on="[first]")
    + "".join(_step(f"s{n}") for n in range(3))
    + _BYE
)
"""Eight steps as short as can be, since they are run very often."""
UNSEEN = frozenset({NEVER, "checked"})
"""Steps that leave no effect: one never runs, one has no process."""
