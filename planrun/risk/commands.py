"""The class of one simple command: its assignments, its redirections, its program, and what that starts in turn."""

from __future__ import annotations

from planrun.risk import paths, programs
from planrun.risk.chains import UNPACKERS, Trace
from planrun.risk.controls import SCRIPTS, control
from planrun.risk.levels import HIGH, LOW, MEDIUM, READ_ONLY, Finding, high, rank, together
from planrun.risk.programs import dangerous
from planrun.risk.table import use_of
from planrun.risk.words import PRINTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.risk.chains import History
    from planrun.risk.paths import Ground
    from planrun.risk.scope import Found, Variant
    from planrun.risk.table import Rules
    from planrun.risk.words import Arg

_NOTHING = Finding(level=READ_ONLY, reason="only reads and prints")
_PATCH = high("a patch that is in no file of the workspace", "writes")
_PATCHING = frozenset(("patch", "git apply", "git am"))
_WRITES = ("&>", "&>>", ">", ">>", ">|")
_SYSTEM = ("/bin/", "/usr/bin/")
_FREE_OF_FOLDER = frozenset(
    (":", "true", "false", "echo", "printf", "exit", "set", "sleep", "break", "continue")
)


def of_found(found: Found, ground: Ground, history: History) -> Finding:
    """Return the worst of what a command may be, over all it may be given and all folders it may run in.

    What it does to files is added to the history of its text.
    """
    trace = Trace()
    findings = [
        _of_variant(found.simple.subject, variant, Site(cwd, ground, trace))
        for variant in found.variants
        for cwd in sorted(found.cwds, key=str)
    ]
    whole = together(findings)
    trace.code = "code" in whole.effects
    trace.folders += [cwd for cwd in found.cwds if cwd]
    history.overwrites += trace.overwrites
    history.sweeps += trace.sweeps
    chained = history.judge(trace)
    return together([whole, chained]) if chained is not None and whole.level != HIGH else whole


def of_plain(words: list[Arg], ground: Ground) -> tuple[Finding, Trace]:
    """Return the class of a text that is one command of these words, and what it does to files."""
    site = Site(ground.cwd, ground, Trace())
    findings = [of_words(words, site, builtins=True)]
    if site.trace.patches:
        findings.append(_PATCH)
    return together(findings), site.trace


class Site:
    """Where a command runs, and what it does there."""

    __slots__ = ("cwd", "ground", "trace")

    def __init__(self, cwd: str | None, ground: Ground, trace: Trace) -> None:
        self.cwd = cwd
        self.ground = ground
        self.trace = trace


def _of_variant(subject: str, variant: Variant, site: Site) -> Finding:
    if subject:
        return together([_of_subject(subject, arg) for arg in variant.words])
    findings = [_assignment(name, arg, site) for name, arg in variant.assignments]
    findings += [_redirection(redirect, site) for redirect in variant.redirects]
    if variant.words:
        findings.append(of_words(variant.words, site, builtins=True))
        words = [*variant.words, *(target for _, _, target, _ in variant.redirects)]
        is_fed = any(PRINTED in (arg.value or "") for arg in words)
        if is_fed:  # what it writes came with the text
            site.trace.fresh += site.trace.writes
            site.trace.streams = bool(UNPACKERS.intersection(site.trace.programs))
        applies = site.trace.patches and not any(op == "<" for _, op, _, _ in variant.redirects)
        if applies or (is_fed and _PATCHING.intersection(site.trace.programs)):
            findings.append(_PATCH)
    return together(findings)


def _of_subject(subject: str, arg: Arg) -> Finding:
    """Return what a word means that no program gets: in `case`, `for` or `[[ ]]`."""
    if arg.trouble:
        return high(arg.trouble)
    if subject == "condition":
        return _NOTHING
    if arg.value is None or (arg.glob and subject == "for"):
        return high("a value that is not known before it runs")
    if subject == "numbers" and not arg.value.lstrip("-").isdigit():
        return high(f"{arg.value}: evaluated as arithmetic")
    return _NOTHING


def _assignment(name: str, arg: Arg, site: Site) -> Finding:
    if arg.trouble:
        return high(arg.trouble)
    if arg.value is None:  # an unknown value stays unknown where the variable is used
        reason = paths.harm(name, "/", site.cwd, site.ground)
        return high(f"{name}: its value is not known before it runs") if reason else _NOTHING
    reason = paths.harm(name, arg.value, site.cwd, site.ground)
    return high(reason, "code") if reason else Finding(level=READ_ONLY, reason="sets a variable")


# Redirections


def _redirection(redirect: tuple[int | None, str, Arg, Arg | None], site: Site) -> Finding:
    fd, op, target, here = redirect
    if here is not None:
        return _data(here)
    if op == "<<<":
        return _data(target)
    if target.trouble or target.value is None or target.glob:
        return high(target.trouble or "a redirection to or from a file that is not known")
    path = target.value
    if op in (">&", "<&") and (path.isdigit() or path == "-"):
        if op == ">&" and fd in (None, 1, 2) and path in ("1", "2"):
            return _NOTHING
        return high(f"{op}{path}: a descriptor that is not covered")
    if path.startswith(("/dev/tcp", "/dev/udp")):
        return high(f"{path}: opens a connection", "network")
    if op == "<":
        reason = paths.reading(path, site.cwd, site.ground)
        return high(reason, "secrets") if reason else Finding(level=READ_ONLY, reason=f"reads {path}")
    if op in _WRITES or (op == ">&" and fd is None):
        return _written(path, site, appends=op in (">>", "&>>"))
    return high(f"`{op}`: a redirection that is not covered")


def _data(arg: Arg) -> Finding:
    if arg.trouble or arg.value is None:
        return high(arg.trouble or "a here-document with a value that is not known before it runs")
    return _NOTHING


def _written(path: str, site: Site, *, appends: bool) -> Finding:
    if path == "/dev/null":
        return _NOTHING
    reason = paths.writing(path, site.cwd, site.ground) if path else "an empty name of a file"
    if path.endswith("/"):
        reason = reason or f"{path}: no file"
    if reason:
        return high(reason, "writes")
    place = paths.locate(path, site.cwd, site.ground)[1]
    site.trace.fresh.append(place)
    if not appends:
        site.trace.overwrites.append(place)
    return Finding(level=LOW, reason=f"writes {path}", effects=("writes",))


# Programs


def of_words(words: list[Arg], site: Site, *, builtins: bool) -> Finding:
    """Return the class of a program with its arguments, and of every command that it starts in turn."""
    findings: list[Finding] = []
    rest: list[Arg] | None = words
    module = False
    site = Site(site.cwd, site.ground, site.trace)
    while rest:
        name = rest[0].value
        if rest[0].trouble or name is None or rest[0].glob:
            return high(rest[0].trouble or "which program runs is not known before it does", "code")
        if "=" in name:
            return high(f"{name}: the name of a program, which looks like a variable that is set", "code")
        if site.cwd is None and name not in _FREE_OF_FOLDER:
            return high(f"{name}: in which folder it runs is not known")
        if "/" in name and not module:
            name, found = _by_path(name, rest, site)
            if found is not None:
                findings.append(found)
                break
        rules = programs.rules(f"python:{name}" if module else name)
        if rules is None or (_builtin(rules) and not (builtins and rest is words)):
            return _unknown(name, rest, module=module)
        if len(rest) == 2 and rest[1].value in ("--version", "--help") and not module:
            break
        site.trace.programs += [name, *(f"{name} {arg.value}" for arg in rest[1:3])]
        use = use_of(rules, rest, site.cwd, site.ground, site.trace)
        findings += _in_words(name, rest, use.findings)
        site.trace.folders.append(use.cwd or "")
        site.trace.operands += [paths.locate(operand, site.cwd, site.ground)[1] for operand in use.operands]
        rest, module, site.cwd = use.rest, use.module, use.cwd
    return together(findings)


def _unknown(name: str, words: list[Arg], *, module: bool) -> Finding:
    if module:
        return high(f"{name}: unknown module")
    values = [arg.value for arg in words[1:]]
    deed = dangerous.deed(name, values)
    reason = dangerous.REASONS.get(name) or f"{name}: unknown program"
    return high(deed or reason, *dangerous.effects(name, values))


def _in_words(name: str, words: list[Arg], findings: list[Finding]) -> list[Finding]:
    """Say of a command that is high what it does: its table only knows that it does not know such a use."""
    if together(findings).level != HIGH:
        return findings
    values = [arg.value for arg in words[1:]]
    deed = dangerous.deed(name, values)
    return [high(deed, *dangerous.effects(name, values)), *findings] if deed else findings


def _builtin(rules: Rules) -> bool:
    return (rules[0] if isinstance(rules, tuple) else rules).builtin


def _by_path(name: str, words: list[Arg], site: Site) -> tuple[str, Finding | None]:
    """Return the name of a program of the system, or what running a file of the workspace means."""
    base = name.rpartition("/")[2]
    for folder in _SYSTEM:
        rules = programs.rules(base) if name == folder + base else None
        if rules is not None and not _builtin(rules):
            return base, None
    where, place = paths.locate(name, site.cwd, site.ground)
    if where == "outside" or "://" in name or not base or base in (".", ".."):
        return name, high(f"{name}: a program outside the workspace", "code")
    if where == "inside" and (control(place) and not place.startswith(SCRIPTS)):
        return name, high(f"{name}: belongs to git or to the runner", "code")
    site.trace.runs.append(place)
    use = use_of(programs.SCRIPT, words, site.cwd, site.ground, site.trace)
    if rank(together(use.findings).level) > rank(MEDIUM):
        return name, together(use.findings)
    return name, Finding(level=MEDIUM, reason=f"runs {name}", effects=("code",))
