"""git.commit."""

from __future__ import annotations

from planrun.tools.folders import each
from planrun.tools.git import decoded, repository
from planrun.tools.ground import words_of
from planrun.tools.refusal import Refusal
from planrun.tools.results import listed, plural, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.tools.git import Git
    from planrun.tools.ground import Ground


def commit(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Make a commit; raises Refusal when there would be nothing in it."""
    hooks = args.get("hooks", False)
    git, _ = repository(ground, "drivers", *["hooks"] * bool(hooks))
    paths = ["/".join(words_of(path)) for path in each(args.get("paths", []))]
    if paths and args.get("all", False):
        raise Refusal("`paths` and `all` exclude each other")
    if paths:
        git.need("add", "--all", "--", *paths)
    empty = args.get("allow_empty", False)
    if not empty and not _changes(git, paths, all_of_them=args.get("all", False)):
        where = f" in {', '.join(paths[:5])}" if paths else ""
        raise Refusal(
            f"there is nothing to commit{where}" if paths or args.get("all") else "nothing is staged"
        )
    words = ["--file=-", "--cleanup=whitespace", "--no-gpg-sign", "--no-status", "--quiet", "--no-edit"]
    words += ["--no-verify"] * (not hooks) + ["--all"] * bool(args.get("all", False))
    words += ["--allow-empty"] * bool(empty)
    if "author" in args:
        words.append(f"--author={args['author']}")
    if paths:
        words += ["--only", "--", *paths]
    git.need("commit", *words, given=args["message"].encode("utf-8", "replace"))
    return _made(git)


def _changes(git: Git, paths: list[str], *, all_of_them: object) -> bool:
    """Say whether a commit would hold a change."""
    against = "HEAD" if git.line("rev-parse", "--verify", "--quiet", "HEAD") else ""
    words = ["--quiet", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"]
    if not all_of_them or not against:
        words.append("--cached")
    elif against:
        words.append(against)
    return git.ask("diff", *words, "--", *paths).code != 0


def _made(git: Git) -> dict[str, Any]:
    sha = git.line("rev-parse", "HEAD")
    branch = git.line("symbolic-ref", "--quiet", "--short", "HEAD")
    out = git.need("diff-tree", "--no-commit-id", "--name-only", "--root", "-r", "-z", "HEAD")
    files = [name for name in decoded(out).split("\0") if name]
    say(f"{branch or 'no branch'}: {sha}, {plural(len(files), 'file')}")
    return {"sha": sha, "branch": branch, "files": listed(files)}
