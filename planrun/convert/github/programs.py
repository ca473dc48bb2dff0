"""GitHub actions that start a program with what they are given: here as the script that starts it.

An action is kept only with inputs that the script knows; any other is refused with the action.
"""

from __future__ import annotations

import re
import shlex

from planrun.convert.reader import UntranslatableError, text_of
from planrun.model.record import Record
from planrun.plan.yaml.node import SCALAR, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_WHOLE = re.compile(r"\s*\$\{\{[^}]*\}\}\s*")
_LOOP = """\
while IFS= read -r each; do
  [ -z "$each" ] || set -- "$@" {option}"$each"
done <<END
{source}
END
"""


class Program(Record):
    """What an action becomes: a script, the variables that it reads, and how that differs.

    `folder`: where it runs, None for the folder of the job.
    """

    script: str
    env: Mapping[str, Node]
    message: str
    folder: Node | None = None


class Inputs:
    """What an action is given, taken piece by piece; what is left is not known."""

    def __init__(self, action: str, given: Mapping[str, Node]) -> None:
        self.action = action
        self._given = {name.lower(): node for name, node in given.items() if text_of(node)}
        self.env: dict[str, Node] = {}
        self.unused: list[str] = []  # inputs that were given, and make no difference here
        self.loops = ""  # lines before the program that collect arguments, as "$@"

    def take(self, name: str, otherwise: str = "") -> str:
        """Return the text of an input and take it off."""
        node = self._given.pop(name, None)
        return otherwise if node is None else text_of(node).strip()

    def node(self, name: str) -> Node | None:
        """Return the value of an input and take it off."""
        return self._given.pop(name, None)

    def drop(self, *names: str) -> None:
        """Take off inputs that make no difference here."""
        self.unused += [name for name in names if self._given.pop(name, None) is not None]

    def word(self, text: str, name: str) -> str:
        """Return a text as one word of the script: in quotes, or as a variable where an expression is in it."""
        if "${{" not in text:
            return shlex.quote(text)
        variable = f"INPUT_{re.sub(r'[^A-Z0-9]', '_', name.upper())}"
        if variable in self.env and text_of(self.env[variable]) != text:
            variable = f"{variable}_{len(self.env) + 1}"
        self.env[variable] = Node(SCALAR, text, 1, 1)
        return f'"${variable}"'

    def value(self, name: str, option: str, otherwise: str = "") -> str:
        """Return an option with the value of an input; "" where there is none."""
        text = self.take(name, otherwise)
        return f" {option}{self.word(text, name)}" if text else ""

    def flag(self, name: str, option: str, otherwise: str = "false") -> str:
        """Return an option that an input turns on."""
        text = self.take(name, otherwise).lower()
        if text in ("true", "false"):
            return f" {option}" if text == "true" else ""
        if "${{" not in text:
            raise UntranslatableError("", f"`{name}: {text}` is neither true nor false")
        self.loops += f'[ {self.word(text, name)} != true ] || set -- "$@" {option}\n'
        return ""

    def words(self, name: str, otherwise: str = "") -> str:
        """Return the words of an input."""
        text = self.take(name, otherwise)
        if not text:
            return ""
        if "${{" in text:
            return f" {self.word(text, name)[1:-1]}"  # the shell splits it
        try:
            return f" {shlex.join(shlex.split(text))}"
        except ValueError:
            raise UntranslatableError("", f"`{name}: {text}` has a quote that is not closed") from None

    def each(self, name: str, option: str = "", *, commas: bool = False, without: str = "\n") -> str:
        """Return an option for each line of an input; lines that a run gives are collected by a loop."""
        found = ""
        text = self.take(name)
        if commas and "${{" not in text:
            text = text.replace(",", "\n")
        for line in map(str.strip, text.split("\n")):
            if without in line:
                self.unused.append(name)
                continue
            if line and _WHOLE.fullmatch(line):
                source = self.word(line, name).strip('"')
                if commas:
                    source = f"$(printf '%s' \"{source}\" | tr ',' '\\n')"
                self.loops += _LOOP.format(option=option, source=source)
            elif line:
                found += f" {option}{self.word(line, name)}"
        return found

    def rest(self) -> str:
        """Return what loops have collected as words."""
        return ' "$@"' if self.loops else ""

    def begin(self) -> str:
        """Return the lines before the program."""
        return f"set --\n{self.loops}" if self.loops else ""

    def finish(self) -> None:
        """Raise UntranslatableError where something is left."""
        if self._given:
            name = next(iter(self._given))
            raise UntranslatableError("", f"its input `{name}` has no equivalent here")


def _token(inputs: Inputs, *names: str) -> None:
    """Give the script the token that gh reads."""
    node = next((node for node in map(inputs.node, names) if node is not None), None)
    inputs.env["GH_TOKEN"] = node or Node(SCALAR, "${{ github.token }}", 1, 1)


def _login(inputs: Inputs) -> str:
    inputs.drop("logout", "ecr")
    user, registry = inputs.take("username"), inputs.take("registry")
    password = inputs.node("password")
    if password is None or not user:
        raise UntranslatableError("", "it has no user name and password")
    inputs.env["INPUT_PASSWORD"] = password
    where = f" {inputs.word(registry, 'registry')}" if registry else ""
    login = f"docker login{where} --username {inputs.word(user, 'username')} --password-stdin"
    return f"printf '%s' \"$INPUT_PASSWORD\" | {login}"


def _build(inputs: Inputs) -> str:
    inputs.drop("github-token", "builder", "call")
    context = inputs.take("context", ".")
    if context.startswith(("{{", "http", "git@")):
        raise UntranslatableError("", f"its context {context} is fetched from elsewhere")
    text = "docker buildx build"
    for name, option in (("file", "--file "), ("target", "--target "), ("network", "--network ")):
        text += inputs.value(name, option)
    for name in ("cache-from", "cache-to"):
        text += inputs.each(name, f"--{name} ", without="type=gha")
    for name, option in (
        ("build-args", "--build-arg "), ("labels", "--label "), ("outputs", "--output "), ("add-hosts", "--add-host "),
        ("build-contexts", "--build-context "), ("annotations", "--annotation "),
    ):  # fmt: skip
        text += inputs.each(name, option)
    text += inputs.each("tags", "--tag ", commas=True)
    text += inputs.value("platforms", "--platform ")
    for name in ("push", "load", "pull", "no-cache"):
        text += inputs.flag(name, f"--{name}")
    for name in ("provenance", "sbom"):
        text += inputs.value(name, f"--{name}=")
    where = inputs.word(context, "context")
    return (
        f"{inputs.begin()}{text}{inputs.rest()} --metadata-file build-metadata.json {where}\n"
        'digest=$(sed -n \'s/.*"containerimage.digest": *"\\([^"]*\\)".*/\\1/p\' build-metadata.json)\n'
        "rm -f build-metadata.json\n"
        'echo "digest=$digest" >> "$GITHUB_OUTPUT"'
    )


def _release(inputs: Inputs) -> str:
    """A release and its files; one that is there gets the files."""
    _token(inputs, "token")
    inputs.drop(
        "fail_on_unmatched_files", "make_latest", "overwrite_files", "allowupdates", "omitbodyduringupdate"
    )
    tag = inputs.take("tag_name") or inputs.take("tag") or "${{ github.ref_name }}"
    name = inputs.take("name") or tag
    options = f" --title {inputs.word(name, 'name')}"
    options += inputs.value("body", "--notes ") + inputs.value("body_path", "--notes-file ")
    options += inputs.value("bodyfile", "--notes-file ")
    options += inputs.value("target_commitish", "--target ") + inputs.value("commit", "--target ")
    for key in ("generate_release_notes", "generatereleasenotes"):
        options += inputs.flag(key, "--generate-notes")
    if "--notes" not in options and "--generate-notes" not in options:
        options += " --notes ''"
    options += inputs.flag("draft", "--draft") + inputs.flag("prerelease", "--prerelease")
    files = "\n".join(
        line
        for line in (inputs.take("files") + "\n" + inputs.take("artifacts").replace(",", "\n")).split("\n")
        if line.strip()
    )
    release = inputs.word(tag, "tag_name")
    text = (
        f"{inputs.begin()}if ! gh release view {release} > /dev/null 2>&1; then\n"
        f"  gh release create {release}{options}{inputs.rest()}\nfi\n"
    )
    if not files:
        return text
    inputs.env["INPUT_FILES"] = Node(SCALAR, files, 1, 1)
    return (
        f"{text}shopt -s nullglob globstar\nIFS='\n'\nset -- $INPUT_FILES\n"
        f'[ "$#" = 0 ] || gh release upload {release} --clobber "$@"'
    )


def _retry(inputs: Inputs) -> str:
    inputs.drop("warning_on_retry", "polling_interval_seconds")
    for name, usual in (("retry_on", "any"), ("shell", "bash"), ("continue_on_error", "false")):
        if (asked := inputs.take(name, usual)) != usual:
            raise UntranslatableError("", f"its input `{name}: {asked}` has no equivalent here")
    command = inputs.node("command")
    if command is None:
        raise UntranslatableError("", "it has no command")
    inputs.env["INPUT_COMMAND"] = command
    seconds, minutes = inputs.take("timeout_seconds"), inputs.take("timeout_minutes")
    wait, most = inputs.take("retry_wait_seconds", "10"), inputs.take("max_attempts", "3")
    after = inputs.take("on_retry_command")
    again = f"  bash -c {inputs.word(after, 'on_retry_command')} || true\n" if after else ""
    limit = f"{seconds}s" if seconds else f"{minutes}m" if minutes else ""
    bounded = f"timeout {inputs.word(limit, 'timeout')} " if limit else ""
    return (
        f'attempt=1\nuntil {bounded}bash -c "$INPUT_COMMAND"; do\n'
        f'  [ "$attempt" -lt {inputs.word(most, "max_attempts")} ] || exit 1\n'
        f"{again}  attempt=$((attempt + 1))\n  sleep {inputs.word(wait, 'retry_wait_seconds')}\ndone"
    )


def _sarif(inputs: Inputs) -> str:
    _token(inputs, "token")
    inputs.drop("wait-for-processing", "checkout_path", "add-snippets", "matrix")
    file = inputs.word(inputs.take("sarif_file", "../results"), "sarif_file")
    category = inputs.take("category")
    tool = ',"category":"%s"' if category else ""
    value = f" {inputs.word(category, 'category')}" if category else ""
    return (
        f'file={file}\n[ ! -d "$file" ] || file=$(find "$file" -name "*.sarif" | head -n 1)\n'
        f'ref=$(git symbolic-ref -q HEAD || echo "$GITHUB_REF")\n'
        f'printf \'{{"commit_sha":"%s","ref":"%s","sarif":"%s"{tool}}}\' "$(git rev-parse HEAD)" "$ref" \\\n'
        f'  "$(gzip -c "$file" | base64 | tr -d "\\n")"{value} |\n'
        '  gh api --method POST "repos/{owner}/{repo}/code-scanning/sarifs" --input -'
    )


def _pull_request(inputs: Inputs) -> str:
    _token(inputs, "token")
    inputs.drop("delete-branch", "committer", "sign-commits", "maintainer-can-modify", "git-token")
    branch = inputs.word(inputs.take("branch", "create-pull-request/patch"), "branch")
    message = inputs.word(
        inputs.take("commit-message", "[create-pull-request] automated change"), "commit-message"
    )
    title = inputs.word(inputs.take("title", "Changes by create-pull-request action"), "title")
    body = inputs.take("body-path")
    text = f" --body-file {inputs.word(body, 'body-path')}" if body else ""
    text = text or f" --body {inputs.word(inputs.take('body', 'Automated changes'), 'body')}"
    inputs.drop("body")
    options = inputs.value("base", "--base ")
    for name, option in (("labels", "--label "), ("assignees", "--assignee "), ("reviewers", "--reviewer ")):
        options += inputs.each(name, option, commas=True)
    options += inputs.flag("draft", "--draft")
    commit = inputs.flag("signoff", "--signoff") + inputs.value("author", "--author ")
    paths = inputs.each("add-paths") or " ."
    if inputs.loops:
        raise UntranslatableError("", "its lists are worked out when it runs")
    return (
        f'git add -A --{paths}\nif git diff --cached --quiet; then echo "no changes"; exit 0; fi\n'
        f"before=$(git rev-parse --abbrev-ref HEAD)\ngit switch -C {branch}\ngit commit{commit} -m {message}\n"
        f"git push --force origin {branch}\n"
        f"gh pr view {branch} > /dev/null 2>&1 ||\n  gh pr create --head {branch}{options} --title {title}{text}\n"
        f'git switch "$before" || git switch --detach "$before"\n'
        f'echo "pull-request-number=$(gh pr view {branch} --json number --jq .number)" >> "$GITHUB_OUTPUT"'
    )


def _commit(inputs: Inputs) -> str:
    message = inputs.word(inputs.take("commit_message", "Apply automatic changes"), "commit_message")
    inputs.drop("status_options", "skip_dirty_check", "skip_fetch", "skip_checkout", "disable_globbing")
    inputs.drop("commit_user_name", "commit_user_email", "create_branch", "repository")
    author = inputs.value("commit_author", "--author ")
    options = inputs.words("commit_options")
    paths = inputs.words("file_pattern", ".")
    branch = inputs.take("branch")
    where = f" origin HEAD:{inputs.word(branch, 'branch')}" if branch else ""
    push = inputs.words("push_options")
    return (
        f"git add -A --{paths}\ngit diff --cached --quiet || {{\n  git commit{author}{options} -m {message}\n"
        f"  git push{push}{where}\n}}"
    )


def _ssh(inputs: Inputs) -> str:
    inputs.drop(
        "timeout", "command_timeout", "debug", "fingerprint", "use_insecure_cipher", "protocol", "sync"
    )
    host, user = inputs.take("host"), inputs.take("username", "root")
    port = inputs.take("port", "22")
    key, script = inputs.node("key"), inputs.node("script")
    if key is None or script is None or "," in host:
        raise UntranslatableError("", "only one host with a key and a script is converted")
    if inputs.take("script_stop", "false").lower() not in ("true", "false"):
        raise UntranslatableError("", "`script_stop` is worked out when it runs")
    inputs.env |= {"INPUT_KEY": key, "INPUT_SCRIPT": script}
    return (
        'umask 077\nkey=$(mktemp)\ntrap \'rm -f "$key"\' EXIT\nprintf \'%s\\n\' "$INPUT_KEY" > "$key"\n'
        f'printf \'%s\\n\' "$INPUT_SCRIPT" | ssh -i "$key" -o BatchMode=yes -p {inputs.word(port, "port")} '
        f"{inputs.word(user, 'username')}@{inputs.word(host, 'host')} bash -s"
    )


def _trivy(inputs: Inputs) -> str:
    inputs.drop(
        "cache", "cache-dir", "skip-setup-trivy", "version", "token-setup-trivy", "limit-severities-for-sarif"
    )
    kind, target = inputs.take("scan-type", "image"), inputs.take("image-ref") or inputs.take("scan-ref", ".")
    text = f"trivy {inputs.word(kind, 'scan-type')}"
    for name, option in (
        ("format", "--format "), ("output", "--output "), ("exit-code", "--exit-code "), ("severity", "--severity "),
        ("vuln-type", "--pkg-types "), ("scanners", "--scanners "), ("skip-dirs", "--skip-dirs "),
        ("timeout", "--timeout "),
        ("skip-files", "--skip-files "), ("trivyignores", "--ignorefile "), ("trivy-config", "--config "),
        ("template", "--template "), ("ignore-policy", "--ignore-policy "),
    ):  # fmt: skip
        text += inputs.value(name, option)
    for name in ("ignore-unfixed", "list-all-pkgs", "hide-progress"):
        text += inputs.flag(name, f"--{'no-progress' if name == 'hide-progress' else name}")
    return f"{inputs.begin()}{text}{inputs.rest()} {inputs.word(target, 'target')}"


def _packages(inputs: Inputs) -> str:
    inputs.drop("version", "execute_install_scripts", "debug", "add-repository")
    return f"sudo apt-get update\nsudo apt-get install --yes{inputs.words('packages')}"


def _coveralls(inputs: Inputs) -> str:
    node = inputs.node("github-token") or Node(SCALAR, "${{ github.token }}", 1, 1)
    inputs.env["COVERALLS_REPO_TOKEN"] = node
    inputs.drop("base-path", "coverage-reporter-version", "debug", "compare-ref")
    tolerant = inputs.take("fail-on-error", "true") == "false"
    if inputs.take("parallel-finished") == "true":
        inputs.drop("carryforward", "format")
        return "coveralls done"
    text = "coveralls report" + inputs.value("format", "--format=") + inputs.value("flag-name", "--job-flag=")
    text += inputs.flag("parallel", "--parallel") + inputs.flag("allow-empty", "--allow-empty")
    text += inputs.value("file", "") or inputs.words("files") or inputs.value("path-to-lcov", "")
    return f"{inputs.begin()}{text}{inputs.rest()}{' || true' if tolerant else ''}"


def _pages_branch(inputs: Inputs) -> str:
    """Replace the content of a branch by that of a folder, in a commit of its own."""
    token = inputs.node("github_token") or inputs.node("token") or inputs.node("personal_token")
    inputs.drop("user_name", "user_email", "clean", "force", "enable_jekyll")
    folder = inputs.word(inputs.take("publish_dir") or inputs.take("folder", "public"), "publish_dir")
    branch = inputs.word(inputs.take("publish_branch") or inputs.take("branch", "gh-pages"), "publish_branch")
    message = (
        inputs.take("commit_message")
        or inputs.take("full_commit_message")
        or inputs.take("commit-message", "deploy")
    )
    name = inputs.take("cname")
    cname = f'echo {inputs.word(name, "cname")} > "$tree/CNAME"\n' if name else ""
    if token is not None:
        inputs.env["GH_TOKEN"] = token
    return (
        f"git fetch --depth 1 origin {branch} || true\ntree=$(mktemp -d)\n"
        f'git worktree add --detach --force "$tree" $(git rev-parse -q --verify FETCH_HEAD || git rev-parse HEAD)\n'
        f'find "$tree" -mindepth 1 -maxdepth 1 ! -name .git -exec rm -rf {{}} +\ncp -R {folder}/. "$tree"\n{cname}'
        f'git -C "$tree" add -A -f\ngit -C "$tree" diff --cached --quiet || {{\n'
        f'  git -C "$tree" commit -m {inputs.word(message, "commit_message")}\n'
        f'  git -C "$tree" push origin HEAD:{branch}\n}}\ngit worktree remove --force "$tree"'
    )


def _filters(inputs: Inputs) -> str:
    """Say of each list of patterns whether a file that it matches has changed."""
    inputs.drop("token", "list-files", "initial-fetch-depth")
    text = inputs.take("filters")
    base = inputs.take("base")
    if "${{" in text or ":" not in text:
        raise UntranslatableError("", "its filters are not known here")
    groups: dict[str, list[str]] = {}
    for line in text.split("\n"):
        if not line.strip() or line.strip().startswith("#"):
            continue
        if head := re.fullmatch(r"([A-Za-z_][\w-]*):\s*", line):
            groups[head[1]] = []
        elif (item := re.fullmatch(r"\s*- ['\"]?([^'\"!&*|{]+(?:\*[^'\"{]*)*)['\"]?\s*", line)) and groups:
            groups[next(reversed(groups))].append(item[1])
        else:
            raise UntranslatableError("", f"its filter `{line.strip()}` is not read here")
    since = inputs.word(base, "base") if base else "origin/HEAD"
    lines = f"since=$(git merge-base {since} HEAD)\n"
    for name, patterns in groups.items():
        words = " ".join(shlex.quote(f":(glob){pattern}") for pattern in patterns)
        lines += (
            f'if git diff --quiet "$since" HEAD -- {words}; then changed=false; else changed=true; fi\n'
            f'echo "{name}=$changed" >> "$GITHUB_OUTPUT"\n'
        )
    return lines.rstrip("\n")


def _tool(command: str, *words: tuple[str, str]) -> Callable[[Inputs], str]:
    """Return the script of a program whose inputs are words behind it: their names and what they are without."""

    def make(inputs: Inputs) -> str:
        return command + "".join(inputs.words(name, otherwise) for name, otherwise in words)

    return make


def _cargo(inputs: Inputs) -> str:
    inputs.drop("use-cross")
    toolchain = inputs.take("toolchain")
    chosen = f" {inputs.word(f'+{toolchain}', 'toolchain')}" if toolchain else ""
    return f"cargo{chosen}{inputs.words('command')}{inputs.words('args')}"


def _deny(inputs: Inputs) -> str:
    inputs.drop("rust-version", "credentials", "use-git-cli", "log-level")
    path = inputs.value("manifest-path", "--manifest-path ")
    arguments = inputs.words("arguments", "--all-features")
    return f"cargo deny{path}{arguments}{inputs.words('command', 'check')}{inputs.words('command-arguments')}"


def _ruff(inputs: Inputs) -> str:
    inputs.drop("version-file", "checksum", "github-token")
    arguments = inputs.words("args", "check")
    return f"ruff{arguments}{inputs.words('src', '.')}"


def _precommit(inputs: Inputs) -> str:
    return f"pre-commit run --show-diff-on-failure --color=always{inputs.words('extra_args', '--all-files')}"


def _composer(inputs: Inputs) -> str:
    inputs.drop("ignore-cache", "custom-cache-key", "custom-cache-suffix")
    command = {"locked": "install", "highest": "update", "lowest": "update --prefer-lowest --prefer-stable"}
    wanted = inputs.take("dependency-versions", "locked")
    if wanted not in command:
        raise UntranslatableError("", f"its input `dependency-versions: {wanted}` is worked out when it runs")
    options = inputs.words("composer-options")
    return f"composer {command[wanted]} --no-interaction --no-progress --ansi{options}"


def _typos(inputs: Inputs) -> str:
    inputs.drop("write_changes")
    return f"typos{inputs.value('config', '--config ')}{inputs.words('files', '.')}"


def _black(inputs: Inputs) -> str:
    inputs.drop("use_pyproject", "summary", "output-file", "jupyter")
    return f"black{inputs.words('options', '--check --diff')}{inputs.words('src', '.')}"


def _shellcheck(inputs: Inputs) -> str:
    inputs.drop("version", "check_together", "format")
    where = inputs.words("scandir", ".")
    level = inputs.value("severity", "--severity=")
    return f"find{where} -type f \\( -name '*.sh' -o -name '*.bash' \\) -exec shellcheck{level} {{}} +"


_GO = "working-directory"
# Script, programs that it needs, the input that names its folder, and inputs that make no difference here.
TOOLS: Mapping[str, tuple[Callable[[Inputs], str], str, str, tuple[str, ...]]] = {
    "docker/login-action": (_login, "docker", "", ()),
    "docker/build-push-action": (_build, "docker with buildx", "", ()),
    "softprops/action-gh-release": (_release, "gh", "", ()),
    "ncipollo/release-action": (_release, "gh", "", ()),
    "nick-fields/retry": (_retry, "bash", "", ()),
    "nick-invision/retry": (_retry, "bash", "", ()),
    "github/codeql-action/upload-sarif": (_sarif, "gh", "", ()),
    "peter-evans/create-pull-request": (_pull_request, "git and gh", "path", ()),
    "stefanzweifel/git-auto-commit-action": (_commit, "git", "repository", ()),
    "appleboy/ssh-action": (_ssh, "ssh", "", ()),
    "aquasecurity/trivy-action": (_trivy, "trivy", "", ()),
    "awalsh128/cache-apt-pkgs-action": (_packages, "apt-get", "", ()),
    "coverallsapp/github-action": (_coveralls, "coveralls", "", ()),
    "peaceiris/actions-gh-pages": (_pages_branch, "git", "", ()),
    "jamesives/github-pages-deploy-action": (_pages_branch, "git", "", ()),
    "dorny/paths-filter": (_filters, "git", "", ()),
    "goreleaser/goreleaser-action": (
        _tool("goreleaser", ("args", "")), "goreleaser", "workdir",
        ("version", "distribution"),
    ),
    "golangci/golangci-lint-action": (
        _tool("golangci-lint run", ("args", "")), "golangci-lint", _GO,
        ("version", "only-new-issues", "skip-cache", "skip-pkg-cache", "skip-build-cache", "github-token",
        "install-mode",
         "skip-save-cache", "cache-invalidation-interval", "verify", "version-file",
         "problem-matchers"),
    ),
    "golang/govulncheck-action": (
        _tool("govulncheck", ("go-package", "./...")), "govulncheck", "work-dir",
        ("go-version-input", "go-version-file", "check-latest", "cache", "repo-checkout", "cache-dependency-path"),
    ),
    "embarkstudios/cargo-deny-action": (_deny, "cargo-deny", "", ()),
    "actions-rs/cargo": (_cargo, "cargo", "", ()),
    "actions-rs/clippy-check": (
        _tool("cargo clippy", ("args", "")), "cargo", "",
        ("token", "name", "toolchain", "use-cross"),
    ),
    "actions-rs/audit-check": (_tool("cargo audit"), "cargo-audit", "", ("token",)),
    "rustsec/audit-check": (_tool("cargo audit"), "cargo-audit", _GO, ("token",)),
    "actions-rust-lang/audit": (_tool("cargo audit"), "cargo-audit", _GO, ("token", "file", "createissues")),
    "astral-sh/ruff-action": (_ruff, "ruff", "", ("version",)),
    "chartboost/ruff-action": (_ruff, "ruff", "", ("version",)),
    "psf/black": (_black, "black", "", ("version",)),
    "pre-commit/action": (_precommit, "pre-commit", "", ("token",)),
    "crate-ci/typos": (_typos, "typos", "", ()),
    "codespell-project/actions-codespell": (
        lambda inputs: "codespell" + inputs.value("skip", "--skip ")
        + inputs.value("ignore_words_list", "--ignore-words-list ")
        + inputs.value("ignore_words_file", "--ignore-words ") + inputs.words("path", "."),
        "codespell", "", ("check_filenames",),
    ),
    "ludeeus/action-shellcheck": (_shellcheck, "shellcheck", "", ()),
    "davidanson/markdownlint-cli2-action": (
        lambda inputs: "markdownlint-cli2" + inputs.value("config", "--config ") + (inputs.each("globs") or " '*.md'"),
        "markdownlint-cli2", "", (),
    ),
    "ibiqlik/action-yamllint": (
        lambda inputs: "yamllint" + inputs.value("config_file", "--config-file ") + inputs.flag("strict", "--strict")
        + inputs.words("file_or_dir", "."),
        "yamllint", "", ("format", "no_warnings"),
    ),
    "editorconfig-checker/action-editorconfig-checker": (
        lambda _inputs: "editorconfig-checker", "editorconfig-checker", "",
        ("version",),
    ),
    "jakebailey/pyright-action": (
        _tool("pyright", ("extra-args", "")), "pyright", _GO, ("version", "python-version", "python-platform",
        "annotate", "no-comments"),
    ),
    "ramsey/composer-install": (_composer, "composer", _GO, ()),
    "bahmutov/npm-install": (_tool("npm ci"), "npm", _GO, ("usecache", "uselockfile", "userollingcache")),
    "helm/kind-action": (
        lambda inputs: "kind create cluster --wait " + inputs.word(inputs.take("wait", "60s"), "wait")
        + inputs.value("cluster_name", "--name ", "chart-testing") + inputs.value("config", "--config ")
        + inputs.value("node_image", "--image "),
        "kind", "", ("version", "kubectl_version", "log_level", "verbosity"),
    ),
    "julia-actions/julia-buildpkg": (
        lambda _inputs: "julia --project=. -e 'using Pkg; Pkg.build()'", "julia", "",
        ("localregistry",),
    ),
    "julia-actions/julia-runtest": (
        lambda _inputs: "julia --project=. -e 'using Pkg; Pkg.test(coverage=true)'", "julia", "",
        ("annotate",),
    ),
}  # fmt: skip
# Actions that do nothing which a plan needs, and what is said of them.
LEFT_OUT: Mapping[str, str] = {
    "step-security/harden-runner": "the network of the steps is not watched",
    "mxschmitt/action-tmate": "no session for debugging is opened",
    "dorny/test-reporter": "test results are not published; see `test_report` of steps",
    "mikepenz/action-junit-report": "test results are not published; see `test_report` of steps",
    "enricomi/publish-unit-test-result-action": "test results are not published; see `test_report` of steps",
    "cachix/cachix-action": "no binary cache is used",
    "determinatesystems/magic-nix-cache-action": "no binary cache is used",
    "determinatesystems/flakehub-cache-action": "no binary cache is used",
    "jlumbroso/free-disk-space": "nothing is deleted from the machine",
    "easimon/maximize-build-space": "nothing is deleted from the machine",
    "styfle/cancel-workflow-action": "earlier runs are not cancelled",
    "julia-actions/cache": "files stay from run to run",
}


def program_of(action: str, given: Mapping[str, Node]) -> Program | None:
    """Return the script of an action; None for one that is not known.

    Raises UntranslatableError for inputs that it has no words for.
    """
    known = TOOLS.get(action)
    if known is None:
        return None
    make, needed, folder, ignored = known
    inputs = Inputs(action, given)
    where = inputs.node(folder) if folder else None
    if inputs.take("install-only").lower() == "true":
        raise UntranslatableError("", "it only installs the program here")
    inputs.drop(*ignored)
    script = make(inputs)
    inputs.finish()
    message = f"{action} becomes a script: {needed} must be there, in the version that is wanted"
    if inputs.unused:
        message += f"; not used: {', '.join(dict.fromkeys(inputs.unused))}"
    return Program(script=f"{script}\n", env=inputs.env, message=message, folder=where)
