"""Why a call fails."""

from __future__ import annotations


class Refusal(Exception):
    """The call cannot do what it should; the message is one line for people."""
