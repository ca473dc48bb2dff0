"""The files that a plan uses: each is found inside the plan's root, read once, checked by itself and kept."""

from __future__ import annotations

import os

from planrun.source.formulas import OPEN
from planrun.source.included import Disk, NotIncluded, shown
from planrun.source.node import SCALAR
from planrun.source.problems import in_order, limited

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.source.included import Reader
    from planrun.source.node import Node
    from planrun.source.outline import Origins, Outline
    from planrun.source.problems import Problem
    from planrun.source.validate import Checked

MAX_DEPTH = 16  # plans inside each other, the outermost one included
MAX_FILES = 256
MAX_TOGETHER = 8 << 20  # bytes of all files that a plan uses, each counted once
MAX_EMBEDDED = 10_000  # steps of used plans, those of a plan that is used twice counted twice


class Used:
    """A file that was read and checked; `path` as `planrun.source.included` has it, `checked` None: it is no plan.

    `sound`: it has no errors. `count`: its steps, with those of the plans that it uses itself. `height`: how many plans
    stand inside each other in it, itself included.
    """

    __slots__ = ("checked", "count", "height", "path", "sound")

    def __init__(self, path: str, checked: Checked | None, *, sound: bool) -> None:
        inside = [draft.used for draft in checked.outline.drafts if draft.used] if checked else []
        self.path = path
        self.checked = checked
        self.sound = sound
        self.count: int = checked.count if checked else 0
        self.height: int = 1 + max([used.height for used in inside], default=0)


class Shelf:
    """All files that the plan in `file` uses, directly or not, and the problems found in them."""

    def __init__(self, file: str, read: Reader | None = None, *, inside: str = "") -> None:
        self.file = file
        self.named_template = (
            False  # a template goes by its name: which file that is depends on which there are
        )
        self.contents: dict[str, bytes] = {}
        self.problems: list[Problem] = []
        self._read = read
        self._known: dict[str, Used] = {}
        self._around = [
            inside or os.path.basename(file)
        ]  # the plans that are being checked, the outermost first
        self._size = 0
        self._chain: list[str] = []  # the files that extend each other, without the first
        self._embedded = 0
        # Of budgets that all these files have together, what was used up so far.
        self.schemas = 0
        self.matching = 0.0
        self.parsed = 0

    def sources(self) -> dict[str, bytes]:
        """Return what was read, by what people call it."""
        return {shown(self.file, path): data for path, data in self.contents.items()}

    @property
    def depth(self) -> int:
        """How many plans are being checked, one inside the other."""
        return len(self._around)

    def take(self, outline: Outline, node: Node) -> Used | None:
        """Return the plan that a `uses` names; reports why there is none."""
        path = self._path(outline, node)
        used = self._known.get(path) if path else None
        if path and used is None:
            used = self._look(outline, node, path)
        if used is None:
            return None
        if len(self._around) + used.height > MAX_DEPTH:
            outline.report("E290", f"more than {MAX_DEPTH} plans stand inside each other", node)
            return None
        if len(self._around) == 1:
            self._embedded += used.count
            if self._embedded > MAX_EMBEDDED:
                message = f"the plans that are used have more than {MAX_EMBEDDED:,} steps together"
                outline.report("E240", message, node, "steps of a plan that is used twice count twice")
                return None
        return used

    def base(self, outline: Outline, node: Node) -> tuple[Node, Origins] | None:
        """Return the tree of the plan that another one extends; None when it has none, which was reported."""
        from planrun.source.extending import MAX_CHAIN, origins_of

        template = node.get("template")
        named = template if template is not None else node
        if named.kind != SCALAR or not named.value:
            return None  # its shape is wrong
        path = self._base_path(outline, named, by_name=template is not None)
        if not path:
            return None
        if len(self._chain) >= MAX_CHAIN - 1:
            outline.report("E290", f"more than {MAX_CHAIN} plans extend each other", named)
            return None
        try:
            data = self.contents[path] if path in self.contents else self._bytes(path)
        except NotIncluded as error:
            is_name = template is None and not named.value.endswith((".yml", ".yaml"))
            hint = f"`extends: {{template: {named.value}}}` extends a template" if is_name else ""
            outline.report("E290", f"cannot extend {named.value}: {error}", named, hint)
            return None
        self.contents[path] = data
        before = len(self.problems)
        self._chain.append(path)
        called = shown(self.file, path)
        if template is None:
            checked, problems = self._check_base(data, path, called)
        else:
            from planrun.source.templating import check_filled_base

            checked, problems = check_filled_base(outline, node, (data, called), self)
        self._chain.pop()
        # Warnings are those of the plan that both become.
        errors = [each for each in [*problems, *self.problems[before:]] if each.severity == "error"]
        self.problems[before:] = [each for each in errors if each not in self.problems[:before]]
        if checked is None or errors:
            return None
        inner = checked.outline
        place = (path, called, path if template is None else self._around[-1])
        return inner.root, origins_of(inner.root, place, data, inner.origins)

    def _check_base(self, data: bytes, path: str, called: str) -> tuple[Checked | None, list[Problem]]:
        from planrun.source.checking import check  # it comes here again for each file

        self._around.append(path)
        found = check(data, called, self)
        self._around.pop()
        return found

    def _base_path(self, outline: Outline, node: Node, *, by_name: bool) -> str:
        """Return the path of a base; a template goes by its path, or by the name that `planrun templates` lists."""
        name: str = node.value
        if not by_name or name.endswith((".yml", ".yaml")) or "/" in name or OPEN in name:
            return self._path(outline, node)
        self.named_template = True
        from planrun.source.included import SHIPPED

        folder = os.path.dirname(self.file) or "."
        places = [
            os.path.join(os.path.relpath("plans/templates", folder), name + end) for end in (".yml", ".yaml")
        ]
        if self._read is None:
            self._read = Disk(self.file)
        for path in (*places, SHIPPED + name):
            try:
                self._read(path)
            except NotIncluded:
                continue
            return path
        outline.report(
            "E290", f'there is no template "{name}"', node, "`planrun templates` lists those that there are"
        )
        return ""

    def _path(self, outline: Outline, node: Node) -> str:
        """Return the path of a file from the folder of the outermost plan; empty when that was reported as wrong."""
        text: str = node.value
        why, hint = "", "name a file of this repository, as seen from the file that uses it"
        if OPEN in text:
            why, hint = "which plan is used cannot depend on a value", "what was reviewed is what runs"
        elif "://" in text or text.startswith("git@"):
            why = "only files are used, and nothing is fetched"
        elif text.startswith(("/", "~")):
            why = f"{text} is no path inside of the plan's folder"
        elif not text.strip() or not text.isprintable() or text.endswith("/"):
            why = "this is no path of a file"
        if why:
            outline.report("E290", why, node, hint)
            return ""
        path = os.path.normpath(
            os.path.join(os.path.dirname(outline.seen_from(node) or self._around[-1]), text)
        )
        if path in self._around:
            chain = " → ".join([*self._around[self._around.index(path) :], path])
            outline.report("E290", f"plans use each other in a circle: {chain}", node)
            return ""
        return path

    def _look(self, outline: Outline, node: Node, path: str) -> Used | None:
        try:
            data = self._bytes(path)
        except NotIncluded as error:
            outline.report("E290", f"cannot use {node.value}: {error}", node)
            return None
        self.contents[path] = data
        from planrun.source.checking import check  # it comes here again for each file
        from planrun.source.uses import warn  # few plans use others

        self._around.append(path)
        checked, problems = check(data, shown(self.file, path), self)
        self._around.pop()
        if checked is not None:
            before = len(checked.outline.problems)
            warn(checked.outline)
            problems = limited(in_order([*problems, *checked.outline.problems[before:]]))
        self.problems += problems
        sound = checked is not None and not any(each.severity == "error" for each in problems)
        found = self._known[path] = Used(path, checked, sound=sound)
        return found

    def _bytes(self, path: str) -> bytes:
        if len(self.contents) >= MAX_FILES:
            raise NotIncluded(f"the plan uses more than {MAX_FILES} files")
        if self._read is None:
            self._read = Disk(self.file)
        data = self._read(path)
        self._size += len(data)
        if self._size > MAX_TOGETHER:
            raise NotIncluded(
                f"the files that the plan uses have more than {MAX_TOGETHER >> 20} MiB together"
            )
        return data
