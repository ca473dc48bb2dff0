"""Locks of the host as a score tells of them: a step has its locks when it started next, and waited otherwise."""

from __future__ import annotations

from planrun.model import events as ev

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.app.replaying.score import Score


class Holding:
    """The port `Locks` by a score."""

    patience = 0.0

    def __init__(self, score: Score) -> None:
        self._score = score
        self._told: dict[str, str] = {}  # why a step waits, since it was told last

    def claim(self, step: str, _names: tuple[str, ...]) -> str:
        """Give a step its locks if it started next, or say again why it had to wait."""
        coming = self._score.events[self._score.place :]
        if coming and getattr(coming[0], "step", None) == step and not isinstance(coming[0], ev.StepHeld):
            return ""
        if coming and isinstance(coming[0], ev.StepHeld) and coming[0].step == step:
            self._told[step] = coming[0].message
        elif step not in self._told:
            held = (event for event in coming if isinstance(event, ev.StepHeld) and event.step == step)
            self._told[step] = next((event.message for event in held), "held")
        return self._told[step]

    def release(self, step: str) -> None:
        """Nothing is held."""

    def close(self) -> None:
        """Nothing is held."""
