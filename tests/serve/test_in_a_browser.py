"""`planrun serve` in a real browser: the page follows its run, a button answers, and the console stays silent.

Needs Chromium (Debian: `apt-get install chromium`). Pictures are kept in the folder that `SCREENSHOTS` names.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.serve.browser import CHROMIUM, Browser
from tests.serve.client import Serving
from tests.serve.test_serve import GATED, ME

if TYPE_CHECKING:
    from tests.live.conftest import Going

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="needs Chromium: apt-get install chromium")
KEPT = os.environ.get("SCREENSHOTS", "")


def test_a_page_follows_its_run_and_answers(going: Going, tmp_path: Path) -> None:
    """Rows, head and log change without a reload of ours; what is open stays open; nothing is wider than the window."""
    process = going.starts(GATED)
    run = going.run
    with Serving(going.folder, "--allow-answers") as served, Browser(tmp_path) as browser:
        browser.look(400, 900, "dark")
        browser.go(f"{served.origin}/runs/{run}?token={served.token}")
        browser.until("document.querySelector('tr[data-n=\"0\"]')?.cells[1].innerText === 'running'")
        browser.value("window.mine = true; document.querySelector('details:has(b)').open = true")
        browser.value("document.querySelector('button[value=approve]').click()")
        assert browser.until("document.querySelector('.said')?.innerText") == "publish is approved"
        assert browser.value("location.search.startsWith('?said=')")
        browser.value("window.mine = true; document.querySelector('details:has(b)').open = true")
        (going.folder / "go").touch()
        browser.until("document.querySelector('header').className === 'waiting'")
        assert process.wait() == 5
        browser.until("document.querySelector('tr[data-n=\"0\"]').cells[1].innerText === 'completed'")
        browser.until(
            "document.querySelector('details summary b').className === ''"
        )  # the page was made anew
        assert browser.value("window.mine && document.querySelector('details:has(b)').open")
        assert browser.value("document.documentElement.scrollWidth") == 400
        if KEPT:
            browser.picture(Path(KEPT) / "served-400-dark.png")
        browser.go(f"{served.origin}/runs/{run}/log?step=build")
        browser.until("document.querySelector('pre.log')?.innerText.trim() === 'begun\\nover'")
        browser.go(f"{served.origin}/")
        browser.until("document.querySelector('td .mark')?.innerText.includes('waiting')")
        assert going.answers() == [("publish", "approved", ME)]
        assert browser.said == []
