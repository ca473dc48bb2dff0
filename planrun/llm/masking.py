"""Questions and answers of a model without known secrets: masked whole, and shortened for people only then.

A service, or a proxy before it, may send credentials back: in any encoding, in any field.
"""

from __future__ import annotations

from planrun.llm.entries import form_of, written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from planrun.model.call import Answer, Request

    Mask = Callable[[str], str]

WORDS = {"message": 400, "model": 200, "request_id": 200, "stop_reason": 200, "rule": 200}
"""The texts of an answer besides its content, and how many characters of each are kept."""


def masked(request: Request, mask: Mask | None) -> Request:
    """Return a request without known secrets, and without what no text can hold."""
    messages = cleaned(list(request.messages), mask)
    return request.but(system=tuple(cleaned(list(request.system), mask)), messages=tuple(messages))


def redacted(answer: Answer, mask: Mask) -> Answer:
    """Return an answer with its texts masked, those for people in one line of a length for people."""
    known = vars(answer)
    masked_texts = {name: shown(known[name], mask, most) for name, most in WORDS.items() if known.get(name)}
    form, data = form_of(answer.text)
    clean = cleaned(data, mask)  # first what its JSON says: that is what a plan is made of
    if clean != data or mask(answer.text) != answer.text:
        masked_texts["text"] = mask(written(form, clean))
    return answer.but(**masked_texts)


def cleaned(value: Any, mask: Mask | None) -> Any:
    """Return plain data masked, halves of characters and NUL replaced."""
    if isinstance(value, str):
        whole = value.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")
        return mask(whole) if mask else whole
    if isinstance(value, (list, tuple)):
        return [cleaned(item, mask) for item in value]
    if isinstance(value, dict):
        return {name: cleaned(item, mask) for name, item in value.items()}
    return value


def shown(text: str, mask: Mask, most: int = WORDS["message"]) -> str:
    """Return a text masked, then in one line of at most so many characters."""
    line = " ".join("".join(char if char.isprintable() else " " for char in mask(text)).split())
    return line if len(line) <= most else line[: most - 1] + "…"
