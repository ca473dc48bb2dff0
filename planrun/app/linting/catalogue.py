"""The codes of advice; docs/lint.md has an example of each."""

from __future__ import annotations

# Stable for ever, as those of problems are: plans and scripts name them to leave them out.
ADVICE: dict[str, str] = {
    "L401": "a dangerous step that nobody is asked about",
    "L402": "a step that cannot be taken back, and does not say so",
    "L403": "a step that fetches over the network and is tried once",
    "L404": "attempts that may do the same thing twice",
    "L405": "a step without a name",
    "L406": "a verification that proves nothing",
    "L407": "a verification that risks more than the step",
    "L408": "a secret that no step lists",
    "L409": "a parameter that nothing reads",
    "L410": "a condition that never changes",
    "L411": "steps that could run side by side",
    "L412": "an order that hides the longest path",
    "L413": "something started that nobody stops",
    "L414": "a process in the background",
    "L415": "a cached step whose files are not kept",
    "L416": "a step that comes close to its timeout",
    "L417": "a failure that is hidden",
    "L418": "output that is thrown away",
    "L421": "an approval or a question in finally",
    "L422": "a step with a lasting effect that does not state whether it may run twice",
    "L423": "a step with a lasting effect that nothing verifies",
    "L424": "a long step that reports no progress",
    "L425": "a large plan without a bound",
}
