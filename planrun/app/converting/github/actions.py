"""What becomes of actions: a few mean nothing here, or can be said in a plan; all others are refused."""

from __future__ import annotations

import re

from planrun.app.converting.draft import DraftStep
from planrun.app.converting.reading import is_nothing, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from planrun.app.converting.github.facts import Job, Workflow
    from planrun.source.node import Node

# Actions that put programs on the PATH, and the programs.
SETUPS: Mapping[str, tuple[str, ...]] = {
    "actions/setup-python": ("python3",),
    "actions/setup-node": ("node", "npm"),
    "actions/setup-go": ("go",),
    "actions/setup-java": ("java",),
    "actions/setup-dotnet": ("dotnet",),
    "actions/setup-ruby": ("ruby",),
    "ruby/setup-ruby": ("ruby", "bundle"),
    "astral-sh/setup-uv": ("uv",),
    "pnpm/action-setup": ("pnpm",),
    "oven-sh/setup-bun": ("bun",),
    "denoland/setup-deno": ("deno",),
    "dtolnay/rust-toolchain": ("cargo", "rustc"),
    "actions-rs/toolchain": ("cargo", "rustc"),
    "actions-rust-lang/setup-rust-toolchain": ("cargo", "rustc"),
    "gradle/actions/setup-gradle": ("java",),
    "gradle/gradle-build-action": ("java",),
    "shivammathur/setup-php": ("php", "composer"),
    "erlef/setup-beam": ("erl",),
    "docker/setup-buildx-action": ("docker",),
    "docker/setup-qemu-action": ("docker",),
    "docker/setup-docker-action": ("docker",),
    "azure/setup-helm": ("helm",),
    "azure/setup-kubectl": ("kubectl",),
    "hashicorp/setup-terraform": ("terraform",),
    "arduino/setup-task": ("task",),
    "go-task/setup-task": ("task",),
    "extractions/setup-just": ("just",),
    "snok/install-poetry": ("poetry",),
    "abatilo/actions-poetry": ("poetry",),
    "pdm-project/setup-pdm": ("pdm",),
}
_VERSIONED = re.compile(r".*version.*|toolchain|distribution", re.IGNORECASE)
_CACHES = frozenset(("actions/cache", "actions/cache/restore", "actions/cache/save", "Swatinem/rust-cache"))
_PLACED = ("repository", "path", "ref", "submodules", "lfs", "ssh-key")
_LOCAL_PATH = re.compile(r"(?![~/!])(?!.*(?:^|/)\.\.(?:/|$))(?!.*\$\{\{)[^\n]+")


class Actions:
    """Converts the steps of a job that use an action."""

    def __init__(self, workflow: Workflow, job: Job) -> None:
        self.workflow = workflow
        self.job = job
        self.found = workflow.found
        self.inputs: Mapping[str, Node] = {}
        self.is_conditional = False
        self.comments: list[str] = []  # for the next step that is made

    def step(self, node: Node, name: str) -> DraftStep | None:
        """Return the step that an action becomes; None when nothing is to be done, and the id is free."""
        uses = node.value["uses"]
        action = text_of(uses).strip().partition("@")[0]
        self.inputs = self.workflow.reader.mapping(node.get("with"), "`with`")
        self.is_conditional = not is_nothing(node.get("if")) or not is_nothing(node.get("continue-on-error"))
        if action in SETUPS:
            return self._setup(action, uses, name)
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

    def _setup(self, action: str, uses: Node, name: str) -> DraftStep:
        programs = list(SETUPS[action])
        step = DraftStep(name, validate=[{"commands_on_path": programs}])
        wanted = [
            f"{key}: {text_of(value)}" for key, value in self.inputs.items() if _VERSIONED.fullmatch(key)
        ]
        told = " and ".join(programs)
        if wanted:
            asked = "; ".join(wanted)
            message = f"{action} is not run: {told} must be there, in the version that it asks for ({asked})"
            step.notes.append(self.found.todo("setup", message, uses, name))
        else:
            self.found.differs("setup", f"{action} is not run: {told} must be there", uses)
        return step

    def checkout(self, uses: Node) -> None:
        """Note that the workspace is used as it is."""
        self.found.differs("checkout", "nothing is checked out: the plan runs in the folder as it is", uses)
        for name in _PLACED:
            if name in self.inputs:
                asked = f"{name}: {text_of(self.inputs[name])}"
                message = f"actions/checkout asks for `{asked}`; have it there before the run"
                self.comments.append(self.found.todo("checkout", message, self.inputs[name]))

    def cache(self, uses: Node) -> None:
        """Leave a cache to a person: which step makes it, nothing tells."""
        paths = " ".join(text_of(self.inputs.get("path")).split()) or "what it keeps"
        message = (
            f"{text_of(uses)} kept {paths}: nothing is deleted between runs here; see `cache:` for steps"
        )
        self.comments.append(self.found.todo("cache", message, uses))

    def upload(self, uses: Node) -> None:
        """Say of the step before that it makes the files, where their absence fails the workflow, too.

        `if-no-files-found` is `warn` where nothing is said: then the files may be missing.
        """
        paths = [line.strip() for line in text_of(self.inputs.get("path")).split("\n") if line.strip()]
        own = [step for step in self.job.made if "run" in step.keys and step.id in self.job.plain]
        maker = own[-1] if own else None
        fit = [path.rstrip("/") for path in paths if _LOCAL_PATH.fullmatch(path)]
        message = "artifacts are not uploaded: the files stay in the workspace"
        if (
            maker is not None
            and not self.is_conditional
            and text_of(self.inputs.get("if-no-files-found")) == "error"
            and self.job.matrix is None
            and fit
            and len(fit) == len(paths)
            and self.workflow.plan.claim(maker.id, fit)
        ):
            maker.keys["produces"] = list(dict.fromkeys([*maker.keys.get("produces", []), *fit]))
            message = f"{message}; `{maker.id}` fails without them"
        self.found.differs("artifacts", message, uses)

    def download(self, uses: Node) -> None:
        """Note that files of other jobs are there already."""
        self.found.differs("artifacts", "artifacts are not downloaded: all jobs share one workspace", uses)
        if "path" in self.inputs:
            path = text_of(self.inputs["path"])
            message = f"the downloaded files are where they were made, and not in `{path}`"
            self.comments.append(self.found.todo("artifacts", message, self.inputs["path"]))


_HANDLERS: dict[str, Callable[[Actions, Node], None]] = {
    "actions/checkout": Actions.checkout,
    "actions/upload-artifact": Actions.upload,
    "actions/download-artifact": Actions.download,
}
