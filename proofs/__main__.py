"""`python -m proofs NAME`: the long form of a proof; `pytest proofs` runs the short form of each."""

from __future__ import annotations

import sys

from proofs import (
    budgets,
    cached,
    calls,
    cluster,
    conversions,
    ending,
    environment,
    escape,
    faults,
    filters,
    fuzz,
    graphs,
    guides,
    holds,
    kills,
    limits,
    malicious,
    masks,
    pipelines,
    powercut,
    queue,
    races,
    releases,
    replans,
    reports,
    risk,
    sandbox,
    sandboxcorpus,
    sentback,
    sharedqueue,
    starts,
    strangers,
    surfaces,
    tamper,
    tapes,
    undo,
    values,
    views,
    workflows,
)

PROOFS = {
    "budgets": budgets.main,
    "cache": cached.main,
    "calls": calls.main,
    "cluster": cluster.main,
    "conversions": conversions.main,
    "ending": ending.main,
    "environment": environment.main,
    "escape": escape.main,
    "faults": faults.main,
    "filters": filters.main,
    "fuzz": fuzz.main,
    "graphs": graphs.main,
    "guides": guides.main,
    "holds": holds.main,
    "kills": kills.main,
    "limits": limits.main,
    "malicious": malicious.main,
    "masks": masks.main,
    "pipelines": pipelines.main,
    "powercut": powercut.main,
    "queue": queue.main,
    "races": races.main,
    "release": releases.main,
    "replans": replans.main,
    "reports": reports.main,
    "risk": risk.main,
    "sandbox": sandbox.main,
    "corpus": sandboxcorpus.main,
    "sentback": sentback.main,
    "sharedqueue": sharedqueue.main,
    "starts": starts.main,
    "strangers": strangers.main,
    "surfaces": surfaces.main,
    "undo": undo.main,
    "values": values.main,
    "views": views.main,
    "workflows": workflows.main,
    "tamper": tamper.main,
    "tapes": tapes.main,
}


def main() -> int:
    """Run the proof that the first argument names."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in PROOFS:
        print(f"usage: python -m proofs {'|'.join(PROOFS)} [options]", file=sys.stderr)
        return 2
    return PROOFS[name](sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
