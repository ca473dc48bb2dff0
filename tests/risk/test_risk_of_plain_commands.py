"""A text that is one plain command has the class, reason and commands that the grammar would give it."""

from __future__ import annotations

import random

from planrun.risk.classifier import Risk, Setting, of_any, of_plain
from planrun.risk.scope import TooMany
from planrun.risk.tokens import NotUnderstood
from tests.risk.corpus import rows

SETTINGS = (
    Setting(),
    Setting(cwd="sub/folder", workspace="/work", variables={"HOME": "/root", "a": "b"}),
    Setting(cwd="/", places=("/work/out",)),
)


def by_grammar(text: str, setting: Setting) -> Risk | str:
    """Return what the grammar says of a text, or why it says nothing."""
    try:
        return of_any(text, setting)
    except (NotUnderstood, TooMany) as error:
        return repr(error)


def read(texts: list[str]) -> int:
    """Compare both ways for texts in all settings; return how many texts were plain."""
    count = 0
    for text in texts:
        for setting in SETTINGS:
            found = of_plain(text, setting)
            count += found is not None
            assert found is None or vars(found) == vars(by_grammar(text, setting)), text
    return count // len(SETTINGS)


def test_labelled_commands() -> None:
    """Of the commands with a label, and of their parts."""
    texts = [text for _, text in rows()]
    parts = [part for text in texts for part in text.replace("&&", "\n").replace("|", "\n").split("\n")]
    assert read([*texts, *parts, *[f" {part}\n" for part in parts]]) > 800


def test_words_by_chance() -> None:
    """Of commands made of words of labelled ones, in any order, and of words of the grammar."""
    chance = random.Random(5)
    words = [word for _, text in rows() for word in text.split() if len(word) < 40]
    words += [
        "if",
        "fi",
        "time",
        "in",
        "x=1",
        "cd",
        "exit",
        "set",
        "-e",
        "export",
        "/dev/fd/63",
        "",
        " ",
    ] * 20
    texts = [" ".join(chance.choices(words, k=chance.randint(1, 5))) for _ in range(6000)]
    assert read(texts) > 1000
