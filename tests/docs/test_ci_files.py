"""The pipelines under docs/ci and in the pages: valid for the published schema of each system, and without findings.

GitHub's are checked by zizmor besides, at its strictest. The Jenkinsfile has no schema that can be had without Jenkins:
its brackets and its stages are looked at.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.docs.pages import DOCS, blocks, text_of

FILES = DOCS / "ci"
BIN = Path(sys.executable).parent
PINNED = f"@{'0123456789' * 4} # v1.0.0"
OURS = re.compile(r"@COMMIT # the commit of the version that you reviewed")
SCHEMAS = {
    "gitlab-ci.yml": ("vendor.gitlab-ci", "--data-transform", "gitlab-ci"),
    "azure-pipelines.yml": (
        "vendor.azure-pipelines",
        "--data-transform",
        "azure-pipelines",
        "--regex-variant",
        "nonunicode",
    ),
    "buildkite.yml": ("vendor.buildkite",),
    "circleci.yml": ("vendor.circle-ci",),
    "forgejo.yml": ("vendor.github-workflows",),
}
WORKFLOWS = sorted(FILES.glob("github-*.yml"))
# What the marks before blocks of the pages say, and the schema that goes with it.
MARKED = {
    "a workflow of GitHub": ("vendor.github-workflows",),
    "a pipeline of GitLab": SCHEMAS["gitlab-ci.yml"],
    "a pipeline of Azure": SCHEMAS["azure-pipelines.yml"],
    "a pipeline of Buildkite": SCHEMAS["buildkite.yml"],
}


def check(*words: str | Path, cwd: Path = FILES) -> None:
    """Run a checker; it must have nothing to say."""
    done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_file_is_checked_and_linked() -> None:
    """No pipeline lies there that no test looks at, and docs/ci.md links to each."""
    known = {*SCHEMAS, *[path.name for path in WORKFLOWS], "Jenkinsfile", "teamcity.sh"}
    assert {path.name for path in FILES.iterdir()} == known
    assert [name for name in sorted(known) if f"(ci/{name})" not in text_of("ci.md")] == []


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_pipeline_follows_the_schema_of_its_system(name: str) -> None:
    """The schemas are those that SchemaStore and the vendors publish, as check-jsonschema brings them."""
    schema, *options = SCHEMAS[name]
    check(BIN / "check-jsonschema", *options, "--builtin-schema", schema, name)


def test_the_workflows_are_valid_and_zizmor_finds_nothing(tmp_path: Path) -> None:
    """With our own action pinned as a user would pin it; every other action is pinned in the file itself."""
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    for path in WORKFLOWS:
        text = OURS.sub(PINNED, path.read_text("utf-8"))
        assert "COMMIT" not in text, path
        (folder / path.name).write_text(text, "utf-8")
    whole = [
        block for block in blocks("yaml") if block.about == "a workflow of GitHub" and "\non:" in block.text
    ]
    assert len(whole) > 1
    for number, block in enumerate(whole):
        (folder / f"block-{number}.yml").write_text(OURS.sub(PINNED, block.text), "utf-8")
    check(BIN / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", *sorted(folder.iterdir()))
    # Blocks of the pages are short: the strictest persona would want names and concurrency of each.
    check(BIN / "zizmor", "--offline", "--quiet", "--min-severity=low", ".", cwd=tmp_path)
    for path in folder.glob("block-*.yml"):
        path.unlink()
    check(BIN / "zizmor", "--offline", "--quiet", "--persona=auditor", ".", cwd=tmp_path)


def test_blocks_of_other_systems_follow_their_schemas(tmp_path: Path) -> None:
    """The short pipelines in the pages are as valid as the files."""
    found = [block for block in blocks("yaml") if block.about in MARKED and "GitHub" not in block.about]
    assert {block.about for block in found} == set(MARKED) - {"a workflow of GitHub"}
    for about in dict.fromkeys(block.about for block in found):
        files = [tmp_path / f"{block.name.replace('/', '-')}.yml" for block in found if block.about == about]
        for path, block in zip(files, [block for block in found if block.about == about], strict=True):
            path.write_text(block.text, "utf-8")
        schema, *options = MARKED[about]
        check(BIN / "check-jsonschema", *options, "--builtin-schema", schema, *files)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_gives_no_one_more_than_it_needs(path: Path) -> None:
    """No permission at the top, none to write but that of the comment, no secrets and no checkout beside strangers."""
    content = yaml.safe_load(path.read_text("utf-8"))
    assert content["permissions"] == {}
    granted = {
        (name, permission)
        for job in content["jobs"].values()
        for name, permission in job["permissions"].items()
        if permission != "read"
    }
    assert granted == ({("pull-requests", "write")} if path.name == "github-comment.yml" else set())
    events = content[True]  # `on`, as YAML 1.1 reads it
    assert "pull_request_target" not in events
    text = path.read_text("utf-8")
    if "pull_request" in events or "workflow_run" in events:
        assert "secrets." not in text
    if "workflow_run" in events:
        assert "actions/checkout" not in text
    assert "${{" not in "".join(
        [step.get("run", "") for job in content["jobs"].values() for step in job["steps"]]
    )


def test_the_jenkinsfile_is_whole() -> None:
    """Its brackets are balanced, and it has the parts of a declarative pipeline."""
    text = re.sub(r"'[^']*'|//.*", "", (FILES / "Jenkinsfile").read_text("utf-8"))
    for opening, closing in ("{}", "()"):
        assert text.count(opening) == text.count(closing)
    assert re.findall(r"^ {0,4}(\w+)", text, re.MULTILINE) == [
        "pipeline",
        "agent",
        "options",
        "stages",
        "post",
    ]
