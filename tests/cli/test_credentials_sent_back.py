"""A service, or a proxy before it, that sends the credentials of the model back: in no form does planrun print them."""

from __future__ import annotations

import base64
import codecs
import json
import os
import textwrap
import urllib.parse
from typing import TYPE_CHECKING

import pytest

from tests.fakes.messages import FakeMessages, draft, status
from tests.fakes.messages import say as text_reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Command

KEY = "sk-" + os.urandom(24).hex() + "~A/b+c="
PLAN = "version: 1\nname: p\ngoal: Build it.\nllm: {model: m, retries: 0}\nsteps: [{id: a, run: exit 77}]\n"


def wrapped(text: str) -> str:
    """Break a text into short lines, as MIME does."""
    return "\n".join(textwrap.wrap(text, 40))


FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64 of a header": lambda key: base64.b64encode(f"x-api-key: {key}\r\n".encode()).decode(),
    "base64 for addresses": lambda key: base64.urlsafe_b64encode(key.encode()).decode().rstrip("="),
    "base64 in lines": lambda key: wrapped(base64.b64encode(key.encode()).decode()),
    "hex": lambda key: key.encode().hex(),
    "HEX": lambda key: key.encode().hex().upper(),
    "hex in pairs": lambda key: key.encode().hex(":"),
    "hex in lines": lambda key: wrapped(key.encode().hex()),
    "url": lambda key: urllib.parse.quote(key, safe=""),
    "json": json.dumps,
    "json escapes": lambda key: "".join(f"\\u{ord(char):04x}" for char in key),
    "reversed": lambda key: key[::-1],
    "reversed in lines": lambda key: wrapped(key[::-1]),
    "lines": wrapped,
}


def traces(text: str) -> list[str]:
    """Return the forms of which a piece of 12 characters stands in a text."""
    flat = "".join(text.split())
    found = []
    for name, form in FORMS.items():
        whole = "".join(form(KEY).split())
        first = 16 if "header" in name else 0  # behind the name of the header, which is no secret
        if any(whole[at : at + 12] in flat for at in range(first, len(whole) - 12)):
            found.append(name)
    return found


def everything(planrun: Command) -> str:
    """Return all that was written in the test's folder, recordings and records included."""
    files = [path for path in planrun.folder.rglob("*") if path.is_file()]
    return "\n".join(path.read_text("utf-8", "replace") for path in files)


def environ(api: FakeMessages) -> dict[str, str]:
    """Return what has planrun ask the fake service."""
    return {**api.env, "PLANRUN_LLM_MODEL": "m"}


@pytest.mark.shows("V-04")
@pytest.mark.parametrize("form", FORMS)
def test_an_error_of_the_service_shows_no_credentials(planrun: Command, form: str) -> None:
    """Whatever encoding the body and the headers of an error hold the key in: it is nowhere, and the rest is told."""
    said = FORMS[form](KEY)
    padding = "the proxy says " + "x" * 330 + " "  # so that the key stands where a message is cut
    header = "".join(said.split())
    with FakeMessages([status(401, message=f"bad key {said} sorry", request_id=header)], key=KEY) as api:
        short = planrun("generate", "ship it", env=environ(api))
    with FakeMessages([status(401, message=padding + said)], key=KEY) as api:
        long = planrun("generate", "ship it", env=environ(api))
    assert (short.returncode, long.returncode) == (1, 1), short.stderr
    assert "bad key " in short.stderr
    assert "***" in short.stderr
    assert "the proxy says xxx" in long.stderr
    assert traces(short.stdout + short.stderr + long.stdout + long.stderr) == []


@pytest.mark.parametrize("form", FORMS)
def test_records_of_a_run_hold_no_credentials(planrun: Command, form: str) -> None:
    """A planning in a run that fails so: console, ledger, reports and recordings are without the key."""
    said = FORMS[form](KEY)
    (planrun.folder / "plan.yml").write_text(PLAN)
    with FakeMessages(
        [status(400, message=f"what is {said}?", request_id="".join(said.split()))], key=KEY
    ) as api:
        done = planrun("execute", "plan.yml", "--llm-record", "tape", env=environ(api))
    assert done.returncode == 1
    assert "what is " in done.stderr
    assert "***" in done.stderr
    assert traces(done.stdout + done.stderr) == []
    assert traces(everything(planrun)) == []


@pytest.mark.parametrize("form", FORMS)
def test_an_answer_that_holds_the_key_puts_none_into_the_plan(planrun: Command, form: str) -> None:
    """Text of a model is masked as well before it becomes a plan or a recording."""
    reply = draft([{"id": "a", "run": "make", "title": f"Use {FORMS[form](KEY)} here"}])
    with FakeMessages([reply], key=KEY) as api:
        planrun("generate", "ship it", "-o", "out.yml", "--llm-record", "tape", env=environ(api))
    text = everything(planrun)
    assert "***" in text
    assert traces(text) == []


def test_a_strange_stream_shows_no_credentials(planrun: Command) -> None:
    """What a service says where words of the protocol are awaited is masked before it is shortened."""
    said = KEY.encode().hex()
    with FakeMessages([text_reply("x", stop_reason=said)], key=KEY) as api:
        done = planrun("generate", "ship it", env=environ(api))
    assert done.returncode == 1
    assert "a reason that planrun does not know: '***'" in done.stderr
    assert traces(done.stdout + done.stderr) == []


def test_the_password_of_a_proxy_is_masked(planrun: Command) -> None:
    """A proxy that quotes how it was asked does not have its password printed."""
    secret = "p" + os.urandom(8).hex()
    proxies = {"HTTPS_PROXY": f"http://me:{secret}@127.0.0.1:9"}
    quoted = base64.b64encode(f"me:{secret}".encode()).decode()
    with FakeMessages([status(403, message=f"Proxy-Authorization: Basic {quoted}")]) as api:
        done = planrun("generate", "ship it", env={**environ(api), **proxies})
    assert done.returncode == 1
    assert secret not in done.stderr
    assert codecs.encode(secret.encode(), "base64").decode()[:12] not in done.stderr
    assert quoted[8:] not in done.stderr
