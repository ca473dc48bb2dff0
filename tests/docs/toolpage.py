"""docs/tools.md, made of the catalogue: `pytest tests/docs/test_tools_page.py --update-goldens` writes it."""

from __future__ import annotations

from pathlib import Path

from planrun.cli.agents import words_of
from planrun.model.tools import CATALOGUE, Spec

PAGE = Path(__file__).parents[2] / "docs" / "tools.md"

HEAD = """\
# Tools

<!-- Made by tests/docs/toolpage.py: change that file or planrun/model/tools.py, and not this one. -->

A step can call a tool of planrun by its name:

```yaml
version: 1
params: {version: {type: string, default: 1.2.0}}
steps:
  - id: bump
    tool: json_patch
    args:
      file: package.json
      operations:
        - {op: test, path: /name, value: service}
        - {op: replace, path: /version, value: "${{ params.version }}"}
  - id: commit
    depends_on: [bump]
    tool: git.commit
    args: {message: "Release ${{ params.version }}", paths: package.json}
  - id: tell
    depends_on: [commit]
    run: echo "made ${{ steps.commit.outputs.sha }}"
```

Compared with a script, planrun checks the arguments of a call when it reads the plan, knows its risk, and types its
outputs without a declaration; file names cannot be misread as options. `planrun tools` lists the tools,
`planrun tools NAME` shows one.

A call is a process like any other: `timeout`, `retries`, `on_failure`, `env`, `workdir`, masks and logs work the
same. It runs wherever planrun runs, and needs no other program except git, for `git.*`.

## Names and arguments

Names of other programs for the same tools are accepted (`git status`, `git_commit`, `bash`, `config_patch` …);
records and policies use the name in this list. An unknown name is the error [E270](errors.md#e270), with the nearest
name. Plans cannot define tools.

planrun checks arguments against the tables below twice: in the file when it reads the plan, and again when all values
are filled in. An invalid argument is then `failed (refused)`, and nothing starts. A value for a text argument becomes
text; elsewhere a value that is a single `${{ … }}` keeps its type. A text has at most 4 MiB.

## Files

Paths are relative to the step's `workdir`. Refused are absolute paths, paths that lead upwards, names with invisible
characters, and links out of the workspace, also if they are created during the call: each folder of a path is opened
relative to the one before. Tools cannot use `.planrun/`, and cannot write to `.git`. They never write through a link:
name its target.

A file is written beside its place and renamed, so it is replaced atomically, whenever the process ends. Its
permissions stay.

## git

git runs in a clean environment: of `GIT_*` only identity, dates and the configuration of machine and user stay;
hooks, pagers, editors, signatures, file system monitors, background work and network connections are off.
`git.status` and `git.diff` run no filters or diff drivers of the repository: if it has any, the log says so, and
files that they would change may show as different. Filters of the user or the machine (such as for large files) are
used. `git.commit` and `git.apply_patch` also use those of the repository, to commit the right content; their class of
risk is then higher. Names are literal, not patterns.

`git.apply_patch` checks that the whole patch applies before it changes anything. Otherwise every file stays as it
was, also with `threeway`, where a merge with conflicts counts as not applying. Names in a patch are relative to the
repository, as `git diff` writes them. git itself writes one file after the other: if it is killed meanwhile, some may
be changed and others not.

## Risk and policies

A call is classified like a command: by the table below for ordinary paths, and `high` for paths that [control what
runs later](risk.md#what-is-high) or may contain secrets. Values that are unknown before the step starts count as
their worst case, and the call is classified again when they are known. `shell` is classified by its text, like `run`.
Rules name tools:

```yaml
version: 1
policy:
  auto_approve: low
  rules:
    - deny: {tool: git.commit, origin: [expanded, replanned, agent]}
    - require: {tool: "file.*", effect: destroys}
    - allow: {tool: git.apply_patch}
steps:
  - tool: git.status
```

`deny` and `require` rules about `shell` also apply to `run`; `allow` rules do not. Rules about commands match the git
commands that a tool runs; an `allow` about commands never matches a tool.

## The tools

| Tool | Risk | What it does |
|---|---|---|
"""

TAIL = """\
## Records

`tools` of an attempt in `ledger.json` has for each call its id (`STEP.ATTEMPT`), the name, the arguments with secrets
masked and long texts shortened, whether it succeeded, and its duration: [records.md](records.md#ledgerjson). The
plan's digest and the step's fingerprint cover the name, the arguments and the tool's version, which increases when a
new planrun changes the meaning of the same arguments.
"""


def page() -> str:
    """Return the whole page."""
    rows = "".join(
        f"| [`{spec.name}`](#{_anchor(spec.name)}) | {spec.risk if spec.name != 'shell' else 'that of its text'} "
        f"| {spec.description} |\n"
        for spec in CATALOGUE.values()
    )
    return f"{HEAD}{rows}\n" + "".join([_section(spec) for spec in CATALOGUE.values()]) + TAIL


def _section(spec: Spec) -> str:
    also = ", ".join(f"`{alias}`" for alias in spec.aliases)
    text = f"### {spec.name}\n\n{spec.description} Also written: {also}.\n\n"
    for title, parts in (("Argument", spec.params), ("Output", spec.outputs)):
        if parts:
            text += f"| {title} | Type | What it is |\n|---|---|---|\n"
            for name, schema in parts.items():
                told = schema.get("description", "")
                others = [spelling for spelling, meant in spec.spellings.items() if meant == name]
                told += f" Also: {', '.join(f'`{other}`' for other in others)}." if others else ""
                text += f"| `{name}` | {words_of(spec, name, schema)} | {told} |\n"
            text += "\n"
    return text


def _anchor(name: str) -> str:
    return name.replace(".", "")
