"""sed, awk, jq and find: programs whose arguments are programs of their own, read as far as that is exact."""

from __future__ import annotations

from planrun.risk import kinds
from planrun.risk.levels import high
from planrun.risk.options import Refused
from planrun.risk.programs.finding import find
from planrun.risk.programs.sedscript import harm
from planrun.risk.table import Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.risk.levels import Finding
    from planrun.risk.table import Rules, Use

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
            found = kinds.examine(("make" if suffixes else "write") if in_place else "read", file, use)
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
