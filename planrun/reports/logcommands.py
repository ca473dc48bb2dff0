"""Commands that Azure and TeamCity read in a log, with texts escaped so that they cannot end a value or a command."""

from __future__ import annotations


def vso(text: str) -> str:
    """Return text for a property or the message of a logging command of Azure."""
    for char, escape in (("%", "%AZP25"), (";", "%3B"), ("]", "%5D"), ("\r", "%0D"), ("\n", "%0A")):
        text = text.replace(char, escape)
    return text


def service_message(kind: str, **fields: str) -> str:
    """Return a service message of TeamCity, in one line."""
    text = " ".join([f"{name}='{piped(value)}'" for name, value in fields.items()])
    return f"##teamcity[{kind} {text}]\n"


def piped(text: str) -> str:
    """Return text for a value of a service message: nothing in it can end the value, the message or the line."""
    for char, escape in (("|", "||"), ("'", "|'"), ("[", "|["), ("]", "|]"), ("\n", "|n"), ("\r", "|r")):
        text = text.replace(char, escape)
    return text if text.isascii() else "".join(map(_in_ascii, text))


def _in_ascii(char: str) -> str:
    """Return a character as it is, or by its numbers in UTF-16: agents read the log in an encoding of their own."""
    if char.isascii():
        return char
    data = char.encode("utf-16-be", "replace")
    return "".join([f"|0x{data[at : at + 2].hex()}" for at in range(0, len(data), 2)])
