"""`python -m release.notes vX.Y.Z`: the section of a version in CHANGELOG.md, for the release's page.

Exit code 2 when the tag, `planrun.__version__` and the newest section with a number are not the same version, when
the section is empty or has no date, or when entries still stand under Unreleased.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from planrun import __version__

ROOT = Path(__file__).parents[1]
_SECTION = re.compile(r"^## \[([^]]+)\](?: - (\d{4}-\d\d-\d\d))?$", re.MULTILINE)


def notes(tag: str, version: str, changelog: str) -> str:
    """Return the text of the version's section; raises ValueError with what is wrong."""
    if tag != f"v{version}":
        raise ValueError(f"the tag is {tag}, and planrun.__version__ is {version}")
    parts = _SECTION.split(changelog)[1:]
    sections = {parts[at]: (parts[at + 1], parts[at + 2].strip()) for at in range(0, len(parts), 3)}
    _date, unreleased = sections.pop("Unreleased", ("", ""))
    if unreleased:
        raise ValueError(f"CHANGELOG.md has entries under Unreleased; move them to [{version}]")
    if version not in sections or next(iter(sections)) != version:
        raise ValueError(f"CHANGELOG.md has no section [{version}] at its top")
    date, text = sections[version]
    if not date or not text:
        raise ValueError(f"the section [{version}] of CHANGELOG.md has no {'entries' if date else 'date'}")
    return text + "\n"


def main() -> int:
    """Print the notes of the version that a tag names."""
    try:
        text = notes(sys.argv[1], __version__, (ROOT / "CHANGELOG.md").read_text("utf-8"))
    except IndexError:
        sys.stderr.write("usage: python -m release.notes vX.Y.Z\n")
        return 2
    except ValueError as error:
        sys.stderr.write(f"release: {error}\n")
        return 2
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
