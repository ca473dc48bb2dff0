"""What each key of a plan is, in one table: everything that reads, checks, compares or shows a key asks here.

A row says which field of the record `Step` or `Plan` the key becomes, and in which form. The form names the functions
that read it (`compile.compile`), make it canonical (`compile.canonical`) and show it (`diff.plain`,
`reports.describe`). The type of a value and its description stand in `planrun.plan.schema`.

Forms: word, seconds, number, amount, flag: plain values. words: texts that are taken as they are; names: the same,
in any order. template, templates, named: texts that are filled in when a step starts, one, a list, by name. tree: an
expression. command: words of a shell. steps: ids. fragments: JSON Schemas by name. record: a record of plain data;
records and checks: a list of such. All others stand for one field each.
"""

from __future__ import annotations

from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any


class Key(Record):
    """A key of a plan or a step, or a field of the record that follows from other keys: then `key` is "".

    `field`: of the record; "" where the key has none of its own. `holds`: what its texts are, by the name of a function
    in `keys.formulas`; "literal": a text in which a template is a mistake. `module`: the one of `planrun.plan.keys`
    that checks and compiles it; it is loaded for plans that have the key. `role`: "people": it changes nothing that
    happens; "flow": it changes when, whether and how often a step runs; "": it changes what is done.
    """

    key: str
    field: str
    form: str = "word"
    under: str = ""  # the key that a change of it is shown under, where it is not `key`
    holds: str = ""
    module: str = ""
    role: str = ""
    shown: str = ""  # its name in `show --json`
    special: bool = False  # it is compiled by `COMPILE` of its module, whatever its form
    general: bool = False  # `defaults` may have it, for all steps that are no gates
    grouped: bool = False  # the group of a step with instances has it as well
    undone: bool = False  # what undoes a step has it as well
    masked: bool = False  # a text that is shown, and in which secrets are masked
    merged: bool = False  # a plan that extends another one keeps what its mapping does not change
    digest: bool = True  # it counts for the digest
    diff: bool = True  # it is compared by its field


def _key(key: str, form: str = "word", field: str | None = None, **more: object) -> Key:
    return Key(key=key, field=key if field is None else field, form=form, **more)  # type: ignore[arg-type]


def _action(key: str, holds: str = "", module: str = "") -> Key:
    """Return the row of an action, or of a key that belongs to one."""
    return Key(key=key, field="", form="", holds=holds, module=module)


def _fact(field: str, form: str = "word", **more: object) -> Key:
    return Key(key="", field=field, form=form, **more)  # type: ignore[arg-type]


# In the order in which `show --json` has them, and texts with expressions are read.
_STEP = (
    _key("id", form="id", role="flow", shown="id", grouped=True, diff=False),
    _key("title", holds="literal", role="people", shown="title", grouped=True, masked=True),
    _key("description", role="people", shown="description", grouped=True, masked=True),
    _fact("kind", shown="kind", diff=False),
    _fact("section", role="flow", shown="section", grouped=True),
    _fact("origin", role="flow", shown="origin", undone=True),
    _fact("risk", shown="risk", grouped=True, digest=False),
    _fact("risk_reason", shown="risk_reason", grouped=True, masked=True, digest=False),
    _key("risk", field="declared_risk", role="flow", shown="declared_risk", grouped=True),
    _fact("effects", shown="effects", grouped=True, digest=False),
    _fact("open_risk", shown="open_risk", grouped=True, digest=False),
    _fact("conflicts", digest=False),
    _fact("line", shown="line", grouped=True, digest=False),
    _fact("col", grouped=True, digest=False),
    _fact("file", digest=False),
    _fact("folder", role="flow", digest=False),
    _fact("action", form="action", shown="action", diff=False),
    _action("run"),
    _key("depends_on", form="edges", field="edges", role="flow", shown="depends_on", grouped=True),
    _key("condition", form="tree", holds="condition", role="flow", shown="condition"),
    _fact("condition_text", role="flow", masked=True, digest=False),
    _key("recovers", form="steps", role="flow", shown="recovers", grouped=True),
    _key("replaces", form="steps", role="flow", grouped=True),
    _key("on_failure", role="flow", shown="on_failure", general=True, grouped=True, diff=False),
    _fact("replan", under="on_failure", role="flow", diff=False),
    _key("parallel", form="flag", role="flow", shown="parallel"),
    _key("rollback", form="rollback", module="rollback", shown="rollback"),
    _key("reversible", form="flag", role="flow", shown="reversible"),
    _key("timeout", form="seconds", role="flow", shown="timeout_s", general=True),
    _key("idle_timeout", form="seconds", role="flow", shown="idle_timeout_s", general=True),
    _key("verify_timeout", form="seconds", module="checks", shown="verify_timeout_s", general=True),
    _key("retries", form="retries", role="flow", shown="retries", general=True),
    _action("exec", "texts"),
    _key("env_file", form="templates", holds="texts", undone=True),
    _key("workdir", form="template", holds="texts", general=True, undone=True),
    _key("shell", form="command", general=True, undone=True),
    _key("inputs", form="templates", holds="texts", module="files"),
    _key("produces", form="templates", holds="patterns", module="files", special=True),
    _fact("keeps", form="records"),
    _key("writes", form="templates", holds="texts", module="files"),
    _key("cache", form="record", holds="within", module="files"),
    _key("reports", form="record", holds="within", module="files"),
    _key("env", form="named", holds="named", undone=True),
    _key("outputs", form="fragments", shown="outputs", grouped=True),
    _key("secrets", form="names", module="top", shown="secrets", undone=True),
    _action("validate", "checks", "checks"),
    _key("criteria", form="words", module="checks", role="people", shown="criteria"),
    _key("expect", form="checks", holds="proofs", module="checks"),
    _key("verify", form="commands", holds="commands", module="checks"),
    _fact("hooks", form="hooks", role="flow", under="hooks"),
    _key("service", form="record", module="services"),
    _key("ready", form="", field="", holds="probe", module="services"),
    _key("container", form="record", holds="container", module="containers"),
    _action("ask", "question", "gates"),
    _action("decide", "question", "gates"),
    _action("agent", "agent", "agents"),
    _action("uses", "", "uses"),
    _action("with", "given", "uses"),
    _key("matrix", form="axes", holds="axes", module="instances"),
    _key("foreach", form="", field="", holds="items", module="instances"),
    _fact("item", form="items"),
    _action("tool", "", "tools"),
    _action("args", "call", "tools"),
    _key("tags", form="words", role="flow", shown="tags", grouped=True),
    _key("runs_on", form="words", role="flow", shown="runs_on", general=True, undone=True),
    _key("owner", holds="literal", role="people", shown="owner", grouped=True, undone=True, masked=True),
    _key("notes", role="people", grouped=True, masked=True),
    _key("estimated_tokens", form="number", role="people", shown="estimated_tokens"),
    _key("requires", form="names", module="search", role="flow", shown="requires"),
    _key("provides", form="names", module="search", role="flow", shown="provides"),
    _key("deletes", form="names", module="search", role="flow", shown="deletes"),
    _key("estimated_time", form="seconds", role="people", shown="estimated_time_s"),
    _key("estimated_success", form="amount", role="people", shown="estimated_success"),
    _key("lock", form="names", role="flow"),
    _key("idempotent", form="flag", role="flow"),
    _key("track_files", form="flag", general=True),
    _key(
        "sandbox",
        form="record",
        module="sandbox",
        shown="sandbox",
        general=True,
        undone=True,
    ),
    _fact("needs_dir", undone=True, diff=False),
    _fact("undoes"),
    _fact("group", diff=False),
    _fact("instance", diff=False),
)
_PLAN = (
    _key("$schema", form="", field=""),
    _key("version", form="", field=""),
    _key("name", masked=True),
    _fact("file", masked=True, digest=False),
    _fact("title", role="people", masked=True),
    _key("description", role="people", masked=True),
    _key("goal", role="people", masked=True),
    _key("template", form="", field=""),
    _key("extends", form="", field=""),
    _key("params", form="params", merged=True),
    _key("env_file", form="templates", holds="files"),
    _key("env", form="named", holds="variables", merged=True),
    _key("defaults", form="", field="", holds="defaults", merged=True),
    _fact("inherit_env", under="defaults.inherit_env"),
    _key("outputs", form="named", holds="outputs", merged=True),
    _key("secrets", form="names", module="top"),
    _fact("optional_secrets", form="names"),
    _key("limits", form="limits", merged=True),
    _key("schedule"),
    _key("concurrency"),
    _key("allow_uncovered", form="flag"),
    _key("policy", form="policy", module="policy", diff=False),
    _key("llm", form="llm", module="collaboration", merged=True),
    _key("notify", form="notify", module="notify"),
    _key("search", form="search", module="search"),
    _key("resume", form="resume"),
    _key("hooks", form="", field="", module="hooks"),
    _key("containers", form="", field="", merged=True),
    _key("agents", form="", field="", module="agents", merged=True),
    _key("mcp", form="mcp", module="mcp", merged=True),
    _key("decisions", form="", field="", merged=True),
    _key("steps", form="", field="steps", digest=False),
    _key("finally", form="", field=""),
    _fact("version"),
    _fact("digest", digest=False),
    _fact("source", digest=False),
    _fact("files", digest=False),
)
# Fields of the records inside of steps and plans that are no plain data.
_INSIDE = {
    "question": "template",
    "when": "tree",
    "argv": "templates",
    "script": "template",
    "prompt": "template",
    "suffix": "template",
    "args": "arguments",
    "image": "template",
    "path": "template",
    "user": "template",
    "volumes": "templates",
    "junit": "templates",
    "key": "template",
    "given": "arguments",
}

STEP: dict[str, Key] = {row.key: row for row in _STEP if row.key}
"""The keys of a step."""
PLAN: dict[str, Key] = {row.key: row for row in _PLAN if row.key}
"""The keys at the top of a plan."""
STEP_FIELDS: dict[str, Key] = {row.field: row for row in _STEP if row.field}
"""The fields of the record `Step`."""
PLAN_FIELDS: dict[str, Key] = {row.field: row for row in _PLAN if row.field}
"""The fields of the record `Plan`."""
FORMS: dict[str, str] = {
    **_INSIDE,
    **{name: row.form for table in (PLAN_FIELDS, STEP_FIELDS) for name, row in table.items()},
}
"""The form of a field, by its name in whatever record: a name that two of them share has one canonical form."""


def fields_with(attribute: str, table: dict[str, Key] = STEP_FIELDS) -> tuple[str, ...]:
    """Return the fields whose rows have an attribute that is not empty: `fields_with("masked")`."""
    return tuple([name for name, row in table.items() if getattr(row, attribute)])


def fields_for(*roles: str, table: dict[str, Key] = STEP_FIELDS) -> tuple[str, ...]:
    """Return the fields that have one of these roles."""
    return tuple([name for name, row in table.items() if row.role in roles])


def modules_of(keys: Collection[str], table: dict[str, Key] = STEP) -> frozenset[str]:
    """Return the modules that check these keys."""
    return frozenset([table[key].module for key in keys if key in table])


def module(name: str) -> Any:
    """Return a module of `planrun.plan.keys`; most plans need few of them, and load no other."""
    return __import__(f"planrun.plan.keys.{name}", fromlist=("",))
