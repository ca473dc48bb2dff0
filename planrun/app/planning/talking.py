"""A conversation with a model that a command waits for: told as it goes on, ended when somebody ends the command."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.app.planning.conversing import Conversation, Result, Talk
    from planrun.model.events import Event

_PAUSE = 0.02  # seconds between two looks for an answer that takes seconds


def hold(talk: Conversation, asking: Talk, heard: Callable[[Event], None]) -> Result:
    """Return how a conversation ended, of which `asking` is what is asked; `heard` gets every event.

    A KeyboardInterrupt ends it and is raised again.
    """
    try:
        while True:
            event = next(asking)
            if event is None:
                time.sleep(_PAUSE)
            else:
                heard(event)
    except StopIteration as ended:
        result: Result = ended.value
        return result
    except KeyboardInterrupt:
        talk.stop()
        raise
