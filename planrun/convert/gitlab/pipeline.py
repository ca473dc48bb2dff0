"""A GitLab CI file with what it includes and extends, as a plan: a job is a step, a manual one has a question."""

from __future__ import annotations

import os
import re

from planrun.convert.draft import DraftPlan, DraftStep, source_text
from planrun.convert.gitlab.conditions import CHECK, Patterns
from planrun.convert.gitlab.edges import Edges
from planrun.convert.gitlab.job import OF_RUNNER, RUNNER, Job, Scope, plain, runner_step, variable_text
from planrun.convert.reader import Reader, UntranslatableError, text_of
from planrun.convert.recipes.sequence import is_known
from planrun.errors import InvalidInput, InvalidPlan
from planrun.plan.yaml.document import read_tree
from planrun.plan.yaml.file import read_source
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from planrun.convert.reader import Findings
    from planrun.plan.problems import Problem

_TOP = frozenset((
    "after_script", "before_script", "cache", "default", "image", "include", "services", "spec", "stages", "types",
    "variables", "workflow",
))  # fmt: skip
_EVERYWHERE = frozenset((
    "before_script", "after_script", "image", "services", "retry", "timeout", "tags", "artifacts", "interruptible",
    "id_tokens",
))  # fmt: skip
_STAGES = ["build", "test", "deploy"]
_REFERENCE = re.compile(rb"!reference[ \t]*\[([^\]\n]*)\]")
_DOUBLED = "E018"  # the code of a key that is there twice
REFERENCE = "!reference:"
# Levels, and files of one pipeline; the limits of GitLab (docs.gitlab.com/ci/yaml: `extends`, `!reference`, `include`).
MAX_EXTENDS = 11
MAX_REFERENCES = 10
MAX_INCLUDES = 12  # levels of files that include each other
MAX_FILES = 150
_TOLD = {
    "triggers": "a plan has no triggers, and `workflow:` is not read: start it from a pipeline",
    "workspace": "all jobs share one workspace, which stays as it is; one step runs at a time: raise "
    "`limits.max_parallel` where steps touch different files",
    "environment": "variables of GitLab's runner that planrun does not know are those of the environment; those of the "
    "file win, also over those that start a pipeline; what looks like a credential is not inherited: see `secrets`",
    "timeout": "a job has one hour, as in GitLab",
}


def read_pipeline(data: bytes, found: Findings) -> tuple[Node | None, list[Problem], bool]:
    """Return the tree of a GitLab CI file, what is wrong with it, and whether that is all of it.

    `!reference [a, b]` becomes a text; of a key that is there twice the last value counts, as for GitLab.
    """
    data = _REFERENCE.sub(
        lambda match: b"'" + REFERENCE.encode() + re.sub(rb"['\"]", b"", match[1]) + b"'", data
    )
    root, problems, complete = read_tree(data, found.file, "file", keeps_last=True)
    for problem in problems:
        if problem.code == _DOUBLED:
            place = Node(SCALAR, "", problem.line, problem.col)
            found.differs("duplicate", f"{problem.message}: the last one counts, as for GitLab", place)
    return root, [problem for problem in problems if problem.code != _DOUBLED], complete


class Pipeline:
    """One file with those that it includes, while it is being converted."""

    def __init__(self, root: Node, found: Findings) -> None:
        self.root, self.found, self.reader = root, found, Reader(found)
        self.plan = DraftPlan()
        self.jobs: dict[str, Node] = {}
        self.origin: dict[str, tuple[Findings, Node]] = {}  # the file and the key of each job
        self.usual: dict[str, Node] = {}  # keys that all jobs have which do not say otherwise
        self.variables: dict[str, str] = {}
        self.stages: list[str] = []
        self.files = 0
        self.left: list[DraftStep] = []  # for files that are included and not there
        self.services: dict[str, DraftStep] = {}
        self.patterns = Patterns()
        self.plan.name(CHECK)
        self.plan.name(RUNNER)

    def convert(self, wanted: Collection[str]) -> DraftPlan:
        """Return the plan."""
        plan = self.plan
        self._gather(self.root)
        self.stages = [
            ".pre",
            *([each for each in self.stages if each not in (".pre", ".post")] or _STAGES),
            ".post",
        ]
        for code, message in _TOLD.items():
            self.found.differs(code, message, self.root)
        plan.keys["env"] = {"CI": "true"} | {
            name: value
            for name, value in Scope(self.found, self.root, self.variables).values().items()
            if f"steps.{RUNNER}." not in value and "env.CI_JOB_" not in value
        }
        plan.keys["defaults"] = {"shell": "bash -eo pipefail", "timeout": "1h"}
        plan.keys["limits"] = {"max_parallel": 1}
        jobs = {name: self._made(name) for name in self.jobs if not name.startswith(".")}
        is_known(self.found, "job", list(wanted), jobs, self.root)
        edges = Edges(self, jobs)
        chosen = [name for name in jobs if not wanted or name in wanted]
        for name in chosen:  # grows while it is read
            chosen += [each for each, _ in jobs[name].needs() or () if each in jobs and each not in chosen]
        steps = edges.link([name for name in jobs if name in chosen])
        helpers = [self.patterns.step()] if self.patterns.has_tests else []
        texts = {step.id: f"{step.condition} {step.keys}" for step in [*helpers, *steps]}
        read = [
            each for each in OF_RUNNER if any(f"{RUNNER}.outputs.{each}" in text for text in texts.values())
        ]
        helpers = [*([runner_step(read)] if read else []), *helpers]
        for step in [*helpers, *steps]:
            for helper in helpers:
                if step is not helper and f"steps.{helper.id}." in f"{step.condition} {step.keys}":
                    step.wait(helper.id)
        plan.steps = [*self.left, *helpers, *self.services.values(), *steps]
        return plan

    def _made(self, name: str) -> Job:
        """Return a job with the keys of those that it extends, and with what `!reference` names in its place."""
        found, place = self.origin[name]
        job = Job(self, name, place, found)
        try:
            members = self._whole(name)
            job.members = {key: self._resolved(node) for key, node in {**self.usual, **members}.items()}
        except UntranslatableError as why:
            job.unfit = why
            job.members = job.members or self.jobs[name].value
        return job

    def leave(self, name: str, code: str, message: str, place: Node, found: Findings) -> DraftStep:
        """Return a step without an action for a part of the file, with its text."""
        step = DraftStep(self.plan.name(name))
        step.node = place
        step.keys = {"title": " ".join(name.split())[:200]}
        step.leave(found, code, message, place)
        step.keys["description"] = source_text(found.file, place, is_key=True)
        return step

    def _gather(self, root: Node, chain: tuple[str, ...] = ()) -> None:
        """Add what a file and those that it includes say; the including file counts."""
        members = self.reader.mapping(root, "a GitLab CI file")
        include = members.get("include")
        for node in [] if include is None else include.value if include.kind == SEQUENCE else [include]:
            try:
                self._include(node, chain)
            except UntranslatableError as why:
                step = self.leave("include", "include", f"`include` {why.message}", node, self.reader.found)
                step.keys["description"] = source_text(
                    self.reader.found.file, root.key("include"), is_key=True
                )
                self.left.append(step)
        for name, node in members.items():
            place = root.key(name)
            if name == "default":
                self.usual |= self.reader.mapping(node, "`default`")
            elif name in _EVERYWHERE:
                self.usual[name] = node
            elif name == "variables":
                for key, value in self.reader.mapping(node, "`variables`").items():
                    self.variables[key] = variable_text(value)
            elif name in ("stages", "types"):
                self.stages = self.reader.texts(node, "`stages`")
            elif name == "workflow" and "variables" in str(plain(node)):
                message = "the variables that the rules of `workflow` set are missing: add them to `env`"
                self.reader.found.todo("workflow", message, place)
            elif name in _TOP:
                continue
            elif node.kind == MAPPING:
                earlier = self.jobs.get(name)
                self.jobs[name] = node if earlier is None else _merged(earlier, node)
                self.origin[name] = (self.reader.found, place)
            elif not name.startswith("."):
                self.left.append(
                    self.leave(name, f"key:{name}", f"unknown key `{name}`", place, self.reader.found)
                )

    def _include(self, node: Node, chain: tuple[str, ...]) -> None:
        """Add an included file; raises UntranslatableError for one that is elsewhere, or may be left out."""
        local = text_of(node) or (text_of(node.get("local")) if node.kind == MAPPING else "")
        if node.kind == MAPPING and text_of(node.get("template")).startswith("Workflows/"):
            return  # it says which pipelines start, which a plan does not read
        is_more = node.kind == MAPPING and set(node.value) - {"local"}
        if not local or "://" in local or "$" in local or "*" in local or is_more:
            message = f"of what is elsewhere, or only sometimes: {plain(node)}"
            raise UntranslatableError("include", message[:300])
        path = os.path.join(os.path.dirname(self.found.file), local.lstrip("/"))
        self.files += 1
        why = f"stands more than {MAX_INCLUDES} levels deep" if len(chain) > MAX_INCLUDES else ""
        why = "includes itself" if path in chain else why
        if why or self.files > MAX_FILES:
            raise UntranslatableError("include", f"of {path}, which {why or 'is one of too many'}")
        try:
            root, problems, complete = read_pipeline(read_source(path, "file"), self.found.of(path))
        except InvalidInput as error:
            told = error.problems[0].text if isinstance(error, InvalidPlan) and error.problems else str(error)
            raise UntranslatableError("include", f"of {path}, which cannot be read: {told}") from None
        if root is None or problems or not complete or root.kind != MAPPING:
            raise UntranslatableError("include", f"of {path}, which is no valid YAML")
        before, self.reader = self.reader, Reader(self.found.of(path))
        self._gather(root, (*chain, path))
        self.reader = before

    def _resolved(self, node: Node, depth: int = 0) -> Node:
        """Return a value with what `!reference` names in its place; raises UntranslatableError."""
        self.found.spend(20, node)
        if node.kind == SEQUENCE:
            return Node(SEQUENCE, [self._resolved(each, depth) for each in node.value], node.line, node.col)
        if node.kind == MAPPING:
            members = {key: self._resolved(each, depth) for key, each in node.value.items()}
            made = Node(MAPPING, members, node.line, node.col)
            made.keys = node.keys
            return made
        if not str(node.value).startswith(REFERENCE):
            return node
        names = [each.strip() for each in str(node.value).removeprefix(REFERENCE).split(",")]
        if depth >= MAX_REFERENCES:
            message = f"`!reference [{', '.join(names)}]` stands more than {MAX_REFERENCES} levels deep"
            raise UntranslatableError("reference", message)
        target: Node | None = None
        if names[0] in self.jobs:
            target = Node(MAPPING, self._whole(names[0]), node.line, node.col)
        elif names[0] == "default":
            target = Node(MAPPING, self.usual, node.line, node.col)
        for name in names[1:]:
            target = target.value.get(name) if target is not None and target.kind == MAPPING else None
        if target is None:
            raise UntranslatableError("reference", f"`!reference [{', '.join(names)}]` names nothing here")
        return self._resolved(target, depth + 1)

    def _whole(self, name: str, chain: tuple[str, ...] = ()) -> dict[str, Node]:
        """Return the keys of a job with those that it extends; raises UntranslatableError."""
        node = self.jobs[name]
        self.found.spend(20 + len(node.value), node)
        found: dict[str, Node] = {}
        for base in self.reader.texts(node.get("extends"), "`extends`"):
            if base not in self.jobs:
                raise UntranslatableError("extends", f"{name} extends `{base}`, which is not there")
            if base in (*chain, name):
                raise UntranslatableError("extends", f"{base} extends itself")
            if len(chain) >= MAX_EXTENDS:
                message = f"{chain[0]} extends `{base}` by more than {MAX_EXTENDS} levels"
                raise UntranslatableError("extends", message)
            _deepen(found, self._whole(base, (*chain, name)))
        _deepen(found, {key: value for key, value in node.value.items() if key != "extends"})
        return found


def _merged(first: Node, second: Node) -> Node:
    members = dict(first.value)
    _deepen(members, second.value)
    node = Node(MAPPING, members, second.line, second.col)
    node.keys = {**first.keys, **second.keys}
    return node


def _deepen(into: dict[str, Node], over: Mapping[str, Node]) -> None:
    """Put keys over others as `extends` does: mappings are joined, all else is replaced."""
    for name, node in over.items():
        before = into.get(name)
        joins = before is not None and before.kind == MAPPING and node.kind == MAPPING
        into[name] = _merged(before, node) if joins and before is not None else node


def convert_pipeline(root: Node, found: Findings, jobs: Collection[str] = ()) -> DraftPlan:
    """Return the plan that a GitLab CI file becomes; `jobs` are the wanted ones with what they need."""
    return Pipeline(root, found).convert(jobs)
