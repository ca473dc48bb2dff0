"""A notification as the JSON of Slack's incoming webhooks, which Mattermost and Discord (`/slack`) take as well."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

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
