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
        self._shared: dict[str, dict[str, Any]] = {}  # as they were rendered first

    def prepare(self, step: Step, scope: dict[str, Any], recipe: Recipe, prepared: Prepared) -> Prepared:
        """Return the same job in a container, or how the attempt ended when there can be none."""
        assert step.container is not None
        assert prepared.job is not None
        try:
            found = rendered(step.container, scope)
            self._keep_to(step, found)
        except EvaluationError as error:
            refused = Outcome(status="failed", reason="refused", message=str(error))
            return Prepared(fingerprint="", outcome=refused)
        if not found["image"]:
            return prepared
        try:
            job = self._made(step, prepared.job, found, recipe)
        except (NoEngine, OSError) as error:
            outcome = Outcome(status="failed", reason="spawn", message=str(error))
            return Prepared(fingerprint=prepared.fingerprint, outcome=outcome)
        self._images[step.id] = image_id(job.container["engine"], found["image"], job.env)
        return Prepared(fingerprint=prepared.fingerprint + self._part(found, self._images[step.id]), job=job)

    def _made(self, step: Step, job: Job, found: dict[str, Any], recipe: Recipe) -> Job:
        if "shared" not in found:
            return contained(job, found, recipe.env, step.secrets)
        from planrun.steps.shared import sharing

        return sharing(job, found, recipe.env, step, self._steps.place.rundir)

    def _keep_to(self, step: Step, found: dict[str, Any]) -> None:
        """Raise EvaluationError for a shared container that would be another one than its first step started."""
        if "shared" not in found:
            return
        from planrun.steps.shared import room_of

        own = {name: value for name, value in found.items() if name != "env"}
        first = self._shared.setdefault(room_of(step), own)
        if first != own:
            changed = ", ".join(sorted(name for name in {**first, **own} if first.get(name) != own.get(name)))
            raise EvaluationError(
                f'the container "{found["shared"]}" was started with another value of: {changed}'
            )

    def take_over(self, step: Step, job: Job, output: str) -> None:
        """Have the files of an attempt where they belong, which a step in a shared container may have replaced."""
        if job.container and not job.part:
            from planrun.steps.shared import bring_back

            bring_back(self._steps.place.rundir, step, output)

    def is_wanted(self, step: Step, scope: dict[str, Any]) -> bool:
        """Say whether a step runs in a container: an empty image means none. Raises EvaluationError."""
        assert step.container is not None
        return bool(isinstance(step.container.image, str) or rendered(step.container, scope)["image"])

    def part(self, step: Step, scope: dict[str, Any]) -> str:
        """Return the parts of a fingerprint that stand for container and image; raises EvaluationError."""
        assert step.container is not None
        found = rendered(step.container, scope)
        if not found["image"]:
            return ""
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
