"""The part of git that only reads: history, differences, names and objects.

git: what reads, what writes locally, and what fetches; everything that sends, forces or starts a program stays out.

The pager is no concern: nothing that a plan runs has a terminal. `-c`, `--exec-path`, `--ext-diff`, `--textconv`, `-O`
and everything that opens an editor are missing on purpose.
"""

from __future__ import annotations

from planrun.risk import paths
from planrun.risk.levels import high
from planrun.risk.table import Rule
from planrun.risk.words import names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.risk.levels import Finding
    from planrun.risk.table import Rules, Use


def signature(use: Use) -> Finding | None:
    """Refuse formats that have git start gpg to look at a signature."""
    for name, value in use.options:
        if value is not None and ("%G" in value or "signature" in value):
            return high(f"{name}={value}: starts a program that checks signatures")
    return None


_DIFF = (
    "-p -u -s -w -b -a -z -R -W -c -m --patch --no-patch -U=number --unified=number --raw --patch-with-stat --stat[=text]"
    " --numstat --shortstat --summary --dirstat[=text] --cumulative --name-only --name-status --color[=text] --no-color"
    " --word-diff[=text] --word-diff-regex=text --color-words[=text] --color-moved[=text] --minimal --patience --histogram"
    " --diff-algorithm=text --ignore-all-space --ignore-space-change --ignore-space-at-eol --ignore-blank-lines"
    " --ignore-cr-at-eol --diff-filter=text --check -M[=text] -C[=text] -B[=text] -D --find-renames[=text]"
    " --find-copies[=text] --no-renames -S=text -G=text --pickaxe-regex --pickaxe-all --relative[=arg] --no-relative --text"
    " --exit-code --quiet --full-index --binary --abbrev[=number] --no-abbrev --compact-summary --no-ext-diff --no-textconv"
    " --function-context --submodule[=text] --cc --ignore-submodules[=text] --no-prefix --src-prefix=text"
    " --dst-prefix=text --default-prefix --inter-hunk-context=number --stat-width=number --stat-name-width=number"
    " --stat-count=number -I=text --ignore-matching-lines=text --no-indent-heuristic --combined-all-paths"
)
_LOG = (
    "-n=number -# -i -E -F -P -g --oneline --graph --no-graph --decorate[=text] --no-decorate --decorate-refs=text --all"
    " --branches[=text] --tags[=text] --remotes[=text] --since=text --after=text --until=text --before=text --author=text"
    " --committer=text --grep=text --invert-grep --all-match --regexp-ignore-case --extended-regexp --fixed-strings --merges"
    " --no-merges --first-parent --reverse --follow --format=text --pretty[=text] --date=text --date-order --topo-order"
    " --author-date-order --abbrev-commit --no-abbrev-commit --max-count=number --skip=number --min-parents=number"
    " --max-parents=number --left-right --left-only --right-only --cherry-pick --cherry --cherry-mark --boundary"
    " --ancestry-path --simplify-by-decoration --simplify-merges --full-history --dense --sparse --walk-reflogs --source"
    " --no-walk --do-walk --notes[=text] --no-notes --parents --children --relative-date --full-diff -L=arg"
    " --encoding=text --exclude=text --glob=text --log-size --show-pulls --use-mailmap --mailmap --no-mailmap --not"
    " --no-show-signature --merge --clear-decorations --expand-tabs --no-expand-tabs --use-bitmap-index"
)
_SHOW = Rule("read-only", "arg*", f"{_LOG} {_DIFF}", check=signature)
_LOGS = Rule("read-only", "arg*", f"{_LOG} {_DIFF}", check=signature, reads="patches")

HISTORY: dict[str, Rules] = {
    "log": _LOGS,
    "show": _SHOW,
    "whatchanged": _LOGS,
    "diff": Rule("read-only", "arg*", f"{_DIFF} --cached --staged --merge-base --base --ours --theirs -0 -1 -2 -3", check=signature),
    "diff-tree": Rule("read-only", "arg*", f"{_DIFF} -r -t --root --no-commit-id --always --pretty[=text] --format=text", check=signature),
    "diff-index": Rule("read-only", "arg*", f"{_DIFF} --cached --merge-base", check=signature),
    "diff-files": Rule("read-only", "arg*", f"{_DIFF} -q", check=signature),
    "range-diff": Rule("read-only", "arg+", "--no-color --color[=text] --stat -s --no-patch --creation-factor=number --left-only --right-only"),
    "status": Rule("read-only", "arg*", "-s -b -v -z -u[=text] --short --branch --show-stash --porcelain[=text] --long --verbose --untracked-files[=text] --ignore-submodules[=text] --ignored[=text] --column[=text] --no-column --ahead-behind --no-ahead-behind --renames --no-renames --find-renames[=text]"),
    "shortlog": Rule("read-only", "arg*", "-s -n -e -c --summary --numbered --email --committer --group=text --format=text --no-merges --since=text --until=text --after=text --before=text --all --merges --author=text --date=text -w[=text]", check=signature),
    "blame": Rule("read-only", "arg+", "-b -c -e -f -l -n -p -s -t -w -L=arg -M[=text] -C[=text] --root --porcelain --line-porcelain --incremental --show-name --show-number --show-email --show-stats --date=text --since=text --abbrev=number --no-progress --ignore-rev=text --color-lines --color-by-age --first-parent --reverse=text"),
    "annotate": Rule("read-only", "arg+", "-e -l -t -L=arg --date=text"),
    "describe": Rule("read-only", "arg*", "--tags --always --all --long --dirty[=text] --broken[=text] --abbrev=number --match=text --exclude=text --contains --exact-match --first-parent --candidates=number --debug"),
    "rev-parse": Rule(
        "read-only",
        "arg*",
        "-q --verify --quiet --short[=number] --abbrev-ref[=text] --symbolic --symbolic-full-name --show-toplevel --show-cdup"
        " --show-prefix --git-dir --absolute-git-dir --git-common-dir --is-inside-work-tree --is-inside-git-dir"
        " --is-bare-repository --is-shallow-repository --all --branches[=text] --tags[=text] --remotes[=text] --glob=text"
        " --revs-only --no-revs --flags --no-flags --not --sq --show-object-format[=text] --show-superproject-working-tree"
        " --path-format={absolute,relative} --git-path=text --local-env-vars --since=text --until=text --default=text"
        " --show-ref-format --disambiguate=text",
    ),
    "rev-list": Rule("read-only", "arg+", f"{_LOG} --count --objects --objects-edge --header --timestamp --disk-usage[=text] --bisect --quiet --unpacked", check=signature),
    "ls-files": Rule("read-only", "arg*", "-c -d -o -i -s -u -k -m -z -t -v -f -x=text --cached --deleted --others --ignored --stage --unmerged --killed --modified --exclude-standard --exclude=text --full-name --error-unmatch --directory --no-empty-directory --eol --deduplicate --recurse-submodules --abbrev[=number] --format=text --debug --resolve-undo --sparse"),
    "ls-tree": Rule("read-only", "arg+", "-d -r -t -l -z --long --name-only --name-status --object-only --full-name --full-tree --abbrev[=number] --format=text"),
    "cat-file": Rule("read-only", "arg+", "-e -p -t -s"),
    "merge-base": Rule("read-only", "arg+", "-a --all --octopus --is-ancestor --independent --fork-point"),
    "name-rev": Rule("read-only", "arg*", "--tags --refs=text --exclude=text --all --name-only --no-undefined --always"),
    "for-each-ref": Rule("read-only", "arg*", "--count=number --format=text --sort=text --points-at=arg --merged[=arg] --no-merged[=arg] --contains[=arg] --no-contains[=arg] --ignore-case --omit-empty --exclude=text", check=signature),
    "show-ref": Rule("read-only", "arg*", "-d -q -s --head --heads --branches --tags --verify --quiet --hash[=number] --abbrev[=number] --dereference --exists"),
    "symbolic-ref": Rule("read-only", "arg", "-q --quiet --short --no-recurse"),
    "show-branch": Rule("read-only", "arg*", "-a -r --all --remotes --current --list --merge-base --independent --no-name --sha1-name --topics --topo-order --date-order --more=number --no-color"),
    "cherry": Rule("read-only", "arg*", "-v --verbose --abbrev[=number]"),
    "reflog": Rule("high", "", "", sub={"": Rule("read-only"), "show": Rule("read-only", "arg*", "-n=number -# --oneline --date=text --all --format=text --no-abbrev", check=signature), "exists": Rule("read-only", "arg"), "list": Rule("read-only")}),
    "grep": (
        Rule("read-only", "arg*", "-e=text " + (_GREP := (
            "-a -i -I -w -v -h -H -E -G -F -P -n -l -L -z -o -c -p -q -W -A=number -B=number -C=number -# -m=number"
            " --text --ignore-case --word-regexp --invert-match --extended-regexp --basic-regexp --fixed-strings --perl-regexp"
            " --line-number --column --files-with-matches --name-only --files-without-match --only-matching --count"
            " --color[=text] --no-color --break --heading --show-function --function-context --context=number"
            " --after-context=number --before-context=number --max-depth=number --max-count=number --cached --untracked"
            " --no-exclude-standard --exclude-standard --recurse-submodules --full-name --quiet --all-match --and --or --not"
            " --no-textconv --threads=number"
        )), needs="-e", reads="tracked"),
        Rule("read-only", "text arg*", _GREP, reads="tracked"),
    ),
    "check-ignore": Rule("read-only", "arg+", "-q -v -n --quiet --verbose --non-matching --no-index"),
    "check-attr": Rule("read-only", "arg+", "-a --all --cached"),
    "check-ref-format": Rule("read-only", "arg+", "--branch --normalize --allow-onelevel"),
    "count-objects": Rule("read-only", "", "-v -H --verbose --human-readable"),
    "fsck": Rule("read-only", "arg*", "--full --no-full --strict --unreachable --no-dangling --dangling --root --tags --cache --no-reflogs --connectivity-only --no-progress --progress --verbose"),
    "hash-object": Rule("read-only", "read+", "-t=text --no-filters"),
    "merge-tree": Rule("read-only", "arg+", "--write-tree:low --name-only --messages --no-messages -z --quiet"),
    "diff-pairs": Rule("read-only", "", "-z"),
    "version": Rule("read-only", "", "--build-options"),
}  # fmt: skip
"""Subcommand of git -> its rule."""


_HARMLESS_KEYS = names_in("user.name user.email core.bare core.autocrlf core.filemode core.ignorecase init.defaultbranch pull.rebase pull.ff push.default commit.gpgsign tag.gpgsign merge.ff")  # fmt: skip
_BRANCHES = names_in("main master develop dev trunk staging release next")
_HEX = frozenset("0123456789abcdef")
_LISTS_BRANCHES = "--merged --no-merged --contains --no-contains --list -l --points-at"
_LISTS_TAGS = "-l --list -n --contains --no-contains --merged --no-merged --points-at --sort --format"


def _message(use: Use) -> Finding | None:
    """Look for what spares an editor, which a commit or an annotated tag opens otherwise."""
    given = {name for name, _ in use.options}
    if not given & {
        "-m",
        "--message",
        "-F",
        "--file",
        "--no-edit",
        "-C",
        "--reuse-message",
        "--fixup",
        "--dry-run",
    }:
        return high("opens an editor for the message")
    return None


def _tag(use: Use) -> Finding | None:
    given = {name for name, _ in use.options}
    return _message(use) if given & {"-a", "--annotate"} else None


def _no_editor(use: Use) -> Finding | None:
    given = {name for name, _ in use.options}
    spared = {"--no-edit", "-n", "--no-commit", "--abort", "--quit"}
    return None if given & spared else high("opens an editor for the message")


def _checkout(use: Use) -> Finding | None:
    """A name that may be a file's would have its changes thrown away."""
    name = use.operands[0]
    version = name[:1] == "v" and name[1:2].isdigit() and not set(name[1:]) - set("0123456789.")
    commit = len(name) >= 7 and _HEX.issuperset(name)
    revision = name.startswith(("HEAD", "origin/", "refs/"))
    if name in _BRANCHES or version or commit or revision:
        return None
    return high(f"{name}: may be a file, whose changes would be thrown away", "destroys")


def _plain_paths(use: Use) -> Finding | None:
    for operand in use.operands:
        if operand.startswith(":") or set(operand) & set("*?[\\"):
            return high(f"{operand}: a pattern names what is deleted", "destroys")
    return None


def _unforced(use: Use) -> Finding | None:
    """Refuse what moves branches here, whatever is on them."""
    forced = [operand for operand in use.operands if operand.startswith("+")]
    return high(f"{forced[0]}: throws away what a branch had", "destroys") if forced else None


def _config(use: Use) -> Finding | None:
    key = use.operands[0].lower()
    return None if key in _HARMLESS_KEYS else high(f"{key}: may hold secrets", "secrets")


def _clone(use: Use) -> None:
    """Take note of the folder that a clone makes, also when only the address names it."""
    name = use.operands[0].rstrip("/").rpartition("/")[2].removesuffix(".git")
    place = use.operands[1] if len(use.operands) > 1 else name
    use.trace.writes.append(paths.locate(place, use.cwd, use.ground)[1])


def _patch(use: Use) -> None:
    use.trace.patches = not use.operands or "-" in use.operands


_NET = "network writes"
_LOCAL: dict[str, Any] = {"effects": "writes", "reason": "moves the state of the repository"}

LOCAL: dict[str, Rules] = {
    "add": Rule("low", "arg*", "-A -u -N -f -n -v --all --no-all --update --intent-to-add --dry-run --verbose --force --renormalize --chmod={+x,-x} --ignore-errors --ignore-removal --sparse"),
    "commit": Rule(
        "low",
        "arg*",
        "-m=text -a -q -v -n -s -o -i -F=read -C=name --message=text --all --quiet --verbose --no-verify --signoff --only"
        " --include --file=read --allow-empty --allow-empty-message --no-edit --author=text --date=text --amend:medium:writes"
        " --reset-author --fixup=name --reuse-message=name --dry-run --short --porcelain --cleanup=text --trailer=text"
        " --no-gpg-sign --no-status --no-post-rewrite --no-signoff",
        check=_message,
    ),
    "tag": (
        Rule(
            "read-only",
            "text*",
            "-l --list -n[=number] --contains[=arg] --no-contains[=arg] --merged[=arg] --no-merged[=arg] --points-at[=arg]"
            " --sort=text --format=text -i --ignore-case --column[=text] --no-column --color[=text]",
            needs=_LISTS_TAGS,
            check=signature,
        ),
        Rule("read-only"),
        Rule("medium", "name+", "-d --delete", needs="-d --delete", **_LOCAL),
        Rule("low", "name arg?", "-a -m=text -F=read --annotate --message=text --file=read --no-sign --create-reflog --cleanup=text", check=_tag),
    ),
    "branch": (
        Rule(
            "read-only",
            "text*",
            "-a -r -v -q -i --all --remotes --verbose --list -l --merged[=arg] --no-merged[=arg] --contains[=arg]"
            " --no-contains[=arg] --points-at[=arg] --sort=text --format=text --color[=text] --no-color --column[=text]"
            " --no-column --abbrev[=number] --no-abbrev --ignore-case",
            needs=_LISTS_BRANCHES,
            check=signature,
        ),
        Rule("read-only", "", "-a -r -v -vv -q -i --all --remotes --verbose --show-current --sort=text --format=text --color[=text] --no-color --column[=text] --no-column --abbrev[=number] --no-abbrev --ignore-case", check=signature),
        Rule("medium", "name+", "-d --delete -r -q --quiet", needs="-d --delete", **_LOCAL),
        Rule("medium", "name name?", "-m --move -q", needs="-m --move", **_LOCAL),
        Rule("low", "name arg?", "-q --quiet --no-track --create-reflog"),
    ),
    "switch": (Rule("low", "arg?", "-c=name --create=name -q --quiet --no-track --no-guess", needs="-c --create"), Rule("medium", "arg", "-q --quiet -d --detach --no-guess --progress --no-progress", **_LOCAL)),
    "checkout": (Rule("low", "arg?", "-b=name -q --quiet --no-track", needs="-b"), Rule("medium", "arg", "-q --quiet --detach --progress --no-progress", needs="--detach", **_LOCAL), Rule("medium", "name", "-q --quiet --progress --no-progress", check=_checkout, **_LOCAL)),
    "restore": Rule("low", "arg+", "--staged -S -q --quiet -s=name --source=name", needs="--staged -S"),
    "rm": (Rule("low", "arg+", "--cached -r -f -q -n --force --quiet --dry-run --ignore-unmatch", needs="--cached"), Rule("medium", "delete+", "-r -f -q -n --force --quiet --dry-run --ignore-unmatch", check=_plain_paths, effects="destroys", reason="deletes files")),
    "mv": Rule("low", "make+ write", "-f -k -n -v --force --dry-run --verbose", writes="into"),
    "stash": Rule(
        "high",
        "",
        "-q -u -k -a --quiet --include-untracked --keep-index --all --staged -S --no-keep-index",
        sub={
            "": Rule("low"),
            "list": Rule("read-only", "", "-n=number -# --oneline --format=text --date=text --stat -p", check=signature),
            "show": Rule("read-only", "arg?", "-p -u --patch --stat --name-only --name-status --include-untracked"),
            "push": Rule("low", "arg*", "-m=text --message=text -u -k -q -a -S --include-untracked --keep-index --no-keep-index --quiet --all --staged"),
            "save": Rule("low", "text*", "-u -k -q -a --include-untracked --keep-index --quiet --all"),
            "pop": Rule("medium", "arg?", "-q --quiet --index", **_LOCAL),
            "apply": Rule("medium", "arg?", "-q --quiet --index", **_LOCAL),
            "branch": Rule("medium", "name arg?", **_LOCAL),
        },
    ),
    "reset": Rule("medium", "arg*", "-q --quiet --soft --mixed -N --intent-to-add --no-refresh", **_LOCAL),
    "merge": Rule(
        "medium",
        "name*",
        "--no-ff --ff-only --ff --squash --no-squash --no-commit --commit --no-edit --abort --quit -m=text --message=text -q"
        " --quiet -v --verbose --stat -n --no-stat --log[=number] --no-log -X=text --strategy-option=text"
        " -s={ours,recursive,ort,resolve,subtree,octopus} --strategy={ours,recursive,ort,resolve,subtree,octopus}"
        " --no-verify --autostash --no-autostash --allow-unrelated-histories --no-gpg-sign --signoff --no-progress",
        **_LOCAL,
    ),
    "rebase": Rule(
        "medium",
        "arg*",
        "--onto=name --abort --quit -q --quiet -v --verbose --stat -n --no-stat --autostash --no-autostash --keep-base"
        " --no-autosquash -r[=text] --rebase-merges[=text] --no-rebase-merges --root --no-ff --force-rebase -f --committer-date-is-author-date"
        " --ignore-date --reset-author-date --ignore-whitespace --no-verify --update-refs --fork-point --no-fork-point"
        " -X=text --strategy-option=text --no-gpg-sign --signoff --empty={drop,keep} --reapply-cherry-picks",
        **_LOCAL,
    ),
    "cherry-pick": Rule("medium", "arg*", "-x -n -s --no-commit --abort --quit -m=number --mainline=number --signoff --ff --allow-empty --allow-empty-message --keep-redundant-commits -X=text --strategy-option=text --no-gpg-sign", **_LOCAL),
    "revert": Rule("medium", "arg*", "--no-edit -n --no-commit --abort --quit -m=number --mainline=number -s --signoff -X=text --no-gpg-sign", check=_no_editor, **_LOCAL),
    "apply": (
        Rule("read-only", "read*", "--check --stat --numstat --summary -p=number -R --reverse -v", needs="--stat --numstat"),
        Rule(
            "medium",
            "read*",
            "-p=number -R -3 -v -q -N --check --index --cached --3way --reverse --whitespace=text --reject --verbose --quiet"
            " --directory=write --include=text --exclude=text --recount --ignore-whitespace --allow-empty"
            " --intent-to-add --apply --stat --numstat --summary -C=number",
            effects="writes",
            check=_patch,
            reason="changes the files that a patch names",
        ),
    ),
    "am": Rule("medium", "read*", "--abort --quit -3 --3way -q --quiet -k --keep-cr -s --signoff --no-verify", check=_patch, **_LOCAL),
    "archive": (Rule("low", "name arg*", "-o=write --output=write --format={tar,zip,tgz,tar.gz} --prefix=text -v -# --verbose --add-file=inside --mtime=text", needs="-o --output"), Rule("read-only", "name arg*", "--format={tar,zip,tgz,tar.gz} --prefix=text -v -# --verbose", reads="tracked"), Rule("read-only", "", "-l --list", needs="-l --list")),
    "format-patch": (Rule("read-only", "arg*", "--stdout -# -n -N -k --no-stat --cover-letter", needs="--stdout"), Rule("low", "arg*", "-o=write --output-directory=write -# -n -N -k -q --quiet --no-stat --start-number=number --subject-prefix=text --zero-commit --no-signature -v=number")),
    "bundle": Rule("high", sub={"create": Rule("low", "write arg*", "-q --quiet --all --branches --tags --progress"), "verify": Rule("read-only", "read", "-q --quiet"), "list-heads": Rule("read-only", "read arg*")}),
    "worktree": Rule("high", sub={"list": Rule("read-only", "", "-v --verbose --porcelain -z"), "add": Rule("low", "make arg?", "-b=name -d --detach -q --quiet --no-checkout --checkout --no-track"), "remove": Rule("medium", "delete", "", effects="destroys", reason="deletes files"), "prune": Rule("medium", "", "-n -v --dry-run --verbose", **_LOCAL)}),
    "bisect": Rule("high", sub={"log": Rule("read-only"), "start": Rule("medium", "arg*", "--first-parent --no-checkout", **_LOCAL), "good": Rule("medium", "arg*", **_LOCAL), "bad": Rule("medium", "arg*", **_LOCAL), "old": Rule("medium", "arg*", **_LOCAL), "new": Rule("medium", "arg*", **_LOCAL), "skip": Rule("medium", "arg*", **_LOCAL), "reset": Rule("medium", "arg?", **_LOCAL)}),
    "clean": Rule("read-only", "arg*", "-n --dry-run -d -x -X -q --quiet -e=text --exclude=text", needs="-n --dry-run"),
    "config": (Rule("read-only", "text", "--get --type=text --default=text --local --global -z", needs="--get", check=_config), Rule("read-only", "text", check=_config)),
    "notes": Rule("high", sub={"": Rule("read-only"), "list": Rule("read-only", "arg?"), "show": Rule("read-only", "arg?")}),
    "submodule": Rule("high", "", "-q --quiet", sub={
        "": Rule("read-only"),
        "status": Rule("read-only", "arg*", "--cached --recursive"),
        "summary": Rule("read-only", "arg*", "--cached --files -n=number"),
        "init": Rule("medium", "arg*", **_LOCAL),
        "update": Rule("medium", "arg*", "--init --recursive --depth=number --recommend-shallow --no-fetch -N --checkout --single-branch -j=number --jobs=number --progress", effects=_NET, reason="fetches submodules"),
    }),
}  # fmt: skip

REMOTE: dict[str, Rules] = {
    "fetch": Rule(
        "medium",
        "remote? name*",
        "-a -t -n -p -q -v -k -4 -6 --all --tags --no-tags --prune --prune-tags --depth=number --deepen=number --unshallow"
        " --shallow-since=text --quiet --verbose --dry-run --multiple --append --atomic --progress --no-progress"
        " -j=number --jobs=number --no-recurse-submodules --refetch --filter=text --ipv4 --ipv6 --update-shallow",
        effects=_NET,
        check=_unforced,
        reason="fetches from a remote",
    ),
    "pull": Rule(
        "medium",
        "remote? name*",
        "-q -v -t -p -n -r[={true,false,merges}] --ff-only --ff --no-ff --rebase[={true,false,merges}] --no-rebase --tags"
        " --no-tags --prune --quiet --verbose --autostash --no-autostash --depth=number --no-edit --stat --no-stat --squash"
        " --no-squash --commit --no-commit --all --progress --no-progress --no-recurse-submodules -4 -6 --unshallow"
        " --allow-unrelated-histories --no-verify --no-gpg-sign -X=text",
        effects=_NET,
        check=_unforced,
        reason="fetches from a remote",
    ),
    "clone": Rule("medium", "url make?", "-q -v -n -b=name -o=name -s -l --depth=number --branch=name --single-branch --no-single-branch --no-tags --quiet --verbose --no-checkout --bare --mirror --filter=text --sparse --progress --shallow-since=text --origin=name -j=number --jobs=number --shallow-submodules --no-remote-submodules -4 -6", effects=_NET, check=_clone, reason="fetches a repository"),
    "ls-remote": Rule("medium", "remote? text*", "-h -t -q --heads --branches --tags --refs --quiet --exit-code --get-url --sort=text --symref", effects="network", reason="asks a remote"),
    "remote": Rule("high", "", "-v --verbose", sub={"": Rule("read-only", reads="addresses"), "show": (Rule("read-only", reads="addresses"), Rule("read-only", "name", "-n", needs="-n", reads="addresses"), Rule("medium", "remote", effects="network")), "get-url": Rule("read-only", "name", "--push --all", reads="addresses"), "prune": Rule("medium", "remote+", "-n --dry-run", effects="network writes"), "update": Rule("medium", "name*", "-p --prune", effects="network writes")}),
}  # fmt: skip

PROGRAMS: dict[str, Rules] = {
    "git": Rule("high", "", "-C=folder -P --no-pager --no-optional-locks --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs --no-replace-objects --no-lazy-fetch --no-advice", sub={**HISTORY, **LOCAL, **REMOTE}),
}  # fmt: skip
