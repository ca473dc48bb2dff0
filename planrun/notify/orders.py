"""From a target and a document to what a sender gets: address, headers and body, or a command and its environment."""

from __future__ import annotations

import hmac
import json
import os
from hashlib import sha256

from planrun import __version__
from planrun.errors import InvalidInput
from planrun.model.record import Record
from planrun.notify import slack
from planrun.notify.document import variables
from planrun.plan.keys.notify import fault_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.model.notify import Target


class Place(Record):
    """Where notifications are sent from: the environment of commands, their folder, and the values of secrets."""

    workspace: str
    env: Mapping[str, str]
    secrets: Mapping[str, str] = {}


def body_of(target: Target, document: Mapping[str, Any]) -> str:
    """Return what a target gets: the document, or a message made of it."""
    data = slack.message(document, target.channel) if target.kind == "slack" else document
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
