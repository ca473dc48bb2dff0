"""The one list of files that control later work: what is in it, and that all names which planrun reads are."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import planrun
from planrun.agents.patches import risk_of
from planrun.risk import classify
from planrun.risk.controls import control

SOURCE = Path(planrun.__file__).parent
CONTROLS = """
.planrun.yml PLANRUN.md plan.yml a/plan.yaml x.plan.yml .plan.lock.json plan.lock.json x.approval.json policy.yml
my-policy.yaml
ceiling.yml decisions.yml approvals approvals/a.json sub/approvals/a.yml policies plans/release.yml .planrun/runs/x
.github/workflows/ci.yml .gitlab-ci.yml .circleci/config.yml Jenkinsfile a/.travis.yml .ci/run sub/.ci/run
.git
.git/hooks/pre-commit .gitattributes .gitmodules lefthook.yml .lefthook.toml .husky/pre-push .pre-commit-config.yaml
.mcp.json .claude/settings.json .cursor/rules AGENTS.md sub/CLAUDE.md .vscode/tasks.json .idea/x .devcontainer/a
.devcontainer.json .cargo/config.toml .cargo/config .yarnrc.yml .yarn/releases/yarn.cjs .npmrc .pnpmfile.cjs .envrc
mise.toml .config/mise/config.toml sitecustomize.py lib/usercustomize.py .bashrc .vimrc .exrc .gdbinit .mvn/jvm.config
rust-toolchain.toml it.code-workspace
"""
ORDINARY = """
README.md src/app.py Makefile package.json setup.py conftest.py tests/test_plan.py docs/plan.md src/policies.py
app/policies/rule.py sub/plans sub/policies plans.py my.planrun.yml.txt .cargo/registry/x .ci/logs .yarn/cache/x
.gitignore model.pth package-lock.json yarn.lock .config/app.toml subscription/plans/__init__.py
"""


@pytest.mark.parametrize("path", CONTROLS.split())
def test_what_controls_later_work(path: str) -> None:
    """A step that writes it is high, and so is the patch of an agent."""
    assert control(path)
    assert control(path.upper())
    assert classify(f"touch {path}").level == "high"
    assert risk_of([path])[0] == "high"


@pytest.mark.parametrize("path", ORDINARY.split())
def test_what_is_an_ordinary_file(path: str) -> None:
    """Code and data, however they are called."""
    assert not control(path)


def test_scripts_beside_control_files_are_run_like_others() -> None:
    """They are reviewed with the project."""
    for path in (".ci/run", ".github/scripts/x.sh", ".devcontainer/setup.sh"):
        assert classify(f"./{path}").level == "medium"
    assert classify("./.git/hooks/pre-commit").level == "high"


_FILE = re.compile(r"\.?[\w-]+\.(ya?ml|md|toml|jsonl?|lock|html|ini|cfg|txt)|\.[a-z]{3,}-?[a-z]*rc")
# What has such a name in the source of planrun, and is no file of a workspace that decides what runs.
_NOT_READ = {
    "written for people and machines": "junit.xml ledger.json report.md report.html report.txt notifications.jsonl"
    " review.json review.md planrun.html errors.md lint.md sandbox.md",
    "in records, where no step writes": "ledger.jsonl ledger.discarded.jsonl approvals.jsonl queue.jsonl targets.json"
    " conversation.json delegation.json errors.json",
    "in the installation": "prices.yml pyvenv.cfg .schema.json plan.schema.json policy.schema.json project.schema.json",
    "of a project, told to a model as data": "CMakeLists.txt Cargo.toml Taskfile.yml Taskfile.yaml composer.json"
    " deno.json package.json pnpm-lock.yaml pom.xml pyproject.toml pytest.ini requirements.txt setup.cfg tox.ini"
    " yarn.lock taskfile.yml taskfile.yaml",
    "settings of tools beside the code, which classified commands look at": ".coveragerc .nvmrc global.json setup.cfg"
    " tox.ini pyproject.toml",
}
_OTHER_TOOLS = (
    "convert",
    "risk",
    "approval/scripts.py",
    "plan/foreign.py",
    "plan/examples.py",
    "plan/schema",
)  # names in texts and tables


def test_names_that_planrun_reads_are_in_the_list() -> None:
    """A further file of the workspace that planrun looks for must be added, or named above with its kind."""
    known = {name for names in _NOT_READ.values() for name in names.split()}
    unknown: dict[str, str] = {}
    for file in SOURCE.rglob("*.py"):
        place = file.relative_to(SOURCE).as_posix()
        if place.startswith(_OTHER_TOOLS):
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            text = node.value if isinstance(node, ast.Constant) else ""
            if isinstance(text, str) and _FILE.fullmatch(text) and text not in known and not control(text):
                unknown[text] = place
    assert unknown == {}
