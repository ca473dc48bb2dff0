"""What a repository's own files tell: languages, commands, and what of it a model is told."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from planrun.llm import repository as digest
from planrun.llm.repository import Repository, commands, commands_for_tests, is_private, is_told, languages
from planrun.planner.repository import MAX_READ, read_repository

if TYPE_CHECKING:
    from pathlib import Path

KEY = "-----BEGIN PRIVATE KEY-----"


def known(**texts: str) -> Repository:
    """Return a repository with these files; `__` in a name is a dot."""
    found = {name.replace("__", "."): text for name, text in texts.items()}
    return Repository(paths=tuple(sorted(found)), texts=found)


@pytest.mark.parametrize(
    ("repository", "found"),
    [
        (known(Makefile="test: build\n\tpytest\nlint:\n\tx\n", pyproject__toml="pytest"), ["make test"]),
        (known(Makefile="TEST := 1\n.PHONY: all\n"), []),
        (known(justfile="test:\n  x\n"), ["just test"]),
        (known(Taskfile__yml="version: 3\ntasks:\n  test:\n    cmds: []\n"), ["task test"]),
        (known(package__json='{"scripts": {"test": "vitest", "lint": "eslint ."}}'), ["npm test"]),
        (known(package__json='{"scripts": {"test": "x"}}', yarn__lock=""), ["yarn test"]),
        (known(package__json='{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'), []),
        (known(package__json='{"scripts": ["test"]}'), []),
        (known(package__json="{"), []),
        (known(go__mod="module x"), ["go test ./..."]),
        (known(Cargo__toml=""), ["cargo test"]),
        (known(pyproject__toml="[tool.pytest.ini_options]"), ["pytest -q"]),
        (known(conftest__py=""), ["pytest -q"]),
        (known(tox__ini="[tox]"), ["tox"]),
        (known(test_x__py="import unittest"), ["python3 -m unittest discover"]),
        (known(go__mod="", package__json='{"scripts": {"test": "x"}}'), ["npm test", "go test ./..."]),
        (known(pom__xml="", mvnw=""), ["./mvnw -q test"]),
        (known(build__gradle=""), ["gradle test"]),
        (known(README__md="make test"), []),
    ],
)
def test_the_tests_of_a_project_are_found_in_its_files(repository: Repository, found: list[str]) -> None:
    """The project's own target wins; otherwise each tool that is configured has its command; a README names none."""
    assert [command.run for command in commands_for_tests(repository)] == found


def test_no_text_of_a_repository_becomes_a_command() -> None:
    """Whatever stands in the files, the commands are planrun's own words."""
    sharp = "test; rm -rf /:\n\tx\nte$(x)st:\n"
    repository = known(
        Makefile=sharp, package__json='{"scripts": {"test": "x; y", "lint": "$(z)", "a b": "c"}}'
    )
    assert [command.run for command in commands(repository)] == ["npm test", "npm run lint"]


def test_languages_are_counted() -> None:
    """By extension, the most frequent first, equal ones by name."""
    assert languages(("a.py", "b/c.py", "d.go", "e.c", "README", "x.unknown")) == [
        ("Python", 2),
        ("C", 1),
        ("Go", 1),
    ]


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        "a/.env.local",
        "server.key",
        "x.pem",
        "id_rsa",
        "id_ed25519.pub",
        ".npmrc",
        ".netrc",
        "db_password.txt",
        "config/credentials.json",
        "client_secret.yml",
        ".aws/config",
        "home/.ssh/known_hosts",
        "keys/a.p12",
    ],
)
def test_files_that_hold_secrets_are_told_by_their_names(path: str) -> None:
    """They are neither listed nor read; programs that only deal with secrets are files like any other."""
    assert is_private(path)
    assert not is_told(path)
    assert not is_private("src/secrets.py")
    assert not is_private("tests/test_password_reset.rb")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a small project with secrets, links and a file that git ignores."""
    (tmp_path / "src").mkdir()
    (tmp_path / ".github" / "workflows").mkdir(parents=True)
    texts = {
        "README.md": "# Shop\n" + "x" * (2 * MAX_READ),
        "pyproject.toml": "[tool.pytest.ini_options]\n",
        "src/shop.py": "print()\n",
        ".env": "TOKEN=hidden-value\n",
        "server.key": KEY,
        "ignored.log": "x",
        ".gitignore": "*.log\n",
        ".github/workflows/ci.yml": "on: push\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "Makefile").symlink_to("server.key")
    os.mkfifo(tmp_path / "setup.py")
    return tmp_path


@pytest.mark.parametrize("git", [True, False])
def test_a_project_is_read_with_and_without_git(project: Path, *, git: bool) -> None:
    """Git lists what it does not ignore; without git folders are walked; links, pipes and secrets are never opened."""
    if git:
        subprocess.run(["git", "init", "-q"], cwd=project, check=True)
        subprocess.run(["git", "add", "README.md", "src"], cwd=project, check=True)
    found = read_repository(str(project))
    assert found.git is git
    assert ("ignored.log" in found.paths) is not git
    assert {"README.md", "src/shop.py", "pyproject.toml"} <= set(found.paths)
    assert not {".env", "server.key"} & set(found.paths)
    assert set(found.texts) == {"README.md", "pyproject.toml", ".github/workflows/ci.yml"}
    assert len(found.texts["README.md"]) == MAX_READ
    told = "".join([f"{name}\n{text}\n" for name, text, _ in digest.parts(found)])
    assert "hidden-value" not in told
    assert KEY not in told
    assert "test command named by pyproject.toml: pytest -q" in told
    assert "CI: .github/workflows/ci.yml" in told
    assert len(told) < 20_000


def test_the_digest_is_the_same_for_the_same_files(project: Path) -> None:
    """Nothing in it depends on the order in which a folder lists its files, or on the time."""
    first = list(digest.parts(read_repository(str(project))))
    (project / "b.py").write_text("")
    (project / "b.py").unlink()
    assert list(digest.parts(read_repository(str(project)))) == first
    assert all(len(text) <= most for _, text, most in first)


def test_a_folder_that_a_link_replaced_is_not_followed(project: Path) -> None:
    """What git has on its list is not opened where the way to it leads elsewhere by now."""
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    subprocess.run(["git", "add", ".github"], cwd=project, check=True)
    elsewhere = project.parent / f"{project.name}-elsewhere"
    (elsewhere / "workflows").mkdir(parents=True)
    (elsewhere / "workflows" / "ci.yml").write_text("elsewhere")
    (project / ".github" / "workflows" / "ci.yml").unlink()
    (project / ".github" / "workflows").rmdir()
    (project / ".github").rmdir()
    (project / ".github").symlink_to(elsewhere)
    assert ".github/workflows/ci.yml" not in read_repository(str(project)).texts


def test_a_large_tree_is_cut() -> None:
    """The tree has room for the upper levels, and says what it leaves out."""
    paths = tuple(sorted([f"d{n:04}/f{m}" for n in range(500) for m in range(20)]))
    rows = digest.tree(paths)
    assert sum(len(row) + 1 for row in rows) <= digest.MAX_TREE + 40
    assert rows[0].endswith(" and 8 more")
    assert rows[-1].startswith("and ")
