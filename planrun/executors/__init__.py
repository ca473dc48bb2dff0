"""Where attempts run.

local.py is the face and the loop, attempt.py the course of one attempt, spawn.py its start, watch.py and signals.py
what the loop waits for, tree.py the processes of an attempt, output.py what is wanted of its output, logs.py and
piped.py (through masks) where that goes, ending.py the words for its end. mark.py and births.py tell whose a process
is and whether there can be any, guardian.py and leftovers.py end what a planrun could not end itself. shield.py
closes planrun to its steps.
"""
