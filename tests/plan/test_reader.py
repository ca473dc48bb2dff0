"""The reader: nodes with places, merges, limits on both sides, and the same from libyaml and from pure Python."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planrun.plan.schema import shape
from planrun.plan.yaml import document
from planrun.plan.yaml.document import MAPPING, SCALAR, SEQUENCE, Node, parse
from planrun.plan.yaml.file import MAX_BYTES
from proofs.hostile import SMALL as HOSTILE
from proofs.hostile import STEP, STEPS
from tests.plan.corpus import bad_plans, good_plans


def read(text: str) -> Node:
    """Return the tree of a text without problems."""
    root, problems = parse(text.encode(), "plan.yml")
    assert problems == []
    assert root is not None
    return root


def codes(text: str | bytes) -> list[str]:
    """Return the codes of all problems that reading finds."""
    return [each.code for each in parse(text if isinstance(text, bytes) else text.encode(), "plan.yml")[1]]


def plain(node: Node) -> Any:
    """Return a tree as data, all scalars as text."""
    if node.kind == MAPPING:
        return {key: plain(value) for key, value in node.value.items()}
    return [plain(each) for each in node.value] if node.kind == SEQUENCE else node.value


def places(node: Node) -> Any:
    """Return everything a tree says about itself."""
    inside: Any = node.value
    if node.kind == MAPPING:
        inside = [(key, places(node.keys[key]), places(value)) for key, value in node.value.items()]
    elif node.kind == SEQUENCE:
        inside = [places(each) for each in node.value]
    return node.kind, node.line, node.col, node.plain, inside


def test_every_node_knows_its_place() -> None:
    """Keys, values, lists and mappings stand at line and column of their first character, counted in characters."""
    root = read('é: x\nlist:\n  - "ü☃"\n  - {ä: b, c: d}\n')
    assert (root.kind, root.line, root.col) == (MAPPING, 1, 1)
    assert (root.value["é"].line, root.value["é"].col, root.value["é"].plain) == (1, 4, True)
    entries = root.value["list"]
    assert (entries.kind, entries.line, entries.col) == (SEQUENCE, 3, 3)
    quoted, flow = entries.value
    assert (quoted.kind, quoted.line, quoted.col, quoted.plain) == (SCALAR, 3, 5, False)
    assert (flow.line, flow.col) == (4, 5)
    assert [(key.value, key.line, key.col) for key in flow.keys.values()] == [("ä", 4, 6), ("c", 4, 12)]
    assert root.key("list").line == 2
    assert root.key("none") is root
    assert root.get("none") is None


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_count_once(end: str) -> None:
    """LF, CRLF and CR each end one line, also behind a byte order mark."""
    root = read("\ufeff" + end.join(["a: 1", "", "b: 2", ""]))
    assert (root.value["a"].line, root.value["b"].line, root.value["b"].col) == (1, 3, 4)


def test_scalars_stay_as_they_were_written() -> None:
    """Nothing is made a boolean, number or date: that is for the place to decide."""
    text = "a: [no, on, 0755, 1:30, 3.10, 2024-01-31, 1e3, 0x1F, ~, true, '1', .inf, =, 1_000]"
    written = [
        "no",
        "on",
        "0755",
        "1:30",
        "3.10",
        "2024-01-31",
        "1e3",
        "0x1F",
        "~",
        "true",
        "1",
        ".inf",
        "=",
        "1_000",
    ]
    assert plain(read(text)) == {"a": written}


def test_merges_follow_yaml() -> None:
    """A mapping's own keys win over merged ones, earlier sources over later ones, and merges go through merges."""
    root = read("x: &x {a: 1, b: 1}\ny: &y {b: 2, c: 2, <<: *x}\nz:\n  c: 3\n  <<: [*x, *y]\n  d: 3\n")
    assert plain(root.value["y"]) == {"b": "2", "c": "2", "a": "1"}
    assert plain(root.value["z"]) == {"c": "3", "d": "3", "a": "1", "b": "1"}
    assert root.value["z"].keys["a"].line == 1


def test_an_alias_is_the_same_node() -> None:
    """What an alias names is not copied."""
    root = read("a: &a [x]\nb: *a\n")
    assert root.value["a"] is root.value["b"]


def test_depth_limit() -> None:
    """64 levels are read, 65 are not; the plan itself is the first."""
    assert codes("a: " + "[" * 63 + "]" * 63) == []
    assert codes("a: " + "[" * 64 + "]" * 64) == ["E012"]
    assert codes("x: &x " + "[" * 33 + "]" * 33 + "\na: " + "[" * 30 + "*x" + "]" * 30) == []
    assert codes("x: &x " + "[" * 33 + "]" * 33 + "\na: " + "[" * 31 + "*x" + "]" * 31) == ["E012"]


def test_expansion_limit() -> None:
    """Aliases may add 400,000 values to what is written, and not one more."""
    anchored = "x: &x [" + "a," * 3998 + "]\n"  # 4,000 with the list itself, which counts as two
    hundred = "a: [" + "*x," * 100 + "]\n"
    assert codes(anchored + hundred) == []
    assert codes(anchored + hundred + "b: &y 1\nc: *y\n") == ["E017"]


def test_size_limit() -> None:
    """8 MiB are read, one byte more is not."""
    body = STEPS + STEP
    assert codes(body + b"#" * (MAX_BYTES - len(body))) == []
    assert codes(body + b"#" * (MAX_BYTES - len(body) + 1)) == ["E003"]


def test_entries_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of 100,000 short steps is read; what no plan has is not, whether in one list or in all."""
    many = STEPS + b"- {id: a, run: b}\n" * 100_000
    assert codes(many) == []
    assert codes(STEPS + b"- a\n" * 140_000) == ["E021"]
    monkeypatch.setattr(document, "MAX_NODES", 400_000)
    monkeypatch.setattr(document, "FREE_NODES", 400_000)
    assert codes(many) == ["E021"]


def test_problems_before_a_syntax_error_are_kept() -> None:
    """The part before the YAML error is checked, and missing keys behind it are no problems."""
    text = b"version: 1\nnam: x\nsteps:\n  - id: a\n    retires: 2\n    run: 'make\n"
    root, problems = shape.read(text, "plan.yml")
    assert root is None
    assert [(each.code, each.line) for each in problems] == [("E104", 2), ("E104", 5), ("E010", 6)]


def test_collection_of_garbage_is_left_as_it_was() -> None:
    """Reading switches the collector off for its own time only."""
    import gc

    assert gc.isenabled()
    parse(b"a: 1", "plan.yml")
    assert gc.isenabled()
    gc.disable()
    try:
        parse(b"a: 1", "plan.yml")
        assert not gc.isenabled()
    finally:
        gc.enable()


SMALL = {bad.name: bad.data for bad in bad_plans()} | {path.name: path.read_bytes() for path in good_plans()}
SMALL |= {name: hostile.data for name, hostile in HOSTILE.items() if hostile.data}


def test_pure_python_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where libyaml was left out, PyYAML's own events give the same trees and as many problems."""
    fast = {name: parse(data, name) for name, data in SMALL.items()}
    monkeypatch.setattr("planrun.plan.yaml.document.parser", lambda: None)
    for name, (root, problems) in fast.items():
        slow_root, slow_problems = parse(SMALL[name], name)
        assert len(problems) == len(slow_problems), name
        assert (root is None) == (slow_root is None) or name == "yaml-surrogate-escape", name
        if root is not None and slow_root is not None:
            assert plain(root) == plain(slow_root), name


def test_pure_python_refuses_escapes_beyond_unicode(monkeypatch: pytest.MonkeyPatch) -> None:
    """What PyYAML's own scanner lets through, or dies of, is a problem like any other."""
    monkeypatch.setattr("planrun.plan.yaml.document.parser", lambda: None)
    assert codes(rb'a: "\ud800"') == ["E010"]
    assert codes(rb'a: "\UFFFFFFFF"') == ["E010"]


COMPLETED = """
from planrun.plan.yaml.document import parse
assert parse(b"a: [1", "plan.yml")[1]
import yaml
assert yaml.safe_load("a: 1") == {"a": 1}
for text, error in (("a: [", yaml.parser.ParserError), ("a: \\x01", yaml.reader.ReaderError)):
    for loader in (yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        try:
            yaml.load(text, loader)
        except error:
            continue
        raise SystemExit(f"{text}: no {error}")
assert parse(b"a: [1", "plan.yml")[1]
"""


def test_the_library_is_whole_for_others() -> None:
    """A program that imports PyYAML after a plan was read gets all of it, with one class for each error."""
    subprocess.run([sys.executable, "-c", COMPLETED], check=True, timeout=60)


PIECES = st.sampled_from(
    ["version: 1\n", "steps:\n", "  - ", "id: a\n", "    run: x\n", "&a ", "*a", "<<: ", "[", "]", "{", "}", ", ", ": ",
     "? ", "- ", "|\n", ">\n", "'", '"', "\\", "!", "!!str ", "%YAML 1.2\n", "---\n", "...\n", "#", "\t", "\n", " ",
     "~", "é", "\u2028", "\0", "\ufeff", "${{ a }}", "0755", "\r"]
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(PIECES, max_size=30).map("".join))
def test_no_text_is_too_strange(text: str) -> None:
    """Whatever the pieces of YAML, reading and checking end in a tree or in problems with places."""
    root, problems = shape.read(text.encode(), "plan.yml")
    assert root is not None or problems
    lines = text.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
    assert all(1 <= each.line <= lines + 1 and each.col >= 1 for each in problems)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([bad.data for bad in bad_plans()]), st.integers(0, 400), st.binary(min_size=1, max_size=4)
)
def test_no_bytes_are_too_strange(data: bytes, index: int, change: bytes) -> None:
    """Bytes changed at random end in a tree or in problems."""
    root, problems = shape.read(data[:index] + change + data[index + len(change) :], "plan.yml")
    assert root is not None or problems
