"""The task that Dask moves: it asks for its attempt on the worker, and knows nothing else of it."""

from __future__ import annotations


def attempt(session: str, token: str) -> str:
    """Ask for an attempt, and wait until it is over."""
    from planrun.cluster.worker import occupy  # on the worker

    return occupy(session, token)


# Dask's scheduler reads what it passes on. A function of `__main__` is sent by value, so it needs no planrun there.
attempt.__module__ = "__main__"
