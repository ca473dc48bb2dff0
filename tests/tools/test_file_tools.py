"""file.* and json_patch on ordinary files."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planrun.tools.ground import Refusal
from planrun.tools.json import patched, read, same, style_of, written
from tests.tools.calls import call

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """An empty workspace."""
    found = tmp_path / "work"
    found.mkdir()
    return found


def test_a_file_is_made_once(work: Path) -> None:
    """`create` fails when there is a file, `append` adds to it, `overwrite` replaces it; the hash is the file's."""
    first = call(work, "file.write", path="a/b/c.txt", content="1\n", mode="create")
    assert first.outputs == {"size": "2", "sha256": hashlib.sha256(b"1\n").hexdigest()}
    again = call(work, "file.write", path="a/b/c.txt", content="2\n", mode="create")
    assert (again.code, again.log) == (1, "file.write: a/b/c.txt: it is there already\n")
    assert call(work, "file.write", path="a/b/c.txt", content="2\n", mode="append").outputs["size"] == "4"
    assert (work / "a/b/c.txt").read_text() == "1\n2\n"
    assert call(work, "file.write", path="a/b/c.txt", content="ü").outputs["size"] == "2"


def test_a_file_that_is_not_the_expected_one_stays(work: Path) -> None:
    """`expected` names the bytes that were there at review."""
    (work / "a.txt").write_text("one\n")
    known = hashlib.sha256(b"one\n").hexdigest()
    assert call(work, "file.write", path="a.txt", content="two\n", expected=known).code == 0
    end = call(work, "file.write", path="a.txt", content="three\n", expected=known)
    assert end.code == 1
    assert "not what was expected" in end.log
    assert call(work, "file.write", path="none.txt", content="x", expected=known).code == 1
    assert (work / "a.txt").read_text() == "two\n"


@pytest.mark.parametrize(
    ("args", "after", "expected"),
    [
        ({"old": "a", "new": "x"}, None, "stands there 3 times, not once"),
        ({"old": "a", "new": "x", "count": 3}, "x b x c x\n", ""),
        ({"old": "a", "new": "x", "count": 0}, "x b x c x\n", ""),
        ({"old": "b a", "new": ""}, "a  c a\n", ""),
        ({"old": "z", "new": "x", "count": 0}, None, "does not stand there"),
        ({"old": "a.c", "new": "x"}, None, "does not stand there"),
    ],
)
def test_an_exact_text_is_replaced(
    work: Path, args: dict[str, Any], after: str | None, expected: str
) -> None:
    """As often as `count` allows, or not at all; the text is no pattern."""
    (work / "a.txt").write_text("a b a c a\n")
    end = call(work, "file.replace", path="a.txt", **args)
    assert end.code == (after is None)
    assert expected in end.log
    assert (work / "a.txt").read_text() == (after or "a b a c a\n")


def test_what_is_no_text_is_not_read(work: Path) -> None:
    """Bytes that are no UTF-8, and files above the size limit, fail with a reason."""
    (work / "a.bin").write_bytes(b"\xff\x00")
    assert "no UTF-8" in call(work, "file.read", path="a.bin").log
    (work / "big").write_text("x" * 100)
    assert call(work, "file.read", path="big", max_bytes=99).code == 1
    assert call(work, "file.read", path="big", max_bytes=100).outputs["text"] == "x" * 100


def test_outputs_keep_every_text(work: Path) -> None:
    """Lines, blanks and words that look like the form of outputs come back as they were."""
    text = "a=b\nx<<EOF\nEOF\n\n  two  \r\n\u2028end"
    (work / "a.txt").write_text(text, newline="")
    assert call(work, "file.read", path="a.txt").outputs["text"] == text


def test_files_are_copied_and_moved(work: Path) -> None:
    """Missing folders are made, and an existing file is overwritten only on request."""
    (work / "a.txt").write_text("a\n")
    (work / "b.txt").write_text("b\n")
    assert call(work, "file.copy", path="a.txt", to="x/y/a.txt").code == 0
    assert call(work, "file.copy", path="a.txt", to="b.txt").code == 1
    assert call(work, "file.move", path="a.txt", to="b.txt").code == 1
    assert (work / "b.txt").read_text() == "b\n"
    assert call(work, "file.move", path="a.txt", to="b.txt", overwrite=True).code == 0
    assert call(work, "file.move", path="x", to="z/x").code == 0
    assert sorted(str(path.relative_to(work)) for path in work.rglob("*.txt")) == ["b.txt", "z/x/y/a.txt"]


def test_removing_reports_what_is_missing(work: Path) -> None:
    """A missing file is an error, unless it may be missing; folders need `recursive`."""
    (work / "sub").mkdir()
    assert call(work, "file.remove", paths=["none"]).code == 1
    assert call(work, "file.remove", paths=["none", "no/such"], missing_ok=True).outputs == {"removed": "0"}
    assert "recursive" in call(work, "file.remove", paths="sub").log
    assert call(work, "file.remove", paths="sub", recursive=True).code == 0


def test_patterns_find_files(work: Path) -> None:
    """`*` stays in a folder, `**` does not; hidden names, git and links to folders are left out."""
    for name in ("a.py", "s/b.py", "s/t/c.py", "s/t/d.txt", ".h/e.py", "s/.f.py", ".git/g.py"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("")
    (work / "link").symlink_to("s")

    def found(**args: Any) -> list[str]:
        return list(json.loads(call(work, "file.glob", **args).outputs["files"]))

    assert found(patterns="*.py") == ["a.py"]
    assert found(patterns="**/*.py") == ["a.py", "s/b.py", "s/t/c.py"]
    assert found(patterns=["s/*", "s/t/**"]) == ["s/b.py", "s/t/c.py", "s/t/d.txt"]
    assert found(patterns="s/**/c.py") == ["s/t/c.py"]
    assert found(patterns="**/*.py", hidden=True) == [".h/e.py", "a.py", "s/.f.py", "s/b.py", "s/t/c.py"]
    assert found(patterns="none/*") == []
    assert call(work, "file.glob", patterns="**/*.py", max_files=2).code == 1
    assert call(work, "file.glob", patterns="../*").code == 1


# RFC 6902, appendix A, and what it says in words.
RFC: list[tuple[Any, list[dict[str, Any]], Any]] = [
    ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux"}], {"foo": "bar", "baz": "qux"}),
    (
        {"foo": ["bar", "baz"]},
        [{"op": "add", "path": "/foo/1", "value": "qux"}],
        {"foo": ["bar", "qux", "baz"]},
    ),
    ({"baz": "qux", "foo": "bar"}, [{"op": "remove", "path": "/baz"}], {"foo": "bar"}),
    ({"foo": ["bar", "qux", "baz"]}, [{"op": "remove", "path": "/foo/1"}], {"foo": ["bar", "baz"]}),
    ({"baz": "qux"}, [{"op": "replace", "path": "/baz", "value": "boo"}], {"baz": "boo"}),
    (
        {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
        [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
        {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
    ),
    (
        {"foo": ["all", "grass", "cows", "eat"]},
        [{"op": "move", "from": "/foo/1", "path": "/foo/3"}],
        {"foo": ["all", "cows", "eat", "grass"]},
    ),
    ({"a": [1, 2]}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": [1, 2], "b": [1, 2]}),
    (
        {"foo": "bar"},
        [{"op": "add", "path": "/child", "value": {"g": {}}}],
        {"foo": "bar", "child": {"g": {}}},
    ),
    ({"/": 9, "~1": 10}, [{"op": "test", "path": "/~01", "value": 10}], {"/": 9, "~1": 10}),
    ({"foo": ["bar"]}, [{"op": "add", "path": "/foo/-", "value": ["abc"]}], {"foo": ["bar", ["abc"]]}),
    ({"a": 1}, [{"op": "replace", "path": "", "value": [1]}], [1]),
    ({"": 1}, [{"op": "replace", "path": "/", "value": 2}], {"": 2}),
    ({"a": 1.0}, [{"op": "test", "path": "/a", "value": 1}], {"a": 1.0}),
    ({"a": None}, [{"op": "test", "path": "/a", "value": None}], {"a": None}),
]
REFUSED: list[tuple[Any, dict[str, Any]]] = [
    ({"baz": "qux"}, {"op": "test", "path": "/baz", "value": "bar"}),
    ({"foo": "bar"}, {"op": "add", "path": "/baz/bat", "value": "qux"}),
    ({"foo": []}, {"op": "add", "path": "/foo/2", "value": 1}),
    ({"foo": [1]}, {"op": "remove", "path": "/foo/-"}),
    ({"foo": [1]}, {"op": "replace", "path": "/foo/00", "value": 2}),
    ({"foo": [1]}, {"op": "replace", "path": "/foo/1", "value": 2}),
    ({"foo": 1}, {"op": "remove", "path": "/bar"}),
    ({"foo": 1}, {"op": "remove", "path": ""}),
    ({"foo": 1}, {"op": "replace", "path": "/bar", "value": 2}),
    ({"foo": {"a": 1}}, {"op": "move", "from": "/foo", "path": "/foo/a/b"}),
    ({"foo": 1}, {"op": "copy", "from": "/bar", "path": "/baz"}),
    ({"foo": 1}, {"op": "add", "path": "/baz"}),
    ({"foo": 1}, {"op": "move", "path": "/baz"}),
    ({"foo": 1}, {"op": "add", "path": "baz", "value": 1}),
    ({"foo": 1}, {"op": "add", "path": "/a~2", "value": 1}),
    ({"/": 9, "~1": 10}, {"op": "test", "path": "/~01", "value": "10"}),
    ({"a": 1}, {"op": "test", "path": "/a", "value": True}),
]


@pytest.mark.parametrize(("document", "operations", "after"), RFC)
def test_operations_follow_the_rfc(document: Any, operations: list[dict[str, Any]], after: Any) -> None:
    """The examples of RFC 6902, on data that stays as it is."""
    before = json.dumps(document)
    assert patched(document, operations) == after
    assert json.dumps(document) == before


@pytest.mark.parametrize(("document", "operation"), REFUSED)
def test_operations_that_cannot_be_done_are_refused(document: Any, operation: dict[str, Any]) -> None:
    """Each error names its operation."""
    with pytest.raises(Refusal, match=rf"operation 1 \({operation['op']}"):
        patched(document, [operation])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(value=JSON, indent=st.sampled_from([None, 1, 2, 4, "\t"]), ascii_only=st.booleans())
def test_a_file_is_written_as_it_was_read(value: Any, indent: int | str | None, *, ascii_only: bool) -> None:
    """JSON of any usual formatting stays the same to the byte."""
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only) + "\n"
    again = written(read(text), style_of(text))
    assert same(read(again), read(text))
    if indent is not None and isinstance(value, dict | list) and value and (not ascii_only or "\\u" in text):
        assert again == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1, "a": 2}', "the key 'a' stands twice"),
        ("{'a': 1}", "it is no JSON"),
        ("a: 1\n", "YAML cannot be changed"),
        ('{"a": NaN}', "NaN is no JSON"),
        ("\ufeff{}", "byte order mark"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": 1} x', "it is no JSON"),
    ],
)
def test_what_is_no_json_is_refused(work: Path, text: str, expected: str) -> None:
    """With the reason, and the file stays."""
    (work / "a.json").write_text(text)
    end = call(work, "json_patch", file="a.json", operations=[{"op": "add", "path": "/b", "value": 1}])
    assert end.code == 1
    assert expected in end.log
    assert (work / "a.json").read_text() == text


def test_a_patch_of_several_operations_is_all_or_nothing(work: Path) -> None:
    """When the last one fails the file stays; numbers, order and indentation of the rest are kept."""
    text = '{\n\t"b": 1.50,\n\t"a": [1e3, "ü"]\n}'
    (work / "a.json").write_text(text)
    end = call(
        work,
        "json_patch",
        file="a.json",
        operations=[{"op": "remove", "path": "/b"}, {"op": "test", "path": "/a/1", "value": "u"}],
    )
    assert (end.code, "operation 2 (test '/a/1')" in end.log) == (1, True)
    assert (work / "a.json").read_text() == text
    end = call(work, "json_patch", file="a.json", operations=[{"op": "add", "path": "/a/-", "value": None}])
    assert end.outputs["changed"] == "true"
    assert (work / "a.json").read_text() == '{\n\t"b": 1.50,\n\t"a": [\n\t\t1e3,\n\t\t"ü",\n\t\tnull\n\t]\n}'
    same_again = [{"op": "test", "path": "/b", "value": 1.5}]
    assert call(work, "json_patch", file="a.json", operations=same_again).outputs["changed"] == "false"
