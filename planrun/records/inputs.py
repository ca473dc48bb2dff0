"""The inputs that a run keeps copies of: later versions of its plan, scripts of its steps, policies."""

from __future__ import annotations

import os

from planrun.errors import InvalidInput, RecordsLost
from planrun.folders import make_private, write_atomically
from planrun.records.rundir import FILES, PLAN, SCRIPTS, write_new
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from planrun.model.plan import Plan


def add_scripts(path: str, contents: Mapping[str, bytes]) -> tuple[str, ...]:
    """Keep scripts of a run by their sha256; return the names that must be synced. Raises RecordsLost."""
    return _add(os.path.join(path, SCRIPTS), contents)


def add_files(path: str, files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Keep the files of plans that a run's plan uses by their sha256, as scripts are kept."""
    return _add(os.path.join(path, FILES), {str(sha256(data).hexdigest()): data for data in files.values()})


def file_of(path: str, digest: str) -> str:
    """Return where a run keeps a file of a plan that its plan uses."""
    return os.path.join(path, FILES, digest)


def _add(folder: str, contents: Mapping[str, bytes]) -> tuple[str, ...]:
    names = []
    try:
        make_private(folder)
        for digest, data in contents.items():
            name = os.path.join(folder, digest)
            if os.path.lexists(name):  # of an earlier version, or partial: it is replaced
                os.unlink(name)
            write_new(name, data)
            os.chmod(name, 0o400)
            names.append(name)
    except OSError as error:
        raise RecordsLost(f"the records cannot be written: {folder}: {error.strerror}") from None
    return (*names, folder)


def plan_file(version: int) -> str:
    """Return the name of a run's copy of its plan; the first version has none."""
    return PLAN if version == 1 else f"plan.v{version}.yml"


def add_plan(path: str, version: int, plan: bytes) -> None:
    """Keep a later version of a run's plan; on return its bytes and its name survive a power cut."""
    name = os.path.join(path, plan_file(version))
    try:
        write_atomically(name, plan, mode=0o600, sync=True)
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise RecordsLost(f"the records cannot be written: {name}: {error.strerror}") from None


def may_say(path: str, word: bytes, plan: Plan | None) -> bool:
    """Whether a word occurs in the given plan of a run or, without one, in any recorded plan: a cheap check."""
    from planrun.opening import read_record  # most runs read none

    if plan is not None:
        return any(word in data for data in (plan.source, *plan.files.values()))
    try:
        names = [name for name in os.listdir(path) if name.startswith("plan.") and name.endswith(".yml")]
        if os.path.isdir(files := os.path.join(path, FILES)):
            names += [os.path.join(FILES, name) for name in os.listdir(files)]
        for name in names:
            if word in read_record(os.path.join(path, name)):
                return True
    except OSError:  # their readers report that
        pass
    return False


def add_policy(path: str, digest: str, data: bytes) -> None:
    """Keep a policy of a run by the sha256 of its bytes; raises RecordsLost."""
    name = os.path.join(path, f"policy.{digest}.yml")
    try:
        if not os.path.lexists(name):
            write_new(name, data, sync=True)
    except OSError as error:
        raise RecordsLost(f"the records cannot be written: {name}: {error.strerror}") from None


def read_policy(path: str, digest: str) -> bytes:
    """Return a policy of a run; raises InvalidInput when it is gone or was altered."""
    from planrun.opening import read_record  # most runs read none

    name = os.path.join(path, f"policy.{digest}.yml")
    try:
        data = read_record(name)
    except OSError as error:
        raise InvalidInput(f"the run's copy of its policy cannot be read: {name}: {error.strerror}") from None
    if sha256(data).hexdigest() != digest:
        raise InvalidInput(f"the run's copy of its policy was altered: {name}; start a new run")
    return data
