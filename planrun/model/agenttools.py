"""The tools of agents, with their arguments: the loop offers them, and their processes check them, by this data.

`planrun.tools` does the work of those that have a process; `planrun.agents.own` that of the others.
"""

from __future__ import annotations

from planrun.model.agenttypes import TYPES
from planrun.model.collaboration import ENTRY_TYPES
from planrun.model.tools import Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.model.tools import Fragment

MAX_READ = 256 * 1024  # bytes of a file that are read
MAX_LINES = 2000
MAX_WRITE = 1 << 20  # bytes of a file that is written
MAX_RESULT = 100 * 1024  # bytes of a result that a model gets: the beginning and the end of a longer one
BASH_TIMEOUT = 120  # seconds
MEMORY_OPERATIONS = ("write", "write_with_ttl", "read", "read_by_type", "read_all", "delete", "subscribe")
MEMORY_CHANGES = ("write", "write_with_ttl", "delete")
"""The operations of the tool `memory` that are not repeated after planrun was killed."""
MESSAGE_TYPES = ("help_request", "delegate")
FILE_TIMEOUT = 60.0  # seconds of a tool that reads or writes files

_BOUNDS = ("minimum", "maximum", "minLength")
_PATH: Fragment = {"type": "string", "minLength": 1, "description": "A path, relative to the workspace."}
_WHERE: Fragment = {
    "type": "string",
    "description": "A folder, relative to the workspace. Left out: all of it.",
}
_TEXT: Fragment = {"type": "string"}


def _need(fragment: Fragment, **more: Any) -> Fragment:
    return {**fragment, **more, "required": True}


def _number(description: str, least: int, most: int) -> Fragment:
    return {"type": "integer", "minimum": least, "maximum": most, "description": description}


def _spec(name: str, risk: str, description: str, /, **params: Fragment) -> Spec:
    return Spec(name=name, risk=risk, description=description, params=params)


SPECS: dict[str, Spec] = {
    spec.name: spec
    for spec in (
        _spec(
            "read",
            "read-only",
            f"Read a text file. The result has line numbers, which are no part of the file. At most {MAX_LINES} lines "
            "are shown: name `offset` and `limit` for other parts.",
            path=_need(_PATH),
            offset=_number("The first line, from 1.", 1, 10_000_000),
            limit=_number("How many lines.", 1, MAX_LINES),
            column=_number("The first character of the first line, from 1; for very long lines.", 1, 1 << 28),
        ),
        _spec(
            "glob",
            "read-only",
            "List the files whose paths match a pattern such as src/**/*.py. Use it to find files by their names.",
            pattern=_need(_TEXT, minLength=1, description="The pattern: * within a name, ** over folders."),
            path=_WHERE,
        ),
        _spec(
            "grep",
            "read-only",
            "Search files for a regular expression (Python's re). Each line of the result is path:line: text. Use it "
            "to find where something is defined or used.",
            pattern=_need(_TEXT, minLength=1, description="The regular expression."),
            path=_WHERE,
            glob={"type": "string", "description": "Only files whose paths match this pattern."},
            ignore_case={"type": "boolean", "description": "Ignore case."},
            limit=_number("How many matching lines.", 1, 500),
        ),
        _spec(
            "tree",
            "read-only",
            "Show folders and files as a tree.",
            path=_WHERE,
            depth=_number("How many levels.", 1, 8),
        ),
        _spec("list_dir", "read-only", "List one folder: names, kinds and sizes.", path=_WHERE),
        _spec(
            "diff",
            "read-only",
            "Show what you have changed so far, as a unified diff. Look at it before you finish.",
            path={"type": "string", "description": "Only this file or folder."},
        ),
        _spec(
            "write",
            "low",
            "Write a whole text file, new or in place of an old one. Folders that are missing are made. Use `edit` to "
            "change a part of a file.",
            path=_need(_PATH),
            content=_need(_TEXT, description="The whole content."),
        ),
        _spec(
            "edit",
            "low",
            "Replace a text in a file. `old` must stand in it exactly once, byte for byte, unless `all` is true. Read "
            "the file before.",
            path=_need(_PATH),
            old=_need(
                _TEXT, minLength=1, description="The text to replace, with its line breaks and blanks."
            ),
            new=_need(_TEXT, description="The text to put in its place."),
            all={"type": "boolean", "description": "Replace every occurrence."},
        ),
        _spec(
            "apply_patch",
            "low",
            "Apply a unified diff to files. All of it is applied, or nothing.",
            patch=_need(_TEXT, minLength=1, description="The diff, as git prints it."),
        ),
        _spec(
            "bash",
            "high",
            "Run a command by bash in the workspace, without a terminal, input or network. Each call is a new shell: "
            "folder and variables are not kept. It ends after "
            f"{BASH_TIMEOUT} seconds unless you name `timeout`, and what it leaves running is killed.",
            command=_need(_TEXT, minLength=1, description="The command."),
            timeout=_number("Seconds that it may take.", 1, 3600),
        ),
        _spec(
            "todo",
            "read-only",
            "Keep a list of what is to do. Give the whole list; the result is the list.",
            items=_need(
                {"type": "array", "items": _TEXT, "description": "Each as `[ ] text` or `[x] text`."}
            ),
        ),
        _spec(
            "env",
            "read-only",
            "List the names of the environment variables that commands get, without values.",
        ),
        _spec("tools_list", "read-only", "List your tools, and those that you may ask for."),
        _spec(
            "request_tool",
            "read-only",
            "Ask for a tool that you do not have. It is granted only within the limits of the step.",
            name=_need(_TEXT, minLength=1, description="The tool."),
            reason=_need(_TEXT, description="Why you need it, in one sentence."),
        ),
        _spec(
            "update_plan_progress",
            "read-only",
            "Report how far your task is, for the people who watch.",
            percent=_need(_number("From 0 to 100.", 0, 100)),
            message=_need(_TEXT, description="One sentence."),
        ),
        _spec(
            "get_plan_status", "read-only", "Show the steps of the plan that you work in, and their statuses."
        ),
        _spec(
            "ask_user",
            "read-only",
            "Ask the decision policy of the run. There may be no answer: then go on without one.",
            question=_need(_TEXT, minLength=1, description="The question."),
        ),
        _spec(
            "memory",
            "read-only",
            "The memory that all agents of this run share. write: set an entry. write_with_ttl: set one that expires "
            "after `ttl` seconds. read: get an entry. read_by_type, read_all: list entries. delete: remove one. "
            "subscribe: get what other agents changed since the last call.",
            op=_need(_TEXT, enum=list(MEMORY_OPERATIONS)),
            key={"type": "string", "description": "The name of the entry; write, read, delete."},
            type={"type": "string", "enum": list(ENTRY_TYPES), "description": "write, read_by_type."},
            value={"description": "Any JSON value; write."},
            ttl={"type": ["integer", "number"], "description": "Seconds; write_with_ttl."},
        ),
        _spec(
            "ask_agent",
            "low",
            "Send a message to an agent of another type and wait for its reply. It works where you work, with the "
            "tools that your step allows, on a part of your budget. help_request: ask a question. delegate: hand "
            "over a part of the task.",
            type=_need(_TEXT, enum=list(MESSAGE_TYPES)),
            to_role=_need(_TEXT, description=f"The type of the agent: {', '.join(TYPES)}."),
            content=_need(
                _TEXT, minLength=1, description="The question or the task, with all that it needs."
            ),
        ),
        _spec(
            "web_fetch",
            "low",
            "Get the text of a web page by GET, from one of the hosts that the step allows.",
            url=_need(_TEXT, minLength=1, description="The address: http:// or https://."),
        ),
        _spec(
            "enter_plan_mode",
            "read-only",
            "Go into plan mode: you can only read, until your plan is approved.",
        ),
        _spec(
            "exit_plan_mode",
            "read-only",
            "Propose your plan. When it is approved, you get your other tools and carry it out.",
            plan=_need(_TEXT, minLength=1, description="The steps, with the files and risks of each."),
        ),
        _spec(
            "finish",
            "read-only",
            "End your work with a report. Call it once, alone, when the task is done or cannot be done.",
            status=_need(
                _TEXT, enum=["success", "failure"], description="failure: the task is not done, and why."
            ),
            summary=_need(
                _TEXT, minLength=1, description="What you found or did, for later steps and people."
            ),
            evidence={
                "type": "array",
                "items": _TEXT,
                "description": "Files with lines, and results of commands.",
            },
        ),
    )
}
"""The tools of this version, by name."""


def schema_of(spec: Spec) -> dict[str, Any]:
    """Return the JSON Schema of the arguments of a tool."""
    properties = {
        name: {key: value for key, value in fragment.items() if key != "required"}
        for name, fragment in spec.params.items()
    }
    needed = [name for name, fragment in spec.params.items() if fragment.get("required")]
    return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}


def as_offer(spec: Spec) -> dict[str, Any]:
    """Return a tool as a request to a model offers it.

    It is strict where the service can hold a model to its schema, which knows no bounds; planrun checks these itself.
    """
    schema = schema_of(spec)
    is_strict = all(isinstance(fragment.get("type"), str) for fragment in spec.params.values())
    if is_strict:
        schema["properties"] = {
            name: {key: value for key, value in fragment.items() if key not in _BOUNDS}
            for name, fragment in schema["properties"].items()
        }
    strict = {"strict": True} if is_strict else {}
    return {"name": spec.name, "description": spec.description, "input_schema": schema, **strict}
