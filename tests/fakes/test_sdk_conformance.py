"""What Anthropic's library really does with what a service answers: facts that planrun's calls of a model rest on.

One test for each fact. When a new version of the library behaves differently, the test that fails names what changed,
and planrun/llm/worker has to be looked at there.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anthropic
import httpx2
import pydantic
import pytest

from tests.fakes.messages import FakeMessages, Fault, Reply, broken, refuse, say, status, use
from tests.fakes.sdk import PATIENCE, asked, streamed

if TYPE_CHECKING:
    from tests.fakes.sdk import Clients

TEXT = "one two three four five six seven eight nine ten"


class Count(pydantic.BaseModel):
    """An answer that the library itself is to read."""

    number: int


def test_row_429_with_retry_after_is_slept_and_repeated_twice(connect: Clients, slept: list[float]) -> None:
    """By itself the library makes three attempts and sleeps what the service says before each of the others."""
    with FakeMessages([status(429, retry_after=7)] * 3) as api:
        with pytest.raises(anthropic.RateLimitError) as caught:
            connect(api, max_retries=2).messages.create(**asked())
        assert (caught.value.type, len(api.journal.asked), slept) == ("rate_limit_error", 3, [7.0, 7.0])
    assert [entry.headers["x-stainless-retry-count"] for entry in api.journal.asked] == ["0", "1", "2"]


def test_row_529_is_given_up_within_seconds(connect: Clients, slept: list[float]) -> None:
    """An overloaded service is asked three times with pauses of at most 0.5 and 1 second, then OverloadedError."""
    with FakeMessages([status(529)] * 3) as api, pytest.raises(anthropic.OverloadedError):
        connect(api, max_retries=2).messages.create(**asked())
    assert len(api.journal.asked) == 3
    assert [pause <= most for pause, most in zip(slept, (0.5, 1.0), strict=True)] == [True, True]


def test_row_x_should_retry_false_is_heeded(connect: Clients, slept: list[float]) -> None:
    """One attempt, when the service says so."""
    with FakeMessages([status(529, x_should_retry="false")]) as api, pytest.raises(anthropic.OverloadedError):
        connect(api, max_retries=2).messages.create(**asked())
    assert (len(api.journal.asked), slept) == (1, [])


def test_row_no_timeout_bounds_the_pause_that_retry_after_asks_for(
    connect: Clients, slept: list[float]
) -> None:
    """With a timeout of a minute the library still sleeps for a day when the service asks for it."""
    with FakeMessages([status(429, retry_after=86400), say("at last")]) as api:
        connect(api, max_retries=2, timeout=PATIENCE).messages.create(**asked())
    assert slept == [86400.0]


@pytest.mark.parametrize(
    ("code", "kind", "error"),
    [
        (400, "invalid_request_error", anthropic.BadRequestError),
        (401, "authentication_error", anthropic.AuthenticationError),
        (402, "billing_error", anthropic.PaymentRequiredError),
        (403, "permission_error", anthropic.PermissionDeniedError),
        (404, "not_found_error", anthropic.NotFoundError),
        (413, "request_too_large", anthropic.ContentTooLargeError),
        (422, "invalid_request_error", anthropic.UnprocessableEntityError),
        (429, "rate_limit_error", anthropic.RateLimitError),
        (500, "api_error", anthropic.InternalServerError),
        (504, "timeout_error", anthropic.GatewayTimeoutError),
        (529, "overloaded_error", anthropic.OverloadedError),
    ],
)
def test_row_each_status_has_its_class_and_type(
    connect: Clients, code: int, kind: str, error: type[anthropic.APIStatusError]
) -> None:
    """The status decides the class, the service's body decides `.type`; the request id is there."""
    with FakeMessages([status(code)]) as api, pytest.raises(error) as caught:
        streamed(connect(api))
    assert (type(caught.value), caught.value.type, caught.value.status_code) == (error, kind, code)
    assert caught.value.request_id == "req_000000"


def test_row_broken_json_is_a_bare_decode_error(connect: Clients) -> None:
    """Half a message with status 200 is no error of the library but one of Python's JSON."""
    with FakeMessages([Fault("broken_json")]) as api, pytest.raises(json.JSONDecodeError):
        connect(api).messages.create(**asked())


def test_row_html_is_a_plain_text(connect: Clients) -> None:
    """A proxy's page with status 200 comes back as str where a Message is promised."""
    with FakeMessages([Fault("html")]) as api:
        answer: object = connect(api).messages.create(**asked())
    assert type(answer) is str


def test_row_missing_fields_are_none(connect: Clients) -> None:
    """A message without content, stop reason and usage is a Message whose fields are None."""
    with FakeMessages([Fault("missing_fields")]) as api:
        answer: Any = connect(api).messages.create(**asked())
    assert type(answer) is anthropic.types.Message
    assert [vars(answer).get(name) for name in ("content", "stop_reason", "usage")] == [None, None, None]


@pytest.mark.parametrize(("kind", "error"), [("html", AssertionError), ("broken_json", json.JSONDecodeError)])
def test_row_what_is_no_stream_is_a_bare_error(connect: Clients, kind: str, error: type[Exception]) -> None:
    """Where a stream was asked for, each of them is another error, and none is the library's."""
    with FakeMessages([Fault(kind)]) as api, pytest.raises(error):
        streamed(connect(api))


def test_row_missing_fields_in_a_stream_are_none(connect: Clients) -> None:
    """A message_start without model, content and usage passes, and the message has None there."""
    with FakeMessages([Fault("missing_fields")]) as api:
        message = streamed(connect(api))
    assert (message.stop_reason, message.usage, message.model) == (None, None, None)


def test_row_html_is_a_stream_without_events(connect: Clients) -> None:
    """Read event by event, a proxy's page is a stream in which nothing happens, and no error at all."""
    with FakeMessages([Fault("html")]) as api, connect(api).messages.create(**asked(), stream=True) as stream:
        assert list(stream) == []


def test_row_a_stream_that_ends_early_is_no_error(connect: Clients) -> None:
    """The message is there, with the text so far, and only `stop_reason` None shows that it is not whole."""
    with FakeMessages([broken("end", text=TEXT, piece=5)]) as api:
        message = streamed(connect(api))
    text = message.content[0].text
    assert (message.stop_reason, TEXT.startswith(text), 0 < len(text) < len(TEXT)) == (None, True, True)


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("reset", httpx2.ReadError),
        ("drop", httpx2.RemoteProtocolError),
        ("bad_chunk", httpx2.RemoteProtocolError),
    ],
)
def test_row_a_broken_connection_is_an_error_of_httpx2(
    connect: Clients, kind: str, error: type[Exception]
) -> None:
    """In the middle of a stream the error comes through as it is, and is no APIError; nothing is repeated."""
    with FakeMessages([broken(kind)]) as api, pytest.raises(error) as caught:
        streamed(connect(api, max_retries=2))
    assert not isinstance(caught.value, anthropic.APIError)
    assert len(api.journal.asked) == 1


def test_row_a_connection_that_breaks_before_the_answer_is_an_api_error(
    connect: Clients, slept: list[float]
) -> None:
    """Before the status line the same reset is APIConnectionError, and is repeated."""
    with FakeMessages([broken("reset", "head")] * 3) as api, pytest.raises(anthropic.APIConnectionError):
        streamed(connect(api, max_retries=2))
    assert (len(api.journal.asked), len(slept)) == (3, 2)


def test_row_bad_json_in_an_event_is_a_bare_decode_error(connect: Clients) -> None:
    """An event whose data is cut is an error of Python's JSON."""
    with FakeMessages([broken("bad_json")]) as api, pytest.raises(json.JSONDecodeError):
        streamed(connect(api))


def test_row_silence_in_a_stream_is_a_timeout_of_httpx2(connect: Clients) -> None:
    """Between two events the timeout is that of one read, and its error is no APITimeoutError."""
    with FakeMessages([broken("stall")]) as api:
        with pytest.raises(httpx2.ReadTimeout):
            streamed(connect(api, timeout=httpx2.Timeout(PATIENCE, read=0.5)))
        api.journal.settle()
    assert api.journal.asked[0].ended == "left"


def test_row_an_error_event_has_status_200(connect: Clients) -> None:
    """An overload reported in the stream is a plain APIStatusError of status 200, and is not repeated."""
    with FakeMessages([broken("error")]) as api, pytest.raises(anthropic.APIStatusError) as caught:
        streamed(connect(api, max_retries=2))
    assert type(caught.value) is anthropic.APIStatusError
    assert (caught.value.status_code, caught.value.type) == (200, "overloaded_error")
    assert len(api.journal.asked) == 1


def test_row_a_tool_use_that_is_cut_has_an_empty_input(connect: Clients) -> None:
    """Cut by max_tokens before it has begun, the input is {} like that of a tool that needs none."""
    reply = use(("deploy", {"target": "staging " * 20})).but(piece=1)
    with FakeMessages(
        [reply.but(stop_reason="max_tokens", blocks=({**reply.blocks[0], "input": ""},))]
    ) as api:
        message = streamed(connect(api))
    assert (message.stop_reason, message.content[0].type, message.content[0].input) == (
        "max_tokens",
        "tool_use",
        {},
    )


@pytest.mark.parametrize("text", ['{"number": 1', "one, I think"])
def test_row_parse_loses_a_cut_answer_and_its_usage(connect: Clients, text: str) -> None:
    """What `parse` cannot read is a ValidationError that knows neither the text's end nor what it cost."""
    with FakeMessages([say(text)]) as api, pytest.raises(pydantic.ValidationError) as caught:
        connect(api).messages.parse(**asked(), output_format=Count)
    assert not hasattr(caught.value, "usage")


def test_row_a_refusal_parses_to_none(connect: Clients) -> None:
    """A refusal has no content, a category, and `parsed_output` None in place of an error."""
    with FakeMessages([refuse("bio")]) as api:
        message = connect(api).messages.parse(**asked(), output_format=Count)
    assert (message.stop_reason, message.content, message.parsed_output) == ("refusal", [], None)
    assert message.stop_details
    assert message.stop_details.category == "bio"


def test_row_what_is_unknown_is_built_as_something_known(connect: Clients) -> None:
    """A block of an unknown type and an unknown stop reason are no error: only `.type` and the word show it."""
    reply = Reply(blocks=({"type": "hologram", "data": "x"},), stop_reason="moon_phase")
    with FakeMessages([reply, reply]) as api:
        for message in (streamed(connect(api)), connect(api).messages.create(**asked())):
            assert isinstance(message.content[0], anthropic.types.TextBlock)
            assert (message.content[0].type, message.stop_reason) == ("hologram", "moon_phase")
