"""Scripts of sed: which of them only edit text. A script that is not read exactly is refused.

find: its tests only look, `-delete` is medium behind the name of a file, and what runs or writes is unknown.

sed, awk, jq and find: programs whose arguments are programs of their own, read as far as that is exact.
"""

from __future__ import annotations

from planrun.risk import paths, table
from planrun.risk.levels import MEDIUM, Finding, high
from planrun.risk.options import Refused
from planrun.risk.sensitive import looks_secret
from planrun.risk.table import Rule
from planrun.risk.words import names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.risk.levels import Finding
    from planrun.risk.table import Rules, Use

_DIGITS = frozenset("0123456789")
_BLANK = frozenset(" \t")
_ALONE = frozenset("dDgGhHnNpPxz=F")
_NUMBERED = frozenset("qQlL")
_TEXT = frozenset("aic")
_LABEL = frozenset("btT:")
_FLAGS = frozenset("gpiIMm0123456789")


class _Unread(Exception):
    """A script that is not understood; its text says what stands in the way."""


def harm(script: str) -> str:
    """Say what a script of sed does besides editing text; "" when it does nothing else."""
    try:
        _Script(script).read()
    except _Unread as unread:
        return f"sed: {unread}"
    return ""


class _Script:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def read(self) -> None:
        while self._skip(" \t\n;{}"):
            self._address()
            self._skip(" \t!")
            self._command()

    def _skip(self, chars: str) -> bool:
        """Go past some characters; True when anything is left."""
        while self.at < len(self.text) and self.text[self.at] in chars:
            self.at += 1
        return self.at < len(self.text)

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _address(self) -> None:
        while True:
            char = self._peek()
            if char == "/" or (char == "\\" and self.text[self.at + 1 : self.at + 2] not in ("", "\n", "\\")):
                self.at += 1 if char == "/" else 2
                self._delimited(self.text[self.at - 1], 1)
                self._skip("IM")
            elif char in _DIGITS or char == "$":
                self._skip("0123456789$")
            else:
                return
            self._skip(" \t")
            if self._peek() in ("~", ","):
                self.at += 1
                self._skip(" \t+~")
            else:
                return

    def _delimited(self, sign: str, count: int) -> None:
        """Go past `count` parts that each end with a sign which no backslash precedes."""
        while count:
            if self.at >= len(self.text):
                raise _Unread("a pattern without an end")
            char = self.text[self.at]
            if char == "[" and "[" in self._class(sign):
                raise _Unread("a pattern that is not covered")
            self.at += 2 if char == "\\" else 1
            count -= char == sign

    def _class(self, sign: str) -> str:
        """Return "[" when a bracket expression holds the sign that would end the pattern."""
        stop = self.text.find("]", self.at + 2)
        return "[" if stop > 0 and sign in self.text[self.at : stop] else ""

    def _command(self) -> None:
        char = self._peek()
        self.at += 1
        if char in _ALONE:
            self._end()
        elif char in _NUMBERED:
            self._skip(" \t0123456789")
            self._end()
        elif char == "s":
            self._substitute()
        elif char == "y":
            self._delimited(self._sign(), 2)
            self._end()
        elif char in _TEXT:
            self._text_lines()
        elif char in _LABEL or char == "#":
            stop = self.text.find("\n", self.at)
            label = self.text[self.at : len(self.text) if stop < 0 else stop]
            # GNU sed ends a label at `;` or `}`, others do not.
            if char != "#" and set(label) & set(";{}"):
                self._label(label)
                return
            self.at += len(label)
        elif char in ("{", "}"):
            return
        else:
            raise _Unread(f"`{char}`: a command that is not known, or that reads, writes or runs something")

    def _label(self, label: str) -> None:
        name = label.strip().partition(";")[0].partition("}")[0].strip()
        if not name.isalnum() and name:
            raise _Unread("a label that is not covered")
        self.at += len(label.partition(";")[0].partition("}")[0])

    def _sign(self) -> str:
        sign = self._peek()
        if not sign or sign in "\n\\":
            raise _Unread("a command that is not covered")
        self.at += 1
        return sign

    def _substitute(self) -> None:
        self._delimited(self._sign(), 2)
        while self._peek() in _FLAGS and self._peek():
            self.at += 1
        if self._peek() in ("e", "w"):
            raise _Unread("`s///e` or `s///w`, which runs or writes what it made")
        self._end()

    def _text_lines(self) -> None:
        """Go past the text of `a`, `i` or `c`: to the end of a line without a continuation."""
        while self.at < len(self.text):
            char = self.text[self.at]
            self.at += 2 if char == "\\" else 1
            if char == "\n":
                return

    def _end(self) -> None:
        self._skip(" \t")
        if self._peek() not in ("", ";", "\n", "}", "#"):
            raise _Unread(f"`{self._peek()}` after a command")


_PLAIN = names_in(
    "-print -print0 -true -false -empty -readable -writable -executable -depth -mount -xdev -noleaf -prune -quit"
    " -daystart -ls -nouser -nogroup -o -a -or -and -not ! ( ) , -d -nowarn -warn -ignore_readdir_race"
)
_VALUED = names_in(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -size -mtime -ctime -atime"
    " -mmin -cmin -amin -newermt -newerct -newerat -maxdepth -mindepth -perm -user -group -uid -gid -links -inum -printf"
    " -fstype -lname -ilname -used"
)
_FILES = names_in("-newer -anewer -cnewer -samefile")
_NAMES = names_in("-name -iname -path -ipath -wholename -iwholename -regex -iregex")
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
    if any(paths.control(name) or looks_secret(name) for name in named):
        return high(f"find -delete: {named[0]}: controls what runs later", "destroys")
    refused = _starts(use, starts, "inside")
    if refused is not None:
        return refused
    for start in starts:
        where, place = paths.locate(start, use.cwd, use.ground)
        if where == "inside" and place and paths.control(place):
            return high(f"{start}: controls what runs later", "destroys")
    return Finding(level=MEDIUM, reason=f"deletes {named[0]}", effects=("destroys",))


_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$")
# What makes an awk program more than a filter, wherever it stands in the text.
_AWK = (
    "system",
    "getline",
    "ENVIRON",
    "PROCINFO",
    "ARGV",
    "ARGC",
    "@",
    "extension",
    "SYMTAB",
    "FUNCTAB",
    "/inet",
)
_JQ = frozenset(
    ("env", "$ENV", "import", "include", "modulemeta", "input_filename", "$__prog_args", "getpath_env")
)


def _sed(use: Use) -> Finding | None:
    given = dict(use.options)
    scripts = [value for name, value in use.options if name in ("-e", "--expression") and value is not None]
    files = list(use.operands)
    if not scripts:
        if not files:
            return high("sed: no script")
        scripts.append(files.pop(0))
    reason = next((reason for reason in map(harm, scripts) if reason), "")
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
    word = ""
    for char in use.operands[0] + " ":
        if char in _WORD:
            word += char
            continue
        if word in _JQ:
            return high(f"jq: `{word}` in its filter", "secrets")
        word = ""
    return None


_AWKS = Rule(
    "read-only",
    "text read*",
    "-F=text -v=text --field-separator=text --assign=text --posix --re-interval -b -n -S --sandbox",
    check=_awk,
)
_JQ_OPTIONS = (
    "-r -e -c -n -s -S -C -M -a -j --raw-output --exit-status --compact-output --null-input --slurp --sort-keys --color-output"
    " --monochrome-output --ascii-output --join-output --tab --indent=number --stream --seq --raw-input -R --arg=text,text"
    " --argjson=text,text --slurpfile=text,read --rawfile=text,read --raw-output0 --unbuffered --stream-errors"
)

_YQ = frozenset(
    (
        "load",
        "load_str",
        "load_xml",
        "load_props",
        "load_base64",
        "env",
        "strenv",
        "envsubst",
        "eval",
        "$ENV",
        "system",
        "import",
        "include",
        "input_filename",
        "modulemeta",
        "getpath_env",
        "$__prog_args",
    )
)
_YQ_OPTIONS = (
    "-r -e -P -n -N -j -M -C -y -Y -0 -o=name -p=name -I=number --prettyPrint --no-doc --output-format=name"
    " --input-format=name --indent=number --exit-status --null-input --unwrapScalar[=text] --colors --no-colors --raw-output"
)
_YQ_VERBS = frozenset(("eval", "e", "eval-all", "ea", "completion", "help", "shell-completion"))


def _yq(use: Use) -> Finding | None:
    """Look at an expression; raises Refused for the name of a subcommand where an expression is expected."""
    expression = use.operands[0]
    if expression in _YQ_VERBS:
        raise Refused("yq: an expression is missing")
    word = ""
    for char in expression + " ":
        if char in _WORD:
            word += char
            continue
        if word in _YQ:
            return high(f"yq: `{word}` in its expression", "secrets")
        word = ""
    return None


def _yqs(level: str, operands: str, more: str = "", needs: str = "") -> tuple[Rule, Rule]:
    """Return the rules for an expression at once, and behind `eval`."""
    rule = Rule(level, operands, _YQ_OPTIONS + more, needs=needs, check=_yq)
    return rule, Rule("high", "", "", sub=dict.fromkeys(("eval", "e", "eval-all", "ea"), rule))


PROGRAMS: dict[str, Rules] = {
    "yq": (
        *_yqs("read-only", "text read*"),
        *_yqs("low", "text write+", " -i --inplace", "-i --inplace"),
    ),
    "sed": Rule(
        "read-only",
        "text*",
        "-n -E -r -s -u -z -e=text -i[=text] --in-place[=text] --expression=text --quiet --silent --regexp-extended"
        " --null-data --separate --posix --sandbox --debug --unbuffered --zero-terminated -l=number",
        check=_sed,
    ),
    "awk": _AWKS,
    "gawk": _AWKS,
    "mawk": _AWKS,
    "nawk": _AWKS,
    "jq": (
        Rule(
            "read-only",
            "text text*",
            f"{_JQ_OPTIONS} --args --jsonargs",
            needs="--args --jsonargs",
            check=_jq,
        ),
        Rule("read-only", "text read*", _JQ_OPTIONS, check=_jq),
    ),
    "find": Rule("read-only", "text*", style="raw", check=find),
}
