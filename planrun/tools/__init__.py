"""The tools that plans call: a process for each call, which planrun/entry.py starts; nothing imports them.

A process validates its arguments again, works on the files of the workspace or runs git, and writes its outputs to
$PLANRUN_OUTPUT. The catalogue in `planrun.model.tools` describes the tools to planrun.
"""
