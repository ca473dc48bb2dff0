"""The outputs of a step: the file that `$PLANRUN_OUTPUT` names, typed by the step's `outputs`.

The file holds `name=value` lines and `name<<WORD` … `WORD` blocks; a block keeps its lines as they are,
without the last newline.

The outputs of the plan itself are evaluated when all its steps have ended.
"""

from __future__ import annotations

import os
from stat import S_ISREG  # os has loaded it already

from planrun.errors import EvaluationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.model.plan import Plan
    from planrun.ports import Masks

MAX_BYTES = 1 << 20  # of one attempt's file
SCRIPT = ".script"  # suffix of a script's file, after the name of the outputs
PROGRESS = ".progress"  # suffix of the file in which a step reports its progress
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class OutputError(Exception):
    """The outputs of a step differ from its declaration; the message is one line for the user."""


def read_outputs(
    path: str, declared: Mapping[str, dict[str, Any]], masks: Masks | None = None
) -> dict[str, Any]:
    """Return the typed outputs of an attempt from the file at `path`, which may be missing; values unmasked.

    Raises OutputError for a broken file, an undeclared or missing name, or a value of another type; quotes of the
    file are masked.
    """
    text = _read(path)
    if not text and not declared:
        return {}
    try:
        return _typed(text, declared)
    except OutputError:
        if masks is None:
            raise
    # Messages truncate values, and half of a secret cannot be recognized: mask before truncation.
    _typed(masks.mask_text(text), declared)
    raise OutputError("its outputs do not match their declaration; the details are masked")


def _typed(text: str, declared: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    texts = parse_outputs(text)
    for name in texts:
        if name not in declared:
            raise OutputError(f'undeclared output "{name}"; add `outputs: {{{name}: ...}}`')
    values: dict[str, Any] = {}
    if not declared:
        return values
    from planrun.values import read_value  # loaded for steps with outputs only

    for name, schema in declared.items():
        if name in texts:
            try:
                values[name] = read_value(schema, texts[name])
            except ValueError as error:
                raise OutputError(f'the output "{name}" {error}') from None
        elif "default" in schema:
            values[name] = schema["default"]
        else:
            raise OutputError(f'it did not write its output "{name}"')
    return values


def forget_outputs(path: str) -> None:
    """Remove the files of an attempt, which may contain secrets; files that the step put in their place stay."""
    for name in (path, path + SCRIPT, path + PROGRESS):
        try:
            os.unlink(name)
        except OSError:
            continue


def keep_outputs(path: str) -> None:
    """Restrict the unread file of an attempt to its owner; most attempts have none."""
    try:
        fd = os.open(path, _READ)
    except OSError:
        return
    _leave_to_owner(fd)
    os.close(fd)


def _leave_to_owner(fd: int) -> None:
    """Remove the permissions of other users: the step made the file with its own umask."""
    try:
        mode = os.fstat(fd).st_mode
        if S_ISREG(mode) and mode & 0o077:
            os.fchmod(fd, 0o600)
    except OSError:  # a file system without modes
        return


def forget_all_outputs(folder: str) -> None:
    """Remove the files of all attempts of a run, which was killed before they were read."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        forget_outputs(os.path.join(folder, name))


def _read(path: str) -> str:
    try:
        fd = os.open(path, _READ)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise OutputError(f"its outputs cannot be read: {error.strerror}") from None
    _leave_to_owner(fd)
    try:
        if os.fstat(fd).st_size > MAX_BYTES:
            raise OutputError("its outputs are larger than 1 MiB")
        data = os.read(fd, MAX_BYTES + 1)
    except OSError as error:  # a folder, or a pipe without a writer
        raise OutputError(f"its outputs cannot be read: {error.strerror}") from None
    finally:
        os.close(fd)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise OutputError("its outputs are UTF-16; write them as UTF-8")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise OutputError(f"its outputs are not UTF-8: byte {error.start}") from None


def parse_outputs(text: str) -> dict[str, str]:
    """Return the text of each name; the last of several values counts. Raises OutputError naming the line."""
    found: dict[str, str] = {}
    lines = text.split("\n")
    position = 0
    while position < len(lines):
        line = lines[position].removeprefix("\ufeff")  # each program that appends may write one
        position += 1
        if not line.strip():
            continue
        name, block, word = line.partition("<<")
        if block and "=" not in name:
            position = _block(lines, position, name.strip(), word.strip(), found)
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise OutputError(f"line {position} of its outputs is not name=value")
        found[name.strip()] = value.removesuffix("\r")
    return found


def _block(lines: list[str], start: int, name: str, word: str, found: dict[str, str]) -> int:
    if not word or not name:
        raise OutputError(f"line {start} of its outputs is not name<<WORD")
    is_windows = lines[start - 1].endswith("\r")  # then all line ends of the block are
    for position in range(start, len(lines)):
        if lines[position] in (word, f"{word}\r"):
            block = lines[start:position]
            found[name] = "\n".join([row.removesuffix("\r") for row in block] if is_windows else block)
            return position + 1
    raise OutputError(f'the output "{name}" has no closing {word}')


def evaluated(plan: Plan, scope: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the outputs by name, and why others could not be evaluated; "" when all could.

    `scope`: the names that expressions of the plan can read.
    """
    from planrun.expressions.render import render  # few plans have outputs

    values: dict[str, Any] = {}
    wrong: list[str] = []
    for name, template in plan.outputs.items():
        try:
            values[name] = render(template, scope)
        except EvaluationError as error:
            from planrun.plan.yaml.document import parse  # after errors only

            root, _ = parse(plan.source, plan.file) if plan.source else (None, None)
            listed = root.get("outputs") if root is not None else None
            node = listed.get(name) if listed is not None else None
            place = f"{plan.file}:{node.line}:{node.col}" if node is not None else plan.file
            wrong.append(f'{place}: the output "{name}" of the plan: {error}')
    return values, "; ".join(wrong)
