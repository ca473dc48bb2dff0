"""Advice about the permissions of a step, its attempts, post-checks, time, and habits from other CI systems."""

from __future__ import annotations

import re

from planrun.approval.policies import static_decision
from planrun.approval.rules import Layers
from planrun.lint.subject import IDLE
from planrun.model import graph
from planrun.plan.compile.risks import commands_of
from planrun.reports.errorlines import FOREIGN_FILES, TO_OUTPUT
from planrun.reports.facts import seconds
from planrun.risk.levels import rank
from planrun.values import duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.lint.subject import Subject
    from planrun.model.plan import Step
    from planrun.plan.problems import Problem


_WRITTEN = re.compile(
    r">>?\s*[\"']?\$\{?(" + "|".join(FOREIGN_FILES) + r")\b|\btee\s[^|;&\n]*\$\{?GITHUB_OUTPUT\b"
)
_EXPORTED = re.compile(
    r"(?:^|[;&({]|\bthen\b|\bdo\b)\s*(?:export|declare -x)\s+([A-Za-z_]\w*)=", re.MULTILINE
)
_SET_OUTPUT = re.compile(r"::set-output\s+name=")


def foreign_files(subject: Subject) -> Iterator[Problem]:
    """L427: a script that hands values on in a file of another CI system, which planrun does not have."""
    for step in subject.actions:
        script = subject.script(step)
        names = [found or "GITHUB_OUTPUT" for found in _WRITTEN.findall(script)]
        for name in dict.fromkeys(names):
            if not _has_variable(subject, step, name):
                message = f'step "{step.id}" writes to `${name}`, which planrun does not set'
                yield subject.advice("L427", message, step, "run", FOREIGN_FILES[name])
        if _SET_OUTPUT.search(script):
            message = f'step "{step.id}" prints `::set-output`, which planrun does not read'
            yield subject.advice("L427", message, step, "run", TO_OUTPUT)


def lost_exports(subject: Subject) -> Iterator[Problem]:
    """L428: a variable that one step exports and a later one reads, although each step has its own environment."""
    exported: dict[str, str] = {}  # by the name of the variable the step
    for step in subject.actions:
        script = subject.script(step)
        own = set(_EXPORTED.findall(script))
        for name, source in exported.items():
            if name not in own and re.search(rf"\$(?:{name}\b|\{{{name}\b)", script):
                if _has_variable(subject, step, name):
                    continue
                yield subject.advice(
                    "L428",
                    f'step "{step.id}" reads `${name}`, which step "{source}" exports; '
                    "each step has its own environment",
                    step,
                    "run",
                    f'in "{source}" {TO_OUTPUT.replace("name", name.lower())}; '
                    f"here set `env: {{{name}: ${{{{ steps.{source}.outputs.{name.lower()} }}}}}}`",
                )
        for name in own:
            exported.setdefault(name, step.id)


def _has_variable(subject: Subject, step: Step, name: str) -> bool:
    """Say whether the plan, the step or its script gives a variable a value."""
    given = {*subject.plan.env, *step.env, *step.secrets}
    return name in given or re.search(rf"(?:^|[\s;&(]){name}=", subject.script(step)) is not None


LONG = 1800.0  # seconds that a step may run before a reader expects progress
_DONE = {
    "destroys": "destroys something",
    "publishes": "publishes something",
    "privilege": "acts as another user",
    "secrets": "reaches for credentials",
}

# Words of programs that planrun takes for dangerous as a whole, and that only look: `kubectl get`, `terraform plan`.
_LOOKING = frozenset(
    (
        *(
            "check",
            "describe",
            "diff",
            "explain",
            "fmt",
            "get",
            "help",
            "history",
            "init",
            "lint",
            "list",
            "logs",
        ),
        *(
            "ls",
            "plan",
            "preview",
            "search",
            "show",
            "status",
            "template",
            "validate",
            "version",
            "view",
            "whoami",
        ),
        *("--dry-run", "--help", "--version"),
    )
)


def unasked(subject: Subject) -> Iterator[Problem]:
    """L401: a command of class high, known to be dangerous, in a plan without a policy, and behind no gate."""
    if subject.plan.policy is not None:
        return
    gates = [step.id for step in subject.plan.main() if step.action.asks]
    gated = graph.descendants(subject.before, gates) if gates else set()
    for step in subject.steps():
        effect = _danger(subject, step)
        if not effect or step.section != "steps" or step.id in gated:
            continue
        yield subject.advice(
            "L401",
            f'step "{step.id}" {_DONE[effect]}, and starts without an approval: the plan has no policy',
            step,
            hint="add `policy: {auto_approve: medium}` to require an approval",
        )


def not_undone(subject: Subject) -> Iterator[Problem]:
    """L402: a command of class high that publishes or destroys, in a step that declares no rollback."""
    for step in subject.steps():
        effect = _danger(subject, step)
        if (
            effect in ("destroys", "publishes")
            and step.section == "steps"
            and step.rollback is None
            and step.reversible is None
        ):
            yield subject.advice(
                "L402",
                f'step "{step.id}" {_DONE[effect]} and declares no way to undo it',
                step,
                hint="add a `rollback`, or `reversible: false`",
            )


def asked_in_finally(subject: Subject) -> Iterator[Problem]:
    """L421: a `finally` step that waits for an approval or an answer, so that the run does not end."""
    layers = Layers(plan=subject.plan.policy, file=subject.plan.file)
    for step in subject.steps():
        if step.section != "finally":
            continue
        decision = static_decision(step, layers, {})
        if step.action.asks:
            why = "asks a question"
        elif decision.answer == "ask":
            why = f"needs an approval: {decision.reason}"
        else:
            continue
        yield subject.advice(
            "L421",
            f'step "{step.id}" is under `finally` and {why}; the run cannot end without an answer',
            step,
            hint="move it to `steps`, or allow it by a rule of the policy",
        )


_RELEASE = re.compile(r"(?i)(?<![a-z])(?:deploy|publish|release|promote|rollout)(?![a-z])")


def unasked_releases(subject: Subject) -> Iterator[Problem]:
    """L429: a step that is named for a release, and that the policy of the plan lets run without an approval."""
    if subject.plan.policy is None:  # nothing is asked at all, and L401 says what is dangerous
        return
    layers = Layers(plan=subject.plan.policy, file=subject.plan.file)
    gates = [step.id for step in subject.plan.main() if step.action.asks]
    gated = graph.descendants(subject.before, gates) if gates else set()
    for step in subject.actions:
        risk = subject.risk(step)
        if step.section != "steps" or step.id in gated or risk is None or rank(risk.level) < rank("low"):
            continue
        if _RELEASE.search(f"{step.id} {step.title}") and static_decision(step, layers, {}).answer == "allow":
            yield subject.advice(
                "L429",
                f'step "{step.id}" is named like a release and runs without an approval: its class is {risk.level}',
                step,
                hint=f"add `rules: [{{require: {{step: {step.id}}}}}]` to `policy`, or an `ask` step before it",
            )


def unknown_repetition(subject: Subject) -> Iterator[Problem]:
    """L422: a command that publishes or destroys, in a step without `idempotent`: a resume after a kill repeats it."""
    for step in subject.steps():
        effect = _danger(subject, step)
        if effect in ("destroys", "publishes") and not subject.says(step, "idempotent"):
            yield subject.advice(
                "L422",
                f'step "{step.id}" {_DONE[effect]}; after a kill `planrun resume` runs it again',
                step,
                hint="state `idempotent: false` to fail instead, or `idempotent: true`",
            )


def unverified(subject: Subject) -> Iterator[Problem]:
    """L423: a command that publishes or destroys, in a step without verification."""
    checked = {
        edge.on
        for other in subject.steps()
        if other.kind == "validate" or other.verify_steps
        for edge in other.edges
    }
    for step in subject.steps():
        if step.section != "steps" or step.verify_steps or step.expect or step.id in checked:
            continue
        effect = _danger(subject, step)
        if effect in ("destroys", "publishes"):
            yield subject.advice(
                "L423",
                f'step "{step.id}" {_DONE[effect]}, and nothing verifies that it worked',
                step,
                hint="add `verify` or `expect`, or a `validate` step after it",
            )


def unmonitored(subject: Subject) -> Iterator[Problem]:
    """L424: a step that may run for half an hour and more, without `idle_timeout` and progress."""
    for step in subject.actions:
        script = subject.script(step)
        is_long = step.timeout >= LONG and subject.says(step, "timeout") and not step.service
        if is_long and step.idle_timeout is None and "PLANRUN_PROGRESS" not in script:
            yield subject.advice(
                "L424",
                f'step "{step.id}" may run for {step.timeout / 60:.0f} minutes and reports no progress',
                step,
                "timeout",
                "set `idle_timeout` to end it when it prints nothing, or report progress in `$PLANRUN_PROGRESS`",
            )


def _danger(subject: Subject, step: Step) -> str:
    """Return the first effect of a step's commands that makes one of them high, where there is one."""
    for command in subject.commands(step):
        if command.level == "high" and _LOOKING.isdisjoint(command.words[1:]):
            for effect in _DONE:
                if effect in command.effects:
                    return effect
    return ""


CLOSE = 0.7
"""The share of its timeout from which on a usual time is close to it: machines of CI systems differ by a third."""
_HIDDEN = re.compile(r"\|\|\s*(true|:|exit 0)\s*\Z")
_THROWN = re.compile(r"(&>|>&)\s*/dev/null\s*\Z|>\s*/dev/null\s+2>&1\s*\Z")


def untried(subject: Subject) -> Iterator[Problem]:
    """L403: a command that reaches the network, in an idempotent step without `retries`."""
    for step in subject.actions:
        if subject.says(step, "retries") or not step.idempotent or step.section == "rollback":
            continue
        fetching = [command for command in subject.commands(step) if "network" in command.effects]
        if not fetching or any("publishes" in command.effects for command in subject.commands(step)):
            continue
        if any(word and word.startswith("--retr") for command in fetching for word in command.words):
            continue
        program = next((word for word in fetching[0].words if word), "a command")
        yield subject.advice(
            "L403",
            f'step "{step.id}" reaches the network (`{program}`) and has one attempt',
            step,
            hint="`retries: 2` tolerates brief network failures; set `retries: 0` to silence",
        )


def repeated(subject: Subject) -> Iterator[Problem]:
    """L404: `retries` on a step with `idempotent: false`."""
    for step in subject.steps():
        if step.retries.max and not step.idempotent:
            yield subject.advice(
                "L404",
                f'step "{step.id}" is `idempotent: false`, so its `retries: {step.retries.max}` are never used',
                step,
                "retries",
                "remove one of the two",
            )


def empty_proofs(subject: Subject) -> Iterator[Problem]:
    """L406: a command under `verify` that always passes."""
    for step in subject.steps():
        for proof in step.verify_steps:
            action = proof.action
            if action.is_script and isinstance(action.script, str):
                text = action.script.strip()
            else:
                text = " ".join([word for word in action.argv if isinstance(word, str)])
            risk = commands_of(proof)
            words = [command.words for command in risk.commands] if risk else []
            says_nothing = bool(words) and all(each and each[0] in IDLE for each in words)
            if (says_nothing and risk and risk.bare) or _HIDDEN.search(text):
                yield subject.advice(
                    "L406",
                    f'step "{step.id}" is verified by `{_cut(text)}`, which always passes',
                    step,
                    "verify",
                )


def risky_proofs(subject: Subject) -> Iterator[Problem]:
    """L407: a command under `verify` of a higher class than the step's own."""
    for step in subject.actions:
        own = subject.risk(step)
        for proof in step.verify_steps:
            risk = commands_of(proof)
            if own and risk and risk.understood and rank(risk.level) > rank(own.level):
                yield subject.advice(
                    "L407",
                    f'step "{step.id}" is {own.level} and its verification {risk.level}: {risk.reason}',
                    step,
                    "verify",
                    "a verification must only read",
                )


def close_timeouts(subject: Subject) -> Iterator[Problem]:
    """L416: a step that usually takes so much of its timeout that a slower machine would end it."""
    for step in subject.steps():
        usual = subject.seconds.get(step.id, 0.0)
        if usual > 1.0 and usual > CLOSE * step.timeout:
            note = "" if subject.says(step, "timeout") else ", the default"
            yield subject.advice(
                "L416",
                f'step "{step.id}" usually takes {seconds(usual)}; its timeout is {duration(step.timeout)}{note}',
                step,
                "timeout",
            )


def hidden_failures(subject: Subject) -> Iterator[Problem]:
    """L417: a script whose last command cannot fail, where `on_failure` would show it in every report."""
    for step in subject.actions:
        script = subject.script(step)
        if step.section == "steps" and _HIDDEN.search(script):
            yield subject.advice(
                "L417",
                f'step "{step.id}" hides the failure of its last command: `{_cut(script.splitlines()[-1])}`',
                step,
                "run",
                "use `on_failure: continue`: the run continues, and reports show the failure",
            )


def thrown_away(subject: Subject) -> Iterator[Problem]:
    """L418: a script of one line that changes something and whose output is lost when it fails."""
    for step in subject.actions:
        script, risk = subject.script(step), subject.risk(step)
        if (
            _THROWN.search(script)
            and "\n" not in script.strip()
            and risk
            and risk.understood
            and rank(risk.level) > rank("low")
        ):
            yield subject.advice(
                "L418",
                f'step "{step.id}" discards its output',
                step,
                "run",
                "remove the redirection; `--output failed` shows the output of failed steps only",
            )


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:59]}…"
