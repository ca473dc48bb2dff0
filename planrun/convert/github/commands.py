"""GitHub actions that start one command, as data: what each input is of its command line."""

from __future__ import annotations

from planrun.convert.reader import UntranslatableError
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from planrun.convert.github.programs import Inputs


class Command(Record):
    """The command of an action, and what its inputs add to it, in this order.

    `options`: an option and the input with its value. `flags`: an option and the input that turns it on. `words`: an
    input whose words stand at the end, and the words without it. `variables`: a variable and the input with its value.
    `lines`: the lines behind the command. `fixed`: the only value that an input may have. `ignored`: inputs that make
    no difference here. `folder`: the input that names the folder.
    """

    start: str
    needs: str
    options: tuple[tuple[str, str], ...] = ()
    flags: tuple[tuple[str, str], ...] = ()
    words: tuple[tuple[str, str], ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    lines: str = ""
    fixed: tuple[tuple[str, str], ...] = ()
    ignored: tuple[str, ...] = ()
    folder: str = ""

    def script(self, inputs: Inputs) -> str:
        """Return the script for what an action is given; raises UntranslatableError."""
        for key, only in self.fixed:
            if inputs.take(key, only).lower() != only:
                raise UntranslatableError("", f"its input `{key}` may only be {only}")
        for name, key in self.variables:
            node = inputs.node(key)
            if node is not None:
                inputs.env[name] = node
        text = self.start
        for option, key in self.options:
            text += inputs.value(key, f"{option}" if option.endswith("=") else f"{option} ")
        for option, key in self.flags:
            text += inputs.flag(key, option)
        words = "".join(inputs.words(key, otherwise) for key, otherwise in self.words)
        return f"{inputs.begin()}{text}{inputs.rest()}{words}{self.lines}"


_OUTPUT = '"$GITHUB_OUTPUT"'
COMMANDS: Mapping[str, Command] = {
    "ansible/ansible-lint": Command(start="ansible-lint", needs="ansible-lint", words=(("args", ""),)),
    "pypa/cibuildwheel": Command(
        start="cibuildwheel",
        needs="cibuildwheel",
        options=(("--output-dir", "output-dir"), ("--only", "only"), ("--config-file", "config-file")),
        words=(("package-dir", "."),),
        ignored=("extras",),
    ),
    "j178/prek-action": Command(
        start="prek run --show-diff-on-failure --color=always",
        needs="prek",
        words=(("extra-args", "--all-files"), ("extra_args", "")),
        ignored=("prek-version", "install-only", "token"),
    ),
    "gitleaks/gitleaks-action": Command(start="gitleaks detect --redact --verbose", needs="gitleaks"),
    "dprint/check": Command(
        start="dprint check", needs="dprint", words=(("args", ""),), ignored=("dprint-version",)
    ),
    "johnnymorganz/stylua-action": Command(
        start="stylua", needs="stylua", words=(("args", ""),), ignored=("token", "version")
    ),
    "lunarmodules/luacheck": Command(start="luacheck", needs="luacheck", words=(("args", "."),)),
    "nebularg/actions-luacheck": Command(
        start="luacheck", needs="luacheck", words=(("args", ""), ("files", "."))
    ),
    "obi1kenobi/cargo-semver-checks-action": Command(
        start="cargo semver-checks",
        needs="cargo-semver-checks",
        options=(
            ("--package", "package"),
            ("--exclude", "exclude"),
            ("--manifest-path", "manifest-path"),
            ("--release-type", "release-type"),
        ),
        ignored=("rust-toolchain", "shared-key", "prefix-key", "github-token", "verbose"),
    ),
    "citation-file-format/cffconvert-github-action": Command(
        start="cffconvert", needs="cffconvert", words=(("args", ""),)
    ),
    "cycjimmy/semantic-release-action": Command(
        start="npx semantic-release",
        needs="npx",
        flags=(("--dry-run", "dry_run"),),
        ignored=("semantic_version", "extra_plugins"),
        folder="working_directory",
    ),
    "release-plz/action": Command(
        start="release-plz",
        needs="release-plz",
        words=(("command", "release"),),
        ignored=("version", "backend"),
        options=(("--config", "config"), ("--manifest-path", "manifest_path")),
    ),
    "goto-bus-stop/standard-action": Command(
        start="npx standard", needs="npx", words=(("files", ""),), ignored=("annotate",)
    ),
    "sonarsource/sonarqube-scan-action": Command(
        start="sonar-scanner",
        needs="sonar-scanner",
        words=(("args", ""),),
        folder="projectbasedir",
        ignored=("scannerversion", "scannerbinariesurl"),
    ),
    "sonarsource/sonarcloud-github-action": Command(
        start="sonar-scanner",
        needs="sonar-scanner",
        words=(("args", ""),),
        folder="projectbasedir",
    ),
    "snyk/actions/node": Command(
        start="snyk", needs="snyk", words=(("command", "test"), ("args", "")), ignored=("json",)
    ),
    "snyk/actions/python": Command(
        start="snyk", needs="snyk", words=(("command", "test"), ("args", "")), ignored=("json",)
    ),
    "snyk/actions/golang": Command(
        start="snyk", needs="snyk", words=(("command", "test"), ("args", "")), ignored=("json",)
    ),
    "snyk/actions/docker": Command(
        start="snyk container",
        needs="snyk",
        words=(("command", "test"), ("image", ""), ("args", "")),
        ignored=("json",),
    ),
    "cloudflare/wrangler-action": Command(
        start="wrangler",
        needs="wrangler",
        words=(("command", "deploy"),),
        folder="workingdirectory",
        variables=(("CLOUDFLARE_API_TOKEN", "apitoken"), ("CLOUDFLARE_ACCOUNT_ID", "accountid")),
        options=(("--env", "environment"),),
        ignored=("wranglerversion", "packagemanager", "quiet", "githubtoken"),
    ),
    "coactions/setup-xvfb": Command(
        start='xvfb-run --auto-servernum bash -c "$INPUT_RUN"',
        needs="xvfb-run",
        variables=(("INPUT_RUN", "run"),),
        folder="working-directory",
    ),
    "gabrielbb/xvfb-action": Command(
        start='xvfb-run --auto-servernum bash -c "$INPUT_RUN"',
        needs="xvfb-run",
        variables=(("INPUT_RUN", "run"),),
        folder="working-directory",
    ),
    "codspeedhq/action": Command(
        start="codspeed run",
        needs="codspeed",
        options=(("--mode", "mode"),),
        variables=(("INPUT_RUN", "run"), ("CODSPEED_TOKEN", "token")),
        lines=' -- bash -c "$INPUT_RUN"',
        ignored=("runner-version", "instruments"),
        folder="working-directory",
    ),
    "mathiasvr/command-output": Command(
        start='text=$(bash -c "$INPUT_RUN")',
        needs="bash",
        variables=(("INPUT_RUN", "run"),),
        lines=f"\nprintf 'stdout<<PLANRUN_END\\n%s\\nPLANRUN_END\\n' \"$text\" >> {_OUTPUT}",
        ignored=("shell",),
    ),
    "juliangruber/read-file-action": Command(
        start='test -f "$INPUT_PATH"',
        needs="cat",
        variables=(("INPUT_PATH", "path"),),
        ignored=("trim",),
        lines=f'\nprintf \'content<<PLANRUN_END\\n%s\\nPLANRUN_END\\n\' "$(cat "$INPUT_PATH")" >> {_OUTPUT}',
    ),
    "aszc/change-string-case-action": Command(
        start=f"echo \"lowercase=$(printf '%s' \"$INPUT_STRING\" | tr '[:upper:]' '[:lower:]')\" >> {_OUTPUT}",
        needs="tr",
        variables=(("INPUT_STRING", "string"),),
        lines=f"\necho \"uppercase=$(printf '%s' \"$INPUT_STRING\" | tr '[:lower:]' '[:upper:]')\" >> {_OUTPUT}",
    ),
    "martinbeentjes/npm-get-version-action": Command(
        start="version=$(node -p \"require('./${INPUT_PATH:-.}/package.json').version\")",
        lines=f'\necho "current-version=$version" >> {_OUTPUT}',
        needs="node",
        variables=(("INPUT_PATH", "path"),),
    ),
    "shogo82148/actions-goveralls": Command(
        start="goveralls -service=github",
        needs="goveralls",
        options=(("-coverprofile=", "path-to-profile"), ("-flagname=", "flag-name")),
        flags=(("-parallel", "parallel"),),
        folder="working-directory",
        variables=(("COVERALLS_TOKEN", "github-token"),),
        ignored=("shallow",),
    ),
    "snapcore/action-build": Command(
        start="snapcraft pack",
        needs="snapcraft",
        folder="path",
        ignored=("snapcraft-channel", "snapcraft-args", "build-info"),
        lines=f'\necho "snap=$PWD/$(ls -t *.snap | head -n 1)" >> {_OUTPUT}',
    ),
    "snapcore/action-publish": Command(
        start="snapcraft upload",
        needs="snapcraft",
        options=(("--release", "release"),),
        words=(("snap", ""),),
        variables=(("SNAPCRAFT_STORE_CREDENTIALS", "store_login"),),
    ),
    "lycheeverse/lychee-action": Command(
        start="mkdir -p lychee\nlychee --format markdown --output lychee/out.md",
        needs="lychee",
        words=(("args", "--verbose --no-progress ."),),
        fixed=(("fail", "true"),),
        ignored=("jobsummary", "token", "lycheeversion", "checkbox"),
    ),
    "bufbuild/buf-lint-action": Command(start="buf lint", needs="buf", words=(("input", ""),)),
    "bufbuild/buf-breaking-action": Command(
        start="buf breaking", needs="buf", options=(("--against", "against"),)
    ),
    "rickstaa/action-create-tag": Command(
        start='git tag --annotate "$INPUT_TAG" --message "${INPUT_MESSAGE:-$INPUT_TAG}"',
        needs="git",
        variables=(("INPUT_TAG", "tag"), ("INPUT_MESSAGE", "message")),
        lines='\ngit push origin "refs/tags/$INPUT_TAG"',
    ),
    "r-lib/actions/check-r-package": Command(
        start='Rscript -e \'rcmdcheck::rcmdcheck(args = c("--no-manual", "--as-cran"), error_on = "warning")\'',
        needs="Rscript",
        ignored=("upload-snapshots", "upload-results"),
        folder="working-directory",
    ),
    "aws-actions/amazon-ecr-login": Command(
        start="account=$(aws sts get-caller-identity --query Account --output text)\n"
        "registry=$account.dkr.ecr.${AWS_REGION:-$(aws configure get region)}.amazonaws.com\n"
        'aws ecr get-login-password | docker login --username AWS --password-stdin "$registry"',
        needs="aws and docker",
        lines=f'\necho "registry=$registry" >> {_OUTPUT}',
        ignored=("mask-password", "skip-logout"),
    ),
    "kenchan0130/actions-system-info": Command(
        start="".join(
            f'echo "{name}=$({command})" >> {_OUTPUT}\n'
            for name, command in (
                ("hostname", "hostname"),
                ("kernel-release", "uname -r"),
                ("kernel-version", "uname -v"),
                ("platform", "uname -s | tr '[:upper:]' '[:lower:]'"),
                ("cpu-core", "getconf _NPROCESSORS_ONLN"),
                ("cpu-model", "sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1"),
                ("totalmem", "awk '/^MemTotal/ {print $2 * 1024}' /proc/meminfo"),
                ("name", "sed -n 's/^NAME=//p' /etc/os-release | tr -d '\"'"),
                ("release", "sed -n 's/^VERSION_ID=//p' /etc/os-release | tr -d '\"'"),
            )
        ).rstrip("\n"),
        needs="uname",
    ),
    "orhun/git-cliff-action": Command(
        start="mkdir -p git-cliff\ngit cliff",
        needs="git-cliff",
        options=(("--config", "config"),),
        words=(("args", "-v"),),
        ignored=("github_token", "version"),
        lines=' --output git-cliff/CHANGELOG.md\necho "changelog=git-cliff/CHANGELOG.md" >> "$GITHUB_OUTPUT"\n'
        'printf \'content<<PLANRUN_END\\n%s\\nPLANRUN_END\\n\' "$(cat git-cliff/CHANGELOG.md)" >> "$GITHUB_OUTPUT"',
    ),
    "hadolint/hadolint-action": Command(
        start="hadolint",
        needs="hadolint",
        options=(
            ("--config", "config"),
            ("--failure-threshold", "failure-threshold"),
            ("--format", "format"),
        ),
        words=(("dockerfile", "Dockerfile"),),
        fixed=(("no-fail", "false"), ("recursive", "false")),
        ignored=("verbose",),
    ),
    "bridgecrewio/checkov-action": Command(
        start="checkov",
        needs="checkov",
        options=(
            ("--directory", "directory"),
            ("--file", "file"),
            ("--framework", "framework"),
            ("--skip-check", "skip_check"),
            ("--check", "check"),
            ("--config-file", "config_file"),
            ("--output", "output_format"),
        ),
        flags=(("--soft-fail", "soft_fail"), ("--quiet", "quiet")),
        ignored=("log_level", "download_external_modules"),
    ),
    "aquasecurity/tfsec-action": Command(
        start="tfsec", needs="tfsec", words=(("working_directory", "."), ("additional_args", ""))
    ),
    "securego/gosec": Command(start="gosec", needs="gosec", words=(("args", "./..."),)),
    "dominikh/staticcheck-action": Command(
        start="staticcheck ./...",
        needs="staticcheck",
        folder="working-directory",
        ignored=("version", "install-go", "cache-key", "min-go-version"),
    ),
    "magefile/mage-action": Command(
        start="mage",
        needs="mage",
        words=(("args", ""),),
        folder="workdir",
        ignored=("version",),
        fixed=(("install-only", "false"),),
    ),
    "semgrep/semgrep-action": Command(
        start="semgrep scan --error",
        needs="semgrep",
        options=(("--config", "config"),),
    ),
    "trufflesecurity/trufflehog": Command(
        start="trufflehog git file://. --fail --no-update",
        needs="trufflehog",
        options=(("--since-commit", "base"), ("--branch", "head")),
        words=(("extra_args", ""),),
        fixed=(("path", "./"),),
    ),
    "raven-actions/actionlint": Command(
        start="actionlint",
        needs="actionlint",
        words=(("flags", ""), ("files", "")),
        ignored=("version", "cache", "matcher"),
    ),
    "streetsidesoftware/cspell-action": Command(
        start="cspell --no-progress",
        needs="cspell",
        options=(("--config", "config"), ("--root", "root")),
        words=(("files", "'**'"),),
        ignored=("inline", "incremental_files_only", "suggestions", "verbose", "check_dot_files"),
    ),
    "gaurav-nelson/github-action-markdown-link-check": Command(
        start="find",
        needs="markdown-link-check",
        words=(("folder-path", "."),),
        lines=" -name '*.md' -not -path '*/node_modules/*' -exec markdown-link-check --quiet {} +",
        ignored=("use-quiet-mode", "use-verbose-mode"),
    ),
    "nosborn/github-action-markdown-cli": Command(
        start="markdownlint",
        needs="markdownlint",
        options=(("--config", "config_file"),),
        words=(("files", "."),),
    ),
    "karancode/yamllint-github-action": Command(
        start="yamllint",
        needs="yamllint",
        options=(("--config-file", "yamllint_config_filepath"),),
        flags=(("--strict", "yamllint_strict"),),
        words=(("yamllint_file_or_dir", "."),),
        ignored=("yamllint_comment",),
    ),
    "borales/actions-yarn": Command(
        start="yarn",
        needs="yarn",
        words=(("cmd", "install"),),
        folder="dir",
        ignored=("registry-url", "scope"),
    ),
    "w9jds/firebase-action": Command(start="firebase", needs="firebase", words=(("args", ""),)),
    "superfly/flyctl-actions": Command(start="flyctl", needs="flyctl", words=(("args", ""),)),
    "nwtgck/actions-netlify": Command(
        start="netlify deploy",
        needs="netlify",
        options=(("--dir", "publish-dir"), ("--message", "deploy-message"), ("--alias", "alias")),
        flags=(("--prod", "production-deploy"),),
        ignored=(
            "github-token",
            "production-branch",
            "enable-pull-request-comment",
            "enable-commit-comment",
            "overwrites-pull-request-comment",
            "enable-github-deployment",
            "enable-commit-status",
        ),
    ),
    "azure/cli": Command(
        start='bash -c "$INPUT_SCRIPT"',
        needs="az",
        variables=(("INPUT_SCRIPT", "inlinescript"),),
        ignored=("azcliversion",),
    ),
    "google-github-actions/get-gke-credentials": Command(
        start="gcloud container clusters get-credentials",
        needs="gcloud",
        options=(("--location", "location"), ("--project", "project_id")),
        words=(("cluster_name", ""),),
        ignored=("use_auth_provider",),
    ),
    "actions/jekyll-build-pages": Command(
        start="jekyll build",
        needs="jekyll with github-pages",
        options=(("--source", "source"), ("--destination", "destination")),
        flags=(("--future", "future"), ("--verbose", "verbose")),
        ignored=("build_revision", "token"),
    ),
    "peter-evans/repository-dispatch": Command(
        start="payload=${INPUT_PAYLOAD:-{\\}}\n"
        'printf \'{"event_type":"%s","client_payload":%s}\' "$INPUT_EVENT" "$payload" |\n'
        '  gh api --method POST "repos/${INPUT_REPOSITORY:-{owner\\}/{repo\\}}/dispatches" --input -',
        needs="gh",
        variables=(
            ("GH_TOKEN", "token"),
            ("INPUT_EVENT", "event-type"),
            ("INPUT_REPOSITORY", "repository"),
            ("INPUT_PAYLOAD", "client-payload"),
        ),
    ),
    "ad-m/github-push-action": Command(
        start="git push",
        needs="git",
        flags=(("--force", "force"), ("--tags", "tags")),
        lines=' origin "HEAD:${INPUT_BRANCH:-$(git rev-parse --abbrev-ref HEAD)}"',
        variables=(("INPUT_BRANCH", "branch"), ("GH_TOKEN", "github_token")),
        folder="directory",
    ),
    "renovatebot/github-action": Command(
        start="npx renovate",
        needs="npx",
        variables=(("RENOVATE_TOKEN", "token"), ("RENOVATE_CONFIG_FILE", "configurationfile")),
        ignored=("renovate-version", "renovate-image"),
    ),
    "wagoid/commitlint-github-action": Command(
        start='npx commitlint --from "$(git merge-base origin/HEAD HEAD)" --verbose',
        needs="npx",
        options=(("--config", "configfile"),),
        fixed=(("failonerrors", "true"), ("failonwarnings", "false")),
        ignored=("token", "helpurl"),
    ),
    "chromaui/action": Command(
        start="npx chromatic",
        needs="npx",
        variables=(("CHROMATIC_PROJECT_TOKEN", "projecttoken"),),
        options=(("--build-script-name", "buildscriptname"), ("--storybook-build-dir", "storybookbuilddir")),
        flags=(("--exit-zero-on-changes", "exitzeroonchanges"), ("--only-changed", "onlychanged")),
        ignored=("token",),
        folder="workingdir",
    ),
    "justinbeckwith/linkinator-action": Command(
        start="npx linkinator",
        needs="npx",
        options=(("--config", "config"), ("--skip", "linkstoskip"), ("--concurrency", "concurrency")),
        flags=(("--recurse", "recurse"), ("--markdown", "markdown"), ("--retry", "retry")),
        words=(("paths", "*.md"),),
        ignored=("verbosity", "format"),
    ),
    "wjdp/htmltest-action": Command(
        start="htmltest", needs="htmltest", options=(("--conf", "config"),), words=(("path", ""),)
    ),
    "cloudflare/pages-action": Command(
        start="wrangler pages deploy",
        needs="wrangler",
        variables=(("CLOUDFLARE_API_TOKEN", "apitoken"), ("CLOUDFLARE_ACCOUNT_ID", "accountid")),
        options=(("--project-name", "projectname"), ("--branch", "branch")),
        words=(("directory", "."),),
        folder="workingdirectory",
        ignored=("githubtoken", "gittoken", "wranglerversion"),
    ),
    "rubygems/release-gem": Command(
        start="bundle exec rake release", needs="bundle", ignored=("await-release", "setup-trusted-publisher")
    ),
    "asdf-vm/actions/install": Command(
        start="asdf install", needs="asdf", ignored=("asdf_branch", "asdf_version", "before_install")
    ),
    "benc-uk/workflow-dispatch": Command(
        start='gh workflow run "$INPUT_WORKFLOW"',
        needs="gh",
        variables=(("INPUT_WORKFLOW", "workflow"), ("GH_TOKEN", "token")),
        options=(("--repo", "repo"), ("--ref", "ref")),
    ),
    "tsickert/discord-webhook": Command(
        start="jq --null-input '{content: env.INPUT_TEXT}' |\n"
        "  curl --fail-with-body --silent --show-error --header 'Content-Type: application/json' \\\n"
        '  --data @- "$INPUT_URL"',
        needs="curl and jq",
        variables=(("INPUT_URL", "webhook-url"), ("INPUT_TEXT", "content")),
        ignored=("username", "avatar-url"),
    ),
    "appleboy/telegram-action": Command(
        start='curl --fail-with-body --silent --show-error --data "chat_id=$INPUT_TO" \\\n'
        '  --data-urlencode "text=$INPUT_TEXT" "https://api.telegram.org/bot$INPUT_TOKEN/sendMessage"',
        needs="curl",
        variables=(("INPUT_TO", "to"), ("INPUT_TOKEN", "token"), ("INPUT_TEXT", "message")),
        ignored=("disable_web_page_preview", "debug"),
    ),
}
