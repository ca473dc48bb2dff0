"""What becomes of actions: a few mean nothing here, or can be said in a plan; all others are refused."""

from __future__ import annotations

import re

from planrun.app.converting.draft import DraftStep
from planrun.app.converting.findings import UntranslatableError
from planrun.app.converting.github.names import PlaceNames, declare_outputs, job_ended
from planrun.app.converting.github.publishing import PUBLISHERS, publisher
from planrun.app.converting.github.setups import SETUPS, Setup
from planrun.app.converting.github.spelling import either
from planrun.app.converting.github.texts import template
from planrun.app.converting.reading import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from planrun.app.converting.findings import Findings
    from planrun.app.converting.github.facts import Job, Workflow
    from planrun.source.node import Node

_CACHES = frozenset(("actions/cache", "actions/cache/restore", "actions/cache/save", "Swatinem/rust-cache"))
_PLACED = ("repository", "path", "ref", "submodules", "lfs", "ssh-key")
_LOCAL_PATH = re.compile(r"(?![~/!])(?!.*(?:^|/)\.\.(?:/|$))(?!.*\$\{\{)[^\n]+")


class Actions:
    """Converts the steps of a job that use an action."""

    def __init__(self, workflow: Workflow, job: Job) -> None:
        self.workflow = workflow
        self.job = job
        self.inputs: Mapping[str, Node] = {}
        self.condition = ""  # the `if` of the step
        self.comments: list[str] = []  # for the next step that is made

    @property
    def found(self) -> Findings:
        """The findings of the file that is being read."""
        return self.workflow.found

    def step(self, node: Node, name: str) -> DraftStep | None:
        """Return the step that an action becomes; None when nothing is to be done, and the id is free."""
        uses = node.value["uses"]
        action = text_of(uses).strip().partition("@")[0]
        self.inputs = self.workflow.reader.mapping(node.get("with"), "`with`")
        self.condition = text_of(node.get("if")) or text_of(node.get("continue-on-error"))
        if action in SETUPS:
            try:
                return self._setup(action, node, name)
            except UntranslatableError as why:
                step = DraftStep(name)
                step.make_abstract(self.found.refuse(why.code, why.message, uses, name))
                return step
        if action == "re-actors/alls-green":
            return self._green(uses, name)
        if action in PUBLISHERS:
            return publisher(self, action, node, name)
        handler = _HANDLERS.get(action)
        if handler is None and action in _CACHES:
            handler = Actions.cache
        if handler is not None:
            handler(self, uses)
            return None
        return self._refused(action, uses, name)

    def _refused(self, action: str, uses: Node, name: str) -> DraftStep:
        code, message = f"uses:{action}", f"the action {action} cannot run here"
        if action.startswith("./"):
            message = f"the action {action} of this repository cannot run here; write what it does as steps"
        elif action.startswith("docker:"):
            message = f"{action}: write a step with `container:` and what is to run in it"
        step = DraftStep(name)
        note = self.found.refuse(code, message, uses, name)
        step.make_abstract(note)
        if self.inputs:
            given = [f"{key}: {text_of(value)}" for key, value in self.inputs.items()]
            step.keys["notes"] = "\n".join([f"uses: {text_of(uses)}", *given])[:4000]
        return step

    def _setup(self, action: str, node: Node, name: str) -> DraftStep:
        uses = node.value["uses"]
        setup = Setup(action, {key: text_of(value) for key, value in self.inputs.items()})
        told = " and ".join(setup.programs)
        step = DraftStep(name)
        message = f"{action} is not run: {told} must be there"
        if setup.left:
            message = (
                f"{action} is not run: {told} must be there, in the version that it asks for ({setup.left})"
            )
            step.notes.append(self.found.todo("setup", message, uses, name))
        elif setup.is_python:
            message = f"{action} is not run: a virtual environment is made of the Python that is there"
            self.found.differs("setup", message, uses)
        elif setup.script:
            self.found.differs(
                "setup", f"{action} is not run: the version of {told} that is there is checked", uses
            )
        else:
            self.found.differs("setup", message, uses)
        if setup.script:
            self._scripted(step, setup, node)
        elif self.job.is_whole or self.job.is_contained:
            lines = [
                f'command -v {name} > /dev/null || {{ echo "{name} is not on the PATH" >&2; exit 1; }}\n'
                for name in setup.programs
            ]
            step.keys["run"] = "".join(lines)
            step.is_raw = True
        else:
            step.keys["validate"] = [{"commands_on_path": setup.programs}]
        if self.job.is_contained and not self.job.is_mixed and "run" in step.keys:
            step.keys["shell"] = "sh -e"
        return step

    def _scripted(self, step: DraftStep, setup: Setup, node: Node) -> None:
        """Give a step the script of a setup; the version is put into its environment."""
        names = PlaceNames(self.workflow, self.job, node, ({}, self.job.env, self.workflow.env))
        before = {name: f"${{{{ {value} }}}}" for name, value in self.job.exported.items()}
        step.keys["env"] = {**before, "WANTED": template(setup.asked, names)}
        step.keys["run"] = setup.script
        step.is_raw = True
        if not setup.is_python:
            return
        step.keys["env"]["VENV"] = "${{ step.dir }}/venv"
        if self.job.is_whole or self.job.is_contained:
            step.keys["run"] += 'PATH="$VENV/bin:$PATH"\n'
            step.sets_path = True
        else:
            step.keys["run"] += 'echo "github_path=$VENV/bin:" >> "$PLANRUN_OUTPUT"\n'
            declare_outputs(step, ["github_path"])
            self.job.handing[step.id] = ["PATH"]

    def _green(self, uses: Node, name: str) -> DraftStep:
        """Return the check that the needed jobs succeeded, or were skipped where that is allowed."""
        allowed = {
            word: {each.strip() for each in text_of(self.inputs.get(word)).split(",")}
            for word in ("allowed-skips", "allowed-failures")
        }
        checks = []
        for job in self.job.needs:
            met = job_ended(job, "success")
            if job.name in allowed["allowed-failures"]:
                met = either(met, job_ended(job, "failure"))
            if job.name in allowed["allowed-skips"] | allowed["allowed-failures"]:
                met = either(met, job_ended(job, "skipped"))
            checks.append({"that": met.text})
        self.found.differs(
            "alls-green", "re-actors/alls-green becomes checks of how the needed jobs ended", uses
        )
        return DraftStep(name, validate=checks or [{"that": True}])

    def checkout(self, uses: Node) -> None:
        """Note that the workspace is used as it is."""
        self.found.differs("checkout", "nothing is checked out: the plan runs in the folder as it is", uses)
        for name in _PLACED:
            if name in self.inputs:
                asked = f"{name}: {text_of(self.inputs[name])}"
                message = f"actions/checkout asks for `{asked}`; have it there before the run"
                self.comments.append(self.found.todo("checkout", message, self.inputs[name]))

    def cache(self, uses: Node) -> None:
        """Leave a cache out: files of this machine are still there in the next run."""
        paths = " ".join(text_of(self.inputs.get("path")).split()) or "what it keeps"
        message = f"nothing is deleted between runs here, so {paths} needs no cache; `cache-hit` is false"
        self.found.differs("cache", message, uses)

    def upload(self, uses: Node) -> None:
        """Say of the step before that it makes the files.

        Their absence fails only where `if-no-files-found` is `error`; it is `warn` where nothing is said.
        """
        paths = [line.strip() for line in text_of(self.inputs.get("path")).split("\n") if line.strip()]
        self.job.uploads[text_of(self.inputs.get("name")) or "artifact"] = paths
        own = [step for step in self.job.made if "run" in step.keys and not step.is_raw]
        maker = own[-1] if own else None
        fit = [path.rstrip("/") for path in paths if _LOCAL_PATH.fullmatch(path)]
        message = "artifacts are not uploaded: the files stay in the workspace"
        if (
            maker is not None
            and self.job.matrix is None
            and fit
            and len(fit) == len(paths)
            and self.workflow.plan.claim(maker.id, fit)
        ):
            self._keep(maker, list(dict.fromkeys(fit)))
            message = f"{message}, and `produces` of `{maker.id}` records them"
        self.found.differs("artifacts", message, uses)

    def _keep(self, maker: DraftStep, paths: list[str]) -> None:
        made = maker.keys.setdefault("produces", [])
        asked = self.condition
        if "failure()" in asked:
            made.append({"path": paths, "when": "failed"})
        elif (
            text_of(self.inputs.get("if-no-files-found")) == "error"
            and not asked
            and maker.id in self.job.plain
        ):
            made += paths
        else:
            made.append({"path": paths, "when": "present"})
            if "always()" in asked:
                made.append({"path": paths, "when": "failed"})

    def download(self, uses: Node) -> None:
        """Note that files of other jobs are there already, and where, if another place is asked for."""
        self.found.differs("artifacts", "artifacts are not downloaded: all jobs share one workspace", uses)
        path = text_of(self.inputs.get("path"))
        if path and not self._is_there(path):
            message = f"the downloaded files are where they were made, and not in `{path}`"
            self.comments.append(self.found.todo("artifacts", message, self.inputs["path"]))

    def _is_there(self, path: str) -> bool:
        """Say whether the files were uploaded from the folder into which they would be downloaded."""
        wanted = text_of(self.inputs.get("name"))
        known = {name: paths for job in self.workflow.jobs.values() for name, paths in job.uploads.items()}
        paths = known.get(wanted, []) if wanted else [each for found in known.values() for each in found]
        folder = path.removeprefix("./").rstrip("/")
        return bool(paths) and all(
            each.removeprefix("./").rstrip("/") in (folder, f"{folder}/*", f"{folder}/**") for each in paths
        )


_HANDLERS: dict[str, Callable[[Actions, Node], None]] = {
    "actions/checkout": Actions.checkout,
    "actions/upload-artifact": Actions.upload,
    "actions/download-artifact": Actions.download,
}
