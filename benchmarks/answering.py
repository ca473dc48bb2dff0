"""Stands in for the client of a cluster: it answers each attempt at once, so that planrun's own work remains."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.environ["DASK_PLANRUN"])
    from planrun.cluster import wire

    lines = wire.Lines()
    outcome = {"status": "completed", "reason": "ran", "exit_code": 0, "duration": 0.001}
    ready = {"slots": int(os.environ["DASK_SLOTS"]), "workers": ["one"], "labels": [], "apart": {}}
    while data := os.read(0, 1 << 20):
        answer = bytearray()
        for said in lines.feed(data):
            if "address" in said:
                answer += wire.line({"ready": ready})
            elif "start" in said:
                answer += wire.line({"end": said["start"], "outcome": outcome, "worker": "one"})
            elif "close" in said:
                sys.exit(0)
        while answer:
            del answer[: os.write(1, answer)]
