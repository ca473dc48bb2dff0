"""A service, or a proxy before it, that sends the credentials of the model back: in no form does planrun print them.

proofs/test_sentback.py does the same with every form.
"""

from __future__ import annotations

import base64
import codecs
import os
from typing import TYPE_CHECKING

import pytest

from proofs.sentback import (
    KEY,
    answer_puts_none_into_the_plan,
    environ,
    error_shows_no_credentials,
    records_hold_no_credentials,
    traces,
)
from tests.fakes.messages import FakeMessages, status
from tests.fakes.messages import say as text_reply

if TYPE_CHECKING:
    from tests.conftest import Command

FORM = "base64 in lines"


@pytest.mark.shows("V-04")
def test_an_error_of_the_service_shows_no_credentials(planrun: Command) -> None:
    """The key is masked everywhere, and the rest of the message is shown."""
    error_shows_no_credentials(planrun, FORM)


def test_records_of_a_run_hold_no_credentials(planrun: Command) -> None:
    """A planning in a run that fails so: console, ledger, reports and recordings are without the key."""
    records_hold_no_credentials(planrun, FORM)


def test_an_answer_that_holds_the_key_puts_none_into_the_plan(planrun: Command) -> None:
    """Text of a model is masked as well before it becomes a plan or a recording."""
    answer_puts_none_into_the_plan(planrun, FORM)


def test_a_strange_stream_shows_no_credentials(planrun: Command) -> None:
    """The text of a service in a field of the protocol is masked before it is shortened."""
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
