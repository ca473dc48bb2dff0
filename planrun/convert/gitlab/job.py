"""One job of a GitLab CI file as a step, without its edges."""

from __future__ import annotations

import re

from planrun.convert.draft import DraftStep, literal_text, quoted, slug
from planrun.convert.reader import Reader, UntranslatableError, is_nothing, text_of, truth_of
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from planrun.convert.gitlab.pipeline import Pipeline
    from planrun.convert.reader import Findings

_KNOWN = frozenset((
    "after_script", "allow_failure", "artifacts", "before_script", "cache", "coverage", "dependencies", "environment",
    "except", "extends", "image", "interruptible", "needs", "only", "parallel", "resource_group", "retry",
    "rules", "script", "services", "stage", "tags", "timeout", "variables", "when", "pages", "publish", "start_in",
))  # fmt: skip
_OTHER_SYSTEM = re.compile(r"(?i)windows|macos|mac|osx|darwin|ios|powershell|freebsd")
_UNITS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}
_SPAN = re.compile(r"(\d+)\s*(w|d|h|m|s)[a-z]*")
_BASH = re.compile(r"\[\[|\bpipefail\b|<<<|\bsource\b|\bdeclare\b|\(\(|<\(|=\(")
NAME = re.compile(r"[A-Za-z_]\w{0,99}\Z")
_READ = re.compile(r"\$\$|\$\{(\w+)\}|\$(\w+)")
_IN_SCRIPT = re.compile(r"\$\{?((?:CI|GITLAB)(?:_[A-Z0-9_]+)?)\b")
_INSTANCE = re.compile(r" \d+/\d+\Z|: \[.*\]\Z")  # of a job that runs several times, in its name
# Variables of GitLab that hold credentials, or the names that go with them.
_CREDENTIAL = re.compile(
    r"\$\{?(CI_JOB_TOKEN|CI_REGISTRY_PASSWORD|CI_REGISTRY_USER|CI_DEPLOY_PASSWORD|CI_DEPLOY_USER)\b"
)
MAX_NESTING = 20  # of variables
MAX_INSTANCES = 200  # the limit of GitLab
_TOLD = {
    "tags": "`tags` choose no runner: the plan runs where planrun is started",
    "coverage": "coverage is not read from the output",
    "interruptible": "a run is not cancelled by a newer one",
    "pages": "no pages are published",
    "publish": "no pages are published",
    "cache": "nothing is deleted between runs here, so no cache is kept",
    "artifacts": "artifacts are not uploaded: they stay in the workspace, and `produces` records them",
    "after_script": "`after_script` runs when the script of its step ends, and sees its variables",
    "image": "scripts in images run by `sh -e`, or by bash if they need it; GitLab takes bash where it is, and a "
    "failure inside of a pipe counts there: with `sh` it does where this shell knows `pipefail`",
}
_PIPEFAIL = "if set -o | grep pipefail > /dev/null; then set -o pipefail; fi\n"  # as GitLab's runner begins
RUNNER = "runner"  # the step that finds out what GitLab's runner sets
_GIT = """\
if [ -z "${GITLAB_CI-}${CI_COMMIT_REF_NAME-}${CI_COMMIT_TAG-}" ]; then  # outside of GitLab
  CI_COMMIT_BRANCH=$(git symbolic-ref -q --short HEAD 2>/dev/null || true)
  [ -n "$CI_COMMIT_BRANCH" ] || CI_COMMIT_TAG=$(git describe --tags --exact-match 2>/dev/null || true)
  CI_COMMIT_REF_NAME=${CI_COMMIT_BRANCH:-${CI_COMMIT_TAG-}}
fi
"""
_SHA = "CI_COMMIT_SHA=${CI_COMMIT_SHA:-$(git rev-parse HEAD)}\n"
_SLUG = """\
CI_COMMIT_REF_SLUG=$(printf %s "${CI_COMMIT_REF_NAME-}" | tr A-Z a-z | tr -c a-z0-9 - | cut -c1-63)
CI_COMMIT_REF_SLUG=$(printf %s "$CI_COMMIT_REF_SLUG" | sed 's/^-*//; s/-*$//')
"""


OF_RUNNER: Mapping[str, str] = {
    "CI_COMMIT_SHA": _SHA,
    "CI_COMMIT_SHORT_SHA": f"{_SHA}CI_COMMIT_SHORT_SHA=${{CI_COMMIT_SHA:0:8}}\n",
    "CI_COMMIT_BRANCH": _GIT,
    "CI_COMMIT_TAG": _GIT,
    "CI_COMMIT_REF_NAME": _GIT,
    "CI_COMMIT_REF_SLUG": _GIT + _SLUG,
    "CI_PROJECT_DIR": "CI_PROJECT_DIR=$PWD\n",
}


def runner_step(names: Collection[str]) -> DraftStep:
    """Return the step that finds out what GitLab's runner sets, from the environment or by git."""
    texts = "".join(OF_RUNNER[name] for name in names)
    parts = [_GIT, _SHA, *(OF_RUNNER[name].removeprefix(_GIT).removeprefix(_SHA) for name in names)]
    lines = [part for part in dict.fromkeys(parts) if part and part in texts]
    lines += [f'echo "{name}=${{{name}-}}" >> "$PLANRUN_OUTPUT"\n' for name in names]
    return DraftStep(
        RUNNER,
        title="Variables of GitLab's runner",
        run="".join(lines),
        outputs=dict.fromkeys(names, "string"),
    )


class Scope:
    """The variables that a job sees: texts of the file, and values that are templates already."""

    def __init__(
        self, found: Findings, place: Node, texts: Mapping[str, str], given: Mapping[str, str] | None = None
    ) -> None:
        self.found, self.place, self.texts = found, place, texts
        self.given = given or {}  # what wins over the texts
        self.job: dict[str, str] = {}  # what the runner sets for this job
        # Variables that have a credential of GitLab in them, directly or by another one.
        self.secret = {name for name, text in texts.items() if _CREDENTIAL.search(text)}
        while more := {
            name for name, text in texts.items()
            if name not in self.secret and any({*names} & self.secret for names in _READ.findall(text))
        }:  # fmt: skip
            self.secret |= more

    def values(self) -> dict[str, str]:
        """Return all variables of the file that have no credential in them, as templates."""
        return {
            name: self.expand(text, (name,))
            for name, text in self.texts.items()
            if NAME.match(name) and name not in self.secret
        }

    def expand(self, text: str, within: tuple[str, ...] = ()) -> str:
        """Return a text of the file as a template; raises UntranslatableError."""
        self.found.spend(len(text) + 10, self.place)
        if len(within) > MAX_NESTING:
            raise UntranslatableError(
                "env", f"`{within[0]}` is made of more than {MAX_NESTING} levels of variables"
            )
        pieces = text.split("${{")
        return "$${{".join(
            _READ.sub(lambda match: self.template(match[1] or match[2] or "", within), piece)
            for piece in pieces
        )

    def template(self, name: str, within: tuple[str, ...] = ()) -> str:
        """Return the value of a variable as a template."""
        if not name:
            return "$"
        if name in self.given:
            return self.given[name]
        if name in self.secret or _CREDENTIAL.match(f"${name}"):  # an empty one would pass unseen
            raise UntranslatableError("secret", f"`{name}` is a credential of GitLab, or made of one")
        if name in self.texts and name not in within:
            return self.expand(self.texts[name], (*within, name))
        if name in self.job:
            return self.job[name]
        if name in OF_RUNNER:
            return f"${{{{ steps.{RUNNER}.outputs.{name} }}}}"
        other = "run.event" if name == "CI_PIPELINE_SOURCE" else "''"
        return "true" if name in ("CI", "GITLAB_CI") else f"${{{{ default(env.{name}, {other}) }}}}"

    def expression(self, name: str) -> str:
        """Return the expression that reads a variable, for a condition; raises UntranslatableError."""
        if name in self.given:
            raise UntranslatableError("condition", f"a condition that reads `${name}`")
        return expression_of(self.template(name))


def expression_of(template: str) -> str:
    """Return a template as one expression."""
    parts = re.split(r"(?<!\$)\$\{\{ (.*?) \}\}", template)
    shown = [part if at % 2 else quoted(part.replace("$${{", "${{")) for at, part in enumerate(parts) if part]
    return " ~ ".join(shown) if len(shown) > 1 else (shown or ["''"])[0]


def variable_text(node: Node) -> str:
    """Return the text of a variable; `expand: false` keeps its dollars."""
    if node.kind != MAPPING:
        return text_of(node)
    text = text_of(node.get("value"))
    return text.replace("$", "$$") if truth_of(node.get("expand")) is False else text


def plain(node: Node) -> object:
    """Return a value as plain data."""
    if node.kind == MAPPING:
        return {key: plain(each) for key, each in node.value.items()}
    return [plain(each) for each in node.value] if node.kind == SEQUENCE else node.value


class Job:
    """One job: `members` are its keys with those that it extends, `unfit` why it cannot be read."""

    def __init__(self, pipeline: Pipeline, name: str, place: Node, found: Findings) -> None:
        self.pipeline, self.name, self.origin, self.found = pipeline, name, place, found
        self.reader = Reader(found)
        self.members: dict[str, Node] = {}
        self.unfit: UntranslatableError | None = None
        self.steps: list[DraftStep] = []  # the last one is that of the script

    @property
    def stage(self) -> str:
        """The stage of the job."""
        return text_of(self.members.get("stage")) or "test"

    @property
    def step(self) -> DraftStep:
        """The step of the script."""
        return self.steps[-1]

    def place(self, key: str) -> Node:
        """Return where a key of the job stands."""
        node = self.pipeline.jobs[self.name]
        return node.key(key) if key in node.value else self.origin

    def needs(self) -> list[tuple[str, bool]] | None:
        """Return the jobs under `needs`, and whether each may be missing; None without `needs`."""
        node = self.members.get("needs")
        if node is None:
            return None
        found = []
        for each in self.reader.items(node, "`needs`"):
            name = text_of(each) if each.kind == SCALAR else text_of(each.get("job"))
            name = name if name in self.pipeline.jobs else _INSTANCE.sub("", name)
            found.append((name, each.kind == MAPPING and truth_of(each.get("optional")) is True))
        return found

    def make(self) -> None:
        """Make the steps."""
        plan = self.pipeline.plan
        step = DraftStep(plan.name(slug(self.name) or self.name))
        step.node = self.origin
        if step.id != self.name:
            step.keys["title"] = " ".join(self.name.split())[:200]
        self.steps = [step]
        try:
            if self.unfit is not None:
                raise self.unfit
            self._fill(step)
            for node in self.reader.items(self.members.get("services"), "`services`"):
                step.wait(self._service(node).id)
        except UntranslatableError as why:
            self.leave(why)

    def _service(self, node: Node) -> DraftStep:
        """Return the step of a service, which all jobs with the same one share."""
        image = text_of(node) or text_of(node.get("name") if node.kind == MAPPING else None)
        shared = self.pipeline.services
        if image not in shared:
            name = slug(re.split("[:@]", image.rpartition("/")[2])[0]) or "service"
            message = f"the service {image}: write what starts it, with `service: true`; all jobs that need it share it"
            place = self.place("services")
            shared[image] = self.pipeline.leave(name, "services", message, place, self.found)
            shared[image].keys["title"] = f"The service {literal_text(image)}"[:200]
            shared[image].keys["description"] = literal_text(f"services: {plain(node)}")
        return shared[image]

    def leave(self, why: UntranslatableError) -> None:
        """Leave the job to a person or a model: a step without an action."""
        step = self.step
        self.pipeline.plan.give_back(step.id)
        left = self.pipeline.leave(
            step.id, why.code, f"{why.message} (job {self.name})", self.origin, self.found
        )
        step.keys, step.notes, step.condition = left.keys, left.notes, ""
        step.keys["title"] = " ".join(self.name.split())[:200]
        step.edges = {}
        for each in self.steps[:-1]:
            self.pipeline.plan.give_back(each.id)
        self.steps = [step]

    def _fill(self, step: DraftStep) -> None:  # noqa: C901
        members = self.members
        if "$[[" in str(members):
            raise UntranslatableError("inputs", "it has inputs of `spec`")
        for key in members:
            if key not in _KNOWN:
                raise UntranslatableError(key, f"`{key}` is not converted")
        if tags := [
            each for each in self.reader.texts(members.get("tags"), "`tags`") if _OTHER_SYSTEM.search(each)
        ]:
            raise UntranslatableError("tags", f"a job for another system: {tags[0]}")
        for key, message in _TOLD.items():
            if key in members or key == self.name:
                self.found.differs(key.replace("_", "-"), message, self.place(key))
        own = {
            name: variable_text(node)
            for name, node in self.reader.mapping(members.get("variables"), "`variables`").items()
        }
        rows = self._rows()
        texts = {**self.pipeline.variables, **own}
        given = {name: f"${{{{ matrix.{name} }}}}" for row in rows[:1] for name in row}
        self.scope = scope = Scope(self.found, self.origin, texts, given)
        scope.job = {"CI_JOB_NAME": literal_text(self.name), "CI_JOB_STAGE": literal_text(self.stage)}
        for name in texts:
            if not NAME.match(name):
                raise UntranslatableError("env", f"`{name}` cannot be the name of a variable here")
        usual = self.pipeline.plan.keys["env"]
        env = {name: text for name, text in scope.values().items() if usual.get(name) != text or name in own}
        env |= given
        if members.get("parallel") is not None and members["parallel"].kind == SCALAR:
            env["CI_NODE_TOTAL"] = str(len(rows))
        if rows:
            step.keys["matrix"] = {"include": rows}
        script = self._script()
        if secret := [name for name in sorted(scope.secret) if re.search(rf"\$\{{?{name}\b", script)]:
            raise UntranslatableError("secret", f"`{secret[0]}` is a credential of GitLab, or made of one")
        told = dict.fromkeys(_IN_SCRIPT.findall(script))
        for name in told:
            if name in texts or name in env or name == "CI" or _CREDENTIAL.match(f"${name}"):
                continue
            if name in (*OF_RUNNER, *scope.job, "GITLAB_CI", "CI_PIPELINE_SOURCE"):
                env[name] = scope.template(name)
            elif name not in ("CI_NODE_INDEX", "CI_NODE_TOTAL"):
                message = (
                    f"`${name}` is known to GitLab's runner alone: it is that of the environment, or empty"
                )
                commands = self._commands("before_script", "script", "after_script")
                places = [each for each in commands if name in text_of(each)]
                self.found.differs("variable", message, [*places, self.origin][0])
        step.keys |= {"run": script, "env": env}
        self._container(step)
        if step.keys.get("shell") == "sh -e" and _BASH.search(script):
            step.keys["shell"] = "bash -eo pipefail"
        elif step.keys.get("shell") == "sh -e" and "|" in script:
            step.keys["run"] = _PIPEFAIL + step.keys["run"]
        for secret in dict.fromkeys(_CREDENTIAL.findall(step.keys["run"])):
            # Without it the run does not begin: an empty one would pass unseen.
            self.pipeline.plan.secret(secret)
            step.keys.setdefault("secrets", []).append(secret)
        self._result(step)

    def _commands(self, *keys: str) -> list[Node]:
        """Return the commands under some keys; lists in lists are taken apart, as YAML anchors make them."""
        found: list[Node] = []
        waiting = [self.members[key] for key in keys if not is_nothing(self.members.get(key))]
        while waiting:
            each = waiting.pop(0)
            if each.kind == MAPPING:
                raise UntranslatableError("shape", f"`{keys[0]}` has something else than commands")
            waiting = [*each.value, *waiting] if each.kind == SEQUENCE else waiting
            found += [each] if each.kind == SCALAR else []
        return found

    def _script(self) -> str:
        texts = {
            key: [literal_text(text_of(each).rstrip("\n")) for each in self._commands(key)]
            for key in ("before_script", "script", "after_script")
        }
        lines = [*texts["before_script"], *texts["script"]]
        if not texts["script"]:
            raise UntranslatableError("shape", "the job has no script")
        if texts["after_script"]:
            body = "\n".join(texts["after_script"])
            lines.insert(0, f"after() (\nset +e\n{body}\n)\ntrap 'code=$?; after || true; exit $code' EXIT")
        return "\n".join(lines) + "\n"

    def _container(self, step: DraftStep) -> None:
        node = self.members.get("image")
        if node is None or is_nothing(node):
            return
        image = text_of(node) or (text_of(node.get("name")) if node.kind == MAPPING else "")
        if not image:
            raise UntranslatableError("image", "an image without a name")
        step.keys |= {"container": {"image": self.scope.expand(image), "user": "0:0"}, "shell": "sh -e"}

    def _result(self, step: DraftStep) -> None:
        """Say what the step makes, how often it is tried, and what its failure means."""
        artifacts = self.reader.mapping(self.members.get("artifacts"), "`artifacts`")
        reports = [
            name for name in self.reader.mapping(artifacts.get("reports"), "`reports`") if name != "dotenv"
        ]
        if reports:
            message = f"GitLab shows the reports of {', '.join(reports)}; nothing reads them here"
            self.found.differs("reports", message, self.place("artifacts"))
        paths = [self.scope.expand(path).removeprefix("./").rstrip("/")
                 for path in self.reader.texts(artifacts.get("paths"), "`paths`")]  # fmt: skip
        fit = [
            path for path in dict.fromkeys(paths)
            if path and not re.match(r"[/~!]", path) and "${{" not in path and ".." not in path.split("/")
        ]  # fmt: skip
        if fit and "parallel" not in self.members and self.pipeline.plan.claim(step.id, fit):
            step.keys["produces"] = [{"path": fit, "when": "present"}]
        retry = self.members.get("retry")
        if retry is not None:
            most = text_of(retry) or (text_of(retry.get("max")) if retry.kind == MAPPING else "")
            if most.isdecimal() and int(most):
                step.keys["retries"] = {"max": int(most), "backoff": {"initial": "0s"}}
            if retry.kind == MAPPING and set(retry.value) - {"max"}:
                message = "every failure is tried again, whatever `retry` says of its reasons"
                self.found.differs("retry", message, self.place("retry"))
        if span := text_of(self.members.get("timeout")):
            seconds = sum(int(number) * _UNITS[unit] for number, unit in _SPAN.findall(span))
            if not seconds:
                raise UntranslatableError("timeout", f"the time `{span}`")
            step.keys["timeout"] = f"{seconds}s"
        if group := text_of(self.members.get("resource_group")):
            step.keys["lock"] = slug(group) or "group"
        allowed = self.members.get("allow_failure")
        if allowed is not None and allowed.kind == MAPPING:
            raise UntranslatableError("allow-failure", "failures that count by their exit codes")
        if truth_of(allowed):
            step.keys["on_failure"] = "continue"

    def question(self) -> str:
        """Return the question of a job with an environment, "" for others; raises UntranslatableError."""
        node = self.members.get("environment")
        name = text_of(node) or (
            text_of(node.get("name")) if node is not None and node.kind == MAPPING else ""
        )
        if not name:
            return ""
        scope = Scope(
            self.found, self.origin, self.scope.texts, {each: f"${each}" for each in self.scope.given}
        )
        scope.job = self.scope.job
        message = f"the environment of {self.name} is a question before it"
        self.found.differs("environment", message, self.place("environment"))
        return f"Run {literal_text(self.name)} in the environment {scope.expand(name)}?"

    def _rows(self) -> list[dict[str, str]]:
        """Return the instances of the job; raises UntranslatableError."""
        node = self.members.get("parallel")
        if node is None or is_nothing(node):
            return []
        rows: list[dict[str, str]] = []
        if node.kind == SCALAR:
            count = int(text_of(node)) if re.fullmatch(r"\d{1,3}", text_of(node)) else 0
            rows = [{"CI_NODE_INDEX": str(at)} for at in range(1, count + 1)]
        else:
            for item in self.reader.items(node.get("matrix"), "`matrix`"):
                made: list[dict[str, str]] = [{}]
                for name, values in self.reader.mapping(item, "an entry of `matrix`").items():
                    texts = self.reader.texts(values, name)
                    self.found.spend(len(made) * len(texts) * 40, values)
                    made = [{**row, name: text} for row in made for text in texts]
                rows += made
        if not 0 < len(rows) <= MAX_INSTANCES or any(set(row) != set(rows[0]) for row in rows):
            message = "a matrix whose entries have different names, or no instance, or too many"
            raise UntranslatableError("parallel", message)
        if any("$" in text for row in rows for text in row.values()):
            raise UntranslatableError("parallel", "a matrix with variables in its values")
        return rows
