"""`python -m release.sbom`: the bill of materials of the wheel or of the container image, as CycloneDX 1.6 in JSON.

    python -m release.sbom wheel dist/planrun-0.1.0-py3-none-any.whl > planrun.cdx.json
    python -m release.sbom image dist/planrun-0.1.0-py3-none-any.whl --digest sha256:… --contents FILE > image.cdx.json

Packages, versions and hashes are those of the locks; licences are those of release.licences. The same wheel and locks
give the same bytes: the time is that of the files in the wheel. FILE is what release/contents.py, run in the image,
printed: a package of it that the lock does not have is an error.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import uuid
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from release.licences import row, rules
from release.locked import EXTRAS, RUNTIME, USER_EXTRAS, installed, packages, plain, required

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from release.locked import Locked

_REQUIRES = re.compile(r"""Requires-Dist: (?P<name>[\w.-]+)[^;]*(?:;.*?extra == ['"](?P<extra>[\w-]+))?""")
_SCHEMA = "http://cyclonedx.org/schema/bom-1.6.schema.json"


def wheel_facts(wheel: Path) -> tuple[str, str, str]:
    """Return the version of a wheel of planrun, its SHA-256, and the time of its files."""
    _name, version, *_tags = wheel.name.split("-")
    with zipfile.ZipFile(wheel) as archive:
        year, month, day, hour, minute, second = max(info.date_time for info in archive.infolist())
    stamp = f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"
    return version, hashlib.sha256(wheel.read_bytes()).hexdigest(), stamp


def licences(text: str) -> list[dict[str, Any]]:
    """Return a licence in the form of CycloneDX."""
    is_one = " " not in text
    return [{"license": {"id": text}}] if is_one else [{"expression": text}]


def component(package: Locked, *, is_optional: bool) -> dict[str, Any]:
    """Return a package of the lock, with the hashes of all its files."""
    return {
        "type": "library",
        "bom-ref": package.purl,
        "name": package.name,
        "version": package.version,
        "scope": "optional" if is_optional else "required",
        "licenses": licences(row(package, rules()).licence),
        "purl": package.purl,
        "externalReferences": [
            {
                "type": "distribution",
                "url": f"https://pypi.org/project/{package.name}/{package.version}/",
                "hashes": [{"alg": "SHA-256", "content": each} for each in package.hashes],
            }
        ],
    }


def dependencies(root: str, locked: dict[str, Locked], direct: Collection[str]) -> list[dict[str, Any]]:
    """Return which package requires which."""
    found = [{"ref": root, "dependsOn": sorted([locked[name].purl for name in direct if name in locked])}]
    for package in locked.values():
        needed = sorted([locked[name].purl for name in required(installed(package)) if name in locked])
        found.append({"ref": package.purl, "dependsOn": needed})
    return found


def direct_ones(wheel: Path) -> set[str]:
    """Return the names that the wheel itself requires, also with an extra that a user can ask for."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith(".dist-info/METADATA")]
        lines = archive.read(name).decode().splitlines()
    found = set()
    for line in lines:
        match = _REQUIRES.match(line)
        if match and (not match["extra"] or match["extra"] in USER_EXTRAS):
            found.add(plain(match["name"]))
    return found


def document(subject: dict[str, Any], stamp: str, parts: list[dict[str, Any]], edges: list[Any]) -> str:
    """Return a bill of materials; its serial number is made from its content."""
    body = {
        "version": 1,
        "metadata": {
            "timestamp": stamp,
            "tools": {
                "components": [{"type": "application", "name": "release.sbom", "publisher": "planrun"}]
            },
            "component": subject,
        },
        "components": parts,
        "dependencies": edges,
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))
    head = {
        "$schema": _SCHEMA,
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
    }
    return json.dumps({**head, **body}, indent=2, ensure_ascii=False) + "\n"


def planrun(wheel: Path) -> dict[str, Any]:
    """Return the wheel as a component."""
    version, digest, _stamp = wheel_facts(wheel)
    return {
        "type": "application",
        "bom-ref": f"pkg:pypi/planrun@{version}",
        "name": "planrun",
        "version": version,
        "licenses": licences("MIT"),
        "purl": f"pkg:pypi/planrun@{version}",
        "hashes": [{"alg": "SHA-256", "content": digest}],
    }


def of_wheel(wheel: Path) -> str:
    """Return the bill of materials of the wheel; what only extras bring is optional."""
    locked, runtime = packages(EXTRAS), packages(RUNTIME)
    subject = planrun(wheel)
    parts = [component(package, is_optional=package.name not in runtime) for package in locked.values()]
    return document(
        subject, wheel_facts(wheel)[2], parts, dependencies(subject["bom-ref"], locked, direct_ones(wheel))
    )


def of_image(wheel: Path, digest: str, contents: dict[str, Any]) -> str:
    """Return the bill of materials of an image; raises ValueError for a package that is not the lock's or planrun."""
    version, _digest, stamp = wheel_facts(wheel)
    known = packages(EXTRAS)
    inside = {name: version for name, version in contents["python"].items() if name != "planrun"}
    for name, there in inside.items():
        if name not in known or known[name].version != there:
            raise ValueError(f"the image has {name} {there}, and the lock does not")
    locked = {name: known[name] for name in sorted(inside)}
    own = planrun(wheel)
    image = {
        "type": "container",
        "bom-ref": "image",
        "name": "planrun",
        "version": version,
        "purl": f"pkg:oci/planrun?tag={version}",
        "hashes": [{"alg": "SHA-256", "content": digest.removeprefix("sha256:")}],
    }
    debs = list(_debs(contents["system"], contents["distribution"]))
    parts = [own, *[component(package, is_optional=False) for package in locked.values()], *debs]
    edges = dependencies(own["bom-ref"], locked, direct_ones(wheel))
    edges.append(
        {"ref": image["bom-ref"], "dependsOn": [own["bom-ref"], *[part["bom-ref"] for part in debs]]}
    )
    return document(image, stamp, parts, edges)


def _debs(packages_there: Iterable[list[str]], distribution: str) -> Iterable[dict[str, Any]]:
    for name, version, architecture in packages_there:
        purl = f"pkg:deb/debian/{name}@{version.replace(':', '%3A').replace('+', '%2B')}?arch={architecture}"
        yield {
            "type": "library",
            "bom-ref": purl,
            "name": name,
            "version": version,
            "purl": f"{purl}&distro={distribution}",
        }


def check(text: str) -> None:
    """Raise ValueError when a text is not CycloneDX 1.6 by its own schema."""
    problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if problem is not None:
        raise ValueError(f"not CycloneDX: {problem}")


def main() -> int:
    """Write the bill of materials that the arguments ask for to stdout."""
    parser = argparse.ArgumentParser(prog="python -m release.sbom")
    parser.add_argument("subject", choices=["wheel", "image"])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--digest", default="", help="of the image: its id, sha256:…")
    parser.add_argument("--contents", type=Path, help="what release/contents.py printed in the image")
    given = parser.parse_args()
    try:
        if given.subject == "wheel":
            text = of_wheel(given.wheel)
        else:
            text = of_image(given.wheel, given.digest, json.loads(given.contents.read_text("utf-8")))
        check(text)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"sbom: {error}\n")
        return 2
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
