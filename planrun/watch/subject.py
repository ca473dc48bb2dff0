"""Which files a watch looks at: the plan, what it includes and runs, and what its steps read."""

from __future__ import annotations

import os
from stat import S_ISREG

from planrun.actions.files import matching, patterns_of
from planrun.app.preflight import Ahead
from planrun.app.run import selection_of
from planrun.approval.preview import fill
from planrun.model.plan import unmarked
from planrun.model.record import Record
from planrun.plan.readers import SHIPPED, shown
from planrun.plan.revisions import listed_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from planrun.actions.files import Patterns
    from planrun.model.plan import Plan, Step, Text
    from planrun.settings import Settings

# Where git does not say what is ignored: folders that tools fill, and all whose name begins with a dot.
_TOOLS = frozenset(("__pycache__", "node_modules", "venv", "target"))
_RECORDS = ".planrun"


class Subject(Record):
    """The files to watch, relative to the workspace: named ones, and those that match patterns; None: all of them.

    `made` are patterns of files that steps make, `hidden` folders and files of planrun itself.
    """

    root: str
    named: frozenset[str]
    inputs: Patterns | None
    made: Patterns
    hidden: tuple[str, ...]

    def files(self) -> set[str]:
        """Return the files that are there now."""
        if self.inputs is None:
            found: Iterable[str] = listed_files(self.root) or _walked(self.root)
        else:
            found = matching(self.root, self.inputs)
        return {*self.named} | {path for path in found if not self._is_left_out(path)}

    def _is_left_out(self, path: str) -> bool:
        within = any(path == each or path.startswith(f"{each}/") for each in self.hidden)
        return within or self.made.takes(path)


def subject_of(plan: Plan, settings: Settings, root: str) -> Subject:
    """Return what to watch of a plan that is valid."""
    _, selected, _ = selection_of(plan, settings)
    steps = [step for step in plan.everything() if selected is None or step.id in selected or step.undoes]
    ahead = Ahead(plan, settings)
    read = [_known(text, ahead, step) for step in steps for text in _inputs(step)]
    made = [_known(text, ahead, step) for step in steps for text in (*step.makes, *step.writes)]
    named = {
        *_of_plan(plan),
        *ahead.steps.place.scripts,
        settings.policy,
        settings.decisions,
        *settings.approvals,
    }
    named |= {_known(text, ahead, step) for step in steps for text in (*plan.env_file, *step.env_file)}
    hidden = [_RECORDS, ".git", settings.report_dir]
    if settings.events and not settings.events.isdecimal():
        hidden.append(settings.events)
    hidden += _written_to(root)
    return Subject(
        root=root,
        named=frozenset(_inside(root, filter(None, named))),
        inputs=patterns_of(list(filter(None, read))) if any(map(_inputs, steps)) else None,
        made=patterns_of([text for text in made if text]),
        hidden=tuple(os.path.normpath(path) for path in hidden if path),
    )


def _written_to(root: str) -> Iterator[str]:
    """Yield the files in the workspace that this process and its runs print to: each line would be a change."""
    for fd in (1, 2):
        try:
            if S_ISREG(os.fstat(fd).st_mode):
                yield from _inside(root, [os.readlink(f"/proc/self/fd/{fd}")])
        except OSError:
            continue


def subject_of_files(files: Iterable[str], root: str) -> Subject:
    """Return what to watch of a plan that is not valid: its files."""
    return Subject(
        root=root,
        named=frozenset(_inside(root, files)),
        inputs=patterns_of(()),
        made=patterns_of(()),
        hidden=(),
    )


def _of_plan(plan: Plan) -> Iterator[str]:
    yield plan.file
    yield from [shown(plan.file, path) for path in plan.files if not path.startswith(SHIPPED)]


def _inputs(step: Step) -> tuple[Text, ...]:
    """Return the patterns of the files that a step says it reads."""
    return (*step.inputs, *(step.cache.inputs if step.cache else ()))


def _known(text: Text, ahead: Ahead, step: Step) -> str:
    """Return a text with its values; "" where one is known only during a run."""
    text, _ = unmarked(text)
    found = text if isinstance(text, str) else fill(text, ahead.scope(ahead.state.steps[step.id].step))
    return found if isinstance(found, str) else ""


def _inside(root: str, paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        whole = os.path.normpath(os.path.join(root, path))
        yield os.path.relpath(whole, root) if whole.startswith(root + os.sep) else whole


def _walked(root: str) -> Iterator[str]:
    """Yield the files of a folder that is in no git repository."""
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _TOOLS]
        inner = os.path.relpath(folder, root)
        yield from [os.path.normpath(os.path.join(inner, name)) for name in names]
