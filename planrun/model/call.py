"""The interface to a language model, as plain data: a Request goes out, an Answer comes back."""

from __future__ import annotations

from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    Purpose = Literal["generate", "expand", "replan", "agent"]
    Ending = Literal[
        "answered",  # the text is whole
        "truncated",  # the answer was cut off by max_tokens or by the connection; `text` must not be used
        "refused",  # the model declined
        "malformed",  # what came is no message: broken JSON, HTML, missing fields, unknown blocks
        "rejected",  # the request is wrong: 400, 404, 413, 422
        "unauthorized",  # 401, 403, or there are no credentials
        "unpaid",  # 402, or a 400 or 403 that says so
        "limited",  # 429 to the end, or a 400 or 403 that says that a quota is used up
        "overloaded",  # 529 to the end
        "unavailable",  # 5xx, or no connection, to the end
        "late",  # no time is left
        "stopped",  # by planrun, before it had ended
        "missing",  # a recording has no answer to this request
        "unrecorded",  # it was to be recorded, and was not; `text` must not be used
    ]


TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
"""The kinds of tokens, as every record and report names them."""


BOUND = "text:thoughts"
"""The rule of an answer that refuses a thought: what it followed is not the same any more."""


class Request(Record):
    """One question to a model.

    `system` is the stable beginning: the same for every request of one kind, so that the service may keep it. `schema`
    is the JSON Schema that the answer has to follow; None: any text. `seconds`: for the call with all its repeats.
    """

    purpose: Purpose
    model: str
    system: tuple[str, ...]
    messages: tuple[dict[str, Any], ...]  # role and content, as the Messages API has them
    max_tokens: int
    schema: dict[str, Any] | None = None
    effort: str = ""
    seconds: float = 120.0
    retries: int = 5
    extra_body: dict[str, Any] = {}  # noqa: RUF012 - never written; more fields of the request
    tools: tuple[dict[str, Any], ...] = ()  # that the model may call: name, description, input_schema
    paid: int = 2  # how many attempts may cost something; one that the service turned down does not


class Usage(Record):
    """Tokens of one call, repeats included, as far as the service reported them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    @property
    def total(self) -> int:
        """Every token, wherever it came from."""
        return self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens

    def __add__(self, other: Usage) -> Usage:
        """Return both together."""
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in TOKENS})


class Repeat(Record):
    """A call is made once more: `attempt` of it failed as `message` says, in one line; the next is due in `delay` s."""

    attempt: int
    message: str
    delay: float = 0.0


class Answer(Record):
    """How a call ended; `text` is there for `answered` alone.

    `is_estimate`: the service did not report the whole usage (the connection broke), and `usage` holds an upper bound.
    """

    ending: Ending
    text: str = ""
    content: tuple[
        dict[str, Any], ...
    ] = ()  # of a request with tools: its texts and calls, as the service has them
    usage: Usage = Usage()
    is_estimate: bool = False
    attempts: int = 1
    duration: float = 0.0  # seconds
    model: str = ""  # which one answered
    request_id: str = ""
    stop_reason: str = ""
    message: str = ""  # one line, for people, of whatever is not answered
    rule: str = ""  # what decided the ending: `type:overloaded_error`, `status:529`, `stop_reason:refusal` …
    replayed: bool = False  # it comes from a recording
