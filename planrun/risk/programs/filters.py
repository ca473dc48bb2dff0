"""sed, awk, jq, yq and find: programs whose arguments are programs of their own, read as far as that is exact."""

from __future__ import annotations

from planrun.risk import paths, table
from planrun.risk.controls import NAMES, control
from planrun.risk.levels import MEDIUM, Finding, high
from planrun.risk.options import Refused
from planrun.risk.programs import sedscripts
from planrun.risk.sensitive import looks_secret, may_be, may_be_secret
from planrun.risk.table import Rule
from planrun.risk.words import names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.risk.levels import Finding
    from planrun.risk.table import Rules, Use

_PLAIN = names_in("-print -print0 -true -false -empty -readable -writable -executable -depth -mount -xdev -noleaf -prune -quit -daystart -ls -nouser -nogroup -o -a -or -and -not ! ( ) , -d -nowarn -warn -ignore_readdir_race")  # fmt: skip
_VALUED = names_in(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -size -mtime -ctime -atime -mmin -cmin -amin -newermt -newerct -newerat -maxdepth -mindepth -perm -user -group -uid -gid -links -inum -printf -fstype -lname -ilname -used"
)
_FILES = names_in("-newer -anewer -cnewer -samefile")
_NAMES = names_in("-name -iname -path -ipath -wholename -iwholename")
_EITHER = names_in("-o -or -not ! , -prune -true")
_WILD = frozenset("*?./[]")


def find(use: Use) -> Finding | None:
    """Look at the starting points and the expression of a find."""
    words = [arg.value or "" for arg in use.words[1:]]
    at = 0
    while at < len(words) and words[at] in ("-H", "-L", "-P"):
        at += 1
    starts = []
    while at < len(words) and words[at][:1] not in ("-", "(", "!", ","):
        starts.append(words[at])
        at += 1
    expression = words[at:]
    reason = _expression(use, expression)
    if reason:
        return high(reason)
    if "-delete" in expression:
        return _delete(use, starts or ["."], expression)
    return _starts(use, starts, "look")


def _starts(use: Use, starts: list[str], kind: str) -> Finding | None:
    for start in starts:
        try:
            table.examine(kind, start, use)
        except Refused as no:
            return high(no.reason, *no.effects)
    return None


def _expression(use: Use, words: list[str]) -> str:
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word in _PLAIN or word == "-delete":
            continue
        if word not in _VALUED and word not in _FILES:
            return f"find {word}: a test that is not known, or that runs or writes something"
        if at >= len(words):
            return f"find {word}: its value is missing"
        if word in _FILES and paths.reading(words[at], use.cwd, use.ground):
            return f"{words[at]}: read outside the workspace"
        at += 1
    return ""


def _without_sets(pattern: str) -> str:
    """Leave out what stands in brackets, which is one letter of many."""
    left = ""
    while "[" in pattern:
        before, _, pattern = pattern.partition("[")
        left += before
        pattern = pattern[1:].partition("]")[2]
    return left + pattern


def _delete(use: Use, starts: list[str], words: list[str]) -> Finding | None:
    """`-delete` needs a name before it that says which files, and nothing that says otherwise."""
    if {"-L", "-H"} & {arg.value for arg in use.words}:
        return high("find -L -delete: follows links out of the workspace", "destroys")
    if set(words) & _EITHER:
        return high("find -delete: among alternatives, so that it may delete anything", "destroys")
    before = words[: words.index("-delete")]
    named = [
        before[at + 1]
        for at, word in enumerate(before[:-1])
        if word in _NAMES and set(_without_sets(before[at + 1])) - _WILD
    ]
    if not named:
        return high("find -delete: no name says which files", "destroys")
    doubtful = [
        name
        for name in named
        if control(name)
        or looks_secret(name)
        or may_be_secret(name)
        or (name.rpartition("/")[2].strip("*") and may_be(name.rpartition("/")[2], NAMES))
    ]
    if doubtful:
        return high(f"find -delete: {doubtful[0]}: may name what controls what runs later", "destroys")
    refused = _starts(use, starts, "inside")
    if refused is not None:
        return refused
    for start in starts:
        where, place = paths.locate(start, use.cwd, use.ground)
        if where == "inside" and place and control(place):
            return high(f"{start}: controls what runs later", "destroys")
    return Finding(level=MEDIUM, reason=f"deletes {named[0]}", effects=("destroys",))


_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
# What makes an awk program more than a filter, wherever it stands in the text.
_AWK = (
    "system", "getline", "ENVIRON", "PROCINFO", "ARGV", "ARGC", "@", "extension", "SYMTAB", "FUNCTAB",
    "/inet",
)  # fmt: skip
# What gives a program of jq or yq the environment, other files, or its own command line.
_ASKS = ("env", "ENV", "load", "prog_args")
_ASKS_AS_WORDS = names_in("import include modulemeta input_filename system eval")


def asks_environment(text: str) -> str:
    """Return the word by which a program of jq or yq reads more than its input, "" for none.

    Part of a longer word it counts as well, but in the name of a field: `.environment`, `.browser_download_url`.
    """
    word = before = ""
    for char in text + " ":
        if char in _WORD:
            word += char
            continue
        is_field = before.endswith(".") and not before.endswith("..") and char != "("
        if word in _ASKS_AS_WORDS or word in _ASKS or (not is_field and any(ask in word for ask in _ASKS)):
            return word
        before = f"{before}{word}{char}"[-2:]
        word = ""
    return ""


def _sed(use: Use) -> Finding | None:
    given = dict(use.options)
    scripts = [value for name, value in use.options if name in ("-e", "--expression") and value is not None]
    files = list(use.operands)
    if not scripts:
        if not files:
            return high("sed: no script")
        scripts.append(files.pop(0))
    reason = sedscripts.harm(scripts)
    if reason:
        return high(reason)
    return _sed_files(use, files, in_place=bool({"-i", "--in-place"} & set(given)))


def _sed_files(use: Use, files: list[str], *, in_place: bool) -> Finding | None:
    suffixes = [value for name, value in use.options if name in ("-i", "--in-place") and value]
    if any("/" in suffix or "*" in suffix for suffix in suffixes):
        return high("sed: a copy in another place", "writes")
    for file in files:
        try:
            found = table.examine(("make" if suffixes else "write") if in_place else "read", file, use)
        except Refused as no:
            return high(no.reason, *no.effects)
        if found is not None:
            use.findings.append(found)
    return None


def _awk(use: Use) -> Finding | None:
    program = use.operands[0]
    for word in _AWK:
        if word in program:
            return high(f"awk: `{word}` in its program")
    for name, value in use.options:
        if name in ("-v", "--assign") and value is not None and ("=" not in value or "/inet" in value):
            return high(f"{name} {value}: no assignment")
    output = program.partition("print")[2]
    if ">" in output or "|" in output.replace("||", ""):
        return high("awk: may write to a file or to a command", "writes")
    return None


def _jq(use: Use) -> Finding | None:
    if not use.operands:
        return high("jq: no filter")
    word = asks_environment(use.operands[0])
    return high(f"jq: `{word}` in its filter", "secrets") if word else None


_AWKS = Rule("read-only", "text read*", "-F=text -v=text --field-separator=text --assign=text --posix --re-interval -b -n -S --sandbox", check=_awk)  # fmt: skip
_JQ_OPTIONS = "-r -e -c -n -s -S -C -M -a -j --raw-output --exit-status --compact-output --null-input --slurp --sort-keys --color-output --monochrome-output --ascii-output --join-output --tab --indent=number --stream --seq --raw-input -R --arg=text,text --argjson=text,text --slurpfile=text,read --rawfile=text,read --raw-output0 --unbuffered --stream-errors"

_YQ_OPTIONS = "-r -e -P -n -N -j -M -C -y -Y -0 -o=name -p=name -I=number --prettyPrint --no-doc --output-format=name --input-format=name --indent=number --exit-status --null-input --unwrapScalar[=text] --colors --no-colors --raw-output"
_YQ_VERBS = frozenset(("eval", "e", "eval-all", "ea", "completion", "help", "shell-completion"))


def _yq(use: Use) -> Finding | None:
    """Look at an expression; raises Refused for the name of a subcommand where an expression is expected."""
    expression = use.operands[0]
    if expression in _YQ_VERBS:
        raise Refused("yq: an expression is missing")
    word = asks_environment(expression)
    return high(f"yq: `{word}` in its expression", "secrets") if word else None


def _yqs(level: str, operands: str, more: str = "", needs: str = "") -> tuple[Rule, Rule]:
    rule = Rule(level, operands, _YQ_OPTIONS + more, needs=needs, check=_yq)
    return rule, Rule("high", "", "", sub=dict.fromkeys(("eval", "e", "eval-all", "ea"), rule))


PROGRAMS: dict[str, Rules] = {
    "yq": (*_yqs("read-only", "text read*"), *_yqs("low", "text write+", " -i --inplace", "-i --inplace")),
    "sed": Rule("read-only", "text*", "-n -E -r -s -u -z -e=text -i[=text] --in-place[=text] --expression=text --quiet --silent --regexp-extended --null-data --separate --posix --sandbox --debug --unbuffered --zero-terminated -l=number", check=_sed, writes="backup"),
    "awk": _AWKS,
    "gawk": _AWKS,
    "mawk": _AWKS,
    "nawk": _AWKS,
    "jq": (Rule("read-only", "text text*", f"{_JQ_OPTIONS} --args --jsonargs", needs="--args --jsonargs", check=_jq), Rule("read-only", "text read*", _JQ_OPTIONS, check=_jq)),
    "find": Rule("read-only", "text*", style="raw", check=find),
}  # fmt: skip
