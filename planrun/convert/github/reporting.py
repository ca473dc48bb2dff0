"""Actions that a plan leaves out, and actions that only talk to GitHub, as data.

An action is left out where it makes no file, no output and no failure that anything else reads: it prepares the machine
that GitHub lends, or it shows elsewhere what a run has found. What is not done is a finding with the action's line.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_TESTS = "test results are not published; see `test_report` of steps"
_COVERAGE = "no report of coverage is published"
_COMMENT = "no comment is written on the pull request"
_LABEL = "no label is set"
_ATTEST = "no attestation of GitHub is made; see `planrun attest`"
_CACHE = "no binary cache is used"
_DISK = "nothing is deleted from the machine"
_MATCHER = "no output is marked in GitHub's log"
_RUNS = "runs and files on GitHub are not deleted"

# What is not done, by action.
LEFT_OUT: Mapping[str, str] = {
    "step-security/harden-runner": "the network of the steps is not watched",
    "mxschmitt/action-tmate": "no session for debugging is opened",
    "lhotari/action-upterm": "no session for debugging is opened",
    "warpbuilds/gha-debug": "no session for debugging is opened",
    "cachix/cachix-action": _CACHE,
    "determinatesystems/magic-nix-cache-action": _CACHE,
    "determinatesystems/flakehub-cache-action": _CACHE,
    "nix-community/cache-nix-action": _CACHE,
    "jlumbroso/free-disk-space": _DISK,
    "brainsia/free-disk-space": _DISK,
    "endersonmenezes/free-disk-space": _DISK,
    "easimon/maximize-build-space": _DISK,
    "ublue-os/remove-unwanted-software": _DISK,
    "styfle/cancel-workflow-action": "earlier runs are not cancelled",
    "geekyeggo/delete-artifact": _RUNS,
    "mattraks/delete-workflow-runs": _RUNS,
    "julia-actions/cache": "files stay from run to run",
    "samypr100/setup-dev-drive": "files stay where they are",
    "crazy-max/ghaction-github-runtime": "no cache of GitHub is used",
    "xt0rted/markdownlint-problem-matcher": _MATCHER,
    "codespell-project/codespell-problem-matcher": _MATCHER,
    "r7kamura/rubocop-problem-matchers-action": _MATCHER,
    "korelstar/phplint-problem-matcher": _MATCHER,
    "dorny/test-reporter": _TESTS,
    "mikepenz/action-junit-report": _TESTS,
    "enricomi/publish-unit-test-result-action": _TESTS,
    "test-summary/action": _TESTS,
    "codecov/test-results-action": _TESTS,
    "phoenix-actions/test-reporting": _TESTS,
    "datadog/junit-upload-github-action": _TESTS,
    "datadog/coverage-upload-github-action": _COVERAGE,
    "py-cov-action/python-coverage-comment-action": _COVERAGE,
    "romeovs/lcov-reporter-action": _COVERAGE,
    "davelosert/vitest-coverage-report-action": _COVERAGE,
    "masci/datadog": "no metrics are sent",
    "marocchino/sticky-pull-request-comment": _COMMENT,
    "peter-evans/create-or-update-comment": _COMMENT,
    "peter-evans/find-comment": "no comment of the pull request is looked for",
    "peter-evans/commit-comment": _COMMENT,
    "thollander/actions-comment-pull-request": _COMMENT,
    "mshick/add-pr-comment": _COMMENT,
    "actions-cool/maintain-one-comment": _COMMENT,
    "izhangzhihao/delete-comment": "no comment is deleted",
    "actions/labeler": _LABEL,
    "github/issue-labeler": _LABEL,
    "srvaroa/labeler": _LABEL,
    "actions-ecosystem/action-add-labels": _LABEL,
    "actions-ecosystem/action-remove-labels": "no label is removed",
    "actions/attest": _ATTEST,
    "actions/attest-build-provenance": _ATTEST,
    "actions/attest-sbom": _ATTEST,
    "advanced-security/maven-dependency-submission-action": "the dependencies are not listed on GitHub",
    "mikepenz/gradle-dependency-submission": "the dependencies are not listed on GitHub",
    "gradle/actions/dependency-submission": "the dependencies are not listed on GitHub",
    "actions/add-to-project": "no project of GitHub is changed",
    "chrnorm/deployment-status": "the deployment is not shown on GitHub",
    "chrnorm/deployment-action": "the deployment is not shown on GitHub",
    "bobheadxi/deployments": "the deployment is not shown on GitHub",
    "actions/configure-pages": "the settings of GitHub Pages stay as they are",
}
# Called workflows that do the same.
LEFT_OUT_CALLS: Mapping[str, str] = {
    "slsa-framework/slsa-github-generator": "no provenance is made; see `planrun attest`",
}
# Actions that read or change nothing but what GitHub knows: issues, pull requests, releases, settings.
TALKERS = frozenset((
    "actions/stale", "actions/first-interaction", "actions/dependency-review-action", "actions/delete-package-versions",
    "actions/github-script", "actions/publish-action", "actions/publish-immutable-action",
    "actions-cool/issues-helper", "actions-cool/check-user-permission", "actions-cool/issues-similarity-analysis",
    "actions-r-us/actions-tagger", "agilepathway/label-checker", "amannn/action-semantic-pull-request",
    "benc-uk/workflow-dispatch",
    "convictional/trigger-workflow-and-wait", "dependabot/fetch-metadata", "dessant/lock-threads",
    "dessant/support-requests", "dessant/reaction-comments", "dessant/label-actions", "endbug/label-sync",
    "fastify/action-pr-title", "fastify/github-action-merge-dependabot", "garg3133/welcome-new-contributors",
    "github/ai-moderator", "hustcer/milestone-action", "jasonetco/create-an-issue",
    "juliangruber/approve-pull-request-action",
    "hmarr/auto-approve-action", "korthout/backport-action", "kentaro-m/auto-assign-action", "lee-dohm/no-response",
    "lee-dohm/label-based-on-issue-title", "matteogabriele/agentscan-action",
    "mercurytechnologies/delete-cancelled-runs",
    "mheap/github-action-required-labels", "micnncim/action-label-syncer", "nexusphp/no-merge-commits",
    "octokit/graphql-action", "octokit/request-action", "ossf/scorecard-action", "pascalgn/automerge-action",
    "peter-evans/close-issue", "peter-evans/enable-pull-request-automerge", "peter-evans/repository-dispatch",
    "peter-evans/slash-command-dispatch", "pozil/auto-assign-issue", "release-drafter/release-drafter",
    "stefanbuck/github-issue-parser", "thehanimo/pr-title-checker", "tiangolo/issue-manager", "tibdex/backport",
    "toshimaru/auto-author-assign", "tvdias/github-tagger",
    "xalvarez/prevent-file-change-action",
    "bubkoo/auto-comment", "wow-actions/auto-comment", "actions-ecosystem/action-create-comment", "ppremk/lfs-warning",
    "redhat-plumbers-in-action/advanced-issue-labeler",
    "yyx990803/release-tag", "open-mpi/pr-labeler", "open-mpi/pr-milestoner", "paritytech/pr-custom-review",
    "datadog/ensure-ci-success",
    "kkak10/pr-number-action", "gr2m/create-or-update-pull-request-action", "dataaxiom/ghcr-cleanup-action",
    "vlaurin/action-ghcr-prune",
))  # fmt: skip
