"""The codes of advice with their titles, without the rules: these take long to import."""

from __future__ import annotations

# Stable for ever, as those of problems are: plans and scripts name them to leave them out.
ADVICE: dict[str, str] = {
    "L401": "a dangerous step without approval",
    "L402": "an irreversible step that does not state it",
    "L403": "a network step without retries",
    "L404": "retries on a step that is not idempotent",
    "L405": "a step without a name",
    "L406": "a verification that always passes",
    "L407": "a verification with a higher risk than its step",
    "L408": "an unused secret",
    "L409": "an unused parameter",
    "L410": "a constant condition",
    "L411": "steps that could run in parallel",
    "L412": "a step order that delays the longest path",
    "L413": "a container that no step stops",
    "L414": "a background process",
    "L415": "a cached step with undeclared files",
    "L416": "a step close to its timeout",
    "L417": "a hidden failure",
    "L418": "discarded output",
    "L421": "an approval or a question in finally",
    "L422": "a step with a lasting effect and without `idempotent`",
    "L423": "an unverified step with a lasting effect",
    "L424": "a long step that reports no progress",
    "L425": "a large plan without `max_steps`",
    "L426": "a notification without encryption",
    "L427": "a file of another CI system",
    "L428": "a variable exported for another step",
    "L429": "a release without approval",
    "L430": "an MCP server without pins",
}
