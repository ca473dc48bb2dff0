"""The bills of materials are CycloneDX 1.6 by its own schema, complete, and the same for the same input."""

from __future__ import annotations

import hashlib
import json
import zipfile
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import pytest

from release import licences, sbom
from release.contents import release, system_packages

if TYPE_CHECKING:
    from pathlib import Path

BROUGHT = ("click", "jsonschema", "attrs")
"""Packages that are there whatever versions this machine has; the locks are tested as a step of `.ci/run`."""
METADATA = """\
Metadata-Version: 2.4
Name: planrun
Requires-Dist: click!=8.4.0,<9,>=8.1
Requires-Dist: Json_Schema[format]<5
Requires-Dist: jsonschema<5,>=4.20; extra == 'mcp'
Requires-Dist: attrs; extra == 'test'
"""
IMAGE = f"sha256:{'1' * 64}"


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel, and locks of what is installed here."""
    for name, brought in {"EXTRAS": BROUGHT, "RUNTIME": ("click",)}.items():
        lock = tmp_path / name
        hashes = "".join([f" \\\n    --hash=sha256:{letter * 64}" for letter in "ba"])
        lines = [f"{each}=={version(each)} ; sys_platform == 'linux'{hashes}\n" for each in brought]
        lock.write_text("".join(lines), "utf-8")
        monkeypatch.setattr(sbom, name, lock)
    known = licences.rules()
    monkeypatch.setattr(licences, "rules", lambda: known)
    path = tmp_path / "planrun-1.2.3-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo("planrun-1.2.3.dist-info/METADATA", (2026, 1, 2, 3, 4, 6)), METADATA)
    return path


def checked(text: str) -> dict[str, Any]:
    """Return a bill of materials that the schema accepts and whose references exist."""
    sbom.check(text)
    found: dict[str, Any] = json.loads(text)
    known = {part["bom-ref"] for part in found["components"]} | {found["metadata"]["component"]["bom-ref"]}
    for edge in found["dependencies"]:
        assert {edge["ref"], *edge["dependsOn"]} <= known
    return found


def test_the_wheel(wheel: Path) -> None:
    """Each locked package is listed with version, licence and hashes; what only an extra brings is optional."""
    text = sbom.of_wheel(wheel)
    found = checked(text)
    subject = found["metadata"]["component"]
    assert (subject["name"], subject["version"]) == ("planrun", "1.2.3")
    assert subject["hashes"][0]["content"] == hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert found["metadata"]["timestamp"] == "2026-01-02T03:04:06Z"
    parts = {part["name"]: part for part in found["components"]}
    assert {name: part["scope"] for name, part in parts.items()} == {
        "click": "required",
        "jsonschema": "optional",
        "attrs": "optional",
    }
    assert parts["click"]["licenses"] == [{"license": {"id": "BSD-3-Clause"}}]
    assert [each["content"] for each in parts["click"]["externalReferences"][0]["hashes"]] == [
        "a" * 64,
        "b" * 64,
    ]
    edges = {edge["ref"]: edge["dependsOn"] for edge in found["dependencies"]}
    assert edges[subject["bom-ref"]] == [parts["click"]["bom-ref"], parts["jsonschema"]["bom-ref"]]
    assert parts["attrs"]["bom-ref"] in edges[parts["jsonschema"]["bom-ref"]]
    assert sbom.of_wheel(wheel) == text


def test_the_image(wheel: Path) -> None:
    """It lists planrun, the Python packages that are in the image, and those of its system."""
    inside = {"planrun": "1.2.3", "click": version("click")}
    contents = {
        "python": inside,
        "system": [["libstdc++6", "14.2.0-19", "amd64"], ["git", "1:2.47.3-0+deb13u1", "amd64"]],
        "distribution": "debian-13",
    }
    found = checked(sbom.of_image(wheel, IMAGE, contents))
    assert found["metadata"]["component"]["type"] == "container"
    assert [part["name"] for part in found["components"]] == ["planrun", "click", "libstdc++6", "git"]
    git = found["components"][-1]
    assert git["purl"] == "pkg:deb/debian/git@1%3A2.47.3-0%2Bdeb13u1?arch=amd64&distro=debian-13"


@pytest.mark.parametrize("inside", [{"click": "0.0.1"}, {"unlocked": "1.0"}])
def test_a_package_that_is_not_the_locks_is_an_error(wheel: Path, inside: dict[str, str]) -> None:
    """An image with another version, or another package, is not what was locked."""
    with pytest.raises(ValueError, match="the lock does not"):
        sbom.of_image(wheel, IMAGE, {"python": inside, "system": [], "distribution": ""})


def test_another_document_is_refused(wheel: Path) -> None:
    """A bill of materials whose fields are not those of the schema is not written."""
    with pytest.raises(ValueError, match="not CycloneDX"):
        sbom.check(sbom.of_wheel(wheel).replace('"purl"', '"url"'))


def test_the_contents_of_a_system_are_read_from_itself() -> None:
    """Where there is dpkg, its packages are listed; the distribution has a name and a number."""
    assert all(len(row) == 3 and all(row) for row in system_packages())
    assert "-" in release() or release() == ""
