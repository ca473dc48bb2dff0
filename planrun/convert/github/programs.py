"""GitHub actions that start a program with what they are given: here as the script that starts it.

An action is kept only with inputs that the script knows; any other is refused with the action.
"""

from __future__ import annotations

import re
import shlex

from planrun.convert.github.codeql import analysis
from planrun.convert.github.commands import COMMANDS
from planrun.convert.github.images import metadata
from planrun.convert.github.scripts import NEEDS as SCRIPT_NEEDS
from planrun.convert.github.scripts import script as github_script
from planrun.convert.reader import UntranslatableError, text_of
from planrun.model.record import Record
from planrun.plan.yaml.document import read_tree
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from planrun.convert.github.facts import Job

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

    def __init__(self, action: str, given: Mapping[str, Node], job: Job | None = None) -> None:
        self.action = action
        self.job = job
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

    def rest_names(self) -> list[str]:
        """Return the names of the inputs that are left."""
        return list(self._given)

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
    return _upload(file, inputs.word(category, "category") if category else "")


def _upload(file: str, category: str) -> str:
    """Return the lines that give findings to GitHub, where there is a token for it."""
    tool = ',"category":"%s"' if category else ""
    return (
        f'file={file}\n[ ! -d "$file" ] || file=$(find "$file" -name "*.sarif" | head -n 1)\n'
        'if [ -z "${GH_TOKEN:-}" ]; then echo "$file is not uploaded: there is no GH_TOKEN"; else\n'
        f'ref=$(git symbolic-ref -q HEAD || echo "$GITHUB_REF")\n'
        f'printf \'{{"commit_sha":"%s","ref":"%s","sarif":"%s"{tool}}}\' "$(git rev-parse HEAD)" "$ref" \\\n'
        f'  "$(gzip -c "$file" | base64 | tr -d "\\n")"{f" {category}" if category else ""} |\n'
        '  gh api --method POST "repos/{owner}/{repo}/code-scanning/sarifs" --input -\nfi'
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
    options += inputs.rest()
    lists = inputs.loops
    paths = inputs.each("add-paths", commas=True) or " ."
    if inputs.loops != lists:
        raise UntranslatableError("", "the paths that it adds are worked out when it runs")
    suffix = inputs.take("branch-suffix")
    if suffix not in ("", "timestamp", "short-commit-hash"):
        raise UntranslatableError("", f"its input `branch-suffix: {suffix}` has no equivalent here")
    if suffix:
        branch += "-$(date +%s)" if suffix == "timestamp" else "-$(git rev-parse --short HEAD)"
    return (
        f"{inputs.begin()}branch={branch}\ngit add -A --{paths}\n"
        'if git diff --cached --quiet; then echo "no changes"; exit 0; fi\n'
        f'before=$(git rev-parse --abbrev-ref HEAD)\ngit switch -C "$branch"\ngit commit{commit} -m {message}\n'
        f'git push --force origin "$branch"\n'
        "operation=updated\n"
        f'gh pr view "$branch" > /dev/null 2>&1 || {{\n  operation=created\n'
        f'  gh pr create --head "$branch"{options} --title {title}{text}\n}}\n'
        f'git switch "$before" || git switch --detach "$before"\n'
        'echo "pull-request-number=$(gh pr view "$branch" --json number --jq .number)" >> "$GITHUB_OUTPUT"\n'
        'echo "pull-request-url=$(gh pr view "$branch" --json url --jq .url)" >> "$GITHUB_OUTPUT"\n'
        'echo "pull-request-branch=$branch" >> "$GITHUB_OUTPUT"\n'
        'echo "pull-request-operation=$operation" >> "$GITHUB_OUTPUT"\n'
        'echo "pull-request-head-sha=$(git rev-parse "$branch")" >> "$GITHUB_OUTPUT"'
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
    place = inputs.take("destination_dir") or inputs.take("target-folder")
    into = f'"$tree"/{inputs.word(place, "destination_dir")}' if place else '"$tree"'
    kept = inputs.take("keep_files", "false").lower()
    if kept not in ("true", "false"):
        raise UntranslatableError("", "whether it keeps files is worked out when it runs")
    clean = (
        f"find {into} -mindepth 1 -maxdepth 1 ! -name .git -exec rm -rf {{}} +\n" if kept == "false" else ""
    )
    make = f"mkdir -p {into}\n" if place else ""
    return (
        f"git fetch --depth 1 origin {branch} || true\ntree=$(mktemp -d)\n"
        f'git worktree add --detach --force "$tree" $(git rev-parse -q --verify FETCH_HEAD || git rev-parse HEAD)\n'
        f"{make}{clean}cp -R {folder}/. {into}\n{cname}"
        f'git -C "$tree" add -A -f\ngit -C "$tree" diff --cached --quiet || {{\n'
        f'  git -C "$tree" commit -m {inputs.word(message, "commit_message")}\n'
        f'  git -C "$tree" push origin HEAD:{branch}\n}}\ngit worktree remove --force "$tree"'
    )


def _filters(inputs: Inputs) -> str:
    """Say of each list of patterns whether a file that it matches has changed."""
    inputs.drop("token", "list-files", "initial-fetch-depth")
    text = inputs.take("filters")
    base = inputs.take("base")
    quantifier = inputs.take("predicate-quantifier", "some")
    if "${{" in text or ":" not in text:
        raise UntranslatableError("", "its filters are not known here")
    root, problems, complete = read_tree(text.encode(), "filters", "file")
    if root is None or problems or not complete or root.kind != MAPPING:
        raise UntranslatableError("", "its filters are not read here")
    since = inputs.word(base, "base") if base else "origin/HEAD"
    lines = f"since=$(git merge-base {since} HEAD)\n"
    for name, node in root.value.items():
        words = shlex.join(_globs(node, quantifier))
        lines += (
            f'if git diff --quiet "$since" HEAD -- {words}; then changed=false; else changed=true; fi\n'
            f'echo "{name}=$changed" >> "$GITHUB_OUTPUT"\n'
        )
    return lines.rstrip("\n")


def _globs(node: Node, quantifier: str) -> list[str]:
    """Return patterns for git: lists in lists count as one, what is taken away only where all have to match."""
    if node.kind == SEQUENCE:
        return [each for item in node.value for each in _globs(item, quantifier)]
    text = text_of(node)
    is_out = text.startswith("!")
    if not text or node.kind != SCALAR or (is_out and quantifier != "every"):
        raise UntranslatableError("", f"its filter `{text}` is not read here")
    mark = "exclude,glob" if is_out else "glob"
    return [f":({mark}){each}" for each in _unbraced(text.removeprefix("!"))]


def _unbraced(text: str) -> list[str]:
    """Return the patterns that one with `{a,b}` stands for."""
    match = re.search(r"\{([^{}]*)\}", text)
    if match is None:
        return [text]
    return [
        each
        for choice in match[1].split(",")
        for each in _unbraced(f"{text[: match.start()]}{choice}{text[match.end() :]}")
    ]


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
    ignored = f"{inputs.take('ignore_paths')} {inputs.take('ignore')} {inputs.take('ignore_names')}".split()
    without = "".join(f" -not -path {shlex.quote(f'*{each}*')}" for each in ignored)
    return (
        f"find{where} -type f \\( -name '*.sh' -o -name '*.bash' \\){without} -exec shellcheck{level} {{}} +"
    )


def _image(inputs: Inputs) -> str:
    """Run the image that a step names as GitHub does: in the workspace, with the inputs as variables."""
    image, entry, args = inputs.take("image"), inputs.take("entrypoint"), inputs.words("args")
    names = inputs.take("names").split()
    options = f" --entrypoint {inputs.word(entry, 'entrypoint')}" if entry else ""
    for name in inputs.rest_names():
        variable = f"INPUT_{re.sub(r'[^A-Z0-9]', '_', name.upper())}"
        node = inputs.node(name)
        assert node is not None  # it is one of those that are left
        inputs.env[variable] = node
        names.append(variable)
    options += "".join(f" --env {name}" for name in names)
    place = '--volume "$PWD":/github/workspace --workdir /github/workspace'
    return f"docker run --rm {place}{options} {inputs.word(image, 'image')}{args}"


def _artifact(inputs: Inputs) -> str:
    """Fetch the files of another run; the last one that fits where nothing says which."""
    _token(inputs, "github_token")
    inputs.drop("search_artifacts", "allow_forks", "check_artifacts", "skip_unpack", "workflow_search")
    run, repo = inputs.take("run_id"), inputs.value("repo", "--repo ")
    options = ""
    for name, option in (
        ("workflow", "--workflow "),
        ("branch", "--branch "),
        ("commit", "--commit "),
        ("event", "--event "),
    ):
        options += inputs.value(name, option)
    wanted = inputs.take("workflow_conclusion", "success")
    status = f" --status {inputs.word(wanted, 'workflow_conclusion')}" if wanted else ""
    find = f"run=$(gh run list{repo}{options}{status} --limit 1 --json databaseId --jq '.[0].databaseId')\n"
    head = f"run={inputs.word(run, 'run_id')}\n" if run else find
    missing = inputs.take("if_no_artifact_found", "fail")
    tolerant = "" if missing == "fail" else ' || echo "no artifact is found"'
    name, path = inputs.value("name", "--name "), inputs.word(inputs.take("path", "."), "path")
    return f'{head}gh run download "$run"{repo}{name} --dir {path}{tolerant}'


def _npm_publish(inputs: Inputs) -> str:
    """Publish a package whose version is not there yet."""
    inputs.drop("provenance", "ignore-scripts")
    token = inputs.node("token")
    if token is None:
        raise UntranslatableError("", "it has no token")
    inputs.env["NODE_AUTH_TOKEN"] = token
    package, strategy = inputs.take("package", "."), inputs.take("strategy", "all")
    if strategy != "all" or package.endswith(".tgz"):
        raise UntranslatableError("", "its strategy or its package has no equivalent here")
    where = inputs.word(package.removesuffix("package.json") or ".", "package")
    registry = inputs.take("registry", "https://registry.npmjs.org/")
    option = f" --registry {inputs.word(registry, 'registry')}"
    options = option + inputs.value("access", "--access ") + inputs.value("tag", "--tag ")
    options += inputs.flag("dry-run", "--dry-run")
    return (
        f"{inputs.begin()}cd {where}\nname=$(node -p \"require('./package.json').name\")\n"
        "version=$(node -p \"require('./package.json').version\")\n"
        f'if [ "$(npm view "$name@$version" version{option} 2> /dev/null)" = "$version" ]; then\n'
        '  echo "$name@$version is published already"\nelse\n'
        f"  address={inputs.word(registry, 'registry')}\n"
        f'  npm publish{options}{inputs.rest()} "--${{address#https:}}:_authToken=$NODE_AUTH_TOKEN"\nfi\n'
        'echo "version=$version" >> "$GITHUB_OUTPUT"\necho "name=$name" >> "$GITHUB_OUTPUT"'
    )


def _codeql(inputs: Inputs) -> str:
    _token(inputs, "token")
    return analysis(inputs, _upload('"$sarif"', ""))


def _bake(inputs: Inputs) -> str:
    inputs.drop("builder", "github-token", "source")
    text = "docker buildx bake" + inputs.each("files", "--file ", commas=True)
    text += inputs.each("set", "--set ", without="type=gha")
    for name in ("push", "load", "pull", "no-cache"):
        text += inputs.flag(name, f"--{name}")
    for name in ("provenance", "sbom"):
        text += inputs.value(name, f"--{name}=")
    targets = inputs.take("targets").replace(",", " ").replace("\n", " ")
    return f"{inputs.begin()}{text}{inputs.rest()} {_spread(inputs, targets, 'targets')}".rstrip()


def _spread(inputs: Inputs, text: str, name: str) -> str:
    """Return the words of a text; those of an expression are split by the shell."""
    return inputs.word(text, name)[1:-1] if "${{" in text else shlex.join(text.split())


def _tagged(inputs: Inputs, tag: str) -> str:
    """Return the line that puts a tag without `refs/tags/` into a variable."""
    return f"tag={inputs.word(tag, 'tag')} tag=${{tag#refs/tags/}}\n"


def _asset(inputs: Inputs) -> str:
    """A file of a release, which is made where it is missing."""
    _token(inputs, "repo_token")
    inputs.drop("overwrite", "make_latest", "promote")
    tag, name = inputs.take("tag", "${{ github.ref }}"), inputs.take("asset_name")
    is_pattern = inputs.take("file_glob", "false").lower() == "true"
    file = inputs.take("file")
    title = inputs.value("release_name", "--title ") or ' --title "$tag"'
    options = title + (inputs.value("body", "--notes ") or " --notes ''") + inputs.flag("draft", "--draft")
    options += inputs.flag("prerelease", "--prerelease")
    text = (
        f"{inputs.begin()}{_tagged(inputs, tag)}"
        f'gh release view "$tag" > /dev/null 2>&1 || gh release create "$tag"{options}{inputs.rest()}\n'
    )
    if is_pattern:
        inputs.env["INPUT_FILES"] = Node(SCALAR, file, 1, 1)
        return (
            f"{text}shopt -s nullglob globstar\nIFS='\n'\nset -- $INPUT_FILES\n"
            'gh release upload "$tag" --clobber "$@"'
        )
    if not name:
        return f'{text}gh release upload "$tag" --clobber {inputs.word(file, "file")}'
    return (
        f'{text}folder=$(mktemp -d)\ncp {inputs.word(file, "file")} "$folder"/{inputs.word(name, "asset_name")}\n'
        f'gh release upload "$tag" --clobber "$folder"/{inputs.word(name, "asset_name")}\nrm -rf "$folder"'
    )


def _created_release(inputs: Inputs) -> str:
    inputs.env["GH_TOKEN"] = Node(SCALAR, "${{ github.token }}", 1, 1)
    inputs.drop("owner", "repo")
    options = inputs.value("release_name", "--title ") + inputs.value("body_path", "--notes-file ")
    options += inputs.value("body", "--notes ") + inputs.value("commitish", "--target ")
    options += "" if "--notes" in options else " --notes ''"
    options += inputs.flag("draft", "--draft") + inputs.flag("prerelease", "--prerelease")
    return (
        f"{inputs.begin()}{_tagged(inputs, inputs.take('tag_name'))}"
        f'gh release create "$tag"{options}{inputs.rest()}\n'
        "for pair in id=databaseId upload_url=uploadUrl html_url=url; do\n"
        '  value=$(gh release view "$tag" --json "${pair#*=}" --jq ".${pair#*=}")\n'
        '  case $pair in\n    id=*) echo "id=$value" ;;\n    upload_url=*) echo "upload_url=$value" ;;\n'
        '    *) echo "html_url=$value" ;;\n  esac >> "$GITHUB_OUTPUT"\ndone'
    )


def _asset_by_url(inputs: Inputs) -> str:
    inputs.env["GH_TOKEN"] = Node(SCALAR, "${{ github.token }}", 1, 1)
    kind = inputs.word(inputs.take("asset_content_type"), "asset_content_type")
    return (
        f"url={inputs.word(inputs.take('upload_url'), 'upload_url')}\n"
        f'curl --fail-with-body --silent --show-error --header "Authorization: Bearer $GH_TOKEN" '
        f"--header 'Content-Type: '{kind} \\\n  --data-binary @{inputs.word(inputs.take('asset_path'), 'asset_path')} "
        f'"${{url%%\\{{*}}?name="{inputs.word(inputs.take("asset_name"), "asset_name")}'
    )


_SINCE = """\
if [ -n "${GITHUB_BASE_REF:-}" ]; then since=$(git merge-base "origin/$GITHUB_BASE_REF" HEAD); else since=HEAD^; fi
"""


def _patterns(inputs: Inputs, name: str, sign: str = "") -> list[str]:
    """Return the patterns of an input for git, those that it takes away included."""
    found = []
    for line in inputs.take(name).split("\n"):
        text = line.strip().strip("'\"")
        if not text or text.startswith("#"):
            continue
        if "${{" in text or "{" in text:
            raise UntranslatableError("", f"its pattern `{text}` is not read here")
        marks = "exclude," if sign or text.startswith("!") else ""
        text = text.lstrip("!").removeprefix("./")
        found += [
            f":({marks}glob){text}",
            *([f":({marks}glob)**/{text[3:]}"] if text.startswith("**.") else []),
        ]
    return found


def _changed(inputs: Inputs) -> str:
    """Say which files of some patterns have changed, in the words of the action."""
    inputs.drop(
        "token", "fetch_depth", "since_last_remote_commit", "json", "quotepath", "format", "safe_output"
    )
    patterns = [
        *_patterns(inputs, "files"),
        *_patterns(inputs, "filter"),
        *_patterns(inputs, "files_ignore", "!"),
    ]
    if patterns and all("exclude" in each for each in patterns):
        patterns.append(":(glob)**")
    mark = inputs.take("separator", " ")
    words = f" -- {shlex.join(patterns)}" if patterns else ""
    names = ("all_changed_files", "all", "added_modified_renamed")
    return (
        f"{_SINCE}"
        f'all=$(git diff --name-only --diff-filter=ACMRT "$since" HEAD)\n'
        f'files=$(git diff --name-only --diff-filter=ACMRT "$since" HEAD{words})\n'
        f'modified=$(git diff --name-only "$since" HEAD{words})\nevery=$(git diff --name-only "$since" HEAD)\n'
        f"list=$(printf '%s\\n' \"$files\" | paste -s -d {shlex.quote(mark)} -)\n"
        'if [ -n "$files" ]; then any=true; else any=false; fi\n'
        'if [ -n "$modified" ]; then touched=true; else touched=false; fi\n'
        'if [ -n "$files" ] && [ "$files" = "$all" ]; then only=true; else only=false; fi\n'
        'if [ -n "$modified" ] && [ "$modified" = "$every" ]; then alone=true; else alone=false; fi\n'
        + "".join(f'echo "{name}=$list" >> "$GITHUB_OUTPUT"\n' for name in names)
        + "".join(
            f'echo "{name}=${value}" >> "$GITHUB_OUTPUT"\n'
            for name, value in (
                ("any_changed", "any"),
                ("only_changed", "only"),
                ("any_modified", "touched"),
                ("only_modified", "alone"),
            )
        )
    ).rstrip("\n")


def _add_and_commit(inputs: Inputs) -> str:
    inputs.drop("default_author", "pathspec_error_handling", "fetch", "github_token")
    name, address = inputs.take("author_name"), inputs.take("author_email")
    message = inputs.word(inputs.take("message", "Commit from GitHub Actions"), "message")
    text = ""
    for key, value, variable in (("user.name", name, "author_name"), ("user.email", address, "author_email")):
        text += f" -c {key}={inputs.word(value, variable)}" if value else ""
    branch, push = inputs.take("new_branch"), inputs.take("push", "true")
    switch = f"git switch -C {inputs.word(branch, 'new_branch')}\n" if branch else ""
    lines = f"{switch}git add{inputs.words('add', '.')}\n"
    extra = inputs.words("commit")
    again = "" if "--amend" in extra else "git diff --cached --quiet || "
    lines += f"{again}git{text} commit{extra}" + ("" if "--amend" in extra else f" -m {message}") + "\n"
    where = (
        "git push --set-upstream origin HEAD"
        if push == "true"
        else f"git push {_spread(inputs, push, 'push')}"
    )
    return lines + ("" if push == "false" else where)


def _slack(inputs: Inputs) -> str:
    """Send what a message holds as it is."""
    inputs.drop("webhook-type", "retries", "timeout", "payload-delimiter", "payload-templated")
    payload, token, hook = inputs.node("payload"), inputs.node("token"), inputs.node("webhook")
    method, strict = inputs.take("method"), inputs.take("errors", "false" if hook is None else "true").lower()
    if payload is None or not text_of(payload).lstrip().startswith("{"):
        raise UntranslatableError("", "its message is no JSON in `payload`")
    inputs.env["INPUT_PAYLOAD"] = payload
    send = "curl --fail-with-body --silent --show-error --header 'Content-Type: application/json' --data"
    send += ' "$INPUT_PAYLOAD"'
    tolerant = " || true" if strict == "false" else ""
    if method and token is not None:
        inputs.env["SLACK_BOT_TOKEN"] = token
        return f'{send} \\\n  --header "Authorization: Bearer $SLACK_BOT_TOKEN" https://slack.com/api/{shlex.quote(method)}{tolerant}'
    if hook is not None:
        inputs.env["SLACK_WEBHOOK_URL"] = hook
    return f'{send} "$SLACK_WEBHOOK_URL"{tolerant}'


def _grype(inputs: Inputs) -> str:
    inputs.drop("grype-version", "cache-db", "vex", "add-cpes-if-none")
    target = next(
        (f"{kind}{inputs.word(text, name)}" for name, kind in (("image", ""), ("sbom", "sbom:"), ("path", "dir:"))
         if (text := inputs.take(name))),
        "dir:.",
    )  # fmt: skip
    form = inputs.take("output-format", "sarif")
    default = f"results.{ {'sarif': 'sarif', 'json': 'json'}.get(form, 'txt') }"
    file = inputs.word(inputs.take("output-file", default), "output-file")
    fails = inputs.take("fail-build", "true").lower()
    cutoff = inputs.value("severity-cutoff", "--fail-on ", "medium")
    text = f"grype {target} --output {inputs.word(form, 'output-format')} --file {file}"
    text += inputs.flag("only-fixed", "--only-fixed") + inputs.flag("by-cve", "--by-cve")
    text += inputs.value("config", "--config ")
    if fails not in ("true", "false"):
        raise UntranslatableError("", f"its input `fail-build: {fails}` is worked out")
    name = form if form in ("sarif", "json") else "report"
    return (
        f'{inputs.begin()}echo "{name}="{file} >> "$GITHUB_OUTPUT"\n'
        f"{text}{cutoff if fails == 'true' else ''}{inputs.rest()}"
    )


def _syft(inputs: Inputs) -> str:
    inputs.drop(
        "artifact-name", "upload-artifact", "upload-artifact-retention", "upload-release-assets", "github-token",
        "dependency-snapshot", "syft-version",
    )  # fmt: skip
    image, path = inputs.take("image"), inputs.take("path", ".")
    target = inputs.word(image, "image") if image else f"dir:{inputs.word(path, 'path')}"
    form = inputs.take("format", "spdx-json")
    file = inputs.word(inputs.take("output-file", "sbom.spdx.json"), "output-file")
    return f"syft {target} --output {inputs.word(form, 'format')}={file}{inputs.value('config', '--config ')}"


def _zizmor(inputs: Inputs) -> str:
    inputs.drop("version", "color", "annotations", "token", "fail-on-no-inputs")
    shown = inputs.take("advanced-security", "true").lower()
    text = "zizmor"
    for name in ("persona", "min-severity", "min-confidence", "config"):
        text += inputs.value(name, f"--{name}=")
    if inputs.take("online-audits", "true").lower() == "false":
        text += " --no-online-audits"
    words = inputs.words("inputs", ".")
    if shown == "false":
        return f"{text}{words}"
    if shown != "true":
        raise UntranslatableError("", "whether its findings go to GitHub is worked out")
    inputs.env["GH_TOKEN"] = Node(SCALAR, "${{ github.token }}", 1, 1)
    head = '[ -n "${GH_TOKEN:-}" ] || unset GH_TOKEN\n'
    return f"{head}{text} --format=sarif{words} > zizmor.sarif\n{_upload('zizmor.sarif', 'zizmor')}"


def _r_dependencies(inputs: Inputs) -> str:
    inputs.drop("cache", "cache-version", "pak-version", "install-pandoc", "lockfile-create-lib", "upgrade")
    wanted = ["deps::.", "any::sessioninfo"] if (given := inputs.take("packages")) == "" else _list(given)
    wanted += _list(inputs.take("extra-packages"))
    needs = inputs.take("needs")
    dependencies = inputs.take("dependencies", '"all"').replace("'", '"')
    if not re.fullmatch(r'"[a-z]+"|TRUE|FALSE|NA', dependencies) or any("$" in each for each in wanted):
        raise UntranslatableError("", "its packages are worked out")
    extra = (
        f'\nconfig <- desc::desc_get("Config/Needs/{needs}")\n'
        'if (!is.na(config)) packages <- c(packages, trimws(strsplit(config, ",")[[1]]))'
        if re.fullmatch(r"[\w-]+", needs)
        else ""
    )
    names = ", ".join(f'"{each}"' for each in wanted)
    return (
        f"Rscript - <<'END'\npackages <- c({names}){extra}\n"
        f"pak::pkg_install(packages, dependencies = {dependencies})\nEND"
    )


def _list(text: str) -> list[str]:
    return [each for each in re.split(r"[,\s]+", text) if each]


def _govulncheck(inputs: Inputs) -> str:
    file = inputs.take("output-file")
    into = f" > {inputs.word(file, 'output-file')}" if file else ""
    return (
        f"govulncheck{inputs.value('output-format', '-format ')}{inputs.words('go-package', './...')}{into}"
    )


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
    "docker/metadata-action": (metadata, "git", "", ()),
    "actions/github-script": (github_script, SCRIPT_NEEDS, "", ()),
    "github/codeql-action/analyze": (
        _codeql, "codeql and gh", "", (),
    ),
    "actions/deploy-pages": (_pages_branch, "git", "", ("artifact_name", "timeout", "error_count", "preview", "token")),
    "docker:": (_image, "docker", "", ()),
    "dawidd6/action-download-artifact": (_artifact, "gh", "", ()),
    "js-devtools/npm-publish": (_npm_publish, "npm", "", ()),
    "docker/bake-action": (_bake, "docker with buildx", "workdir", ()),
    "svenstaro/upload-release-action": (_asset, "gh", "", ()),
    "actions/create-release": (_created_release, "gh", "", ()),
    "actions/upload-release-asset": (_asset_by_url, "curl", "", ()),
    "tj-actions/changed-files": (_changed, "git", "path", ()),
    "step-security/changed-files": (_changed, "git", "path", ()),
    "ana06/get-changed-files": (_changed, "git", "", ()),
    "jitterbit/get-changed-files": (_changed, "git", "", ()),
    "endbug/add-and-commit": (_add_and_commit, "git", "cwd", ()),
    "slackapi/slack-github-action": (_slack, "curl", "", ()),
    "anchore/scan-action": (_grype, "grype", "", ()),
    "anchore/sbom-action": (_syft, "syft", "", ()),
    "zizmorcore/zizmor-action": (_zizmor, "zizmor", "", ()),
    "r-lib/actions/setup-r-dependencies": (_r_dependencies, "Rscript with pak", "working-directory", ()),
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
        _govulncheck, "govulncheck", "work-dir",
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


def is_program(action: str) -> bool:
    """Say whether an action is known to start a program."""
    return action in TOOLS or action in COMMANDS


def program_of(action: str, given: Mapping[str, Node], job: Job) -> Program | None:
    """Return the script of an action; None for one that is not known.

    Raises UntranslatableError for inputs that it has no words for.
    """
    known = TOOLS.get(action)
    row = COMMANDS.get(action)
    if row is not None:
        known = (row.script, row.needs, row.folder, row.ignored)
    if known is None:
        return None
    make, needed, folder, ignored = known
    inputs = Inputs(action, given, job)
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
