"""What a form asks for, as the verb of its name: it is started as a process and keeps to all rules of the verb."""

from __future__ import annotations

from planrun.approval.responses import user_name
from planrun.cliutil.ownverb import OwnVerb
from planrun.reports.escape import line
from planrun.serve.access import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ANSWERED_BY = 20.0  # seconds that a page waits for the verb
_CANCELLED_BY = 2.0  # a run may take longer to end; the page then shows that


def words_of(run: str, form: Mapping[str, Sequence[str]], by: str) -> tuple[str, ...]:
    """Return the words of the verb that a form asks for; raises Refused."""
    verb, step, digest = (form.get(name, [""])[0] for name in ("verb", "step", "digest"))
    reason = line(form.get("reason", [""])[0])
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


def perform(words: Sequence[str]) -> str:
    """Start a verb, wait for its end for a while, and return what it said."""
    verb = OwnVerb(words)
    code = verb.wait(_CANCELLED_BY if words[0] == "cancel" else _ANSWERED_BY)
    rows = [row.removeprefix(f"run {words[1]}: ") for row in verb.printed()]
    error = verb.error()
    verb.close()
    if code is None:
        return rows[0] if rows else f"planrun {words[0]} goes on"
    if code and error:
        return f"{error} (exit code {code})"
    return rows[0] if rows else f"planrun {words[0]} ended with exit code {code}"
