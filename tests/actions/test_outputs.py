"""What a step hands on through $PLANRUN_OUTPUT."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from planrun.actions.outputs import MAX_BYTES, OutputError, parse_outputs, read_outputs

if TYPE_CHECKING:
    from pathlib import Path


def test_lines_and_blocks() -> None:
    """`k=v` is a line, `k<<EOF` keeps its lines as they are without the last newline; the last value counts."""
    text = "a=1\n\nb=x=y\nc<<EOF\n l1\n\nl2=<<\nEOF\nd<<END\nEND\na=2\n"
    assert parse_outputs(text) == {"a": "2", "b": "x=y", "c": " l1\n\nl2=<<", "d": ""}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\r\nb=2\r\n", {"a": "1", "b": "2"}),
        ("a=1", {"a": "1"}),
        ("a=1\r", {"a": "1"}),
        ("a<<E\r\nx\r\n\r\ny\r\nE\r\nb=2\r\n", {"a": "x\n\ny", "b": "2"}),
        ("a<<E\r\nx\r\nE", {"a": "x"}),
        ("a<<E\nx\r\ny\nE\n", {"a": "x\r\ny"}),
        ("a<<E\nx\nE\r\nb=2\n", {"a": "x", "b": "2"}),
        ("\r\n\r\na=1\r\n", {"a": "1"}),
        ("\ufeffa=1\n\ufeffb=2\n", {"a": "1", "b": "2"}),
        ("\ufeffa<<E\r\n\ufeffx\r\nE\r\n", {"a": "\ufeffx"}),
    ],
)
def test_line_ends_and_marks_of_windows(text: str, expected: dict[str, str]) -> None:
    """They are no part of a name or value; a block with LF keeps its lines."""
    assert parse_outputs(text) == expected


def test_utf_16_is_named(tmp_path: Path) -> None:
    """What an old PowerShell writes has a message of its own."""
    for encoding in ("utf-16-le", "utf-16-be"):
        (tmp_path / "o").write_bytes("\ufeffa=1\n".encode(encoding))
        with pytest.raises(OutputError, match="its outputs are UTF-16; write them as UTF-8"):
            read_outputs(str(tmp_path / "o"), {"a": {"type": "string"}})


def test_a_value_may_contain_what_opens_a_block() -> None:
    """`k=a<<b` is a line."""
    assert parse_outputs("k=a<<b\n") == {"k": "a<<b"}


@pytest.mark.parametrize("text", ["nonsense\n", "=x\n", "a<<\n", "a<<EOF\nx\n", "<<EOF\nEOF\n"])
def test_broken_lines_are_refused(text: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(OutputError):
        parse_outputs(text)


def test_outputs_are_typed(tmp_path: Path) -> None:
    """Each declared output is read as its type; a default stands in for one that was not written."""
    file = tmp_path / "o"
    file.write_text("n=3\nok=true\nlist=[1, 2]\ns=007\n")
    declared = {
        "n": {"type": "integer"},
        "ok": {"type": "boolean"},
        "list": {"type": "array"},
        "s": {"type": "string"},
        "d": {"type": "string", "default": "x"},
    }
    assert read_outputs(str(file), declared) == {"n": 3, "ok": True, "list": [1, 2], "s": "007", "d": "x"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x=1\n", 'undeclared output "x"'),
        ("", 'did not write its output "n"'),
        ("n=three\n", 'the output "n"'),
    ],
)
def test_undeclared_missing_and_mistyped_outputs_are_errors(tmp_path: Path, text: str, message: str) -> None:
    """The message names the output."""
    (tmp_path / "o").write_text(text)
    with pytest.raises(OutputError, match=message):
        read_outputs(str(tmp_path / "o"), {"n": {"type": "integer"}})


def test_size_and_encoding_are_bounded(tmp_path: Path) -> None:
    """1 MiB of UTF-8 is allowed, one byte more is not, nor is anything else than a file."""
    file = tmp_path / "o"
    file.write_bytes(b"a=" + b"x" * (MAX_BYTES - 2))
    assert len(read_outputs(str(file), {"a": {"type": "string"}})["a"]) == MAX_BYTES - 2
    file.write_bytes(b"a=" + b"x" * (MAX_BYTES - 1))
    with pytest.raises(OutputError, match="1 MiB"):
        read_outputs(str(file), {"a": {"type": "string"}})
    file.write_bytes(b"a=\xff\n")
    with pytest.raises(OutputError, match="UTF-8"):
        read_outputs(str(file), {"a": {"type": "string"}})
    link = tmp_path / "link"
    link.symlink_to(file)
    with pytest.raises(OutputError, match="cannot be read"):
        read_outputs(str(link), {"a": {"type": "string"}})
    assert read_outputs(str(tmp_path / "none"), {}) == {}
