"""GitHub actions as steps: checks of a language's version, publishing, or no step at all; all others are refused.

For Python a virtual environment is made. Publishing steps do the same as the action, and need an approval.
"""

from __future__ import annotations

import re

from planrun.convert.draft import DraftStep
from planrun.convert.github.codeql import begin
from planrun.convert.github.names import PlaceNames, declare_outputs, job_ended
from planrun.convert.github.programs import is_program, program_of
from planrun.convert.github.reporting import LEFT_OUT
from planrun.convert.github.setups import INSTALLERS, OFFERS, PROGRAMS, SETUPS, Setup
from planrun.convert.github.spelling import either
from planrun.convert.github.texts import Variables, template
from planrun.convert.github.tokens import LOGINS, TOKENS
from planrun.convert.reader import UntranslatableError, text_of
from planrun.plan.yaml.node import MAPPING, SCALAR, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from planrun.convert.github.facts import Job, Workflow
    from planrun.convert.reader import Findings

_TOKEN = "CODECOV_TOKEN"  # noqa: S105 - the name of a variable
_UPLOAD_COVERAGE = "upload_coverage"


def publisher(actions: Actions, action: str, node: Node, name: str) -> DraftStep:
    """Return the step that does what a publishing action does."""
    step = DraftStep(name)
    names = PlaceNames(actions.workflow, actions.job, node, ({}, actions.job.env, actions.workflow.env))
    before = {key: f"${{{{ {value} }}}}" for key, value in actions.job.exported.items()}
    if before:
        step.keys["env"] = before
    try:
        (_coverage if action in _COVERAGE else _pypi)(actions, step, node, names)
    except UntranslatableError as why:
        step.make_abstract(actions.found.refuse(f"uses:{action}", why.message, node.value["uses"], name))
    return step


def _pypi(actions: Actions, step: DraftStep, node: Node, names: PlaceNames) -> None:
    """Upload by twine, with a token where GitHub may use its own identity."""
    inputs = actions.inputs
    folder = text_of(inputs.get("packages-dir") or inputs.get("packages_dir")) or "dist"
    address = text_of(inputs.get("repository-url") or inputs.get("repository_url"))
    skips = text_of(inputs.get("skip-existing") or inputs.get("skip_existing")).lower() == "true"
    variables = Variables()
    password = inputs.get("password")
    if password is not None:
        variables.read({"TWINE_PASSWORD": password}, names)
    else:
        variables.secrets.append("TWINE_PASSWORD")
        message = (
            "there is no trusted publishing here: give a token of the index as the secret TWINE_PASSWORD"
        )
        step.notes.append(actions.found.todo("publish", message, node.value["uses"], step.id))
    user = text_of(inputs.get("user")) or "__token__"
    env = {"TWINE_USERNAME": template(user, names), "PACKAGES": template(folder.rstrip("/"), names)}
    words = ["twine upload --non-interactive"]
    if skips:
        words.append("--skip-existing")
    if address:
        env["TWINE_REPOSITORY_URL"] = template(address, names)
    step.keys["env"] = {**step.keys.get("env", {}), **env, **variables.env}
    step.prelude = variables.lines
    step.keys["secrets"] = list(dict.fromkeys(variables.secrets))
    for secret in step.keys["secrets"]:
        actions.workflow.plan.secret(secret)
    step.keys["run"] = f'{" ".join(words)} "$PACKAGES"/*'
    step.keys["risk"] = "high"
    message = "packages are uploaded by twine, which must be there; no attestations are made"
    actions.found.differs("publish", message, node.value["uses"])


def _coverage(actions: Actions, step: DraftStep, node: Node, names: PlaceNames) -> None:
    """Upload by Codecov's command line, only where a parameter asks for it."""
    inputs = actions.inputs
    actions.workflow.param(
        _UPLOAD_COVERAGE,
        {"type": "boolean", "default": False, "description": "Send coverage reports to Codecov."},
    )
    words = ["codecovcli upload-process"]
    env = {}
    for key, option in (("files", "--file"), ("file", "--file"), ("flags", "--flag"), ("name", "--name")):
        values = [each.strip() for each in text_of(inputs.get(key)).split(",") if each.strip()]
        for number, value in enumerate(values, 1):
            env[f"{key.upper()}_{number}"] = template(value.removeprefix("./"), names)
            words.append(f'{option} "${key.upper()}_{number}"')
    variables = Variables()
    is_set = any(_TOKEN in level for level in (actions.job.exported, actions.job.env, actions.workflow.env))
    if text_of(inputs.get("token")):
        variables.read({_TOKEN: inputs["token"]}, names)
    elif not is_set:
        variables.secrets.append(_TOKEN)
    step.keys["env"] = {**step.keys.get("env", {}), **env, **variables.env}
    step.prelude = variables.lines
    step.keys["secrets"] = variables.secrets
    for secret in variables.secrets:
        if secret not in actions.workflow.plan.secrets:
            actions.workflow.plan.optional.add(secret)
        actions.workflow.plan.secret(secret)
    step.keys["run"] = " ".join(words)
    step.keys["risk"] = "high"
    step.keys["on_failure"] = "continue"
    step.condition = f"params.{_UPLOAD_COVERAGE}"
    message = (
        f"coverage is sent by codecovcli with CODECOV_TOKEN, only with `--param {_UPLOAD_COVERAGE}=true`"
    )
    actions.found.differs("coverage", message, node.value["uses"])


_COVERAGE = frozenset(("codecov/codecov-action",))
PUBLISHERS = frozenset(("pypa/gh-action-pypi-publish", *_COVERAGE))


_CACHES = frozenset(("actions/cache", "actions/cache/restore", "actions/cache/save", "Swatinem/rust-cache"))
_PLACED = ("repository", "path", "ref", "submodules", "lfs", "ssh-key")
_LOCAL_PATH = re.compile(r"(?![~/!])(?!.*(?:^|/)\.\.(?:/|$))(?!.*\$\{\{)[^\n]+")


def _spelled(action: str) -> str:
    """Return an action as the tables have it: GitHub does not tell capital letters from small ones."""
    return _SPELLINGS.get(action.lower(), action)


class Actions:
    """Converts the steps of a job that use an action."""

    def __init__(self, workflow: Workflow, job: Job) -> None:
        self.workflow = workflow
        self.job = job
        self.inputs: Mapping[str, Node] = {}
        self.condition = ""  # the `if` of the step
        self.comments: list[str] = []  # for the next step that is made
        self.extra = ""  # the script of a step behind the one that was made last
        self.unfit = ""  # why the action that is known cannot be kept with its inputs

    @property
    def found(self) -> Findings:
        """The findings of the file that is being read."""
        return self.workflow.found

    def step(self, node: Node, name: str) -> DraftStep | None:
        """Return the step that an action becomes; None when nothing is to be done, and the id is free."""
        uses = node.value["uses"]
        action = _spelled(text_of(uses).strip().partition("@")[0])
        self.inputs = self.workflow.reader.mapping(node.get("with"), "`with`")
        self.condition = text_of(node.get("if")) or text_of(node.get("continue-on-error"))
        if action in SETUPS:
            try:
                return self._setup(action, node, name)
            except UntranslatableError as why:
                step = DraftStep(name)
                step.make_abstract(self.found.refuse(why.code, why.message, uses, name))
                return step
        if action.lower() in INSTALLERS:
            return self._installed(action, uses, name)
        if action == "re-actors/alls-green":
            return self._green(uses, name)
        if action in PUBLISHERS:
            return publisher(self, action, node, name)
        return self._replaced(action, node, name)

    def _replaced(self, action: str, node: Node, name: str) -> DraftStep | None:
        """Return what stands for an action that starts nothing, or its refusal."""
        uses = node.value["uses"]
        handler = _HANDLERS.get(action)
        if handler is None and action in _CACHES:
            handler = Actions.cache
        if handler is not None:
            handler(self, uses)
            return None
        if action in TOKENS:
            self._token(action, node)
            return None
        if action in LOGINS:
            return self._logged_in(action, uses, name)
        if action == "aws-actions/configure-aws-credentials":
            return self._aws(uses, name)
        if action.lower() in LEFT_OUT:
            self.found.differs("left-out", f"{action} is left out: {LEFT_OUT[action.lower()]}", uses)
            self.job.silent[text_of(node.get("id")).lower()] = action
            return None
        return self._refused(action, uses, name)

    def scripted(self, node: Node) -> Node | None:
        """Return a step with a script in place of one whose action starts a program; None for any other.

        Raises UntranslatableError for inputs that have no equivalent.
        """
        uses = node.value["uses"]
        action = text_of(uses).strip().partition("@")[0].lower()
        given = self.workflow.reader.mapping(node.get("with"), "`with`")
        if action.startswith("docker:"):
            names = " ".join(self.workflow.reader.mapping(node.get("env"), "`env`"))
            image = Node(SCALAR, text_of(uses).strip().removeprefix("docker://"), uses.line, uses.col)
            action = "docker:"
            given = {**given, "image": image, "names": Node(SCALAR, names, uses.line, uses.col)}
        if not is_program(action):
            return None
        if action == "actions/deploy-pages" and not self.workflow.site:
            self.unfit = "which folder it deploys is not known here"
            return None
        if action == "actions/deploy-pages":
            given = {**given, "folder": self._site(uses)}
        try:
            program = program_of(action, given, self.job)
        except UntranslatableError as why:
            self.unfit = why.message
            return None
        assert program is not None
        self.found.differs("program", program.message, uses)
        own = self.workflow.reader.mapping(node.get("env"), "`env`")
        script = Node(SCALAR, program.script, uses.line, uses.col)
        members = {name: each for name, each in node.value.items() if name not in ("uses", "with")}
        members |= {"run": script, "env": Node(MAPPING, {**own, **program.env}, node.line, node.col)}
        if program.folder is not None:
            members["working-directory"] = program.folder
        made = Node(MAPPING, members, node.line, node.col)
        made.keys = {name: node.keys.get(name, uses) for name in members}
        return made

    def _site(self, uses: Node) -> Node:
        """Return the folder of the site that a job uploaded before."""
        message = (
            "GitHub takes a site from actions/deploy-pages only in its own runs: the step pushes it to the branch "
            "gh-pages; let GitHub Pages deploy from that branch"
        )
        self.comments.append(self.found.todo("pages", message, uses))
        return Node(SCALAR, self.workflow.site, uses.line, uses.col)

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
        for name in ("working-directory", "build-root-directory"):
            if name in self.inputs:
                members["working-directory"] = self.inputs[name]
        title = " ".join(script.partition("\n")[0].split()[:2])
        members["name"] = Node(SCALAR, title, uses.line, uses.col)
        made = Node(MAPPING, members, node.line, node.col)
        made.keys = {name: node.keys.get(name, uses) for name in members}
        return made

    def _installed(self, action: str, uses: Node, name: str) -> DraftStep:
        """Return the check that the tools which an action installs are there."""
        key = next(
            key for key in ("tool", "tools", "crate", "packages", "pkg", "") if not key or key in self.inputs
        )
        asked = text_of(self.inputs.get(key)) or action.rpartition("/")[2]
        names = [each.partition("@")[0] for each in re.split(r"[,\s]+", asked) if each]
        step = DraftStep(name)
        if not all(re.fullmatch(r"[A-Za-z0-9._-]+", each) for each in names):
            note = self.found.refuse(
                f"uses:{action}", f"which tools {action} installs is worked out", uses, name
            )
            step.make_abstract(note)
            return step
        programs = [PROGRAMS.get(each, each) for each in names]
        self.found.differs("setup", f"{action} is not run: {' and '.join(programs)} must be there", uses)
        self._check_programs(step, programs)
        return step

    def _check_programs(self, step: DraftStep, programs: list[str]) -> None:
        """Let a step check that programs are there."""
        if self.job.is_whole or self.job.is_contained:
            lines = [
                f'command -v {name} > /dev/null || {{ echo "{name} is not on the PATH" >&2; exit 1; }}\n'
                for name in programs
            ]
            step.keys["run"] = "".join(lines)
            step.is_raw = True
        else:
            step.keys["validate"] = [{"commands_on_path": programs}]
        if self.job.is_contained and not self.job.is_mixed and "run" in step.keys:
            step.keys["shell"] = "sh -e"

    def _token(self, action: str, node: Node) -> None:
        """Let a secret of the plan be read in place of the token that an action gets."""
        names = TOKENS[action]
        secrets = " and ".join(names.values())
        message = f"{action} gets no token here: give one as the secret {secrets}"
        self.comments.append(self.found.todo("token", message, node.value["uses"]))
        self.job.tokens[text_of(node.get("id")).lower()] = names

    def _aws(self, uses: Node, name: str) -> DraftStep | None:
        """Give the later steps of the job keys of AWS as variables, or check that a role is taken."""
        inputs = dict(self.inputs)
        given = {
            variable: inputs.pop(key)
            for key, variable in (
                ("aws-region", "AWS_REGION"),
                ("aws-access-key-id", "AWS_ACCESS_KEY_ID"),
                ("aws-secret-access-key", "AWS_SECRET_ACCESS_KEY"),
                ("aws-session-token", "AWS_SESSION_TOKEN"),
            )
            if key in inputs
        }
        if "AWS_REGION" in given:
            given["AWS_DEFAULT_REGION"] = given["AWS_REGION"]
        self.job.env = {**self.job.env, **given}
        if "role-to-assume" not in inputs and "AWS_ACCESS_KEY_ID" in given:
            self.found.differs("login", "the keys of AWS are variables of the later steps of the job", uses)
            return None
        message = (
            f"the role of AWS {text_of(inputs.get('role-to-assume'))} is not taken here: log in to it before"
        )
        step = DraftStep(name, run="aws sts get-caller-identity > /dev/null")
        step.notes.append(self.found.todo("login", message, uses, name))
        return step

    def _logged_in(self, action: str, uses: Node, name: str) -> DraftStep:
        """Return the check that somebody is logged in at a service."""
        program, command = LOGINS[action]
        message = (
            f"{action} logs in nowhere here: {program} must be there and logged in, which the step checks"
        )
        self.found.differs("login", message, uses)
        return DraftStep(name, run=command)

    def _refused(self, action: str, uses: Node, name: str) -> DraftStep:
        code, message = f"uses:{action}", f"the action {action} cannot run here"
        if self.unfit:
            message, self.unfit = f"{message}: {self.unfit}", ""
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
        programs = " and ".join(setup.programs)
        step = DraftStep(name)
        message = f"{action} is not run: {programs} must be there"
        rest = f"; not used: {', '.join(setup.unused)}" if setup.unused else ""
        self.extra = "\n".join(setup.commands)
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
        if setup.script:
            self._scripted(step, setup, node)
        else:
            self._check_programs(step, setup.programs)
        if self.job.is_contained and not self.job.is_mixed and "run" in step.keys:
            step.keys["shell"] = "sh -e"
        return step

    def _scripted(self, step: DraftStep, setup: Setup, node: Node) -> None:
        """Give a step the script of a setup; the version is put into its environment."""
        names = PlaceNames(self.workflow, self.job, node, ({}, self.job.env, self.workflow.env))
        before = {name: f"${{{{ {value} }}}}" for name, value in self.job.exported.items()}
        step.keys["env"] = {**before, "WANTED": template(setup.asked, names)}
        step.keys["run"] = setup.script
        step.offers = dict(OFFERS.get(setup.action, {}))
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

    def site(self, uses: Node) -> None:
        """Remember the folder that GitHub Pages is to show."""
        self.workflow.site = text_of(self.inputs.get("path")) or "_site/"
        message = f"the site is not uploaded: it stays in {self.workflow.site}"
        self.found.differs("artifacts", message, uses)

    def codeql(self, uses: Node) -> None:
        """Remember what CodeQL is to look at; the analysis does the rest."""
        if text_of(uses).partition("@")[0].endswith("/init"):
            begin(self.job, self.inputs)

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


_SPELLINGS = {name.lower(): name for name in (*SETUPS, *PUBLISHERS, *_CACHES, *TOKENS)}
_HANDLERS: dict[str, Callable[[Actions, Node], None]] = {
    "actions/checkout": Actions.checkout,
    "taiki-e/checkout-action": Actions.checkout,
    "actions/upload-artifact": Actions.upload,
    "actions/upload-pages-artifact": Actions.site,
    "github/codeql-action/init": Actions.codeql,
    "github/codeql-action/autobuild": Actions.codeql,
    "actions/download-artifact": Actions.download,
}
