"""The keys of a step and of `defaults`, as pydantic models with descriptions and examples.

What else a key is stands in `planrun.plan.keys.table`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from planrun.plan.schema.fields import (
    AXIS_PATTERN,
    ID_PATTERN,
    Amount,
    AnyMapping,
    Anything,
    Argv,
    Condition,
    Count,
    Delay,
    Duration,
    Env,
    EnvNames,
    ExitCode,
    FullText,
    Id,
    Ids,
    Keys,
    Line,
    Lines,
    Mode,
    Outputs,
    Positive,
    RiskLevel,
    ScalarValue,
    Size,
    Text,
    TextList,
    Texts,
    TypeWord,
    Written,
    key,
    written,
)


class Container(Written):
    """The container that a step runs in."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": ["image"]}, {"required": ["shared"]}]}
    )

    image: Text | None = key("The image; empty: no container.", "python:3.12-slim")
    shared: Id | None = key("The name of a container under `containers`, instead of all other keys.", "build")
    env: Env | None = key("Environment variables inside, besides those of the step.", {"LANG": "C.UTF-8"})
    volumes: TextList | None = key("What is mounted besides the workspace.", ["cache:/root/.cache"])
    user: Text | None = key("The user inside. Left out: the one who runs planrun.", "1000:1000")
    network: Line | None = key("The network it is on.", "none")


class SharedContainer(Written):
    """A container that several steps share: the first one starts it, and the end of the run removes it."""

    image: FullText = key("The image.", "python:3.12-slim", required=True)
    env: Env | None = key("Environment variables of all its steps.", {"LANG": "C.UTF-8"})
    volumes: TextList | None = key("What is mounted besides the workspace.", ["cache:/root/.cache"])
    user: Text | None = key("The user inside. Left out: the image's default.", "1000:1000")
    network: Line | None = key("The network it is on.", "none")
    per: Literal["run", "instance"] | None = key(
        "run: one container. instance: one for each name of an instance of `matrix` or `foreach`.", "run"
    )
    setup: Ids | None = key(
        "The steps that prepare it. They run again when a run is resumed: its container is a new one.",
        ["install"],
    )


class Reports(Written):
    """Reports that the step writes itself."""

    junit: Texts | None = key(
        "JUnit files, as patterns; merged into the run's.", "build/junit.xml", required=True
    )


class Produced(Written):
    """Files that a step makes, and when they are wanted."""

    path: Texts | None = key("The files, as patterns.", "logs/**", required=True)
    when: Literal["always", "present", "failed"] | None = key(
        "always: the step fails without them. present: recorded if they are there. "
        "failed: recorded if they are there and the step failed.",
        "failed",
    )


class EnvFile(Written):
    """An env file that may be missing."""

    path: Text = key("The file.", "local.env", required=True)
    required: bool | None = key("false: a file that is not there sets nothing.", example=False)


EnvFiles = Text | EnvFile | Annotated[list[Text | EnvFile], Field(min_length=1)]


class Cache(Written):
    """What an earlier result depends on besides the step itself."""

    inputs: Texts | None = key("Files that it depends on, besides those under `inputs`.", ["Makefile"])
    key_: Text | None = key("Anything else that it depends on.", "v2", alias="key")


# What narrows an answer says nothing about yes and no.
_TYPED: dict[str, Any] = {"anyOf": [{"required": ["type"]}, {"required": ["enum"]}]}


class Option(Written):
    """One answer that a decision can have."""

    label: Line = key("What people choose.", "Redis", required=True)
    description: Text | None = key("What choosing it means.", "Fast, and one more service.")
    value: Anything | None = key("What the plan gets; left out: the label.", "redis")
    when: Condition | None = key(
        "An expression; the first option for which it is true is taken without asking.", "run.ci"
    )


class Decide(Written):
    """A decision checkpoint."""

    question: FullText = key("What has to be decided.", "Which store?", required=True)
    header: Line | None = key("A few words above the question.", "Storage")
    options: Annotated[list[Option], Field(min_length=1)] = key(
        "What there is to choose from.", [{"label": "Redis", "value": "redis"}], required=True
    )
    multi_select: bool | None = key("More than one may be chosen.", example=False)
    default: Anything | None = key(
        "The value of the option, or a list of them, that is taken when the time is over.", "redis"
    )
    timeout: Duration | None = key("How long to wait for an answer.", "30m")


class Ask(Written):
    """A gate that is answered with yes or no, or with a value of a type."""

    model_config = ConfigDict(
        json_schema_extra={"dependencies": dict.fromkeys(("pattern", "minimum", "maximum"), _TYPED)}
    )

    question: FullText = key("What is asked.", "Publish 1.2.3?", required=True)
    header: Line | None = key("A few words above the question.", "Release")
    type: TypeWord | None = key("The type of the answer; left out, and no `enum`: yes or no.", "string")
    enum: Annotated[list[Anything], Field(min_length=1)] | None = key("The only answers allowed.", ["a", "b"])
    pattern: Text | None = key("A regular expression that a text must match.", r"^\d+\.\d+\.\d+$")
    minimum: float | None = key("The least number allowed.", 1)
    maximum: float | None = key("The greatest number allowed.", 10)
    default: Anything | None = key("The answer that is taken when the time is over.", "a")
    timeout: Duration | None = key("How long to wait for an answer.", "30m")


Axis = list[ScalarValue] | Text
Combination = Annotated[dict[str, ScalarValue], Keys(AXIS_PATTERN), Field(min_length=1)]
Combinations = Annotated[list[Combination], Field(min_length=1)]


class Matrix(Written):
    """One instance of the step for each combination of the values of its axes; every other key is an axis."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"propertyNames": {"pattern": AXIS_PATTERN}})
    __pydantic_extra__: dict[str, Axis]

    include: Combinations | None = key(
        "Values added to matching combinations, or new combinations.",
        [{"python": "3.14", "experimental": True}],
    )
    exclude: Combinations | None = key(
        "Combinations to leave out: all with these values.", [{"python": "3.11", "os": "macos"}]
    )
    max_parallel: Positive | None = key("How many instances run at the same time.", 2)
    fail_fast: bool | None = key("true: the first failure cancels the other instances.", example=True)


class ForEach(Written):
    """One instance of the step for each item."""

    items: list[Anything] | Text = key(
        "The items, or an expression that gives them.", ["a", "b"], required=True
    )
    key_: Text | None = key(
        "An expression over `item` that names an instance. Left out: the item itself.",
        "item.name",
        alias="key",
    )
    max_parallel: Positive | None = key("How many instances run at the same time.", 4)
    fail_fast: bool | None = key("true: the first failure cancels the other instances.", example=True)


class Tools(Written):
    """Which tools an agent has; a denied one stays denied."""

    allow: TextList | None = key("The only tools it has.", ["read", "grep"])
    deny: TextList | None = key("Tools it does not have.", ["bash"])


class Web(Written):
    """The web pages that an agent may get."""

    allow: Annotated[list[FullText], Field(min_length=1)] = key(
        "Hosts: a name, `*.domain`, each with a port or without one (80 and 443). An address of this machine or of a "
        "private network needs its port.",
        ["docs.python.org", "*.readthedocs.io"],
        required=True,
    )


class Agent(Written):
    """Work for a language model, within limits."""

    type: Line | None = key("Which type of agent: a built-in one or one of `agents`.", "general")
    mode: Mode | None = key("What the work is for: it sets guidance, tools and limits.", "code")
    prompt: FullText | None = key(
        "The task. Left out: the title and the description of the step.", "Make the failing tests pass."
    )
    task: FullText | None = key("The same as `prompt`.", "Make the failing tests pass.")
    model: Line | None = key("The model, instead of `llm.model`.", "a-model")
    tools: Tools | None = key("Which tools it has.", {"allow": ["read", "grep"]})
    max_tokens: Positive | None = key("How many tokens it may use. Left out: as its mode, or 400000.", 400000)
    max_turns: Positive | None = key(
        "How many calls to the model it may make. Left out: as its mode, or 50.", 50
    )
    max_usd: Amount | None = key("How many US dollars it may use.", 0.5)
    prompt_suffix: Text | None = key("What is added to its instructions.", "Keep the changes small.")
    apply: Literal["auto", "ask", "never"] | None = key(
        "What becomes of its patch. ask: it waits for an approval. auto: the policy decides. never: it is kept.",
        "ask",
    )
    plan_mode: bool | None = key(
        "true: it only reads until its plan is approved, by the policy or by people.", example=True
    )
    web: Web | None = key("Which web pages it may get by `web_fetch`.", {"allow": ["docs.python.org"]})
    workspace: Literal["copy", "shared"] | None = key(
        "copy: it works on a copy, and its result is a patch. shared: it works in the workspace itself.",
        "copy",
    )


class AgentType(Written):
    """A type of agent that the plan defines."""

    description: Text = key("What it is good at.", "Reviews changes.", required=True)
    prompt: Text | None = key("Its instructions.", "You review changes.")
    tools: TextList | None = key("Which tools it has. Left out: all.", ["read", "grep"])
    mode: Mode | None = key("The mode of steps that name none.", "research")
    model: Line | None = key("The model, instead of `llm.model`.", "a-model")
    max_tokens: Positive | None = key("How many tokens it may use.", 400000)
    max_turns: Positive | None = key("How many turns it may take.", 50)


class SandboxNetwork(Written):
    """The only hosts that a step can reach, through planrun's proxy."""

    allow: Annotated[list[FullText], Field(min_length=1)] = key(
        "Hosts: a name, `*.domain`, each with a port or without one (80 and 443).",
        ["pypi.org", "*.pythonhosted.org"],
        required=True,
    )


SandboxLevel = Literal["read-only", "low", "medium", "off"]


class Sandbox(Written):
    """What a step may reach; the kernel refuses the rest."""

    level: SandboxLevel | None = key("What it may write. Left out: low.", "low")
    network: Literal["none", "any"] | SandboxNetwork | None = key("What it may connect to.", "none")
    read: TextList | None = key("Paths outside of the workspace that it sees besides.", ["/srv/data"])
    write: TextList | None = key("Paths that it may write besides.", ["~/.cache/mytool"])
    require: bool | None = key("false: it runs without a sandbox where there is none.", example=False)
    processes: Positive | None = key("How many processes it may have at the same time.", 200)
    memory: Size | None = key("How much memory each of its processes may have.", "2GiB")
    file_size: Size | None = key("How large a file may be that it writes.", "1GiB")


Locks = Id | Ids
Slots = Annotated[dict[str, Positive], Keys(ID_PATTERN)]


class Ready(Written):
    """How to tell that a service is ready."""

    run: FullText = key("A command that passes when it is.", "curl -f localhost:8000", required=True)
    interval: Duration | None = key("How long to wait between two tries.", "1s")
    timeout: Duration | None = key("How long it may take until it is ready.", "1m")


class Rollback(Written):
    """What undoes a step that completed, when the run fails later; it sees what the step sees, and its outputs."""

    run: FullText | None = key("A script for the shell.", "./scripts/yank.sh")
    exec: Argv | None = key("A program and its arguments.", ["git", "checkout", "main"])
    tool: Line | None = key("A tool of planrun, called by name.", "git.apply_patch")
    args: AnyMapping | None = key("The arguments of `tool`, by name.", {"path": "undo.patch"})
    timeout: Duration | None = key("How long it may take.", "5m")
    env: Env | None = key("Environment variables, besides those of the step.", {"FORCE": "1"})
    workdir: Text | None = key("The folder it runs in. Left out: the step's.", "packages/core")
    shell: Text | Argv | None = key("The shell of `run`. Left out: the step's.", "bash -eu")
    on_failed: bool | None = key(
        "true: also when its step failed or was cut short after it had started.", example=True
    )
    idempotent: bool | None = key("false: never run again when it is unknown how it ended.", example=False)


ACTIONS = ("run", "exec", "tool", "validate", "decide", "ask", "agent", "uses")
COMPANIONS = {"with": "uses", "args": "tool", "ready": "service"}  # a key, and the one it needs beside it

EdgeWord = Literal["ok", "completed", "failed", "done"]


class SameInstance(Written):
    """An edge from each instance to the one of the same name."""

    instance: EdgeWord = key("How the instance of the same name must have ended.", "ok", required=True)


Edges = Annotated[dict[str, EdgeWord | SameInstance], Keys(ID_PATTERN)]
OnFailure = Literal["block", "abort", "continue", "skip", "ask", "replan"]
RetryWord = Literal["any", "timeout", "idle_timeout", "transient", "logic", "fatal", "unknown"]
_ONE_KEY = {"minProperties": 1, "maxProperties": 1, "x-one-key": True}


class RetryRule(Written):
    """A failure that is worth another attempt, told by its exit code or by what it printed."""

    model_config = ConfigDict(json_schema_extra=_ONE_KEY)  # type: ignore[typeddict-item]

    exit: ExitCode | Annotated[list[ExitCode], Field(min_length=1)] | None = key(
        "Retry when the command ended with one of these codes.", [75]
    )
    match: FullText | None = key("Retry when this text is in the last lines of output.", "Connection reset")


class Backoff(Written):
    """How long to wait before another attempt: min(initial * factor^(n-1), max), with some chance in it."""

    initial: Delay | None = key("The wait before the first repeat.", "2s")
    factor: Annotated[float, Field(ge=1)] | None = key("What each wait is multiplied by for the next.", 2)
    max: Delay | None = key("The longest wait.", "30s")
    jitter: Annotated[float, Field(ge=0, le=1)] | None = key(
        "The share of the wait that is drawn at random.", 0.1
    )
    delays: Annotated[list[Delay], Field(min_length=1)] | None = key(
        "The waits one after the other, in place of `initial`, `factor` and `max`; the last one again.",
        ["5s", "15s", "30s"],
    )


class RetryPolicy(Written):
    """When and how often a failed attempt is repeated."""

    max: Annotated[int, Field(ge=0, le=1000)] | None = key(
        "How many extra attempts there are. Left out: 2.", 2
    )
    backoff: Backoff | None = key(
        "How long to wait in between.", {"initial": "2s", "factor": 2, "max": "30s"}
    )
    on: Literal["auto"] | Annotated[list[RetryWord | RetryRule], Field(min_length=1)] | None = key(
        "Which failures are repeated; any match is enough. auto: transient ones. Left out: all.",
        ["timeout", {"exit": [75]}],
    )


Retries = Annotated[int, Field(ge=0, le=1000)] | RetryPolicy


class Errors(Written):
    """What is done about classes of errors."""

    unknown: Literal["fail", "retry"] | None = key(
        "Whether `retries: {on: auto}` repeats a failure whose class no rule knows.", "retry"
    )


class JsonSchemaCheck(Written):
    """A JSON or YAML file that must follow a JSON Schema."""

    file: Text = key("The file to check.", "build/result.json", required=True)
    schema_: Text | AnyMapping = key(
        "A JSON Schema, or the file that holds it.",
        "schemas/result.schema.json",
        required=True,
        alias="schema",
    )


class Check(Written):
    """One check, named by its only key."""

    model_config = ConfigDict(json_schema_extra=_ONE_KEY)  # type: ignore[typeddict-item]

    files_exist: Texts | None = key("These files or folders must be there.", ["pyproject.toml"])
    writable: Texts | None = key("These files or folders must be writable.", ["build"])
    commands_on_path: Texts | None = key("These programs must be found on the PATH.", ["git", "docker"])
    env_set: Texts | None = key("These environment variables must be set and not empty.", ["HOME"])
    json_schema: JsonSchemaCheck | None = key(
        "A file must follow a JSON Schema.",
        {"file": "build/result.json", "schema": "schemas/result.schema.json"},
    )
    that: Condition | None = key("An expression that must be true.", "params.target != 'prod'")
    dependencies_completed: (
        Annotated[Literal[True], written("true", const=True)] | Annotated[Ids, Field(min_length=1)] | None
    ) = key("These steps must have completed. true: all in `depends_on`.", ["lint", "test"])


Checks = Annotated[list[Check], Field(min_length=1)]


class Step(Written):
    """One step: what it does (at most one action), and when, how and in what surroundings."""

    id: Id | None = key("What other steps call it. Left out: its position, counted from 1.", "test")
    title: Line | None = key("What people read in reports.", "Unit tests")
    description: Text | None = key("What the step is for.", "Run the unit tests of every package.")

    run: FullText | None = key("A script for the shell.", "pytest -q")
    exec: Argv | None = key(
        "A program and its arguments, without a shell.", ["twine", "check", "dist/pkg.whl"]
    )
    validate_: Checks | None = key(
        "Checks that must all hold.", [{"files_exist": ["dist"]}], alias="validate"
    )
    tool: Line | None = key("A tool of planrun, called by name.", "git.status")
    args: AnyMapping | None = key("The arguments of `tool`, by name.", {"path": "README.md"})
    decide: Decide | None = key(
        "A decision of the user.", {"question": "Which store?", "options": [{"label": "redis"}]}
    )
    ask: Ask | None = key("A question to be answered with yes, no or a value.", {"question": "Publish?"})
    agent: Agent | None = key(
        "Work for a language model, with tools and within limits.", {"type": "general", "prompt": "Fix it."}
    )
    uses: Line | None = key("Another plan that runs as this step.", "./build.yml")
    with_: AnyMapping | None = key(
        "The parameters of the plan in `uses`.", {"target": "staging"}, alias="with"
    )

    depends_on: Id | Ids | Edges | None = key(
        "The steps it waits for; the mapping form says how they must have ended.", ["lint", "test"]
    )
    condition: Condition | None = key(
        "An expression; the step is skipped unless it is true.", "params.target == 'prod'"
    )
    parallel: bool | None = key(
        "false: nothing runs beside it. true: may join its neighbours in `batches`.", example=False
    )
    retries: Retries | None = key("How many extra attempts there are, or when and how.", 2)
    timeout: Duration | None = key("How long an attempt may take.", "15m")
    idle_timeout: Duration | None = key("How long an attempt may be silent.", "2m")
    on_failure: OnFailure | None = key("What its failure means for the others.", "continue")
    recovers: Ids | None = key(
        "The steps whose failure counts as recovered when this one completes.", ["test"]
    )
    replaces: Id | Ids | None = key(
        "The steps that it replaces: those do not start, and their dependents wait for it.", ["build"]
    )
    env: Env | None = key("Environment variables.", {"PYTHONUNBUFFERED": "1"})
    env_file: EnvFiles | None = key("Files of NAME=value lines, read before `env`.", "ci.env")
    workdir: Text | None = key("The folder it runs in.", "packages/core")
    shell: Text | Argv | None = key("The shell of `run`, with its options.", "bash -euo pipefail")
    outputs: Outputs | None = key("The outputs that it writes to $PLANRUN_OUTPUT.", {"sha": "string"})
    track_files: bool | None = key(
        "true: what it changes in the tree is recorded, also files that it does not name.", example=True
    )
    criteria: Lines | None = key(
        "What its result must be, in words; requires `expect` or `verify`.",
        ["The wheel can be installed."],
    )
    tags: list[Line] | None = key("Words to select steps by.", ["fast"])
    runs_on: list[Line] | None = key(
        "Labels that a worker of a cluster must have to run it. On one machine they say nothing.", ["gpu"]
    )
    owner: Line | None = key("The owner: who is responsible for it.", "team-core")
    notes: Text | None = key("Anything else worth knowing.", "Slow on the first run.")
    estimated_tokens: Count | None = key("How many tokens a model is expected to use.", 3000)
    requires: Lines | None = key("Facts that must hold before it starts, for the search.", ["tested"])
    provides: Lines | None = key("Facts that hold when it has completed, for the search.", ["published"])
    deletes: Lines | None = key("Facts that do not hold any more when it has completed.", ["staged"])
    estimated_time: Duration | None = key(
        "How long it is expected to take, as long as no run shows it.", "3m"
    )
    estimated_success: Annotated[float, Field(ge=0.01, le=1)] | None = key(
        "How likely an attempt succeeds, as long as no run shows it.", 0.8
    )
    idempotent: bool | None = key("false: never run again when it is unknown how it ended.", example=False)

    secrets: EnvNames | None = key(
        "The plan's secrets that it gets as environment variables; other steps do not get them.",
        ["PYPI_TOKEN"],
    )

    risk: RiskLevel | None = key("A higher risk than the one that planrun finds in its action.", "high")
    inputs: Texts | None = key("The files that it reads, as patterns.", ["src/**/*.py"])
    produces: Text | Produced | Annotated[list[Text | Produced], Field(min_length=1)] | None = key(
        "The files that it makes, as patterns; each must match, unless `when` says otherwise.",
        ["dist/*.whl", {"path": "logs/**", "when": "present"}],
    )
    writes: Texts | None = key("Files of others that it changes, as patterns.", ["docs/**"])
    cache: bool | Cache | None = key(
        "Whether an earlier result of the same step may be reused.", example=True
    )
    reports: Reports | None = key("Reports of its own, merged into the run's.", {"junit": "junit.xml"})
    matrix: Matrix | None = key("One instance for each combination of values.", {"python": ["3.11", "3.12"]})
    foreach: list[Anything] | Text | ForEach | None = key("One instance for each item.", ["a", "b"])
    lock: Locks | None = key(
        "Steps with the same lock never run at the same time, in this run and in others on this host.", "pypi"
    )
    service: bool | None = key("true: it keeps running for the steps that depend on it.", example=True)
    ready: Ready | None = key("How to check that the service is ready.", {"run": "curl -f localhost:8000"})
    container: Text | Container | None = key(
        "The container it runs in: its image, or a mapping. An empty image: none.", {"image": "python:3.12"}
    )
    rollback: Rollback | Annotated[list[Rollback], Field(min_length=1)] | None = key(
        "The action that undoes it when the run fails after it completed, or several, undone in reverse order.",
        {"run": "./scripts/yank.sh"},
    )
    reversible: bool | None = key(
        "Whether its effects can be undone, for policies. Left out: whether it has a `rollback`.",
        example=False,
    )
    expect: Checks | None = key("Checks that must pass after its action.", [{"files_exist": ["dist"]}])
    verify: FullText | Annotated[list[FullText | Argv], Field(min_length=1)] | None = key(
        "Commands that must pass after `expect`, one after the other.", ["pytest -q"]
    )
    verify_timeout: Duration | None = key("How long each command under `verify` may take.", "2m")
    sandbox: SandboxLevel | Sandbox | None = key("The sandbox: what it may write and connect to.", "low")


class Defaults(Written):
    """Defaults for every step."""

    timeout: Duration | None = key("How long an attempt may take.", "10m")
    idle_timeout: Duration | None = key("How long an attempt may be silent.", "2m")
    verify_timeout: Duration | None = key("How long each command under `verify` may take.", "2m")
    decision_timeout: Duration | None = key("How long `ask` and `decide` wait for an answer.", "30m")
    retries: Retries | None = key("How many extra attempts there are, or when and how.", 1)
    errors: Errors | None = key("What is done about classes of errors.", {"unknown": "retry"})
    shell: Text | Argv | None = key("The shell of `run`, with its options.", "bash -euo pipefail")
    on_failure: OnFailure | None = key("What a failure means for the other steps.", "block")
    inherit_env: Literal["safe", "all", "none"] | None = key(
        "Which variables of the caller's environment steps get; safe: none that look like credentials.",
        "safe",
    )
    workdir: Text | None = key("The folder that steps run in.", "packages/core")
    track_files: bool | None = key(
        "true: what steps change in the tree is recorded, also files that they do not name.", example=True
    )
    runs_on: list[Line] | None = key("Labels that the workers of a cluster must have.", ["linux"])
    rollback: bool | None = key("false: nothing is undone when the plan fails.", example=False)
    sandbox: SandboxLevel | Sandbox | None = key("The sandbox of steps that have none of their own.", "low")


__all__ = ["ACTIONS", "COMPANIONS", "Check", "Defaults", "Step"]
