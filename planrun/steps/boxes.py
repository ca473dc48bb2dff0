"""Steps that run in containers: their jobs, the part of their fingerprints, and what is on record of them."""

from __future__ import annotations

from planrun.errors import EvaluationError
from planrun.model.job import Outcome, Prepared
from planrun.steps.containers import NoEngine, contained, engine_of, image_id, rendered, told
from planrun.steps.render import brief

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.model.job import Job
    from planrun.model.plan import Step
    from planrun.steps.render import Recipe
    from planrun.steps.runner import Steps


class Boxes:
    """The containers of a run's steps; `images`: the ids of images as they were before each step started."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._images: dict[str, str] = {}

    def prepare(self, step: Step, scope: dict[str, Any], recipe: Recipe, prepared: Prepared) -> Prepared:
        """Return the same job in a container, or how the attempt ended when there can be none."""
        assert step.container is not None
        assert prepared.job is not None
        try:
            found = rendered(step.container, scope)
        except EvaluationError as error:
            refused = Outcome(status="failed", reason="refused", message=str(error))
            return Prepared(fingerprint="", outcome=refused)
        try:
            job = contained(prepared.job, found, recipe.env, step.secrets)
        except (NoEngine, OSError) as error:
            outcome = Outcome(status="failed", reason="spawn", message=str(error))
            return Prepared(fingerprint=prepared.fingerprint, outcome=outcome)
        self._images[step.id] = image_id(job.container["engine"], found["image"], job.env)
        return Prepared(fingerprint=prepared.fingerprint + self._part(found, self._images[step.id]), job=job)

    def part(self, step: Step, scope: dict[str, Any]) -> str:
        """Return the parts of a fingerprint that stand for container and image; raises EvaluationError."""
        assert step.container is not None
        found = rendered(step.container, scope)
        try:
            engine = engine_of()
        except NoEngine:
            return self._part(found, "")
        return self._part(found, image_id(engine, found["image"], self._steps.place.env))

    def _part(self, found: dict[str, Any], image: str) -> str:
        masks = self._steps.place.masks
        known = masks.mask_value(found) if masks else found
        plain = sorted(
            (name, sorted(value.items()) if isinstance(value, dict) else value)
            for name, value in known.items()
        )
        return f" container:{brief(plain)}" + (f" image:{brief(image)}" if image else "")

    def conclude(self, step: Step, job: Job, outcome: Outcome) -> Outcome:
        """Return an outcome with what was used, created and deleted for it."""
        return (
            told(job, outcome, self._images.get(step.id, "")) if job.container and not job.part else outcome
        )
