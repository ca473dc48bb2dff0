"""Rules of programs: which options and operands they take, and the class that results.

The kinds of operands and values each state what makes them class high. `planrun.risk.programs` documents how to write a
rule.
"""

from __future__ import annotations

from planrun.risk import names, paths
from planrun.risk.controls import SCRIPTS, control
from planrun.risk.levels import LOW, MEDIUM, READ_ONLY, Finding, high
from planrun.risk.options import Refused, read_options, split_options
from planrun.risk.sensitive import looks_secret
from planrun.risk.words import HOME, names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from planrun.risk.chains import Trace
    from planrun.risk.options import Option
    from planrun.risk.paths import Ground
    from planrun.risk.words import Arg

    Rules: TypeAlias = "Rule | tuple[Rule, ...]"

_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+@/[],~^:#=<>!{}")
_UNITS = frozenset("0123456789.+-smhdkKMGTPBb%")
_HOST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]")
_METADATA = names_in(
    "metadata metadata.google.internal metadata.goog instance-data instance-data.ec2.internal"
    " 100.100.100.200 168.63.129.16"
)
_FETCHED = Finding(level=MEDIUM, reason="fetches over the network", effects=("network",))


def examine(kind: str, value: str, use: Use) -> Finding | None:
    """Return what an operand or a value of a kind adds to a command's class; raises Refused."""
    if kind.startswith("{"):
        if value not in kind[1:-1].split(","):
            raise Refused(f"{value}: unknown value")
        return None
    return KINDS[kind](value, use)


def _text(_value: str, _use: Use) -> None:
    return None


def _arg(value: str, use: Use) -> None:
    """Refuse what looks like a path outside or to secrets, also behind `=` or `:`."""
    # In their order, so that the reason is the same in every process.
    if names.chooses_secrets(value):
        raise Refused(f"{value}: may hold secrets", "secrets")
    for piece in dict.fromkeys((value, *value.split("="), *value.split(":"))):
        pathlike = piece.startswith(("/", HOME)) or ".." in piece.split("/")
        if (
            pathlike
            and not piece.startswith("//")
            and paths.locate(piece, use.cwd, use.ground)[0] == "outside"
        ):
            raise Refused(f"{value}: a path outside the workspace")
        if looks_secret(piece):
            raise Refused(f"{value}: may hold secrets", "secrets")


def _name(value: str, use: Use) -> None:
    if not value or value[0] in "-/" or not _NAME.issuperset(value) or "://" in value or "::" in value:
        raise Refused(f"{value}: no plain name")
    _arg(value, use)


def _filter(value: str, _use: Use) -> None:
    if names.chooses_secrets(value):
        raise Refused(f"{value}: a pattern that may name files with secrets", "secrets")


def _number(value: str, _use: Use) -> None:
    if not value or not _UNITS.issuperset(value):
        raise Refused(f"{value}: no number")


def _checked(
    question: Callable[[str, str | None, paths.Ground], str], *effects: str
) -> Callable[[str, Use], None]:
    def check(value: str, use: Use) -> None:
        if "://" in value:
            raise Refused(f"{value}: an address where a path was expected", "network")
        reason = question(value, use.cwd, use.ground)
        if reason:
            raise Refused(reason, *(("secrets",) if "secrets" in reason else effects))

    return check


_look = _checked(paths.reading)
_inside_path = _checked(paths.inside)
_writable = _checked(paths.writing, "writes")
_deletable = _checked(paths.deleting, "destroys")


def _read(value: str, use: Use) -> None:
    """Refuse the root of the system as well: what descends from there meets every secret."""
    _look(value, use)
    if paths.locate(value, use.cwd, use.ground) == ("outside", "/"):
        raise Refused(f"{value}: everything that there is", "secrets")


def _inside(value: str, use: Use) -> None:
    """Refuse what is outside, and `@file`, which many programs read more options from."""
    if value.startswith("@"):
        raise Refused(f"{value}: options from a file")
    _inside_path(value, use)


def _values(value: str, use: Use) -> None:
    """Accept values that terraform takes in, and does not print."""
    if not value.endswith((".tfvars", ".tfvars.json")) or paths.folder(value, use.cwd, use.ground) is None:
        _inside(value, use)


def _write(value: str, use: Use) -> Finding | None:
    found = _make(value, use)
    if found is not None:
        use.trace.overwrites.append(paths.locate(value, use.cwd, use.ground)[1])
    return found


def _make(value: str, use: Use) -> Finding | None:
    _writable(value, use)
    if value == "/dev/null":
        return None
    use.trace.writes.append(paths.locate(value, use.cwd, use.ground)[1])
    return Finding(level=LOW, reason=f"writes {value}", effects=("writes",))


def _delete(value: str, use: Use) -> Finding:
    _deletable(value, use)
    return Finding(level=MEDIUM, reason=f"deletes {value}", effects=("destroys",))


def _run(value: str, use: Use) -> Finding:
    where, place = paths.locate(value, use.cwd, use.ground)
    if where != "inside" or value[:1] in ("-", "+", "") or "://" in value:
        raise Refused(f"{value}: code from outside the workspace", "code")
    if looks_secret(place):
        raise Refused(f"{value}: may hold secrets", "secrets", "code")
    if control(place) and not place.startswith(SCRIPTS):
        raise Refused(f"{value}: a file that belongs to git or to the runner", "code")
    use.trace.runs.append(place)
    return Finding(level=MEDIUM, reason=f"runs {value}", effects=("code",))


def _folder(value: str, use: Use) -> None:
    where = paths.folder(value, use.cwd, use.ground)
    if where is None:
        raise Refused(paths.inside(value, use.cwd, use.ground) or f"{value}: no folder inside the workspace")
    if looks_secret(f"{where}/") or looks_secret(f"{where}/file"):
        raise Refused(f"{value}: may hold secrets", "secrets")
    use.cwd = where


def _gives_credentials(host: str) -> bool:
    """Whether a host is the service of a cloud that hands out credentials, or an address written in an odd way."""
    name = host.lower().rstrip(".")
    if not name.startswith("["):
        name = name.partition(":")[0].rstrip(".")
    parts = name.split(".")
    numeric = all(part and (part.isdigit() or part.startswith("0x")) for part in parts)
    odd = numeric and (len(parts) != 4 or any(len(part) > 1 and part[0] == "0" for part in parts))
    return odd or name in _METADATA or name.startswith(("169.254.", "[fd00:ec2", "[fe80", "[::ffff:", "[0:"))


def _url(value: str, _use: Use) -> Finding:
    scheme, found, rest = value.partition("://")
    host = rest.partition("/")[0].partition("?")[0]
    if not found or scheme.lower() not in ("http", "https") or not host or not _HOST.issuperset(host):
        raise Refused(f"{value}: no plain http address", "network")
    if _gives_credentials(host):
        raise Refused(f"{value}: a service that hands out credentials", "network", "secrets")
    if set("{}[]*") & set(rest) or any(
        word in rest.lower() for word in ("token=", "key=", "secret=", "password=")
    ):
        raise Refused(f"{value}: an address that carries more than a place", "network")
    return _FETCHED


def _remote(value: str, use: Use) -> Finding:
    if "://" in value:
        return _url(value, use)
    if ":" in value or "." in value:
        raise Refused(f"{value}: no plain remote", "network")
    _name(value, use)
    return _FETCHED


def _assign(value: str, use: Use) -> None:
    name, sign, content = value.partition("=")
    reason = paths.harm(name, content, use.cwd, use.ground) if sign else "no assignment"
    if reason:
        raise Refused(reason, "code")


KINDS: dict[str, Callable[[str, Use], Finding | None]] = {
    "text": _text,
    "arg": _arg,
    "filter": _filter,
    "name": _name,
    "number": _number,
    "look": _look,
    "read": _read,
    "inside": _inside,
    "values": _values,
    "write": _write,
    "make": _make,
    "delete": _delete,
    "run": _run,
    "folder": _folder,
    "url": _url,
    "remote": _remote,
    "assign": _assign,
    "module": _name,
    "package": _text,
}
"""Name of a kind -> what looks at a value of it."""

MISSING = " is missing"  # says of a form only that it is not this one: another reason is better
_EFFECTS = {READ_ONLY: (), LOW: ("writes",), MEDIUM: ("code",)}
_REASONS = {
    READ_ONLY: "only reads and prints",
    LOW: "writes in the workspace",
    MEDIUM: "runs code of the project",
}


class Use:
    """One command as a rule reads it; `rest` is a command that it starts in turn, None when there is none."""

    __slots__ = ("cwd", "findings", "ground", "module", "operands", "options", "rest", "trace", "words")

    def __init__(self, words: list[Arg], cwd: str | None, ground: Ground, trace: Trace) -> None:
        self.words = words
        self.cwd = cwd
        self.ground = ground
        self.options: list[tuple[str, str | None]] = []
        self.operands: list[str] = []
        self.findings: list[Finding] = []
        self.rest: list[Arg] | None = None
        self.module = False  # `rest` begins with the name of a Python module
        self.trace = trace


class Rule:
    """What one form of a program may be given, and the class of that."""

    __slots__ = (
        "_operands", "_options", "builtin", "check", "effects", "glob", "level", "needs", "operands", "options",
        "reads", "reason", "style", "sub", "unknown", "writes",
    )  # fmt: skip

    def __init__(  # noqa: PLR0913 - a table reads best when every column has a name
        self,
        level: str,
        operands: str = "",
        options: str = "",
        *,
        effects: str | None = None,
        needs: str = "",
        sub: Mapping[str, Rules] | None = None,
        style: str = "gnu",
        glob: bool = False,
        unknown: bool = False,
        builtin: bool = False,
        check: Callable[[Use], Finding | None] | None = None,
        reads: str = "",
        writes: str = "",
        reason: str = "",
    ) -> None:
        self.level = level
        self.operands = operands
        self.options = options
        self.effects = _EFFECTS.get(level, ()) if effects is None else tuple(effects.split())
        self.needs = needs.split()
        self.sub = sub
        self.style = style
        self.glob = glob
        self.unknown = unknown
        self.builtin = builtin
        self.check = check
        self.reads = reads
        self.writes = writes
        self.reason = reason or _REASONS.get(level, "")
        self._options: dict[str, Option] | None = None
        self._operands: list[tuple[str, str, str]] | None = None

    @property
    def known_options(self) -> dict[str, Option]:
        """The options by name, read from the text of the rule once."""
        if self._options is None:
            self._options = split_options(self.options)
        return self._options

    @property
    def kinds(self) -> list[tuple[str, str, str]]:
        """The operands as (kind, how many, level)."""
        if self._operands is None:
            self._operands = []
            for item in self.operands.split():
                kind, _, level = item.partition(":")
                count = kind[-1] if kind[-1] in "?*+" else ""
                self._operands.append((kind.removesuffix(count), count, level))
        return self._operands


def use_of(rules: Rules, words: list[Arg], cwd: str | None, ground: Ground, trace: Trace) -> Use:
    """Return how the first of some rules that accepts a command reads it; with the finding why none does."""
    refused: Finding | None = None
    for rule in rules if isinstance(rules, tuple) else (rules,):
        use = Use(words, cwd, ground, trace)
        try:
            _apply(rule, use, words[1:])
        except Refused as no:
            if refused is None or refused.reason.endswith(MISSING):
                refused = high(no.reason, *no.effects)
            continue
        return use
    use = Use(words, cwd, ground, trace)
    use.findings = [refused or high("unknown command")]
    return use


def _apply(rule: Rule, use: Use, words: list[Arg]) -> None:
    """Read the words by a rule and, as long as there are any, by those of its subcommands; raises Refused."""
    while True:
        style = "posix" if rule.sub is not None else rule.style
        operands = read_options(
            rule.known_options,
            style,
            words,
            _value_reader(rule, use),
            rest=any(kind in ("command", "module") for kind, _, _ in rule.kinds),
        )
        if rule.needs and not any(name in rule.needs for name, _ in use.options):
            raise Refused(f"{' or '.join(rule.needs)}{MISSING}")
        if rule.sub is None:
            _take_operands(rule, use, operands)
            break
        name = operands[0].value if operands else ""
        if name is None or name not in rule.sub or (operands and operands[0].glob):
            raise Refused(f"{name or 'no subcommand'}: unknown use" if name is not None else "unknown use")
        chosen = rule.sub[name]
        words = operands[1:]
        if isinstance(chosen, tuple):
            _apply_first(chosen, use, words)
            return
        rule = chosen
    _conclude(rule, use)


def _apply_first(rules: tuple[Rule, ...], use: Use, words: list[Arg]) -> None:
    first: Refused | None = None
    for rule in rules:
        options, findings, cwd = list(use.options), list(use.findings), use.cwd
        try:
            _apply(rule, use, words)
            return
        except Refused as no:
            if first is None or first.reason.endswith(MISSING):
                first = no
            use.options, use.findings, use.cwd, use.operands, use.rest = options, findings, cwd, [], None
    raise first or Refused("unknown use")


def _conclude(rule: Rule, use: Use) -> None:
    use.findings.insert(0, Finding(level=rule.level, reason=rule.reason, effects=rule.effects))
    found = [rule.check(use) if rule.check is not None else None]
    if rule.writes:
        found.append(names.judge_written(use, rule.writes))
    if rule.reads:
        use.trace.sweeps += names.read(use, rule.reads)
    use.findings += [one for one in found if one is not None]


def _value_reader(rule: Rule, use: Use) -> Callable[[str, Option, Arg | None], None]:
    def read(name: str, option: Option, value: Arg | None) -> None:
        kind, level, effect = option[1:]
        use.options.append((name, value.value if value is not None else None))
        if level:
            use.findings.append(
                Finding(
                    level=level,
                    reason=f"{name}: {_REASONS[level]}",
                    effects=(effect,) if effect else _EFFECTS[level],
                )
            )
        if value is not None and kind != "module":
            _examine(rule, use, kind, value)

    return read


def _examine(rule: Rule, use: Use, kind: str, arg: Arg) -> None:
    if arg.trouble:
        raise Refused(arg.trouble)
    if arg.value is None:
        if rule.unknown:
            return
        raise Refused("a value that is not known before it runs")
    if arg.glob and not rule.glob and not (kind == "package" and _is_extras(arg.value)):
        destroys = kind == "delete"
        raise Refused(
            f"{arg.value}: a pattern names what is {'deleted' if destroys else 'used'}",
            *(("destroys",) if destroys else ()),
        )
    found = examine(kind, arg.value, use)
    if found is not None:
        use.findings.append(found)
    if arg.glob and kind == "read":
        where, place = paths.locate(arg.value, use.cwd, use.ground)
        use.trace.sweeps += [("", place, "paths")] if where == "inside" else []


def _is_extras(value: str) -> bool:
    """Whether what bash may take for a pattern is a folder with extras: `.[test]`, which matches hidden names only."""
    place, _, extras = value.partition("[")
    names = extras.removesuffix("]")
    plain = all(char.isalnum() or char in ",-_" for char in names)
    return place in (".", "./.") and extras.endswith("]") and bool(names) and plain


def _take_operands(rule: Rule, use: Use, operands: list[Arg]) -> None:
    for arg, (kind, level) in zip(operands, _kinds_of(rule, operands), strict=False):
        if kind == "command":
            use.rest = operands[len(use.operands) :]
            return
        _examine(rule, use, kind, arg)
        use.operands.append(arg.value or "")
        if level:
            use.findings.append(Finding(level=level, reason=_REASONS[level], effects=_EFFECTS[level]))
        if kind == "module":
            use.module = True
            use.rest = operands[len(use.operands) - 1 :]
            return


def _kinds_of(rule: Rule, operands: list[Arg]) -> Sequence[tuple[str, str]]:
    """Return the kind and level of each operand; raises Refused when there are too many or too few."""
    items = rule.kinds
    count = len(operands)
    needed = sum(1 for _, many, _ in items if many in ("", "+"))
    spare = count - needed
    if spare < 0:
        is_started = items[0][0] == "run"  # a shell or an interpreter, which then runs its input
        raise Refused("it does not name what it runs" if is_started else "an operand is missing")
    found: list[tuple[str, str]] = []
    for kind, many, level in items:
        if kind in ("command", "module"):
            return [*found, (kind, level)]
        if kind == "assign":
            found += [(kind, level)] * _assignments(operands)
        elif many == "":
            found.append((kind, level))
        elif many == "?":
            found += [(kind, level)] * min(spare, 1)
            spare -= min(spare, 1)
        else:
            found += [(kind, level)] * (spare + (many == "+"))
            spare = 0
    if spare:
        raise Refused("an operand too many")
    return found


def _assignments(operands: list[Arg]) -> int:
    for count, arg in enumerate(operands):
        if arg.value is not None and "=" not in arg.value:
            return count
    return len(operands)
