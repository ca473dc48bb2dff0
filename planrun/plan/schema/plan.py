"""The keys at the top of a plan and of a policy file, as pydantic models with descriptions and examples."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from planrun.plan.schema.fields import (
    ID_PATTERN,
    NAME_PATTERN,
    Amount,
    AnyMapping,
    Anything,
    Argv,
    Count,
    Delay,
    Duration,
    Env,
    EnvName,
    EnvNames,
    FullText,
    Id,
    Keys,
    Line,
    Lines,
    Params,
    Positive,
    RiskLevel,
    Secrets,
    Text,
    TextList,
    Written,
    key,
    written,
)
from planrun.plan.schema.notify import HEADER_PATTERN, Notifications
from planrun.plan.schema.step import (
    AgentType,
    Decide,
    Defaults,
    EnvFiles,
    Sandbox,
    SandboxLevel,
    SandboxNetwork,
    SharedContainer,
    Slots,
    Step,
)

SERVER_PATTERN = r"^[A-Za-z0-9]+([_-][A-Za-z0-9]+)*$"
"""A name of a server; `__` ends it in the name of a tool."""
TOOL_PATTERN = r"^[A-Za-z0-9_-]{1,100}$"


class ServerTools(Written):
    """Which tools of a server agents may have."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "x-filled": True})

    allow: TextList | None = key("The only tools that it offers.", ["search"])
    deny: TextList | None = key("Tools that it does not offer.", ["delete_issue"])


class McpServer(Written):
    """One MCP server: a program that planrun starts, or an address; and what its tools may do."""

    command: Argv | None = key(
        "The words of the command that starts it; it speaks MCP on stdin and stdout.",
        ["python3", "tools/issues_server.py"],
    )
    url: Line | None = key(
        "Its address, where it runs already (streamable HTTP).", "https://mcp.example.com/mcp"
    )
    env: Env | None = key("Its environment variables; it gets no others of yours.", {"LOG_LEVEL": "info"})
    secrets: EnvNames | None = key("Secrets of the plan that it gets as variables.", ["ISSUES_TOKEN"])
    headers: Annotated[dict[str, Line], Keys(HEADER_PATTERN)] | None = key(
        "Headers of requests to `url`.", {"X-Team": "release"}
    )
    secret_headers: Annotated[dict[str, EnvName], Keys(HEADER_PATTERN)] | None = key(
        "Headers whose values are secrets, by the names of the secrets.", {"Authorization": "MCP_AUTH"}
    )
    cwd: Line | None = key("The folder that it starts in, from the workspace.", "tools")
    tools: ServerTools | None = key("Which of its tools agents may have.", {"allow": ["search"]})
    classes: Annotated[dict[str, RiskLevel], Keys(TOOL_PATTERN)] | None = key(
        "The risk of its tools; a tool that is not named is high.", {"search": "read-only"}
    )
    pins: Annotated[dict[str, Line], Keys(TOOL_PATTERN)] | None = key(
        "The digests of the tools that were reviewed; `planrun mcp pin` writes them.",
        {"search": "0" * 64},
    )
    network: Literal["none"] | SandboxNetwork | None = key(
        "What its process may connect to. Left out: nothing; with `url`: that host.",
        {"allow": ["api.example.com"]},
    )
    timeout: Duration | None = key(
        "How long each call may take, and its start, for which it has 30s at least. Left out: 1m.", "30s"
    )


class Mcp(Written):
    """MCP servers whose tools agents may call."""

    servers: Annotated[dict[str, McpServer], Keys(SERVER_PATTERN)] = key(
        "The servers, by name. A tool is called `mcp__SERVER__TOOL`.",
        {"issues": {"command": ["python3", "tools/issues_server.py"]}},
        required=True,
    )


class Search(Written):
    """How planrun searches a way to a goal by itself."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "x-filled": True})

    goal: Lines | None = key(
        "Facts that must hold at the end. Left out: all that the steps provide.", ["published"]
    )
    start: Lines | None = key("Facts that hold at the beginning.", ["checkout"])
    algorithm: Literal["beam", "mcts", "astar"] | None = key(
        "Beam search, Monte Carlo tree search, or A*, which finds the cheapest plan.", "beam"
    )
    thoroughness: Literal["quick", "normal", "thorough"] | None = key(
        "Sets beam_width 3/5/7, mcts_iterations 50/100/200, max_tree_depth 5/10/15 and max_replans 1/3/5.",
        "normal",
    )
    beam_width: Annotated[int, Field(ge=1, le=1000)] | None = key(
        "How many nodes of each depth beam search expands.", 5
    )
    mcts_iterations: Annotated[int, Field(ge=1, le=100_000)] | None = key("How often MCTS iterates.", 100)
    max_tree_depth: Annotated[int, Field(ge=1, le=1000)] | None = key("How many actions a plan may have.", 10)
    max_tree_nodes: Positive | None = key("How many nodes the tree may have.", 1000)
    planning_timeout: Duration | None = key(
        "How long one search may take; then the best plan so far counts.", "1m"
    )
    seed: Count | None = key("The seed of MCTS: the same seed gives the same plan.", 7)
    replan_on_failure: bool | None = key(
        "Whether a failed step that provides facts is replaced by another way during the run.", example=True
    )
    candidates: Annotated[int, Field(ge=0, le=20)] | None = key(
        "How many steps a model may offer to each search; they count as written by a model. 0: no model is asked.",
        3,
    )
    parts: Annotated[list[Step], Field(min_length=1)] | None = key(
        "Steps that run only where a search takes them; each has an `id` and `provides`.",
        [{"id": "mirror", "run": "./mirror.sh", "provides": "published"}],
    )


_COLLABORATION_FILLED = ConfigDict(json_schema_extra={"minProperties": 1, "x-filled": True})


_Share = Annotated[float, Field(ge=0, le=1)]


class Delegation(Written):
    """When an agent hands its work to another one."""

    model_config = _COLLABORATION_FILLED

    enabled: bool | None = key("Whether agents delegate by the built-in rules.", example=True)
    alpha: _Share | None = key("How fast the weight of a path follows its results, from 0 to 1.", 0.1)
    max_depth: Annotated[int, Field(ge=0, le=20)] | None = key(
        "How many agents may stand below the agent of a step.", 5
    )
    depth_penalty: Annotated[int, Field(ge=0, le=100)] | None = key(
        "How many turns each level takes away.", 3
    )
    suppress_for: Delay | None = key(
        "How long a rule is not used after a delegation by it failed; `0s`: not at all.", "10m"
    )
    max_parallel_agents: Annotated[int, Field(ge=1, le=100)] | None = key(
        "How many agents may be at work at the same time.", 5
    )
    load_penalty: _Share | None = key(
        "The share of a score that is taken away when five agents are at work.", 0.3
    )


class Memory(Written):
    """The memory that the agents of a run share, and what they keep from run to run."""

    model_config = _COLLABORATION_FILLED

    max_entries: Annotated[int, Field(ge=1, le=10_000)] | None = key(
        "How many entries it holds; the least recently used one gives way to a new one.", 500
    )
    max_bytes: Annotated[int, Field(ge=1, le=1_048_576)] | None = key(
        "How large one value may be, in bytes of JSON.", 65536
    )
    store: Literal["off", "read", "write"] | None = key(
        "Whether results of delegations and learned errors of earlier runs are used, and added to.", "read"
    )
    dir: Line | None = key(
        "The folder of these results, from the workspace. Left out: in the folder for caches.", ".agents"
    )


class Messenger(Written):
    """Messages between agents."""

    model_config = _COLLABORATION_FILLED

    timeout: Duration | None = key("How long a message waits for its reply.", "3m")


class Reflection(Written):
    """What agents are told about errors of their tools."""

    model_config = _COLLABORATION_FILLED

    enabled: bool | None = key("Whether errors are analysed by patterns and earlier runs.", example=False)
    llm: bool | None = key("Whether a model analyses errors that no pattern knows.", example=True)
    autofix: bool | None = key(
        "Whether a reading tool is called again with the path that was surely meant.", example=True
    )


Effort = Literal["low", "medium", "high", "xhigh", "max"]


class Llm(Written):
    """The language model that may write steps, and how it is asked."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "x-filled": True})

    model: Line | None = key("Which model. Left out: the one that the command line names.", "a-model")
    effort: Effort | None = key("How hard it thinks.", "medium")
    plan_max_tokens: Positive | None = key("The longest answer, in tokens.", 8000)
    max_generated_steps: Annotated[int, Field(ge=1, le=100)] | None = key(
        "How many steps it may write at a time.", 10
    )
    planning_timeout: Duration | None = key("How long one planning may take, repairs included.", "5m")
    timeout: Duration | None = key("How long one call may take, repeats included.", "2m")
    retries: Annotated[int, Field(ge=0, le=100)] | None = key("How often a call is repeated.", 5)
    max_context_tokens: Annotated[int, Field(ge=10_000, le=10_000_000)] | None = key(
        "How many tokens all that is sent in one call may have.", 50_000
    )
    clear_context: bool | None = key(
        "Whether the agent of a step begins with a conversation of its own.", example=False
    )
    delegate_steps: bool | None = key(
        "Whether each step with an agent has one of its own, which works on a copy.", example=False
    )
    fallback: Literal["fail", "template"] | None = key(
        "What happens when it gives no plan: fail, or use a plan from planrun's patterns.", "fail"
    )
    replan_on_failure: Literal["fatal", "any", "never"] | None = key(
        "Which failures are replanned, for steps that do not set it.", "fatal"
    )
    extra_body: AnyMapping | None = key(
        "More fields of each request, as the service takes them; planrun does not look at them.",
        {"service_tier": "standard_only"},
    )
    enabled: bool | None = key("Whether a model is asked at all.", example=False)
    delegation: Delegation | None = key("When an agent hands its work to another one.", {"max_depth": 3})
    memory: Memory | None = key(
        "The memory that agents share, and what they keep from run to run.", {"store": "read"}
    )
    messenger: Messenger | None = key("Messages between agents.", {"timeout": "3m"})
    reflection: Reflection | None = key("What agents are told about errors of their tools.", {"llm": True})


Level = Literal["none", "read-only", "low", "medium", "high"]
Origin = Literal["file", "searched", "expanded", "replanned", "agent"]
FailureWord = Literal["block", "abort", "continue", "skip", "ask"]
Patterns = FullText | Annotated[list[FullText], Field(min_length=1)]  # `*` stands for any text


_FILLED = {"minProperties": 1, "x-filled": True}
_ONE_KEY = {"minProperties": 1, "maxProperties": 1, "x-one-key": True}


class Matcher(Written):
    """Which steps a rule is about; everything named has to fit, and of a list one word is enough."""

    model_config = ConfigDict(json_schema_extra=_FILLED)  # type: ignore[typeddict-item]

    step: Patterns | None = key("Ids of steps; `*` stands for any text.", ["publish", "deploy-*"])
    tool: Patterns | None = key("Kinds of actions.", "exec")
    command: Patterns | None = key("Commands, their words joined by one blank.", "twine upload *")
    words: Patterns | None = key(
        "Whole words in the id, the texts or the action of a step.", ["prod", "push"]
    )
    topic: Patterns | None = key(
        "What the names or the action of a step speak of: `deploy`, `data`, `money`, `deletion`, `strategy`.",
        ["deploy", "strategy"],
    )
    secret: Patterns | None = key("Secrets that the step lists.", "PYPI_TOKEN")
    effect: Patterns | None = key("What the action does.", ["destroys", "network"])
    risk: RiskLevel | Annotated[list[RiskLevel], Field(min_length=1)] | None = key(
        "Deny and require: this risk and higher ones; allow: up to this one; a list: exactly these.", "high"
    )
    origin: Origin | Annotated[list[Origin], Field(min_length=1)] | None = key(
        "Who wrote the step: the file, or a model; searched: the file, and planrun chose or moved it.",
        ["expanded", "replanned", "agent"],
    )
    ref: Patterns | None = key("The branch or tag that CI works on.", "release/*")
    event: Patterns | None = key("Why CI works on it.", "pull_request")


class Rule(Written):
    """One rule of a policy: deny wins over require, require over allow, allow over the level."""

    model_config = ConfigDict(json_schema_extra=_ONE_KEY)  # type: ignore[typeddict-item]

    deny: Matcher | None = key("These steps never run.", {"words": "prod", "event": "pull_request"})
    require: Matcher | None = key("These steps require an approval.", {"step": "publish"})
    allow: Matcher | None = key("These steps run without approval.", {"command": "pytest *"})


class FailureRules(Written):
    """What a failure means by the risk of the step, where neither the step nor `defaults` says it."""

    model_config = ConfigDict(json_schema_extra=_FILLED)  # type: ignore[typeddict-item]

    read_only: FailureWord | None = key("Of a step that changes nothing.", "continue", alias="read-only")
    low: FailureWord | None = key("Of a step with low risk.", "continue")
    medium: FailureWord | None = key("Of a step with medium risk.", "block")
    high: FailureWord | None = key("Of a step with high risk.", "abort")
    reversible: FailureWord | None = key(
        "Of a step whose risk is not named, and that destroys and publishes nothing.", "ask"
    )
    otherwise: FailureWord | None = key("Of a step whose risk is not named here.", "abort")


class Policy(Written):
    """What may run without approval."""

    model_config = ConfigDict(json_schema_extra=_FILLED)  # type: ignore[typeddict-item]

    auto_approve: Level | None = key(
        "The highest risk that runs without approval; `none`: nothing.", "medium"
    )
    llm_auto_approve: Level | None = key("The same for steps that a model wrote.", "low")
    ask_for: Literal["steps", "plan"] | None = key(
        "Whether each step is approved on its own, or the plan before anything starts.", "steps"
    )
    preset: Literal["none", "careful"] | None = key(
        "Predefined rules: `careful` asks before destructive, strategic and publishing work.", "careful"
    )
    rules: Annotated[list[Rule], Field(min_length=1)] | None = key(
        "Rules for some steps.", [{"require": {"effect": "destroys"}}]
    )
    decisions: Annotated[dict[str, Anything], Keys(ID_PATTERN)] | None = key(
        "Answers to `ask` and `decide` steps, by id.", {"store": "redis"}
    )
    on_failure: FailureRules | None = key(
        "What a failure means, by risk, for steps that do not set it.",
        {"low": "continue", "otherwise": "abort"},
    )
    sandbox: SandboxLevel | Sandbox | None = key(
        "A sandbox for every step; a plan can only make it stricter.", "medium"
    )
    llm_sandbox: Literal["risk", "read-only", "low", "medium", "off"] | Sandbox | None = key(
        "The sandbox of steps that a model wrote; risk: the level of their risk class.", "risk"
    )


class PolicyFile(Policy):
    """A policy in a file of its own."""

    notify: bool | Notifications | None = key(
        "Who else is notified; `false`: the targets of the plan are not.",
        [{"webhook": "https://ci.example.com/hooks/planrun", "on": "failed"}],
    )


class Template(Written):
    """What makes a file a template: its variables, and what has to be there before the plan does anything."""

    description: Text | None = key("What the plans do that are made of it.", "An endpoint, with its tests.")
    vars: Params | None = key(
        "Its variables, as `${{ vars.NAME }}` in it.", {"name": {"type": "string", "required": True}}
    )
    requires: TextList | None = key("Commands that must be there.", ["node", "npm"])
    prerequisites: TextList | None = key("Files that must be there.", ["package.json"])


class Extends(Written):
    """A template that a plan extends, and the values of its variables."""

    template: Line = key("The name of a template, or the path of its file.", "node-package", required=True)
    with_: AnyMapping | None = key("The values of its variables.", {"name": "web"}, alias="with")


Version = Annotated[int, written("version", type="integer", enum=[1])]


class Limits(Written):
    """Limits of a run."""

    max_parallel: Positive | None = key("How many steps run at the same time.", 4)
    deadline: Duration | None = key("How long the whole run may take.", "1h")
    cleanup: Duration | None = key("How long undoing may take, and how long the `finally` steps may.", "5m")
    max_steps: Positive | None = key("How many steps the plan may have, instances included.", 500)
    max_items: Positive | None = key("How many instances a step may have.", 2000)
    max_replans: Count | None = key("How often a model may replan in one run.", 3)
    max_tokens: Positive | None = key("How many tokens models may use in one run.", 200000)
    max_usd: Amount | None = key("How much models may cost in one run, in US dollars.", 2.5)
    max_turns: Positive | None = key("How often models may be asked in one run.", 12)
    output_bytes: Annotated[int, Field(ge=256, le=1_000_000)] | None = key(
        "How much of the output of a failed step, or of a tool, a model gets at most.", 8000
    )
    summary_chars: Annotated[int, Field(ge=100, le=100_000)] | None = key(
        "How long the report of an agent may be.", 2000
    )
    locks: Slots | None = key("How many steps may have a lock at the same time. Left out: one.", {"db": 2})


class Rounds(Written):
    """How often a run repeats what failed for passing reasons, and how long it waits before."""

    model_config = ConfigDict(json_schema_extra=_FILLED)  # type: ignore[typeddict-item]

    rounds: Annotated[int, Field(ge=1, le=100)] | None = key("How many rounds at most. Left out: 2.", 3)
    pause: Delay | None = key("How long to wait before each. Left out: one minute.", "30s")


class Resume(Written):
    """How a run goes on by itself."""

    model_config = ConfigDict(json_schema_extra=_FILLED)  # type: ignore[typeddict-item]

    auto: bool | Rounds | None = key(
        "Whether steps that failed for passing reasons are repeated; `true`: two rounds, a minute apart.",
        {"rounds": 3, "pause": "30s"},
    )


class Hook(Written):
    """A command before or after each step that starts a process."""

    run: FullText | None = key("A script for the shell, taken as it is.", "./ci/announce.sh")
    exec: Argv | None = key("A program and its arguments, taken as they are.", ["./ci/announce", "step"])
    timeout: Duration | None = key("How long it may take.", "30s")
    on_failure: Literal["continue", "fail"] | None = key(
        "What its failure means: it is noted, or the attempt fails.", "fail"
    )


Hooked = Hook | Annotated[list[Hook], Field(min_length=1)]


class Hooks(Written):
    """Commands before and after each step that starts a process."""

    model_config = ConfigDict(json_schema_extra=_FILLED)  # type: ignore[typeddict-item]

    before_step: Hooked | None = key("Before each attempt.", {"run": "echo begin"})
    after_step: Hooked | None = key("After each attempt, however it ended.", {"run": "echo end"})


class Plan(Written):
    """A plan: steps, what they need, and in what order they may run."""

    model_config = ConfigDict(title="planrun plan", json_schema_extra={"patternProperties": {"^x-": {}}})

    schema_: Text | None = key(
        "The JSON Schema of this file, for editors.", "../schemas/plan.schema.json", alias="$schema"
    )
    version: Version = key("The version of the plan language.", 1, required=True)
    name: Line | None = key("What the plan is called. Left out: the file's name.", "release")
    description: Text | None = key("What the plan does.", "Test, build and ship the service.")
    goal: Text | None = key("What the plan is meant to reach.", "Ship when every gate is green.")
    template: Template | None = key(
        "Makes this file a template from which plans are made.",
        {"vars": {"name": {"type": "string", "required": True}}, "requires": ["git"]},
    )
    extends: Line | Extends | None = key(
        "Another plan, or a template, whose keys and steps this one changes and adds to.", "./base.yml"
    )
    params: Params | None = key(
        "Typed values that are given when a run starts.", {"target": {"type": "string", "default": "staging"}}
    )
    outputs: Annotated[dict[str, Text], Keys(NAME_PATTERN)] | None = key(
        "The plan's outputs: results of a run, and what a plan that uses it gets.",
        {"sha": "${{ steps.version.outputs.sha }}"},
    )
    env: Env | None = key("Environment variables of every step.", {"PYTHONUNBUFFERED": "1"})
    env_file: EnvFiles | None = key("Files of NAME=value lines, read before `env`.", "ci.env")
    secrets: Secrets | None = key(
        "Secrets that steps may list: variables of planrun's own environment, masked in all output.",
        ["PYPI_TOKEN"],
    )
    defaults: Defaults | None = key("Defaults for every step.", {"timeout": "10m"})
    limits: Limits | None = key("Limits of a run.", {"max_parallel": 4, "deadline": "1h"})
    schedule: Literal["dag", "levels", "batches", "sequential"] | None = key(
        "The order in which ready steps start.", "dag"
    )
    concurrency: Id | None = key("One run of this name at a time on this host; others wait.", "deploy")
    allow_uncovered: bool | None = key(
        "Whether `--locked` runs the plan though it may run files that no digest covers.", example=True
    )
    policy: Policy | None = key("What may run without approval.", {"auto_approve": "medium"})
    llm: Llm | None = key("The language model that may write steps.", {"model": "a-model"})
    notify: Notifications | None = key(
        "Who is notified when a run fails, recovers or waits.",
        [{"slack": {"url_secret": "SLACK_URL"}, "on": ["failed", "recovered"]}],
    )
    search: Search | None = key(
        "How planrun searches a way to a goal by itself, and what it may use besides the steps.",
        {"goal": "published", "algorithm": "astar"},
    )
    hooks: Hooks | None = key(
        "Commands before and after each step that starts a process.", {"after_step": {"run": "./ci/note.sh"}}
    )
    resume: Resume | None = key(
        "How a run goes on by itself after failures for passing reasons.", {"auto": True}
    )
    containers: Annotated[dict[str, SharedContainer], Keys(ID_PATTERN)] | None = key(
        "Containers that several steps share, by name.", {"build": {"image": "node:22"}}
    )
    agents: Annotated[dict[str, AgentType], Keys(ID_PATTERN)] | None = key(
        "Kinds of agents that the plan defines.", {"reviewer": {"description": "Reviews changes."}}
    )
    mcp: Mcp | None = key(
        "MCP servers whose tools agents may call.",
        {"servers": {"issues": {"command": ["python3", "tools/issues_server.py"]}}},
    )
    decisions: Annotated[dict[str, Decide], Keys(ID_PATTERN)] | None = key(
        "Decisions before the first step.",
        {"store": {"question": "Which store?", "options": [{"label": "redis"}]}},
    )
    steps: Annotated[list[Step], Field(min_length=1)] = key(
        "The steps.", [{"id": "test", "run": "pytest -q"}], required=True
    )
    finally_: Annotated[list[Step], Field(min_length=1)] | None = key(
        "Steps that run at the end of every run.",
        [{"id": "collect", "run": "tar -czf logs.tgz logs"}],
        alias="finally",
    )
