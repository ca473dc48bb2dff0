"""The part of git that only reads: history, differences, names and objects."""

from __future__ import annotations

from planrun.risk.levels import high
from planrun.risk.table import Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
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
    " --no-walk --do-walk --notes[=text] --no-notes --parents --children --relative-date --full-diff -L=text"
    " --encoding=text --exclude=text --glob=text --log-size --show-pulls --use-mailmap --mailmap --no-mailmap --not"
    " --no-show-signature --merge --clear-decorations --expand-tabs --no-expand-tabs --use-bitmap-index"
)
_LOGS = Rule("read-only", "arg*", f"{_LOG} {_DIFF}", check=signature)

HISTORY: dict[str, Rules] = {
    "log": _LOGS,
    "show": _LOGS,
    "whatchanged": _LOGS,
    "diff": Rule(
        "read-only", "arg*", f"{_DIFF} --cached --staged --merge-base --base --ours --theirs -0 -1 -2 -3", check=signature
    ),
    "diff-tree": Rule("read-only", "arg*", f"{_DIFF} -r -t --root --no-commit-id --always --pretty[=text] --format=text", check=signature),
    "diff-index": Rule("read-only", "arg*", f"{_DIFF} --cached --merge-base", check=signature),
    "diff-files": Rule("read-only", "arg*", f"{_DIFF} -q", check=signature),
    "range-diff": Rule("read-only", "arg+", "--no-color --color[=text] --stat -s --no-patch --creation-factor=number --left-only --right-only"),
    "status": Rule(
        "read-only",
        "arg*",
        "-s -b -v -z -u[=text] --short --branch --show-stash --porcelain[=text] --long --verbose --untracked-files[=text]"
        " --ignore-submodules[=text] --ignored[=text] --column[=text] --no-column --ahead-behind --no-ahead-behind"
        " --renames --no-renames --find-renames[=text]",
    ),
    "shortlog": Rule(
        "read-only",
        "arg*",
        "-s -n -e -c --summary --numbered --email --committer --group=text --format=text --no-merges --since=text"
        " --until=text --after=text --before=text --all --merges --author=text --date=text -w[=text]",
        check=signature,
    ),
    "blame": Rule(
        "read-only",
        "arg+",
        "-b -c -e -f -l -n -p -s -t -w -L=text -M[=text] -C[=text] --root --porcelain --line-porcelain --incremental"
        " --show-name --show-number --show-email --show-stats --date=text --since=text --abbrev=number --no-progress"
        " --ignore-rev=text --color-lines --color-by-age --first-parent --reverse=text",
    ),
    "annotate": Rule("read-only", "arg+", "-e -l -t -L=text --date=text"),
    "describe": Rule(
        "read-only",
        "arg*",
        "--tags --always --all --long --dirty[=text] --broken[=text] --abbrev=number --match=text --exclude=text --contains"
        " --exact-match --first-parent --candidates=number --debug",
    ),
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
    "rev-list": Rule(
        "read-only", "arg+", f"{_LOG} --count --objects --objects-edge --header --timestamp --disk-usage[=text] --bisect --quiet --unpacked", check=signature
    ),
    "ls-files": Rule(
        "read-only",
        "arg*",
        "-c -d -o -i -s -u -k -m -z -t -v -f -x=text --cached --deleted --others --ignored --stage --unmerged --killed"
        " --modified --exclude-standard --exclude=text --full-name --error-unmatch --directory --no-empty-directory --eol"
        " --deduplicate --recurse-submodules --abbrev[=number] --format=text --debug --resolve-undo --sparse",
    ),
    "ls-tree": Rule("read-only", "arg+", "-d -r -t -l -z --long --name-only --name-status --object-only --full-name --full-tree --abbrev[=number] --format=text"),
    "cat-file": Rule("read-only", "arg+", "-e -p -t -s"),
    "merge-base": Rule("read-only", "arg+", "-a --all --octopus --is-ancestor --independent --fork-point"),
    "name-rev": Rule("read-only", "arg*", "--tags --refs=text --exclude=text --all --name-only --no-undefined --always"),
    "for-each-ref": Rule("read-only", "arg*", "--count=number --format=text --sort=text --points-at=arg --merged[=arg] --no-merged[=arg] --contains[=arg] --no-contains[=arg] --ignore-case --omit-empty --exclude=text", check=signature),
    "show-ref": Rule("read-only", "arg*", "-d -q -s --head --heads --branches --tags --verify --quiet --hash[=number] --abbrev[=number] --dereference --exists"),
    "symbolic-ref": Rule("read-only", "arg", "-q --quiet --short --no-recurse"),
    "show-branch": Rule("read-only", "arg*", "-a -r --all --remotes --current --list --merge-base --independent --no-name --sha1-name --topics --topo-order --date-order --more=number --no-color"),
    "cherry": Rule("read-only", "arg*", "-v --verbose --abbrev[=number]"),
    "reflog": Rule("high", "", "", sub={
        "": Rule("read-only"),
        "show": Rule("read-only", "arg*", "-n=number -# --oneline --date=text --all --format=text --no-abbrev", check=signature),
        "exists": Rule("read-only", "arg"),
        "list": Rule("read-only"),
    }),
    "grep": (
        Rule("read-only", "arg*", "-e=text " + (_GREP := (
            "-a -i -I -w -v -h -H -E -G -F -P -n -l -L -z -o -c -p -q -W -A=number -B=number -C=number -# -m=number"
            " --text --ignore-case --word-regexp --invert-match --extended-regexp --basic-regexp --fixed-strings --perl-regexp"
            " --line-number --column --files-with-matches --name-only --files-without-match --only-matching --count"
            " --color[=text] --no-color --break --heading --show-function --function-context --context=number"
            " --after-context=number --before-context=number --max-depth=number --max-count=number --cached --untracked"
            " --no-exclude-standard --exclude-standard --recurse-submodules --full-name --quiet --all-match --and --or --not"
            " --no-textconv --threads=number"
        )), needs="-e"),
        Rule("read-only", "text arg*", _GREP),
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
