"""Files of the same repository that a workflow names: other workflows, and actions made of steps.

One step of a job: a script, or an action.
"""

from __future__ import annotations

import os
import re

from planrun.convert.draft import DraftStep, slug, step_path
from planrun.convert.github.actions import Actions
from planrun.convert.github.facts import Composite, axis_name
from planrun.convert.github.matrix import known_truth
from planrun.convert.github.names import PlaceNames, declare_outputs, given_value, inside
from planrun.convert.github.texts import (
    Variables,
    apply_condition,
    check_commands,
    condition,
    exported_names,
    is_shell,
    possible_names,
    renamed_outputs,
    script,
    sometimes_exported,
    template,
    without_set_output,
    written_outputs,
)
from planrun.convert.reader import UntranslatableError, data_of, is_nothing, text_of
from planrun.errors import InvalidPlan
from planrun.plan.yaml.document import read_tree
from planrun.plan.yaml.file import read_source
from planrun.plan.yaml.node import MAPPING, SCALAR, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from planrun.convert.github.facts import Job, Workflow
    from planrun.convert.github.spelling import Spelled
    from planrun.convert.reader import Findings

_STATUS = re.compile(r"\b(?:always|cancelled|failure|success)\s*\(", re.IGNORECASE)
MAX_DEPTH = 10  # files that use each other, as GitHub has it
_MARK = f"{os.sep}.github{os.sep}workflows{os.sep}"


def local_path(file: str, uses: str) -> str:
    """Return the path of what `./…` names, from the root of the repository; "" for anything else.

    `file` is the file that names it, or one of the same repository.
    """
    name = uses.strip().partition("@")[0]
    if not name.startswith(("./", "$/")) or ".." in name.split("/"):
        return ""
    whole = os.path.abspath(file)
    for mark in (_MARK, f"{os.sep}.github{os.sep}actions{os.sep}"):
        if mark in whole:
            return os.path.join(os.path.relpath(whole.rpartition(mark)[0]), name[2:])
    return os.path.join(os.path.dirname(file), name[2:])


def read_local(path: str, found: Findings) -> Node | None:
    """Return the content of a local file, read once; None when there is none, or no mapping in it."""
    if path not in found.files:
        found.files[path] = _read_file(path)
    return found.files[path]


def _read_file(path: str) -> Node | None:
    try:
        root, problems, complete = read_tree(read_source(path, "file"), path, "file")
    except InvalidPlan:
        return None
    return root if root is not None and not problems and complete and root.kind == MAPPING else None


def read_action(folder: str, found: Findings) -> tuple[str, Node | None]:
    """Return path and content of the action in a folder; None when there is none."""
    for name in ("action.yml", "action.yaml"):
        path = os.path.join(folder, name)
        root = read_local(path, found)
        if root is not None:
            return path, root
    return "", None


_KNOWN = frozenset((
    "id", "if", "name", "uses", "run", "shell", "with", "env", "continue-on-error", "timeout-minutes",
    "working-directory",
))  # fmt: skip
# How GitHub starts what `shell` names; `{0}` is a file there, planrun hands the text on.
SHELLS = {
    "": "bash -e",
    "bash": "bash --noprofile --norc -eo pipefail",
    "sh": "sh -e",
    "python": "python",
    "pwsh": "pwsh",
    "powershell": "powershell",
}


class StepMaking:
    """Makes the steps of one job, one after the other."""

    def __init__(self, workflow: Workflow, job: Job) -> None:
        self.workflow = workflow
        self.job = job
        self.reader = workflow.reader
        self.actions = Actions(workflow, job)
        self.is_single = False
        self.env: dict[str, Node] = {}  # of the steps that use the action that is being read
        self.prefix = ""
        self.depth = 0

    @property
    def found(self) -> Findings:
        """The findings of the file that is being read."""
        return self.workflow.found

    def make(self, node: Node, position: int) -> Iterator[DraftStep]:
        """Yield the steps that one of a job becomes, without edges: several for an action that is made of steps."""
        members = self.reader.mapping(node, "a step")
        own_id = text_of(members.get("id")).lower()
        env = {**self.env, **self._env(members.get("env"))}
        names = PlaceNames(self.workflow, self.job, node, (env, self.job.env, self.workflow.env))
        if "uses" in members:
            action = self._composite(node, names)
            if action is not None:
                yield from self._inside(node, names, action, position)
                return
            step = self._with_action(node, position)
        elif is_nothing(members.get("run")):
            step = DraftStep(self._name(node, position))
            step.leave(self.found, "shape", "a step has `run` or `uses`", node)
        else:
            step = self._with_script(node, names, position)
        if step is None:
            self.job.dropped.add(own_id)
            return
        step.node = node
        step.notes = [*self.actions.comments, *step.notes]
        self.actions.comments = []
        if own_id:
            self.job.ids[own_id] = step
        self._common(step, node, names)
        unknown = [name for name in members if name not in _KNOWN]
        if unknown:
            step.leave(self.found, f"key:{unknown[0]}", f"a step with the unknown key `{unknown[0]}`", node)
        yield step
        if (behind := self.actions.behind(node)) is not None:
            yield from self.make(behind, position)

    def _env(self, node: Node | None) -> Mapping[str, Node]:
        """Return the variables of a step: those of a mapping, or of one that its matrix holds."""
        match = re.fullmatch(r"\s*\$\{\{\s*matrix\.([\w-]+)\s*\}\}\s*", text_of(node))
        if node is None or match is None:
            return self.reader.mapping(node, "`env`")
        known = self.job.row if self.job.row is not None else self.job.matrix.kinds if self.job.matrix else {}
        start = f"{axis_name(match[1])}_"
        self.found.differs("env", f"a variable that `matrix.{match[1]}` does not have is empty", node)
        return {
            name.removeprefix(start): Node(SCALAR, f"${{{{ matrix.{name} }}}}", node.line, node.col)
            for name in known
            if name.startswith(start)
        }

    def _composite(self, node: Node, names: PlaceNames) -> tuple[Node, str, Composite] | None:
        """Return content, path and facts of an action of this repository whose steps can stand in the job."""
        uses = text_of(node.get("uses"))
        for place in self.job.places:  # where a checkout puts this repository
            uses = f"./{uses.removeprefix(f'./{place}/')}" if uses.startswith(f"./{place}/") else uses
        folder = local_path(self.found.file, uses)
        path, root = read_action(folder, self.found) if folder else ("", None)
        runs = root.get("runs") if root is not None else None
        if (
            root is None
            or runs is None
            or text_of(runs.get("using")) != "composite"
            or self.depth >= MAX_DEPTH
        ):
            return None
        if node.get("continue-on-error") is not None:
            return None  # nothing shows which of its steps may fail
        try:
            given = self._given(node, root, names)
            if condition(node.get("if"), names).asks:
                return None
        except UntranslatableError:
            return None
        outputs = self.reader.mapping(root.get("outputs"), "`outputs`")
        return root, path, Composite(os.path.dirname(path), outputs, given)

    def _inside(
        self, node: Node, names: PlaceNames, found: tuple[Node, str, Composite], position: int
    ) -> Iterator[DraftStep]:
        """Yield the steps of an action, under the `if` of the step that uses it."""
        root, path, action = found
        own = condition(node.get("if"), names).text
        self.found.differs(
            "composite", "the steps of an action of this repository are steps of the job", node
        )
        before = (self.workflow.found, self.reader.found, self.env, self.prefix, self.job.folder)
        self.env = {**self.env, **self.reader.mapping(node.get("env"), "`env`")}
        self.prefix = f"{self._short(node, position)}."
        self.workflow.found = self.reader.found = before[0].of(path)
        self.job.folder = None
        self.depth += 1
        try:
            with inside(self.job, action):
                for at, item in enumerate(self.reader.items(root.value["runs"].get("steps"), "`steps`"), 1):
                    for step in self.make(item, at):
                        if own not in ("", "true"):
                            step.demand(own)
                            self.job.plain.discard(step.id)
                        yield step
        finally:
            self.depth -= 1
            self.workflow.found, self.reader.found, self.env, self.prefix, self.job.folder = before
        own_id = text_of(node.get("id")).lower()
        if own_id:
            self.job.composites[own_id] = action

    def _given(self, node: Node, root: Node, names: PlaceNames) -> dict[str, Spelled]:
        """Return the inputs of an action; raises UntranslatableError."""
        handed = {
            key.lower(): value for key, value in self.reader.mapping(node.get("with"), "`with`").items()
        }
        given = {}
        for name, each in self.reader.mapping(root.get("inputs"), "`inputs`").items():
            value = handed.get(name.lower(), each.get("default") if each.kind == MAPPING else None)
            given[name.lower()] = given_value(value, "", names)
        return given

    def _short(self, node: Node, position: int) -> str:
        own = text_of(node.get("id")) or slug(re.sub(r"\$\{\{.*?\}\}", "", text_of(node.get("name"))))
        if not own and node.get("uses") is not None:
            own = slug(text_of(node.get("uses")).partition("@")[0].rpartition("/")[2])
        return f"{self.prefix}{own or position}"

    def _name(self, node: Node, position: int) -> str:
        if self.is_single:
            return self.workflow.plan.name(self.job.label)
        return self.workflow.plan.name(f"{self.job.label}.{self._short(node, position)}")

    def _with_action(self, node: Node, position: int) -> DraftStep | None:
        plan = self.workflow.plan
        name = self._name(node, position)
        step = self.actions.step(node, name)
        if step is None:
            plan.give_back(name)
        return step

    def _with_script(self, node: Node, names: PlaceNames, position: int) -> DraftStep:
        step = DraftStep(self._name(node, position))
        text = text_of(node.get("run"))
        try:
            self._fill(step, node, names, text)
        except UntranslatableError as why:
            step.leave(self.found, why.code, why.message, node)
        return step

    def _fill(self, step: DraftStep, node: Node, names: PlaceNames, text: str) -> None:
        """Give a step its script and surroundings; raises UntranslatableError."""
        text = without_set_output(text)
        check_commands(text)
        hands_on = "GITHUB_ENV" in text or "GITHUB_PATH" in text
        if self.job.is_whole and hands_on and _STATUS.search(text_of(node.get("if"))):
            message = "in a matrix, a script with a status function that sets variables for later steps"
            raise UntranslatableError("github-env", message)
        text, step.renamed = renamed_outputs(text)
        shell = self._shell(node)
        variables = Variables()
        for level in (
            self.workflow.secret_env,
            *reversed(names.env[:2]),
        ):  # the others stand at the plan's top
            variables.read(level, names)
        if is_shell(shell):
            text_here, secrets = script(text, names)
            variables.secrets += secrets
        else:
            text_here = template(text, names)
        step.prelude = list(variables.lines)
        self._hand_on(step, node, text, shell)
        step.keys["run"] = text_here.rstrip("\n") + ("\n" if "\n" in text_here.rstrip("\n") else "")
        env = {name: f"${{{{ {value} }}}}" for name, value in self.job.exported.items()}
        env |= variables.env
        if env:
            step.keys["env"] = {**env, **step.keys.get("env", {})}
        if variables.secrets:
            step.keys["secrets"] = list(dict.fromkeys(variables.secrets))
            for name in step.keys["secrets"]:
                self.workflow.plan.secret(name)
                self._tell_secret(name, node)
        if shell != self.workflow.usual_shell:
            step.keys["shell"] = shell
        folder = node.get("working-directory") or self.job.folder or self.workflow.folder
        if folder is not None and text_of(folder) not in ("", ".", "./"):
            step.keys["workdir"] = template(text_of(folder), names)

    def _tell_secret(self, name: str, node: Node) -> None:
        message = f"the secret {name} is read from planrun's own environment, under this name"
        self.found.differs("secret", message, node)

    def _shell(self, node: Node) -> str:
        """Return the words before the script; raises UntranslatableError."""
        requested = text_of(node.get("shell")) or self.job.shell or self.workflow.shell
        if not requested and self.job.is_contained and not self.job.is_mixed:
            requested = "sh"  # as in containers there
        if requested in SHELLS:
            return SHELLS[requested]
        if requested.endswith(" {0}") and "{0}" not in requested[:-4] and "${{" not in requested:
            return requested[:-4].strip()
        raise UntranslatableError("shell", f"the shell `{requested}`")

    def _hand_on(self, step: DraftStep, node: Node, text: str, shell: str) -> None:
        """Declare what the script writes for later steps."""
        names = written_outputs(text)
        if names and self.job.matrix is not None:
            self.found.differs(
                "matrix-outputs", "outputs of a job with a matrix are read by no other job", self.job.node
            )
        if names:
            declare_outputs(step, names)
        if "GITHUB_STEP_SUMMARY" in text:
            step.prelude.append("GITHUB_STEP_SUMMARY")
            self.found.differs(
                "summary", "outside of GitHub what is written to $GITHUB_STEP_SUMMARY is lost", self.job.node
            )
        sets_variables, sets_path = "GITHUB_ENV" in text, "GITHUB_PATH" in text
        if names or sets_variables or sets_path:
            message = "what a script writes for later steps (outputs, variables, folders) counts only if it succeeds"
            self.found.differs("handed-on", message, node)
        if not sets_variables and not sets_path:
            return
        if not is_shell(shell):
            code = "github-env" if sets_variables else "github-path"
            raise UntranslatableError(code, f"`{shell}` is no shell, and writes variables for later steps")
        exported = exported_names(text)
        always = is_nothing(node.get("if")) and is_nothing(node.get("continue-on-error"))
        if not self.job.is_whole and not self.job.is_contained and not sets_variables:
            self._add_path(step)
        elif not self.job.is_whole and not sets_path and always and exported is not None:
            self._export(step, exported)
        elif not self.job.is_whole and not sets_path and (possible := sometimes_exported(text)) is not None:
            self._export(step, possible)
            self.job.sometimes.add(step.id)
            message = (
                "a variable that a script may write to $GITHUB_ENV, and did not, is empty in later steps"
            )
            self.found.differs("github-env", message, node)
        else:
            step.hands_on = True
            self.job.handed |= set(possible_names(text) if sets_variables else ())

    def _export(self, step: DraftStep, names: list[str]) -> None:
        """Make outputs of the variables that a script hands on, for the later steps."""
        declare_outputs(step, names)
        self.job.handing[step.id] = names
        step.prelude.append("GITHUB_ENV")

    def _add_path(self, step: DraftStep) -> None:
        """Make an output of the folders that a script adds to the PATH, for the later steps."""
        declare_outputs(step, ["github_path"])
        self.job.handing[step.id] = ["PATH"]
        step.prelude.append("GITHUB_PATH")
        step.keys["env"] = {"GITHUB_PATH": "${{ step.dir }}/github_path"}

    def _common(self, step: DraftStep, node: Node, names: PlaceNames) -> None:
        """Give a step its title, its time, and what its failure means."""
        title = " ".join(re.sub(r"\$\{\{\s*(.*?)\s*\}\}", r"\1", text_of(node.get("name"))).split())
        if title and title.isprintable():
            step.keys["title"] = title[:200]
        self._time(step, node.get("timeout-minutes") or self.job.node.get("timeout-minutes"))
        lenient = node.get("continue-on-error")
        tolerant = known_truth(lenient, self.job, self.workflow)
        if lenient is not None and tolerant is None:
            message = "whether a failure counts is worked out there; here it counts"
            note = self.found.todo("continue-on-error", message, lenient, step.id)
            step.notes.append(note)
        if tolerant:
            step.keys["on_failure"] = "continue"
            self.job.tolerated.add(step.id)
        elif step.keys.get("on_failure") == "continue":
            self.job.tolerated.add(step.id)
        elif known_truth(self.job.node.get("continue-on-error"), self.job, self.workflow):
            step.keys["on_failure"] = "skip"  # for the other jobs; its own steps see the failure
        own = step.condition
        apply_condition(step, node.get("if"), names, self.job)
        if own:
            step.demand(own)
            self.job.plain.discard(step.id)

    def _time(self, step: DraftStep, node: Node | None) -> None:
        if node is None or "validate" in step.keys:
            return
        minutes = data_of(node)
        if isinstance(minutes, (int, float)) and not isinstance(minutes, bool) and 0 < minutes <= 500_000:
            seconds = round(minutes * 60)
            step.keys["timeout"] = f"{seconds // 60}m" if seconds % 60 == 0 else f"{max(1, seconds)}s"
        else:
            step.notes.append(
                self.found.todo("timeout", "a time that is worked out when the workflow runs", node, step.id)
            )


def note_exports(workflow: Workflow, job: Job, step: DraftStep) -> None:
    """Let later steps of a job read what a step hands on."""
    for name in job.handing.pop(step.id, ()):
        if name == "PATH":
            before = job.exported.get("PATH", "env.PATH")
            job.exported["PATH"] = f"default({step_path(step.id, 'outputs')}.github_path, '') ~ {before}"
        elif step.id in job.sometimes:
            own = f"default({step_path(step.id, 'outputs')}.{name}, '')"
            before = job.exported.get(name, "")
            if not before and (name in job.env or name in workflow.env):
                before = f"env.{name}"
            job.exported[name] = f"{own} if {own} != '' else {before}" if before else own
        else:
            job.exported[name] = f"default({step_path(step.id, 'outputs')}.{name}, '')"
