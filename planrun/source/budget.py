"""How many keys and values a file may have: more for each step, so that large plans are read and bombs are not."""

from __future__ import annotations

from planrun.source.node import MAPPING, SEQUENCE, Node

MAX_NODES = 1_800_000  # keys and values: 100,000 steps with a dozen each, a list and themselves
FREE_NODES = 600_000  # so many may a file of any form have: a second and 100 MiB
STEP_NODES = 60  # and so many more for each step
LIST_NODES, MAPPING_NODES = 2, 5  # what a list and a mapping count as, by the time and memory that they cost
WORDS = (
    f"{FREE_NODES:,} keys and values, {STEP_NODES} more for each step, and never more than {MAX_NODES:,}",
    f"a list counts as {LIST_NODES}, a mapping as {MAPPING_NODES}",
)


class Budget:
    """What one file may hold, as far as it was read."""

    def __init__(self) -> None:
        self._counted: dict[str, tuple[int, int]] = {}  # by section: entries looked at, and steps among them

    def allows(self, count: int, root: Node | None) -> bool:
        """Say whether a file may have so many keys and values, when `root` is what was read of it."""
        if count <= FREE_NODES or root is None:
            return count <= FREE_NODES
        return count <= min(MAX_NODES, FREE_NODES + STEP_NODES * self._steps(root))

    def _steps(self, root: Node) -> int:
        """Count the entries that can be steps: known keys, with values of the right kind."""
        from planrun.source.tables import LATER, OBJECTS  # only for a file that is larger than most

        rules, later = OBJECTS["Step"], LATER["Step"]
        for section in ("steps", "finally"):
            listed = root.get(section)
            if listed is None or listed.kind != SEQUENCE:
                continue
            begun, found = self._counted.get(section, (0, 0))
            ended = max(begun, len(listed.value) - 1)  # the last one is still being read
            for entry in listed.value[begun:ended]:
                found += entry.kind == MAPPING and all(
                    key in rules and key not in later and rules[key][value.kind] is not None
                    for key, value in entry.value.items()
                )
            self._counted[section] = (ended, found)
        return sum(found for _, found in self._counted.values())
