"""Texts that are one plain command have the words that bash gives them; others are left to bash."""

from __future__ import annotations

import random
import subprocess

import pytest

from planrun.executors.direct import plain_words

COUNT = 30_000
USUAL = "ab1- \t./:,+=@%^''\"\""
MEANS_SOMETHING = "\n$\\!#~*?[]{}()<>|&;`\x01\x7fäé日\u00a0\u200e"
KEYWORDS = "if then elif else fi for in while until do done case esac select function time coproc"


def texts(seed: int) -> list[str]:
    """Short texts, most of them of signs that need no reading."""
    chance = random.Random(seed)
    letters = USUAL + MEANS_SOMETHING
    weights = [8] * len(USUAL) + [1] * len(MEANS_SOMETHING)
    return ["".join(chance.choices(letters, weights, k=chance.randint(1, 14))) for _ in range(COUNT)]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_words_are_those_of_bash(seed: int) -> None:
    """What is read as plain has exactly the words that bash passes to a program."""
    found = [(text.removesuffix("\n"), words) for text in texts(seed) if (words := plain_words(text))]
    assert len(found) > COUNT // 10
    script = "".join([f"printf '%s\\0' {text}\nprintf '\\n\\0'\n" for text, _ in found])
    done = subprocess.run(["bash", "-eu"], input=script.encode(), capture_output=True, check=True)
    assert done.stderr == b""
    assert done.stdout.decode() == "".join(["\0".join((*words, "\n", "")) for _, words in found])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("true", ("true",)),
        (" \tpytest  -q tests/unit\n", ("pytest", "-q", "tests/unit")),
        ("make CC=gcc -j4", ("make", "CC=gcc", "-j4")),
        ("""git commit -m 'a $x `y` \\ "z"' """, ("git", "commit", "-m", 'a $x `y` \\ "z"')),
        ("""echo "it's done!" x'y'"z" ''""", ("echo", "it's done!", "xyz", "")),
        ("grep 'größe 日本' a.txt", ("grep", "größe 日本", "a.txt")),
    ],
)
def test_plain_commands(text: str, words: tuple[str, ...]) -> None:
    """Quotes are gone, blanks separate."""
    assert plain_words(text) == words


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "\n", "a\nb", "a\n\n", "\na", "a;", "a &", "a | b", "a && b", "a > b", "a 2>&1", "(a)"),
        *("a $x", 'a "$x"', 'a "`x`"', "a `x`", "a \\x", 'a "\\x"', "a $'x'", 'a $"x"', "a {b,c}", "a # b"),
        *(
            "a *.txt",
            "a ?",
            "a [b]",
            "a ~",
            "a b=~",
            "! a",
            "a 'b",
            'a "b',
            "a 'b\nc'",
            "a '\x01'",
            "a größe",
        ),
        *("x=1", "x=1 a", "x+=1", "'x=1' a", "%1", "a\r", "a \ud800"),
        *KEYWORDS.split(),
        *[f"'{word}' x" for word in KEYWORDS.split()],
    ],
)
def test_what_is_not_plain(text: str) -> None:
    """Whatever bash expands, redirects, assigns or reads as its own grammar, and what is rarely seen."""
    assert plain_words(text) is None
