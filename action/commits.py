"""Commits of the checkout, read by git calls in which no configuration of the checkout can run a program.

Contents are read by planrun itself; here commits are only found, and fetched where a shallow checkout lacks them.
"""

from __future__ import annotations

import os
import subprocess

from action.origin import UnusableInputError, is_commit

_LIMIT = 300  # seconds that a fetch may take
_GIT = (
    *("git", "--no-pager", "--no-replace-objects"),
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.alternateRefsCommand=true"),
    *(
        "-c",
        "core.sshCommand=ssh",
        "-c",
        "core.gitProxy=",
        "-c",
        "credential.helper=",
        "-c",
        "protocol.version=2",
    ),
)
_FETCH = (
    *("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance"),
    *("--recurse-submodules=no", "--upload-pack=git-upload-pack"),
)
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "https:http:ssh:file",  # no helper of any other name
    "GIT_ASKPASS": "",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


def ensure(commit: str) -> str:
    """Return the full name of a commit, fetched when it is not there; raises UnusableInputError."""
    if not is_commit(commit):
        return _named(commit)
    if not _has(commit):
        shallow = _git("rev-parse", "--is-shallow-repository")[1].strip() != "false"
        depth = ("--depth=1",) if shallow else ()
        _code, _out, why = _git(*_FETCH, *depth, "origin", commit)
        if not _has(commit):
            raise UnusableInputError(
                f"commit {commit} is not in the checkout and cannot be fetched ({why or 'origin does not have it'}); "
                "give the checkout `fetch-depth: 0`"
            )
    return commit


def parent() -> str:
    """Return the first parent of what is checked out, fetched when it is not there; empty for a first commit.

    It reads the raw object: a shallow checkout shows no parents.
    """
    code, text, why = _git("cat-file", "commit", "HEAD")
    if code:
        raise UnusableInputError(f"there is no commit to compare with: {why}")
    found = [
        row.partition(" ")[2] for row in text.partition("\n\n")[0].split("\n") if row.startswith("parent ")
    ]
    return ensure(found[0]) if found else ""


def head() -> str:
    """Return the commit that is checked out; empty without a commit."""
    code, out, _why = _git("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    return "" if code else out.strip()


def _named(ref: str) -> str:
    from planrun.errors import InvalidInput
    from planrun.plan.revisions import commit_of

    try:
        return commit_of(ref)
    except InvalidInput as error:
        raise UnusableInputError(str(error)) from None


def _has(commit: str) -> bool:
    # A commit that is there without its files, as in a partial clone, is found out when they are read.
    return _git("cat-file", "-e", f"{commit}^{{commit}}")[0] == 0


def _git(*words: str) -> tuple[int, str, str]:
    """Run git; return its exit code, its output, and the first line of its error."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "SSH_ASKPASS"))}
    try:
        done = subprocess.run(
            [*_GIT, *words],
            env=kept | _ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LIMIT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnusableInputError(f"git cannot be run: {error}") from None
    return done.returncode, done.stdout, done.stderr.strip().split("\n")[0].removeprefix("fatal: ")
