"""Files of tools for which there is no converter, by their names and by their keys."""

from __future__ import annotations

from planrun.source.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# In small letters; a name without a dot in front also stands for NAME.EXTENSION where that is in the list.
_NAMES: Mapping[str, str] = {
    "makefile": "Makefiles",
    "gnumakefile": "Makefiles",
    "justfile": "justfiles",
    ".justfile": "justfiles",
    "tox.ini": "tox",
    "tox.toml": "tox",
    "noxfile.py": "nox",
    "dodo.py": "doit",
    "jenkinsfile": "Jenkins",
    "earthfile": "Earthly",
    "dockerfile": "Dockerfiles",
    "package.json": "npm scripts",
    "pyproject.toml": "pyproject.toml",
    "cmakelists.txt": "CMake",
    "build.gradle": "Gradle",
    "build.gradle.kts": "Gradle",
    "pom.xml": "Maven",
    ".gitlab-ci.yml": "GitLab CI",
    "azure-pipelines.yml": "Azure Pipelines",
    "bitbucket-pipelines.yml": "Bitbucket Pipelines",
    ".travis.yml": "Travis CI",
    ".drone.yml": "Drone",
    ".woodpecker.yml": "Woodpecker",
    "appveyor.yml": "AppVeyor",
    "cloudbuild.yaml": "Google Cloud Build",
    "docker-compose.yml": "Docker Compose",
    "compose.yaml": "Docker Compose",
    ".pre-commit-config.yaml": "pre-commit",
}
_ENDINGS: Mapping[str, str] = {".mk": "Makefiles", ".just": "justfiles", ".groovy": "Jenkins"}
_AZURE = frozenset(("pool", "trigger", "pr", "variables", "resources", "stages", "schedules"))


def foreign_name(file: str) -> str:
    """Return the tool that a file is for by its name; "" for any other."""
    name = file.rpartition("/")[2].lower()
    if name == "config.yml" and file.endswith(".circleci/config.yml"):
        return "CircleCI"
    if "/.buildkite/" in f"/{file}":
        return "Buildkite"
    return _NAMES.get(name) or next((tool for end, tool in _ENDINGS.items() if name.endswith(end)), "")


def foreign_keys(root: Node) -> str:
    """Return the tool that a YAML file is for by its keys, where it is none that is converted; "" otherwise."""
    if root.kind != MAPPING:
        return ""
    keys = root.value
    jobs, steps = keys.get("jobs"), keys.get("steps")
    if "workflows" in keys or "orbs" in keys or ("version" in keys and jobs is not None):
        return "CircleCI" if "on" not in keys else ""
    if jobs is not None and jobs.kind == SEQUENCE:
        return "Azure Pipelines"
    if jobs is None and "on" not in keys and not _AZURE.isdisjoint(keys) and _has_items(keys):
        return "GitLab CI" if _is_gitlab(keys) else "Azure Pipelines"
    if (
        steps is not None
        and _items_have(steps, ("task", "script", "bash", "pwsh", "checkout"))
        and "pool" in keys
    ):
        return "Azure Pipelines"
    if steps is not None and _items_have(steps, ("label", "plugins", "wait", "block")):
        return "Buildkite"
    if "pipelines" in keys:
        return "Bitbucket Pipelines"
    if "kind" in keys and steps is not None and "type" in keys:
        return "Drone"
    if jobs is None and steps is None and "tasks" not in keys:
        return _rest(keys)
    return ""


def _has_items(keys: Mapping[str, Node]) -> bool:
    return "steps" in keys or "stages" in keys or "extends" in keys


def _is_gitlab(keys: Mapping[str, Node]) -> bool:
    stages = keys.get("stages")
    named = (
        stages is not None and stages.kind == SEQUENCE and all(item.kind == SCALAR for item in stages.value)
    )
    return named or any(each.kind == MAPPING and each.get("script") is not None for each in keys.values())


def _items_have(steps: Node, names: tuple[str, ...]) -> bool:
    items = steps.value if steps.kind == SEQUENCE else []
    return any(
        (item.kind == MAPPING and any(name in item.value for name in names))
        or (item.kind == SCALAR and item.value in names)
        for item in items
    )


def _rest(keys: Mapping[str, Node]) -> str:
    if "runs" in keys and "name" in keys:
        return "GitHub actions by themselves; convert the workflow that uses it"
    if "repos" in keys:
        return "pre-commit"
    if _is_gitlab(keys):
        return "GitLab CI"
    if "language" in keys:
        return "Travis CI"
    return "Docker Compose" if "services" in keys else ""
