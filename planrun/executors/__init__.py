"""Where attempts run.

local.py is the face and the loop, attempt.py the course of one attempt, spawn.py its start, watch.py and signals.py
what the loop waits for, tree.py the processes of an attempt, logs.py its output, ending.py the words for its end.
"""
