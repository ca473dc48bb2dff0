"""Files, archives and working trees of git."""

from __future__ import annotations

import re

from planrun.convert.reader import UntranslatableError, truth_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.convert.dagu.calls import Call

_TAR = {
    "tar": "", "tar.gz": "--gzip", "tgz": "--gzip", "tar.bz2": "--bzip2", "tbz2": "--bzip2", "tbz": "--bzip2",
    "tar.xz": "--xz", "txz": "--xz", "tar.zst": "--zstd", "tar.zstd": "--zstd",
}  # fmt: skip
_ARCHIVE = frozenset((
    "source", "destination", "format", "compressionlevel", "overwrite", "stripcomponents", "include", "exclude",
    "followsymlinks", "verifyintegrity",
))  # fmt: skip


def _archive(call: Call) -> str:
    """Return tar or unzip for an archive; paths in one are relative to its source."""
    settings, op = call.settings, call.op or call.command.strip()
    settings.refuse_unknown(_ARCHIVE)
    source = call.required("source")
    target = settings.text("destination")
    form = settings.text("format") or _form(target if op == "create" else source)
    call.reader.found.differs(
        call.code, "tar says less of what it did than Dagu, which prints JSON", call.node
    )
    patterns = call.reader.texts(settings.get("include"), "`include`")
    left = [
        f"--exclude={call.word(each)}" for each in call.reader.texts(settings.get("exclude"), "`exclude`")
    ]
    if form not in _TAR or op not in ("create", "extract", "list"):
        return _zip(call, op, form, is_chosen=bool(patterns or left))
    words = [word for word in (_TAR[form], *left) if word]
    if op == "create":
        if patterns or settings.has("compressionlevel"):
            raise call.refuse("an archive of chosen files, or of a level")
        words += ["--dereference"] if truth_of(settings.get("followsymlinks")) else []
        line = " ".join(["tar --create", *words, f"--file={call.word(call.required('destination'))}"])
        folder = call.word(source)
        single = f'{line} --directory="$(dirname {folder})" "$(basename {folder})"'
        return f"if [ -d {folder} ]; then {line} --directory={folder} .\nelse {single}; fi"
    if op == "list":
        return " ".join(["tar --list", *words, f"--file={call.word(source)}"])
    if not truth_of(settings.get("overwrite")):
        words.append("--keep-old-files")
    if settings.has("stripcomponents"):
        words.append(f"--strip-components={call.word(settings.text('stripcomponents'))}")
    folder = call.word(target or ".")
    chosen = ["--wildcards", *(call.word(each.replace("**/", "*")) for each in patterns)] if patterns else []
    return f"mkdir -p {folder}\n" + " ".join(
        ["tar --extract", *words, f"--file={call.word(source)}", f"--directory={folder}", *chosen]
    )


def _zip(call: Call, op: str, form: str, *, is_chosen: bool) -> str:
    if form != "zip" or is_chosen or call.settings.has("stripcomponents"):
        raise call.refuse(f"the format {form or 'of an unknown name'}, or a choice of files in it")
    source = call.word(call.required("source"))
    if op == "list":
        return f"unzip -Z1 {source}"
    if op == "extract":
        option = "-o" if truth_of(call.settings.get("overwrite")) else "-n"
        return f"unzip -q {option} {source} -d {call.word(call.settings.text('destination') or '.')}"
    target = call.word(call.required("destination"))
    return f'target="$(realpath -m {target})"\ncd {source}\nzip -qr "$target" .'


def _form(path: str) -> str:
    match = re.search(r"\.(tar\.\w+|tgz|tbz2?|txz|tar|zip|7z|rar)$", path)
    return match[1] if match else ""


_FILE = frozenset((
    "path", "source", "destination", "content", "mode", "overwrite", "createdirs", "recursive", "missingok", "atomic",
))  # fmt: skip


def _file(call: Call) -> str:
    settings = call.settings
    settings.refuse_unknown(_FILE)
    makes_folders = truth_of(settings.get("createdirs")) is True
    if call.op == "mkdir":
        return f"mkdir -p {call.word(call.required('path'))}"
    if call.op == "read":
        return f"cat {call.word(call.required('path'))}"
    if call.op == "delete":
        option = "-rf" if truth_of(settings.get("recursive")) else "-f"
        path = call.word(call.required("path"))
        test = "" if truth_of(settings.get("missingok")) else f"[ -e {path} ]\n"
        return f"{test}rm {option} {path}"
    if call.op not in ("write", "copy", "move"):
        raise UntranslatableError(f"action:file.{call.op}", f"the action file.{call.op}")
    target = call.word(call.required("path" if call.op == "write" else "destination"))
    lines = []
    if not truth_of(settings.get("overwrite")):
        lines.append(f"[ ! -e {target} ] || {{ echo {target} is there already >&2; exit 1; }}")
    if makes_folders:
        lines.append(f'mkdir -p "$(dirname {target})"')
    if call.op == "write":
        lines.append(f"printf %s {call.word(settings.text('content'))} > {target}")
        if settings.has("mode"):
            lines.append(f"chmod {call.word(settings.text('mode'))} {target}")
    elif call.op == "copy":
        option = " -R" if truth_of(settings.get("recursive")) else ""
        lines.append(f"cp{option} {call.word(call.required('source'))} {target}")
    else:
        lines.append(f"mv {call.word(call.required('source'))} {target}")
    return "\n".join(lines)


def _git(call: Call) -> str:
    if call.op == "worktree.add":
        return _add(call)
    if call.op == "worktree.remove":
        return _remove(call)
    if call.op != "checkout":
        raise UntranslatableError(f"action:git.{call.op}", f"the action git.{call.op}")
    call.settings.refuse_unknown({"repository", "ref", "path", "depth"})
    path = call.word(call.settings.text("path") or ".")
    lines = [
        f"if [ -d {path}/.git ]; then git -C {path} fetch --quiet --tags origin",
        f"else git clone --quiet {call.word(call.required('repository'))} {path}; fi",
    ]
    if call.settings.has("ref"):
        ref = call.word(call.settings.text("ref"))
        lines += [
            f"ref={ref}",
            f'if git -C {path} rev-parse --quiet --verify "origin/$ref" > /dev/null; then ref="origin/$ref"; fi',
            f'git -C {path} checkout --quiet --detach "$ref"',
        ]
    return "\n".join(lines)


_PUBLISH = 'for name in {}; do eval "value=\\$$name"; printf \'%s=%s\\n\' "$name" "$value" >> "$PLANRUN_OUTPUT"; done'
ADDED = ("path", "branch", "commit", "worktree_created", "branch_created")
REMOVED = ("path", "branch", "worktree_removed", "branch_deleted")


def _add(call: Call) -> str:
    settings = call.settings
    settings.refuse_unknown({"branch", "path", "createbranch", "base"})
    branch = (
        call.word(settings.text("branch"))
        if settings.has("branch")
        else '"planrun-$PLANRUN_RUN-$PLANRUN_STEP"'
    )
    path = call.word(settings.text("path")) if settings.has("path") else '"$root.worktrees/$branch"'
    makes = not settings.has("branch") or truth_of(settings.get("createbranch"))
    base = f" {call.word(settings.text('base'))}" if settings.has("base") else ""
    missing = (
        f'git -C "$root" branch "$branch"{base}; branch_created=true'
        if makes
        else 'echo "the branch $branch is not there" >&2; exit 1'
    )
    return "\n".join([
        'root="$(git rev-parse --show-toplevel)"',
        f"branch={branch}",
        f'path="$(cd "$root" && realpath -m {path})"',
        "worktree_created=false branch_created=false",
        'if ! git -C "$root" rev-parse --quiet --verify "refs/heads/$branch" > /dev/null; then',
        missing,
        "fi",
        'if ! git -C "$root" worktree list --porcelain | grep -qxF "worktree $path"; then',
        'git -C "$root" worktree add --quiet "$path" "$branch"; worktree_created=true',
        "fi",
        'commit="$(git -C "$path" rev-parse HEAD)"',
        _PUBLISH.format(" ".join(ADDED)),
    ])  # fmt: skip


def _remove(call: Call) -> str:
    settings = call.settings
    settings.refuse_unknown({"branch", "path", "force", "deletebranch", "forcedeletebranch"})
    if not settings.has("path") and not settings.has("branch"):
        raise UntranslatableError("action:git.worktree.remove", "neither `path` nor `branch`")
    force = " --force" if truth_of(settings.get("force")) else ""
    option = "-D" if truth_of(settings.get("forcedeletebranch")) else "-d"
    branch = call.word(settings.text("branch"))
    find = (
        'git -C "$root" worktree list --porcelain | awk -v b="branch refs/heads/$branch" '
        "'/^worktree /{p=substr($0,10)} $0==b{print p}'"
    )
    path = f"realpath -m {call.word(settings.text('path'))}" if settings.has("path") else find
    lines = [
        'root="$(git rev-parse --show-toplevel)"',
        f"branch={branch}",
        f'path="$(cd "$root" && {path})"',
        'branch="${branch:-$(git -C "$path" rev-parse --abbrev-ref HEAD)}"',
        "branch_deleted=false",
        f'git -C "$root" worktree remove{force} "$path"',
        "worktree_removed=true",
    ]
    if truth_of(settings.get("deletebranch")):
        lines += [f'git -C "$root" branch --quiet {option} "$branch"', "branch_deleted=true"]
    return "\n".join([*lines, _PUBLISH.format(" ".join(REMOVED))])


FILES: dict[str, Callable[[Call], str]] = {"archive": _archive, "file": _file, "git": _git}
