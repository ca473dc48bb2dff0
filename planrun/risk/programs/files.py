"""Programs of every system that look at files, and that make, copy, move or delete them."""

from __future__ import annotations

from planrun.risk.table import Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.risk.table import Rules

PROGRAMS: dict[str, Rules] = {
    "ls": Rule(
        "read-only",
        "read*",
        "-a -A -b -B -c -C -d -f -F -g -G -h -H -i -k -l -L -m -n -N -o -p -q -Q -r -R -s -S -t -u -U -v -x -X -1 -Z"
        " -I=text -T=number -w=number --all --almost-all --author --block-size=text --color[=text] --directory --full-time"
        " --group-directories-first --human-readable --si --inode --no-group --numeric-uid-gid --recursive --reverse"
        " --size --sort=text --time=text --time-style=text --classify[=text] --file-type --hide=text --ignore=text"
        " --literal --zero --quote-name --format=text --width=number --dereference",
        glob=True,
    ),
    "cat": Rule(
        "read-only",
        "read*",
        "-A -b -e -E -n -s -t -T -u -v --number --number-nonblank --show-all --show-ends --show-nonprinting --show-tabs"
        " --squeeze-blank",
        glob=True,
    ),
    "wc": Rule(
        "read-only", "read*", "-c -l -L -m -w --bytes --chars --lines --words --max-line-length", glob=True
    ),
    "head": Rule(
        "read-only",
        "read*",
        "-# -n=number -c=number -q -v -z --lines=number --bytes=number --quiet",
        glob=True,
    ),
    "tail": Rule(
        "read-only",
        "read*",
        "-# -n=number -c=number -q -v -z --lines=number --bytes=number --quiet",
        glob=True,
    ),
    "stat": Rule(
        "read-only", "read+", "-L -f -t -c=text --format=text --printf=text --terse --dereference", glob=True
    ),
    "file": Rule(
        "read-only", "read+", "-b -i -k -L -h -z -r -s -0 -N --brief --mime --mime-type --mime-encoding"
    ),
    "du": Rule(
        "read-only",
        "read*",
        "-a -b -c -d=number -h -H -k -l -L -m -P -s -S -x -0 -t=number -B=text --all --apparent-size --bytes --total"
        " --max-depth=number --human-readable --si --summarize --one-file-system --exclude=text --time --threshold=number",
        glob=True,
    ),
    "cp": Rule(
        "low",
        "read+ write",
        "-a -d -f -i -l -L -n -p -P -r -R -s -T -u -v -x --archive --force --no-clobber --parents --recursive --update"
        " --verbose --no-dereference --dereference --preserve[=text] --reflink[=text] -t=write --target-directory=write",
    ),
    "mv": Rule("low", "write+ write", "-f -i -n -T -u -v --force --no-clobber --verbose --update"),
    "rm": Rule(
        "medium", "delete+", "-f -r -R -v -d -i -I --force --recursive --dir --verbose", effects="destroys"
    ),
    "rmdir": Rule(
        "medium", "delete+", "-p -v --parents --verbose --ignore-fail-on-non-empty", effects="destroys"
    ),
    "unlink": Rule("medium", "delete", effects="destroys"),
    "mkdir": Rule("low", "write+", "-p -v -m=text --parents --verbose --mode=text"),
    "touch": Rule(
        "low",
        "write+",
        "-a -c -m -h -d=text -t=text -r=read --date=text --no-create --reference=read --time=text",
    ),
}
