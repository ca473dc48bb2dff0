"""The task that Dask moves: it asks for attempts on the worker, and knows nothing else of them."""

from __future__ import annotations


def occupy(session: str, token: str) -> str:
    """Ask for attempts, and wait until planrun says that the task is over."""
    from planrun.cluster import worker  # on the worker

    return worker.occupy(session, token)


# Dask's scheduler reads what it passes on. A function of `__main__` is sent by value, so it needs no planrun there.
occupy.__module__ = "__main__"
