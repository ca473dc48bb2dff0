"""Files of other tools that are given as plans: recognised by their content, then by their names.

Loaded for a file that is no plan, and by `planrun convert`.
"""

from __future__ import annotations

import re
from shlex import quote

from planrun.model.record import Record
from planrun.plan.problems import Problem
from planrun.plan.yaml.document import read_tree
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node
from planrun.plan.yaml.text import decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


class Foreign(Record):
    """What a file is: `name` as people call it, `tool` as its files are called.

    `source`: what `planrun convert --from` calls it, "" without a converter; `instead`: what to do with it then.
    """

    name: str
    tool: str
    source: str = ""
    instead: str = ""

    def command(self, file: str) -> str:
        """Return the command that converts the file."""
        output = "plan.yml" if file.rpartition("/")[2] != "plan.yml" else "converted.yml"
        return f"planrun convert {quote(file)} -o {output}"

    def advice(self, file: str) -> str:
        """Return what to do with the file instead of running it as a plan."""
        if self.source:
            return f"to convert it: {self.command(file)}"
        if self.tool == "planrun":
            return self.instead
        return f"planrun has no converter for it; {self.instead}"


_STEPS = "write the commands of each job as a step; `planrun init` writes a first plan"


def _of(name: str, tool: str, instead: str = _STEPS) -> Foreign:
    return Foreign(name=name, tool=tool, instead=instead)


def _call(command: str) -> str:
    return f"call it from a step, e.g. `run: {command}`"


GITHUB = Foreign(name="a GitHub Actions workflow", tool="GitHub workflows", source="github")
TASKFILE = Foreign(name="a Taskfile", tool="Taskfiles", source="taskfile")
DAGU = Foreign(name="a Dagu file", tool="Dagu files", source="dagu")
_ACTION = _of(
    "a GitHub action",
    "GitHub actions by themselves; convert the workflow that uses it",
    "convert the workflow that uses it: planrun convert .github/workflows/ci.yml",
)
_GITLAB = Foreign(name="a GitLab CI file", tool="GitLab CI files", source="gitlab")
_CIRCLECI = _of("a CircleCI config", "CircleCI")
_AZURE = _of("an Azure Pipelines file", "Azure Pipelines")
_DRONE = _of("a Drone pipeline", "Drone")
_WOODPECKER = _of("a Woodpecker workflow", "Woodpecker")
_BITBUCKET = _of("a Bitbucket Pipelines file", "Bitbucket Pipelines")
_BUILDKITE = _of("a Buildkite pipeline", "Buildkite")
_TRAVIS = _of("a Travis CI config", "Travis CI")
_APPVEYOR = _of("an AppVeyor config", "AppVeyor")
_CLOUDBUILD = _of("a Google Cloud Build config", "Google Cloud Build")
_JENKINS = _of("a Jenkinsfile", "Jenkins")
_TEKTON = _of("a Tekton resource", "Tekton")
_ARGO = _of("an Argo workflow", "Argo")
_AIRFLOW = _of("an Airflow DAG", "Airflow", "write each task as a step, with `depends_on`")
_KUBERNETES = _of("a Kubernetes manifest", "Kubernetes", _call("kubectl apply -f manifest.yml"))
_COMPOSE = _of(
    "a Compose file", "Docker Compose", "call it from a step, e.g. `run: docker compose up --wait`, or write "
    "services as steps with `service: true`",
)  # fmt: skip
_PRECOMMIT = _of("a pre-commit config", "pre-commit", _call("pre-commit run --all-files"))
_HOOKS = _of("a list of pre-commit hooks", "pre-commit", _call("pre-commit run --all-files"))
_ANSIBLE = _of("an Ansible playbook", "Ansible", _call("ansible-playbook site.yml"))
_MAKE = Foreign(name="a Makefile", tool="Makefiles", source="make")
_JUST = Foreign(name="a justfile", tool="justfiles", source="just")
_TOX = _of("a tox config", "tox", _call("tox run"))
_NOX = _of("a nox file", "nox", _call("nox -s tests"))
_NPM = _of("a package.json", "npm scripts", _call("npm test"))
_PYPROJECT = _of("a pyproject.toml", "pyproject.toml", _call("pytest"))
_DOCKERFILE = _of("a Dockerfile", "Dockerfiles", _call("docker build ."))
_EARTHLY = _of("an Earthfile", "Earthly", _call("earthly +build"))
_CMAKE = _of("a CMake file", "CMake", _call("cmake --build build"))
_GRADLE = _of("a Gradle build", "Gradle", _call("./gradlew build"))
_MAVEN = _of("a Maven build", "Maven", _call("mvn verify"))
_TERRAFORM = _of("a Terraform configuration", "Terraform", _call("terraform plan -input=false"))
_SHELL = _of("a shell script", "shell scripts", _call("./script.sh"))
_PYTHON = _of("a Python program", "Python programs", _call("python3 program.py"))
_POLICY = _of("a policy of planrun", "planrun", "use it with a plan: planrun run plan.yml --policy FILE")
_APPROVAL = _of(
    "an approval of planrun", "planrun", "use it with a plan: planrun run plan.yml --approval FILE"
)

# In small letters.
_NAMES: Mapping[str, Foreign] = {
    "makefile": _MAKE,
    "gnumakefile": _MAKE,
    "justfile": _JUST,
    ".justfile": _JUST,
    "tox.ini": _TOX,
    "tox.toml": _TOX,
    "noxfile.py": _NOX,
    "dodo.py": _of("a doit file", "doit", _call("doit")),
    "jenkinsfile": _JENKINS,
    "earthfile": _EARTHLY,
    "dockerfile": _DOCKERFILE,
    "containerfile": _DOCKERFILE,
    "package.json": _NPM,
    "pyproject.toml": _PYPROJECT,
    "cmakelists.txt": _CMAKE,
    "build.gradle": _GRADLE,
    "build.gradle.kts": _GRADLE,
    "pom.xml": _MAVEN,
    "rakefile": _of("a Rakefile", "Rake", _call("rake test")),
    ".gitlab-ci.yml": _GITLAB,
    "azure-pipelines.yml": _AZURE,
    "bitbucket-pipelines.yml": _BITBUCKET,
    ".travis.yml": _TRAVIS,
    ".drone.yml": _DRONE,
    ".woodpecker.yml": _WOODPECKER,
    "appveyor.yml": _APPVEYOR,
    ".appveyor.yml": _APPVEYOR,
    "cloudbuild.yaml": _CLOUDBUILD,
    "docker-compose.yml": _COMPOSE,
    "docker-compose.yaml": _COMPOSE,
    "compose.yml": _COMPOSE,
    "compose.yaml": _COMPOSE,
    ".pre-commit-config.yaml": _PRECOMMIT,
    ".pre-commit-hooks.yaml": _HOOKS,
    "taskfile.yml": TASKFILE,
    "taskfile.yaml": TASKFILE,
}
_ENDINGS: Mapping[str, Foreign] = {".mk": _MAKE, ".just": _JUST, ".groovy": _JENKINS, ".tf": _TERRAFORM}
# Of files that are no YAML, or YAML by accident; the first that matches wins.
_TEXTS: tuple[tuple[str, Foreign], ...] = (
    (r"^\s*(?:import|from) airflow\b|^\s*from airflow\.", _AIRFLOW),
    (r"^\s*(?:import nox\b|@nox\.session)", _NOX),
    (r"^\[tox\]|^\[testenv", _TOX),
    (r"^\[(?:project|build-system|tool\.[\w.-]+)\]", _PYPROJECT),
    (r"^\s*pipeline\s*\{|^\s*node(?:\s*\([^)]*\))?\s*\{|^\s*@Library\(", _JENKINS),
    (r"\A(?:[ \t]*(?:#.*)?\n)*VERSION [0-9.]+|^FROM \+|^\s+SAVE ARTIFACT ", _EARTHLY),
    (r"\A(?:(?:[ \t]*(?:#.*)?|ARG .*)\n)*FROM [\w./:${}@-]+", _DOCKERFILE),
    (r"^\s*(?i:cmake_minimum_required|add_executable)\s*\(", _CMAKE),
    (r"^(?:resource|data) \"[\w-]+\" \"[\w-]+\" *\{|^(?:terraform|(?:variable|provider) \"[\w-]+\") *\{", _TERRAFORM),
    (r"<project[\s>][^\0]*<modelVersion>", _MAVEN),
    (r"^\s*- (?:ansible\.builtin\.)?(?:import_playbook|hosts):|^- name:[^\n]*\n(?:  [^\n]*\n)*?  hosts:", _ANSIBLE),
    ((r"^-\s+(?:name|become|include_\w+|import_\w+|ansible\.builtin\.\w+):[^\0]*^  (?:when|become|register|notify|"
     r"with_items|tags|loop|ansible\.builtin\.\w+|apt|yum|service|template|copy|file|shell|command):"), _ANSIBLE),
    (r"^-\s+id:[^\n]*\n(?:  [^\n]*\n)*?  entry:", _HOOKS),
    (r"\A#![^\n]*\b(?:ba|da|z|k)?sh\b", _SHELL),
    (r"\A#![^\n]*\bpython|^(?:def \w+\(.*\).*:|from [\w.]+ import |import \w+)[ \t]*$", _PYTHON),
    ((r"^(?:set (?:shell|dotenv-load|export|positional-arguments)\b|export? ?\w+ := |\[(?:private|group|linux)\b|"
     r"@?[\w-]+(?: [\w=*+'\"-]+)*:(?: [\w-]+)*[ ]*\n    ?@?\w+[^\n:]*\n)"), _JUST),
    (r"^(?:\.PHONY|\.DEFAULT_GOAL|include |ifeq|ifdef|define |[\w.-]+ *[:?+]= )", _MAKE),
    (r"^[\w./%$(){}-]+(?: [\w./%$(){}-]+)*\s*::?(?:[^=\n][^\n]*)?\n\t", _MAKE),
)  # fmt: skip
_PLAN = re.compile(r"^(?:version[\"']?:[ \t]*1\b|steps[\"']?:)", re.MULTILINE)
MAX_BYTES = 1_000_000  # of a file of another tool: those that people write are small
MAX_TEXT = 16_000  # characters at its beginning that are searched
_TOP = ('"version" is missing', '"steps" is missing', "expected a mapping with keys such as ")


def recognised(problems: Sequence[Problem], data: bytes, file: str) -> list[Problem]:
    """Return the problems of a plan; of a file of another tool the only one, which says what it is and what to do."""
    doubtful = any(
        problem.file == file
        and (problem.code < "E1" or problem.code == "E116" or problem.message.startswith(_TOP))
        for problem in problems
    )
    foreign = foreign_file(data, file) if doubtful else None
    if foreign is None:
        return list(problems)
    message = f"this looks like {foreign.name}, not like a plan"
    return [Problem(code="E006", message=message, file=file, hint=foreign.advice(file))]


def foreign_file(data: bytes, file: str) -> Foreign | None:
    """Return what a file is that is no plan: by its keys, then by its name, then by its text; None if unknown."""
    text, _problems = decode(data, file) if len(data) <= MAX_BYTES else (None, [])
    if text is None:
        return None
    root, _problems, _complete = read_tree(data, file, "file")
    if root is not None and root.kind == MAPPING:
        if is_plan(root):
            return None
        return foreign_keys(root) or (None if _has_plan_keys(root) else foreign_name(file))
    if len(_PLAN.findall(text[:MAX_TEXT])) > 1:
        return None  # a plan that cannot be read
    return foreign_name(file) or foreign_text(text[:MAX_TEXT])


def is_plan(root: Node) -> bool:
    """Say whether a file is meant as a plan: it has `version: 1`, and steps or a plan that it extends."""
    version = root.get("version")
    is_one = version is not None and version.kind == SCALAR and version.value == "1"
    return is_one and any(root.get(key) is not None for key in ("steps", "extends", "template"))


def _has_plan_keys(root: Node) -> bool:
    steps = root.get("steps")
    return steps is not None and steps.kind == SEQUENCE


def foreign_name(file: str) -> Foreign | None:
    """Return what a file is by its name; None for any other."""
    name = file.rpartition("/")[2].lower()
    if name == "config.yml" and file.endswith(".circleci/config.yml"):
        return _CIRCLECI
    if "/.buildkite/" in f"/{file}":
        return _BUILDKITE
    if "/.github/workflows/" in f"/{file}":
        return GITHUB
    if name.startswith(("makefile.", "dockerfile.", "jenkinsfile.")):
        name = name.partition(".")[0]
    return _NAMES.get(name) or next((tool for end, tool in _ENDINGS.items() if name.endswith(end)), None)


def foreign_text(text: str) -> Foreign | None:
    """Return what a file is that is no mapping of YAML, by its lines; None for any other."""
    return next((tool for form, tool in _TEXTS if re.search(form, text, re.MULTILINE)), None)


def foreign_keys(root: Node) -> Foreign | None:
    """Return what a YAML file is by its keys; None for any other, and for a plan with mistakes."""
    keys = root.value
    return next((found for recognise in _BY_KEYS if (found := recognise(keys)) is not None), None)


def _mappings(node: Node | None) -> list[Node]:
    """Return the mappings among the values of a mapping or a list."""
    if node is None or node.kind == SCALAR:
        return []
    values = node.value.values() if node.kind == MAPPING else node.value
    return [each for each in values if each.kind == MAPPING]


def _some_have(node: Node | None, names: Iterable[str]) -> bool:
    """Say whether a mapping in a mapping or a list has one of these keys."""
    return any(name in each.value for each in _mappings(node) for name in names)


def _text(node: Node | None) -> str:
    return str(node.value) if node is not None and node.kind == SCALAR else ""


def _is_list(node: Node | None) -> bool:
    return node is not None and node.kind == SEQUENCE


def _resource(keys: Mapping[str, Node]) -> Foreign | None:
    api, kind = _text(keys.get("apiVersion")), keys.get("kind")
    if not api or kind is None:
        return None
    return (
        _TEKTON if api.startswith("tekton.dev") else _ARGO if api.startswith("argoproj.io") else _KUBERNETES
    )


def _github(keys: Mapping[str, Node]) -> Foreign | None:
    jobs, runs = keys.get("jobs"), keys.get("runs")
    if runs is not None and runs.get("using") is not None:
        return _ACTION
    if jobs is None or jobs.kind != MAPPING:
        return None
    if _some_have(jobs, ("runs-on",)) or ("on" in keys and _some_have(jobs, ("steps", "uses"))):
        return GITHUB
    return None


def _circleci(keys: Mapping[str, Node]) -> Foreign | None:
    if "orbs" in keys or ("workflows" in keys and "jobs" in keys):
        return _CIRCLECI
    is_new = _text(keys.get("version")).startswith("2")
    jobs = keys.get("jobs")
    if is_new and (jobs is not None or "workflows" in keys):
        return _CIRCLECI
    known = ("docker", "machine", "executor", "macos")
    return _CIRCLECI if jobs is not None and jobs.kind == MAPPING and _some_have(jobs, known) else None


_AZURE_TOP = (
    "pool",
    "trigger",
    "pr",
    "variables",
    "resources",
    "schedules",
    "stages",
    "extends",
    "parameters",
)
_AZURE_STEPS = ("task", "script", "bash", "pwsh", "powershell", "checkout", "template", "publish", "download")


def _azure(keys: Mapping[str, Node]) -> Foreign | None:
    if _is_list(keys.get("jobs")) and (
        _some_have(keys["jobs"], ("job", "deployment", "template", "pool"))
        or any(name.startswith("${{") for each in _mappings(keys["jobs"]) for name in each.value)
    ):
        return _AZURE
    if _is_list(keys.get("stages")) and _some_have(keys["stages"], ("stage", "jobs", "template")):
        return _AZURE
    tops = sum(key in keys for key in _AZURE_TOP)
    if _is_list(keys.get("steps")) and _some_have(keys["steps"], _AZURE_STEPS) and tops:
        return _AZURE
    extends = keys.get("extends")
    if extends is not None and "steps" not in keys and extends.get("parameters") is not None:
        return _AZURE
    return _AZURE if "version" not in keys and ("pool" in keys or "vmImage" in keys) and tops > 1 else None


def _gitlab(keys: Mapping[str, Node]) -> Foreign | None:
    if (
        "steps" in keys
        or "language" in keys
        or "version" in keys
        or ("services" in keys and "image" not in keys)
    ):
        return None
    stages = keys.get("stages")
    known = ("script", "extends", "trigger", "before_script", "stage", "rules", "only")
    jobs = [
        each
        for name, each in keys.items()
        if each.kind == MAPPING and name not in ("jobs", "tasks", "pipelines")
    ]
    has_jobs = any(name in each.value for each in jobs for name in known)
    named = _is_list(stages) and stages is not None and all(item.kind == SCALAR for item in stages.value)
    if any("script" in each.value or "trigger" in each.value for each in jobs) or (named and has_jobs):
        return _GITLAB
    alone = set(keys) <= {
        "include",
        "stages",
        "variables",
        "workflow",
        "default",
        "image",
        "cache",
        "before_script",
    }
    return _GITLAB if alone and keys and ("include" in keys or named) else None


def _bitbucket(keys: Mapping[str, Node]) -> Foreign | None:
    pipelines = keys.get("pipelines")
    known = ("default", "branches", "pull-requests", "custom", "tags")
    is_one = (
        pipelines is not None and pipelines.kind == MAPPING and any(name in pipelines.value for name in known)
    )
    return _BITBUCKET if is_one else None


def _drone(keys: Mapping[str, Node]) -> Foreign | None:
    if "kind" in keys and "type" in keys and ("steps" in keys or "name" in keys):
        return _DRONE
    if _text(keys.get("kind")) == "pipeline":
        return _DRONE
    if "version" in keys:
        return None
    containers = keys.get("steps") or keys.get("pipeline")
    with_image = [each for each in _mappings(containers) if "image" in each.value]
    return _WOODPECKER if any("run" not in each.value for each in with_image) else None


def _buildkite(keys: Mapping[str, Node]) -> Foreign | None:
    steps = keys.get("steps")
    if "version" in keys or steps is None or steps.kind != SEQUENCE:
        return None
    words = any(each.kind == SCALAR and each.value in ("wait", "block") for each in steps.value)
    known = ("label", "plugins", "wait", "block", "artifact_paths")
    return _BUILDKITE if words or _some_have(steps, known) else None


def _cloudbuild(keys: Mapping[str, Node]) -> Foreign | None:
    names = [_text(each.get("name")) for each in _mappings(keys.get("steps"))]
    is_image = any("/" in name and name.split("/")[0].endswith((".io", ".dev", ".com")) for name in names)
    return _CLOUDBUILD if "version" not in keys and is_image else None


def _taskfile(keys: Mapping[str, Node]) -> Foreign | None:
    tasks = keys.get("tasks")
    if "steps" in keys or "jobs" in keys:
        return None
    if tasks is not None and tasks.kind == MAPPING:
        entries = tasks.value.values()
        known = (
            "cmds",
            "cmd",
            "deps",
            "desc",
            "vars",
            "task",
            "sources",
            "status",
            "preconditions",
            "summary",
        )
        fits = (
            any(each.kind in (SCALAR, SEQUENCE) for each in entries)
            or _some_have(tasks, known)
            or not tasks.value
        )
        return TASKFILE if fits else None
    is_three = _text(keys.get("version")).startswith(("3", "2"))
    return (
        TASKFILE if is_three and ("includes" in keys or "vars" in keys) and "services" not in keys else None
    )


_DAGU_STEPS = (
    "command", "script", "depends", "executor", "call", "continueOn", "continue_on", "repeatPolicy", "repeat_policy",
    "retryPolicy", "retry_policy", "mailOnError", "preconditions", "stdout", "signalOnStop", "parallel",
)  # fmt: skip
_DAGU_TOP = (
    "handlerOn", "handler_on", "histRetentionDays", "hist_retention_days", "maxActiveRuns", "max_active_runs",
    "mailOn", "skipIfSuccessful", "maxActiveSteps", "working_dir", "workingDir", "dotenv", "smtp", "logDir", "delaySec",
)  # fmt: skip


def _dagu(keys: Mapping[str, Node]) -> Foreign | None:
    steps = keys.get("steps")
    if "version" in keys or steps is None or steps.kind == SCALAR:
        return None
    only_texts = (
        bool(steps.value) and steps.kind == SEQUENCE and all(each.kind == SCALAR for each in steps.value)
    )
    nested = steps.kind == SEQUENCE and any(each.kind == SEQUENCE for each in steps.value)
    has_top = any(key in keys for key in _DAGU_TOP)
    return DAGU if only_texts or nested or has_top or _some_have(steps, _DAGU_STEPS) else None


def _rest(keys: Mapping[str, Node]) -> Foreign | None:
    if "repos" in keys and _some_have(keys["repos"], ("repo", "hooks")):
        return _PRECOMMIT
    services = keys.get("services")
    if (
        services is not None
        and services.kind == MAPPING
        and "steps" not in keys
        and (_some_have(services, ("image", "build", "extends", "ports", "environment")))
    ):
        return _COMPOSE
    if ("language" in keys and "steps" not in keys) or ("os" in keys and "script" in keys):
        return _TRAVIS
    if any(key in keys for key in ("build_script", "test_script", "platform")) and "steps" not in keys:
        return _APPVEYOR
    if "name" in keys and any(key in keys for key in ("scripts", "dependencies", "devDependencies")):
        return _NPM
    return None


def _own(keys: Mapping[str, Node]) -> Foreign | None:
    if {"digest", "approver"} <= set(keys):
        return _APPROVAL
    if "steps" in keys or "version" in keys:
        return None
    policy = keys["policy"].value if list(keys) == ["policy"] and keys["policy"].kind == MAPPING else keys
    return _POLICY if any(key in policy for key in ("auto_approve", "llm_auto_approve", "ask_for")) else None


_BY_KEYS: tuple[Callable[[Mapping[str, Node]], Foreign | None], ...] = (
    _own,
    _resource,
    _github,
    _circleci,
    _bitbucket,
    _azure,
    _drone,
    _buildkite,
    _cloudbuild,
    _taskfile,
    _dagu,
    _gitlab,
    _rest,
)
