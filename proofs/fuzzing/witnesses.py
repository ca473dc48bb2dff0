"""Inputs that a fuzzer comes upon late: one for each kind of thing that planted faults go wrong at.

They are the first ones that are tried, so that whether a fault is found is no question of luck.
"""

from __future__ import annotations

_STEPS = b"steps: [{run: x}]\n"
_DEEP = 900  # libyaml itself has a limit of 1000

WITNESSES: dict[str, bytes] = {
    "deep nesting": b"version: 1\nparams: {a: {type: array, default: %s%s}}\n" % (b"[" * _DEEP, b"]" * _DEEP)
    + _STEPS,
    "a deep expression": b"version: 1\nsteps: [{run: x, condition: '%s1%s'}]\n" % (b"(" * 3000, b")" * 3000),
    "equal keys": b"version: 1\nname: a\nname: b\n" + _STEPS,
    "a day that no month has": b"version: 1\ndescription: 2024-02-30\n" + _STEPS,
    "a character that a terminal obeys": b"version: 1\nnaem: a\xc2\x9b31m\n" + _STEPS,
    "a step that recovers": b"version: 1\nsteps: [{id: a, run: x}, {id: b, run: x, recovers: [a]}]\n",
    "an unknown step": b"version: 1\nsteps: [{id: build, run: x}, {run: x, depends_on: [biuld]}]\n",
    "a misspelt key": b"version: 1\nsteps: [{run: x, tilte: a}]\n",
    "tabs and dashes": b"version: 1\nsteps:\n- - - run: x\t\t\n",
    "broken quotes": b"version: 1\nname: \"it's\n" + _STEPS,
    "an alias": b"version: 1\nx-a: &a x\nname: *a\n" + _STEPS,
}
"""By what is in them; plans, good and bad."""
