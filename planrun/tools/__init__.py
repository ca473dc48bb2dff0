"""The tools that plans call: a process for each call, started by its path and imported by nobody.

It looks at its arguments once more, works on the files of the workspace or asks git, and hands on what it found by
$PLANRUN_OUTPUT. What planrun knows of it is the catalogue in `planrun.model.tools`.
"""
