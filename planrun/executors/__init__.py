"""Executors: where attempts run.

`local` is the executor and its loop; `attempt` is one attempt with its timers and its outcome; `spawn` starts a
process; `wait` waits for processes, output and signals; `tree` finds and signals the processes of an attempt; `logs`
and `piped` (through masks) receive its output. `mark` identifies whose a process is, `scan` reads /proc, `owners` finds
and kills what a run left. guardian.sh kills the steps of a planrun that was killed. `containers` removes containers,
`scriptcopies` holds the copies of reviewed scripts, `hardening` closes planrun's own memory to its steps.
"""
