"""An approval file: JSON with exactly these keys, read strictly, every problem with its line and column.

Policy and approval files as a command line names them: files of this checkout, or of a commit (`COMMIT:PATH`).

The checkout, which a pull request may have changed, cannot alter what is read from a commit. A warning names a file of
the checkout that differs, since a reader may believe that it counts.

The policies in force: the plan's, the ceilings of the command line, and those that the run recorded.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from fnmatch import fnmatchcase

from planrun.approval.assess import as_written
from planrun.approval.rules import Ceiling, Facts, Layers, decide
from planrun.errors import InvalidInput, InvalidPlan
from planrun.model.policy import Policy
from planrun.model.record import Record
from planrun.plan.keys.policy import policy_in
from planrun.plan.problems import Problem, in_order, key_hint
from planrun.plan.revisions import find_entries, in_commit, is_file, path_from_root
from planrun.plan.yaml.document import SCALAR, SEQUENCE, parse
from planrun.plan.yaml.file import NotRegular, read_script, read_source
from planrun.records.inputs import read_policy
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from planrun.approval.rules import Decision
    from planrun.model.plan import Plan, Step
    from planrun.plan.yaml.node import Node
    from planrun.settings import Settings

VERSION = 1
KEYS = ("version", "id", "digest", "steps", "approver", "expires", "uses")
MOST_USES = 1_000_000
_HEX = frozenset("0123456789abcdef")
_ID = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_LONGEST = 200  # characters of an id, of an approver's name


class Approval(Record):
    """An approval of one digest.

    `steps`: ids, or `*` for all of them; `expires`: RFC 3339; `uses`: how many runs it serves; `file`: where it
    was read.
    """

    id: str
    digest: str
    steps: tuple[str, ...]
    approver: str
    expires: str
    uses: int
    file: str = ""

    def names(self, step: str) -> bool:
        """Return whether a step is approved; the empty id means the whole plan."""
        return "*" in self.steps or (step != "" and step in self.steps)


def approval_in(data: bytes, path: str) -> Approval:
    """Return the approval in the bytes of a file, called `path` in problems; raises InvalidPlan with all."""
    root, problems = _tree(data, path)
    if root is not None:
        problems += _check(root, path)
    if root is None or problems:
        raise InvalidPlan(in_order(problems), sources={path: data})
    fields: dict[str, Any] = json.loads(data)
    del fields["version"]
    return Approval(**{**fields, "steps": tuple(fields["steps"])}, file=path)


def read_json(path: str, what: str) -> bytes:
    """Return the bytes of a small file that `what` is in; raises InvalidInput."""
    try:
        return read_script(os.path.realpath(path))
    except NotRegular as kind:
        raise InvalidInput(f"cannot read {what} from {path}: it is {kind}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidInput(f"cannot read {what} from {path}: {reason}") from None


def _tree(data: bytes, path: str) -> tuple[Node | None, list[Problem]]:
    try:
        found = json.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        return None, [Problem(code="E004", message="not UTF-8 text", file=path)]
    except json.JSONDecodeError as error:
        message = f"not JSON: {error.msg.lower()}"
        return None, [Problem(code="E106", message=message, file=path, line=error.lineno, col=error.colno)]
    except (RecursionError, ValueError):
        return None, [
            Problem(code="E012", message="nested too deeply, or a number of too many digits", file=path)
        ]
    if not isinstance(found, dict):
        return None, [Problem(code="E101", message="an approval is a JSON object", file=path)]
    root, problems = parse(data, path)  # JSON is YAML, and nodes have places
    return root, problems


def _check(root: Node, path: str) -> list[Problem]:
    problems: list[Problem] = []

    def wrong(code: str, message: str, at: Node, hint: str = "") -> None:
        problems.append(Problem(code=code, message=message, file=path, line=at.line, col=at.col, hint=hint))

    for key in root.value:
        if key not in KEYS:
            wrong("E104", f'unknown key "{key}" in an approval', root.key(key), key_hint(key, KEYS))
    for key in KEYS:
        node = root.get(key)
        if node is None:
            wrong("E102", f'"{key}" is missing in the approval', root)
        elif reason := _CHECKS[key](node):
            wrong("E106", f'"{key}" {reason}', node)
    return problems


def _version(node: Node) -> str:
    fits = node.kind == SCALAR and node.plain and node.value == str(VERSION)
    return "" if fits else f"must be {VERSION}: other versions are not supported"


def _text(node: Node) -> str:
    if node.kind != SCALAR or node.plain:
        return "is a text"
    if not node.value.strip() or len(node.value) > _LONGEST or not node.value.isprintable():
        return f"is a line of 1 to {_LONGEST} characters"
    return ""


def _id(node: Node) -> str:
    return _text(node) or (
        "" if _ID.issuperset(node.value) else "consists of letters, digits, `.`, `_` and `-`"
    )


def _digest(node: Node) -> str:
    fits = node.kind == SCALAR and len(node.value) == 64 and _HEX.issuperset(node.value)
    return "" if fits else "is a SHA-256: 64 hexadecimal digits in lower case"


def _steps(node: Node) -> str:
    if node.kind != SEQUENCE or not node.value or any(_text(item) for item in node.value):
        return 'is a list of ids of steps, or ["*"]'
    names = [item.value for item in node.value]
    if "*" in names and len(names) > 1:
        return 'names steps, or "*" alone'
    return "" if len(set(names)) == len(names) else "names a step twice"


def _expires(node: Node) -> str:
    if node.kind == SCALAR and not node.plain:
        try:
            moment(node.value)
        except ValueError:
            return 'is a time with its zone, such as "2026-01-31T09:30:00Z"'
        return ""
    return 'is a time with its zone, such as "2026-01-31T09:30:00Z"'


def _uses(node: Node) -> str:
    fits = node.kind == SCALAR and node.plain and node.value.isascii() and node.value.isdecimal()
    return (
        "" if fits and len(node.value) < 9 and 0 < int(node.value) <= MOST_USES else "is a number from 1 up"
    )


_CHECKS: dict[str, Callable[[Node], str]] = {
    "version": _version,
    "id": _id,
    "digest": _digest,
    "steps": _steps,
    "approver": _text,
    "expires": _expires,
    "uses": _uses,
}


def moment(text: str) -> datetime:
    """Return an RFC 3339 time; raises ValueError, also for one without a zone."""
    if len(text) < 20 or text[10] not in "Tt":
        raise ValueError(text)
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(text)
    return found.astimezone(UTC)


_MOST = 1000  # files that one pattern may name


class Given(Record):
    """A file from the command line: its name as given, its bytes, and the full id of its commit.

    `ignored`: why the file of the same path in this checkout does not count; empty when it is the same.
    """

    name: str
    data: bytes
    commit: str = ""
    ignored: str = ""


def read_given(name: str, noun: str) -> Given:
    """Return the file that `name` names; `noun` says what is in it. Raises InvalidInput, InvalidPlan."""
    if is_file(name):
        # A policy's problems have codes, as a plan's have; an approval that cannot be read is a wrong command line.
        return Given(
            name=name, data=read_source(name, noun) if noun == "policy" else read_json(name, f"an {noun}")
        )
    commit, path, data = in_commit(name)
    if data is None:
        raise InvalidInput(f"there is no {noun} at {name}")
    return Given(name=name, data=data, commit=commit, ignored=_ignored(path, data))


def all_given(pattern: str, noun: str) -> list[Given]:
    """Return the files that a path names whose last part may be a pattern of `*`, `?` and `[…]`; maybe none.

    A path that is no pattern, or names a file as it stands, is that file. Raises InvalidInput, InvalidPlan.
    """
    folder, last = _parted(pattern)
    if not is_pattern(last) or (is_file(pattern) and os.path.lexists(pattern)):
        return [read_given(pattern, noun)]
    found = _in_folder(folder, last) if is_file(pattern) else _committed(pattern)
    return [read_given(name, noun) for name in _counted(pattern, found)]


def not_committed(pattern: str) -> Iterator[str]:
    """Yield why matching files of this checkout have no effect: the commit lacks them."""
    folder, last = _parted(pattern)
    if is_file(pattern):
        return
    if not is_pattern(last):
        return
    known = {name.partition(":")[2] for name in _committed(pattern)}
    ref, _, path = pattern.partition(":")
    short = ref[:12] if len(ref) >= 40 and ref.isalnum() else ref
    here = _in_checkout(path_from_root(path).rpartition("/")[0])
    for name in _names(here, last):
        inside = f"{folder.partition(':')[2]}/{name}".lstrip("/")
        if inside not in known:
            yield f"{os.path.normpath(os.path.join(here, name))} is not in {short}, and has no effect"


def _parted(pattern: str) -> tuple[str, str]:
    folder, _, last = pattern.rpartition("/")
    if not folder and not is_file(pattern):
        folder, _, last = pattern.rpartition(":")
        folder = f"{folder}:"
    if is_pattern(folder.partition(":")[2] if not is_file(pattern) else folder):
        raise InvalidInput(f"only the last part of a path may be a pattern: {pattern}")
    return folder, last


def is_pattern(text: str) -> bool:
    """Return whether the last part of a path is a pattern."""
    return any(char in text for char in "*?[")


def _counted(pattern: str, found: list[str]) -> list[str]:
    if len(found) > _MOST:
        raise InvalidInput(f"{pattern} names {len(found)} files; at most {_MOST} are read")
    return found


def _in_folder(folder: str, last: str) -> list[str]:
    """Return the files of this checkout that a pattern names; a colon in a name is no commit."""
    found = [os.path.join(folder, name) for name in _names(folder, last)]
    return [name if is_file(name) else f"./{name}" for name in found]


def _names(folder: str, last: str) -> list[str]:
    """Return the matching names in a folder of this checkout; hidden ones only if the pattern starts with a dot."""
    try:
        names = os.listdir(folder or ".")
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot look for {last} in {folder}: {error}") from None
    return sorted(name for name in names if _fits(name, last))


def _fits(name: str, last: str) -> bool:
    return fnmatchcase(name, last) and (last.startswith(".") or not name.startswith("."))


def _committed(pattern: str) -> list[str]:
    folder, last = _parted(pattern)
    ref, _, inside = folder.partition(":")
    start = f"{inside}/" if inside and inside != "/" else ""
    names = [path.rpartition("/")[2] for path in find_entries(f"{ref}:{start}")]
    return [f"{ref}:{start}{name}" for name in sorted(names) if _fits(name, last)]


def _ignored(path: str, data: bytes) -> str:
    """Return why the file of this checkout has no effect, where it differs from the commit."""
    here = _in_checkout(path_from_root(path))
    if not os.path.lexists(here):
        return f"{here} is missing in this checkout, and is in force nevertheless"
    try:
        same = read_json(here, "it") == data
    except (InvalidInput, InvalidPlan):
        same = False
    return "" if same else f"{here} of this checkout differs, and has no effect"


def _in_checkout(path: str) -> str:
    prefix = path_from_root("./")
    return os.path.relpath(path or ".", prefix or ".")


class Ceilings:
    """The ceilings of a run and the bytes of their files, which its folder keeps."""

    def __init__(self) -> None:
        self.known: tuple[Ceiling, ...] = ()
        self.files: dict[str, bytes] = {}  # by sha256

    def add(self, given: Given) -> None:
        """Add a ceiling, once. Raises InvalidPlan for an invalid policy."""
        ceiling = ceiling_in(given)
        if ceiling.sha256 not in self.files:
            self.files[ceiling.sha256] = given.data
            self.known = (*self.known, ceiling)


def ceiling_in(given: Given) -> Ceiling:
    """Return the ceiling that a file holds; raises InvalidPlan."""
    return Ceiling(
        policy=policy_in(given.data, given.name),
        file=given.name,
        sha256=str(sha256(given.data).hexdigest()),
        commit=given.commit,
        ignored=given.ignored,
    )


def ceilings_of(settings: Settings) -> Ceilings:
    """Return the ceilings that the caller names; raises InvalidInput, InvalidPlan."""
    found = Ceilings()
    if settings.policy:
        found.add(read_given(settings.policy, "policy"))
    return found


def restore(ceilings: Ceilings, rundir: str, recorded: Iterable[Mapping[str, Any]]) -> None:
    """Add the recorded ceilings of a run; raises InvalidInput when its copy of one was altered."""
    for known in recorded:
        data = read_policy(rundir, known["sha256"])
        ceilings.add(Given(name=known["file"], data=data, commit=known.get("commit", "")))


def layers_of(plan: Plan, settings: Settings, ceilings: Ceilings | None = None) -> Layers:
    """Return the policies in force for a plan; raises InvalidInput, InvalidPlan for an invalid policy file."""
    found = ceilings or ceilings_of(settings)
    return Layers(plan=plan.policy, file=plan.file, option=settings.auto_approve, ceilings=found.known)


def recorded(layers: Layers) -> dict[str, Any]:
    """Return the policies in force as the first event of a run records them."""
    return {
        "plan": _as_recorded(layers.plan) if layers.plan else None,
        "option": layers.option,
        "ceilings": [
            {
                "file": ceiling.file,
                "sha256": ceiling.sha256,
                "commit": ceiling.commit,
                **_as_recorded(ceiling.policy),
            }
            for ceiling in layers.ceilings
        ],
    }


def _as_recorded(policy: Policy) -> dict[str, Any]:
    return {
        "auto_approve": policy.auto_approve,
        "llm_auto_approve": policy.llm_auto_approve,
        "rules": len(policy.rules),
        "ask_for": policy.ask_for,
    }


def static_decision(step: Step, layers: Layers, context: Mapping[str, Any]) -> Decision:
    """Return the decision about a step from the plan's text; values known only during the run may change it."""
    return decide(facts_of(step, context, as_written(step, layers)), layers)


def facts_of(step: Step, context: Mapping[str, Any], found: Mapping[str, Any]) -> Facts:
    """Return the facts for a decision; `found` are the fields about the action of the step."""
    return Facts(step=step, ref=str(context.get("ref", "")), event=str(context.get("event", "")), **found)
