"""A GitLab CI file as a plan: a job is a step, stages and `needs` are edges, rules are conditions."""

from __future__ import annotations

import json
import os
import re

from planrun.convert.draft import DraftPlan, DraftStep, literal_text, quoted, slug, step_path
from planrun.convert.gitlab.conditions import CHECK, Patterns, condition_of, exists, ref_of, value_of
from planrun.convert.reader import Reader, UntranslatableError, is_nothing, text_of, truth_of
from planrun.errors import InvalidInput, InvalidPlan
from planrun.plan.problems import did_you_mean
from planrun.plan.yaml.document import read_tree
from planrun.plan.yaml.file import read_source
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from planrun.convert.reader import Findings
    from planrun.plan.problems import Problem

_TOP = frozenset((
    "after_script", "before_script", "cache", "default", "image", "include", "services", "spec", "stages", "types",
    "variables", "workflow",
))  # fmt: skip
_KNOWN = frozenset((
    "after_script", "allow_failure", "artifacts", "before_script", "cache", "coverage", "dependencies", "environment",
    "except", "extends", "image", "inherit", "interruptible", "needs", "only", "parallel", "resource_group", "retry",
    "rules", "script", "services", "stage", "tags", "timeout", "variables", "when", "id_tokens",
    "pages", "publish", "start_in",
))  # fmt: skip
_STAGES = ["build", "test", "deploy"]
_RELEASE = {
    "tag_name": "tag-name", "tag_message": "tag-message", "name": "name", "description": "description", "ref": "ref",
    "released_at": "released-at",
}  # fmt: skip
_LINK = {"filepath": "direct_asset_path", "type": "link_type"}
_UNITS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}
_SPAN = re.compile(r"(\d+)\s*(w|d|h|m|s)[a-z]*")
_BASH = re.compile(r"\[\[|\bpipefail\b|<<<|\bsource\b|\bdeclare\b|\(\(|<\(|=\(")
_NAME = re.compile(r"[A-Za-z_]\w{0,99}\Z")
REFERENCE = "!reference:"
_DOUBLED = "E018"  # the code of a key that is there twice
_INSTANCE = re.compile(r" \d+/\d+\Z|: \[.*\]\Z")  # of a job that runs several times, in its name
_REFERENCE = re.compile(rb"!reference[ \t]*\[([^\]\n]*)\]")
_READ = re.compile(r"\$\$|\$\{(\w+)\}|\$(\w+)")
MAX_NESTING = 12
# Variables of GitLab that hold credentials, or the names that go with them.
_CREDENTIAL = re.compile(
    r"\$\{?(CI_JOB_TOKEN|CI_REGISTRY_PASSWORD|CI_REGISTRY_USER|CI_DEPLOY_PASSWORD|CI_DEPLOY_USER)\b"
)
MAX_FILES = 50
MAX_VALUES = 200_000  # that are put together from `extends` and `!reference`
_WORKSPACE = (
    "all jobs share one workspace, which stays as it is; one step runs at a time: raise `limits.max_parallel` where "
    "steps touch different files"
)
_ENVIRONMENT = (
    "the variables of GitLab's runner (CI_…) are those of the environment, empty outside of it; those of the file win; "
    "what looks like a credential is not inherited: see `secrets` and `inherit_env`"
)
_DOTENV = (
    "the scripts of later jobs read the file of a `dotenv` report in the workspace, if it is there; `image` and "
    "`variables` do not see what it sets"
)
_READ_FILE = """\
if [ -f "{0}" ]; then while IFS='=' read -r name value; do
  case $name in [A-Za-z_]*) export "$name=$value" ;; esac
done < "{0}"; fi
"""
_TOLD = {
    "tags": "`tags` choose no runner: the plan runs where planrun is started",
    "coverage": "coverage is not read from the output",
    "interruptible": "a run is not cancelled by a newer one",
    "pages": "no pages are published",
    "publish": "no pages are published",
}
_EVERYWHERE = (
    "before_script",
    "after_script",
    "image",
    "services",
    "retry",
    "timeout",
    "tags",
    "artifacts",
    "interruptible",
)


def read_pipeline(data: bytes, found: Findings) -> tuple[Node | None, list[Problem], bool]:
    """Return the tree of a GitLab CI file, what is wrong with it, and whether that is all of it.

    `!reference [a, b]` becomes a text; of a key that is there twice the last value counts, as for GitLab.
    """
    data = _REFERENCE.sub(
        lambda match: b"'" + REFERENCE.encode() + match[1].replace(b"'", b"").replace(b'"', b"") + b"'", data
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
        self.root = root
        self.found = found
        self.reader = Reader(found)
        self.plan = DraftPlan()
        self.jobs: dict[str, Node] = {}
        self.usual: dict[str, Node] = {}  # keys that all jobs have which do not say otherwise
        self.variables: dict[str, Node] = {}
        self.known: dict[str, str] = {}  # variables of the file, put together
        self.stages: list[str] = []
        self.files = 0
        self.looked_at = 0
        self.origin: dict[str, Findings] = {}  # of the file that each job stands in
        self.patterns = Patterns()
        self.reports: dict[str, list[str]] = {}  # files with variables for later jobs
        self.plan.name(CHECK)

    def convert(self, wanted: Collection[str]) -> DraftPlan:
        """Return the plan."""
        self._gather(self.root)
        self._head()
        jobs = {
            name: {key: self._resolved(node) for key, node in self._whole(name).items()}
            for name in self.jobs
            if not name.startswith(".")
        }
        chosen = self._chosen(jobs, wanted)
        made: dict[str, list[DraftStep]] = {}
        for name in chosen:
            job = Job(self, name, jobs[name])
            step = job.step()
            made[name] = [step]
            for secret in dict.fromkeys(
                _CREDENTIAL.findall(f"{step.keys.get('run', '')}{step.keys.get('env', '')}")
            ):
                self.plan.secret(secret)  # without it the run does not begin: an empty one would pass unseen
                if secret not in step.keys.setdefault("secrets", []):
                    step.keys["secrets"].append(secret)
            if job.environment:
                question = literal_text(f"Run {name} in the environment {job.environment}?")
                gate = DraftStep(self.plan.name(f"{name}.approve"), ask={"question": question})
                gate.node = step.node
                made[name].insert(0, gate)
                step.wait(gate.id)
            if files := job.reports():
                self.reports[name] = [self.expanded(file, job.own) for file in files]
                self.found.differs("dotenv", _DOTENV, self.jobs[name])
        Edges(self, {name: jobs[name] for name in chosen}, made).link()
        if self.patterns.has_tests:
            check = self.plan.add(self.patterns.step())
            for step in (each for steps in made.values() for each in steps):
                if f"steps.{CHECK}." in step.condition or f"steps.{CHECK}." in str(step.keys.get("env", "")):
                    step.wait(check.id, "completed")
        order = {stage: at for at, stage in enumerate(self.stages)}
        for name in sorted(chosen, key=lambda name: order.get(self.stage(jobs[name]), 0)):
            self.plan.steps += made[name]
        return self.plan

    def stage(self, job: Mapping[str, Node]) -> str:
        """Return the stage of a job."""
        return text_of(job.get("stage")) or "test"

    def _chosen(self, jobs: Mapping[str, Mapping[str, Node]], wanted: Collection[str]) -> list[str]:
        for name in wanted:
            if name not in jobs:
                hint = did_you_mean(name, jobs) or f"there are {', '.join(jobs)}"
                self.found.refuse("shape", f'there is no job "{name}"; {hint}', self.root)
        chosen = [name for name in jobs if not wanted or name in wanted]
        for name in chosen:  # grows while it is read
            needs = self.reader.items(jobs[name].get("needs"), "`needs`")
            names = [text_of(each) if each.kind == SCALAR else text_of(each.get("job")) for each in needs]
            chosen += [each for each in names if each in jobs and each not in chosen]
        return [name for name in jobs if name in chosen]

    def _gather(self, root: Node, depth: int = 0) -> None:
        """Add what a file and those that it includes say; the including file counts."""
        members = self.reader.mapping(root, "a GitLab CI file")
        include = members.get("include")
        for node in [] if include is None else include.value if include.kind == SEQUENCE else [include]:
            self._include(node, depth)
        for name, node in members.items():
            if name == "default":
                self.usual |= self.reader.mapping(node, "`default`")
            elif name in _EVERYWHERE:
                self.usual[name] = node
            elif name == "variables":
                self.variables |= self.reader.mapping(node, "`variables`")
            elif name in ("stages", "types"):
                self.stages = self.reader.texts(node, "`stages`")
            elif name in _TOP:
                continue
            elif node.kind == MAPPING:
                earlier = self.jobs.get(name)
                self.origin[name] = self.reader.found
                self.jobs[name] = node if earlier is None else _merged(earlier, node)
            elif not name.startswith("."):
                self.found.refuse(f"key:{name}", f"unknown key `{name}`", root.key(name))

    def _include(self, node: Node, depth: int) -> None:
        local = text_of(node) if node.kind == SCALAR else text_of(node.get("local"))
        if node.kind == MAPPING and node.get("rules") is not None:
            message = f"{local or 'a file'} is included whatever the `rules` of its `include` say"
            self.found.differs("include", message, node)
        if local and "*" in local and "://" not in local and "$" not in local:
            for path in _matching(os.path.dirname(self.found.file), local.lstrip("/")):
                self._include_file(path, node, depth)
            return
        if node.kind == MAPPING and text_of(node.get("template")).startswith("Workflows/"):
            return  # it says which pipelines start, which a plan does not read
        if not local or "://" in local or "$" in local:
            what = local or " ".join(f"{key}: {text_of(each)}" for key, each in node.value.items())
            self.found.refuse("include", f"`include` of what is elsewhere: {what[:200]}", node)
            return
        self._include_file(os.path.join(os.path.dirname(self.found.file), local.lstrip("/")), node, depth)

    def _include_file(self, path: str, node: Node, depth: int) -> None:
        self.files += 1
        if self.files > MAX_FILES or depth > MAX_NESTING:
            self.found.refuse("include", f"files include each other too deeply: {path}", node)
            return
        try:
            root, problems, complete = read_pipeline(read_source(path, "file"), self.found.of(path))
        except InvalidInput as error:
            why = error.problems[0].text if isinstance(error, InvalidPlan) and error.problems else str(error)
            self.found.refuse("include", f"the included file {path} cannot be read: {why}", node)
            return
        if root is None or problems or not complete or root.kind != MAPPING:
            self.found.refuse("include", f"the included file is no valid YAML: {path}", node)
            return
        before, self.reader.found = self.reader.found, self.found.of(path)
        self._gather(root, depth + 1)
        self.reader.found = before

    def _resolved(self, node: Node, depth: int = 0) -> Node:
        """Return a value with what `!reference` names in its place."""
        self.looked_at += 1
        if self.looked_at > MAX_VALUES:
            if self.looked_at == MAX_VALUES + 1:
                self.found.refuse("too-large", "too many values are put together", node)
            return Node(SCALAR, "", node.line, node.col)
        if node.kind == SCALAR and str(node.value).startswith(REFERENCE):
            target: Node | None = None
            names = [each.strip().strip("'\"") for each in str(node.value).removeprefix(REFERENCE).split(",")]
            for at, name in enumerate(names):
                if at == 0:
                    target = self._job(name)
                else:
                    target = target.value.get(name) if target is not None and target.kind == MAPPING else None
            if target is None or depth > MAX_NESTING:
                self.found.refuse("reference", f"`!reference [{', '.join(names)}]` names nothing here", node)
                return Node(SCALAR, "", node.line, node.col)
            return self._resolved(target, depth + 1)
        if node.kind == SEQUENCE:
            return Node(SEQUENCE, [self._resolved(each, depth) for each in node.value], node.line, node.col)
        if node.kind == MAPPING:
            made = Node(
                MAPPING,
                {key: self._resolved(each, depth) for key, each in node.value.items()},
                node.line,
                node.col,
            )
            made.keys = node.keys
            return made
        return node

    def _job(self, name: str) -> Node | None:
        """Return a job with the keys of those that it extends; `default` is what all jobs have."""
        if name == "default":
            return Node(MAPPING, self.usual, 1, 1)
        node = self.jobs.get(name)
        if node is None or node.get("extends") is None:
            return node
        whole = Node(MAPPING, self._whole(name, 1), node.line, node.col)
        whole.keys = node.keys
        return whole

    def _whole(self, name: str, depth: int = 0) -> dict[str, Node]:
        """Return the keys of a job with those that it extends."""
        node = self.jobs[name]
        found: dict[str, Node] = {}
        for base in self.reader.texts(node.get("extends"), "`extends`"):
            if base not in self.jobs or depth > MAX_NESTING:
                self.found.refuse("shape", f"{name} extends `{base}`, which is not there", node)
                continue
            _deepen(found, self._whole(base, depth + 1))
        _deepen(found, {key: value for key, value in node.value.items() if key != "extends"})
        if depth:
            return found
        return {**self._inherited(found.get("inherit")), **found}

    def _inherited(self, inherit: Node | None) -> dict[str, Node]:
        """Return the keys that a job has which do not stand in it."""
        usual = {key: value for key, value in self.usual.items() if key in _KNOWN}
        if inherit is None or inherit.kind != MAPPING:
            return usual
        wanted = inherit.get("default")
        if wanted is None or wanted.kind == SCALAR:
            return {} if truth_of(wanted) is False else usual
        names = self.reader.texts(wanted, "`default`")
        return {key: value for key, value in usual.items() if key in names}

    def _head(self) -> None:
        found, plan, root = self.found, self.plan, self.root
        named = [stage for stage in self.stages if stage not in (".pre", ".post")] or _STAGES
        self.stages = [".pre", *named, ".post"]
        for name, node in self.variables.items():
            value = node.get("value") if node.kind == MAPPING else node
            self.known[name] = text_of(value)
        env = {}
        for name in self.known:
            if not _NAME.match(name):
                found.refuse("env", f"`{name}` cannot be the name of a variable here", root.key("variables"))
                continue
            env[name] = self.expanded(self.known[name])
        if env:
            plan.keys["env"] = env
        plan.keys["defaults"] = {"shell": "bash -eo pipefail", "timeout": "1h"}
        plan.keys["limits"] = {"max_parallel": 1}
        for code, message in (
            ("triggers", "a plan has no triggers, and `workflow:` is not read: start it from a pipeline"),
            ("workspace", _WORKSPACE),
            ("environment", _ENVIRONMENT),
            ("timeout", "a job has one hour, as in GitLab"),
        ):  # fmt: skip
            found.differs(code, message, root)

    def expanded(self, text: str, own: Mapping[str, str] | None = None, depth: int = 0) -> str:
        """Return a text of the file with its variables filled in, those of the file by their own text."""
        known = {**self.known, **(own or {})}

        def read(match: re.Match[str]) -> str:
            name = match[1] or match[2]
            if not name:
                return "$"
            if name in known and depth < MAX_NESTING and known[name] != text:
                return self.expanded(known[name], own, depth + 1)
            return f"${{{{ {value_of(name, {})} }}}}"

        self.found.spend(len(text) + 10, self.root)
        pieces = text.split("${{")
        return "$${{".join(_READ.sub(read, piece) for piece in pieces)


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


class Job:
    """One job while its step is made."""

    def __init__(self, pipeline: Pipeline, name: str, members: Mapping[str, Node]) -> None:
        self.pipeline = pipeline
        self.plan, self.found = pipeline.plan, pipeline.origin[name]
        self.reader = Reader(self.found)
        self.name = name
        self.members = members
        self.node = pipeline.jobs[name]
        self.own: dict[str, str] = {}
        self.environment = ""  # for which people may have to approve the job

    def step(self) -> DraftStep:
        """Return the step of the job, without edges."""
        step = DraftStep(self.plan.name(slug(self.name) or self.name))
        step.node = self.node
        if step.id != self.name:
            step.keys["title"] = " ".join(self.name.split())[:200]
        for key in self.members:
            if key in ("trigger", "secrets", "run", "release"):
                continue
            if key not in _KNOWN:
                self.found.refuse(f"key:{key}", f"{self.name}: unknown key `{key}`", self.place(key))
        try:
            self._fill(step)
        except UntranslatableError as why:
            step.make_abstract(
                self.found.refuse(why.code, f"{why.message} (job {self.name})", self.node, step.id)
            )
        return step

    def place(self, key: str) -> Node:
        """Return where a key of the job stands."""
        return self.node.key(key) if key in self.node.value else self.node

    def _fill(self, step: DraftStep) -> None:
        if "trigger" in self.members:
            self._variables(step)
            step.keys["run"] = self._trigger(step)
            return
        for key in ("secrets", "run"):
            if key in self.members:
                raise UntranslatableError(key, f"`{key}` has no equivalent")
        self._variables(step)
        script = self._unset() + self._delay() + self._tolerated(self._script() + self._release())
        step.keys["run"] = script
        self._container(step)
        self._told(step)
        self._result(step)
        if _BASH.search(script) and step.keys.get("shell") == "sh -e":
            step.keys["shell"] = "bash -eo pipefail"

    def _variables(self, step: DraftStep) -> None:
        nodes = self.reader.mapping(self.members.get("variables"), "`variables`")
        for name, node in nodes.items():
            if not _NAME.match(name):
                raise UntranslatableError("env", f"`{name}` cannot be the name of a variable here")
            self.own[name] = text_of(node.get("value") if node.kind == MAPPING else node)
        env = {name: self.pipeline.expanded(text, self.own) for name, text in self.own.items()}
        if env:
            step.keys["env"] = env

    def _lines(self, key: str) -> list[str]:
        """Return the commands under a key; lists in lists are taken apart, as YAML anchors make them."""
        node = self.members.get(key)
        found: list[str] = []
        waiting = [] if node is None or is_nothing(node) else [node]
        while waiting:
            each = waiting.pop(0)
            if each.kind == SEQUENCE:
                waiting = [*each.value, *waiting]
            elif each.kind == SCALAR:
                found.append(literal_text(text_of(each).rstrip("\n")))
            else:
                raise UntranslatableError("shape", f"`{key}` has something else than commands")
        return found

    def _script(self) -> str:
        lines = [*self._lines("before_script"), *self._lines("script")]
        if not self._lines("script"):
            raise UntranslatableError("shape", "the job has no script")
        after = self._lines("after_script")
        if after:
            body = "\n".join(after)
            lines.insert(0, f"after() (\nset +e\n{body}\n)\ntrap 'code=$?; after || true; exit $code' EXIT")
            message = "`after_script` runs when the script of its step ends, and sees its variables"
            self.found.differs("after-script", message, self.place("after_script"))
        return "\n".join(lines) + "\n"

    def _unset(self) -> str:
        """Return the line that unsets the variables of the file that a job does not inherit."""
        inherit = self.members.get("inherit")
        wanted = inherit.get("variables") if inherit is not None and inherit.kind == MAPPING else None
        if wanted is None or truth_of(wanted) is True:
            return ""
        kept = self.reader.texts(wanted, "`variables`") if wanted.kind == SEQUENCE else []
        names = [name for name in self.pipeline.known if name not in kept and name not in self.own]
        return f"unset {' '.join(names)}\n" if names else ""

    def _delay(self) -> str:
        """Return the line that waits before a job that starts later."""
        if text_of(self.members.get("when")) != "delayed":
            return ""
        message = "the time before a job that starts later is a part of its step, and counts for its timeout"
        self.found.differs("when", message, self.place("when"))
        return f"sleep {_seconds(text_of(self.members.get('start_in')))}\n"

    def _tolerated(self, script: str) -> str:
        """Return a script that succeeds with the exit codes under `allow_failure`."""
        allowed = self.members.get("allow_failure")
        if allowed is None or allowed.kind != MAPPING:
            return script
        codes = self.reader.texts(allowed.get("exit_codes"), "`exit_codes`")
        if not codes or not all(code.isdecimal() for code in codes):
            raise UntranslatableError(
                "allow-failure", "failures that count by something else than exit codes"
            )
        message = f"an exit code of {', '.join(codes)} counts as success; in GitLab it is a warning"
        self.found.differs("allow-failure", message, self.place("allow_failure"))
        lines = ["code=0", "set +e", "(", "set -e", script.rstrip("\n"), ")", "code=$?"]
        return "\n".join([*lines, f"case $code in {'|'.join(codes)}) exit 0 ;; esac", "exit $code", ""])

    def _trigger(self, step: DraftStep) -> str:
        """Return the request that starts the pipeline of another project; raises UntranslatableError."""
        node = self.members["trigger"]
        members = {"project": node} if node.kind == SCALAR else self.reader.mapping(node, "`trigger`")
        project, branch = text_of(members.get("project")), text_of(members.get("branch")) or "main"
        others = [key for key in members if key not in ("project", "branch", "forward")]
        if not project or others:
            what = f"`{others[0]}`" if others else "a pipeline of this project"
            raise UntranslatableError("trigger", f"a job that starts a pipeline, with {what}")
        message = (
            f"GitLab's API starts the pipeline of {project} on {branch}, by curl and the secret CI_JOB_TOKEN, and with "
            "the variables of the job; nothing waits for it"
        )
        self.found.differs("trigger", message, self.place("trigger"))
        self.plan.secret("CI_JOB_TOKEN")
        self.plan.optional.add("CI_JOB_TOKEN")
        step.keys["secrets"] = ["CI_JOB_TOKEN"]
        given = [f'--form "variables[{name}]=${{{name}}}"' for name in self.own]
        path = project if "$" in project else project.replace("/", "%2F")
        lines = [
            "curl --silent --show-error --fail-with-body --request POST",
            '--form "token=${CI_JOB_TOKEN}"',
            f"--form {_double(f'ref={branch}')}",
            *given,
            _double(f"${{CI_API_V4_URL}}/projects/{path}/trigger/pipeline"),
        ]
        return " \\\n  ".join(lines) + "\n"

    def _release(self) -> str:
        """Return the command that makes a release, as GitLab's runner does after the script."""
        node = self.members.get("release")
        if node is None:
            return ""
        members = self.reader.mapping(node, "`release`")
        for key in members:
            if key not in (*_RELEASE, "milestones", "assets"):
                raise UntranslatableError("release", f"a release with `{key}`")
        words = ["release-cli create"]
        for key, option in _RELEASE.items():
            if text := text_of(members.get(key)):
                words.append(f"--{option} {_double(text)}")
        milestones = self.reader.texts(members.get("milestones"), "`milestones`")
        words += [f"--milestone {_double(text)}" for text in milestones]
        assets = self.reader.mapping(members.get("assets"), "`assets`")
        for link in self.reader.items(assets.get("links"), "`links`"):
            members = self.reader.mapping(link, "a link")
            given = {_LINK.get(key, key): text_of(value) for key, value in members.items()}
            words.append(f"--assets-link {_double(json.dumps(given))}")
        message = (
            "the program release-cli makes the release, which has to be there, with the variables of GitLab"
        )
        self.found.differs("release", message, self.place("release"))
        return f"{' '.join(words)}\n"

    def _image(self, node: Node | None) -> tuple[str, list[str]]:
        if node is None or is_nothing(node):
            return "", []
        name = text_of(node) or text_of(node.get("name"))
        entry = self.reader.texts(node.get("entrypoint"), "`entrypoint`") if node.kind == MAPPING else []
        return self.pipeline.expanded(name, self.own), [each for each in entry if each]

    def _container(self, step: DraftStep) -> None:
        image, _entry = self._image(self.members.get("image"))
        services = self.reader.items(self.members.get("services"), "`services`")
        if services:
            names = ", ".join(self._image(each)[0] for each in services)
            message = f"the services {names} have to run: write each as a step with `service: true` and `container:`"
            step.notes.append(self.found.todo("services", message, self.place("services"), step.id))
        if not image:
            return
        step.keys["container"] = {"image": image, "user": "0:0"}
        step.keys["shell"] = "sh -e"
        message = (
            "scripts in images run by `sh -e`, or by bash if they need it; GitLab takes bash where it is"
        )
        self.found.differs("image", message, self.place("image"))

    def _told(self, step: DraftStep) -> None:
        """Report keys that a plan does not have."""
        for key, message in _TOLD.items():
            if key in self.members:
                self.found.differs(key, message, self.place(key))
        if self.name == "pages":
            self.found.differs("pages", "no pages are published", self.node)
        if "environment" in self.members:
            node = self.members["environment"]
            self.environment = text_of(node) or (text_of(node.get("name")) if node.kind == MAPPING else "")
            message = f"the environment {self.environment} of {self.name} is a question before it"
            self.found.differs("environment", message, self.place("environment"))
        if "id_tokens" in self.members:
            raise UntranslatableError("id_tokens", "GitLab's identity tokens are not there")
        if "cache" in self.members:
            message = "nothing is deleted between runs here, so no cache is kept"
            self.found.differs("cache", message, self.place("cache"))
        group = text_of(self.members.get("resource_group"))
        if group:
            step.keys["lock"] = slug(group) or "group"

    def _result(self, step: DraftStep) -> None:
        """Say what the step makes, how often it is tried, and what its failure means."""
        artifacts = self.reader.mapping(self.members.get("artifacts"), "`artifacts`")
        paths = [self.pipeline.expanded(path, self.own).removeprefix("./").rstrip("/")
                 for path in self.reader.texts(artifacts.get("paths"), "`paths`")]  # fmt: skip
        fit = [path for path in dict.fromkeys(paths) if _is_local(path)]
        if artifacts:
            message = "artifacts are not uploaded: they stay in the workspace, and `produces` records them"
            self.found.differs("artifacts", message, self.place("artifacts"))
        if fit and self.members.get("parallel") is None and self.plan.claim(step.id, fit):
            step.keys["produces"] = [{"path": fit, "when": "present"}]
        self._retry(step)
        span = text_of(self.members.get("timeout"))
        if span:
            step.keys["timeout"] = f"{_seconds(span)}s"
        allowed = self.members.get("allow_failure")
        if truth_of(allowed):
            step.keys["on_failure"] = "continue"
        self._parallel(step)

    def reports(self) -> list[str]:
        """Return the files with variables that later jobs get."""
        artifacts = self.reader.mapping(self.members.get("artifacts"), "`artifacts`")
        reports = self.reader.mapping(artifacts.get("reports"), "`reports`")
        return self.reader.texts(reports.get("dotenv"), "`dotenv`")

    def _retry(self, step: DraftStep) -> None:
        node = self.members.get("retry")
        if node is None:
            return
        most = text_of(node) if node.kind == SCALAR else text_of(node.get("max"))
        if most.isdecimal() and int(most):
            step.keys["retries"] = {"max": int(most), "backoff": {"initial": "0s"}}
        if node.kind == MAPPING and node.get("when") is not None:
            message = "every failure is tried again, whatever `retry: when` says"
            self.found.differs("retry", message, self.place("retry"))

    def _parallel(self, step: DraftStep) -> None:
        node = self.members.get("parallel")
        if node is None:
            return
        if node.kind == SCALAR:
            count = int(text_of(node)) if text_of(node).isdecimal() else 0
            if not 0 < count <= 200:
                raise UntranslatableError("parallel", "the number of instances")
            rows: list[dict[str, Any]] = [{"CI_NODE_INDEX": str(at)} for at in range(1, count + 1)]
            step.keys.setdefault("env", {})["CI_NODE_TOTAL"] = str(count)
        else:
            rows = []
            for item in self.reader.items(node.get("matrix"), "`matrix`"):
                made: list[dict[str, Any]] = [{}]
                for name, values in self.reader.mapping(item, "an entry of `matrix`").items():
                    texts = self.reader.texts(values, name)
                    self.found.spend(len(made) * len(texts) * 10, values)
                    made = [{**row, name: text} for row in made for text in texts]
                rows += made
        names = list(dict.fromkeys(name for row in rows for name in row))
        if not rows or len(rows) > 200 or any(set(row) != set(names) for row in rows):
            raise UntranslatableError(
                "parallel", "a matrix whose entries have different names, or too many instances"
            )
        if any("$" in text for row in rows for text in row.values()):
            raise UntranslatableError("parallel", "a matrix with variables in its values")
        step.keys["matrix"] = {"include": rows}
        env = step.keys.setdefault("env", {})
        env |= {name: f"${{{{ matrix.{name} }}}}" for name in names}


class Edges:
    """Gives the steps their edges and conditions."""

    def __init__(
        self, pipeline: Pipeline, jobs: Mapping[str, Mapping[str, Node]], made: Mapping[str, list[DraftStep]]
    ) -> None:
        self.pipeline = pipeline
        self.found, self.reader, self.plan = pipeline.found, pipeline.reader, pipeline.plan
        self.jobs = jobs
        self.made = made
        self.blocking: set[str] = set()  # jobs that wait for a person, and hold what comes behind them
        self.doubtful: set[str] = set()  # jobs that a condition may leave out

    def link(self) -> None:
        """Link all jobs."""
        for name, job in self.jobs.items():
            for step in self.made[name]:
                try:
                    self._condition(name, job, step)
                except UntranslatableError as why:
                    step.condition = ""
                    place = step.node or self.pipeline.root
                    note = self.pipeline.origin[name].refuse(
                        why.code, f"{why.message} (job {name})", place, step.id
                    )
                    step.make_abstract(note)
        for name, job in self.jobs.items():
            when = self._when(job)
            before = self._before(name, job, is_waiting=when in ("always", "on_failure"))
            self._hand_on(name, before)
            for step in self.made[name]:
                for other in before:
                    for each in self.made[other]:
                        kind = (
                            "done"
                            if when in ("always", "on_failure")
                            else "completed"
                            if other in self.blocking
                            else "ok"
                        )
                        step.wait(each.id, kind)
                if when == "on_failure":
                    failed = " or ".join(
                        f"{step_path(each.id, 'status')} == 'failed'"
                        for other in before
                        for each in self.made[other]
                        if each.keys.get("on_failure") != "continue"
                    )
                    step.demand(failed or "false")

    def _hand_on(self, name: str, before: list[str]) -> None:
        """Let the script of a job read the variables that those before it have written."""
        job = self.jobs[name]
        sources = [other for other in before if other in self.pipeline.reports]
        if job.get("needs") is None:
            stages = self.pipeline.stages
            own = stages.index(self.pipeline.stage(job)) if self.pipeline.stage(job) in stages else 0
            earlier = set(stages[:own])
            sources = [
                other for other in self.pipeline.reports if self.pipeline.stage(self.jobs[other]) in earlier
            ]
        wanted = job.get("dependencies")
        if wanted is not None:
            names = self.reader.texts(wanted, "`dependencies`")
            sources = [other for other in sources if other in names]
        for node in self.reader.items(job.get("needs"), "`needs`"):
            if node.kind == MAPPING and truth_of(node.get("artifacts")) is False:
                sources = [other for other in sources if other != text_of(node.get("job"))]
        files = [file for other in sources for file in self.pipeline.reports[other]]
        for step in self.made[name] if files else ():
            if "run" in step.keys:
                step.keys["run"] = "".join(_READ_FILE.format(file) for file in files) + str(step.keys["run"])

    def _when(self, job: Mapping[str, Node]) -> str:
        return text_of(job.get("when")) or "on_success"

    def _before(self, name: str, job: Mapping[str, Node], *, is_waiting: bool) -> list[str]:
        """Return the jobs for which one waits: those of the stage before; of all stages before with `is_waiting`."""
        stages = self.pipeline.stages
        own = self.pipeline.stage(job)
        if own not in stages:
            self.pipeline.origin[name].refuse(
                "shape", f'{name}: there is no stage "{own}"', self.pipeline.jobs[name]
            )
            return []
        if job.get("needs") is not None:
            found = []
            for node in self.reader.items(job["needs"], "`needs`"):
                other = text_of(node) if node.kind == SCALAR else text_of(node.get("job"))
                other = other if other in self.jobs else _INSTANCE.sub("", other)
                if other in self.jobs and other != name:
                    found.append(other)
                elif node.kind == SCALAR or not truth_of(node.get("optional")):
                    self.pipeline.origin[name].refuse(
                        "needs", f"{name} needs `{other}`, which is no job of this file", node
                    )
            return found
        found = []
        for stage in reversed(stages[: stages.index(own)]):
            here = [other for other, each in self.jobs.items() if self.pipeline.stage(each) == stage]
            found += here
            # One that surely runs, and waits for all stages before, stands for these; one with `needs` does not wait.
            if not is_waiting and any(
                other not in self.doubtful
                and self._when(self.jobs[other]) == "on_success"
                and self.jobs[other].get("needs") is None
                for other in here
            ):
                break
        return found

    def _manual(self, name: str, step: DraftStep, place: Node) -> str:
        param = f"run_{re.sub(r'[^A-Za-z0-9_]', '_', step.id)}"
        self.plan.params.setdefault(param, {"type": "boolean", "default": False})
        message = f"the manual job {name} runs only with `--param {param}=true`"
        self.found.differs("manual", message, place)
        return f"params.{param}"

    def _condition(self, name: str, job: Mapping[str, Node], step: DraftStep) -> None:
        node = self.pipeline.jobs[name]
        known = {
            **self.pipeline.known,
            **dict.fromkeys(self.reader.mapping(job.get("variables"), "`variables`"), ""),
        }
        rules = job.get("rules")
        if rules is not None and not is_nothing(rules):
            self._rules(name, rules, known, step)
        else:
            wanted = self._refs(job.get("only"), known, step)
            if wanted:
                step.demand(wanted)
            unwanted = self._refs(job.get("except"), known, step)
            if unwanted:
                step.demand(f"not ({unwanted})")
            when = self._when(job)
            if when == "manual":
                step.demand(self._manual(name, step, node))
                if job.get("allow_failure") is not None and not truth_of(job.get("allow_failure")):
                    self.blocking.add(name)
                elif job.get("allow_failure") is None:
                    step.keys["on_failure"] = "continue"
            elif when == "never":
                step.demand("false")
        if step.condition:
            self.doubtful.add(name)

    def _rules(self, name: str, rules: Node, known: Mapping[str, str], step: DraftStep) -> None:
        text = "false"
        items = _flat(rules)
        tolerant = []
        values = Values(
            self.pipeline, step, [rule.get("variables") for rule in items if rule.kind == MAPPING]
        )
        for rule in reversed(items):
            result, asked, is_tolerated = self._rule(name, rule, known, step)
            tolerant += [is_tolerated] if result != "false" else []
            text = _chosen(asked, result, text)
            values.choose(asked, self.reader.mapping(rule.get("variables"), "`variables`"))
        values.finish()
        if any(tolerant):
            step.keys["on_failure"] = "continue"
            if not all(tolerant):
                message = f"a failure of {name} never counts; some of its rules say so"
                self.found.differs("allow-failure", message, rules)
        step.demand(text)

    def _rule(
        self, name: str, rule: Node, known: Mapping[str, str], step: DraftStep
    ) -> tuple[str, str, bool]:
        """Return what a rule says, under which condition, and whether a failure is tolerated."""
        members = self.reader.mapping(rule, "a rule")
        for key in members:
            if key not in ("if", "when", "changes", "exists", "allow_failure", "interruptible", "variables"):
                raise UntranslatableError("rules", f"a rule with `{key}`")
        when = text_of(members.get("when")) or "on_success"
        if when not in ("on_success", "never", "manual", "always"):
            raise UntranslatableError("rules", f"a rule with `when: {when}`")
        result = "true" if when in ("on_success", "always") else "false"
        if when == "manual":
            result = self._manual(name, step, rule)
            if not truth_of(members.get("allow_failure")):
                self.blocking.add(name)
        if when == "always":
            self.found.differs("when", "`when: always` of a rule does not start a job after a failure", rule)
        asked = condition_of(text_of(members["if"]), known, self.pipeline.patterns) if "if" in members else ""
        tests = [asked] if asked else []
        for key, read in (("changes", self.pipeline.patterns.changed), ("exists", exists)):
            if key not in members:
                continue
            node = members[key]
            paths = node.get("paths") if node.kind == MAPPING and len(node.value) == 1 else node
            is_list = paths is not None and paths.kind != MAPPING
            texts = self.reader.texts(paths, f"`{key}`") if is_list else []
            found = read([self._path(each) for each in texts])
            if found:
                tests.append(found)
                continue
            message = f"`{key}` of {name} is not read: the rule is taken as if files had changed"
            step.notes.append(self.found.todo("changes", message, rule.key(key), step.id))
        asked = tests[0] if len(tests) == 1 else " and ".join(f"({each})" for each in tests)
        return result, asked, bool(truth_of(members.get("allow_failure")))

    def _path(self, text: str) -> str:
        """Return a path with the variables of the file; "" where only a run knows some."""
        found = self.pipeline.expanded(text)
        return "" if "${{" in found else found

    def _refs(self, node: Node | None, known: Mapping[str, str], step: DraftStep) -> str:
        if node is None or is_nothing(node):
            return ""
        refs, variables, changed = node, None, ""
        if node.kind == MAPPING:
            for key in node.value:
                if key not in ("refs", "variables", "changes"):
                    raise UntranslatableError("only", f"`only` with `{key}`")
            if (changes := node.get("changes")) is not None:
                paths = [self._path(each) for each in self.reader.texts(changes, "`changes`")]
                changed = self.pipeline.patterns.changed(paths)
                if not changed:
                    message = "`changes` is not read: it is taken as if files had changed"
                    step.notes.append(self.found.todo("changes", message, node, step.id))
            refs, variables = node.value.get("refs"), node.value.get("variables")
        parts = [changed] if changed else []
        for each, read in ((refs, ref_of), (variables, condition_of)):
            tests = (
                [read(text, known, self.pipeline.patterns) for text in self.reader.texts(each, "`only`")]
                if each is not None and each.kind != MAPPING
                else []
            )
            if tests:
                parts.append(" or ".join(tests) if len(tests) == 1 else f"({' or '.join(tests)})")
        return " and ".join(parts)


class Values:
    """Variables that the rules of a job set: each gets the value of the rule that holds."""

    def __init__(self, pipeline: Pipeline, step: DraftStep, given: list[Node | None]) -> None:
        self.pipeline = pipeline
        self.step = step
        names = dict.fromkeys(
            name for node in given if node is not None and node.kind == MAPPING for name in node.value
        )
        self.usual = {name: self._usual(name) for name in names}
        self.chosen = dict(self.usual)

    def _usual(self, name: str) -> str:
        """Return the expression for a variable that no rule sets; raises UntranslatableError."""
        text = self.step.keys.get("env", {}).get(name, self.pipeline.plan.keys.get("env", {}).get(name))
        if text is None:
            return f"default(env.{name}, '')"
        return _expression(str(text))

    def choose(self, asked: str, given: Mapping[str, Node]) -> None:
        """Put a rule before those that come after it."""
        for name, usual in self.usual.items():
            value = usual
            if name in given:
                value = _expression(self.pipeline.expanded(text_of(given[name])))
            self.chosen[name] = f"(({value}) if {asked} else {self.chosen[name]})" if asked else value

    def finish(self) -> None:
        """Give the step its variables."""
        for name, value in self.chosen.items():
            if not _NAME.match(name):
                raise UntranslatableError("env", f"`{name}` cannot be the name of a variable here")
            self.step.keys["env"] = {**self.step.keys.get("env", {}), name: f"${{{{ {value} }}}}"}


def _expression(template: str) -> str:
    """Return a template as one expression."""
    parts = re.split(r"(?<!\$)\$\{\{ (.*?) \}\}", template)
    shown = [part if at % 2 else quoted(part.replace("$${{", "${{")) for at, part in enumerate(parts) if part]
    return " ~ ".join(shown) if len(shown) > 1 else (shown or ["''"])[0]


def _matching(folder: str, pattern: str) -> list[str]:
    """Return the files that a pattern with `*` names, at most so many that too many can be told."""
    found = []
    rule = re.escape(pattern).replace(r"\*\*", "\0").replace(r"\*", "[^/]*").replace("\0", ".*")
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(each for each in folders if each not in (".git", "node_modules"))
        for file in sorted(files):
            path = os.path.relpath(os.path.join(place, file), folder)
            if re.fullmatch(rule, path):
                found.append(os.path.join(folder, path))
        if len(found) > MAX_FILES:
            break
    return found


def _seconds(span: str) -> int:
    """Return the seconds of a time as `1h 30m`; raises UntranslatableError."""
    seconds = sum(int(number) * _UNITS[unit] for number, unit in _SPAN.findall(span))
    if not seconds:
        raise UntranslatableError("timeout", f"the time `{span}`")
    return seconds


def _double(text: str) -> str:
    """Return a word in double quotes in which the shell reads variables."""
    return '"' + literal_text(re.sub(r'(["\\`])', r"\\\1", text)) + '"'


def _is_local(path: str) -> bool:
    """Say whether a plan can name the files of a path."""
    return (
        bool(path)
        and not path.startswith(("/", "~", "!"))
        and "${{" not in path
        and ".." not in path.split("/")
    )


def _flat(node: Node) -> list[Node]:
    """Return the items of a list and of the lists in it."""
    return [each for item in node.value for each in _flat(item)] if node.kind == SEQUENCE else [node]


def _chosen(asked: str, yes: str, no: str) -> str:
    """Return `yes` where a condition holds, otherwise `no`, in the shortest words."""
    if not asked:
        return yes
    if yes == "true":
        return asked if no == "false" else "true" if no == "true" else f"{asked} or ({no})"
    if yes == "false":
        return "false" if no == "false" else f"not ({asked})" if no == "true" else f"not ({asked}) and ({no})"
    return f"({asked}) and {yes}" if no == "false" else f"({yes}) if ({asked}) else ({no})"


def convert_pipeline(root: Node, found: Findings, jobs: Collection[str] = ()) -> DraftPlan:
    """Return the plan that a GitLab CI file becomes; `jobs` are the wanted ones with what they need."""
    try:
        return Pipeline(root, found).convert(jobs)
    except RecursionError:
        found.refuse("too-large", "the file is nested too deeply", root)
        return DraftPlan()
