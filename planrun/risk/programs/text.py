"""Programs that look for text, sort it and cut it."""

from __future__ import annotations

from planrun.risk.table import Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.risk.table import Rules, Use

_GREP = (
    "-# -a -b -c -E -F -G -P -h -H -i -l -L -n -o -q -r -R -s -T -U -v -w -x -y -z -Z -A=number -B=number -C=number"
    " -m=number -d=text -D=text --color[=text] --colour[=text] --count --extended-regexp --fixed-strings --ignore-case"
    " --include=filter --exclude=text --exclude-dir=text --invert-match --line-number --files-with-matches"
    " --files-without-match --max-count=number --no-filename --with-filename --only-matching --quiet --silent"
    " --recursive --dereference-recursive --no-messages --word-regexp --line-regexp --perl-regexp --null --null-data --text"
    " --context=number --after-context=number --before-context=number --binary-files=text --basic-regexp --byte-offset"
    " --initial-tab --no-ignore-case --line-buffered --label=text --binary"
)
_GREPS = (
    Rule("read-only", "read*", f"-e=text -f=read --regexp=text --file=read {_GREP}", needs="-e -f --regexp --file", glob=True, reads="below"),
    Rule("read-only", "text read*", _GREP, glob=True, reads="below"),
)  # fmt: skip
_RG = (
    "-# -a -b -c -F -h -H -i -I -l -L -n -N -o -P -p -q -s -S -u -U -v -w -x -0 -. -A=number -B=number -C=number -m=number -M=number"
    " -d=number -g=filter -t=text -T=text -r=text -E=text -j=number --color=text --count --count-matches --fixed-strings"
    " --ignore-case --smart-case --case-sensitive --invert-match --line-number --no-line-number --files-with-matches"
    " --files-without-match --max-count=number --no-filename --with-filename --only-matching --quiet --word-regexp"
    " --line-regexp --pcre2 --null --text --context=number --after-context=number --before-context=number --glob=filter"
    " --iglob=filter --type=text --type-not=text --hidden --no-hidden --no-ignore --no-ignore-vcs --no-ignore-parent --follow"
    " --max-depth=number --max-filesize=text --multiline --multiline-dotall --no-heading --heading --json --stats --trim"
    " --sort=text --sortr=text --replace=text --vimgrep --column --no-column --encoding=text --max-columns=number --passthru"
    " --threads=number --no-config --no-messages --no-mmap --unrestricted --byte-offset --crlf --pretty --null-data"
    " --ignore-file=read --engine=text --glob-case-insensitive --no-unicode --no-require-git --one-file-system"
)
_SUM = Rule("read-only", "read*", "-b -c -t -z -w --binary --check --tag --text --zero --ignore-missing --quiet --status --strict --warn -a=text --algorithm=text -l=number --length=number --untagged --base64 --raw --debug", glob=True)  # fmt: skip
_BASE = Rule("read-only", "read?", "-d -i -w=number --decode --ignore-garbage --wrap=number -D")
_DIFF = (
    "-# -a -b -B -c -C=number -d -e -E -i -n -N -p -q -r -s -t -T -u -U=number -w -W=number -x=text -y -Z -I=text -F=text"
    " --brief --report-identical-files --unified[=number] --context[=number] --side-by-side --width=number --recursive"
    " --new-file --ignore-case --ignore-all-space --ignore-space-change --ignore-blank-lines --ignore-matching-lines=text"
    " --strip-trailing-cr --text --exclude=text --color[=text] --label=text -L=text --minimal --suppress-common-lines"
    " --no-dereference --ignore-trailing-space --ignore-tab-expansion --speed-large-files --show-c-function --left-column"
    " --show-function-line=text --normal --ed --rcs --expand-tabs --initial-tab --unidirectional-new-file"
)
_FD = Rule(
    "read-only",
    "text? read*",
    "-H -I -u -s -i -g -F -a -l -L -p -0 -1 -q -e=text -E=text -t=text -d=number -S=text --hidden --no-ignore --unrestricted"
    " --case-sensitive --ignore-case --glob --fixed-strings --absolute-path --list-details --follow --full-path --print0"
    " --extension=text --exclude=text --type=text --max-depth=number --min-depth=number --exact-depth=number --size=text"
    " --changed-within=text --changed-before=text --color=text --max-results=number --prune --no-ignore-vcs --quiet",
)


def _patch(use: Use) -> None:
    """A patch comes from a file that is named, or from standard input."""
    named = [value for name, value in use.options if name in ("-i", "--input")] + use.operands[1:]
    use.trace.patches = not named or "-" in named


PROGRAMS: dict[str, Rules] = {
    "grep": _GREPS,
    "egrep": _GREPS,
    "fgrep": _GREPS,
    "zgrep": Rule("read-only", "text read+", "-a -c -E -F -h -H -i -l -L -n -o -q -s -v -w -x"),
    "rg": (Rule("read-only", "read*", f"-e=text -f=read --regexp=text --file=read --files {_RG}", needs="-e -f --regexp --file --files", reads="below"), Rule("read-only", "", "--type-list", needs="--type-list"), Rule("read-only", "text read*", _RG, reads="below")),
    "fd": _FD,
    "fdfind": _FD,
    "diff": Rule("read-only", "read read", _DIFF, glob=True, reads="below"),
    "colordiff": Rule("read-only", "read read", _DIFF),
    "diff3": Rule("read-only", "read read read", "-3 -A -E -T -X -a -e -i -m -x"),
    "sdiff": Rule("read-only", "read read", "-b -B -d -E -i -l -s -t -w=number -W -Z -a"),
    "diffstat": Rule("read-only", "read*", "-c -C -l -p=number -w=number -n=number -f=number"),
    "patch": (
        Rule(
            "read-only",
            "read? read?",
            f"--dry-run {(_PATCH := '-p=number -R -N -s -u -c -n -l -F=number -i=read --input=read --strip=number --reverse --forward --silent --quiet --unified --fuzz=number --verbose --ignore-whitespace -t -f --batch --force')}",
            needs="--dry-run",
        ),
        Rule(
            "medium",
            "write? read?",
            f"-b -E -V=text -z=name -r=write -o=write -d=inside --reject-file=write --output=write --backup --suffix=name --directory=inside"
            f" --remove-empty-files --no-backup-if-mismatch --merge[=text] --posix {_PATCH}",
            effects="writes",
            check=_patch,
            writes="backup",
            reason="changes the files that a patch names",
        ),
    ),
    "cmp": Rule("read-only", "read read? number*", "-b -l -s -n=number -i=text --print-bytes --verbose --quiet --silent --bytes=number", glob=True),
    "comm": Rule("read-only", "read read", "-1 -2 -3 -i -z --check-order --nocheck-order --output-delimiter=text --total --zero-terminated", glob=True),
    "paste": Rule("read-only", "read*", "-d=text -s -z --delimiters=text --serial --zero-terminated", glob=True),
    "join": Rule("read-only", "read read", "-a=number -e=text -i -j=number -o=text -t=text -v=number -1=number -2=number -z --header --check-order --nocheck-order --ignore-case", glob=True),
    "tr": Rule("read-only", "text text?", "-c -C -d -s -t --complement --delete --squeeze-repeats --truncate-set1"),
    "nl": Rule("read-only", "read*", "-b=text -d=text -f=text -h=text -i=number -l=number -n=text -p -s=text -v=number -w=number --body-numbering=text --number-width=number", glob=True),
    "tac": Rule("read-only", "read*", "-b -r -s=text --before --regex --separator=text", glob=True),
    "rev": Rule("read-only", "read*", glob=True),
    "fold": Rule("read-only", "read*", "-b -s -w=number --bytes --spaces --width=number", glob=True),
    "fmt": Rule("read-only", "read*", "-# -c -p=text -s -t -u -w=number -g=number --width=number --split-only", glob=True),
    "expand": Rule("read-only", "read*", "-i -t=text --initial --tabs=text", glob=True),
    "unexpand": Rule("read-only", "read*", "-a -t=text --all --first-only --tabs=text", glob=True),
    "pr": Rule("read-only", "read*", "-# -a -d -f -F -h=text -l=number -m -n[=text] -o=number -t -T -w=number -W=number", glob=True),
    "column": Rule("read-only", "read*", "-t -x -e -n -s=text -o=text -c=number -N=text -R=text -H=text -J -d --table --separator=text --output-separator=text --table-columns=text --json", glob=True),
    "shuf": (Rule("read-only", "text*", "-e -n=number -r -z -o=write --echo --head-count=number --repeat --zero-terminated -i=text --input-range=text", needs="-e --echo -i --input-range"), Rule("read-only", "read?", "-n=number -r -z -o=write --head-count=number --repeat --output=write")),
    "od": Rule("read-only", "read*", "-a -b -c -d -f -i -l -o -s -v -x -A=text -t=text -N=number -j=number -w[=number] -S=number --address-radix=text --format=text --read-bytes=number --skip-bytes=number --output-duplicates", glob=True),
    "xxd": Rule("read-only", "read? write?", "-a -b -C -c=number -d -e -E -g=number -i -l=number -n=text -o=number -p -ps -r -s=number -u"),
    "hexdump": Rule("read-only", "read*", "-b -c -C -d -o -x -v -n=number -s=number -e=text", glob=True),
    "strings": Rule("read-only", "read+", "-a -f -n=number -# -o -t=text -e=text -w -s=text --all --bytes=number --radix=text", glob=True),
    "base64": _BASE,
    "base32": _BASE,
    "basenc": Rule("read-only", "read?", "-d -i -w=number --base64 --base64url --base32 --base32hex --base16 --decode --wrap=number"),
    "cksum": _SUM,
    "sum": Rule("read-only", "read*", "-r -s --sysv", glob=True),
    "md5sum": _SUM,
    "shasum": _SUM,
    "sha1sum": _SUM,
    "sha224sum": _SUM,
    "sha256sum": _SUM,
    "sha384sum": _SUM,
    "sha512sum": _SUM,
    "b2sum": _SUM,
    "dos2unix": Rule("low", "write+", "-k -q -f -s -v --keepdate --quiet --force --safe --verbose"),
    "unix2dos": Rule("low", "write+", "-k -q -f -s -v --keepdate --quiet --force --safe --verbose"),
    "tsort": Rule("read-only", "read?"),
    "iconv": (Rule("low", "read*", "-f=text -t=text -c -s -o=write --from-code=text --to-code=text --output=write", needs="-o --output"), Rule("read-only", "read*", "-f=text -t=text -c -s -l --from-code=text --to-code=text --list")),
    "numfmt": Rule("read-only", "text*", "-d=text -z --from=text --to=text --suffix=text --padding=number --format=text --field=text --header[=number] --round=text --invalid=text --delimiter=text --grouping"),
    "sort": Rule("read-only", "read*", "-b -c -C -d -f -g -h -i -m -M -n -r -R -s -u -V -z -k=text -t=text -o=write -S=number --field-separator=text --ignore-case --key=text --numeric-sort --reverse --unique --stable --version-sort --output=write --human-numeric-sort --general-numeric-sort --check[=text] --zero-terminated"),
    "cut": Rule("read-only", "read*", "-b=text -c=text -d=text -f=text -n -s -z --bytes=text --characters=text --delimiter=text --fields=text --only-delimited --complement --output-delimiter=text", glob=True),
    "uniq": Rule("read-only", "read? write?", "-c -d -D -i -u -z -f=number -s=number -w=number --count --repeated --ignore-case --unique --skip-fields=number --skip-chars=number --check-chars=number"),
}  # fmt: skip
