"""The risk of every step, and the files of the workspace that it runs, found when a plan is compiled.

What is filled in when a step starts is a placeholder in the text that is classified. It counts as the worst that it
could be there, and the step's risk is marked as open. Paths that planrun gives to a step have names of our own
meanwhile: where they will be is not known, and must not matter.
"""

from __future__ import annotations

from planrun.risk.actions import of_argv
from planrun.risk.classifier import Setting
from planrun.risk.levels import rank
from planrun.risk.tokens import HOLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.model.plan import Action, Step, Text, Tree
    from planrun.risk.classifier import Risk

_UNKNOWN, _QUOTED = HOLES[0], HOLES[1]
# Where planrun's own paths are until they are known. A text that names them itself gets unknown ones.
_NAME = "planrun-places"
_WORKSPACE = f"/{_NAME}/workspace"
_DIR = f"/{_NAME}/dir"
_OUTPUT = f"/{_NAME}/output"
_PROGRESS = f"/{_NAME}/progress"
_PLACES = (_DIR, _OUTPUT, _PROGRESS)
_OWN = {"PLANRUN_OUTPUT": _OUTPUT, "PLANRUN_PROGRESS": _PROGRESS, "PLANRUN_WORKSPACE": _WORKSPACE}
_SHOWN = {
    _UNKNOWN: "${{ … }}",
    _QUOTED: "${{ … | sh }}",
    _DIR: "${{ step.dir }}",
    _OUTPUT: "$PLANRUN_OUTPUT",
    _PROGRESS: "$PLANRUN_PROGRESS",
    _WORKSPACE: "$PLANRUN_WORKSPACE",
}
_NOWHERE = "/"  # a folder that is not known
# A value with any other character is refused in a script when the step starts.
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/@:+=,-")
MAX_LOOKED_AT = 1_000_000  # characters of all different actions of a plan: two seconds, four of the worst
ACTION = 30  # characters that each of them counts besides its own
TOO_MUCH = "the plan has more commands than are looked into before it runs"
NO_PROCESS = {"risk": "read-only", "risk_reason": "starts no process"}


class Risks:
    """Finds the risk of actions, of equal ones once; `env` and `env_file` are those of the whole plan.

    `around`: the risks of the plan that uses this one; both have one budget.
    """

    def __init__(
        self, env: Mapping[str, Text], env_file: tuple[Text, ...], around: Risks | None = None
    ) -> None:
        self._env = {name: _filled(value) for name, value in env.items()}
        self._env_file = env_file
        self._plain = self._setting({}, reads_files=bool(env_file))
        self._speaks = any(_NAME in value for value in self._env.values())
        self._looked_at: list[int] = around._looked_at if around else [0]
        self._known: dict[tuple[object, ...], dict[str, Any]] = {}

    def of(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields about risk of a step with these other ones, its declared risk included."""
        if fields["kind"] == "abstract":
            return {}
        action = fields["action"]
        found = self._action(action, fields) if action.starts_process else NO_PROCESS
        for proof in (*fields.get("verify", ()), *[hook.action for hook in fields.get("hooks", ())]):
            found = _joined(found, self._action(proof, fields))
        if fields.get("container") is not None:
            from planrun.plan.keys.containers import least

            level, why = least(fields["container"])
            if rank(level) > rank(found["risk"]):
                found = {**found, "risk": level, "risk_reason": why}
        declared = fields.get("declared_risk")
        if declared and rank(declared) > rank(found["risk"]):
            return {**found, "risk": declared, "risk_reason": "the plan declares it"}
        return found

    def _action(self, action: Action, fields: Mapping[str, Any]) -> dict[str, Any]:
        text = action.words()
        env: Mapping[str, Text] = fields.get("env", {})
        workdir, shell, files = fields.get("workdir", ""), fields.get("shell", ()), "env_file" in fields
        key = (action.__class__, text, shell, workdir, files, *env.items())
        found = self._known.get(key)
        if found is None and not self._affords(text, env):
            return {"risk": "high", "risk_reason": TOO_MUCH, "effects": ("unknown",), "open_risk": True}
        if found is None:
            found = self._known[key] = self._found(action, (shell, workdir, files, env))
        return found

    def _affords(self, text: tuple[Text, ...], env: Mapping[str, Text]) -> bool:
        """Say whether another action can be looked into; what comes first in the file is."""
        size = sum([len(part) + 1 for part in _literals((*text, *env.values()))])
        self._looked_at[0] += size + ACTION + len(self._env) + len(env)
        return self._looked_at[0] <= MAX_LOOKED_AT

    def _found(
        self,
        action: Action,
        surroundings: tuple[tuple[str, ...], Text, bool, Mapping[str, Text]],
    ) -> dict[str, Any]:
        text = action.words()
        shell, workdir, reads_files, own = surroundings
        words = tuple([_filled(word, script=action.is_script) for word in text])
        folder = _filled(workdir)
        env, setting = self._setting(own, reads_files=reads_files) if own or reads_files else self._plain
        if self._speaks or any([_NAME in word for word in _literals((*text, workdir, *own.values()))]):  # noqa: C419 - half the time
            setting = Setting(variables={})
        cwd = _NOWHERE if _has_hole(folder) or _NAME in folder else folder
        setting = setting.but(cwd=cwd) if cwd else setting
        risk = action.classify(_filled, shell, env, setting)
        fields: dict[str, Any] = {"risk": risk.level, "risk_reason": readable(risk.reason)}
        if risk.effects:
            fields["effects"] = risk.effects
        if reads_files or self._env_file:
            fields |= {"risk": "high", "risk_reason": "the files of its environment are read when it starts"}
            fields["effects"] = tuple(sorted({*risk.effects, "unknown"}))
            fields["open_risk"] = True
        elif any(map(_has_hole, (*words, folder))) or _uses(words, env):
            fields["open_risk"] = True
        return fields

    def _setting(
        self, own: Mapping[str, Text], *, reads_files: bool
    ) -> tuple[dict[str, str | None], Setting]:
        """Return what the plan sets for a step (None: not known yet), and where its text would run."""
        texts = {**self._env, **{name: _filled(value) for name, value in own.items()}}
        env = {name: None if _has_hole(value) else value for name, value in texts.items()}
        known = {name: value for name, value in env.items() if value is not None}
        if reads_files:  # of the step: they win over what the plan sets
            known = {name: value for name, value in known.items() if name in own}
        return env, Setting(variables={**known, **_OWN}, places=_PLACES, workspace=_WORKSPACE)


def _joined(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of two texts that a step runs: the higher risk, the effects of both."""
    higher = other if rank(other["risk"]) > rank(one["risk"]) else one
    found = dict(higher)
    if effects := {*one.get("effects", ()), *other.get("effects", ())}:
        found["effects"] = tuple(sorted(effects))
    if one.get("open_risk") or other.get("open_risk"):
        found["open_risk"] = True
    return found


def commands_of(step: Step) -> Risk | None:
    """Return the commands in a step's text as written, with what they are; None for one that starts no process."""
    risk: Risk | None = step.action.classify(_filled, step.shell, {}, Setting(variables=_OWN))
    return risk


def _uses(words: tuple[str, ...], env: Mapping[str, str | None]) -> bool:
    """Say whether a variable that is not known yet may decide: the text names it, or its name alone is a risk."""
    unknown = [name for name, value in env.items() if value is None]
    return bool(unknown) and (
        any([name in word for name in unknown for word in words])  # noqa: C419 - half the time
        or of_argv(("true",), dict.fromkeys(unknown), Setting()).level == "high"
    )


def readable(reason: str) -> str:
    """Return a reason with the plan's words in place of our placeholders."""
    if reason.isascii() and _NAME not in reason:
        return reason
    for ours, theirs in _SHOWN.items():
        reason = reason.replace(ours, theirs)
    return reason


def _literals(texts: tuple[Text, ...]) -> list[str]:
    """Return what stands in texts as it is."""
    found: list[str] = []
    for text in texts:
        found += [text] if isinstance(text, str) else [part for part in text[1] if isinstance(part, str)]
    return found


def _has_hole(text: str) -> bool:
    return not text.isascii() and (_UNKNOWN in text or _QUOTED in text)


def _filled(text: Text, *, script: bool = False) -> str:
    """Return a text with placeholders for what is not known."""
    if isinstance(text, str):
        return text
    return "".join([part if isinstance(part, str) else _value(part[0], script=script) for part in text[1]])


def _value(tree: Tree, *, script: bool) -> str:
    """Return what an interpolation becomes, as far as that is known."""
    if tree[0] == "sh":
        return f"'{_DIR}'" if _is_dir(tree[3]) else _QUOTED
    if _is_dir(tree):
        return _DIR
    if tree[0] == "const" and isinstance(tree[3], str) and (not script or _PLAIN.issuperset(tree[3])):
        return tree[3]
    return _UNKNOWN


def _is_dir(tree: Tree) -> bool:
    return bool(tree[0] == "path" and tree[3] == ("step", "dir"))
