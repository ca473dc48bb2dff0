"""docs/reference/, written from the code: every key, field, option and rule, complete and without prose.

    python -m tests.docs.reference    write the pages, as `pytest tests/docs --update-goldens` does

What the pages are written from: the models of the plan language (`tests.docs.keylist`), the JSON Schema of ledger.json
(the same), the command line (`tests.docs.verblist`), and the functions that judge edges, groups and schedules
(`tests.docs.rulebook`). What is said of a key besides, and what holds without it, is taken from docs/plan-language.md.
"""

from __future__ import annotations

from tests.docs import keylist, rulebook, verblist
from tests.docs.pages import DOCS

FOLDER = DOCS / "reference"
MADE = "<!-- Made by `python -m tests.docs.reference`: change what it is made from, and not this page. -->\n"
PAGES = {
    "plan.md": keylist.plan_page,
    "ledger.md": keylist.ledger_page,
    "commands.md": verblist.page,
    "semantics.md": rulebook.page,
}


def generated() -> dict[str, str]:
    """Return each page as it should be, by its name in docs/reference."""
    found = {}
    for name, made in PAGES.items():
        title, _, rest = made().partition("\n")
        found[name] = f"{title}\n\n{MADE}{rest}"
    return found


if __name__ == "__main__":
    for page, text in generated().items():
        (FOLDER / page).write_text(text, "utf-8")
