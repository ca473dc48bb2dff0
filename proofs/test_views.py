"""The short form of the proof that no view of a run shows a secret with hidden bytes inside."""

from __future__ import annotations

import random

import pytest

from proofs import views

MUST = {
    *("GitHub", "GitLab", "logs", "logs --json", "explain last failing", "serve /runs/RUN"),
    *(f"report last --format {form}" for form in ("text", "markdown", "html", "junit", "json")),
    *(
        f"file {name}"
        for name in ("summary.md", *(f"planrun-out/{name}" for name in ("report.html", "report.md")))
    ),
    *("file planrun-out/junit.xml", "file planrun-out/ledger.json"),
}
"""What shows lines of logs, and so the secret where masks do not look through hidden bytes."""


@pytest.mark.shows("R12")
def test_no_view_shows_a_secret(seed: int) -> None:
    """Of 60 drawn lines, in every place where planrun writes, prints, serves and sends."""
    leaks, every = views.leaking(random.Random(seed), 60)
    assert leaks == []
    assert {*MUST, "notifications", "--otel", "trace last", "file events.jsonl", "file outputs.txt"} <= set(
        every
    )


def test_the_proof_can_fail(seed: int) -> None:
    """Masks that look at bytes as they are: the oracle reads the secret in each view that shows logs."""
    assert set(views.leaking(random.Random(seed), 12, views.FAULT)[0]) >= MUST
