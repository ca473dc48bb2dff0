"""The section of a code in docs/errors.md or docs/lint.md: its text and its examples.

The wheel has both files inside this package; in a source tree they are in docs/ beside it.
"""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

from planrun.errors import InvalidInput
from planrun.model.record import Record
from planrun.plan.problems import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.resources.abc import Traversable
    from typing import Any

SEVERITIES = {"E": "error", "W": "warning", "L": "advice"}
_EXAMPLE = re.compile(
    r"^<!-- (wrong|advice|instead): \w+ -->\n```\w+\n(.*?)^```\n?", re.MULTILINE | re.DOTALL
)
_LABEL = re.compile(r"^Instead:\n", re.MULTILINE)


class Page(Record):
    """What is known about a code.

    `text`: its description in markdown; `wrong`: examples that have the problem; `instead`: the same without it.
    """

    code: str
    title: str
    text: str
    wrong: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()

    @property
    def severity(self) -> str:
        """error, warning or advice."""
        return SEVERITIES[self.code[0]]

    @property
    def silence(self) -> str:
        """How findings with this code are suppressed, in markdown; "" for errors, which cannot be."""
        code = self.code
        if self.severity == "error":
            return ""
        if self.severity == "warning":
            return (
                f"`planrun lint` leaves the warning out with `--ignore {code}`, or with "
                f"`x-lint: {{ignore: [{code}]}}` in the plan. `planrun validate` always shows it; "
                "without `--strict` it does not change the exit code."
            )
        return (
            f"Write `x-lint: {{ignore: [{code}]}}` in the plan, where reviewers see it, "
            f"or call `planrun lint --ignore {code}`."
        )

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {
            "code": self.code,
            "title": self.title,
            "severity": self.severity,
            "text": self.text,
            "wrong": list(self.wrong),
            "instead": list(self.instead),
            "silence": self.silence or None,
        }


def looks_like_a_code(word: str) -> bool:
    """Whether a word is written as codes are: E, W or L, and two to four digits."""
    return word[:1].upper() in SEVERITIES and word[1:].isdecimal() and 3 <= len(word) <= 5


def find_page(word: str, titles: Mapping[str, str]) -> Page:
    """Return the page of a code in upper or lower case; `titles`: all codes. Raises InvalidInput."""
    code = word.upper()
    if code not in titles:
        hint = did_you_mean(code, titles)
        raise InvalidInput(
            f'unknown code "{code}"' + (f"; {hint}" if hint else "") + "\n  all codes: planrun explain --list"
        )
    name = _file_of(code)
    section = re.search(rf"^### {code}\n(.*?)(?=^##|\Z)", _text(name), re.MULTILINE | re.DOTALL)
    if section is None:
        raise InvalidInput(f"{name} has no page of {code}: planrun is not installed completely")
    examples: dict[str, list[str]] = {"wrong": [], "advice": [], "instead": []}
    for mark, text in _EXAMPLE.findall(section[1]):
        examples[mark].append(text)
    text = _LABEL.sub("", _EXAMPLE.sub("", section[1]))
    return Page(
        code=code,
        title=titles[code],
        text=re.sub(r"\n{3,}", "\n\n", text).strip(),
        wrong=(*examples["wrong"], *examples["advice"]),
        instead=tuple(examples["instead"]),
    )


def _file_of(code: str) -> str:
    return "lint.md" if code.startswith("L") else "errors.md"


def uri_of_code(code: str) -> str:
    """Return the URI of the section about a code in the installed page; empty where the page is in no folder."""
    path = Path(str(_source(_file_of(code))))
    return f"{path.absolute().as_uri()}#{code.lower()}" if path.is_file() else ""


def _source(name: str) -> Traversable:
    package = files("planrun")
    source = package / "codes" / name
    # In a source tree the pages stand in docs.
    return source if source.is_file() else Path(str(package)).parent / "docs" / name


def _text(name: str) -> str:
    source = _source(name)
    try:
        return source.read_text("utf-8")
    except OSError as error:
        raise InvalidInput(f"the page is not installed: {source}: {error.strerror}") from None
