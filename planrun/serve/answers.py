"""What a form asks for, as the words of the verb of its name: it is a process and keeps to all rules of the verb."""

from __future__ import annotations

from planrun.approval.responses import user_name
from planrun.reports.escape import line
from planrun.serve.access import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planrun.app.inspect import Inspected

    Form = Mapping[str, Sequence[str]]


def words_of(what: str, inspected: Inspected, form: Form, by: str) -> tuple[str, ...]:
    """Return the words of the verb that a form asks for; raises Refused."""
    run = inspected.run
    if what == "answer":
        return _answer(run, form, by)
    if what == "cancel":
        return ("cancel", run)
    if what == "resume":
        return _again(("resume", run), inspected, form)
    if what == "retry":
        step = _first(form, "step")
        if step not in inspected.state.steps or step.startswith("-"):
            raise Refused(400, "no step has this id")
        return _again(("retry", run, step), inspected, form)
    raise Refused(404, "there is no such page")


def _first(form: Form, name: str) -> str:
    return form.get(name, [""])[0]


def _again(words: tuple[str, ...], inspected: Inspected, form: Form) -> tuple[str, ...]:
    """Return the words of a verb that runs steps, if the run still has the plan that the page showed."""
    if _first(form, "digest") != str(inspected.state.named.get("digest", "")):
        raise Refused(409, "the run has another plan than this page showed; load the page again")
    return (*words, "--output", "quiet")


def _answer(run: str, form: Form, by: str) -> tuple[str, ...]:
    verb, step, digest = (_first(form, name) for name in ("verb", "step", "digest"))
    reason = line(_first(form, "reason"))
    end = ["--by", line(by or user_name())]
    end += [f"--reason={reason}"] if reason else []
    if step.startswith("-"):
        raise Refused(400, "no step has this id")
    if verb == "decide":
        values = [value for value in form.get("value", []) if value]
        if not values or not step:
            raise Refused(400, "choose an answer")
        return ("decide", run, f"{step}={','.join(values)}", *end)
    if verb not in ("approve", "reject"):
        raise Refused(400, "an answer is approve, reject or decide")
    end += ["--digest", digest] if digest else []
    return (verb, run, *([step] if step else []), *end)
