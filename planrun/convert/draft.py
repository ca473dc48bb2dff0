"""A plan while it is being put together: steps with their keys, edges and comments, still to be changed."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.convert.reader import Findings
    from planrun.plan.yaml.node import Node

MAX_ID = 100
MAX_TEXT = 4000  # characters of a file in a description
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")
# The keys of a step in the order in which people read them; others follow.
_ORDER = (
    "id", "title", "description", "depends_on", "condition", "matrix", "foreach", "uses", "with", "service", "ready",
    "container", "lock", "validate", "ask", "exec", "run",
)  # fmt: skip
ACTIONS = ("run", "exec", "validate", "uses", "with", "ask")


class DraftStep:
    """One step of the plan to be; `edges` says of other steps, or of their instances, how they must have ended.

    `notes` become comments above it. `condition` is an expression, "" for none.
    """

    def __init__(self, name: str, **keys: Any) -> None:
        self.id = name
        self.keys: dict[str, Any] = keys
        self.edges: dict[str, Any] = {}
        self.condition = ""
        self.notes: list[str] = []
        self.prelude: list[str] = []  # what has to stand before its script
        self.hands_on: list[str] = []  # names of variables that it sets for later steps of its job
        self.renamed: set[str] = set()  # names of its outputs with dashes, which are underscores in the plan
        self.offers: dict[
            str, str
        ] = {}  # lines of script by outputs that it can write, and does where one is read
        self.node: Node | None = None  # where it stands in the file that is converted

    def wait(self, step: str, kind: str = "ok") -> None:
        """Add an edge; what is there already and says more stays."""
        if kind != "ok" or step not in self.edges:
            self.edges[step] = kind

    def demand(self, condition: str) -> None:
        """Add to the condition what has to hold as well."""
        if not self.condition or self.condition == "true":
            self.condition = condition
        elif condition not in ("", "true"):
            self.condition = f"({self.condition}) and ({condition})"

    def make_abstract(self, note: str) -> None:
        """Remove the action, which stays readable as a note for the author of a new one."""
        script = self.keys.get("run")
        for key in (*ACTIONS, "shell", "matrix", "env", "secrets", "container", "service", "ready"):
            self.keys.pop(key, None)
        if script and len(script) <= MAX_TEXT:
            self.keys["notes"] = script
        self.keys.setdefault("title", self.id)
        self.notes.append(note)

    def leave(self, found: Findings, code: str, message: str, node: Node, text: str = "") -> None:
        """Leave the step to a person or a model, with its text in the file that is converted as description."""
        self.make_abstract(found.todo(code, message, node, self.id))
        for key in ("outputs", "retries", "workdir", "timeout", "notes"):
            self.keys.pop(key, None)
        self.keys["description"] = text[:MAX_TEXT] or source_text(found.file, node)

    def as_keys(self) -> dict[str, Any]:
        """Return the keys of the step in reading order, as plain data."""
        keys = {
            "id": self.id,
            **{name: value for name, value in self.keys.items() if value not in ("", [], {})},
        }
        if "run" in self.keys and not str(self.keys["run"]).strip():
            keys["run"] = "true"  # a script of nothing
        if self.edges:
            if all(kind == "ok" for kind in self.edges.values()) and ".status" not in self.condition:
                keys["depends_on"] = list(self.edges)
            else:
                keys["depends_on"] = dict(self.edges)
        if self.condition and self.condition != "true":
            keys["condition"] = self.condition
        return {name: keys[name] for name in (*_ORDER, *keys) if name in keys}


class DraftPlan:
    """What becomes a plan: keys of its top, steps and cleanup, and the ids that are taken."""

    def __init__(self) -> None:
        self.keys: dict[str, Any] = {}
        self.params: dict[str, Any] = {}
        self.secrets: list[str] = []
        self.optional: set[str] = set()  # secrets without which the plan runs
        self.maybe: set[str] = set()  # secrets of which one is enough
        self.steps: list[DraftStep] = []
        self.cleanup: list[DraftStep] = []
        self._taken: set[str] = set()
        self._made: list[tuple[str, str]] = []  # beginnings of paths, and the steps that make what is there

    def name(self, preferred: str) -> str:
        """Return an unused id that is as close to the preferred one as ids allow."""
        fit = _UNFIT.sub("-", preferred).strip("-.") or "step"
        fit = fit[: MAX_ID - 4]
        if not re.match(r"[A-Za-z0-9_]", fit):
            fit = f"s{fit}"[:MAX_ID]
        free, number = fit, 2
        while free.casefold() in self._taken:
            free, number = f"{fit}-{number}", number + 1
        self._taken.add(free.casefold())
        return free

    def give_back(self, name: str) -> None:
        """Let an id be used that was asked for and is not needed."""
        self._taken.discard(name.casefold())

    def add(self, step: DraftStep) -> DraftStep:
        """Append a step and return it."""
        self.steps.append(step)
        return step

    def claim(self, step: str, patterns: list[str]) -> bool:
        """Say whether a step alone makes the files that these patterns may match, and remember that it does."""
        stems = [re.split(r"[*?\[{]", pattern, maxsplit=1)[0] for pattern in patterns]
        for stem in stems:
            for other, owner in self._made:
                if owner != step and (other.startswith(stem) or stem.startswith(other)):
                    return False
        self._made += [(stem, step) for stem in stems]
        return True

    def share(self, preferred: str, container: dict[str, Any], *, per_instance: bool) -> str:
        """Declare a container that several steps share, and return its name."""
        shared: dict[str, Any] = self.keys.setdefault("containers", {})
        name = free = _UNFIT.sub("-", preferred).strip("-.")[: MAX_ID - 4] or "container"
        number = 2
        while free in shared:
            free, number = f"{name}-{number}", number + 1
        shared[free] = {**container, **({"per": "instance"} if per_instance else {})}
        return free

    def secret(self, name: str) -> None:
        """Declare a secret."""
        if name not in self.secrets:
            self.secrets.append(name)


def source_text(file: str, node: Node, *, is_key: bool = False) -> str:
    """Return the lines of a value, or of a key with its value, as they stand in a file, at most 4,000 characters."""
    try:
        with open(file, encoding="utf-8", errors="replace") as opened:
            lines = opened.read(2_000_000).split("\n")
    except OSError:
        return ""
    start, sign = min(node.line, len(lines)) - 1, " " if is_key else " -"
    indent = len(lines[start]) - len(lines[start].lstrip(sign))
    end = start + 1
    while end < len(lines) and (
        not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip()) >= indent + is_key
    ):
        end += 1
    shown = [line[min(indent, len(line) - len(line.lstrip(sign))) :] for line in lines[start:end]]
    return "\n".join(shown).rstrip()[:MAX_TEXT]


def slug(text: str, most: int = 40) -> str:
    """Return a name of lower-case words and dashes for a text; "" when nothing is left of it."""
    words = re.sub(r"[^a-z0-9_]+", "-", text.lower()).strip("-")
    if len(words) > most:
        words = words[: most + 1].rpartition("-")[0] or words[:most]
    return words.strip("-")


def quoted(text: str) -> str:
    """Return a text as a literal of planrun's expressions."""
    body = "".join(_literal(char) for char in text)
    return f"'{body}'"


def _literal(char: str) -> str:
    if char in "\\'":
        return f"\\{char}"
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def step_path(step: str, field: str) -> str:
    """Return the expression that reads a field of a step."""
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", step)
    return f"steps.{step}.{field}" if plain else f"steps[{quoted(step)}].{field}"


def says_nothing(script: str) -> bool:
    """Say whether a script has nothing but comments, which no shell takes between brackets."""
    return all(not line.strip() or line.lstrip().startswith("#") for line in script.split("\n"))


def literal_text(text: str) -> str:
    """Return a text so that a template leaves it as it is."""
    return text.replace("${{", "$${{")
