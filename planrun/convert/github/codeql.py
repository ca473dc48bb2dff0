"""`github/codeql-action` as commands of the CodeQL CLI: a database for each language, its analysis, and the upload."""

from __future__ import annotations

import shlex

from planrun.convert.reader import UntranslatableError, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from planrun.convert.github.facts import Job
    from planrun.convert.github.programs import Inputs
    from planrun.plan.yaml.node import Node

# Languages that need no build; for others the CLI builds by itself, or is told the build mode.
_UNBUILT = frozenset((
    "python", "javascript", "javascript-typescript", "typescript", "ruby", "actions", "rust",
))  # fmt: skip
_KEPT = frozenset(("run", "name", "working-directory", "shell"))
_SUITES = ("security-extended", "security-and-quality", "security-experimental", "code-quality")
_LOOP = """\
folder=$(mktemp -d)
{build}for language in $(printf '%s' "$INPUT_LANGUAGES" | tr ',' ' '); do
  short=$(printf '%s' "$language" | sed 's/^c-//; s/-kotlin$//; s/^typescript$/javascript/; s/-typescript$//')
  sarif=$folder/$language.sarif
  codeql database create "$folder/$language" --language "$language" --source-root {root}{create}{command}
  codeql database analyze "$folder/$language"{queries} --format sarif-latest --output "$sarif" \\
    --sarif-category "${{INPUT_CATEGORY:-/language:$language}}"
{upload}done
rm -rf "$folder\""""


def begin(job: Job, given: Mapping[str, Node]) -> None:
    """Remember what `init` is given, and where the steps of the build begin."""
    job.codeql = dict(given)
    job.codeql_at = len(job.made)


def analysis(inputs: Inputs, upload: str) -> str:
    """Return the script of `analyze`; raises UntranslatableError."""
    job = inputs.job
    if job is None or job.codeql is None:
        raise UntranslatableError("", "there is no `init` before it")
    given = {name.lower(): node for name, node in job.codeql.items() if text_of(node)}
    languages, mode = given.pop("languages", None), given.pop("build-mode", None)
    if languages is None:
        raise UntranslatableError("", "`init` finds the languages by itself")
    build = _build(job, text_of(languages), text_of(mode))
    inputs.env["INPUT_LANGUAGES"] = languages
    if build:
        mode = None
    create = f" --build-mode {inputs.word(text_of(mode), 'build-mode')}" if mode is not None else ""
    config = text_of(given.pop("config-file", None))
    create += f" --codescanning-config {inputs.word(config, 'config-file')}" if config else ""
    queries = "".join(
        _query(inputs, each.strip()) for each in text_of(given.pop("queries", None)).split(",") if each
    )
    root = inputs.word(text_of(given.pop("source-root", None)) or ".", "source-root")
    for name in (
        "tools",
        "token",
        "debug",
        "trap-caching",
        "dependency-caching",
        "setup-python-dependencies",
    ):
        given.pop(name, None)
    if given:
        raise UntranslatableError("", f"the input `{next(iter(given))}` of `init` has no equivalent here")
    category = inputs.node("category")
    if category is not None:
        inputs.env["INPUT_CATEGORY"] = category
    inputs.drop("wait-for-processing", "token", "ram", "threads", "skip-queries", "matrix", "add-snippets")
    sent = inputs.take("upload", "always") in ("always", "true")
    rows = "".join(f"  {line}\n" for line in upload.split("\n")) if sent else ""
    command = ' --command "bash -eo pipefail $folder/build.sh"' if build else ""
    return _LOOP.format(build=build, root=root, create=create, command=command, queries=queries, upload=rows)


def _query(inputs: Inputs, name: str) -> str:
    name = name.removeprefix("+")
    if name in _SUITES:
        return f' "codeql/$short-queries:codeql-suites/$short-{name}.qls"'
    return f" {inputs.word(name, 'queries')}"


def _build(job: Job, languages: str, mode: str) -> str:
    """Return the lines that write the commands of a build, which the analysis watches, into a file; "" for none.

    The steps that run them are taken out of the job. Raises UntranslatableError where they need more than a script.
    """
    own = [step for step in job.made[job.codeql_at :] if "run" in step.keys and not step.is_raw]
    values = _values(job, languages)
    modes = _values(job, mode) if mode else {""}
    if "manual" in modes and not own:
        raise UntranslatableError("", "its build is not known here")
    if not own or modes == {"none"} or values <= _UNBUILT:
        return ""
    text = ""
    for step in own:
        node = step.node
        is_plain = node is not None and not set(node.value) - _KEPT and step.id in job.plain
        if (
            not is_plain
            or node is None
            or values & _UNBUILT
            or len(modes) > 1
            or "container" in job.node.value
        ):
            raise UntranslatableError("", f"it watches the build by {step.id}")
        if text_of(node.get("shell")) not in ("", "bash"):
            raise UntranslatableError("", f"it watches the build by {step.id}")
        place = text_of(node.get("working-directory"))
        text += (
            f"(\n{f'cd -- {shlex.quote(place)}' if place else ':'}\n{text_of(node.get('run')).rstrip()}\n)\n"
        )
    if (
        job.handed
        or any(step.keys.get("outputs") for step in own)
        or "PLANRUN_BUILD" in text
        or "secrets." in text
    ):
        raise UntranslatableError("", f"it watches the build by {own[0].id}, which hands values on")
    job.made = [step for step in job.made if step not in own]
    return f"cat > \"$folder/build.sh\" <<'PLANRUN_BUILD'\n{text}PLANRUN_BUILD\n"


def _values(job: Job, text: str) -> set[str]:
    """Return what a text can be: itself, or the values of its name in the matrix."""
    if "${{" not in text:
        return {each.strip() for each in text.split(",")}
    if "matrix." not in text or job.matrix is None or not job.matrix.instances:
        return {""}
    key = text.partition("matrix.")[2].strip(" }").replace("-", "_").replace(".", "_")
    return {str(row.get(key, "")) for row in job.matrix.instances}
