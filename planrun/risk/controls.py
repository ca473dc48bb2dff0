"""Files of a workspace that control what runs later: one list for risk, for sandboxes and for the patches of agents.

What stands here takes effect by being there: a program that nobody asked to run it reads it, or planrun, a CI system,
a shell, git, an editor or an agent does. Code that runs only where someone calls it (`setup.py`, a Makefile, a test)
is an ordinary file. All names in lower case. A test compares the list with the names that planrun's source reads.
"""

from __future__ import annotations

from planrun.risk.words import names_in

FOLDERS = names_in(
    # version control, planrun's records, keys
    ".git .hg .svn .planrun .ssh .gnupg .aws .kube .docker"
    # CI systems
    " .github .gitea .forgejo .circleci .buildkite .gitlab .azure-pipelines .pipelines .woodpecker .teamcity"
    " .semaphore .tekton .builds .harness .codefresh"
    # hooks, editors, agents, environments
    " .husky .lefthook .vscode .idea .zed .fleet .devcontainer .claude .cursor .windsurf .gemini .codex .continue"
    " .clinerules .roo .mvn"
)
"""A folder with one of these names controls later work, with all that is in it."""
_GIVEN_FOLDERS = frozenset(("approvals", "policies"))
"""Folders from which planrun takes files; a project may have others of these names, with other files in them."""
_GIVEN_ENDS = (".json", ".yml", ".yaml")
_PLANS = "plans"  # where the only YAML file is the plan that runs by default
FILES = names_in(
    # planrun's, under the names that it looks for and that its documentation uses
    ".planrun.yml planrun.md plan.yml plan.yaml .plan.lock.json policy.yml policy.yaml policies.yml policies.yaml"
    " ceiling.yml ceiling.yaml decisions.yml decisions.yaml approval.json"
    # CI systems, and who reviews
    " .gitlab-ci.yml .gitlab-ci.yaml .travis.yml .drone.yml .drone.yaml .drone.star .woodpecker.yml .woodpecker.yaml"
    " jenkinsfile azure-pipelines.yml azure-pipelines.yaml .vsts-ci.yml bitbucket-pipelines.yml appveyor.yml"
    " .appveyor.yml .cirrus.yml .cirrus.star buildspec.yml buildspec.yaml cloudbuild.yml cloudbuild.yaml .build.yml"
    " wercker.yml codefresh.yml screwdriver.yaml codeowners action.yml action.yaml"
    # git and its hooks
    " .gitattributes .gitconfig .gitmodules .pre-commit-config.yaml .pre-commit-config.yml lefthook.yml lefthook.yaml"
    " lefthook.toml lefthook.json .lefthook.yml .lefthook.yaml .lefthook.toml .lefthook.json lefthook-local.yml"
    " .lefthook-local.yml .huskyrc .overcommit.yml"
    # shells and what they load by the folder
    " .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout"
    " .inputrc .envrc .autoenv mise.toml .mise.toml mise.local.toml .tool-versions .netrc authorized_keys crontab"
    # editors, debuggers and interpreters
    " .vimrc .exrc .nvimrc .nvim.lua .dir-locals.el .gdbinit .lldbinit .pdbrc .irbrc .pryrc .psqlrc .sqliterc .ghci"
    " .ocamlinit .rprofile .renviron .devcontainer.json sitecustomize.py usercustomize.py"
    # package managers and build tools
    " .npmrc .pnpmfile.cjs .pnpmfile.mjs .yarnrc .yarnrc.yml .pypirc .bazelrc rust-toolchain"
    " rust-toolchain.toml"
    # agents
    " agents.md agents.override.md claude.md claude.local.md gemini.md .mcp.json mcp.json .cursorrules .windsurfrules"
    " .aider.conf.yml copilot-instructions.md"
)
NAMES = FILES | FOLDERS
"""Last names of such files and folders."""
PATHS = (
    *(".cargo/config", ".cargo/config.toml", ".ci/run", ".config/mise", ".config/mise.toml", ".config/fish"),
    *(".yarn/releases", ".yarn/plugins", ".bundle/config", ".config/git"),
)
"""Files and folders of this kind whose last name alone says too little."""
_ENDS = (
    *(".plan.yml", ".plan.yaml", ".policy.yml", ".policy.yaml", "-policy.yml", "-policy.yaml", ".lock.json"),
    *(".approval.json", ".code-workspace"),
)


SCRIPTS = (".github/", ".ci/", ".devcontainer/")
"""Folders of control files whose scripts are run as those of any other folder are."""


def control(path: str) -> bool:
    """Return whether a workspace-relative path, or a folder on the way to it, controls what runs later."""
    lower = path.lower()
    parts = lower.split("/")
    name = parts[-1]
    return (
        not FOLDERS.isdisjoint(parts)
        or name in FILES
        or name.endswith(_ENDS)
        or lower in _GIVEN_FOLDERS
        or (name.endswith(_GIVEN_ENDS) and not _GIVEN_FOLDERS.isdisjoint(parts))
        or (name.endswith(_GIVEN_ENDS[1:]) and _PLANS in parts[-2:-1])
        or any(f"/{each}/" in f"/{lower}/" for each in PATHS)
    )
