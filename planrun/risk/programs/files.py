"""Programs of every system that look at files, and that make, copy, move or delete them."""

from __future__ import annotations

from planrun.risk import paths
from planrun.risk.levels import high
from planrun.risk.table import Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.risk.levels import Finding
    from planrun.risk.table import Rules, Use

_MODE = frozenset("ugoa+-=rwxX,")


def _chmod(use: Use) -> Finding | None:
    mode = use.operands[0]
    if {name for name, _ in use.options} & {"-R", "--recursive"}:
        for operand in use.operands[1:]:
            where, place = paths.locate(operand, use.cwd, use.ground)
            if where == "inside" and not place:
                return high("chmod -R: of the whole workspace, and so of what belongs to git")
    digits = mode.isdigit() and len(mode) in (1, 2, 3, 4) and (len(mode) < 4 or mode[0] == "0")
    return (
        None
        if digits or _MODE.issuperset(mode)
        else high(f"chmod {mode}: a mode that is not covered", "privilege")
    )


def _link(use: Use) -> Finding | None:
    """A symbolic link must lead to a place inside, whether its name is that of a link or of a folder to put it into."""
    target = use.operands[0]
    link = use.operands[1] if len(use.operands) > 1 else ""
    parents = (link, link.rpartition("/")[0]) if link else ("",)
    for parent in parents:
        path = target if target.startswith("/") else f"{parent}/{target}" if parent else target
        reason = paths.writing(path, use.cwd, use.ground)
        if reason:
            return high(f"a link to {reason}", "writes")
    name = f"{link or '.'}/{target.rstrip('/').rpartition('/')[2]}"
    use.trace.links += [paths.locate(place, use.cwd, use.ground)[1] for place in filter(None, (link, name))]
    if link and {"-f", "--force"} & {name for name, _ in use.options}:
        use.trace.overwrites.append(paths.locate(link, use.cwd, use.ground)[1])
    return None


PROGRAMS: dict[str, Rules] = {
    "ls": Rule(
        "read-only",
        "look*",
        "-a -A -b -B -c -C -d -f -F -g -G -h -H -i -k -l -L -m -n -N -o -p -q -Q -r -R -s -S -t -u -U -v -x -X -1 -Z"
        " -I=text -T=number -w=number --all --almost-all --author --block-size=text --color[=text] --directory --full-time"
        " --group-directories-first --human-readable --si --inode --no-group --numeric-uid-gid --recursive --reverse"
        " --size --sort=text --time=text --time-style=text --classify[=text] --file-type --hide=text --ignore=text"
        " --literal --zero --quote-name --format=text --width=number --dereference",
        glob=True,
    ),
    "cat": Rule("read-only", "read*", "-A -b -e -E -n -s -t -T -u -v --number --number-nonblank --show-all --show-ends --show-nonprinting --show-tabs --squeeze-blank", glob=True),
    "wc": Rule("read-only", "read*", "-c -l -L -m -w --bytes --chars --lines --words --max-line-length", glob=True),
    "head": Rule("read-only", "read*", "-# -n=number -c=number -q -v -z --lines=number --bytes=number --quiet", glob=True),
    "tail": Rule("read-only", "read*", "-# -n=number -c=number -q -v -z --lines=number --bytes=number --quiet", glob=True),
    "stat": Rule("read-only", "look+", "-L -f -t -c=text --format=text --printf=text --terse --dereference", glob=True),
    "file": Rule("read-only", "read+", "-b -i -k -L -h -z -r -s -0 -N --brief --mime --mime-type --mime-encoding"),
    "du": Rule("read-only", "look*", "-a -b -c -d=number -h -H -k -l -L -m -P -s -S -x -0 -t=number -B=text --all --apparent-size --bytes --total --max-depth=number --human-readable --si --summarize --one-file-system --exclude=text --time --threshold=number", glob=True),
    "cp": Rule("low", "read+ write", "-a -d -f -i -l -L -n -p -P -r -R -s -T -u -v -x --archive --force --no-clobber --recursive --update --verbose --no-dereference --dereference --preserve[=text] --reflink[=text] -t=write --target-directory=write", writes="into"),
    "mv": Rule("low", "make+ write", "-f -i -n -T -u -v --force --no-clobber --verbose --update", writes="into"),
    "rm": Rule("medium", "delete+", "-f -r -R -v -d -i -I --force --recursive --dir --verbose", effects="destroys", reason="deletes files"),
    "rmdir": Rule("medium", "delete+", "-p -v --parents --verbose --ignore-fail-on-non-empty", effects="destroys", reason="deletes files"),
    "unlink": Rule("medium", "delete", effects="destroys", reason="deletes files"),
    "mkdir": Rule("low", "make+", "-p -v -m=text --parents --verbose --mode=text"),
    "touch": Rule("low", "make+", "-a -c -m -h -d=text -t=text -r=read --date=text --no-create --reference=read --time=text"),
    "tree": Rule("read-only", "look*", "-a -d -f -i -l -x -p -s -h -D -F -q -N -Q -r -t -c -U -v -n -C -J -X -L=number -I=text -P=text -o=write --dirsfirst --noreport --du --gitignore --filelimit=number --prune --matchdirs --ignore-case --charset=text --si --inodes --sort=text --filesfirst --timefmt=text --metafirst"),
    "basename": Rule("read-only", "text+", "-a -s=text -z --multiple --suffix=text --zero", glob=True),
    "dirname": Rule("read-only", "text+", "-z --zero", glob=True),
    "realpath": Rule("read-only", "arg+", "-e -m -L -P -q -s -z --canonicalize-existing --canonicalize-missing --no-symlinks --quiet --relative-to=arg --relative-base=arg --strip --zero", glob=True),
    "readlink": Rule("read-only", "arg+", "-f -e -m -n -q -s -v -z --canonicalize --canonicalize-existing", glob=True),
    "df": Rule("read-only", "arg*", "-a -h -H -i -k -l -P -T -t=text -x=text -B=text --human-readable --total --output[=text]"),
    "tee": (Rule("low", "make*", "-a -i -p --append --ignore-interrupts", needs="-a --append"), Rule("low", "write*", "-i -p --ignore-interrupts")),
    "split": Rule("low", "read? write?", "-l=number -b=text -C=text -n=text -a=number -d -x -e --lines=number --bytes=text --number=text --suffix-length=number --numeric-suffixes[=number] --hex-suffixes[=number] --additional-suffix=name --verbose --line-bytes=text", writes="parts"),
    "csplit": Rule("low", "read text+", "-f=write -n=number -k -s -z --prefix=write --digits=number --keep-files --quiet", writes="parts"),
    "truncate": Rule("low", "write+", "-s=number -c -o --size=number --no-create -r=read --reference=read"),
    "ln": (Rule("low", "text make?", "-s -f -n -T -v --symbolic --force --no-dereference --no-target-directory --verbose", needs="-s --symbolic", check=_link, writes="into"), Rule("low", "write write?", "-f -v -T --force --verbose", writes="into")),
    "install": (Rule("low", "make+", "-d -m=text -v -p --directory --mode=text --verbose", needs="-d --directory"), Rule("low", "read+ write", "-m=text -D -p -v -c -C -T --mode=text --preserve-timestamps --verbose --compare --no-target-directory", writes="into"), Rule("low", "read+", "-m=text -D -p -v -t=write --target-directory=write --mode=text --verbose", needs="-t --target-directory", writes="into")),
    "chmod": Rule("low", "text make+", "-R -v -c -f --recursive --verbose --changes --quiet", check=_chmod),
    "mktemp": (Rule("low", "make?", "-d -q -p=make --directory --quiet --tmpdir=make --suffix=name", needs="-p --tmpdir"), Rule("low", "make", "-d -q --directory --quiet --suffix=name")),
    "sync": Rule("read-only"),
}  # fmt: skip
