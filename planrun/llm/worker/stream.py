"""The order of the events of a stream: one that is out of order is forged or broken, and is no answer.

One attempt: the request as the library sends it, and the stream read to its end or to whatever is wrong with it.
"""

from __future__ import annotations

import json

import anthropic
import httpx2
from anthropic.lib.credentials import IdentityTokenFile, WorkloadIdentityCredentials

from planrun.llm.worker.blocks import Blocks
from planrun.llm.worker.outcomes import Outcome, Unusable
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from planrun.llm.worker.call import Call
    from planrun.model.call import Ending, Request

# Which deltas a block of a kind grows by; kinds that are not here are looked at by the reader.
_DELTAS: dict[object, tuple[str, ...]] = {
    "text": ("text_delta", "citations_delta"),
    "thinking": ("thinking_delta", "signature_delta"),
    "redacted_thinking": (),
    "tool_use": ("input_json_delta",),
}


_KNOWN = frozenset(name for names in _DELTAS.values() for name in names)


class Order:
    """Watches one stream: a message begins once, its blocks come one after the other, then it ends once."""

    def __init__(self) -> None:
        self._has_begun = False
        self._open: tuple[int, object] | None = None  # number and kind of the block that grows
        self._blocks = 0
        self._stop: object = None
        self._has_told = False
        self._has_ended = False

    def take(self, event: Any) -> None:
        """See the next event of a kind that has an order; raises Unusable when it is out of order."""
        kind = event.type
        if kind == "message_start":
            self._hold(not self._has_begun, "a message begins twice")
            self._has_begun = True
            return
        self._hold(self._has_begun, "the beginning of the message is missing")
        self._hold(not self._has_ended, "something comes after the end of the message")
        _TURNS[kind](self, event)

    def _block(self, event: Any) -> None:
        self._hold(not self._has_told, "a part comes after the end of the answer")
        self._hold(self._open is None, "a part begins within another")
        self._hold(_number(event) == self._blocks, "a part is missing")
        self._open = (self._blocks, _kind(event, "content_block"))
        self._blocks += 1

    def _delta(self, event: Any) -> None:
        self._hold(self._grows(event), "a piece belongs to no part")
        assert self._open is not None
        kind = _kind(event, "delta")
        fits = kind not in _KNOWN or kind in _DELTAS.get(self._open[1], _KNOWN)
        self._hold(fits, "a piece is of another kind than its part")

    def _close(self, event: Any) -> None:
        self._hold(self._grows(event), "a part ends that is not open")
        self._open = None

    def _turn(self, event: Any) -> None:
        stop = getattr(getattr(event, "delta", None), "stop_reason", None)
        self._hold(self._open is None or stop != "end_turn", "the answer ends within a part")
        self._hold(self._stop is None or stop in (None, self._stop), "the answer ends in two ways")
        self._stop = stop or self._stop
        self._has_told = True

    def _end(self, _event: Any) -> None:
        self._has_ended = True

    def _grows(self, event: Any) -> bool:
        """Whether an event belongs to the part that grows."""
        return self._open is not None and self._open[0] == _number(event)

    def _hold(self, fact: bool, message: str) -> None:  # noqa: FBT001 - an assertion, in other words
        if not fact:
            raise Unusable("stream:order", f"the service sent a stream out of order: {message}")


def _number(event: Any) -> object:
    return getattr(event, "index", None)


def _kind(event: Any, part: str) -> object:
    return getattr(getattr(event, part, None), "type", None)


_TURNS = {
    "content_block_start": Order._block,
    "content_block_delta": Order._delta,
    "content_block_stop": Order._close,
    "message_delta": Order._turn,
    "message_stop": Order._end,
}
KINDS = frozenset({"message_start", *_TURNS})
"""Events that have an order; others may come any time."""


MOST_BYTES = 32 << 20  # of one response
MOST_TEXT = 1 << 20  # characters of one answer, four times as many as are read of a draft
_CONNECT = 15.0  # seconds to wait for a connection
_SILENCE = 60.0  # between two pieces of a stream, in which the service sends signs of life
_AFTER = 5.0  # seconds past the deadline of the call, which another part enforces and reports better
_IN_TEXT = (
    "\n\nAnswer with nothing but one JSON value that follows this JSON Schema, without a fence around it:\n"
)
_STOPS: dict[str, tuple[Ending, str]] = {
    "end_turn": ("answered", ""),
    "tool_use": ("answered", ""),
    "refusal": ("refused", "the model declined to answer"),
    "max_tokens": ("truncated", "the answer was cut off at max_tokens"),
    "model_context_window_exceeded": ("truncated", "question and answer are longer than the model can hold"),
}
_BLOCKS = ("text", "thinking", "redacted_thinking")
_SILENT_DELTAS = ("citations_delta",)


class Form(Record):
    """What a request makes use of, until the service says that it does not know it."""

    schema: bool = True
    effort: bool = True
    thinking: bool = True


class _Capped(httpx2.SyncByteStream):
    """A body that ends in an error when it is longer than anything that is awaited."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        count = 0
        for piece in self._stream:
            count += len(piece)
            if count > MOST_BYTES:
                raise Unusable("size", f"the service sent more than {MOST_BYTES >> 20} MiB", repeat=0)
            yield piece

    def close(self) -> None:
        self._stream.close()


def client_of(base_url: str, credentials: dict[str, Any]) -> anthropic.Anthropic:
    """Return a client with every setting given, so that no variable and no file of the machine has an effect."""
    kind, fields = credentials["kind"], credentials["fields"]
    given: dict[str, Any] = (
        {kind: fields["value"]} if kind != "federation" else {"credentials": _identity(fields)}
    )
    return anthropic.Anthropic(
        base_url=base_url,
        max_retries=0,
        open_telemetry=False,
        # Compressed bodies could not be held to a size before they are unpacked.
        default_headers={"Accept-Encoding": "identity"},
        http_client=anthropic.DefaultHttpxClient(
            follow_redirects=False, event_hooks={"response": [_confine]}
        ),
        **given,
    )


def _identity(fields: dict[str, str]) -> WorkloadIdentityCredentials:
    path, token = fields.get("token_file"), fields.get("token", "")
    provider: Callable[[], str] = IdentityTokenFile(path) if path else lambda: token
    return WorkloadIdentityCredentials(
        identity_token_provider=provider,
        federation_rule_id=fields["federation_rule_id"],
        organization_id=fields["organization_id"],
        service_account_id=fields.get("service_account_id"),
        workspace_id=fields.get("workspace_id"),
        scope=fields.get("scope"),
    )


def _confine(response: httpx2.Response) -> None:
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("", "identity"):
        raise Unusable("content_encoding", "the service sent a compressed answer, which was not requested")
    response.stream = _Capped(response.stream)


def attempt(client: anthropic.Anthropic, form: Form, call: Call) -> Outcome:
    """Ask once and read the answer; raises what the library raises."""
    request, seconds = call.request, max(0.0, call.left) + _AFTER
    patience = httpx2.Timeout(min(seconds, _SILENCE), connect=min(seconds, _CONNECT))
    call.tally.sent()
    call.progress(now=True)  # what is lost from now on may have cost something
    stream = client.messages.create(**body_of(request, form), stream=True, timeout=patience)
    with stream:
        return Reader(stream.response, call, is_fenced=not form.schema and request.schema is not None).read(
            stream
        )


def body_of(request: Request, form: Form) -> dict[str, Any]:
    """Return what is asked, as the library takes it; the beginning is the same, byte for byte, whatever the form."""
    messages = list(request.messages)
    config: dict[str, Any] = {}
    if request.effort and form.effort:
        config["effort"] = request.effort
    if request.schema is not None and form.schema:
        config["format"] = {"type": "json_schema", "schema": request.schema}
    elif request.schema is not None:
        messages[-1] = _with_schema(messages[-1], request.schema)
    # Repairs and turns go on from here. The service looks 20 blocks back for what it has, and a turn may have more.
    messages[-3::2] = map(_kept, messages[-3::2])
    system = [{"type": "text", "text": text} for text in request.system if text]
    body: dict[str, Any] = {"model": request.model, "max_tokens": request.max_tokens, "messages": messages}
    if system:
        system[-1]["cache_control"] = {"type": "ephemeral"}  # type: ignore[assignment] # a mapping among texts
        body["system"] = system
    if config:
        body["output_config"] = config
    if request.tools:  # thoughts are not asked for: masks may change them, and then they cannot be sent back
        body["tools"] = list(request.tools)
    elif form.thinking:
        body["thinking"] = {"type": "adaptive"}
    if request.extra_body:
        body["extra_body"] = request.extra_body
    return body


def _kept(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message of a conversation, up to which the service keeps it for the next request."""
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    blocks[-1] = {**blocks[-1], "cache_control": {"type": "ephemeral"}}
    return {**message, "content": blocks}


def _with_schema(message: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    text = _IN_TEXT + json.dumps(schema, sort_keys=True, ensure_ascii=False)
    content = message["content"]
    grown = content + text if isinstance(content, str) else [*content, {"type": "text", "text": text}]
    return {**message, "content": grown}


class Reader:
    """Reads one stream: collects the text, counts, and lets nothing pass that it does not know."""

    def __init__(self, response: httpx2.Response, call: Call, *, is_fenced: bool) -> None:
        self._response = response
        self._call = call
        self._tally = call.tally
        self._is_fenced = is_fenced
        self._order = Order()
        self._texts: list[str] = []
        self._blocks = Blocks() if call.request.tools else None
        self._length = 0  # of these, in characters
        self._thought = 0  # the same of thoughts
        self._model = ""
        self._stop: Any = None
        self._category = ""
        self._strange: Unusable | None = None
        self._has_ended = False
        self._has_begun = False

    def read(self, stream: Any) -> Outcome:
        """Return the outcome; raises Unusable for what is no message, and what the library raises."""
        kind = self._response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "text/event-stream":
            raise Unusable(f"content_type:{kind or 'none'}", "the service sent no stream of events")
        try:
            for event in stream:
                self._look(event)
                self._call.progress()
        except ValueError:  # what stood there may have been long
            self._tally.unread()
            raise
        except httpx2.HTTPError as error:
            if not self._has_begun:
                raise
            return self._outcome(
                "truncated", f"connection:{type(error).__name__}", "the connection broke within the answer"
            )
        return self._conclude()

    def _look(self, event: Any) -> None:
        """Take an event; an oddity in it is reported once the stream has stated what it costs."""
        try:
            self._take(event)
        except Unusable as strange:
            self._tally.unread()
            self._strange = self._strange or strange

    def _take(self, event: Any) -> None:
        kind = getattr(event, "type", None)
        if not isinstance(kind, str):
            raise Unusable("event:no_type", "the service sent an event without a type")
        if kind in KINDS:
            self._order.take(event)
        reader = _READERS.get(kind)
        if reader is not None:  # new kinds of events may come any time, and are no part of the answer
            reader(self, event)

    def _begin(self, event: Any) -> None:
        self._has_begun = True
        message = getattr(event, "message", None)
        self._model = _text(message, "model")
        self._tally.report(getattr(message, "usage", None), final=False)
        if not self._model or getattr(message, "usage", None) is None:
            raise Unusable("message:incomplete", "the service sent a message without its model or usage")

    def _open(self, event: Any) -> None:
        block = getattr(event, "content_block", None)
        kind = _text(block, "type")
        if kind == "tool_use" and self._blocks is not None:
            self._blocks.begin_call(block)
            return
        if kind not in _BLOCKS:
            raise Unusable(
                f"content_block:{kind or 'none'}",
                f"the model answered with a part that planrun does not know: {kind!a}",
                repeat=0,
            )
        if kind == "text":
            if self._blocks is not None:
                self._blocks.begin_text()
            self._add(_text(block, "text"))
        else:
            self._tally.unread()
            if self._blocks is not None:
                self._blocks.begin_thought(block)

    def _grow(self, event: Any) -> None:
        delta = getattr(event, "delta", None)
        kind = _text(delta, "type")
        if kind == "text_delta":
            if not isinstance(getattr(delta, "text", None), str):
                raise Unusable("delta:incomplete", "the service sent a piece of text without the text")
            self._add(delta.text)  # type: ignore[union-attr] # just looked at
        elif kind == "input_json_delta" and self._blocks is not None:
            self._count(_text(delta, "partial_json"))
            self._blocks.arguments(_text(delta, "partial_json"))
        elif kind == "thinking_delta":
            self._tally.unread()
            self._think("thinking", _text(delta, "thinking"))
        elif kind == "signature_delta":
            self._think("signature", _text(delta, "signature"))
        elif kind not in _SILENT_DELTAS:
            raise Unusable(
                f"delta:{kind or 'none'}",
                f"the model answered with a part that planrun does not know: {kind!a}",
                repeat=0,
            )

    def _think(self, name: str, piece: str) -> None:
        """Keep a thought of an answer with calls: the service wants it back with their results."""
        self._thought += len(piece)
        if self._thought > MOST_TEXT:
            raise Unusable("size", f"the model thought more than {MOST_TEXT} characters", repeat=0)
        if self._blocks is not None:
            self._blocks.thought(name, piece)

    def _add(self, text: str) -> None:
        self._count(text)
        self._texts.append(text)
        if self._blocks is not None:
            self._blocks.text(text)

    def _count(self, text: str) -> None:
        self._tally.received(text)
        self._length += len(text)
        if self._length > MOST_TEXT:
            self._texts.clear()
            raise Unusable("size", f"the model wrote more than {MOST_TEXT} characters", repeat=0)

    def _turn(self, event: Any) -> None:
        self._tally.report(getattr(event, "usage", None), final=True)
        delta = getattr(event, "delta", None)
        self._stop = getattr(delta, "stop_reason", None) or self._stop
        self._category = _text(getattr(delta, "stop_details", None), "category")

    def _finish(self, _event: Any) -> None:
        self._has_ended = True

    def _conclude(self) -> Outcome:
        """Look at why the model stopped, before anything of its text."""
        stop = self._stop
        if self._strange:
            raise self._strange
        if self._has_ended and not self._has_begun:
            self._tally.unread()
            raise Unusable("message:incomplete", "the service sent the end of a message without its start")
        if stop is None or (stop == "end_turn" and not self._has_ended):
            reason = "the stream ended before the answer did"
            return self._outcome("truncated", "stream:ended_early", reason)
        if not isinstance(stop, str) or stop not in _STOPS or (stop == "tool_use" and self._blocks is None):
            reason = f"the model stopped for a reason that planrun does not know: {str(stop)!a}"
            raise Unusable(f"stop_reason:{stop!s}", reason, repeat=0)
        ending, reason = _STOPS[stop]
        if ending == "refused" and self._category:
            reason += f" ({self._category})"
        outcome = self._outcome(ending, f"stop_reason:{stop}", reason).but(repeat=0)
        if self._blocks is not None:
            return outcome.but(content=self._blocks.finished()) if ending == "answered" else outcome
        return outcome.but(text=self._text()) if ending == "answered" else outcome

    def _text(self) -> str:
        text = "".join(self._texts)
        if not text.strip():
            raise Unusable("text:empty", "the model answered with nothing")
        return _unfenced(text) if self._is_fenced else text

    def _outcome(self, ending: Ending, rule: str, message: str) -> Outcome:
        return Outcome(
            ending=ending,
            rule=rule,
            message=message,
            stop_reason=self._stop if isinstance(self._stop, str) else "",
            model=self._model,
            request_id=self._response.headers.get("request-id", ""),
            repeat=None,
        )


_READERS: dict[str, Callable[[Reader, Any], None]] = {
    "message_start": Reader._begin,
    "content_block_start": Reader._open,
    "content_block_delta": Reader._grow,
    "message_delta": Reader._turn,
    "message_stop": Reader._finish,
}


def _unfenced(text: str) -> str:
    """Return what stands in a fence, when the text is nothing but that."""
    stripped = text.strip()
    first, _, rest = stripped.partition("\n")
    if first.startswith("```") and rest.rstrip().endswith("```"):
        return rest.rstrip().removesuffix("```")
    return text


def _text(record: Any, name: str) -> str:
    value = getattr(record, name, None)
    return value if isinstance(value, str) else ""
