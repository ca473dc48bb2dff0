"""The key `notify` of a plan and of a policy, as pydantic models with descriptions and examples."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planrun.plan.schema.fields import Argv, Duration, EnvName, EnvNames, Keys, Line, Written, key

HEADER_PATTERN = r"^[A-Za-z0-9-]{1,100}$"

NotifyEvent = Literal["failed", "recovered", "waiting", "completed", "cancelled"]
Events = NotifyEvent | Annotated[list[NotifyEvent], Field(min_length=1)]


class Webhook(Written):
    """A webhook whose address is written here, or is a secret."""

    url: Line | None = key("Its address.", "https://ci.example.com/hooks/planrun")
    url_secret: EnvName | None = key("The secret that holds its address.", "HOOK_URL")


class Slack(Written):
    """An incoming webhook that takes Slack's JSON: Slack, Mattermost, Discord with `/slack`."""

    url: Line | None = key("Its address, where that is no secret.", "https://chat.example.com/hooks/ci")
    url_secret: EnvName | None = key("The secret that holds its address.", "SLACK_URL")
    channel: Line | None = key("The channel, where the webhook allows another one.", "#releases")


class Notification(Written):
    """Who is notified of what: one of `webhook`, `slack` and `command`, and when."""

    webhook: Line | Webhook | None = key(
        "The address that gets a POST of one JSON document.", "https://ci.example.com/hooks/planrun"
    )
    slack: Slack | None = key("A chat that gets a message.", {"url_secret": "SLACK_URL"})
    command: Argv | None = key(
        "The words of a command that gets the JSON document on stdin; no shell reads them.",
        ["./scripts/notify.sh"],
    )
    on: Events | None = key("The events to notify of. Left out: `failed` and `recovered`.", "failed")
    headers: Annotated[dict[str, Line], Keys(HEADER_PATTERN)] | None = key(
        "Headers of the request.", {"X-Team": "release"}
    )
    secret_headers: Annotated[dict[str, EnvName], Keys(HEADER_PATTERN)] | None = key(
        "Headers whose values are secrets, by the names of the secrets.", {"Authorization": "HOOK_TOKEN"}
    )
    sign: EnvName | None = key(
        "The secret that signs the request, in the header X-Planrun-Signature-256.", "HOOK_KEY"
    )
    secrets: EnvNames | None = key("Secrets that the command gets as variables.", ["PAGER_TOKEN"])
    timeout: Duration | None = key(
        "How long all tries together may take, at most 1m. Left out: 15s, of a command 30s.", "10s"
    )


Notifications = Annotated[list[Notification], Field(min_length=1, max_length=20)]
