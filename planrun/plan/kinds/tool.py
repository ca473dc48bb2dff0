"""The kind `tool`: a call of one of planrun's own tools, the tool `shell` among them."""

from __future__ import annotations

from planrun.model.jsontext import dumps
from planrun.model.plan import Action, source_text
from planrun.plan.kinds.command import Run
from planrun.risk.actions import of_call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from planrun.model.job import Job
    from planrun.model.plan import Text, Tree
    from planrun.risk.classifier import Risk, Setting


class Tool(Action):
    """A call of a tool; its process starts with planrun, and not with a program of the machine.

    `name` and the keys of `args` are those of `planrun.model.tools`; in `args`, at any depth, a tuple is a template.
    """

    kind = "tool"
    starts_process = True
    digested = ("name", "version", "args")
    name: str
    args: dict[str, Any]
    version: int = 1  # of the tool

    def words(self) -> tuple[Text, ...]:
        """Return the name and every text of the arguments, with other values as Python writes them."""
        return (self.name, *_words(self.args))

    def formulas(self) -> Iterator[Any]:
        """Yield the templates and texts in the arguments."""
        yield from _texts(self.args)

    def filled(self, fill: Callable[..., Text], value: Callable[[Tree], Any]) -> Tool:
        """Return the call with other values in place of the templates."""
        return self.but(args=_filled(self.args, value))

    def classify(
        self,
        fill: Callable[..., str],
        shell: tuple[str, ...],
        env: dict[str, str | None],
        setting: Setting,
    ) -> Risk:
        """Return the risk of the call."""
        return of_call(self.name, _filled(self.args, fill), env, setting)

    def classify_job(self, job: Job, env: dict[str, str | None], setting: Setting) -> Risk:
        """Return the risk of the call that is about to start."""
        return of_call(job.call["name"], job.call["args"], env, setting)

    def written_job(self, job: Job) -> str:
        """Return the call that is about to start."""
        return _called(job.call["name"], job.call["args"])

    def written(self) -> str:
        """Return the call as it stands in the plan: the name of the tool, and an argument a line."""
        return _called(self.name, _written(self.args))

    def by_keys(self) -> dict[str, Any]:
        """Return the call under its keys."""
        return {"tool": self.name, **({"args": _written(self.args)} if self.args else {})}


class Shell(Run):
    """A call of the tool `shell`: it is the script that its commands are."""

    kind = "tool"
    name: str = "shell"

    def by_keys(self) -> dict[str, Any]:
        """Return the call under its keys."""
        return {"tool": self.name, "args": {"command": self.written()}}


def _called(name: str, args: dict[str, Any]) -> str:
    return "\n".join(
        [
            name,
            *(
                f"  {key}: {value if isinstance(value, str) and value.isprintable() and bool(value) else dumps(value)}"
                for key, value in args.items()
            ),
        ]
    )


def _written(value: Any) -> Any:
    """Return arguments as they stand in the plan, interpolations included."""
    if isinstance(value, dict):
        return {name: _written(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_written(part) for part in value]
    return source_text(value) if isinstance(value, str | tuple) else value


def _filled(value: Any, fill: Callable[[Any], Any]) -> Any:
    """Return arguments with other values in place of the templates."""
    if isinstance(value, dict):
        return {name: _filled(part, fill) for name, part in value.items()}
    if isinstance(value, list):
        return [_filled(part, fill) for part in value]
    return fill(value) if isinstance(value, tuple) else value


def _texts(value: Any) -> Iterator[Any]:
    """Yield the templates and texts in arguments."""
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)
    elif isinstance(value, str | tuple):
        yield value


def _words(value: Any) -> Iterator[Text]:
    """Yield every text of arguments, their names included, and other values as Python writes them."""
    if isinstance(value, dict | list):
        for part in value.items() if isinstance(value, dict) else value:
            yield from _words(list(part) if isinstance(value, dict) else part)
    else:
        yield value if isinstance(value, str | tuple) else repr(value)
