"""The mark of an env file that may be missing: its text begins with NUL, which is in no path."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.model.plan import Text

_MARK = "\0"


def marked(text: Text) -> Text:
    """Return the text of an env file as that of one that may be missing."""
    return _MARK + text if isinstance(text, str) else (text[0], (_MARK, *text[1]))


def unmarked(text: Text) -> tuple[Text, bool]:
    """Return the text of an env file without its mark, and whether it had one."""
    if isinstance(text, str):
        return text.removeprefix(_MARK), text.startswith(_MARK)
    first, *rest = text[1]
    if not isinstance(first, str) or not first.startswith(_MARK):
        return text, False
    parts = (first.removeprefix(_MARK), *rest)
    return (text[0], parts[1:] if not parts[0] else parts), True
