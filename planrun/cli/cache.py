"""`planrun cache`: inspect or clear the cache of step results."""

from __future__ import annotations

import os
import time

import click

from planrun.app.caching import own_store, shared_store
from planrun.cliutil.printing import say, say_json
from planrun.cliutil.values import span
from planrun.errors import InvalidInput
from planrun.plan.schema.forms import as_duration
from planrun.store.entries import MAX_SIZE, Store, as_bytes, clear_store, prune, rows, size, verify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from planrun.store.entries import AnyStore

_VERBS = ("stats", "list", "clear", "prune", "verify")


@click.command(short_help="Inspect or clear the cache.")
@click.argument("verb", type=click.Choice(_VERBS), default="stats")
@click.option("--store", metavar="DIR|URL", help="The store of --cache-store, instead of this user's own.")
@click.option("--max-size", metavar="SIZE", help="With prune: how much to keep, as 500M or 2G. Default: 2G.")
@click.option(
    "--older-than", metavar="DURATION", help="With prune: delete what was used last so long ago: 720h, 90m."
)
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def cache(
    verb: str, store: str | None, max_size: str | None, older_than: str | None, *, as_json: bool
) -> int:
    """Inspect the cached results of steps, or delete them.

    \b
    stats    how many results, how many bytes, and where
    list     each result: when it was used last, its step, its run, its size
    prune    delete results: the least recently used down to --max-size, and those --older-than
    clear    delete everything
    verify   read everything; delete damaged results, and end with exit code 1

    \b
    Examples:
      planrun cache
      planrun cache list --json
      planrun cache prune --max-size 500M
      planrun cache prune --store s3://team-cache/ci --older-than 720h --max-size 20G
    """
    if verb != "prune" and (max_size or older_than) is not None:
        raise InvalidInput("--max-size and --older-than go with `planrun cache prune`")
    cache_store = _store(store)
    try:
        data = _prune(cache_store, max_size, older_than) if verb == "prune" else _ACTIONS[verb](cache_store)
    finally:
        cache_store.close()
    if as_json:
        say_json(data)
    else:
        for line in _lines(verb, data):
            say(line)
    return 1 if verb == "verify" and data["damaged"] else 0


def _store(path: str | None) -> AnyStore:
    if path:
        if "://" in path:
            return shared_store(path, strict=True)
        if not os.path.isdir(path):
            raise InvalidInput(f"no such folder: {path}")
        return Store(os.path.abspath(path), shared=True)
    own = own_store()
    if own is None:
        raise InvalidInput("the environment names no folder for caches: set PLANRUN_CACHE_DIR or HOME")
    return own


def _stats(store: AnyStore) -> dict[str, Any]:
    return {"folder": store.path, "results": len(rows(store)), "bytes": size(store), "most": MAX_SIZE}


def _list(store: AnyStore) -> dict[str, Any]:
    results = [
        {
            "key": row.entry.key,
            "step": row.entry.step,
            "run": row.entry.run,
            "seconds": row.entry.seconds,
            "files": len(row.entry.files),
            "bytes": sum([each.bytes for each in row.entry.files]),
            "used_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(row.used)),
        }
        for row in rows(store)
    ]
    return {"folder": store.path, "results": results}


def _prune(store: AnyStore, most: str | None, older_than: str | None) -> dict[str, Any]:
    # An age alone limits no size.
    number = as_bytes(most or ("999T" if older_than else "2G"))
    if number is None:
        raise InvalidInput(f'--max-size takes a number of bytes such as 500M or 2G, not "{most}"')
    oldest = store.now() - as_duration(span("--older-than", older_than)) if older_than else 0.0
    return dict(vars(prune(store, number, oldest)))


def _clear(store: AnyStore) -> dict[str, Any]:
    return dict(vars(clear_store(store)))


def _verify(store: AnyStore) -> dict[str, Any]:
    sound, damaged = verify(store)
    return {"sound": sound, "damaged": damaged}


_ACTIONS: dict[str, Callable[[AnyStore], dict[str, Any]]] = {
    "stats": _stats,
    "list": _list,
    "clear": _clear,
    "verify": _verify,
}


def _lines(verb: str, data: dict[str, Any]) -> list[str]:
    if verb == "stats":
        return [f"{_results(data['results'])}, {data['bytes']:,} bytes of files, in {data['folder']}"]
    if verb == "list":
        return [
            f"{row['used_at']}  {row['step']}: {row['files']} files, {row['bytes']:,} bytes, run {row['run']}"
            for row in data["results"]
        ]
    if verb == "verify":
        return [
            *[f"damaged and removed: {name}" for name in data["damaged"]],
            f"{data['sound']} files are intact",
        ]
    return [f"{_results(data['entries'])} and {data['bytes']:,} bytes removed"]


def _results(number: int) -> str:
    return f"{number} result" if number == 1 else f"{number} results"
