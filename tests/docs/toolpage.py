"""docs/tools.md, made of the catalogue: `pytest tests/docs/test_tools_page.py --update-goldens` writes it."""

from __future__ import annotations

from pathlib import Path

from planrun.cli.tools import words_of
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

Unlike a script, a call says exactly what it does: its arguments are checked when the plan is read, its risk is known,
its outputs are typed without being declared, and a program that can be led astray by a file name is not involved.
`planrun tools` lists the tools, `planrun tools NAME` shows one.

A call is a process like any other: `timeout`, `retries`, `on_failure`, `env`, `workdir`, masks and logs are the same.
It can be started wherever planrun itself can, and needs nothing but git, for `git.*`.

## Names and arguments

Names that other programs have for the same tools are understood as well (`git status`, `git_commit`, `bash`,
`config_patch` …); what is recorded, and what policies go by, is the name in this list. An unknown one is the error
[E270](errors.md#e270), with the nearest name; there is no other place where tools come from.

Arguments are checked against the tables below: at their place in the file when the plan is read, and once more when
all values are filled in. Then what does not fit is `failed (refused)`, and nothing starts. Where text is wanted, a
value that is filled in becomes text; elsewhere a value that is one `${{ … }}` and nothing else keeps its type. A text
has at most 4 MiB.

## Files

Paths are relative to the step's `workdir`. A path that is absolute or leads upwards is refused, and so is a link that
leads out of the workspace, at whatever moment somebody puts it there: each folder on the way is opened from the one
before. Names with characters that cannot be seen are refused. `.planrun/` is not for tools at all, and `.git` is not
written to. A link is never written through: name the file that it leads to.

A file is written beside its place and renamed, so that there is the old one or the new one, whenever the process
ends. Its permissions stay.

## git

git is started with a clean environment: of `GIT_*` only identity, dates and the configuration of machine and user are
left, and hooks, pagers, editors, signatures, file system monitors and background work are off, as is every connection
to elsewhere. `git.status` and `git.diff` run nothing that the repository configures, neither filters nor drivers for
differences: where a repository has such ones of its own, the log says so, and files that they would change may show
as different. Filters that the user or the machine has (as for large files) are used. `git.commit` and
`git.apply_patch` use those of the repository, too, since wrong contents would be committed otherwise; their class of
risk is higher there. Names are taken as they are, not as patterns.

`git.apply_patch` looks whether all of a patch fits before it changes anything. A patch that does not fit leaves every
file as it was, also with `threeway`, where a merge with conflicts counts as not fitting. Names in a patch are those
of the whole repository, as `git diff` writes them. git itself writes one file after the other: when it is killed in
the middle, some may be changed and others not.

## Risk and policies

A call is judged like a command: by the table below as long as its paths are ordinary ones, and `high` for those that
[control what runs later](risk.md) or may hold secrets. What is not known before the step starts counts as the worst,
and is judged again then. `shell` is judged by its text, as `run` is. Rules name tools:

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

A rule about `shell` that denies or requires holds for `run`, too; one that allows does not. Rules about commands see
the commands of git that a tool runs; an `allow` about commands never fits a tool.

## The tools

| Tool | Risk | What it does |
|---|---|---|
"""

TAIL = """\
## Records

Of each call the attempt in `ledger.json` has, as `tools`, its id (`STEP.ATTEMPT`), the name, the arguments with
secrets masked and long texts shortened, whether it went well, and how long it took:
[records.md](records.md#ledgerjson). The plan's digest and the step's fingerprint cover the name, the arguments and
the tool's version, which goes up when a new planrun means something else by the same arguments.
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
