"""Env files in the shapes that users of dotenv have them."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from planrun.actions.dotenv import MAX_BYTES, parse_env_file, read_env_file

if TYPE_CHECKING:
    from pathlib import Path

ODD = "a\u2028B=b\x85C=c\x0bD=d"
KNOWN = {"HOME": "/home/x", "EMPTY": ""}
SHAPES: dict[str, tuple[str, dict[str, str]]] = {
    "plain": ("A=1\nB = two \n", {"A": "1", "B": "two"}),
    "last line without an end": ("A=1", {"A": "1"}),
    "windows line ends": ("A=1\r\n\r\nB='x'\r\nC=\"y\"\r\n", {"A": "1", "B": "x", "C": "y"}),
    "a byte order mark": ("\ufeffA=1\n", {"A": "1"}),
    "export": ("export A=1\nexport\tB=2\nexport C=\n", {"A": "1", "B": "2", "C": ""}),
    "a name that is export": ("export=1\n", {"export": "1"}),
    "colon": ("A: 1\nB: 'x y'\nC:\nD: a:b\n", {"A": "1", "B": "x y", "C": "", "D": "a:b"}),
    "colon in a value": ("A=b: c\nURL=http://x:1/\n", {"A": "b: c", "URL": "http://x:1/"}),
    "comments": (
        "# c\n  # d\nA=1 # c\nB=x#y\nC= # none\nD=\t# none\n",
        {"A": "1", "B": "x#y", "C": "", "D": ""},
    ),
    "comments behind quotes": ("A='x # y' # c\nB=\"#\"#c\n", {"A": "x # y", "B": "#"}),
    "quotes within": ('A=it\'s\nB=say "x"\n', {"A": "it's", "B": 'say "x"'}),
    "several lines": (
        "K=\"-----BEGIN\r\nab==\r\n\"\nL='1\n\n# 3' # c\nM=2\n",
        {"K": "-----BEGIN\nab==\n", "L": "1\n\n# 3", "M": "2"},
    ),
    "escapes": (
        'A="l1\\nl2\\t\\"q\\" \\\\n \\$ \\d"\nB=\'\\n\'\nC=\\n\n',
        {"A": 'l1\nl2\t"q" \\n $ \\d', "B": "\\n", "C": "\\n"},
    ),
    "placeholders": (
        'A=1\nB=${A}2\nC="${B}-${HOME}"\nD=\'${A}\'\nE="\\${A}"\n',
        {"A": "1", "B": "12", "C": "12-/home/x", "D": "${A}", "E": "${A}"},
    ),
    "placeholders with defaults": (
        "A=${NO:-x}${EMPTY:-y}${EMPTY-z}${NO-w}${HOME:-v}${NO}\n",
        {"A": "xyw/home/x"},
    ),
    "other dollars": (
        "A=$HOME\nB=$(id)\nC=${1}\nD=a$\nE=${A\n",
        {"A": "$HOME", "B": "$(id)", "C": "${1}", "D": "a$", "E": "${A"},
    ),
    "what is replaced is not read again": ("A='${HOME}'\nB=${A}\n", {"A": "${HOME}", "B": "${HOME}"}),
    "the last one counts": ("A=1\nA=${A}2\n", {"A": "12"}),
    "other line separators": (f"A={ODD}\r\nE='{ODD} '\n", {"A": ODD, "E": f"{ODD} "}),
}
BROKEN = {
    "A": "line 2 is not NAME=value",
    "1A=x": "line 2 is not NAME=value",
    "A B=x": "line 2 is not NAME=value",
    "=x": "line 2 is not NAME=value",
    "A:x": "line 2 is not NAME=value",
    "A='x": "line 2 has an unclosed quote",
    'A="x\n\ny\\"': "line 2 has an unclosed quote",
    "A='x\ny'z": "line 3 has text after its closing quote",
    "A='1\n2'\nB": "line 4 is not NAME=value",
}


@pytest.mark.parametrize("name", SHAPES)
def test_the_shapes_of_env_files(name: str, tmp_path: Path) -> None:
    """Each means what it means to dotenv."""
    text, expected = SHAPES[name]
    file = tmp_path / ".env"
    file.write_bytes(text.encode())
    assert parse_env_file(read_env_file(str(file)), KNOWN) == expected


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_env_file_names_its_line(text: str) -> None:
    """The line number is in the message."""
    with pytest.raises(ValueError, match=f"^{BROKEN[text]}$"):
        parse_env_file("OK=1\n" + text, {})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("A=1\n".encode("utf-16"), "it is UTF-16; save it as UTF-8"),
        (b"\xfe\xff\0A\0=\x001", "it is UTF-16; save it as UTF-8"),
        (b"A=1\nB=\xe9\n", "line 2 is not UTF-8"),
        (b"A=\0", "it contains a NUL character"),
        (b"A=" + b"x" * MAX_BYTES, "larger than 1 MiB"),
    ],
)
def test_a_file_that_is_no_utf_8_text_is_refused(data: bytes, message: str, tmp_path: Path) -> None:
    """The message names the encoding or the line."""
    (tmp_path / ".env").write_bytes(data)
    with pytest.raises(ValueError, match=f"^{message}$"):
        read_env_file(str(tmp_path / ".env"))


def test_placeholders_cannot_grow_without_end() -> None:
    """Thirty lines that double the one before are refused, and fast."""
    text = "A0=xxxxxxxxxx\n" + "".join([f"A{n + 1}=${{A{n}}}${{A{n}}}\n" for n in range(30)])
    with pytest.raises(ValueError, match="its placeholders expand to more than 1 MiB"):
        parse_env_file(text, {})


def test_placeholders_of_a_run(tmp_path: Path) -> None:
    """They find what the plan sets before the file and what a step inherits, and no credential that it does not."""
    (tmp_path / "one.env").write_bytes(b"\xef\xbb\xbfONE: one\r\n")
    (tmp_path / "two.env").write_text("TWO=${ONE}-${FROM}-${SHOWN}-${MY_TOKEN:-none}\nONE=last\n")
    (tmp_path / "plan.yml").write_text(
        "version: 1\nenv: {FROM: plan}\nsteps:\n"
        "  - {id: a, env_file: [one.env, two.env], run: 'echo \"$TWO $ONE\" > out.txt'}\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "planrun", "execute", "plan.yml"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "SHOWN": "shown", "MY_TOKEN": "hunter2hunter2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.txt").read_text() == "one-plan-shown-none last\n"
