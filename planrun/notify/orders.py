"""From a target and a document to what a sender gets: address, headers and body, or a command and its environment."""

from __future__ import annotations

import hmac
import json
import os
from hashlib import sha256

from planrun import __version__
from planrun.errors import InvalidInput
from planrun.model.record import Record
from planrun.notify.document import variables
from planrun.plan.keys.notify import fault_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.model.notify import Target


BLOCK = 2900
"""Characters of one block: Slack refuses more than 3,000."""
_HEADER = 150  # Slack refuses more than 150 in a header
_ROW = 400
_QUOTED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def message(found: Mapping[str, Any], channel: str = "") -> dict[str, Any]:
    """Return the message for the document of a notification."""
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": _cut(found["text"], _HEADER)}},
        *[_section(rows, more) for rows, more in _lists(found) if rows],
        {"type": "context", "elements": [{"type": "mrkdwn", "text": _cut(_about(found), BLOCK)}]},
    ]
    whole: dict[str, Any] = {"text": _cut(quoted(found["text"]), BLOCK), "blocks": blocks}
    return {**whole, "channel": channel} if channel else whole


def _lists(found: Mapping[str, Any]) -> list[tuple[list[str], int]]:
    """Return the rows about failures and gates, and how many are not in the document."""
    failed = [_failure(step) for step in found["failed_steps"]] if found["event"] == "failed" else []
    waiting = [_gate(gate) for gate in found["waiting"]] if found["event"] in ("waiting", "failed") else []
    return [(failed, found["more_failed_steps"]), (waiting, found["more_waiting"])]


def _section(rows: list[str], more: int) -> dict[str, Any]:
    """Return a block with as many rows as fit."""
    text, shown = "", 0
    for row in rows:
        if len(text) + len(row) + 40 > BLOCK:
            break
        text, shown = f"{text}{row}\n", shown + 1
    rest = len(rows) - shown + more
    return {"type": "section", "text": {"type": "mrkdwn", "text": text + (f"_{rest} more_" if rest else "")}}


def _failure(step: Mapping[str, Any]) -> str:
    why = step["last_line"] or step["message"]
    kind = f" ({step['class']})" if step["class"] else ""
    place = f" `{step['file']}:{step['line']}`" if step["line"] else ""
    return f"*{quoted(step['id'])}*{place}{kind}: {_cut(quoted(why), _ROW)}"


def _gate(gate: Mapping[str, Any]) -> str:
    about = gate["question"] or gate["reason"]
    first = gate["commands"][:2]
    rows = [f"*{quoted(gate['step'] or 'the plan')}*: {_cut(quoted(about), _ROW)}"]
    rows += [f"`{_cut(quoted(command.replace('`', chr(39))), _ROW)}`" for command in first]
    return "\n".join(rows)


def _about(found: Mapping[str, Any]) -> str:
    run, source = found["run"], found["source"]
    parts = [f"run {run['id']}"]
    if run["exit_code"] is not None:
        parts.append(f"exit code {run['exit_code']}")
    if run["duration_s"]:
        parts.append(f"{run['duration_s']:.0f}s")
    parts += [source[name][:40] for name in ("ref", "sha") if source[name]]
    text = quoted(", ".join(parts))
    return f"{text}, <{source['url']}|CI job>" if source["url"] else text


def quoted(text: str) -> str:
    """Return a text in which Slack sees no links, mentions or entities."""
    return text.translate(_QUOTED)


def _cut(text: str, most: int) -> str:
    """Return a text of at most that many characters; an entity is not cut in two."""
    if len(text) <= most:
        return text
    head = text[: most - 1]
    amp = head.rfind("&", most - 8)
    return f"{head[:amp] if amp >= 0 and ';' not in head[amp:] else head}…"


class Place(Record):
    """Where notifications are sent from: the environment of commands, their folder, and the values of secrets."""

    workspace: str
    env: Mapping[str, str]
    secrets: Mapping[str, str] = {}


def body_of(target: Target, document: Mapping[str, Any]) -> str:
    """Return what a target gets: the document, or a message made of it."""
    data = message(document, target.channel) if target.kind == "slack" else document
    return json.dumps(data, ensure_ascii=False)


def order_of(target: Target, document: Mapping[str, Any], place: Place, delivery: str) -> dict[str, Any]:
    """Return what the sender of a notification gets; raises InvalidInput when it cannot be sent.

    `delivery`: an id that is the same in all tries, for receivers that drop repetitions.
    """
    missing = [name for name in target.needs if not place.secrets.get(name)]
    if missing:
        raise InvalidInput(f"the secret {missing[0]} is not set")
    body = body_of(target, document)
    known = {name: place.secrets[name] for name in target.needs}
    order: dict[str, Any] = {
        "kind": target.kind,
        "body": body,
        "seconds": target.seconds,
        "masked": known,
    }
    if target.kind == "command":
        return order | _command(target, document, place)
    return order | {"url": _address(target, known), "headers": _headers(target, known, body, delivery)}


def _command(target: Target, document: Mapping[str, Any], place: Place) -> dict[str, Any]:
    env = {
        **place.env,
        **{name: place.secrets[name] for name in target.secrets},
        **variables(document),
        "PLANRUN_WORKSPACE": place.workspace,
    }
    return {"argv": list(target.argv), "env": env, "folder": place.workspace}


def _address(target: Target, secrets: Mapping[str, str]) -> str:
    """Return the address; raises InvalidInput for a secret that is none."""
    if target.url:
        return target.url
    url = secrets[target.url_secret].strip()
    why, _ = fault_of(url, secret=True)
    if why:
        raise InvalidInput(f"the secret {target.url_secret}: {why}")
    return url


def _headers(target: Target, secrets: Mapping[str, str], body: str, delivery: str) -> dict[str, str]:
    """Return the headers; raises InvalidInput for a secret that no header can hold."""
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "User-Agent": f"planrun/{__version__}",
        "X-Planrun-Delivery": delivery,
        **target.headers,
    }
    for name, secret in target.secret_headers.items():
        value = secrets[secret].strip("\r\n")
        if not value.isprintable() or not value.isascii():
            raise InvalidInput(f"the secret {secret} has characters that no header can hold")
        headers[name] = value
    if target.sign:
        digest = hmac.new(os.fsencode(secrets[target.sign]), body.encode(), sha256).hexdigest()
        headers["X-Planrun-Signature-256"] = f"sha256={digest}"
    return headers
