"""What Anthropic's library really sends, and refuses to send: facts that planrun's calls of a model rest on.

One test for each fact, as in test_sdk_conformance.py.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anthropic
import pytest
from anthropic.lib.credentials import WorkloadIdentityCredentials

from planrun.llm import drafts
from tests.fakes.messages import IDENTITY, FakeMessages, draft, think
from tests.fakes.sdk import asked, streamed

if TYPE_CHECKING:
    from tests.fakes.sdk import Clients


def test_row_a_veto_of_the_middleware_sends_nothing(connect: Clients) -> None:
    """What a middleware raises comes through, and the service sees no request."""

    def veto(*_: object) -> Any:
        raise PermissionError("not now")

    with FakeMessages([]) as api, pytest.raises(PermissionError):
        connect(api, middleware=[veto]).messages.create(**asked())
    assert api.journal.entries == []


def test_row_long_answers_need_a_stream(connect: Clients) -> None:
    """From 21334 tokens on the library refuses to ask without a stream, unless it is given a timeout."""
    with FakeMessages(["short", "short"]) as api:
        client = anthropic.Anthropic(base_url=api.url, api_key=api.key, max_retries=0)
        with client, pytest.raises(ValueError, match="Streaming is required"):
            client.messages.create(**asked(max_tokens=21_334))
        assert api.journal.entries == []
        connect(api).messages.create(**asked(max_tokens=21_334))
        assert streamed(connect(api), max_tokens=64_000).stop_reason == "end_turn"


@pytest.mark.usefixtures("bare")
def test_row_no_credentials_are_a_type_error_at_the_call() -> None:
    """Without credentials the client is made, and the call raises TypeError."""
    with FakeMessages([]) as api, anthropic.Anthropic(base_url=api.url, max_retries=0) as client:
        with pytest.raises(TypeError, match="authentication"):
            client.messages.create(**asked())
        assert api.journal.entries == []


@pytest.mark.parametrize("name", ["temperature", "top_p", "top_k"])
def test_row_sampling_is_gone(connect: Clients, name: str) -> None:
    """The library does not know the parameter, and the service refuses what is sent past the library."""
    with FakeMessages([]) as api:
        with pytest.raises(TypeError, match=name):
            connect(api).messages.create(**asked(**{name: 1}))
        with pytest.raises(anthropic.BadRequestError, match=name):
            connect(api).messages.create(**asked(), extra_body={name: 1})


def test_row_a_key_is_sent_as_bearer_with_the_version(connect: Clients) -> None:
    """The key travels as `Authorization: Bearer`, and each request says which version of the API it is for."""
    with FakeMessages(["yes"]) as api:
        connect(api).messages.create(**asked())
    entry = api.journal.asked[0]
    assert (entry.credential, entry.headers["anthropic-version"]) == ("bearer", "2026-10-21")


def test_row_a_proxy_of_the_environment_gets_the_key(
    connect: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HTTP_PROXY is asked for loopback, too, unless NO_PROXY names it."""
    with FakeMessages(["from the proxy"]) as proxy, FakeMessages(["yes"]) as api:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        connect(api).messages.create(**asked())
        monkeypatch.delenv("NO_PROXY")
        with pytest.raises(anthropic.NotFoundError):
            connect(api).messages.create(**asked())
    assert (len(api.journal.entries), len(proxy.journal.entries)) == (1, 1)


def test_row_a_planrun_schema_is_taken_and_its_answer_comes_back_whole(connect: Clients) -> None:
    """The form of a draft keeps every limit of the service, and the streamed text is the draft byte for byte."""
    wanted = draft([{"id": "fix", "run": "make fix"}], "Fix it. äöü €")
    form: Any = {"effort": "medium", "format": {"type": "json_schema", "schema": drafts.STEPS.schema()}}
    with FakeMessages([think("hm", json.dumps(wanted)).but(pings=2, piece=7)]) as api:
        message = streamed(connect(api), output_config=form, max_tokens=1000, thinking={"type": "adaptive"})
    assert [block.type for block in message.content] == ["thinking", "text"]
    assert json.loads(message.content[1].text) == wanted


def test_row_usage_of_the_cache_is_told_at_the_start_and_at_the_end(connect: Clients) -> None:
    """message_start reports the input and the cache's reads and writes; message_delta reports all again."""
    system: Any = [{"type": "text", "text": "s" * 8192, "cache_control": {"type": "ephemeral"}}]
    with FakeMessages(["yes", "yes"]) as api:
        streamed(connect(api), system=system)
        with connect(api).messages.create(**asked(system=system), stream=True) as stream:
            events = {event.type: event for event in stream}
        count = connect(api).messages.count_tokens(model="m", messages=asked()["messages"], system=system)
    start, end = events["message_start"].message.usage, events["message_delta"].usage
    assert (start.input_tokens, start.cache_read_input_tokens, end.output_tokens) == (2, 2048, 1)
    assert count.input_tokens == 2050


@pytest.mark.usefixtures("bare")
def test_row_a_workload_exchanges_its_token_for_one_of_the_service() -> None:
    """The identity token goes to /v1/oauth/token of the same address, and what comes back is sent as Bearer."""
    with FakeMessages(["yes"]) as api:
        given = WorkloadIdentityCredentials(
            identity_token_provider=lambda: IDENTITY,
            federation_rule_id="rule",
            organization_id="organization",
        )
        with given, anthropic.Anthropic(base_url=api.url, credentials=given, max_retries=0) as client:
            client.messages.create(**asked())
    assert [(entry.route, entry.credential) for entry in api.journal.entries] == [
        ("token", ""),
        ("messages", "bearer"),
    ]


def test_row_models_are_listed(connect: Clients) -> None:
    """The names that the service has are listed, and another name is 404."""
    with FakeMessages(["yes"], models=("m", "n")) as api:
        assert [model.id for model in connect(api).models.list()] == ["m", "n"]
        with pytest.raises(anthropic.NotFoundError, match="model: gone"):
            connect(api).messages.create(**asked(model="gone"))
