"""The fake Messages API refuses what the real one refuses, with its status and type, and takes the rest."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from planrun.llm import drafts
from tests.fakes.messages import FakeMessages, schemas, validation
from tests.fakes.messages.refusing import RequestError

USER = {"role": "user", "content": "hello"}
EPHEMERAL = {"type": "ephemeral"}
TOOL = {"name": "look", "input_schema": {"type": "object", "properties": {}}}
USE = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "a", "name": "look", "input": {}}],
}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "seen"}]}
OBJECT = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


def body(**changes: Any) -> dict[str, Any]:
    """Return a request that is taken, with changes; None takes a key away."""
    whole: dict[str, Any] = {"model": "m", "max_tokens": 100, "messages": [USER], **changes}
    return {key: value for key, value in whole.items() if value is not None}


def schema(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object that needs all of its properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def texts(*marks: dict[str, str] | None) -> list[dict[str, Any]]:
    """Return blocks of text, some of them marked for the cache."""
    return [{"type": "text", "text": "x", **({"cache_control": mark} if mark else {})} for mark in marks]


TAKEN = {
    "a bare question": body(),
    "blocks and a system text": body(messages=[{"role": "user", "content": texts(None)}], system="be brief"),
    "a conversation": body(messages=[USER, {"role": "assistant", "content": "hi"}, USER]),
    "two of one role": body(messages=[USER, USER]),
    "a tool and its result": body(messages=[USER, USE, RESULT], tools=[TOOL]),
    "marks of the cache": body(
        system=texts({"type": "ephemeral", "ttl": "1h"}, EPHEMERAL), cache_control=EPHEMERAL
    ),
    "effort and form": body(
        output_config={"effort": "max", "format": {"type": "json_schema", "schema": drafts.STEPS.schema()}}
    ),
    "thinking": body(thinking={"type": "adaptive"}),
    "a warm-up of the cache": body(max_tokens=0),
    "a strict tool": body(
        tools=[{**TOOL, "strict": True, "input_schema": OBJECT}], tool_choice={"type": "any"}
    ),
}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no model": (body(model=None), "model: Field required"),
    "no max_tokens": (body(max_tokens=None), "max_tokens: Field required"),
    "max_tokens below zero": (body(max_tokens=-1), "greater than or equal to 0"),
    "max_tokens as truth": (body(max_tokens=True), "valid integer"),
    "more than a model writes": (body(max_tokens=1_000_000), "maximum allowed number of output tokens"),
    "no messages": (body(messages=None), "messages: Field required"),
    "none of them": (body(messages=[]), "at least one message"),
    "a system role": (body(messages=[{"role": "system", "content": "x"}, USER]), "top-level `system`"),
    "an unknown role": (body(messages=[{"role": "tool", "content": "x"}]), "messages.0.role"),
    "no content": (body(messages=[{"role": "user"}]), "content: Field required"),
    "an empty content": (body(messages=[{"role": "user", "content": ""}]), "non-empty content"),
    "an empty text": (
        body(messages=[{"role": "user", "content": [{"type": "text", "text": ""}]}]),
        "non-empty",
    ),
    "an unknown block": (
        body(messages=[{"role": "user", "content": [{"type": "song"}]}]),
        "Input tag 'song'",
    ),
    "a key too many": (body(messages=[{**USER, "name": "x"}]), "messages.0.name: Extra inputs"),
    "the model begins": (body(messages=[{"role": "assistant", "content": "x"}, USER]), "first message"),
    "prefill": (body(messages=[USER, {"role": "assistant", "content": "{"}]), "prefill"),
    "temperature": (body(temperature=0), "`temperature` is not supported"),
    "top_p": (body(top_p=1), "`top_p` is not supported"),
    "top_k": (body(top_k=1), "`top_k` is not supported"),
    "an unknown parameter": (body(seed=1), "seed: Extra inputs"),
    "an unknown effort": (body(output_config={"effort": "huge"}), "output_config.effort"),
    "an unknown form": (body(output_config={"format": {"type": "xml"}}), "format.type"),
    "a use without a result": (body(messages=[USER, USE, USER], tools=[TOOL]), "without `tool_result`"),
    "a result without a use": (body(messages=[USER, RESULT], tools=[TOOL]), "unexpected `tool_use_id`"),
    "two results of a use": (
        body(messages=[USER, USE, {"role": "user", "content": RESULT["content"] * 2}], tools=[TOOL]),  # type: ignore[operator] # a list
        "single result",
    ),
    "a use by the user": (
        body(messages=[{"role": "user", "content": USE["content"]}]),
        "`assistant` messages",
    ),
    "two tools of a name": (body(tools=[TOOL, TOOL]), "unique"),
    "a name with a blank": (body(tools=[{**TOOL, "name": "a b"}]), "should match pattern"),
    "21 strict tools": (
        body(tools=[{"name": f"t{n}", "strict": True, "input_schema": OBJECT} for n in range(21)]),
        "Too many strict tools (21)",
    ),
    "a choice without tools": (body(tool_choice={"type": "any"}), "while providing tools"),
    "a choice of an unknown tool": (
        body(tools=[TOOL], tool_choice={"type": "tool", "name": "x"}),
        "not found",
    ),
    "thought and forced": (
        body(tools=[TOOL], tool_choice={"type": "any"}, thinking={"type": "adaptive"}),
        "Thinking may not be enabled",
    ),
    "too small a thought": (
        body(thinking={"type": "enabled", "budget_tokens": 10}),
        "greater than or equal to 1024",
    ),
    "five marks": (body(system=texts(*[EPHEMERAL] * 5)), "A maximum of 4 blocks"),
    "long after short": (
        body(system=texts(EPHEMERAL, {"type": "ephemeral", "ttl": "1h"})),
        "must not come after",
    ),
    "an unknown life": (body(system=texts({"type": "ephemeral", "ttl": "2h"})), "cache_control.ttl"),
    "a stop of blanks": (body(stop_sequences=[" "]), "non-whitespace"),
}
WORD = {"type": "string"}
REFUSED_SCHEMAS: dict[str, tuple[Any, str]] = {
    "25 optional": (
        {**OBJECT, "properties": {f"p{n}": WORD for n in range(25)}},
        "too many optional parameters (25)",
    ),
    "17 unions": (
        schema(**{f"p{n}": {"type": ["string", "null"]} for n in range(17)}),
        "too many parameters with union types (17",
    ),
    "recursion": (
        {
            **schema(next={"$ref": "#/$defs/node"}),
            "$defs": {"node": schema(next={"$ref": "#/$defs/node"})},
        },
        "recursion is not supported",
    ),
    "an open object": ({"type": "object", "properties": {}}, "'additionalProperties' must be explicitly"),
    "a minimum": (schema(n={"type": "integer", "minimum": 0}), "property 'minimum' is not supported"),
    "a maximum": (schema(n={"type": "number", "maximum": 9}), "property 'maximum' is not supported"),
    "a length": (schema(s={"type": "string", "maxLength": 9}), "property 'maxLength' is not supported"),
    "two items": (schema(a={"type": "array", "items": WORD, "minItems": 2}), "'minItems' values other than"),
    "a list that ends": (schema(a={"type": "array", "items": WORD, "maxItems": 3}), "'maxItems'"),
    "one of several": (schema(s={"oneOf": [WORD]}), "'oneOf' is not supported"),
    "a schema elsewhere": (schema(s={"$ref": "https://example.org/s"}), "is not supported"),
    "no type": (schema(s={}), "needs a 'type'"),
    "too large": (schema(**{f"p{n}": {**WORD, "description": "x" * 100} for n in range(1000)}), "too large"),
}


@pytest.mark.parametrize("case", TAKEN)
def test_what_is_right_is_taken(case: str) -> None:
    """A request that the service takes passes unchanged."""
    asked = copy.deepcopy(TAKEN[case])
    assert validation.asked(asked, ()) == TAKEN[case]


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_refused(case: str) -> None:
    """A request that the service refuses is 400 with words that name what is wrong."""
    asked, words = REFUSED[case]
    with pytest.raises(RequestError) as caught:
        validation.asked(asked, ())
    assert words in caught.value.message
    assert (caught.value.status, caught.value.error) == (400, "invalid_request_error")


@pytest.mark.parametrize("case", REFUSED_SCHEMAS)
def test_a_schema_past_the_limits_is_refused(case: str) -> None:
    """A schema that the service cannot compile is 400 as the form of an answer and for a strict tool."""
    form, words = REFUSED_SCHEMAS[case]
    for asked in (
        body(output_config={"format": {"type": "json_schema", "schema": form}}),
        body(tools=[{"name": "t", "strict": True, "input_schema": form}]),
    ):
        if asked.get("tools") and form.get("type") != "object":
            continue
        with pytest.raises(RequestError) as caught:
            validation.asked(asked, ())
        assert words in caught.value.message


def test_schemas_at_the_limits_are_taken() -> None:
    """24 optional parameters and 16 unions are the most that pass."""
    schemas.check("s", {**OBJECT, "properties": {f"p{n}": WORD for n in range(24)}})
    schemas.check("s", schema(**{f"p{n}": {"anyOf": [WORD, {"type": "null"}]} for n in range(16)}))
    schemas.check("s", {**schema(a={"$ref": "#/$defs/w"}, b={"$ref": "#/$defs/w"}), "$defs": {"w": WORD}})


@pytest.mark.parametrize(
    ("headers", "status", "kind"),
    [
        ({}, 401, "authentication_error"),
        ({"authorization": "Bearer wrong"}, 401, "authentication_error"),
        ({"x-api-key": "wrong"}, 401, "authentication_error"),
        ({"x-api-key": "key", "anthropic-version": ""}, 400, "invalid_request_error"),
        ({"x-api-key": "key", "anthropic-version": "1999-01-01"}, 400, "invalid_request_error"),
        ({"authorization": "Bearer key"}, 200, ""),
        ({"x-api-key": "key"}, 200, ""),
    ],
)
def test_who_asks_and_for_which_version_has_to_be_said(
    headers: dict[str, str], status: int, kind: str
) -> None:
    """Bearer and x-api-key are both taken, a wrong or missing one is 401, a wrong or missing version 400."""
    import http.client

    with FakeMessages("yes", key="key") as api:
        connection = http.client.HTTPConnection(api.url.removeprefix("http://"), timeout=60)
        sent = {"anthropic-version": "2023-06-01", **headers}
        connection.request("POST", "/v1/messages", json.dumps(body()), sent)
        answer = connection.getresponse()
        data = json.loads(answer.read())
        connection.close()
    assert (answer.status, data.get("error", {}).get("type", "")) == (status, kind)
