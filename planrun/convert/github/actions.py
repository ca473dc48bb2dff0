"""GitHub actions as steps: checkout, cache, artifacts and the setup of languages; any other is left to a person."""

from __future__ import annotations

import re

from planrun.convert.draft import DraftStep
from planrun.convert.github.names import PlaceNames, declare_outputs
from planrun.convert.github.setups import OFFERS, SETUPS, Setup
from planrun.convert.github.texts import template
from planrun.convert.reader import UntranslatableError, text_of
from planrun.plan.yaml.node import MAPPING, SCALAR, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from planrun.convert.github.facts import Job, Workflow
    from planrun.convert.reader import Findings

_MISSING = 'command -v {0} > /dev/null || {{ echo "{0} is not on the PATH" >&2; exit 1; }}\n'
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
        self.extra = ""  # the script of a step behind the one that was made last

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
        known = _HANDLERS.get(action.lower())
        if known is not None:
            known(self, uses)
            return None
        message = f"the action {action} is left to you"
        if action.lower() in SETUPS:
            try:
                return self._setup(action.lower(), node, name)
            except UntranslatableError as why:
                message = f"{message}: {why.message}"
        step = DraftStep(name)
        step.leave(self.found, f"uses:{action}", message, node)
        return step

    def behind(self, node: Node) -> Node | None:
        """Return a step with what the action of another runs beside; None for most."""
        if not self.extra:
            return None
        script, self.extra = self.extra, ""
        uses = node.value["uses"]
        members = {"run": Node(SCALAR, script, uses.line, uses.col)}
        members |= {
            name: node.value[name] for name in ("if", "env", "continue-on-error") if name in node.value
        }
        if "working-directory" in self.inputs:
            members["working-directory"] = self.inputs["working-directory"]
        title = " ".join(script.partition("\n")[0].split()[:2])
        members["name"] = Node(SCALAR, title, uses.line, uses.col)
        made = Node(MAPPING, members, node.line, node.col)
        made.keys = {name: node.keys.get(name, uses) for name in members}
        return made

    def _setup(self, action: str, node: Node, name: str) -> DraftStep:
        """Return a check that programs are there, in the version that is asked for; Python gets an environment."""
        uses = node.value["uses"]
        setup = Setup(action, {key: text_of(value) for key, value in self.inputs.items()})
        programs = " and ".join(setup.programs)
        step = DraftStep(name)
        message = f"{action} is not run: {programs} must be there"
        rest = f"; not used: {', '.join(setup.unused)}" if setup.unused else ""
        self.extra = setup.command
        if action == "astral-sh/setup-uv" and "python-version" in self.inputs:
            self.job.env = {**self.job.env, "UV_PYTHON": self.inputs["python-version"]}
        if setup.left:
            message = f"{message}, in the version that it asks for ({setup.left}){rest}"
            step.notes.append(self.found.todo("setup", message, uses, name))
        elif setup.is_python:
            message = f"{action} is not run: a virtual environment is made of the Python that is there{rest}"
            self.found.differs("setup", message, uses)
        elif setup.script:
            message = f"{action} is not run: the version of {programs} that is there is checked{rest}"
            self.found.differs("setup", message, uses)
        else:
            self.found.differs("setup", f"{message}{rest}", uses)
        if not setup.script and not self.job.is_contained:
            step.keys["validate"] = [{"commands_on_path": setup.programs}]
            return step
        step.keys["run"] = setup.script or "".join(map(_MISSING.format, setup.programs))
        if self.job.is_contained:
            step.keys["shell"] = "sh -e"
        if setup.script:
            names = PlaceNames(self.workflow, self.job, node, ({}, self.job.env, self.workflow.env))
            before = {name: f"${{{{ {value} }}}}" for name, value in self.job.exported.items()}
            step.keys["env"] = {**before, "WANTED": template(setup.asked, names)}
            step.offers = dict(OFFERS.get(setup.action, {}))
        if setup.is_python:
            step.keys["env"]["VENV"] = "${{ step.dir }}/venv"
            step.keys["run"] += 'echo "github_path=$VENV/bin:" >> "$PLANRUN_OUTPUT"\n'
            declare_outputs(step, ["github_path"])
            step.hands_on = ["PATH"]
        return step

    def checkout(self, uses: Node) -> None:
        """Note that the workspace is used as it is."""
        self.found.differs("checkout", "nothing is checked out: the plan runs in the folder as it is", uses)
        place = text_of(self.inputs.get("path")).removeprefix("./").strip("/")
        if place and "repository" not in self.inputs:
            self.job.places.append(place)
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
        scripts = [step for step in self.job.made if step.node is not None and step.node.get("uses") is None]
        maker = next((step for step in reversed(scripts) if "run" in step.keys), None)
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


_HANDLERS: Mapping[str, Callable[[Actions, Node], None]] = {
    "actions/checkout": Actions.checkout,
    "actions/upload-artifact": Actions.upload,
    "actions/download-artifact": Actions.download,
    **dict.fromkeys(("actions/cache", "actions/cache/restore", "actions/cache/save"), Actions.cache),
}
