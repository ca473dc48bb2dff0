"""Compiled plans are kept by content, privately, and never trusted blindly."""

from __future__ import annotations

import marshal
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from planrun.plan import cache
from planrun.plan.load import load, load_bytes
from planrun.plan.packed import pack, unpack
from planrun.sha256 import sha256

if TYPE_CHECKING:
    from collections.abc import Callable

PLAN = b"""\
version: 1
params: {n: {type: integer, default: 3}}
limits: {max_parallel: 2}
steps:
  - id: a
    run: echo ${{ params.n }}
    outputs: {x: string}
    title: "A ${{"
  - id: b
    depends_on: [a]
    condition: step_a_succeeded
    retries: {max: 2, on: [timeout, {exit: [1]}]}
    validate: [{files_exist: [x]}, {that: "steps.a.outputs.x == 'y'"}]
  - id: c
    ask: {question: "Go ${{ params.n }}?", enum: [a, b], default: a, timeout: 1m}
  - id: d
    decide: {question: q, options: [{label: x, when: run.ci}, {label: z, value: [1, 2]}]}
policy: {auto_approve: low, rules: [{deny: {step: "d*", risk: [low, high]}}], decisions: {c: a}}
finally:
  - exec: [ls, "${{ run.id }}"]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a cache directory of its own."""
    monkeypatch.setenv("PLANRUN_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "plans"


def entry(folder: Path) -> Path:
    """Return the only entry of a cache."""
    (found,) = folder.iterdir()
    return found


def refill(found: Path, data: Any) -> None:
    """Put other data into an entry, as whole as one that planrun wrote."""
    payload = marshal.dumps(data)
    found.write_bytes(cache._FORM + sha256(payload).digest() + payload)


def test_packing_and_unpacking_keep_a_plan() -> None:
    """Packing and unpacking change nothing but file and source, which are set again."""
    plan = load_bytes(PLAN, "plan.yml", cache=False)
    data = marshal.loads(marshal.dumps(pack(plan)))
    again = unpack(data, "elsewhere/plan.yml", PLAN)
    assert again == plan.but(file="elsewhere/plan.yml")
    assert repr(again.steps) == repr(plan.steps)


def test_a_second_load_reads_the_entry(folder: Path) -> None:
    """The content of the entry is returned unchanged; the file decides its own name."""
    first = load_bytes(PLAN, "x/plan.yml")
    found = entry(folder)
    assert stat.S_IMODE(found.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert load_bytes(PLAN, "y/plan.yml") == first.but(file="y/plan.yml")
    refill(found, {"plan": pack(first.but(goal="changed")), "warnings": []})
    assert load_bytes(PLAN, "x/plan.yml").goal == "changed"
    assert load_bytes(PLAN, "x/plan.yml", cache=False).goal == ""


def test_other_bytes_and_other_names_are_other_entries(folder: Path) -> None:
    """One changed byte, or another default name, is another plan."""
    load_bytes(PLAN, "plan.yml")
    load_bytes(PLAN + b"#", "plan.yml")
    load_bytes(PLAN, "other.yml")
    assert len(list(folder.iterdir())) == 3


def _become_folder(found: Path) -> None:
    found.unlink()
    found.mkdir()


def _become_pipe(found: Path) -> None:
    found.unlink()
    os.mkfifo(found)


def _become_link(found: Path) -> None:
    found.rename(found.parent.parent / "moved")
    found.symlink_to("../moved")


BROKEN: dict[str, Callable[[Path], object]] = {
    "empty": lambda found: found.write_bytes(b""),
    "cut": lambda found: found.write_bytes(found.read_bytes()[:-1]),
    "one bit": lambda found: found.write_bytes(found.read_bytes()[:-1] + bytes([found.read_bytes()[-1] ^ 1])),
    "another form": lambda found: found.write_bytes(b"planrun compiled plan 0\n" + found.read_bytes()[24:]),
    "no mapping": lambda found: refill(found, [1, 2]),
    "no plan": lambda found: refill(found, {"plan": {}, "warnings": []}),
    "not marshal": lambda found: found.write_bytes(cache._FORM + sha256(b"\xff").digest() + b"\xff"),
    "writable by others": lambda found: found.chmod(0o666),
    "a folder": _become_folder,
    "a pipe": _become_pipe,
    "a link": _become_link,
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_entry_is_no_entry(folder: Path, name: str) -> None:
    """Whatever is wrong with an entry, the plan is read from its file, and where possible the entry is renewed."""
    plan = load_bytes(PLAN, "plan.yml")
    found = entry(folder)
    BROKEN[name](found)
    assert load_bytes(PLAN, "plan.yml") == plan
    if name != "a folder":
        assert stat.S_ISREG(found.lstat().st_mode)
        assert cache.read(found.stem)["plan"] == pack(plan)


def test_an_entry_of_a_checkout_is_ignored(folder: Path) -> None:
    """A cache that was committed, for a folder in the workspace, has other modes than what is written here."""
    load_bytes(PLAN, "plan.yml")
    found = entry(folder)
    for mode in (0o644, 0o755, 0o640, 0o700):
        found.chmod(mode)
        assert cache.read(found.stem) is None, oct(mode)
    found.chmod(0o600)
    assert cache.read(found.stem) is not None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_an_entry_or_folder_of_another_user_is_never_read(folder: Path) -> None:
    """Marshal data of another user could do anything."""
    load_bytes(PLAN, "plan.yml")
    found = entry(folder)
    os.chown(found, 12345, -1)
    assert cache.read(found.stem) is None
    os.chown(found, os.geteuid(), -1)
    assert cache.read(found.stem) is not None
    os.chown(folder, 12345, -1)
    assert cache.read(found.stem) is None


def test_a_folder_that_others_can_write_to_is_not_used(folder: Path) -> None:
    """Neither is it read, nor written."""
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    load_bytes(PLAN, "plan.yml")
    assert list(folder.iterdir()) == []


def test_a_folder_behind_a_link_is_not_used(folder: Path, tmp_path: Path) -> None:
    """The directory itself may not be a symbolic link."""
    (tmp_path / "elsewhere").mkdir()
    folder.parent.mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    load_bytes(PLAN, "plan.yml")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_no_place_for_a_cache_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be written, plans are loaded without a message."""
    (tmp_path / "file").write_bytes(b"")
    for value in (str(tmp_path / "file"), "/proc/nowhere", "/dev/null"):
        monkeypatch.setenv("PLANRUN_CACHE_DIR", value)
        assert load_bytes(PLAN, "plan.yml").name == "plan"


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """PLANRUN_CACHE_DIR, else XDG_CACHE_HOME when it is absolute, else ~/.cache."""
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("PLANRUN_CACHE_DIR", "/own")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache.folder() == "/own/plans"
    monkeypatch.delenv("PLANRUN_CACHE_DIR")
    assert cache.folder() == "/xdg/planrun/plans"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache.folder() == "/home/me/.cache/planrun/plans"


def test_the_cache_stays_small(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond its bound the oldest entries go, half written ones too."""
    monkeypatch.setattr(cache, "MAX_ENTRIES", 3)
    for at in range(5):
        cache.write(f"key{at}", at)
        os.utime(folder / f"key{at}.plan", (at, at))
    (folder / "left.1.tmp").write_bytes(b"")
    os.utime(folder / "left.1.tmp", (0, 0))
    cache.write("last", 9)
    assert sorted(found.name for found in folder.iterdir()) == ["key3.plan", "key4.plan", "last.plan"]


@pytest.mark.usefixtures("folder")
def test_warnings_are_kept_with_the_plan() -> None:
    """A plan out of the cache warns like one that was just read, under the name it was read by."""
    for file in ("a/plan.yml", "b/plan.yml"):
        warnings: list[object] = []
        load_bytes(PLAN, file, warnings=warnings)  # type: ignore[arg-type]  # only looked at by repr
        assert [repr(each).split(", ")[0] for each in warnings] == ["Problem(code='W301'"]
        assert file in repr(warnings)


def test_an_invalid_plan_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    """Only plans without errors are kept."""
    (tmp_path / "bad.yml").write_text("version: 1\nsteps: []\n")
    with pytest.raises(Exception, match="1 problem"):
        load(str(tmp_path / "bad.yml"))
    assert not folder.exists()


def test_an_edit_of_the_compiler_is_noticed() -> None:
    """Every module that compiles keys, kinds or plans is in the stamp, and each name is that of a file."""
    root = Path(cache.__file__).parents[1]
    listed = {folder: set(names.split()) for folder, names in cache._COMPILERS.items()}
    for folder, names in listed.items():
        assert all((root / folder / f"{name}.py").is_file() for name in names)
    for folder in ("plan/compile", "plan/keys", "plan/kinds"):
        assert {path.stem for path in (root / folder).glob("*.py")} - {"__init__"} <= listed[folder]
    assert cache._stamp()
