"""The plan of a command line that names none, and the words that are step ids instead of a file.

Per folder, in this order: `plan:` in `.planrun.yml`, `plan.yml`, `plan.yaml`, the only plan in `plans/`. The current
folder is searched first, then each folder above it up to the root of the repository.
"""

from __future__ import annotations

import os

from planrun.cliutil import write_stderr
from planrun.errors import InvalidInput, InvalidPlan, PlanrunError
from planrun.model.record import Record
from planrun.plan.yaml.file import read_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from planrun.cliutil.options import Option
    from planrun.model.plan import Plan
    from planrun.plan.problems import Problem
    from planrun.plan.yaml.node import Node


_SIMPLE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./")


def plan_named(path: str, folder: str) -> str:
    """Return the plan that a project file names, as seen from its folder; "" when it names none.

    Raises InvalidPlan with every problem. The file comes with the checkout: it names no plan outside its folder.
    """
    data = read_source(path, "project file")
    if (simple := _simple(data)) and os.path.isfile(_target(simple, folder)):
        return simple
    from planrun.plan.project import read  # most project files have one line

    root, data = read(path)
    plan = root.get("plan") if root is not None else None
    if plan is None:
        return ""
    target = _target(plan.value, folder)
    if not target:
        message = f"{plan.value} is outside the folder of {os.path.basename(path)}"
        problems = [_problem("E290", message, path, plan, "name a plan inside it")]
    elif not os.path.isfile(target):
        problems = [_problem("E290", f"no such file: {plan.value}", path, plan)]
    else:
        problems = []
    if problems:
        raise InvalidPlan(problems, sources={path: data})
    return os.path.normpath(str(plan.value))


def _target(plan: str, folder: str) -> str:
    """Return the path of a plan with links followed; "" when it is outside its folder."""
    here = os.path.realpath(folder or ".")
    target = os.path.realpath(os.path.join(here, plan))
    is_inside = not os.path.isabs(plan) and target.startswith(here.rstrip("/") + "/")
    return target if is_inside else ""


def _problem(code: str, message: str, path: str, node: Node, hint: str = "") -> Problem:
    from planrun.plan.problems import Problem

    return Problem(
        code=code, message=message, file=path, line=node.line, col=node.col, end_col=node.end_col, hint=hint
    )


def _simple(data: bytes) -> str:
    """Return the plan of a file whose only line besides comments is `plan: NAME`, without a YAML reader; else ""."""
    rows = [row for row in data.split(b"\n") if row.strip() and not row.startswith(b"#")]
    if len(rows) != 1 or not rows[0].startswith(b"plan: "):
        return ""
    name = rows[0][6:].strip().decode("ascii", "replace")
    return name if name.endswith((".yml", ".yaml")) and not set(name) - _SIMPLE else ""


PROJECT_FILE = ".planrun.yml"
PLAN_FILES = ("plan.yml", "plan.yaml")
PLANS_FOLDER = "plans"
ENDINGS = (".yml", ".yaml")
_MOST_FILES = 200  # of a folder; a folder with more holds data


class Chosen(Record):
    """A plan file as seen from its folder; `folder` is absolute, and empty when it is the current one.

    `below` leads from `folder` back to where the user is; empty when both are the same.
    """

    file: str
    folder: str = ""
    below: str = ""

    def path(self, typed: str) -> str:
        """Return a path that the user typed, as seen from the plan's folder; COMMIT:PATH stays as it is."""
        from_git = ":" in typed and not typed.startswith(("./", "../", "/"))
        return os.path.join(self.below, typed) if typed and self.below and not from_git else typed


def is_plan_name(word: str) -> bool:
    """Return whether an operand is a plan file and not a step: a path, a YAML file name, a file that exists, or `-`."""
    return (
        not word
        or word.endswith(ENDINGS)
        or "/" in word
        or word == "-"
        or (os.path.exists(word) and not os.path.isdir(word))
    )


def default_plan() -> Chosen:
    """Return the plan of the current folder, or of the nearest folder above it; raises InvalidInput, InvalidPlan."""
    for folder, below in folders():
        file = plan_of(folder)
        if file:
            return Chosen(file=file, folder=folder, below=below)
    from planrun.cliutil.otherfiles import are_plans, convert_commands  # for the message only

    others = plans_in("")
    commands = [f"planrun run {name}" for name in are_plans(others)] or convert_commands(others)
    rows = [f"\n  {command}" for command in commands] or [_plan_above()]
    raise InvalidInput(
        f"no plan named; looked for {PROJECT_FILE}, plan.yml, plan.yaml and {PLANS_FOLDER}/*.yml{''.join(rows)}"
    )


def _plan_above() -> str:
    """Return the line that helps without a plan: the folder above that has one, or how to write one.

    Outside a repository a plan above is offered and never taken.
    """
    try:
        here = os.getcwd()
    except OSError:  # it was deleted
        here = ""
    for folder in () if os.path.exists(".git") else _own_folders_above(here):
        if any(os.path.isfile(os.path.join(folder, name)) for name in PLAN_FILES):
            return f"\n  {folder} has one: planrun -C {os.path.relpath(folder, here)} run"
        if os.path.exists(os.path.join(folder, ".git")):
            break
    return "\n  to write a first plan: planrun init"


def _own_folders_above(here: str) -> Iterator[str]:
    """Yield the folders above one as long as they belong to the same user."""
    try:
        owner = os.stat(here).st_uid
        folder = here
        while (parent := os.path.dirname(folder)) != folder and os.stat(parent).st_uid == owner:
            folder = parent
            yield folder
    except OSError:
        return


def take_default() -> Chosen:
    """Return the default plan, work in its folder from now on, and write to stderr which plan it is.

    Raises InvalidInput, InvalidPlan.
    """
    chosen = default_plan()
    if chosen.folder:
        os.chdir(chosen.folder)
    note(chosen)
    return chosen


def given(plan: str | None) -> Chosen:
    """Return the plan that an operand names; without one the default plan, in whose folder this process then works.

    Raises InvalidInput, InvalidPlan.
    """
    if plan and not is_plan_name(plan) and plan in default_steps():
        raise InvalidInput(
            f'"{plan}" is a step of {default_file()}, and no plan; to see it: planrun explain {plan}'
        )
    return Chosen(file=plan) if plan else take_default()


def default_steps() -> dict[str, str]:
    """Return the steps of the plan that runs when none is named, with their titles; none without such a plan."""
    from planrun.plan.load import load  # for messages and completion only

    try:
        file = default_file()
        return {step.id: step.title for step in load(file).main()} if file else {}
    except PlanrunError:
        return {}


def default_file() -> str:
    """Return the path of the plan that runs when none is named; "" without one."""
    try:
        chosen = default_plan()
        return os.path.join(chosen.folder, chosen.file)
    except PlanrunError:
        return ""


def note(chosen: Chosen, more: str = "") -> None:
    """Write to stderr which plan is taken, and where it runs when that is another folder."""
    where = f", in {chosen.folder}" if chosen.folder else ""
    text = f"planrun: plan: {chosen.file}{where}{more}"
    if not text.isprintable():
        from planrun.cliutil.failure import printable  # file names are rarely so odd

        text = printable(text)
    write_stderr(f"{text}\n")


def folders() -> Iterator[tuple[str, str]]:
    """Yield the current folder as "", then each folder above up to the repository's root, with the way back.

    Outside a repository only the current folder counts. A folder above that belongs to another user than the current
    one ends the search: its files are not this user's.
    """
    yield "", ""
    if os.path.exists(".git"):
        return
    try:
        here = os.getcwd()
    except OSError:
        return
    above = []
    for folder in _own_folders_above(here):
        above.append((folder, os.path.relpath(here, folder)))
        if os.path.exists(os.path.join(folder, ".git")):
            yield from above
            return


def in_repository(file: str) -> str:
    """Return a file of this folder as git names it: from the root of the repository; as it is outside of one."""
    folder = here = os.getcwd()
    while not os.path.exists(os.path.join(folder, ".git")):
        folder, below = os.path.dirname(folder), folder
        if folder == below:
            return file
    return os.path.relpath(os.path.join(here, file), folder)


def plan_of(folder: str) -> str:
    """Return the default plan of a folder as seen from it, "" if there is none; raises InvalidInput, InvalidPlan."""
    project = os.path.join(folder, PROJECT_FILE)
    if os.path.lexists(project) and (named := plan_named(project, folder)):
        return named
    for name in PLAN_FILES:
        if os.path.isfile(os.path.join(folder, name)):
            return name
    plans = plans_in(os.path.join(folder, PLANS_FOLDER))
    if len(plans) > 1:
        rows = "".join([f"\n  planrun run {PLANS_FOLDER}/{name}" for name in plans])
        where = f" of {folder}" if folder else ""
        raise InvalidInput(
            f"{PLANS_FOLDER}/{where} has {len(plans)} plans; name one, or set `plan:` in {PROJECT_FILE}{rows}"
        )
    return f"{PLANS_FOLDER}/{plans[0]}" if plans else ""


def plans_in(folder: str) -> list[str]:
    """Return the names of the YAML files of a folder that are plans: not policies, not templates, nothing hidden."""
    try:
        names = sorted(os.listdir(folder or "."))
    except OSError:
        return []
    files = [name for name in names if name.endswith(ENDINGS) and not name.startswith(".")]
    return [name for name in files[:_MOST_FILES] if _has_steps(os.path.join(folder, name))]


def _has_steps(path: str) -> bool:
    """Return whether a file has the keys of a plan at the beginning of lines, whatever else is wrong with it."""
    try:
        if not os.path.isfile(path):
            return False
        with open(path, "rb") as file:
            text = b"\n" + file.read(1 << 20)
    except OSError:
        return False
    return (b"\nsteps:" in text or b"\nextends:" in text) and b"\ntemplate:" not in text


class Named(Record):
    """What the operands `[PLAN] [STEP]…` name."""

    chosen: Chosen
    steps: tuple[str, ...] = ()
    is_silent: bool = False

    def announce(self, plan: Plan) -> None:
        """Write which plan and steps run; raises InvalidInput for an operand that is neither a file nor a step."""
        steps = self.steps
        known = {step.id: step for step in plan.steps}
        for name in steps:
            step = known.get(name)
            if step is None:
                from planrun.plan.problems import did_you_mean

                hint = did_you_mean(name, sorted(known))
                listed = ", ".join([step.id for step in plan.main()[:20] if not step.group])
                if os.path.isdir(name):
                    listed += f"\n  {name} is a folder; to run its plan: planrun -C {name} run"
                raise InvalidInput(
                    f'"{name}" is no file and no step of {plan.file}{f"; {hint}" if hint else ""}\n  steps: {listed}'
                )
            if step.section != "steps":
                raise InvalidInput(
                    f'"{name}" is in `{step.section}` of {plan.file} and cannot be chosen: {_WHEN[step.section]}'
                )
        if self.is_silent:
            return
        names = ", ".join(self.steps)
        depend = "they depend" if len(self.steps) > 1 else "it depends"
        note(self.chosen, f"; runs {names} and what {depend} on" if names else "")


def named_by(operands: Sequence[str], values: dict[str, Any], options: Sequence[Option]) -> Named:
    """Return the plan file and the steps of the operands `[PLAN] [STEP]…`.

    Steps are added to `until` in `values`. Where the plan is in another folder, that becomes the current one, and paths
    in `values` are adapted. Raises InvalidInput, InvalidPlan.
    """
    steps = tuple(operands)
    for word in steps:
        if word.partition("=")[0].isidentifier() and "=" in word and not is_plan_name(word):
            raise InvalidInput(f'"{word}" names no step; a parameter is given by -p: planrun run -p {word}')
    is_silent = values.get("output") == "quiet" or values.get("log_level") in ("warning", "error")
    if steps and is_plan_name(steps[0]):
        chosen, steps = Chosen(file=steps[0]), steps[1:]
        is_silent = is_silent or not steps
    else:
        try:
            chosen = default_plan()
        except InvalidInput as error:
            if not steps:
                raise
            raise InvalidInput(f'no such file: "{steps[0]}"; {error}') from None
        if chosen.folder:
            os.chdir(chosen.folder)
            for option in options:
                value = values.get(option.name)
                if value and option.metavar in ("FILE", "DIR", "TARGET"):
                    several = isinstance(value, tuple)
                    paths = tuple(
                        [_adapted(option, path, chosen) for path in (value if several else (value,))]
                    )
                    values[option.name] = paths if several else paths[0]
    if steps:
        values["until"] = (*values.get("until", ()), *steps)
    return Named(chosen=chosen, steps=steps, is_silent=is_silent)


def _adapted(option: Option, path: str, chosen: Chosen) -> str:
    is_descriptor = option.metavar == "TARGET" and path.isdecimal()
    return path if is_descriptor else chosen.path(path)


_WHEN = {"finally": "it runs at the end of every run", "rollback": "it runs when a run is rolled back"}
