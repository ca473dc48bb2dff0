"""What a person writes about a step that goes on while others need it."""

from __future__ import annotations

from planrun.source.schema.words import Duration, FullText, Written, key


class Ready(Written):
    """How to tell that a service is ready."""

    run: FullText = key("A command that passes when it is.", "curl -f localhost:8000", required=True)
    interval: Duration | None = key("How long to wait between two tries.", "1s")
    timeout: Duration | None = key("How long it may take until it is ready.", "1m")
