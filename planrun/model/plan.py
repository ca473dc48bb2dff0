"""The plan as the engine sees it: every default resolved, every reference checked, nothing left to look up."""

from __future__ import annotations

from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Literal

    EdgeKind = Literal["ok", "completed", "failed", "done", "open", "same"]
    Schedule = Literal["dag", "levels", "batches", "sequential"]
    OnFailure = Literal["block", "abort", "continue", "skip", "ask", "replan"]
    from planrun.model.mcp import Server
    from planrun.model.notify import Target
    from planrun.model.planning import Llm
    from planrun.model.policy import Origin, Policy
    from planrun.model.search import Search

    Kind = str  # a key of `planrun.plan.kinds.KINDS`, "abstract" or "group"
    Section = Literal["steps", "finally", "rollback"]
    # An expression tree or a template made by `planrun.expressions`: nested tuples, opaque here.
    Tree = tuple[Any, ...]
    # A text, or a template to be rendered when the step starts.
    Text = str | Tree

DEFAULT_TIMEOUT = 300.0  # seconds, when neither the step nor `defaults` names one


def source_text(text: Text) -> str:
    """Return a text as written in the plan, with its interpolations."""
    parts = [text] if isinstance(text, str) else text[1]
    return "".join(
        [
            part.replace("${{", "$${{") if isinstance(part, str) else "${{ " + part[1].strip() + " }}"
            for part in parts
        ]
    )


class Edge(Record):
    """A dependency of a step on an earlier one. Edges that a condition added have kind `done`.

    `open`, no key of a plan: the other one may still run; it is a group that lets its members start, or a service
    that is ready. `same`: the other one, a group, has begun or ended; members wait for those of the same name.
    """

    on: str
    kind: EdgeKind


class Retry(Record):
    """How often and when a failed attempt is repeated; times in seconds."""

    max: int = 0  # extra attempts
    initial: float = 1.0
    factor: float = 2.0
    cap: float = 10.0
    jitter: float = 0.1  # share of the delay that is drawn at random
    delays: tuple[float, ...] = ()  # one after the other, the last one again; empty: by the fields above
    # Any match retries: ("any",), ("timeout",), ("idle_timeout",), ("class", "transient"),
    # ("exit", (75, 137)) or ("match", "text in the last output")
    on: tuple[tuple[Any, ...], ...] = (("any",),)


class Check(Record):
    """One check of a `validate` step: `kind` is the key in the plan, `value` what stood under it.

    files_exist, writable, commands_on_path, env_set: tuple of Text; json_schema: mapping with
    `file` (Text) and `schema` (a mapping, or Text naming a file); that: an expression tree;
    dependencies_completed: tuple of ids of steps.
    """

    kind: Literal[
        "files_exist",
        "writable",
        "commands_on_path",
        "env_set",
        "json_schema",
        "that",
        "dependencies_completed",
    ]
    value: Any
    source: str  # as written, for the result

    def formulas(self) -> Iterator[Any]:
        """Yield every text, template and expression in it."""
        if self.kind == "that":
            yield self.value
        elif self.kind == "json_schema":
            yield from [part for part in self.value.values() if isinstance(part, str | tuple)]
        else:
            yield from self.value


class Action(Record):
    """The action of a step. The record of each action kind inherits from it: see `planrun.plan.kinds`.

    The attributes say what the rest of planrun asks of a kind; they are the same for all actions of it, but for the
    texts. `text` is a text or a template.
    """

    kind = ""  # as in `Step.kind`
    starts_process = (
        False  # runs something that has a risk: files, caches, rollbacks and checks after it make sense
    )
    is_command = False  # a script or an argv that the plan has written
    is_script = False  # a shell reads it
    is_agent = False  # a language model does it, by tools
    asks = False  # a person, or criteria in their place, answer it
    guards = False  # blocks dependents and changes nothing: a model must not remove it
    timed = True  # the timeout of its step bounds each attempt
    activity = "executing_plan"  # in the stream of events
    summary = ""  # in place of its text where only a line is shown
    apply: str = ""  # what becomes of the patch of an agent: auto, ask or never
    name: str = ""  # of the tool that it calls
    in_digest = ""  # its name in the canonical form; "": that of the class
    digested: tuple[
        str, ...
    ] = ()  # the fields of the canonical form, in order; (): those that have no default value
    script: Text = ""
    argv: tuple[Text, ...] = ()
    schema: dict[str, Any] | None = None  # of the answer
    options: tuple[Any, ...] = ()  # answers to choose from

    def words(self) -> tuple[Text, ...]:
        """Return the texts that decide what its process does."""
        return ()

    def formulas(self) -> Iterator[Any]:
        """Yield every text, template and expression in it."""
        yield from self.words()

    def filled(self, fill: Callable[..., Text], value: Callable[[Tree], Any]) -> Action:
        """Return the action with other texts: `fill(text, script=…)` for each text, `value` for a template in data."""
        return self

    def classify(self, fill: Callable[..., str], shell: Any, env: Any, setting: Any) -> Any:
        """Return the risk of the written action, None if it starts no process; `fill(text, script=…)` as above."""
        return None

    def classify_job(self, job: Any, env: Any, setting: Any) -> Any:
        """Return the risk of the action before it starts."""
        raise NotImplementedError

    def written_job(self, job: Any) -> str:
        """Return the action before it starts, for people."""
        return " ".join(job.argv)

    def written(self) -> str:
        """Return the action as written in the plan, for people; lines unchanged."""
        return ""

    def by_keys(self) -> dict[str, Any]:
        """Return it as plain data by the keys of the plan language; a difference compares these."""
        return {}


class Group(Action):
    """A definition of several steps, its members: a matrix, a list of items, or another plan.

    A group starts nothing. It waits for what the step as written waits for, then it is opened, which lets its members
    start, and ends when they all have. `template`: what each member is made from during the run, None where the
    members were known before it; `axes` or `items` then say of what.
    """

    kind = "group"
    timed = False
    form: Literal["matrix", "foreach", "uses"]
    members: tuple[str, ...] = ()  # ids, in order
    template: Step | None = None
    axes: dict[str, Any] = {}  # noqa: RUF012 - never written; of a matrix: lists of values, or templates
    include: tuple[dict[str, Any], ...] = ()
    exclude: tuple[dict[str, Any], ...] = ()
    items: Any = ()  # of a list: values, or a template
    key: Tree | None = None  # an expression that names a member by its item
    max_parallel: int | None = None  # members that run at once
    fail_fast: bool = False  # the first failure of a member cancels the others
    same: tuple[tuple[str, EdgeKind], ...] = ()  # groups, for whose member of the same name each member waits
    file: str = ""  # of another plan, as it was written
    given: dict[str, Any] = {}  # noqa: RUF012 - of another plan: its parameters, values or templates
    params: tuple[Param, ...] = ()  # of another plan: how they are typed
    outputs: dict[str, Any] = {}  # noqa: RUF012 - of another plan: templates by name, read in its names
    env: dict[str, Text] = {}  # noqa: RUF012 - of another plan: for all its steps
    env_file: tuple[Text, ...] = ()  # of another plan, too

    def formulas(self) -> Iterator[Any]:
        """Yield what it is made of, and what those of its members say that are not known yet."""
        if self.items:
            yield self.items
        yield from [values for values in self.axes.values() if isinstance(values, tuple)]
        if self.template is not None:
            yield from self.template.formulas()


class Abstract(Action):
    """Nothing to do yet: the step has to be expanded before it can be executed."""

    kind = "abstract"
    timed = False


class Param(Record):
    """A typed parameter of the plan; `schema` is a JSON Schema fragment with `type`, `default`, `enum` and so on."""

    name: str
    schema: dict[str, Any]
    required: bool = False


class Cache(Record):
    """The cache settings of a step: the inputs on which its result depends besides the step itself."""

    inputs: tuple[Text, ...] = ()  # patterns
    key: Text = ""


class Reports(Record):
    """The reports that a step writes itself."""

    junit: tuple[Text, ...] = ()  # patterns of JUnit files


class Kept(Record):
    """A pattern of files that a step may make: recorded where there are any, or only when the step failed."""

    path: Text
    when: Literal["present", "failed"]


class Rollback(Record):
    """The rollback of a completed step; with `on_failed` also one that failed or was cut short once it had started.

    `undo` is a whole step of the section `rollback` but for its edges, which depend on what there is to undo.
    """

    undo: Step
    on_failed: bool = False
    more: tuple[Step, ...] = ()  # further actions that come before it, the last one first

    @property
    def undos(self) -> tuple[Step, ...]:
        """All that undoes the step, in the order of the plan: they run in the reverse order."""
        return (self.undo, *self.more)


class Hook(Record):
    """A command before or after each attempt of a step; its texts are taken as they are."""

    when: Literal["before", "after"]
    action: Action
    timeout: float = 60.0  # seconds
    fatal: bool = False  # the attempt fails with it


class Container(Record):
    """The container that a step runs in; `network` "" is the engine's default.

    `shared`: its name where several steps run in it; `per` says whether instances have one each, by their names.
    `setup`: that the step prepares it, and runs again where a resumed run has a new one.
    """

    image: Text
    env: dict[str, Text] = {}  # noqa: RUF012 - never written
    volumes: tuple[Text, ...] = ()
    user: Text = ""  # "": who runs planrun, or in a shared one the image's default
    network: str = ""
    shared: str = ""
    per: Literal["run", "instance"] = "run"
    setup: bool = False


class Serving(Record):
    """A service: it runs while other steps need it, and its command `verify` checks that it is ready; in seconds."""

    interval: float = 1.0  # from the end of a probe to the next one
    timeout: float = 60.0  # from the start of an attempt


class Sandbox(Record):
    """The limits of one step, enforced by the kernel; in a Job all paths are absolute and without templates.

    `level` "": the one of the step's risk class. `hosts`: reached through a proxy, for the network `hosts`; each is
    `host`, `host:port` or `*.domain`. `require` false: the step runs without a sandbox where there is none. `backend`:
    in a Job, what enforces it: landlock, bubblewrap or none. `hides`: in a Job, whether files of the workspace that
    look like secrets are hidden, unless `read` names them. `line`: of the key in the plan or policy file.
    """

    level: Literal["", "read-only", "low", "medium", "off"] = "off"
    network: Literal["none", "hosts", "any"] = "none"
    hosts: tuple[str, ...] = ()
    write: tuple[Text, ...] = ()
    read: tuple[Text, ...] = ()
    require: bool = True
    processes: int | None = None
    memory: int | None = None  # bytes of data, for each process
    file_size: int | None = None  # bytes
    backend: str = ""
    hides: bool = False
    line: int = 0

    @property
    def is_on(self) -> bool:
        """Whether it limits anything."""
        return self.level != "off"

    def recorded(self) -> dict[str, Any]:
        """Return it as the ledger records it for an attempt."""
        found: dict[str, Any] = {"backend": self.backend, "level": self.level, "network": self.network}
        for name in ("hosts", "write", "read"):
            if value := getattr(self, name):
                found[name] = list(value)
        for name in ("processes", "memory", "file_size"):
            if (value := getattr(self, name)) is not None:
                found[name] = value
        return found


class Step(Record):
    """One step with everything the engine needs to know."""

    id: str
    action: Action
    kind: Kind
    section: Section = "steps"
    title: str = ""
    description: str = ""
    owner: str = ""
    notes: str = ""
    tags: tuple[str, ...] = ()
    runs_on: tuple[str, ...] = ()  # labels of a worker
    estimated_tokens: int = 0
    requires: tuple[str, ...] = ()  # facts that must hold before it starts; these five are for the search
    provides: tuple[str, ...] = ()  # that hold when it has completed
    deletes: tuple[str, ...] = ()  # that do not hold any more then
    estimated_time: float | None = None  # seconds, as long as no run shows it
    estimated_success: float | None = None  # of an attempt, likewise
    edges: tuple[Edge, ...] = ()
    condition: Tree | None = None
    condition_text: str = ""
    lock: tuple[str, ...] = ()  # names that it has for itself while it runs, in this run and on this host
    parallel: bool | None = None  # False: runs alone; True: joins its neighbours under `batches`
    retries: Retry = Retry()
    timeout: float = DEFAULT_TIMEOUT  # seconds an attempt
    idle_timeout: float | None = None  # seconds without output
    on_failure: OnFailure = "block"
    replan: Literal["", "fatal", "any"] = ""  # which of its failures a model may be asked about
    recovers: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()  # steps that do not start any more: this one does what they were for
    idempotent: bool = True
    track_files: bool = False  # what it changes in the tree is recorded, named or not
    env: dict[str, Text] = {}  # noqa: RUF012 - never written
    env_file: tuple[Text, ...] = ()
    secrets: tuple[str, ...] = ()  # names of variables; their values come from planrun's own environment
    workdir: Text | None = None
    shell: tuple[str, ...] = ()  # argv before the script; empty: the machine's default
    outputs: dict[str, dict[str, Any]] = {}  # noqa: RUF012 - name to JSON Schema fragment
    inputs: tuple[Text, ...] = ()  # patterns of the files that it reads
    produces: tuple[Text, ...] = ()  # of those that it makes; each must match when it completed
    keeps: tuple[Kept, ...] = ()  # of those that it may make
    writes: tuple[Text, ...] = ()  # of others' files that it changes
    cache: Cache | None = None  # None: it always runs
    reports: Reports | None = None  # that it writes itself, to be read when an attempt ended
    conflicts: tuple[
        str, ...
    ] = ()  # steps and groups that it may not run beside, since they change the same files
    criteria: tuple[str, ...] = ()  # what its result must be, for people; `expect` and `verify` prove it
    expect: tuple[Check, ...] = ()  # that must hold when its action has completed
    # Commands that must pass after that, one after the other; of a service, the one that passes when it is ready.
    verify: tuple[Action, ...] = ()
    hooks: tuple[Hook, ...] = ()  # commands before and after each attempt, the former first
    verify_timeout: float | None = None  # seconds for each of these; None: as long as an attempt
    service: Serving | None = None
    container: Container | None = None
    sandbox: Sandbox | None = None  # what it may reach; None: no sandbox, unless a policy has one
    needs_dir: bool = False  # it refers to `step.dir`
    origin: Origin = "file"  # who wrote it
    declared_risk: str = ""  # what the plan says, at least as high as what was found
    risk: str = "high"  # of its action as written, or as declared
    risk_reason: str = ""
    effects: tuple[str, ...] = ()  # of its action: writes, destroys, network, code …
    open_risk: bool = False  # values that are not known yet decide about it
    rollback: Rollback | None = None
    reversible: bool | None = None  # what the plan says; None: it is if it has a rollback
    undoes: str = ""  # of what undoes a step: which one
    group: str = ""  # whose member it is
    instance: str = ""  # which of the members made from one template: what stands in brackets in its id
    matrix: dict[str, Any] = {}  # noqa: RUF012 - its values, by axis
    item: tuple[Any, ...] = ()  # the item that it is about, alone
    folder: str = ""  # of its records, where that cannot be its id
    file: str = ""  # where it stands, seen from the folder of the plan; empty: in the plan's own file
    line: int = 0  # where its `id` or first key stands, 1-based
    col: int = 0

    @property
    def left_out(self) -> str:
        """The reason with which it is skipped when it is not selected: leaving a question out is no way past it."""
        return "approval" if self.action.asks else "not_selected"

    @property
    def reads_files(self) -> bool:
        """Whether it declares the files it reads."""
        return bool(self.inputs or (self.cache and self.cache.inputs))

    @property
    def makes(self) -> tuple[Text, ...]:
        """All patterns of files that it makes or may make."""
        return (*self.produces, *[each.path for each in self.keeps])

    @property
    def verify_steps(self) -> tuple[Step, ...]:
        """Each post-check or readiness check, as a step with the same environment."""
        return tuple(
            [
                self.but(
                    action=action,
                    kind=action.kind,
                    verify=(),
                    expect=(),
                    service=None,
                )
                for action in self.verify
            ]
        )

    @property
    def hook_steps(self) -> tuple[Step, ...]:
        """Each hook as a step with the same environment, but for its secrets."""
        return tuple(
            [
                self.but(
                    action=hook.action, kind=hook.action.kind, verify=(), expect=(), hooks=(), secrets=()
                )
                for hook in self.hooks
            ]
        )

    @property
    def attached_steps(self) -> tuple[Step, ...]:
        """All other commands that an attempt runs, in the order of the jobs that follow that of the action."""
        return (*self.verify_steps, *self.hook_steps)

    def formulas(self) -> Iterator[Any]:
        """Yield every text, template and expression in it."""
        if self.condition is not None:
            yield self.condition
        yield from self.action.formulas()
        for check in self.expect:
            yield from check.formulas()
        for command in self.verify:
            yield from command.formulas()
        yield from (*self.env.values(), *self.env_file, *self.inputs, *self.makes, *self.writes)
        yield from (*self.cache.inputs, self.cache.key) if self.cache else ()
        yield from self.reports.junit if self.reports else ()
        if self.workdir is not None:
            yield self.workdir
        if self.container is not None:
            container = self.container
            yield from (container.image, container.user, *container.env.values(), *container.volumes)

    @property
    def grouping(self) -> Group:
        """The action of a step whose kind is "group"."""
        return self.action  # type: ignore[return-value]

    @property
    def label(self) -> str:
        """The label for people: the title, of an instance with its name, else the id."""
        return f"{self.title} [{self.instance}]" if self.title and self.instance else self.title or self.id


class Limits(Record):
    """The limits of a plan and of a run; None: no limit."""

    max_parallel: int | None = None
    deadline: float | None = None  # seconds
    cleanup: float | None = None  # seconds for undoing, and as many for the `finally` steps
    max_steps: int = 100_000
    max_items: int = 1000  # instances of one step
    max_replans: int = 3
    max_tokens: int | None = None  # of all calls to models
    max_usd: float | None = None
    max_turns: int | None = None  # calls to models
    output_bytes: int | None = (
        None  # of the end of a log, or of a result, that models get; None: as much as usual
    )
    summary_chars: int = 20_000  # of the report of an agent
    locks: dict[str, int] = {}  # noqa: RUF012 - never written; how many steps have a lock at once, where not one


class Plan(Record):
    """A checked plan; `steps` in file order, the `finally` steps after the others."""

    name: str
    file: str  # as the user named it
    digest: str  # sha256 of the canonical form, hex
    steps: tuple[Step, ...]
    version: int = 1  # of the plan: goes up when it is revised during a run
    title: str = ""
    description: str = ""
    goal: str = ""
    params: tuple[Param, ...] = ()
    outputs: dict[str, Text] = {}  # noqa: RUF012 - never written
    env: dict[str, Text] = {}  # noqa: RUF012
    env_file: tuple[Text, ...] = ()
    secrets: tuple[str, ...] = ()  # what steps may list
    optional_secrets: tuple[str, ...] = ()  # those of them that may have no value
    inherit_env: Literal["safe", "all", "none"] = "safe"
    limits: Limits = Limits()
    schedule: Schedule = "dag"
    concurrency: str = ""  # one run of this name at a time on this host
    allow_uncovered: bool = False  # --locked runs it, though it may run files that were not reviewed
    policy: Policy | None = None
    llm: Llm | None = None
    notify: tuple[Target, ...] = ()  # who is notified of a run
    mcp: tuple[Server, ...] = ()  # whose tools agents may call
    search: Search | None = None  # how a way to a goal is searched
    resume: dict[str, float] = {}  # noqa: RUF012 - rounds by which it goes on by itself: rounds, pause; empty: none
    source: bytes = b""  # the exact bytes of the file; a run keeps them
    files: dict[str, bytes] = {}  # noqa: RUF012 - of the plans that it uses, by path from its folder; kept, too

    def file_of(self, step: Step) -> str:
        """The file that contains a step, as users would name it."""
        if not step.file:
            return self.file
        if step.file.startswith("planrun:"):  # a template that comes with planrun
            return step.file
        from posixpath import dirname, join, normpath  # few steps stand in another file

        return normpath(join(dirname(self.file), step.file))

    def main(self) -> tuple[Step, ...]:
        """The steps under `steps:`."""
        return tuple(step for step in self.steps if step.section == "steps")

    def cleanup(self) -> tuple[Step, ...]:
        """The steps under `finally:`."""
        return tuple(step for step in self.steps if step.section == "finally")

    def everything(self) -> tuple[Step, ...]:
        """The steps, and what undoes them."""
        return (*self.steps, *[undo for step in self.steps if step.rollback for undo in step.rollback.undos])

    def reviewed(self) -> tuple[Step, ...]:
        """Everything that may run once the plan is reviewed: also what a search may take, and what undoes that."""
        parts = self.search.parts if self.search else ()
        undos = [undo for step in parts if step.rollback for undo in step.rollback.undos]
        return (*self.everything(), *parts, *undos)


_OPTIONAL = "\0"  # begins the text of an env file that may be missing; it is in no path


def marked(text: Text) -> Text:
    """Return the text of an env file as that of one that may be missing."""
    return _OPTIONAL + text if isinstance(text, str) else (text[0], (_OPTIONAL, *text[1]))


def unmarked(text: Text) -> tuple[Text, bool]:
    """Return the text of an env file without its mark, and whether it had one."""
    if isinstance(text, str):
        return text.removeprefix(_OPTIONAL), text.startswith(_OPTIONAL)
    first, *rest = text[1]
    if not isinstance(first, str) or not first.startswith(_OPTIONAL):
        return text, False
    parts = (first.removeprefix(_OPTIONAL), *rest)
    return (text[0], parts[1:] if not parts[0] else parts), True
