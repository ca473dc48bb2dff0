"""What is known of a repository without running anything of it: its files, and the commands that its files name.

A description of a repository for a model in a few thousand characters: always the same text for the same files.

Everything that comes from the repository is data and stands in data blocks, also the names of its files.
"""

from __future__ import annotations

import json
import re

from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, Literal

    Use = Literal["test", "lint", "build"]

# Files that say how a project is built, by their names at the top; their beginnings are read.
BUILD_FILES = (
    *("Makefile", "makefile", "GNUmakefile", "justfile", "Justfile", "Taskfile.yml", "Taskfile.yaml"),
    *("pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "noxfile.py", "pytest.ini", "requirements.txt"),
    *("package.json", "deno.json", "go.mod", "Cargo.toml", "pom.xml", "build.gradle", "build.gradle.kts"),
    *("Gemfile", "Rakefile", "composer.json", "mix.exs", "CMakeLists.txt", "meson.build", "Dockerfile"),
)
CI_FILES = (
    *(".gitlab-ci.yml", "azure-pipelines.yml", "Jenkinsfile", ".travis.yml", "bitbucket-pipelines.yml"),
    *(".circleci/config.yml", ".buildkite/pipeline.yml"),
)
_WORKFLOW = re.compile(r"\.github/workflows/[^/]+\.ya?ml\Z")
_README = re.compile(r"README(?:\.(?:md|rst|txt|adoc))?\Z", re.IGNORECASE)
# Files whose names show that they hold secrets: never read, never listed.
_PRIVATE = re.compile(
    r"(?:^|/)(?:\.env[^/]*|[^/]*\.(?:pem|key|p12|pfx|jks|keystore|kdbx|asc|gpg)|id_(?:rsa|dsa|ecdsa|ed25519)[^/]*"
    r"|\.netrc|_netrc|\.npmrc|\.pypirc|\.git-credentials|\.htpasswd"
    r"|(?:\.aws|\.ssh|\.gnupg|\.kube|\.docker)/.*)\Z",
    re.IGNORECASE,
)
# Records, reports, and recorded answers.
_OURS = re.compile(
    r"\A(?:\.planrun|planrun-out)/|(?:\A|/)\d{4,}-(?:generate|expand|replan)-[0-9a-f]{8}\.yml\Z"
)
# Likewise, unless it is a program that deals with such things.
_TELLING = re.compile(r"(?:secret|credential|password)[^/]*\Z", re.IGNORECASE)
_EXTENSIONS = {
    "Python": "py pyi",
    "JavaScript": "js mjs cjs jsx",
    "TypeScript": "ts tsx mts",
    "C": "c h",
    "C++": "cc cpp cxx hpp hh",
    "C#": "cs",
    "Shell": "sh bash",
    "Kotlin": "kt kts",
    "Elixir": "ex exs",
    "Go": "go",
    "Rust": "rs",
    "Java": "java",
    "Ruby": "rb",
    "PHP": "php",
    "Swift": "swift",
    "Scala": "scala",
    "Clojure": "clj",
    "Haskell": "hs",
    "Lua": "lua",
    "Perl": "pl",
    "R": "r",
    "Zig": "zig",
    "HTML": "html",
    "CSS": "css",
    "SQL": "sql",
    "Terraform": "tf",
    "Dart": "dart",
    "Vue": "vue",
}
_LANGUAGES = {ending: name for name, endings in _EXTENSIONS.items() for ending in endings.split()}
_NO_TEST = "no test specified"  # what `npm init` writes


class Repository(Record):
    """Files by path from the root of the project, sorted, and the beginnings of those that were read.

    `complete`: whether all paths are there; `git`: whether git listed them.
    """

    paths: tuple[str, ...] = ()
    texts: Mapping[str, str] = {}
    complete: bool = True
    git: bool = False


class Command(Record):
    """A command that the project's files name, and the file that does."""

    use: Use
    run: str
    file: str


def is_private(path: str) -> bool:
    """Say whether the name of a file shows that it holds secrets."""
    if _PRIVATE.search(path):
        return True
    return _TELLING.search(path) is not None and path.rpartition(".")[2].lower() not in _LANGUAGES


def is_ours(path: str) -> bool:
    """Say whether planrun wrote a file about runs or questions: with it no question would be asked twice."""
    return _OURS.search(path) is not None


def is_told(path: str) -> bool:
    """Say whether a digest of the repository shows the beginning of a file: build files, README and CI files."""
    if is_private(path):
        return False
    return path in BUILD_FILES or path in CI_FILES or bool(_README.match(path) or _WORKFLOW.match(path))


def is_readme(path: str) -> bool:
    """Say whether a file is the project's README."""
    return _README.match(path) is not None


def is_ci(path: str) -> bool:
    """Say whether a file configures a CI system."""
    return path in CI_FILES or _WORKFLOW.match(path) is not None


def languages(paths: tuple[str, ...]) -> list[tuple[str, int]]:
    """Return the languages by their number of files, the most frequent first."""
    counts: dict[str, int] = {}
    for path in paths:
        name = _LANGUAGES.get(path.rpartition("/")[2].rpartition(".")[2].lower(), "")
        if name:
            counts[name] = counts.get(name, 0) + 1
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def commands(repository: Repository) -> list[Command]:
    """Return the commands that the project's own files name, the project's own words before those of its tools."""
    found: list[Command] = []
    for find in _FINDERS:
        found += find(repository)
    return list({(command.use, command.run): command for command in reversed(found)}.values())[::-1]


def commands_for_tests(repository: Repository) -> list[Command]:
    """Return what tests the project: its own target for that where there is one, else a command of each tool."""
    found = [command for command in commands(repository) if command.use == "test"]
    own = [command for command in found if command.file in _OWN]
    return own[:1] or found


_OWN = (*BUILD_FILES[:7],)


def _recipes(repository: Repository) -> Iterator[Command]:
    runners = {"make": BUILD_FILES[:3], "just": BUILD_FILES[3:5], "task": BUILD_FILES[5:7]}
    for runner, files in runners.items():
        for file in files:
            names = set(
                re.findall(
                    r"^ {0,4}([A-Za-z][\w-]*)[^\S\n]*:(?!=)", repository.texts.get(file, ""), re.MULTILINE
                )
            )
            for use, words in _USES.items():
                for word in words:
                    if word in names:
                        yield Command(use=use, run=f"{runner} {word}", file=file)
                        break


_USES: dict[Use, tuple[str, ...]] = {
    "test": ("test", "tests", "check"),
    "lint": ("lint",),
    "build": ("build", "all"),
}


def _node(repository: Repository) -> Iterator[Command]:
    file = "package.json"
    scripts = _json(repository.texts.get(file, "")).get("scripts")
    if not isinstance(scripts, dict):
        return
    runner = "npm"
    for lock, name in (("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lockb", "bun")):
        if lock in repository.paths:
            runner = name
    test = scripts.get("test")
    if isinstance(test, str) and _NO_TEST not in test:
        yield Command(use="test", run=f"{runner} test" if runner != "bun" else "bun run test", file=file)
    for use in ("lint", "build"):
        if use in scripts:
            yield Command(use="lint" if use == "lint" else "build", run=f"{runner} run {use}", file=file)


def _json(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _python(repository: Repository) -> Iterator[Command]:
    modules = [
        path for path in repository.paths if re.search(r"(?:^|/)(?:test_[^/]+|[^/]+_test)\.py\Z", path)
    ]
    files = ("pytest.ini", "pyproject.toml", "setup.cfg", "tox.ini", "requirements.txt")
    named = next((file for file in files if "pytest" in repository.texts.get(file, "")), "")
    if not named:
        named = next((path for path in repository.paths if path.rpartition("/")[2] == "conftest.py"), "")
    if named or "pytest.ini" in repository.paths:
        yield Command(use="test", run="pytest -q", file=named or "pytest.ini")
    elif "tox.ini" in repository.paths:
        yield Command(use="test", run="tox", file="tox.ini")
    elif modules:
        yield Command(use="test", run="python3 -m unittest discover", file=modules[0])
    if "[tool.ruff" in repository.texts.get("pyproject.toml", ""):
        yield Command(use="lint", run="ruff check .", file="pyproject.toml")


def _others(repository: Repository) -> Iterator[Command]:
    for file, use, run in _BY_FILE:
        if file in repository.paths:
            yield Command(use=use, run=run, file=file)
    paths = repository.paths
    if "pom.xml" in paths:
        yield Command(use="test", run="./mvnw -q test" if "mvnw" in paths else "mvn -q test", file="pom.xml")
    for file in ("build.gradle", "build.gradle.kts"):
        if file in paths:
            yield Command(
                use="test", run="./gradlew test" if "gradlew" in paths else "gradle test", file=file
            )
    if "Gemfile" in paths and any(path.startswith("spec/") for path in paths):
        yield Command(use="test", run="bundle exec rspec", file="Gemfile")
    scripts = _json(repository.texts.get("composer.json", "")).get("scripts")
    if isinstance(scripts, dict) and "test" in scripts:
        yield Command(use="test", run="composer test", file="composer.json")


_BY_FILE: tuple[tuple[str, Use, str], ...] = (
    ("go.mod", "test", "go test ./..."),
    ("go.mod", "lint", "go vet ./..."),
    ("go.mod", "build", "go build ./..."),
    ("Cargo.toml", "test", "cargo test"),
    ("Cargo.toml", "build", "cargo build"),
    ("mix.exs", "test", "mix test"),
    ("deno.json", "test", "deno test"),
)
_FINDERS: tuple[Callable[[Repository], Iterator[Command]], ...] = (_recipes, _node, _python, _others)


MAX_TREE = 5500  # characters of the tree
MAX_FOLDER = 12  # files of one folder that are named
MAX_LANGUAGES = 6
MAX_TEXTS = 12  # files whose beginnings are shown
MAX_README = 3000  # characters
MAX_FILE = 1500


def parts(repository: Repository, *, listed: bool = True) -> Iterator[tuple[str, str, int]]:
    """Yield the parts of the description of a repository: name, text, and most characters of each.

    `listed`: with how many files there are, and which. Steps of a run change that from run to run.
    """
    if listed:
        yield "overview", _overview(repository), 2000
        yield "tree", "\n".join(tree(repository.paths)), 6000
    elif named := "\n".join(_named(repository)):
        yield "overview", named, 2000
    described = sorted(
        filter(is_told, repository.texts), key=lambda path: (not is_readme(path), is_ci(path), path)
    )
    for path in described[:MAX_TEXTS]:
        most = MAX_README if is_readme(path) else MAX_FILE
        yield f"file {path}", repository.texts[path][:most], most


def _overview(repository: Repository) -> str:
    counted = f"{len(repository.paths)} files" + (
        "" if repository.complete else ", and more that were not listed"
    )
    spoken = ", ".join([f"{name} ({count})" for name, count in languages(repository.paths)[:MAX_LANGUAGES]])
    rows = [counted, f"languages: {spoken or 'none that are known'}"]
    return "\n".join([*rows, *_named(repository)])


def _named(repository: Repository) -> list[str]:
    found = [
        f"{command.use} command named by {command.file}: {command.run}" for command in commands(repository)
    ]
    return [*found, *[f"CI: {path}" for path in repository.paths if is_ci(path)][:MAX_FOLDER]]


def tree(paths: tuple[str, ...]) -> list[str]:
    """Return the files folder by folder, the upper levels first: what does not fit is counted."""
    folders: dict[str, list[str]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        folders.setdefault(folder, []).append(name)
    rows = []
    for folder in sorted(folders, key=lambda name: (name.count("/") + bool(name), name)):
        names = sorted(folders[folder])
        more = f" and {len(names) - MAX_FOLDER} more" if len(names) > MAX_FOLDER else ""
        rows.append(f"{folder or '.'}/: {' '.join(names[:MAX_FOLDER])}{more}")
    return list(_fitting(rows))


def _fitting(rows: list[str]) -> Iterator[str]:
    remaining = MAX_TREE
    for number, row in enumerate(rows):
        remaining -= len(row) + 1
        if remaining < 0:
            yield f"and {len(rows) - number} more folders"
            return
        yield row
