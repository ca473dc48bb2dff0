"""Types and modes of agents, and the tools that exist: data that the loader, the loop and `planrun agents` share.

The lists of tools are those of the sources of the types (docs/agents.md); a tool in `NOT_OFFERED` is in a list, and no
agent gets it in this version. The lowest of all limits holds: type, mode, `tools.allow`, and `tools.deny`.
"""

from __future__ import annotations

from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

READING = ("read", "glob", "grep", "tree", "list_dir", "diff")
WRITING = ("write", "edit", "apply_patch")
RUNNING = ("bash",)
OWN = ("todo", "env", "tools_list", "request_tool", "update_plan_progress", "get_plan_status", "ask_user")
NET = ("web_fetch", "web_search")
OTHERS = ("memory", "ask_agent", "enter_plan_mode", "exit_plan_mode")
TOOLS = (*READING, *WRITING, *RUNNING, *OWN, *NET, *OTHERS)
"""Every tool, in the order in which a model is offered them; `finish` is always among them."""
FINISH = "finish"
NOT_OFFERED: Mapping[str, str] = {
    "web_fetch": "the step names no hosts by `web`",
    "web_search": "no search service is built in",
    "enter_plan_mode": "the step has no `plan_mode: true`",
    "exit_plan_mode": "the step has no `plan_mode: true`",
}
"""Tools that stand in lists and that a step has not without a key of its own, or not at all, with the reason."""
BY_NAME = frozenset(
    (
        *("tree", "apply_patch", "todo", "env", "tools_list", "request_tool"),
        *("update_plan_progress", "get_plan_status", "ask_user"),
    )
)
"""Tools of the built-in types that a model gets only where `tools: {allow: [...]}` names them: others do their work."""
CHANGING = frozenset((*WRITING, *RUNNING))
"""Tools that can change the workspace: an agent with one of them works on a copy."""

MAX_TOKENS = 400_000
MAX_TURNS = 50
LEAST_TIMEOUT = 30.0  # seconds; a shorter timeout of a step is this long for an agent


class AgentType(Record):
    """A type of agent; `prompt`: what its system prompt says of its work.

    `mcp`: tools of MCP servers; None: all where it has all other tools, and none where it has not.
    """

    name: str
    description: str
    tools: tuple[str, ...]
    prompt: str
    mode: str = ""
    max_tokens: int = MAX_TOKENS
    max_turns: int = MAX_TURNS
    model: str = ""
    mcp: tuple[str, ...] | None = None


class AgentMode(Record):
    """A mode: what the work is for.

    `without`: tools that it takes away; `planner`: when a plan uses it; `icon`: one character.
    """

    name: str
    title: str
    max_turns: int
    max_tokens: int
    without: tuple[str, ...]
    planner: str
    agent: str
    icon: str


def _types(*types: AgentType) -> dict[str, AgentType]:
    return {each.name: each for each in types}


TYPES = _types(
    AgentType(
        name="explore",
        description="finds and explains code, and changes nothing",
        tools=("read", "glob", "grep", "tree", "list_dir", "tools_list", "request_tool", "ask_agent"),
        prompt="You explore a code base. Find what the task asks for, and name files and lines as evidence.",
    ),
    AgentType(
        name="bash",
        description="runs commands and reads their output",
        tools=("bash", "read", "glob", "tools_list", "request_tool", "ask_agent"),
        prompt="You run commands. Run few, read their output, and report what they show.",
    ),
    AgentType(
        name="general",
        description="does any work: reads, edits and runs commands",
        tools=TOOLS,
        prompt="You do the task from beginning to end. Read before you write, and check what you changed.",
    ),
    AgentType(
        name="plan",
        description="works out how to do something, and changes nothing",
        tools=(
            *(
                "read",
                "glob",
                "grep",
                "tree",
                "list_dir",
                "diff",
                "todo",
                "web_fetch",
                "web_search",
                "ask_user",
            ),
            *("env", "tools_list", "request_tool", "ask_agent", "enter_plan_mode", "exit_plan_mode"),
            *("update_plan_progress", "get_plan_status"),
        ),
        prompt="You plan work. Divide the task into few steps, with the files and risks of each.",
    ),
    AgentType(
        name="claude-code-guide",
        description="answers questions from documentation",
        tools=("glob", "grep", "read", "web_fetch", "web_search", "tools_list", "request_tool", "ask_agent"),
        prompt="You answer questions from documentation. Name the page and the place of each answer.",
    ),
)
"""The built-in types; a plan cannot replace them."""

_READ_ONLY = (*WRITING, *RUNNING)
MODES: dict[str, AgentMode] = {
    each.name: each
    for each in (
        AgentMode(
            name="code",
            title="Implementation Specialist",
            max_turns=75,
            max_tokens=480_000,
            without=(),
            planner="to write or change code",
            agent="Write code that fits the code around it. Make the smallest change that does the task.",
            icon="✎",
        ),
        AgentMode(
            name="test",
            title="Validation Specialist",
            max_turns=60,
            max_tokens=400_000,
            without=(),
            planner="to write or run tests, and to measure coverage",
            agent="Run the tests first. A test that you write must fail without the behaviour that it shows.",
            icon="✓",
        ),
        AgentMode(
            name="research",
            title="Research Strategist",
            max_turns=40,
            max_tokens=320_000,
            without=_READ_ONLY,
            planner="to gather, read and summarise, without any change",
            agent="Gather facts, read, and summarise. State where each fact stands. Change nothing.",
            icon="⌕",
        ),
        AgentMode(
            name="design",
            title="Design Architect",
            max_turns=50,
            max_tokens=360_000,
            without=_READ_ONLY,
            planner="to compare ways to do something, without any change",
            agent="Compare ways to do the task, with the trade-offs of each, and recommend one. Change nothing.",
            icon="△",
        ),
        AgentMode(
            name="docs",
            title="Documentation Specialist",
            max_turns=40,
            max_tokens=320_000,
            without=RUNNING,
            planner="to write READMEs, docstrings and other documentation",
            agent="Write documentation. Read the code that it is about, and state only what the code does.",
            icon="¶",
        ),
        AgentMode(
            name="run",
            title="Execution Specialist",
            max_turns=30,
            max_tokens=240_000,
            without=WRITING,
            planner="to run commands and check what they print",
            agent="Run the commands of the task, read their output, and report whether they did what they should.",
            icon="▶",
        ),
    )
}
"""The modes; a step that names none has the limits of its type."""


def is_offered(name: str, *, plan_mode: bool, web: tuple[str, ...]) -> bool:
    """Whether a step has a tool of its lists; `plan_mode`, `web`: its keys."""
    if name == "web_fetch":
        return bool(web)
    return plan_mode if name in ("enter_plan_mode", "exit_plan_mode") else name not in NOT_OFFERED


def offered(names: Iterable[str], mode: str, deny: Iterable[str]) -> tuple[str, ...]:
    """Return those of some tools that an agent may have, in the order of `TOOLS`."""
    gone = {*deny, *(MODES[mode].without if mode else ())}
    wanted = set(names) - gone
    return tuple([name for name in TOOLS if name in wanted])
