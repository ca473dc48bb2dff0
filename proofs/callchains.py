"""Rows after rows: chains of faults in one call, drawn by a seed, with what has to come of each.

What has to come of a chain is told by four sentences, and not by the code that is on trial: a fault that is final ends
the call; one that is no message is made again once for each kind; all others are, until the call has no repeats left;
and nothing is made again once as many attempts may have cost something as are paid for.
"""

from __future__ import annotations

import random
from typing import Any

from proofs.callrows import Row
from tests.fakes.messages import Fault, Reply, Tokens, broken, refuse, say, status, think

FINAL, ONCE, OFTEN = 0, 1, 1000
"""How often an attempt may be made again on account of a fault."""
TEXTS = ("yes", '{"n": 1}', "äöü € 🙂 \u202e\0 end", "long " * 300)
# Each fault with how its call ends when it was the last attempt, by which rule, and how often it is made again.
LINKS: tuple[tuple[Any, str, str, int], ...] = (
    (status(429, retry_after_ms=20), "limited", "type:rate_limit_error", OFTEN),
    (status(429), "limited", "type:rate_limit_error", OFTEN),
    (status(500), "unavailable", "type:api_error", OFTEN),
    (status(503, "odd"), "unavailable", "status:503", OFTEN),
    (status(504), "unavailable", "type:timeout_error", OFTEN),
    (status(529), "overloaded", "type:overloaded_error", OFTEN),
    (status(529, x_should_retry="true"), "overloaded", "type:overloaded_error", OFTEN),
    (status(529, x_should_retry="false"), "overloaded", "type:overloaded_error", FINAL),
    (status(400), "rejected", "type:invalid_request_error", FINAL),
    (status(401), "unauthorized", "type:authentication_error", FINAL),
    (status(402), "unpaid", "type:billing_error", FINAL),
    (status(404), "rejected", "type:not_found_error", FINAL),
    (status(413), "rejected", "type:request_too_large", FINAL),
    (status(422), "rejected", "type:invalid_request_error", FINAL),
    (Fault("html"), "malformed", "content_type:text/html", ONCE),
    (Fault("broken_json"), "malformed", "json", ONCE),
    (Fault("missing_fields"), "malformed", "message:incomplete", ONCE),
    (broken("bad_json"), "malformed", "json", ONCE),
    (Reply(), "malformed", "text:empty", ONCE),
    (Reply(blocks=({"type": "hologram"},)), "malformed", "content_block:hologram", FINAL),
    (say("x", stop_reason="pause_turn"), "malformed", "stop_reason:pause_turn", FINAL),
    (refuse("cyber"), "refused", "stop_reason:refusal", FINAL),
    (say("x", stop_reason="max_tokens"), "truncated", "stop_reason:max_tokens", FINAL),
    *[(broken("end", at), "truncated", "stream:ended_early", OFTEN) for at in ("usage", "text", "blocks")],
    *[(broken("reset", at), "truncated", "connection:ReadError", OFTEN) for at in ("usage", "text")],
    (broken("reset", "head"), "unavailable", "connection:ReadError", OFTEN),
    (broken("drop"), "truncated", "connection:RemoteProtocolError", OFTEN),
    (broken("bad_chunk"), "truncated", "connection:RemoteProtocolError", OFTEN),
    (broken("error"), "overloaded", "type:overloaded_error", OFTEN),
    (broken("error", "usage", error="api_error"), "unavailable", "type:api_error", OFTEN),
    (broken("error", error="authentication_error"), "unauthorized", "type:authentication_error", FINAL),
)


def chains(count: int, seed: int) -> tuple[Row, ...]:
    """Return so many chains; the same seed gives the same ones."""
    draw = random.Random(seed)
    return tuple(_chain(f"chain {number} of seed {seed}", draw) for number in range(count))


def _chain(name: str, draw: random.Random) -> Row:
    retries, paid = draw.randrange(6), draw.choice((1, 2, 3, 99))
    request = {"retries": retries, "paid": paid}
    # Faults that are repeated make long chains, of which an answer is one end among others.
    weights = [4 if often else 1 for *_, often in LINKS]
    seen: dict[str, int] = {}
    costly = 0
    script: list[Any] = []
    while True:
        if draw.random() < 0.15:
            text = draw.choice(TEXTS)
            script.append(_answer(draw, text))
            return Row(name, script, "answered", "stop_reason:end_turn", "", request, text)
        reply, ending, rule, often = draw.choices(LINKS, weights)[0]
        script.append(reply)
        seen[rule] = seen.get(rule, 0) + 1
        costly += not (isinstance(reply, Reply) and reply.fault and reply.fault.kind == "status")
        if seen[rule] > often or len(script) > retries or costly >= paid:
            return Row(name, script, ending, rule, "", request)


def _answer(draw: random.Random, text: str) -> Reply:
    """Return an answer that is whole, however it is sent and counted."""
    made = think("hm " * draw.randrange(1, 9), text) if draw.random() < 0.3 else say(text)
    cached = Tokens(draw.randrange(99), draw.randrange(1, 99), draw.randrange(9999), draw.randrange(999))
    return made.but(
        piece=draw.choice((1, 7, 48, 4096)),
        pings=draw.randrange(3),
        pace=draw.choice((0.0, 0.0, 0.002)),
        first_byte=draw.choice((0.0, 0.0, 0.05)),
        usage=draw.choice((None, cached)),
    )
