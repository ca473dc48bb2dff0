"""Cached results at a URL: found by other users, checked, signed, and never needed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from planrun.cli import main
from planrun.errors import InvalidInput
from planrun.store.entries import packed, unpacked
from planrun.store.signing import VARIABLE
from tests.app.test_caching import ran, reasons, run, why

if TYPE_CHECKING:
    from planrun.store.entries import Entry

KEY = "0123456789abcdef"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand where the first user is."""
    go("ada", tmp_path, monkeypatch)


def go(user: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in a user's workspace, whose store is empty."""
    workspace = tmp_path / user / "w"
    (workspace / "src").mkdir(parents=True, exist_ok=True)
    (workspace / "src" / "a").write_text("a\n")
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("PLANRUN_CACHE_DIR", str(tmp_path / user / "cache"))


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store at a URL: `local` is a folder through fsspec."""
    return f"local://{tmp_path}/shared"


def entries(tmp_path: Path) -> list[Path]:
    """Return the stored entries."""
    return sorted((tmp_path / "shared" / "entries").glob("*/*"))


def change(path: Path, **fields: Any) -> None:
    """Write an entry anew with other fields and the right hash, as anyone with access can."""
    entry: Entry = unpacked(path.read_bytes(), path.name)
    path.write_bytes(packed(entry.but(**fields)))


def test_another_user_gets_the_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """A result is restored on another machine, and from then on it is in that user's own store."""
    run(cache_store=url)
    go("bob", tmp_path, monkeypatch)
    assert reasons(run(cache_store=url)) == {"make": "cached", "use": "cached"}
    assert Path("deep/er/link").read_text() == "a\none\n"
    shutil.rmtree("deep")
    assert reasons(run()) == {"make": "cached", "use": "cached"}
    assert not Path("ran").exists()


def test_altered_bytes_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Bytes that do not match their hash are removed, the step runs, and the store has the right ones again."""
    run(cache_store=url)
    for blob in (tmp_path / "shared" / "blobs").glob("*/*"):
        blob.write_bytes(b"x" * blob.stat().st_size)
    go("bob", tmp_path, monkeypatch)
    state = run(cache_store=url)
    assert reasons(state) == {"make": "ran", "use": "ran"}
    assert why(state, "make") == "in the store bytes of a file are gone"
    go("eve", tmp_path, monkeypatch)
    assert reasons(run(cache_store=url)) == {"make": "cached", "use": "cached"}


@pytest.mark.parametrize("scheme", ["local://", ""])
def test_only_signed_results_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    """With a key, results without its signature are not used, whoever wrote them and however right their hash is."""
    url = f"{scheme}{tmp_path}/shared"
    run(cache_store=url)
    go("bob", tmp_path, monkeypatch)
    monkeypatch.setenv(VARIABLE, KEY)
    state = run(cache_store=url)
    assert reasons(state) == {"make": "ran", "use": "ran"}
    where = url if scheme else f"{tmp_path}/shared"
    assert why(state, "make") == f"the result in {where} has no valid signature"
    go("cid", tmp_path, monkeypatch)
    assert reasons(run(cache_store=url)) == {"make": "cached", "use": "cached"}
    for path in entries(tmp_path):
        outputs = unpacked(path.read_bytes(), path.name).outputs
        change(path, outputs=dict.fromkeys(outputs, 666))
    go("dan", tmp_path, monkeypatch)
    assert reasons(run(cache_store=url))["make"] == "ran"
    assert ran().startswith("x")


def test_a_short_key_is_refused(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """A key that can be guessed is an error before anything runs."""
    monkeypatch.setenv(VARIABLE, "secret")
    with pytest.raises(InvalidInput, match="at least 16 characters"):
        run(cache_store=url)
    assert not Path("ran").exists()


def test_a_store_that_does_not_answer(capfd: pytest.CaptureFixture[str]) -> None:
    """The steps run, one warning names the store without its password, and the run succeeds."""
    Path("plan.yml").write_text(
        "version: 1\nsteps:\n  - {id: a, run: echo a > a, produces: a, cache: true}\n"
        "  - {id: b, run: echo b > b, produces: b, cache: true}\n"
    )
    assert main(["run", "--cache-store", "ftp://bob:hunter2@127.0.0.1:9/x"]) == 0
    err = capfd.readouterr().err
    assert err.count("warning: shared cache: ftp://bob:***@127.0.0.1:9/x: ConnectionRefusedError") == 1
    assert "hunter2" not in err


def test_verbs_work_on_it(tmp_path: Path, capsys: pytest.CaptureFixture[str], url: str) -> None:
    """`planrun cache` counts, verifies and prunes a store at a URL, by size and by age; errors are errors there."""
    run(cache_store=url)
    assert main(["cache", "--store", url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["results"] == 2
    assert main(["cache", "prune", "--store", url, "--older-than", "1h", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["entries"] == 0
    (blob, *_) = (tmp_path / "shared" / "blobs").glob("*/*")
    blob.write_text("other")
    assert main(["cache", "verify", "--store", url, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["damaged"] == [f"blobs/{blob.name}"]
    assert main(["cache", "prune", "--store", url, "--max-size", "0", "--json"]) == 0
    assert not entries(tmp_path)
    assert main(["cache", "--store", "ftp://127.0.0.1:9/x"]) == 1
