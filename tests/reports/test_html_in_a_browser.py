"""The HTML report in a real browser: no console message, no request, no accessibility problem, nothing too wide.

Needs Chromium (Debian: `apt-get install chromium`) and axe-core (`npm install axe-core`, then
`AXE_JS=node_modules/axe-core/axe.min.js`; .ci/run takes it from .ci/axe.txt); a test that lacks one of them is
skipped and says which. Screenshots are kept in the folder that `SCREENSHOTS` names.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from planrun.reports.html.comparison import Baseline
from planrun.reports.write import Source, rendered
from tests.app.replans import REPAIRED, Shop, newest
from tests.conftest import LIMIT
from tests.reports.runs import HEAD, Story, mixed_story, step, waiting_run

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
AXE = os.environ.get("AXE_JS", "")
KINDS = ("mixed", "waiting", "many", "replanned")
SCHEMES = {"light": (), "dark": ("--force-dark-mode",)}
# A page that is to be driven by a script has no policy any more; the one that is shown to the server has.
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
AUDIT = """
<script>{axe}</script>
<script>
axe.run({what}).then(found => {{
  const data = found.violations.map(each => [each.id, each.impact, each.nodes[0].html, each.nodes[0].failureSummary]);
  document.documentElement.setAttribute("data-audit", JSON.stringify(data));
}});
</script>
"""
WIDTH = """
<script>
const frame = document.querySelector("iframe");
frame.onload = () => {
  const root = frame.contentDocument.documentElement;
  document.documentElement.setAttribute("data-width", Math.max(root.scrollWidth, root.clientWidth));
};
</script>
"""

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="needs Chromium: apt-get install chromium")


@pytest.fixture(params=KINDS)
def page(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Give the test the page of one kind of run after the other."""
    if request.param == "replanned":
        shop = Shop(tmp_path, monkeypatch)
        shop.run(REPAIRED)
        rundir, state = newest(shop.folder)
    else:
        story = {"mixed": mixed_story, "waiting": waiting_run, "many": many}[request.param](tmp_path)
        rundir, state = str(tmp_path), story.state
    known = Baseline(
        run="20260130-090000-aaaaaa", seconds={"build": 2.0}, endings={"build": ("completed",)}, runs=1
    )
    return rendered(Source(state=state, rundir=rundir, head=HEAD, baseline=known), "html").decode()


def many(rundir: Path) -> Story:
    """Return a run of 300 steps, one of which failed."""
    names = [f"step-{number}" for number in range(300)]
    story = Story(
        rundir,
        *[step(name, *names[number // 2 : number // 2 + bool(number)]) for number, name in enumerate(names)],
    )
    for name in names:
        story.run(name, "failed" if name == "step-150" else "completed", log=b"a line\n")
    story.end(1)
    return story


def browse(url: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Open a page in a browser of its own, which resolves no name but that of this machine."""
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--hide-scrollbars",
        "--disable-component-update", "--no-first-run", "--disable-features=NetworkTimeServiceQuerying",
        f"--user-data-dir={folder / 'profile'}",
        "--enable-logging=stderr", "--virtual-time-budget=60000", *words, url,
    ]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, encoding="utf-8", errors="replace", timeout=LIMIT, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


def audited(text: str, scripts: str, folder: Path, *words: str) -> dict[str, str]:
    """Return the attributes that scripts set on the root of a page to which they were added."""
    path = folder / "audited.html"
    path.write_text(POLICY.sub("", text).replace("</body>", f"{scripts}</body>"), encoding="utf-8")
    done = browse(path.as_uri(), folder, "--dump-dom", *words)
    return attributes(done.stdout)


def attributes(text: str) -> dict[str, str]:
    """Return the data on the root of a page."""
    root = re.search(r"<html[^>]*>", text)
    assert root, text[:500]
    return {name: html.unescape(value) for name, value in re.findall(r'data-(\w+)="([^"]*)"', root[0])}


def asked_for(page: str, folder: Path) -> tuple[list[str], str]:
    """Open a page that stands on loopback; return what was asked for, of any machine, and what the browser said."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.headers['Host'].partition(':')[0]}{self.path}")
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_words: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        rule = f"--host-resolver-rules=MAP * 127.0.0.1:{server.server_port}"
        done = browse(f"http://127.0.0.1:{server.server_port}/report.html", folder, "--dump-dom", rule)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert "</html>" in done.stdout
    return asked, done.stderr


def test_nothing_is_loaded_and_nothing_is_said(page: str, tmp_path: Path) -> None:
    """The browser asks for the page alone, and its console stays empty."""
    asked, said = asked_for(page, tmp_path)
    assert asked == ["127.0.0.1/report.html"]
    assert "CONSOLE" not in said


def test_a_picture_from_elsewhere_would_be_found(tmp_path: Path) -> None:
    """What the test above looks for is seen where it happens, and the policy of a page forbids it."""
    story = mixed_story(tmp_path)
    picture = '<img src="http://example.com/x.png"></body>'
    page = (
        rendered(Source(state=story.state, rundir=str(tmp_path)), "html").decode().replace("</body>", picture)
    )
    asked, _ = asked_for(POLICY.sub("", page), tmp_path)
    assert "example.com/x.png" in asked
    asked, said = asked_for(page, tmp_path)
    assert asked == ["127.0.0.1/report.html"]
    assert "CONSOLE" in said


# Colours do not change widths: each is looked at once.
@pytest.mark.parametrize(("scheme", "width"), [("light", 400), ("dark", 1400)])
def test_it_fits_the_window(
    page: str, scheme: str, width: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Nothing stands outside of a narrow or a wide window; parts that are wider have a bar of their own."""
    # A headless window is at least 500 pixels wide: the page stands in a frame, whose policy still is its own.
    frame = f'<iframe srcdoc="{html.escape(page)}" width="{width}" height="3000" style="border:0"></iframe>'
    (tmp_path / "framed.html").write_text(
        f"<!DOCTYPE html><body style='margin:0'>{frame}{WIDTH}", encoding="utf-8"
    )
    kept = Path(os.environ.get("SCREENSHOTS", str(tmp_path)))
    shot = kept / f"{request.node.callspec.params['page']}-{width}-{scheme}.png"
    words = (f"--window-size={max(width, 500)},3000", *SCHEMES[scheme])
    url = (tmp_path / "framed.html").as_uri()
    browse(url, tmp_path, f"--screenshot={shot}", *words)
    assert shot.stat().st_size > 10_000
    done = browse(url, tmp_path, "--dump-dom", *words)
    assert attributes(done.stdout) == {"width": str(width)}


@pytest.mark.skipif(
    not Path(AXE).is_file(), reason="needs axe-core: npm install axe-core, and its axe.min.js in AXE_JS"
)
# Its 300 equal steps take axe ten seconds, and the colours of a step are those of the other pages.
@pytest.mark.parametrize(
    ("page", "scheme"),
    [*((kind, "light") for kind in KINDS), *((kind, "dark") for kind in KINDS if kind != "many")],
    indirect=["page"],
)
def test_axe_finds_nothing(page: str, scheme: str, tmp_path: Path) -> None:
    """Names, roles, order of headings and keyboard access are as axe-core asks, and contrast in light and dark."""
    what = {"light": "", "dark": '{runOnly: {type: "rule", values: ["color-contrast"]}}'}[scheme]
    scripts = AUDIT.format(axe=Path(AXE).read_text("utf-8"), what=what)
    found = audited(page, scripts, tmp_path, *SCHEMES[scheme])
    assert json.loads(found["audit"]) == []


@pytest.mark.skipif(
    not Path(AXE).is_file(), reason="needs axe-core: npm install axe-core, and its axe.min.js in AXE_JS"
)
@pytest.mark.parametrize("page", ["waiting"], indirect=True)
def test_axe_would_find_something(page: str, tmp_path: Path) -> None:
    """A heading that is skipped and a table without names are found: the audit above can fail."""
    broken = page.replace('role="img" aria-label=', 'role="img" data-was=').replace('lang="en"', "")
    found = audited(broken, AUDIT.format(axe=Path(AXE).read_text("utf-8"), what=""), tmp_path)
    assert "html-has-lang" in [each[0] for each in json.loads(found["audit"])]
