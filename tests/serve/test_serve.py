"""`planrun serve`: a real server, a real HTTP client, and runs of other processes."""

from __future__ import annotations

import os
import pwd
import re
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from lxml import html

from tests.live.conftest import Going, until
from tests.serve.client import Serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ME = pwd.getpwuid(os.geteuid()).pw_name
WAIT = "until [ -e {} ]; do sleep 0.05; done"
ENDED = """\
version: 1
name: ended
steps:
  - id: build
    run: |
      echo '<script>alert(1)</script>'
      mkdir -p dist
      echo content > dist/a.txt
      echo c > dist/c.txt
    produces: [dist/a.txt, dist/c.txt]
  - {id: bad, run: "echo no >&2; exit 3"}
"""
GATED = f"""\
version: 1
name: gated
policy: {{auto_approve: high, rules: [{{require: {{step: publish}}}}]}}
steps:
  - {{id: build, run: "echo begun; {WAIT.format("go")}; echo over"}}
  - {{id: publish, run: echo published}}
  - id: where
    decide: {{question: Which region?, options: [{{label: Europe, value: eu}}, {{label: US, value: us}}]}}
"""
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the tests a folder with a run that failed, and a file that is nobody's business."""
    folder = tmp_path_factory.mktemp("ended")
    (folder / "plan.yml").write_text(ENDED)
    (folder / "outside").write_text("not to be served")
    subprocess.run(
        [sys.executable, "-m", "planrun", "run", "plan.yml"], cwd=folder, capture_output=True, check=False
    )
    return folder


@pytest.fixture(scope="module")
def served(ended: Path) -> Iterator[Serving]:
    """Give the tests a read-only server of it."""
    with Serving(ended) as found:
        yield found


@pytest.fixture
def run(ended: Path) -> str:
    """Give the test the id of the run."""
    (found,) = (ended / ".planrun" / "runs").iterdir()
    return found.name


def test_only_the_token_opens_a_page(served: Serving, run: str) -> None:
    """Without token or cookie nothing is shown; the token becomes a cookie of this port that no other site sends."""
    host = {"Host": f"127.0.0.1:{served.port}"}
    for headers in (
        host,
        {**host, "Cookie": f"planrun_{served.port}=wrong"},
        {**host, "Cookie": f"planrun={served.token}"},
        {**host, "Authorization": f"Bearer {served.token}"},
    ):
        for path in (
            "/",
            f"/runs/{run}",
            "/events",
            "/live.js",
            f"/runs/{run}/report/junit.xml",
            "/?token=wrong",
        ):
            reply = served.get(path, headers)
            assert reply.status == 403, path
            assert run not in reply.text
            assert served.token not in reply.text
    opened = served.get(f"/?token={served.token}", host)
    assert opened.status == 200
    assert opened.headers["Set-Cookie"] == f"{served.cookie}; Path=/; HttpOnly; SameSite=Strict"
    assert 'content="0; url=/"' in opened.text
    assert served.token not in opened.text
    elsewhere = served.get(f"//example.com/?token={served.token}", host)
    assert 'url=/example.com/"' in elsewhere.text
    listed = served.get("/")
    assert listed.status == 200
    assert run in listed.text
    assert "Read-only" in listed.text


def test_other_names_and_other_sites_are_refused(served: Serving, run: str) -> None:
    """A name that was made to point here gets nothing (DNS rebinding); nor does a page of another site."""
    good = {"Host": f"localhost:{served.port}", "Cookie": served.cookie}
    assert served.get("/", good).status == 200
    for host in (
        "evil.example",
        f"evil.example:{served.port}",
        "127.0.0.1",
        f"127.0.0.1:{served.port + 1}",
        "",
    ):
        assert served.get(f"/runs/{run}", {**good, "Host": host}).status == 421
    assert served.get("/", {"Cookie": served.cookie}).status == 421
    for origin in ("http://evil.example", "null", f"https://localhost:{served.port}", "http://127.0.0.1:1"):
        assert served.get("/", {**good, "Origin": origin}).status == 403
        assert served.post(f"/runs/{run}/cancel", {}, {**good, "Origin": origin}).status == 403
    with socket.socket() as other:  # it listens on 127.0.0.1 and on no other address
        assert other.connect_ex(("127.0.0.2", served.port)) != 0


def test_every_response_has_a_strict_policy(served: Serving, run: str) -> None:
    """Scripts are this server's, styles are known by hash, forms go nowhere in a read-only server."""
    pages = ("/", f"/runs/{run}", f"/runs/{run}/log?step=build", "/live.js", "/nowhere")
    for path in pages:
        reply = served.get(path)
        for name, value in HEADERS.items():
            assert reply.headers[name] == value, path
        policy = reply.headers["Content-Security-Policy"]
        assert re.fullmatch(
            r"default-src 'none'; script-src 'self'; style-src 'sha256-[\w+/=]{44}'; connect-src 'self'; "
            r"form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
            policy,
        )
        assert "Python" not in reply.headers["Server"]
    page = served.get(f"/runs/{run}").text
    assert "<form" not in page
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert 'http-equiv="refresh"' not in page  # the run is over
    assert "<script>alert" not in served.get(f"/runs/{run}/log?step=build").text


def test_a_read_only_server_takes_no_form(served: Serving, run: str) -> None:
    """Whatever the form has, without --allow-answers it is refused."""
    for path in (f"/runs/{run}/cancel", f"/runs/{run}/answer"):
        reply = served.post(path, {"csrf": served.token, "verb": "approve"})
        assert reply.status == 403
        assert "read-only" in reply.text


def test_nothing_outside_of_the_run_is_served(served: Serving, run: str, ended: Path) -> None:
    """Paths, encodings and numbers lead to no other file; a file that is not what was recorded is not sent."""
    for path in (
        "/../plan.yml", "/%2e%2e/plan.yml", "/runs/..", "/runs/%2e%2e%2fhistory", f"/runs/{run}/..", f"/runs/{run[:8]}",
        "/runs/last", f"/runs/{run}/report/../../plan.yml", f"/runs/{run}/report/..%2f..%2fplan.yml",
        f"/runs/{run}/report/ledger.jsonl", f"/runs/{run}/file/99", f"/runs/{run}/file/-1",
        f"/runs/{run}/file/..%2foutside",
        f"/runs/{run}/file/dist%2fa.txt", f"/runs/{run}/log?step=../../plan.yml",
        f"/runs/{run}/log?step=build&attempt=9",
        f"/runs/{run}/log/raw?step=%2fetc%2fpasswd", "/runs/x%00y", "//etc/passwd", "/live.js/..%2freport.css",
    ):  # fmt: skip
        reply = served.get(path)
        assert reply.status == 404, path
        assert "version: 1" not in reply.text
        assert "not to be served" not in reply.text
    first = served.get(f"/runs/{run}/file/0")
    assert (first.status, first.data) == (200, b"content\n")
    assert first.headers["Content-Type"] == "application/octet-stream"
    assert first.headers["Content-Disposition"] == "attachment; filename*=UTF-8''a.txt"
    assert first.headers["Content-Security-Policy"] == "sandbox; default-src 'none'"
    other = ended / "dist" / "c.txt"
    other.write_text("d\n")
    assert served.get(f"/runs/{run}/file/1").status == 409
    other.unlink()
    other.symlink_to(ended / "outside")
    assert served.get(f"/runs/{run}/file/1").status == 404
    report = served.get(f"/runs/{run}/report/junit.xml")
    assert report.status == 200
    assert b"<testsuites" in report.data
    raw = served.get(f"/runs/{run}/log/raw?step=build")
    assert raw.data == b"<script>alert(1)</script>\n"
    assert raw.headers["Content-Type"] == "application/octet-stream"


def test_two_readers_follow_a_run_and_a_slow_one_stops_neither(going: Going) -> None:
    """Rows, the head and lines of a log come as they happen; a reader that takes nothing blocks nobody."""
    process = going.starts(GATED)
    run = going.run
    with Serving(going.folder) as served:
        slow = [served.connect("GET", f"/runs/{run}/events") for _ in range(5)]  # nobody reads these
        one, two = (served.events(f"/runs/{run}/events") for _ in range(2))
        log = served.events(f"/runs/{run}/log/events?step=build")
        assert next(log) == ("begin", None)
        assert next(log) == ("lines", ["begun"])
        for events in (one, two):
            name, data = next(events)
            assert name == "now"
            assert data["status"] == "running"
            assert [row[2] for row in data["rows"]] == ["running", "waiting", "waiting"]
        assert 'http-equiv="refresh"' in served.get(f"/runs/{run}").text  # for browsers without scripts
        (going.folder / "go").touch()
        assert next(log) == ("lines", ["over"])
        assert next(log) == ("end", None)
        for events in (one, two):
            seen: list[list[object]] = []
            names = set()
            for name, data in events:
                names.add(name)
                seen += data["rows"] if name == "now" else []
                if name == "page" and [0, "✓", "completed"] in [row[:3] for row in seen]:
                    break
            assert names == {"now", "page"}
        assert process.wait() == 5
        assert "waiting" in served.get("/").text
        for each in slow:
            each.close()


def test_forms_answer_as_the_verbs_do(going: Going) -> None:
    """With --allow-answers a form approves, decides and cancels, by whom is recorded; a wrong form does nothing."""
    going.starts(GATED)
    run = going.run
    with Serving(going.folder, "--allow-answers", "--by", "release team") as served:
        page = served.get(f"/runs/{run}").text
        csrf = served.csrf(run)
        form = next(iter(html.document_fromstring(page).iterfind(".//article[@class='gate']")))
        shown = " ".join("".join([str(text) for text in form.itertext()]).split())
        for fact in ("publish needs approval", "Why", "Risk", "Digest", "It would run"):
            assert shown.index(fact) < shown.index("Approve publish"), fact
        buttons = form.findall(".//button")
        assert [(each.get("value"), each.get("class")) for each in buttons] == [
            ("approve", "yes"),
            ("reject", "no"),
        ]
        approve = {"csrf": csrf, "step": "publish", "verb": "approve"}
        host = {"Host": f"127.0.0.1:{served.port}", "Cookie": served.cookie}
        assert served.post(f"/runs/{run}/answer", approve, host).status == 403  # no Origin
        no_cookie = {"Host": host["Host"], "Origin": served.origin}
        assert served.post(f"/runs/{run}/answer", approve, no_cookie).status == 403
        assert served.post(f"/runs/{run}/answer", {**approve, "csrf": "guess"}).status == 403
        assert served.post(f"/runs/{run}/answer", {**approve, "verb": "prune"}).status == 400
        assert served.post("/runs/last/answer", approve).status == 404
        stale = served.post(f"/runs/{run}/answer", {**approve, "digest": "0" * 64})
        assert "what was reviewed has the digest" in served.get(stale.headers["Location"]).text
        assert going.answers() == []
        digest = re.search(r'name="digest" value="([0-9a-f]{64})"', page)
        assert digest
        done = served.post(f"/runs/{run}/answer", {**approve, "digest": digest[1], "reason": "looks good"})
        assert done.status == 303
        assert "publish is approved" in served.get(done.headers["Location"]).text
        assert "publish is approved" not in served.get(done.headers["Location"]).text  # it is said once
        choice = {"csrf": csrf, "step": "where", "verb": "decide"}
        assert served.post(f"/runs/{run}/answer", choice).status == 400
        wrong = served.post(f"/runs/{run}/answer", {**choice, "value": "moon"})
        assert "exit code 2" in served.get(wrong.headers["Location"]).text
        served.post(f"/runs/{run}/answer", {**choice, "value": "eu"})
        until(lambda: len(going.answers()) == 2)
        assert going.answers() == [("publish", "approved", "release team"), ("where", "eu", "release team")]
        assert served.post(f"/runs/{run}/cancel", {"csrf": csrf}).status == 303
        assert going.ends() == "cancelled"


AGAIN = f"""\
version: 1
name: again
policy: {{auto_approve: high, rules: [{{require: {{step: publish}}}}]}}
secrets: [TOKEN]
steps:
  - {{id: build, secrets: [TOKEN], run: "echo ${{#TOKEN}} letters; test -e good; {WAIT.format("go")}; echo built"}}
  - {{id: publish, depends_on: [build], run: echo published}}
"""


def test_forms_resume_and_retry_as_the_verbs_do(going: Going, monkeypatch: pytest.MonkeyPatch) -> None:
    """They run what the page showed, with the secrets of the server's shell, and go on when the server is killed."""
    monkeypatch.setenv("TOKEN", "four")
    assert going.starts(AGAIN).wait() == 1
    run = going.run
    with Serving(going.folder) as served:
        assert "<button" not in served.get(f"/runs/{run}").text
        assert served.post(f"/runs/{run}/retry", {"csrf": served.token, "step": "build"}).status == 403
    with Serving(going.folder, "--allow-answers", variables={"TOKEN": "longer"}) as served:
        page = served.get(f"/runs/{run}").text
        digest = re.search(r'name="digest" value="([0-9a-f]{64})"', page)
        assert digest
        form = {"csrf": served.csrf(run), "digest": digest[1], "step": "build"}
        assert '<button form=retry name=step value="build">' in page
        for wrong, status in (
            ({"digest": "0" * 64}, 409),
            ({"step": "--help"}, 400),
            ({"csrf": "guess"}, 403),
        ):
            assert served.post(f"/runs/{run}/retry", {**form, **wrong}).status == status
        done = served.post(f"/runs/{run}/resume", form)
        said = served.get(done.headers["Location"]).text
        assert "planrun resume ended with exit code 1" in said
        assert f"<code>planrun resume {run} --output quiet</code>" in said
        assert "✗ build  plan.yml:6\n" in said
        assert "6 letters" in served.get(f"/runs/{run}/log/raw?step=build").text
        (going.folder / "good").touch()
        done = served.post(f"/runs/{run}/retry", form)
        assert "planrun retry goes on" in served.get(done.headers["Location"]).text
        again = served.post(f"/runs/{run}/resume", form)
        said = served.get(again.headers["Location"]).text
        assert "planrun retry goes on: nothing was started" in said
        assert "it goes on, also when <code>planrun serve</code> ends" in said
        served.process.kill()
    (going.folder / "go").touch()
    until(lambda: going.events()[-1].get("status") == "paused")
    assert [event["type"] for event in going.events()].count("run_resumed") == 2
    assert going.answers() == []  # publish waits


ATTACK = """\
import http.client, os, sys, urllib.parse
port, cookie, run, csrf = sys.argv[1:]
body = urllib.parse.urlencode({"csrf": csrf, "step": "publish", "verb": "approve"})
asks = http.client.HTTPConnection("127.0.0.1", int(port))
asks.request("POST", f"/runs/{run}/answer", body, {
    "Cookie": cookie, "Origin": f"http://127.0.0.1:{port}", "Content-Type": "application/x-www-form-urlencoded"})
reply = asks.getresponse()
print(reply.status, reply.read().decode()[-200:])
"""


def test_a_step_cannot_answer_through_the_page(going: Going) -> None:
    """A step that has every token is refused by the kernel's word on which process it is."""
    going.starts(GATED)
    run = going.run
    with Serving(going.folder, "--allow-answers") as served:
        other = going.folder / "other"
        other.mkdir()
        (other / "attack.py").write_text(ATTACK)
        argv = [sys.executable, "attack.py", str(served.port), served.cookie, run, served.csrf(run)]
        (other / "plan.yml").write_text(f"version: 1\nsteps:\n  - {{id: attack, exec: {argv}}}\n")
        subprocess.run(
            [sys.executable, "-m", "planrun", "run", "plan.yml"], cwd=other, capture_output=True, check=True
        )
        (log,) = other.glob(".planrun/runs/*/logs/attack/1.log")
        assert log.read_text().startswith("403 ")
        assert "a step of a run cannot answer gates" in log.read_text()
        assert going.answers() == []


def test_a_run_of_a_thousand_steps_is_one_page(going: Going) -> None:
    """The page has a row for each step, and the first event the state of all of them."""
    steps = "".join(f"  - {{id: step-{n}, exec: ['true']}}\n" for n in range(1000))
    (going.folder / "plan.yml").write_text(f"version: 1\nname: many\nsteps:\n{steps}")
    subprocess.run(
        [sys.executable, "-m", "planrun", "run", "plan.yml", "--output", "quiet"],
        cwd=going.folder,
        check=True,
    )
    with Serving(going.folder) as served:
        page = served.get(f"/runs/{going.run}")
        assert page.text.count("data-n=") == 1000
        assert len(page.data) < 600 * 1024
        name, data = next(served.events(f"/runs/{going.run}/events"))
        assert (name, len(data["rows"])) == ("now", 1000)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(ended: Path, signum: int) -> None:
    """With readers connected it ends with 0, frees the port, and leaves no process and no traceback."""
    with Serving(ended) as served:
        reading = served.connect("GET", "/events").getresponse()
        assert reading.readline() == b": the list\n"
        served.process.send_signal(signum)
        out, err = served.process.communicate()
        assert served.process.returncode == 0
        assert out == ""
        assert err == "planrun: read-only; whoever has this address can see the runs; Ctrl-C ends\n"
        with socket.socket() as other:
            assert other.connect_ex(("127.0.0.1", served.port)) != 0
        assert reading.read() == b"\n"
