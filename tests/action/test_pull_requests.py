"""The action in pull requests: a proposed plan is reviewed under the committed policy, and decides nothing itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.action.pulls import HERE, LAX, PLAN, POLICY, PUBLISH, Project, act, git, lay

PLANRUN = str(Path(sys.executable).with_name("planrun"))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Make a repository with a plan, a policy and a script on main."""
    return Project(tmp_path / "project")


def write_approval(folder: Path, out: str = "approvals/release.json") -> None:
    """Approve the step `publish` of the plan in a folder."""
    words = ("approve", "plan.yml", "--step", "publish", "--approver", "Ann Reviewer", "-o", out)
    subprocess.run([PLANRUN, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def ran(place: Path) -> set[str]:
    """Return which steps left their file behind."""
    return {name for name in ("built", "published") if (place / name).exists()}


def test_a_review_tells_all_and_runs_nothing(project: Project) -> None:
    """In a shallow checkout the base is fetched; difference, risk, policy, approvals, command and outputs are there."""
    head = project.commit("feature", {"plan.yml": PLAN + PUBLISH})
    place = project.checkout(head)
    did = act(place, "pull_request", project.event(project.main, head), mode="review")
    assert did.code == 0, did.out + did.err
    assert ran(place) == set()
    assert f"Compared with commit `{project.main[:12]}`" in did.summary
    assert f"ci/policy.yml of commit {project.main[:12]}" in did.summary
    assert "`publish` | **new** | high" in did.summary
    assert "planrun approve plan.yml --step publish -o approvals/plan.json" in did.summary
    assert did.outputs["changed"] == "true"
    assert json.loads(did.outputs["approvals-needed"]) == ["publish"]
    assert json.loads(did.outputs["denied-steps"]) == []
    assert did.outputs["highest-risk"] == "high"
    assert did.outputs["result"] == "valid"
    assert did.outputs["digest"][:12] in did.summary
    assert (place / did.outputs["report-path"]).read_text("utf-8") == did.summary
    data = json.loads((place / "planrun-out" / "review.json").read_text("utf-8"))
    assert data["diff"]["approvals"]["asked"] == ["publish"]
    assert git(place, "rev-parse", "--is-shallow-repository") == "true"


@pytest.mark.shows("GP-53")
def test_the_command_of_the_review_opens_the_gate_once_it_is_merged(project: Project) -> None:
    """As it stands in the summary it writes the file; in the pull request that is none yet, on main it is used once."""
    head = project.commit("feature", {"plan.yml": PLAN + PUBLISH})
    place = project.checkout(head, depth=None)
    pull = project.event(project.main, head)
    assert act(place, "pull_request", pull).code == 5
    assert ran(place) == {"built"}
    write_approval(project.work)
    head = project.commit("feature", {})
    place = project.checkout(head, "second", depth=None)
    pull = project.event(project.main, head)
    did = act(place, "pull_request", pull)
    assert (did.code, ran(place)) == (5, {"built"})
    assert "approvals/release.json is not in" in did.summary.replace("\\", "")
    git(project.work, "checkout", "-q", "main")
    git(project.work, "merge", "-q", "--ff-only", "feature")
    git(project.work, "push", "-q", "origin", "main")
    place = project.checkout(head, "merged")
    did = act(place, "push", {"before": project.main})
    assert did.code == 0, did.out + did.err
    assert ran(place) == {"built", "published"}
    assert "Ann Reviewer" in did.summary
    did = act(place, "push", {"before": project.main})
    assert did.code == 5
    assert "used up" in did.out + did.err


@pytest.mark.shows("N-02")
def test_a_pull_request_cannot_change_policy_or_approvals(project: Project) -> None:
    """A lax policy, an approval of its own, and a missing policy change nothing, and the summary reports it."""
    project.commit("feature", {"plan.yml": PLAN + PUBLISH, "ci/policy.yml": LAX})
    write_approval(project.work, "approvals/mine.json")
    head = project.commit("feature", {})
    place = project.checkout(head)
    did = act(place, "pull_request", project.event(project.main, head))
    assert (did.code, ran(place)) == (5, {"built"})
    assert "ci/policy.yml of this checkout differs, and has no effect" in did.summary.replace("\\", "")
    did = act(place, "pull_request", project.event(project.main, head), mode="review")
    summary = did.summary.replace("\\", "")
    assert json.loads(did.outputs["approvals-needed"]) == ["publish"]
    assert "ci/policy.yml of this checkout differs, and has no effect" in summary
    assert "approvals/mine.json is not in" in summary
    head = project.commit("feature", {}, gone=("ci/policy.yml",))
    place = project.checkout(head, "gone")
    did = act(place, "pull_request_target", project.event(project.main, head))
    assert (did.code, ran(place)) == (5, {"built"})
    assert "is missing in this checkout, and is in force nevertheless" in did.summary.replace("\\", "")


def test_a_policy_that_the_base_does_not_have_ends_the_job(project: Project) -> None:
    """A policy that the pull request brings is none: exit code 2, and nothing runs."""
    head = project.commit("feature", {"ci/new.yml": LAX})
    place = project.checkout(head)
    for mode in ("execute", "review"):
        did = act(place, "pull_request", project.event(project.main, head), policy="ci/new.yml", mode=mode)
        assert did.code == 2
        assert f"there is no policy at {project.main}:ci/new.yml" in did.err
    assert ran(place) == set()


def test_a_base_that_cannot_be_had_ends_the_job(project: Project) -> None:
    """The file is neither in the checkout nor at the remote: exit code 2 with a fix, and nothing runs."""
    place = project.checkout(project.main)
    for mode in ("execute", "review"):
        did = act(place, "pull_request", project.event("b" * 40, project.main), mode=mode)
        assert did.code == 2
        assert "is not in the checkout and cannot be fetched" in did.out
        assert "`fetch-depth: 0`" in did.out
    did = act(place, "pull_request", {"pull_request": {}}, mode="review")
    assert (did.code, "does not say which commit" in did.out) == (2, True)
    assert ran(place) == set()


@pytest.mark.parametrize("fork", ["mallory/app", ""])
def test_a_fork_gets_a_review_and_no_run(project: Project, fork: str) -> None:
    """Also when GitHub does not know the fork any more; exit code 3 says so, and a review works."""
    head = project.commit("feature", {"plan.yml": PLAN + PUBLISH})
    place = project.checkout(head)
    pull = project.event(project.main, head, fork=fork)
    did = act(place, "pull_request", pull)
    assert did.code == 3
    assert f"comes from {fork or 'a repository that is gone'}" in did.out
    assert ran(place) == set()
    assert act(place, "pull_request", pull, mode="review").code == 0


def test_the_pull_request_is_no_policy_ref(project: Project) -> None:
    """A commit or a name of the proposal itself is refused; another commit of the repository is taken."""
    head = project.commit("feature", {"plan.yml": PLAN + PUBLISH, "ci/policy.yml": LAX})
    place = project.checkout(head, depth=None)
    pull = project.event(project.main, head)
    for ref in (head, "HEAD", "origin/feature"):
        did = act(place, "pull_request", pull, policy_ref=ref, mode="review")
        assert (did.code, "which is the pull request itself" in did.out) == (2, True), did.out
    did = act(place, "pull_request", pull, policy_ref="origin/main", mode="review")
    assert (did.code, json.loads(did.outputs["approvals-needed"])) == (0, ["publish"])
    assert act(place, "pull_request", pull, policy_ref="--help", mode="review").code == 2


def test_events_with_an_unknown_author_need_a_policy_ref(project: Project) -> None:
    """After a comment, or in a workflow that a pull request started, the author of the checkout is unknown."""
    place = project.checkout(project.main)
    for event, payload in (
        ("issue_comment", {"issue": {"pull_request": {"url": "…"}}}),
        ("workflow_run", {"workflow_run": {"event": "pull_request"}}),
    ):
        did = act(place, event, payload)
        assert (did.code, "name the commit of the policy by policy-ref" in did.out) == (2, True)
        assert act(place, event, payload, policy_ref=project.main, approvals="").code == 0


def test_a_merge_queue_counts_as_proposed(project: Project) -> None:
    """The policy is that of the commit that the queue builds on."""
    head = project.commit("queue", {"plan.yml": PLAN + PUBLISH, "ci/policy.yml": LAX})
    place = project.checkout(head)
    did = act(place, "merge_group", {"merge_group": {"base_sha": project.main, "head_sha": head}})
    assert (did.code, ran(place)) == (5, {"built"})


def test_new_and_removed_plans_are_shown_as_such(project: Project) -> None:
    """A plan that the base lacks is all new; one that is gone needs nothing; one that was nowhere is an error."""
    head = project.commit("feature", {"plans/other.yml": PLAN + PUBLISH}, gone=("plan.yml",))
    place = project.checkout(head)
    pull = project.event(project.main, head)
    did = act(place, "pull_request", pull, mode="review", plan="plans/other.yml")
    assert (did.code, "2 added" in did.summary) == (0, True)
    did = act(place, "pull_request", pull, mode="review")
    assert (did.code, "1 removed" in did.summary) == (0, True)
    assert (did.outputs["changed"], did.outputs["approvals-needed"]) == ("true", "[]")
    assert act(place, "pull_request", pull, mode="review", plan="nowhere.yml").code == 2


def test_a_plan_that_is_not_valid_is_annotated(project: Project) -> None:
    """Each problem stands at its line in the log and in the summary; exit code 2."""
    head = project.commit("feature", {"plan.yml": PLAN + "  - {id: build, rum: x}\n"})
    place = project.checkout(head)
    did = act(place, "pull_request", project.event(project.main, head), mode="review")
    assert did.code == 2
    assert "::error file=plan.yml,line=5," in did.out
    assert "is not valid" in did.summary
    assert "plan.yml:5:" in did.summary
    assert did.outputs["result"] == "invalid"
    fixed = project.commit("fix", {"plan.yml": PLAN})
    place = project.checkout(fixed, "fixed")
    did = act(place, "pull_request", project.event(head, fixed), mode="review")
    assert (did.code, "is not valid, so all of this one counts as new" in did.summary) == (0, True)


def test_a_push_is_compared_with_what_was_before(project: Project) -> None:
    """If that commit is missing or deleted, the parent is compared; a first commit has no comparison."""
    first = project.main
    second = project.commit("main", {"plan.yml": PLAN + PUBLISH})
    third = project.commit("main", {"README": "x"})
    place = project.checkout(third)
    for payload, base in (
        ({"before": first}, first),
        ({"before": "0" * 40}, second),
        ({"before": "b" * 40}, second),
        ({}, second),
    ):
        did = act(place, "push", payload, mode="review")
        assert (did.code, base[:12] in did.summary) == (0, True), did.out + did.err
    did = act(place, "push", {}, mode="review", base=first)
    assert json.loads(did.outputs["approvals-needed"]) == ["publish"]
    place = project.checkout(first, "first")
    did = act(place, "workflow_dispatch", {}, mode="review")
    assert (did.code, "There is nothing to compare with" in did.summary) == (0, True)


def test_paths_count_from_the_working_directory(project: Project) -> None:
    """Plan, policy and approvals lie under it, in the checkout and at the base."""
    files = {"sub/plan.yml": PLAN, "sub/ci/policy.yml": POLICY}
    base = project.commit("main", files)
    head = project.commit("feature", {"sub/plan.yml": PLAN + PUBLISH, "sub/ci/policy.yml": LAX})
    place = project.checkout(head)
    did = act(place, "pull_request", project.event(base, head), mode="review", working_directory="sub")
    assert did.code == 0, did.out + did.err
    assert "### Plan `plan.yml`" in did.summary
    assert "1 added" in did.summary
    assert json.loads(did.outputs["approvals-needed"]) == ["publish"]


@pytest.mark.parametrize(
    "branch", ["$(touch${IFS}sprung)", "a;touch${IFS}sprung", "--upload-pack=touch", "`id`"]
)
def test_names_of_branches_and_files_are_words(project: Project, branch: str) -> None:
    """The name of a branch, a plan or an approval is never run and never becomes an option."""
    name = "--help $(touch sprung) `x` |:.yml"
    lay(project.work, {name: PLAN + PUBLISH})
    git(project.work, "checkout", "-q", "-b", "feature")
    head = project.commit("feature", {"approvals/$(touch sprung);--x.json": "{}", "approvals/-o.json": "{}"})
    git(project.remote, "update-ref", f"refs/heads/{branch}", head)
    place = project.checkout(head)
    payload = project.event(project.main, head)
    payload["pull_request"]["head"]["ref"] = branch
    did = act(place, "pull_request", payload, mode="review", plan=name)
    assert did.code == 0, did.out + did.err
    assert "--help $(touch sprung)" in did.summary
    assert "planrun approve './--help $(touch sprung) `x` |:.yml' --step publish" in did.summary
    assert act(place, "pull_request", payload, plan=name, policy_ref=branch).code == 2
    assert list(project.folder.rglob("sprung")) == []


def test_a_planted_configuration_of_git_runs_nothing(project: Project) -> None:
    """Programs that a checkout's configuration names (monitor, hooks, helpers, transports, filters) do not start."""
    (project.work / ".gitattributes").write_text("* diff=trap filter=trap merge=trap\n")
    head = project.commit("feature", {"plan.yml": PLAN + PUBLISH})
    place = project.checkout(head)
    trap = place / ".git" / "trap"
    trap.write_text(f'#!/bin/sh\necho "$0 $*" >> {place}/sprung\n')
    trap.chmod(0o755)
    hooks = place / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for hook in ("post-checkout", "reference-transaction", "post-index-change", "fsmonitor-watchman"):
        (hooks / hook).write_text(trap.read_text())
        (hooks / hook).chmod(0o755)
    settings = {
        "core.fsmonitor": str(trap),
        "core.hooksPath": str(hooks),
        "core.sshCommand": str(trap),
        "core.gitProxy": str(trap),
        "core.pager": str(trap),
        "core.askPass": str(trap),
        "core.alternateRefsCommand": str(trap),
        "credential.helper": f"!{trap}",
        "diff.trap.textconv": str(trap),
        "diff.trap.command": str(trap),
        "diff.external": str(trap),
        "filter.trap.smudge": str(trap),
        "filter.trap.clean": str(trap),
        "remote.origin.uploadpack": str(trap),
        "protocol.ext.allow": "always",
        "alias.fetch": f"!{trap}",
        "alias.cat-file": f"!{trap}",
    }
    for name, value in settings.items():
        git(place, "config", name, value)
    for mode in ("review", "execute"):
        did = act(place, "pull_request", project.event(project.main, head), mode=mode)
        assert did.code == (0 if mode == "review" else 5), did.out + did.err
    git(place, "config", "remote.origin.url", f"ext::{trap} %S")
    did = act(place, "pull_request", project.event("b" * 40, head), mode="review")
    assert did.code == 2
    assert not (place / "sprung").exists(), (place / "sprung").read_text()
    subprocess.run(["git", "status"], cwd=place, check=False, capture_output=True)
    assert (place / "sprung").exists()  # the traps work where nothing is in their way


def test_a_review_follows_no_links(project: Project) -> None:
    """A plan that links out of the repository or into git's own files is not shown; no report follows a link."""
    outside = project.folder / "outside"
    outside.mkdir()
    (outside / "secret").write_text("token: hunter2\n")
    git(project.work, "checkout", "-q", "-b", "feature")
    (project.work / "leak.yml").symlink_to(outside / "secret")
    (project.work / "config.yml").symlink_to(".git/config")
    (project.work / "reports").symlink_to(outside)
    head = project.commit("feature", {})
    place = project.checkout(head)
    pull = project.event(project.main, head)
    for plan in ("leak.yml", "config.yml"):
        did = act(place, "pull_request", pull, mode="review", plan=plan)
        assert (did.code, "is outside of the repository" in did.err) == (2, True), did.out + did.err
        assert "hunter2" not in did.out + did.err + did.summary
        assert "remote" not in did.summary
    did = act(place, "pull_request", pull, mode="review", report_dir="reports")
    assert (did.code, sorted(path.name for path in outside.iterdir())) == (2, ["secret"])
    assert HERE not in did.summary
