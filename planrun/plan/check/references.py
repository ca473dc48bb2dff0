"""What expressions read of instances: in a step with `matrix` or `foreach` its values, in others all outputs.

What expressions read: every path looked up, with its type, and every reason why it cannot be read.
"""

from __future__ import annotations

from planrun.expressions.check import check_condition, check_list, infer
from planrun.expressions.tree import NUMBERS, ExpressionError, spelled, type_of
from planrun.plan.check.edges import replacers, succeeded
from planrun.plan.keys.formulas import CONDITIONS
from planrun.plan.problems import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from planrun.expressions.check import Reference
    from planrun.expressions.tree import Path, Type
    from planrun.plan.keys.instances import Instances

    Finding = tuple[str, str, str]  # code, message, hint

    from collections.abc import Container

    from planrun.expressions.tree import Tree
    from planrun.plan.check.edges import Availability
    from planrun.plan.keys.formulas import Formula
    from planrun.plan.keys.outline import Outline, RawStep

    Fragments = Mapping[str, Mapping[str, Any]]

ROOTS = {"matrix": "matrix", "foreach": "item"}
"""What a member of each form reads its values by."""
INSTANCE_FIELDS = ("status", "all", "by")
_OF_ONE = ("outputs", "exit_code", "attempts")
MAX_NAMED = 5


# The values of a member.


def wrong_value(each: Instances | None, kind: str, reference: Reference) -> Iterator[Finding]:
    """Yield what is wrong with a path that begins with `matrix` or `item`; `kind` is that of its formula."""
    path = reference.path
    root = str(path[0])
    if each is None or ROOTS[each.form] != root:
        key = "matrix" if root == "matrix" else "foreach"
        yield "E217", f"`{root}` cannot be used here: the step has no `{key}:`", ""
    elif kind == "list":
        yield "E217", f"`{root}` cannot be used here: this list defines it", ""
    else:
        try:
            type_of_value(each, path)
        except ExpressionError as error:
            yield "E211", error.message, ""
            return
        lacking = None if reference.guarded else _lacking(each, path)
        if lacking:
            hint = f"write default({spelled(path)}, otherwise)"
            yield "E219", f"`{spelled(path)}` has no value in {lacking}", hint


def type_of_value(each: Instances, path: Path) -> Type:
    """Return the type that a value has in every instance, "any" where they differ; raises ExpressionError."""
    if path[0] == "matrix" and len(path) > 1 and path[1] not in each.names:
        hint = did_you_mean(str(path[1]), each.names) or f"known names: {', '.join(each.names)}"
        raise ExpressionError(f'the matrix has no "{path[1]}"; {hint}')
    if each.made is None:
        return _of_axis(each, path)
    found: set[Type] = set()
    failed: ExpressionError | None = None
    for made in each.made:
        try:
            found.add(type_of(_value(made, path)))
        except KeyError:
            continue
        except ExpressionError as error:
            failed = error
    if failed:
        raise failed
    if not found and each.made and path[0] == "item":
        raise ExpressionError(f"no item has a value for {spelled(path)}")
    return united(found)


def united(types: set[Type]) -> Type:
    """Return the type of a value that has one of these types."""
    if len(types) == 1:
        return next(iter(types))
    return "number" if types and types.issubset(NUMBERS) else "any"


def _of_axis(each: Instances, path: Path) -> Type:
    """Return the type of a value of a matrix one of whose axes is not known yet, or of an item."""
    if path[0] == "item" or len(path) == 1:
        return "any" if path[0] == "item" else "object"
    name = str(path[1])
    values = each.axes.get(name, [])
    if not isinstance(values, list):
        return "any"
    types = {type_of(value) for value in values}
    types |= {type_of(entry[name]) for entry in each.include if name in entry}
    kind = united(types)
    if len(path) > 2 and kind != "any":
        raise ExpressionError(f"{spelled(path[:2])} is of type {kind} and has no fields")
    return kind


def _value(made: Mapping[str, Any], path: Path) -> Any:
    """Return the value of a path in one instance; raises KeyError: it has none, ExpressionError: it has no fields."""
    value = made["matrix"] if path[0] == "matrix" else made["item"]
    for at, part in enumerate(path[1:], 1):
        if isinstance(value, dict) and isinstance(part, str):
            value = value[part]
        elif isinstance(value, list) and isinstance(part, int):
            if not -len(value) <= part < len(value):
                raise KeyError(part)
            value = value[part]
        else:
            problem = f"of type {type_of(value)} and has no fields"
            if isinstance(value, dict | list):
                problem = f"of type {type_of(value)} and has no [{part!r}]"
            raise ExpressionError(f'{spelled(path[:at])} of "{made["instance"]}" is {problem}')
    return value


def _lacking(each: Instances, path: Path) -> str:
    """Name the instances in which a path has no value."""
    if each.made is None:
        if path[0] == "item" or len(path) == 1:
            return ""
        name = path[1]
        if name not in each.axes:
            return "possibly every instance"
        return "instances that `include` adds" if any(name not in entry for entry in each.include) else ""
    names = []
    for made in each.made:
        try:
            _value(made, path)
        except KeyError:
            names.append(f'"{made["instance"]}"')
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more


# A group, as other steps read it.


def wrong_field(name: str, path: Path) -> Finding | None:
    """Return what is wrong with the field of a group that is asked for."""
    if len(path) > 2 and path[2] in INSTANCE_FIELDS:
        return None
    if len(path) > 2 and path[2] in _OF_ONE:
        hint = f"read steps.{name}.all.<output> or steps.{name}.by['<instance>'].<output>"
        if path[2] != "outputs":
            hint = f"a group has the fields {', '.join(INSTANCE_FIELDS)}"
        return "E211", f'step "{name}" has instances, so it has no {path[2]} of its own', hint
    if len(path) < 3:
        return "E211", f"steps.{name} requires a field", f"valid fields: {', '.join(INSTANCE_FIELDS)}"
    hint = did_you_mean(str(path[2]), INSTANCE_FIELDS) or f"valid fields: {', '.join(INSTANCE_FIELDS)}"
    return "E211", f'steps.{name} has no "{path[2]}"', hint


def wrong_output(each: Instances, outputs: Mapping[str, Any], path: Path) -> Finding | None:
    """Return what is wrong with a path to outputs of instances: an instance or an output that there is not."""
    name, field, rest = str(path[1]), path[2], path[3:]
    if field == "by" and rest:
        calls = each.calls
        if not isinstance(rest[0], str):
            return (
                "E214",
                f"steps.{name}.by requires the name of an instance as a string",
                f"write by['{rest[0]}']",
            )
        if calls is not None and rest[0] not in calls:
            hint = did_you_mean(rest[0], calls) or f"known instances: {_some(calls)}"
            return "E214", f'step "{name}" has no instance "{rest[0]}"', hint
        rest = rest[1:]
    if field == "status" or not rest or rest[0] in outputs:
        return None
    message = f'undeclared output "{rest[0]}" of step "{name}"'
    hint = did_you_mean(str(rest[0]), outputs) or f'add `outputs: {{{rest[0]}: string}}` to step "{name}"'
    return "E214", message, hint


def type_in_group(outputs: Mapping[str, Mapping[str, Any]], path: Path) -> tuple[Type, int]:
    """Return the type of the first parts of a path into a group, and how many parts these are."""
    field = path[2]
    if field == "status":
        return "string", 3
    if field == "all":
        return ("object", 3) if len(path) == 3 else ("array", 4)
    if len(path) < 5:
        return "object", len(path)
    return outputs[str(path[4])]["type"], 5


def is_of_one(path: Path) -> bool:
    """Say whether a path leads to an output of one instance, which may be absent."""
    return len(path) > 4 and path[2] == "by"


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(f'"{name}"' for name in names[:MAX_NAMED])
    return (
        shown + (f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else "") if names else "none"
    )


FIELDS: dict[str, Type] = {
    "status": "string",
    "outputs": "object",
    "exit_code": "integer",
    "attempts": "integer",
}
OF_USED = ("status", "outputs")
"""Fields of a step that uses a plan: it has no attempts."""
RUN: dict[str, Type] = {"id": "string", "ci": "boolean", "ref": "string", "sha": "string", "event": "string"}
STEP: dict[str, Type] = {"dir": "string"}
# What became of the steps, for those that come after all of them.
OUTCOME: dict[str, Type] = {"status": "string", "failed": "boolean"}
ENDS = ("completed", "failed", "skipped", "blocked", "cancelled")
VERDICTS = ("completed", "partial", "failed", "cancelled")
# Names that have no value in some places, and why.
_NOT_HERE = {
    ("general", "steps"): "a value for all steps cannot depend on one step",
    ("general", "step"): "a value for all steps cannot depend on one step",
    ("outputs", "step"): "an output of the plan has no step",
    ("question", "step"): "a question has no directory",
    ("when", "step"): "a question has no directory",
    ("list", "step"): "instances are computed before the step has a directory",
    ("given", "step"): "a step that uses a plan has no directory",
    ("condition", "step"): "a condition is evaluated before the step has a directory",
}


class References:
    """Looks up the paths of formulas; `outputs` are the declared ones by step id, `secrets` names of variables.

    `groups` are the steps that have instances.
    """

    def __init__(
        self,
        outline: Outline,
        params: Fragments,
        outputs: Mapping[str, Fragments],
        secrets: Container[str] = (),
        groups: Mapping[str, Instances] | None = None,
    ) -> None:
        self.outline = outline
        self._params = params
        self._outputs = outputs
        self._secrets = secrets
        self._groups = groups or {}
        self._seen = self._groups  # as visible to the current formula
        self._own: Instances | None = None  # of the step whose formula is checked
        # Steps that use a plan which cannot be read: their outputs are unknown.
        self.unknown = {raw.id for raw in outline.steps if "uses" in raw.keys and raw.id not in outputs}

    def type_of(self, formula: Formula) -> Type:
        """Return the type of the value of a formula, `any` where that is not known."""
        try:
            return infer(formula.value, self._type)
        except ExpressionError:
            return "any"

    def check(self, formula: Formula, available: Availability) -> None:
        """Report every path that cannot be read, else where types do not fit."""
        before = len(self.outline.problems)
        undone = formula.owner.undoes if formula.owner else None
        owner = undone or formula.owner
        self._own = self._groups.get(owner.id) if owner else None
        self._seen = self._groups
        same = [link.on for link in owner.links if link.form == "same"] if owner and self._own else ()
        if same:  # the instance of the same name is read by the id of its step
            self._seen = {name: each for name, each in self._groups.items() if name not in same}
        if undone and self._own:  # what undoes an instance reads that one by the id of the step
            self._seen = {name: each for name, each in self._seen.items() if name != undone.id}
        for reference in formula.references:
            for code, message, hint in self._wrong(reference, formula, available):
                place = ExpressionError(message, reference.offset, reference.length)
                self.outline.report_in(formula.node, code, place, hint)
        if len(self.outline.problems) > before:
            return
        try:
            if formula.kind in CONDITIONS:
                check_condition(formula.value, self._type)
            elif formula.kind == "list":
                check_list(formula.value, self._type)
            else:
                infer(formula.value, self._type)
        except ExpressionError as error:
            self.outline.report_in(formula.node, "E212", error)
        for word in unknown_statuses(formula.value):
            known = VERDICTS if word[4:] else ENDS
            message = f'unknown {"run" if word[4:] else "step"} status "{word[3]}"'
            hint = did_you_mean(word[3], known) or f"valid statuses: {', '.join(known)}"
            self.outline.report_in(formula.node, "E216", ExpressionError(message, word[1], word[2]), hint)

    def _wrong(
        self, reference: Reference, formula: Formula, available: Availability
    ) -> Iterator[tuple[str, str, str]]:
        """Yield what is wrong with a path, as code, message and hint."""
        path = reference.path
        root = path[0]
        why = _NOT_HERE.get((formula.kind, str(root)))
        if why:
            yield "E217", f"`{root}` cannot be used here: {why}", ""
        elif root in ("matrix", "item"):
            yield from wrong_value(self._own, formula.kind, reference)
        elif formula.kind == "key":
            yield "E217", f"`{root}` cannot be used here: `key` can only read `item`", ""
        elif root == "env" and len(path) > 1 and path[1] in self._secrets:
            name = path[1]
            message = f"`env.{name}` cannot be used here: {name} is a secret, which expressions cannot read"
            yield (
                "E217",
                message,
                f'list it under `secrets` of the step that needs it, and read "${name}" there',
            )
        elif (
            root == "run"
            and path[1:2]
            and path[1] in OUTCOME
            and not (formula.owner is not None and formula.owner.section == "finally")
        ):
            message = (
                f"`run.{path[1]}` cannot be used here: the outcome of the steps is known when all have ended"
            )
            yield "E217", message, "steps under `finally:` can read it"
        elif root == "steps":
            yield from self._wrong_step(reference, formula, available)
        else:
            try:
                self._type(path)
            except ExpressionError as error:
                yield "E211", error.message, ""
                return
            if root == "params" and len(path) > 1 and not reference.guarded:
                yield from self._unset(str(path[1]))

    def _unset(self, name: str) -> Iterator[tuple[str, str, str]]:
        """Yield why a parameter may have no value when it is read."""
        fragment = self._params[name]
        if "default" in fragment or fragment.get("required") is True:
            return
        message = f'the parameter "{name}" may be absent: it has no default and is not required'
        hint = f"add a `default`, set `required: true`, or use default(params.{name}, otherwise)"
        yield "E219", message, hint

    def _wrong_step(
        self, reference: Reference, formula: Formula, available: Availability
    ) -> Iterator[tuple[str, str, str]]:
        path = reference.path
        if len(path) < 2:
            yield "E211", "`steps` requires the id of a step: steps.<id>.status", ""
            return
        name = str(path[1])
        raw = self.outline.by_id.get(name)
        if raw is None:
            yield "E202", f'unknown step "{name}"', self.outline.suggest(name)
            return
        if name in self._seen:
            yield from self._wrong_group(raw, reference, formula, available)
            return
        fields = FIELDS if "uses" not in raw.keys else OF_USED
        if len(path) < 3 or path[2] not in fields:
            field = f'has no "{path[2]}"' if len(path) > 2 else "requires a field"
            hint = did_you_mean(str(path[2]), fields) if len(path) > 2 else ""
            yield "E211", f"steps.{name} {field}", hint or f"valid fields: {', '.join(fields)}"
            return
        if path[2] == "outputs" and len(path) > 3 and "replaces" in self.outline.keys:
            raw = self._in_place_of(raw, str(path[3]))
            name, path = raw.id, (*path[:1], raw.id, *path[2:])
        found = self._unreachable(raw, str(path[2]), formula, available)
        if found:
            yield found
            return
        try:
            self._type(path)
        except ExpressionError as error:
            yield "E214", error.message, self._nearest_output(name, path)
            return
        if path[2] == "outputs" and len(path) > 3 and not reference.guarded:
            found = self._absent(raw, reference, formula, available)
            if found:
                yield found

    def _in_place_of(self, raw: RawStep, output: str) -> RawStep:
        """Return the step whose output is read where that of a replaced one is named: one that declares it, if any."""
        places, seen = replacers(self.outline), {raw.id}
        while others := [self.outline.by_id[each] for each in places.get(raw.id, ()) if each not in seen]:
            declares = [each for each in others if output in self._outputs.get(each.id, {})]
            raw = (declares or others)[0]
            seen.add(raw.id)
        return raw

    def _wrong_group(
        self, raw: RawStep, reference: Reference, formula: Formula, available: Availability
    ) -> Iterator[tuple[str, str, str]]:

        path = reference.path
        found = wrong_field(raw.id, path) or self._unreachable(raw, str(path[2]), formula, available)
        found = found or wrong_output(self._seen[raw.id], self._outputs.get(raw.id, {}), path)
        if found:
            yield found
            return
        try:
            self._type(path)
        except ExpressionError as error:
            yield "E214", error.message, ""
            return
        if is_of_one(path) and not reference.guarded:
            found = self._absent(raw, reference, formula, available)
            if found:
                yield found

    def _unreachable(
        self, raw: RawStep, field: str, formula: Formula, available: Availability
    ) -> tuple[str, str, str] | None:
        """Return why the reader may not read a step at all."""
        reader = formula.owner
        if reader is None:
            return None
        if reader is raw and formula.kind == "proof" and field in ("outputs", "status"):
            return None
        if reader is raw:
            return (
                "E203",
                f'step "{raw.id}" reads its own {field}',
                "its values are available when it has ended",
            )
        if reader.section != raw.section and (reader.section, raw.section) != ("rollback", "steps"):
            if field == "status" and reader.section == "finally":
                return None
            rule = "a step under `steps:` cannot read a step under `finally:`"
            if reader.section == "finally":
                rule = "a step under `finally:` can read only the status of other steps"
            return "E213", f'step "{reader.id}" reads {field} of "{raw.id}"', rule
        if available.is_behind(reader.id, raw.id):
            return None
        who = f'the rollback of step "{reader.undoes.id}"' if reader.undoes else f'step "{reader.id}"'
        message = f'{who} reads {field} of "{raw.id}" but does not depend on it'
        return "E213", message, f"add `depends_on: [{raw.id}]`"

    def _absent(
        self, raw: RawStep, reference: Reference, formula: Formula, available: Availability
    ) -> tuple[str, str, str] | None:
        """Return why an output may be missing when it is read."""
        reader = formula.owner
        if reader is raw:  # a proof: its outputs are there
            return None
        if reader is None:
            sure = available.survives(raw.id)
        else:
            sure = available.is_sure(reader.id, raw.id)
            if formula.kind == "condition":
                # In the condition itself only what was asked before counts.
                known = succeeded(formula.value)
                own = any(link.on == raw.id and link.kind == "done" for link in reader.links)
                if own and raw.id in known:
                    sure = reference.offset >= known[raw.id]
        group = self._seen.get(raw.id)
        if sure and (group is None or not group.may_lack):
            return None
        name = reference.path[4 if raw.id in self._seen else 3]
        message = (
            f'the output "{name}" of step "{raw.id}" may be absent here: the step may not have completed'
        )
        return "E215", message, "write default(…, otherwise), or depend on it by `completed`"

    def _nearest_output(self, name: str, path: Path) -> str:
        if len(path) < 4 or path[3] in self._outputs.get(name, {}):
            return ""
        declared = self._outputs.get(name, {})
        used = self.outline.by_id[name].keys.get("uses")
        where = f'`outputs: {{{path[3]}: string}}` to step "{name}"'
        if used is not None:
            where = f"`outputs: {{{path[3]}: ${{{{ … }}}}}}` to {used.value}"
        return did_you_mean(str(path[3]), declared) or f"add {where}"

    def _type(self, path: Path) -> Type:
        """Return the type of a path; raises ExpressionError for one that does not exist."""
        root = path[0]
        if root in ("matrix", "item") and self._own is not None:
            return type_of_value(self._own, path)
        if root == "steps" and len(path) > 2:
            return self._type_of_step(path)
        if len(path) == 1:
            return "object"
        name = str(path[1])
        if root == "params":
            if name not in self._params:
                hint = (
                    did_you_mean(name, self._params)
                    or f"known parameters: {', '.join(self._params) or 'none'}"
                )
                raise ExpressionError(f'unknown parameter "{name}"; {hint}')
            return _inside(self._params[name]["type"], path, 2)
        if root == "env":
            return _inside("string", path, 2)
        fields = {"run": {**RUN, **OUTCOME}, "step": STEP}.get(str(root))
        if fields is None:
            return "any"
        if name not in fields:
            hint = did_you_mean(name, fields) or f"known names: {', '.join(fields)}"
            raise ExpressionError(f'`{root}` has no "{name}"; {hint}')
        return _inside(fields[name], path, 2)

    def _type_of_step(self, path: Path) -> Type:
        field = str(path[2])
        if path[1] in self._seen:
            kind, used = type_in_group(self._outputs.get(str(path[1]), {}), path)
            return _inside(kind, path, used)
        if field not in FIELDS:
            hint = did_you_mean(field, FIELDS) or f"valid fields: {', '.join(FIELDS)}"
            raise ExpressionError(f'steps.{path[1]} has no "{field}"; {hint}')
        if field != "outputs" or len(path) == 3:
            return _inside(FIELDS[field], path, 3)
        declared = self._outputs.get(str(path[1]), {})
        name = str(path[3])
        if path[1] in self.unknown:
            return "any"
        if name not in declared:
            raise ExpressionError(f'undeclared output "{name}" of step "{path[1]}"')
        return _inside(declared[name]["type"], path, 4)


def _inside(kind: Type, path: Path, used: int) -> Type:
    """Return the type of what lies behind the first `used` parts of a path, which are of type `kind`."""
    if len(path) == used:
        return kind
    if kind in ("array", "object", "any"):
        return "any"
    raise ExpressionError(f"{spelled(path[:used])} is of type {kind} and has no fields")


def unknown_statuses(value: Tree) -> Iterator[Tree]:
    """Yield each constant that a status is compared with and that no status ever is; that of a run with a mark."""
    parts = [part[0] for part in value[1] if isinstance(part, tuple)] if value[0] == "template" else [value]
    while parts:
        tree = parts.pop()
        if tree[0] in ("const", "path"):
            continue
        if tree[0] == "compare" and (known := next(filter(None, map(_ends, tree[4:6])), ())):
            mark = ("run",) if known is VERDICTS else ()
            words = [word for side in tree[4:6] for word in (side[3] if side[0] == "list" else (side,))]
            yield from (
                (*word[:4], *mark)
                for word in words
                if word[0] == "const" and type(word[3]) is str and word[3] not in known
            )
        for part in tree[3:]:
            if isinstance(part, tuple) and part:
                parts.extend(part if isinstance(part[0], tuple) else (part,))


def _ends(tree: Tree) -> tuple[str, ...]:
    """Return what a path can end as that is the status of a step, or of the run; empty for everything else."""
    if tree[0] != "path":
        return ()
    if len(tree[3]) == 3 and tree[3][::2] == ("steps", "status"):
        return ENDS
    return VERDICTS if tree[3] == ("run", "status") else ()
