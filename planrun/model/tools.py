"""The catalogue of tools that a plan can call by name, with their arguments and results.

Several packages share this data: the loader checks arguments against it, the classifier finds the risk of a call by it,
and the page about tools is generated from it. `planrun.tools`, a process of its own, does the work of a tool.

Checks of the arguments of a call against the catalogue: when a plan is read, before a call starts, and in the tool.
"""

from __future__ import annotations

from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    # The words of JSON Schema that `planrun.model.tools` knows, and `required` for an argument that must be there.
    Fragment = dict[str, Any]

    from collections.abc import Iterator

    Path = tuple[str | int, ...]


class Spec(Record):
    """A tool.

    `params` and `outputs` are JSON Schema fragments by name; `spellings` other names of arguments. Of each group in
    `one_of` exactly one argument is given. `risk` is the class of a call with ordinary arguments;
    each call is classified by its own. `version` rises when the same arguments get another meaning.
    """

    name: str
    description: str
    risk: str
    params: dict[str, Fragment]
    outputs: dict[str, Fragment] = {}  # noqa: RUF012 - never written
    effects: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    spellings: dict[str, str] = {}  # noqa: RUF012
    one_of: tuple[tuple[str, ...], ...] = ()
    version: int = 1
    acts: tuple[dict[str, Any], ...] = ()
    """Calls that a search may take, as keys of a step: what they require and provide is known for any project."""


SHELL = "shell"
SCRIPT = "script"  # the `format` of arguments that a shell reads
PATH = "path"  # the `format` of arguments that name files

_TEXT: Fragment = {"type": "string"}
_FLAG: Fragment = {"type": "boolean"}
_COUNT: Fragment = {"type": "integer"}
_FILES: Fragment = {"type": "array", "items": _TEXT}
_SHA: Fragment = {"type": "string", "description": "The SHA-256 of its bytes, in hex."}


def _text(description: str, **more: Any) -> Fragment:
    return {"type": "string", "description": description, **more}


def _path(description: str, **more: Any) -> Fragment:
    return {"type": "string", "format": PATH, "minLength": 1, "description": description, **more}


def _paths(description: str, **more: Any) -> Fragment:
    items = {"type": "string", "format": PATH, "minLength": 1}
    return {
        "type": ["string", "array"],
        "format": PATH,
        "minLength": 1,
        "minItems": 1,
        "items": items,
        "description": description,
        **more,
    }


def _flag(description: str, *, default: object = False) -> Fragment:
    return {"type": "boolean", "description": description, "default": default}


def _count(description: str, default: int, most: int) -> Fragment:
    return {"type": "integer", "minimum": 0, "maximum": most, "description": description, "default": default}


_OVERWRITE = _flag("Whether a file that is there may be replaced.")

_OPERATION: Fragment = {
    "type": "object",
    "properties": {
        "op": {
            "type": "string",
            "enum": ["add", "remove", "replace", "move", "copy", "test"],
            "required": True,
        },
        "path": {"type": "string", "required": True},
        "from": {"type": "string"},
        "value": {},
    },
}

_GIT = (
    Spec(
        name="git.status",
        aliases=("git status", "git_status", "git-status"),
        description="What differs between commit, index and files. Runs nothing that the repository configures.",
        risk="read-only",
        params={"untracked": _flag("Whether files that git does not know count.", default=True)},
        outputs={
            "branch": {**_TEXT, "description": "Empty when no branch is checked out."},
            "sha": {**_TEXT, "description": "The commit; empty when there is none yet."},
            "clean": {**_FLAG, "description": "Whether nothing differs."},
            "changed": {**_COUNT, "description": "How many files differ."},
            "files": {**_FILES, "description": "Which ones, at most 1,000."},
        },
        acts=(
            {
                "id": "clean",
                "title": "Nothing differs from the commit",
                "expect": [{"that": "steps.clean.outputs.clean"}],
                "provides": "clean",
            },
        ),
    ),
    Spec(
        name="git.diff",
        aliases=("git diff", "git_diff", "git-diff"),
        description="The difference as a patch, which the log has. Runs nothing that the repository configures.",
        risk="read-only",
        params={
            "paths": _paths("Only these files and folders."),
            "staged": _flag("Compare what is staged, and not the files."),
            "base": _text(
                "The commit to compare with; left out, the index, or the last commit for `staged`.",
                pattern=r"^[^-\s:][^\s:]*$",
            ),
        },
        outputs={
            "changed": {**_COUNT, "description": "How many files differ."},
            "files": {**_FILES, "description": "Which ones, at most 1,000."},
            "size": {**_COUNT, "description": "Bytes of the patch."},
        },
    ),
    Spec(
        name="git.commit",
        aliases=("git commit", "git_commit", "git-commit"),
        description="Commit what is staged, given files, or every change of files that git knows; never signed.",
        risk="low",
        effects=("writes",),
        params={
            "message": _text("What the commit says.", required=True, minLength=1),
            "paths": _paths("Commit these files and folders as they are, new ones too, and nothing else."),
            "all": _flag("Commit every change of files that git knows."),
            "author": _text("Who wrote it, as `Name <mail>`.", pattern=r"^[^<>\n]+ <[^<>\n]*>$"),
            "allow_empty": _flag("Whether a commit without a change may be made."),
            "hooks": _flag("Whether the hooks of the repository run; that is the project's code."),
        },
        outputs={
            "sha": {**_TEXT, "description": "The new commit."},
            "branch": {**_TEXT, "description": "Empty when no branch is checked out."},
            "files": {**_FILES, "description": "What it changed, at most 1,000."},
        },
        acts=(
            {
                "id": "commit",
                "title": "Commit every change of files that git knows",
                "args": {"message": "Commit changes", "all": True},
                "provides": "committed",
            },
        ),
    ),
    Spec(
        name="git.apply_patch",
        aliases=(
            *("git applypatch", "git_applypatch", "git-applypatch", "git.applypatch", "git apply"),
            *("git apply_patch", "git_apply_patch", "git-apply-patch", "git.apply", "apply_patch"),
        ),
        description="Apply a patch to the files: all of it, or nothing at all.",
        risk="medium",
        effects=("writes",),
        params={
            "patch": _text("The patch.", minLength=1),
            "file": _path("The file that holds the patch."),
            "reverse": _flag("Take the patch back."),
            "threeway": _flag(
                "Where it does not fit, merge by the versions that it names, and stage the result."
            ),
            "strip": _count("How many leading folders of its names are left out.", 1, 20),
        },
        one_of=(("patch", "file"),),
        outputs={"files": {**_FILES, "description": "What it changed."}},
    ),
)

_FILE = (
    Spec(
        name="file.read",
        aliases=("file_read", "read_file"),
        description="Read a text file, which the log has, too.",
        risk="read-only",
        params={
            "path": _path("The file.", required=True),
            "max_bytes": _count("The most that it may have.", 65_536, 262_144),
        },
        outputs={
            "text": {**_TEXT, "description": "All of it."},
            "size": {**_COUNT, "description": "In bytes."},
            "sha256": _SHA,
        },
    ),
    Spec(
        name="file.write",
        aliases=("file_write", "write_file"),
        description="Write a text file, so that there is the old one or the new one and never half of it.",
        risk="low",
        effects=("writes",),
        params={
            "path": _path("The file.", required=True),
            "content": _text("What it says.", required=True),
            "mode": {
                "type": "string",
                "enum": ["overwrite", "create", "append"],
                "default": "overwrite",
                "description": "`create` fails when the file is there; `append` adds to it.",
            },
            "expected": _text(
                "The SHA-256 that the file must have before; it fails otherwise.", pattern="^[0-9a-f]{64}$"
            ),
            "executable": _flag("Whether it can be started."),
        },
        outputs={"size": {**_COUNT, "description": "In bytes."}, "sha256": _SHA},
    ),
    Spec(
        name="file.replace",
        aliases=("file_replace",),
        description="Replace an exact text in a file; it fails unless the text stands there as often as it should.",
        risk="low",
        effects=("writes",),
        params={
            "path": _path("The file.", required=True),
            "old": _text("The text to look for.", required=True, minLength=1),
            "new": _text("What is put in its place.", required=True),
            "count": _count(
                "How often it must stand there; 0: as often as it does, and at least once.", 1, 1_000_000
            ),
        },
        outputs={"replaced": {**_COUNT, "description": "In how many places."}, "sha256": _SHA},
    ),
    Spec(
        name="file.copy",
        aliases=("file_copy", "copy_file"),
        description="Copy a file.",
        risk="low",
        effects=("writes",),
        params={
            "path": _path("The file.", required=True),
            "to": _path("Where to.", required=True),
            "overwrite": _OVERWRITE,
        },
        spellings={"source": "path", "destination": "to"},
        outputs={"size": {**_COUNT, "description": "In bytes."}, "sha256": _SHA},
    ),
    Spec(
        name="file.move",
        aliases=("file_move", "move_file"),
        description="Move or rename a file or folder.",
        risk="low",
        effects=("writes",),
        params={
            "path": _path("The file or folder.", required=True),
            "to": _path("Its new name.", required=True),
            "overwrite": _OVERWRITE,
        },
        spellings={"source": "path", "destination": "to"},
    ),
    Spec(
        name="file.remove",
        aliases=("file_remove", "file.delete", "remove_file", "delete_file"),
        description="Remove files; links are removed, and not what they lead to.",
        risk="medium",
        effects=("destroys", "writes"),
        params={
            "paths": _paths("What is removed.", required=True),
            "recursive": _flag("Whether folders are removed with all that is in them."),
            "missing_ok": _flag("Whether it is right when there is no such file."),
        },
        spellings={"path": "paths"},
        outputs={"removed": {**_COUNT, "description": "How many of the named ones."}},
    ),
    Spec(
        name="file.mkdir",
        aliases=("file_mkdir", "mkdir"),
        description="Make folders, with those above them.",
        risk="low",
        effects=("writes",),
        params={"paths": _paths("The folders; one that is there is right, too.", required=True)},
        spellings={"path": "paths"},
        outputs={"made": {**_COUNT, "description": "How many were not there."}},
    ),
    Spec(
        name="file.glob",
        aliases=("file_glob", "file.list", "file_list", "glob"),
        description="List the files that fit patterns, sorted; links to folders are not followed.",
        risk="read-only",
        params={
            "patterns": {
                **_paths("`*` and `?` stay within a folder, `**` means any folders.", required=True),
            },
            "hidden": _flag("Whether `*` and `**` mean names that begin with a dot, too."),
            "max_files": _count("It fails when there are more.", 1000, 10_000),
        },
        spellings={"pattern": "patterns", "path": "patterns", "paths": "patterns"},
        outputs={
            "files": {**_FILES, "description": "Their names."},
            "count": {**_COUNT, "description": "How many there are."},
        },
    ),
)

_OTHERS = (
    Spec(
        name="json_patch",
        aliases=("config_patch", "json-patch", "config-patch", "json.patch"),
        description="Change a JSON file by the operations of RFC 6902: all of them, or none.",
        risk="low",
        effects=("writes",),
        params={
            "file": _path("The file.", required=True),
            "operations": {
                "type": "array",
                "minItems": 1,
                "items": _OPERATION,
                "required": True,
                "description": "What to do, in this order.",
            },
            "expected": _text(
                "The SHA-256 that the file must have before; it fails otherwise.", pattern="^[0-9a-f]{64}$"
            ),
        },
        spellings={"filePath": "file", "file_path": "file", "path": "file"},
        outputs={
            "changed": {**_FLAG, "description": "Whether the file is another one now."},
            "sha256": _SHA,
        },
    ),
    Spec(
        name=SHELL,
        aliases=("bash", "sh", "run-command", "run_command", "command"),
        description="A command, or several of which each must pass, for the shell of the step: what `run` does.",
        risk="high",
        effects=("unknown",),
        params={
            "command": _text("The command.", format=SCRIPT, minLength=1),
            "commands": {
                "type": "array",
                "minItems": 1,
                "items": {"type": "string", "format": SCRIPT, "minLength": 1},
                "description": "Several, one after the other.",
            },
        },
        one_of=(("command", "commands"),),
    ),
)

CATALOGUE: dict[str, Spec] = {spec.name: spec for spec in (*_GIT, *_FILE, *_OTHERS)}
"""Every tool by its name, in the order of the manual."""

NAMES: dict[str, str] = {
    **{alias: spec.name for spec in CATALOGUE.values() for alias in spec.aliases},
    **{name: name for name in CATALOGUE},
}
"""What a plan may write, and the name that it stands for."""


def is_script(tool: str, argument: str) -> bool:
    """Whether a shell reads an argument; `tool` as a plan may write it."""
    spec = CATALOGUE.get(NAMES.get(tool, ""))
    schema = spec.params.get(argument, {}) if spec else {}
    return SCRIPT in (schema.get("format"), schema.get("items", {}).get("format"))


_WORDS = {
    "string": "a string",
    "integer": "an integer",
    "boolean": "a boolean",
    "array": "a list",
    "object": "a mapping",
    "number": "a number",
}
_KINDS: dict[str, type] = {
    "string": str,
    "integer": int,
    "boolean": bool,
    "array": list,
    "object": dict,
    "number": float,  # beside `integer`
}
MAX_TEXT = 4 << 20
"""Characters of one text; larger ones belong in a file."""


class Fault(Record):
    """What is wrong with arguments: where (keys and 0-based positions from `args` on), and a clause that follows it.

    kind: missing, unknown, type, value or choice (of several arguments, one).
    """

    path: tuple[str | int, ...]
    kind: str
    message: str


class Later:
    """Stands for a value that is not known before the step starts."""


LATER = Later()


def faults(spec: Spec, args: dict[str, Any]) -> Iterator[Fault]:
    """Yield everything wrong with the arguments of a tool; names are those of the catalogue."""
    yield from _members(spec.params, args, ())
    for group in spec.one_of:
        given = [name for name in group if name in args]
        if len(given) != 1:
            names = " or ".join(f"`{name}`" for name in group)
            yield Fault(
                path=(), kind="choice", message=f"needs {names}" if not given else f"has {_both(given)}"
            )


def named(spec: Spec, args: dict[str, Any]) -> dict[str, Any]:
    """Return arguments under the names that the catalogue has for them."""
    return {spec.spellings.get(name, name): value for name, value in args.items()}


def place(path: Path) -> str:
    """Return the place of a value, in the form of messages: `operations[2].path`, counted from 1."""
    text = "args"
    for part in path:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}"
    return text


def _both(names: list[str]) -> str:
    return f"{' and '.join(f'`{name}`' for name in names)}, which are mutually exclusive"


def _members(params: dict[str, Fragment], given: dict[str, Any], path: Path) -> Iterator[Fault]:
    for name, schema in params.items():
        if schema.get("required") and name not in given:
            yield Fault(path=path, kind="missing", message=f"`{name}` is missing")
    for name, value in given.items():
        if name in params:
            yield from _value(params[name], value, (*path, name))
        else:
            yield Fault(path=(*path, name), kind="unknown", message="is an unknown argument")


def _value(schema: Fragment, value: Any, path: Path) -> Iterator[Fault]:
    if value is LATER:
        return
    wanted = schema.get("type")
    types = [wanted] if isinstance(wanted, str) else wanted or []
    if types and not any(type(value) is _KINDS[name] for name in types):
        words = " or ".join(_WORDS[name] for name in types)
        yield Fault(path=path, kind="type", message=f"must be {words}, got {_kind(value)}")
    elif isinstance(value, str):
        if "minLength" in schema and not value.strip():
            yield Fault(path=path, kind="value", message="is empty")
        elif "enum" in schema and value not in schema["enum"]:
            words = ", ".join(schema["enum"])
            yield Fault(path=path, kind="value", message=f'is "{value[:40]}", and must be one of {words}')
        elif "\0" in value or len(value) > MAX_TEXT:
            why = "contains a NUL character" if "\0" in value else f"has more than {MAX_TEXT:,} characters"
            yield Fault(path=path, kind="value", message=why)
        elif "pattern" in schema and not _has_form(schema["pattern"], value):
            yield Fault(path=path, kind="value", message=f"does not have the form {schema['pattern']}")
    elif isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            yield Fault(path=path, kind="value", message="is empty")
        for position, item in enumerate(value):
            yield from _value(schema.get("items", {}), item, (*path, position))
    elif isinstance(value, dict):
        yield from _members(schema["properties"], value, path) if "properties" in schema else ()
    elif type(value) is int and "minimum" in schema:
        least, most = schema["minimum"], schema["maximum"]
        if not least <= value <= most:
            yield Fault(path=path, kind="value", message=f"is {value}, and must be {least} to {most}")


def _has_form(pattern: str, value: str) -> bool:
    import re  # every plan loads this module, and few have a tool

    return re.search(pattern.replace("$", "\\Z"), value) is not None


def _kind(value: object) -> str:
    if value is None:
        return "nothing"
    return next((_WORDS[name] for name, kind in _KINDS.items() if type(value) is kind), "a decimal number")
