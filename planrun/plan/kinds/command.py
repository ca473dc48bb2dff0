"""The kinds `run` and `exec`: a script for a shell, and a program with its arguments."""

from __future__ import annotations

from planrun.model.plan import Action, source_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from planrun.model.job import Job
    from planrun.model.plan import Text, Tree
    from planrun.risk.classifier import Risk, Setting


class Run(Action):
    """A script for a shell."""

    kind = "run"
    starts_process = is_command = is_script = True
    in_digest = "Run"
    digested = ("script",)
    script: Text

    def words(self) -> tuple[Text, ...]:
        """Return the script."""
        return (self.script,)

    def filled(self, fill: Callable[..., Text], value: Callable[[Tree], Any]) -> Run:
        """Return the action with another script."""
        return self.but(script=fill(self.script, script=True))

    def classify(
        self,
        fill: Callable[..., str],
        shell: tuple[str, ...],
        env: dict[str, str | None],
        setting: Setting,
    ) -> Risk:
        """Return the risk of the script in this shell."""
        from planrun.risk.actions import of_script  # a plan that was seen before has its risks

        return of_script(fill(self.script, script=True), shell, env, setting)

    def classify_job(self, job: Job, env: dict[str, str | None], setting: Setting) -> Risk:
        """Return the risk of the script that is about to start."""
        from planrun.risk.actions import of_script  # as above

        return of_script(job.argv[-1], job.argv[:-1], env, setting)

    def written_job(self, job: Job) -> str:
        """Return the script that is about to start."""
        return job.argv[-1]

    def written(self) -> str:
        """Return the script as it stands in the plan."""
        return source_text(self.script)

    def by_keys(self) -> dict[str, Any]:
        """Return the script under its key."""
        return {"run": source_text(self.script)}


class Exec(Action):
    """A program with its arguments; no shell."""

    kind = "exec"
    starts_process = is_command = True
    argv: tuple[Text, ...]

    def words(self) -> tuple[Text, ...]:
        """Return program and arguments."""
        return self.argv

    def filled(self, fill: Callable[..., Text], value: Callable[[Tree], Any]) -> Exec:
        """Return the action with other words."""
        return self.but(argv=tuple([fill(word) for word in self.argv]))

    def classify(
        self,
        fill: Callable[..., str],
        shell: tuple[str, ...],
        env: dict[str, str | None],
        setting: Setting,
    ) -> Risk:
        """Return the risk of the program with these arguments."""
        from planrun.risk.actions import of_argv  # as with scripts

        return of_argv(tuple([fill(word) for word in self.argv]), env, setting)

    def classify_job(self, job: Job, env: dict[str, str | None], setting: Setting) -> Risk:
        """Return the risk of the program that is about to start."""
        from planrun.risk.actions import of_argv  # as with scripts

        return of_argv(job.argv, env, setting)

    def written(self) -> str:
        """Return the words in one line, each so that its ends can be seen."""
        return " ".join([_quoted(source_text(word)) for word in self.argv])

    def by_keys(self) -> dict[str, Any]:
        """Return the words under their key."""
        return {"exec": [source_text(word) for word in self.argv]}


def _quoted(text: str) -> str:
    return text if text and not set(text) & set(" \t\n'\"\\$`|&;<>()*?[]{}#~!") else repr(text)


def _run(checked: Any, _step: Any, node: Any) -> dict[str, Any]:
    return {"action": Run(script=checked.formulas.text(node, script=True))}


def _exec(checked: Any, _step: Any, node: Any) -> dict[str, Any]:
    return {"action": Exec(argv=checked.formulas.words(node))}


COMPILE = {"run": _run, "exec": _exec}
