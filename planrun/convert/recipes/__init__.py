"""Makefiles and justfiles as plans: targets and recipes whose lines have a shell each."""
