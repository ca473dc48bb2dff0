"""Faults to plant into a planrun that is killed, and the kill at which each must show."""

from __future__ import annotations

from proofs.crashing import Kill
from proofs.killplans import CLEANUP, DAEMON, ONCE

FAULTS = {
    "": "",
    "late-ledger": """\
from planrun.records.ledger import Ledger

write = Ledger.flush

def flush(self):
    last = self._held[-1:]
    if last and b'"type":"run_ended"' not in last[0][0]:
        self._held = self._held[:-1]
        write(self)
        self._held = last
    else:
        write(self)

Ledger.flush = flush
""",
    "repeats-all": "from planrun.app.rerun import RerunPlan\nRerunPlan._unfinished = lambda *_: 'again'\n",
    "forgets-lost": """\
from planrun.app import rerun, resume
resume.lost_attempts = rerun.lost_attempts = lambda state: []
""",
    "slots-left": """\
from planrun.app import resume
from planrun.executors import logs
logs.recover = resume.recover = lambda folder: ()
""",
    "no-clearing": "from planrun.executors.local import LocalExecutor\nLocalExecutor.clear = lambda self: None\n",
    "half-reports": """\
from planrun.app import session
write = session.write_reports

def write_reports(state, *words, **keys):
    return ({}, None) if state.resumed else write(state, *words, **keys)

session.write_reports = write_reports
""",
}
"""Faults as what is run when planrun starts; the empty name is planrun as it is."""
CAUGHT_BY = {
    "late-ledger": (Kill(seen=CLEANUP),),
    "repeats-all": (Kill(seen="joins"),),
    "forgets-lost": (Kill(seen=ONCE),),
    "slots-left": (Kill(seen="long"),),
    "no-clearing": (Kill(seen=DAEMON, guardian=True),),
    "half-reports": (Kill(seen="joins"),),
}
