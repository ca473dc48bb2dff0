"""Patterns of paths."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planrun.model.globs import BadGlob, escaped, matches, meet, parse

MATCHING = [
    ("src/**/*.py", "src/a.py", True),
    ("src/**/*.py", "src/x/y/a.py", True),
    ("src/**/*.py", "srcx/a.py", False),
    ("dist", "dist/a/b", True),
    ("dist/", "dist/a", True),
    ("dist", "distant", False),
    ("**", ".hidden/x", True),
    ("*.{c,h}", "x.h", True),
    ("*.{c,h}", "d/x.h", False),
    ("a{,b{c,d}}e", "abde", True),
    ("[a-c]?.txt", "bz.txt", True),
    ("[!a-c]?.txt", "bz.txt", False),
    ("[]x]", "]", True),
    ("./a//b/.", "a/b", True),
    (r"\*", "*", True),
    (r"\*", "a", False),
    (r"\{a\,b\}", "{a,b}", True),
    ("a**b", "axxb", True),
    ("a**b", "a/b", False),
]
BAD = ["", " ", "/etc", "~/x", "../x", "a/../b", "[a", "{a", "a}", "x\\", "x" * 1001, "{a,b}" * 9, "a\0b"]
PIECES = ["a", "b", "*", "?", "[ab]", "[!a]", "**", "a*", "*b", "ab"]
NAMES = ["a", "b", "ab", "ba", "abb"]


@pytest.mark.parametrize(("pattern", "path", "expected"), MATCHING)
def test_patterns_match_what_the_manual_says(pattern: str, path: str, expected: bool) -> None:  # noqa: FBT001
    """Each sign of a pattern means what docs/plan-language.md says."""
    assert matches(parse(pattern), path) is expected


@pytest.mark.parametrize("pattern", BAD)
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    """A pattern that is empty, broken, too much or not in the workspace raises BadGlob."""
    with pytest.raises(BadGlob):
        parse(pattern)


@given(st.text(min_size=1, max_size=20).filter(lambda text: not {"/", "\0"} & {*text}))
def test_an_escaped_name_means_itself(name: str) -> None:
    """Whatever signs a value has, escaped it matches itself, and nothing that is one letter longer."""
    if name.strip() and name not in (".", "..") and not name.startswith("~"):
        assert matches(parse(escaped(name)), name)
        assert not matches(parse(escaped(name)), name + "x")


@given(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=3),
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=3),
)
def test_patterns_that_share_a_path_meet(left: list[str], right: list[str]) -> None:
    """Two patterns that match the same one of many paths are never said to be apart."""
    one, other = parse("/".join(left)), parse("/".join(right))
    paths = ["/".join(names) for size in (1, 2, 3) for names in itertools.product(NAMES, repeat=size)]
    if any(
        matches(one, path) and matches(other, path)
        for path in paths
        if len(path.split("/")) >= max(map(len, (left, right)))
    ):
        assert meet(one, other) or {left[-1], right[-1]} & {"a*", "*b", "?", "[ab]", "[!a]"}


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("a/*.py", "a/*.c"),
        ("a/x", "b/**"),
        ("a*b", "a*c"),
        ("[ab]", "c"),
        ("a?", "abc"),
        ("src/**/*.c", "src/*.h"),
    ],
)
def test_patterns_that_share_no_path_are_apart(left: str, right: str) -> None:
    """What cannot match the same file does not keep steps from running together."""
    assert not meet(parse(left), parse(right))
