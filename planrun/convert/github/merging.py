"""Neighbouring scripts of a job as one script, whose parts run one after the other in one process group.

In a job with a matrix every instance then goes its own way. In a job with a container all parts share it. What a part
writes to $GITHUB_ENV and $GITHUB_PATH reaches the parts behind it. A server in the background lives until the end.
"""

from __future__ import annotations

from planrun.convert.draft import DraftStep, step_path
from planrun.convert.github.texts import HAND_ON, PRELUDES, SHELL_OPTIONS, is_shell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from planrun.convert.github.facts import Job

_ALLOWED = frozenset((
    "run", "title", "env", "secrets", "shell", "workdir", "timeout", "outputs", "produces", "on_failure",
))  # fmt: skip


def merge_scripts(job: Job, first: int = 0) -> None:
    """Join neighbours among the steps of a job from the position `first` on, where the joined script does the same."""
    merged: list[DraftStep] = job.made[:first]
    group: list[DraftStep] = []
    for step in [*job.made[first:], None]:
        if step is not None and _fits(job, step, group):
            group.append(step)
            continue
        if group:
            merged.append(_joined(job, group))
            group = []
        if step is None:
            break
        if _fits(job, step, []):
            group = [step]
        else:
            merged.append(step)
    job.made = merged


def _fits(job: Job, step: DraftStep, group: Sequence[DraftStep]) -> bool:
    """Say whether a step can be the next part of a script."""
    if "run" not in step.keys or set(step.keys) - _ALLOWED or not is_shell(_shell(job, step)):
        return False
    if step.id in job.asking or step.keys.get("on_failure", "continue") != "continue":
        return False
    if not group:
        return True
    if step.id in job.tolerated and step.id in job.read:
        return False
    if _family(_shell(job, step)) != _family(_shell(job, group[0])):
        return False
    if any(set(step.keys.get("outputs", ())) & set(each.keys.get("outputs", ())) for each in group):
        return False
    texts = [step.condition, str(step.keys["run"]), *map(str, step.keys.get("env", {}).values())]
    return not any(step_path(each.id, "") in text for text in texts for each in group)


def _shell(job: Job, step: DraftStep) -> str:
    return str(step.keys.get("shell", job.usual_shell))


def _family(shell: str) -> str:
    return shell.split(" ", maxsplit=1)[0]


def _joined(job: Job, group: list[DraftStep]) -> DraftStep:
    """Return one step that runs the parts in order."""
    if len(group) == 1 and not group[0].is_raw and not group[0].hands_on:
        return group[0]
    heir = _Joining(job, group).step()
    if len(group) > 1:
        heir.keys.pop("title", None)
        heir.keys.pop("on_failure", None)
        job.tolerated.discard(heir.id)
        job.plain.add(heir.id)
    else:
        heir.condition = group[0].condition
    for step in group:
        _forget(job, step, heir)
    return heir


class _Joining:
    """Puts parts into one script: what all have alike stands at the step, the rest before each part."""

    def __init__(self, job: Job, group: list[DraftStep]) -> None:
        self.job = job
        self.group = group
        scripts = [step.keys for step in group if not step.is_raw] or [group[0].keys]
        first = scripts[0]
        self.env: dict[str, str] = {
            name: value
            for name, value in first.get("env", {}).items()
            if all(each.get("env", {}).get(name) == value for each in scripts)
        }
        is_alike = all(each.get("workdir") == first.get("workdir") for each in scripts)
        self.workdir = first.get("workdir") if is_alike else None
        self.secrets = list(dict.fromkeys(name for step in group for name in step.keys.get("secrets", ())))
        self.shell = min((_shell(job, step) for step in group), key=len)

    def step(self) -> DraftStep:
        first = next((step for step in self.group if not step.is_raw), self.group[0])
        heir = DraftStep(first.id, **first.keys)
        heir.node, heir.edges = first.node, first.edges
        heir.parts = [step.id for step in self.group]
        heir.hands_on = any(step.hands_on for step in self.group)
        is_alone = len(self.group) == 1
        text = ""
        for number, step in enumerate(self.group, 1):
            is_lenient = step.id in self.job.tolerated
            text += _part(step, self._entering(step, number), is_alone=is_alone, is_lenient=is_lenient)
            heir.sets_path = heir.sets_path or step.sets_path
            heir.notes += step.notes
            heir.prelude += [line for line in step.prelude if line in PRELUDES and line not in heir.prelude]
        if heir.hands_on:
            heir.prelude.append(HAND_ON)
            self.env |= {
                name: f"${{{{ step.dir }}}}/{name.lower()}" for name in ("GITHUB_ENV", "GITHUB_PATH")
            }
        steps = [step.keys for step in self.group]
        keys: dict[str, Any] = {
            "run": text,
            "shell": self.shell if self.shell != self.job.usual_shell else "",
            "workdir": self.workdir,
            "env": self.env,
            "secrets": self.secrets,
            "timeout": self._time(),
            "outputs": {name: value for each in steps for name, value in each.get("outputs", {}).items()},
            "produces": [path for each in steps for path in each.get("produces", ())],
        }
        for key, value in keys.items():
            heir.keys.pop(key, None)
            if value:
                heir.keys[key] = value
        return heir

    def _time(self) -> str:
        """Return the time of all parts together; "" where one has none of its own."""
        times = [str(step.keys.get("timeout", "")) for step in self.group if not step.is_raw]
        if not times or "" in times:
            return ""
        if len(set(times)) == 1:
            return times[0]
        seconds = sum(int(time[:-1]) * (60 if time.endswith("m") else 1) for time in times)
        return f"{seconds}s"

    def _entering(self, step: DraftStep, number: int) -> list[str]:
        """Return the lines that give one part its own variables, folder and options."""
        lines = [line for line in step.prelude if line not in PRELUDES]
        for name, value in step.keys.get("env", {}).items():
            if step.is_raw and not any(
                name in each.keys.get("env", {}) for each in self.group if each is not step
            ):
                self.env[name] = value
            elif self.env.get(name) != value:
                self.env[f"{name}__{number}"] = value
                lines.append(f'export {name}="${name}__{number}"')
        foreign = [name for name in self.secrets if name not in step.keys.get("secrets", ())]
        if foreign and not step.is_raw:
            lines.insert(0, f"unset {' '.join(foreign)}")
        own = step.keys.get("workdir")
        if own != self.workdir and not step.is_raw:
            self.env[f"WORKDIR__{number}"] = own or "."
            lines.append(f'cd -- "$WORKDIR__{number}"')
        shell = _shell(self.job, step)
        if shell != self.shell and shell in SHELL_OPTIONS:
            lines.append(SHELL_OPTIONS[shell])
        return lines


def _part(step: DraftStep, lines: list[str], *, is_alone: bool, is_lenient: bool) -> str:
    body = "\n".join([*lines, str(step.keys["run"]).rstrip("\n")])
    text = f"{body}\n" if step.is_raw else f"(\n{body}\n)\n"
    if is_lenient and not is_alone:
        text = f"set +e  # its failure is tolerated\n(\nset -e\n{body}\n)\nset -e\n"
    if step.hands_on:
        text += "hand_on\n"
    if is_alone:
        return text
    if step.condition not in ("", "true"):
        text = f"if [ \"${{{{ 'true' if {step.condition} else 'false' }}}}\" = true ]; then\n{text}fi\n"
    return (f"# {step.keys['title']}\n" if "title" in step.keys else "") + text


def _forget(job: Job, step: DraftStep, heir: DraftStep) -> None:
    if step.id != heir.id:
        for group in (job.plain, job.tolerated, job.asking):
            group.discard(step.id)
    for own_id, known in list(job.ids.items()):
        if known is step:
            job.ids[own_id] = heir
    old, new = step_path(step.id, ""), step_path(heir.id, "")
    for other in job.made:
        other.condition = _without_repeats(other.condition.replace(old, new))
        for key in ("env", "run"):
            other.keys[key] = _renamed(other.keys.get(key), old, new)
            if other.keys[key] is None:
                del other.keys[key]
    for name, text in job.exported.items():
        job.exported[name] = text.replace(old, new)


def _without_repeats(condition: str) -> str:
    """Return a condition of alternatives with each of them once."""
    if "(" in condition or " and " in condition or " if " in condition:
        return condition
    return " or ".join(dict.fromkeys(condition.split(" or ")))


def _renamed(value: Any, old: str, new: str) -> Any:
    if isinstance(value, dict):
        return {name: _renamed(each, old, new) for name, each in value.items()}
    return value.replace(old, new) if isinstance(value, str) else value
