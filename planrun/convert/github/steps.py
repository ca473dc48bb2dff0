"""One step of a job: a script, an action, or the steps of an action of the same repository.

Files of the same repository that a workflow names: other workflows, and actions made of steps.
"""

from __future__ import annotations

import os
import re

from planrun.convert.draft import DraftStep, slug, step_path
from planrun.convert.expressions import OR
from planrun.convert.github.actions import Actions
from planrun.convert.github.facts import Composite, axis_name
from planrun.convert.github.matrix import known_truth
from planrun.convert.github.names import PlaceNames, declare_outputs, given_value, inside
from planrun.convert.github.texts import (
    Variables,
    condition,
    handed_variables,
    is_shell,
    script,
    starts_server,
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
    from planrun.convert.reader import Findings

MAX_DEPTH = 10  # files that use each other, as GitHub has it
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
_HANDED_ON = "what a script writes for later steps (outputs, variables, folders) counts only if it succeeds"
_SERVER = "it seems to start a server in the background, which ends with its step; make it a step with `service: true`"


def local_path(file: str, uses: str) -> str:
    """Return the path of what `./…` names, from the root of the repository; "" for anything else.

    `file` is the file that names it, or one of the same repository.
    """
    name = uses.strip().partition("@")[0]
    if not name.startswith(("./", "$/")) or ".." in name.split("/"):
        return ""
    whole = os.path.abspath(file)
    for mark in ("workflows", "actions"):
        folder = f"{os.sep}.github{os.sep}{mark}{os.sep}"
        if folder in whole:
            return os.path.join(os.path.relpath(whole.rpartition(folder)[0]), name[2:])
    return os.path.join(os.path.dirname(file), name[2:])


def read_local(path: str, found: Findings) -> Node | None:
    """Return the content of a local file, read once; None when there is none, or no mapping in it."""
    if path not in found.files:
        found.files[path] = None
        try:
            root, problems, complete = read_tree(read_source(path, "file"), path, "file")
        except InvalidPlan:
            return None
        if root is not None and not problems and complete and root.kind == MAPPING:
            found.files[path] = root
    return found.files[path]


class StepMaking:
    """Makes the steps of one job, one after the other."""

    def __init__(self, workflow: Workflow, job: Job) -> None:
        self.workflow = workflow
        self.job = job
        self.reader = workflow.reader
        self.actions = Actions(workflow, job)
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
        action = self._composite(node, names) if "uses" in members else None
        if action is not None:
            yield from self._inside(node, names, action, position)
            return
        name = self.workflow.plan.name(f"{self.job.label}.{self._short(node, position)}")
        step = DraftStep(name)
        if "uses" in members:
            made = self.actions.step(node, name)
            if made is None:
                self.workflow.plan.give_back(name)
                self.job.dropped.add(own_id)
                return
            step = made
        elif is_nothing(members.get("run")):
            step.leave(self.found, "shape", "a step has `run` or `uses`", node)
        else:
            try:
                self._fill(step, node, names)
            except UntranslatableError as why:
                step.leave(self.found, why.code, why.message, node)
        step.node = node
        step.notes = [*self.actions.comments, *step.notes]
        self.actions.comments = []
        if own_id:
            self.job.ids[own_id] = step
        self._common(step, node, names)
        unknown = [key for key in members if key not in _KNOWN]
        if unknown:
            step.leave(self.found, f"key:{unknown[0]}", f"a step with the unknown key `{unknown[0]}`", node)
        yield step
        self._note_exports(step)
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
        paths = [os.path.join(folder, name) for name in ("action.yml", "action.yaml")] if folder else []
        found = [(path, root) for path in paths if (root := read_local(path, self.found)) is not None]
        if not found or self.depth >= MAX_DEPTH or node.get("continue-on-error") is not None:
            return None  # nothing shows which of its steps may fail
        path, root = found[0]
        runs = root.get("runs")
        if runs is None or text_of(runs.get("using")) != "composite":
            return None
        handed = self.reader.mapping(node.get("with"), "`with`")
        values = {key.lower(): value for key, value in handed.items()}
        given = {}
        try:
            for name, each in self.reader.mapping(root.get("inputs"), "`inputs`").items():
                value = values.get(name.lower(), each.get("default") if each.kind == MAPPING else None)
                given[name.lower()] = given_value(value, "", names)
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
        message = "the steps of an action of this repository are steps of the job"
        self.found.differs("composite", message, node)
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
                        if own:
                            step.demand(own)
                            self.job.plain.discard(step.id)
                        yield step
        finally:
            self.depth -= 1
            self.workflow.found, self.reader.found, self.env, self.prefix, self.job.folder = before
        own_id = text_of(node.get("id")).lower()
        if own_id:
            self.job.composites[own_id] = action

    def _short(self, node: Node, position: int) -> str:
        own = text_of(node.get("id")) or slug(re.sub(r"\$\{\{.*?\}\}", "", text_of(node.get("name"))))
        if not own and node.get("uses") is not None:
            own = slug(text_of(node.get("uses")).partition("@")[0].rpartition("/")[2])
        return f"{self.prefix}{own or position}"

    def _fill(self, step: DraftStep, node: Node, names: PlaceNames) -> None:
        """Give a step its script and surroundings; raises UntranslatableError."""
        text = without_set_output(text_of(node.get("run")))
        if starts_server(text) and not self._is_last(node):
            raise UntranslatableError("background", _SERVER)
        text, outputs, step.renamed = written_outputs(text)
        shell = self._shell(node)
        variables = Variables()
        variables.read(self.workflow.secret_env, names)  # the others of the workflow stand at the plan's top
        variables.read(names.env[1], names)
        variables.env |= {name: f"${{{{ {value} }}}}" for name, value in self.job.exported.items()}
        variables.read(names.env[0], names)
        if is_shell(shell):
            here, secrets = script(text, names)
            variables.secrets += secrets
        else:
            here = template(text, names)
        env = variables.env
        step.prelude = list(variables.lines)
        if self.job.folders and self.job.is_contained:
            env["FOLDERS"] = f"${{{{ {' ~ '.join(self.job.folders)} }}}}"
            step.prelude.insert(0, "FOLDERS")
        elif self.job.folders:
            env.setdefault("PATH", f"${{{{ {' ~ '.join([*self.job.folders, 'env.PATH'])} }}}}")
        if "GITHUB_ENV" in text or "GITHUB_PATH" in text:
            code = "github-env" if "GITHUB_ENV" in text else "github-path"
            if not is_shell(shell):
                raise UntranslatableError(
                    code, f"`{shell}` is no shell, and writes variables for later steps"
                )
            step.hands_on = handed_variables(text)
            declare_outputs(step, step.hands_on)
            step.prelude += ["GITHUB_ENV"] if "GITHUB_ENV" in text else []
            if "GITHUB_PATH" in text:
                step.hands_on = [*step.hands_on, "PATH"]
                declare_outputs(step, ["github_path"])
                step.prelude.append("GITHUB_PATH")
                env["GITHUB_PATH"] = "${{ step.dir }}/github_path"
        declare_outputs(step, outputs)
        if outputs or step.hands_on:
            self.found.differs("handed-on", _HANDED_ON, node)
        if outputs and self.job.matrix is not None:
            message = "outputs of a job with a matrix are read by no other job"
            self.found.differs("matrix-outputs", message, self.job.node)
        if "GITHUB_STEP_SUMMARY" in text:
            step.prelude.append("GITHUB_STEP_SUMMARY")
            message = "outside of GitHub what is written to $GITHUB_STEP_SUMMARY is lost"
            self.found.differs("summary", message, self.job.node)
        step.keys["run"] = here.rstrip("\n") + ("\n" if "\n" in here.rstrip("\n") else "")
        if env:
            step.keys["env"] = env
        if variables.secrets:
            step.keys["secrets"] = list(dict.fromkeys(variables.secrets))
            for name in step.keys["secrets"]:
                self.workflow.plan.secret(name)
                message = f"the secret {name} is read from planrun's own environment, under this name"
                self.found.differs("secret", message, node)
        if shell != self.workflow.usual_shell:
            step.keys["shell"] = shell
        folder = node.get("working-directory") or self.job.folder or self.workflow.folder
        if folder is not None and text_of(folder) not in ("", ".", "./"):
            step.keys["workdir"] = template(text_of(folder), names)

    def _is_last(self, node: Node) -> bool:
        """Say whether no later step of the job could use what a script leaves running."""
        steps = self.reader.items(self.job.node.get("steps"), "`steps`")
        at = next((at for at, each in enumerate(steps) if each is node), -1)
        return at >= 0 and all(each.get("run") is None for each in steps[at + 1 :])

    def _shell(self, node: Node) -> str:
        """Return the words before the script; raises UntranslatableError."""
        requested = text_of(node.get("shell")) or self.job.shell or self.workflow.shell
        if not requested and self.job.is_contained:
            requested = "sh"  # as in containers there
        if requested in SHELLS:
            return SHELLS[requested]
        if requested.endswith(" {0}") and "{0}" not in requested[:-4] and "${{" not in requested:
            return requested[:-4].strip()
        raise UntranslatableError("shell", f"the shell `{requested}`")

    def _common(self, step: DraftStep, node: Node, names: PlaceNames) -> None:
        """Give a step its title, its time, its condition, and what its failure means."""
        title = " ".join(re.sub(r"\$\{\{\s*(.*?)\s*\}\}", r"\1", text_of(node.get("name"))).split())
        if title and title.isprintable():
            step.keys["title"] = title[:200]
        time = node.get("timeout-minutes") or self.job.node.get("timeout-minutes")
        if time is not None and "validate" not in step.keys:
            minutes = data_of(time)
            if isinstance(minutes, (int, float)) and not isinstance(minutes, bool) and 0 < minutes <= 500_000:
                seconds = round(minutes * 60)
                step.keys["timeout"] = f"{seconds // 60}m" if seconds % 60 == 0 else f"{max(1, seconds)}s"
            else:
                message = "a time that is worked out when the workflow runs"
                step.notes.append(self.found.todo("timeout", message, time, step.id))
        lenient = node.get("continue-on-error")
        tolerant = known_truth(lenient, self.job, self.workflow)
        if lenient is not None and tolerant is None:
            message = "whether a failure counts is worked out there; here it counts"
            step.notes.append(self.found.todo("continue-on-error", message, lenient, step.id))
        if tolerant:
            step.keys["on_failure"] = "continue"
            self.job.tolerated.add(step.id)
        elif known_truth(self.job.node.get("continue-on-error"), self.job, self.workflow):
            step.keys["on_failure"] = "skip"  # for the other jobs; its own steps see the failure
        try:
            found = condition(node.get("if"), names)
        except UntranslatableError as why:
            step.leave(self.found, why.code, why.message, node)
            found = condition(None, names)
        step.condition = found.text
        if found.asks:
            self.job.asking.add(step.id)
        elif not found.text and not tolerant:
            self.job.plain.add(step.id)

    def _note_exports(self, step: DraftStep) -> None:
        """Let later steps of the job read what a step hands on."""
        for name in step.hands_on if "run" in step.keys else ():
            outputs = step_path(step.id, "outputs")
            if name == "PATH":
                self.job.folders.insert(0, f"default({outputs}.github_path, '')")
                continue
            own, before = f"default({outputs}.{name}, '')", self.job.exported.get(name, "")
            if not before and name in self.job.env:
                names = PlaceNames(self.workflow, self.job, self.job.node, (self.job.env, self.workflow.env))
                try:
                    before = names.put(name, text_of(self.job.env[name])).within(OR)
                except UntranslatableError:  # a secret, which the script that would read it refuses, too
                    before = ""
            elif not before and name in self.workflow.env:
                before = f"env.{name}"
            if before:
                message = "an empty value that a script writes to $GITHUB_ENV does not replace an earlier one"
                self.found.differs("github-env", message, step.node or self.job.node)
            self.job.exported[name] = f"{own} if {own} != '' else {before}" if before else own
