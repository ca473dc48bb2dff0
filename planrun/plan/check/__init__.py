"""Checks over a whole plan: edges, references, quoting and used plans."""
