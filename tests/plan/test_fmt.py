"""`planrun.fmt`: the layout of plans, over every plan of the repository and over mutated ones."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from planrun.errors import InvalidInput, InvalidPlan
from planrun.fmt import fmt, spans
from planrun.fmt.fmt import comments, formatted, is_plain
from planrun.fmt.order import PLAN_ORDER, STEP_ORDER
from planrun.fmt.spans import read
from planrun.plan.load import load_bytes
from planrun.plan.tables import OBJECTS
from planrun.plan.yaml.document import events, parse
from planrun.plan.yaml.node import MAPPING, SCALAR, Node
from tests.docs.pages import ROOT, Block, blocks

if TYPE_CHECKING:
    from collections.abc import Callable

FILES = sorted(
    path
    for folder in ("plans", "tests/plan/good", "tests/frozen/plans", "tests/cases")
    for path in (ROOT / folder).rglob("*.yml")
)
DOCS = [block for block in blocks("yaml") if block.text.startswith("version: 1") and block.mark != "wrong"]


def layout(text: str) -> str:
    """Return a plan's text as `planrun fmt` writes it, after the checks of `is_safe`."""
    return is_safe(text.encode(), "plan.yml").decode()


def meaning(node: Node) -> object:
    """Return what a value is, without places and quotes, and without the order of keys."""
    if node.kind == SCALAR:
        return node.value
    if node.kind == MAPPING:
        return {name: meaning(value) for name, value in node.value.items()}
    return [meaning(item) for item in node.value]


def hashes(data: bytes) -> Counter[str]:
    """Count the lines that are comments and nothing else; also lines of scripts that begin with `#`."""
    text = data.decode().replace("\r\n", "\n").replace("\r", "\n")
    return Counter(re.findall(r"^[ \t]*(#.*?)[ \t]*$", text, re.MULTILINE))


def is_safe(data: bytes, file: str) -> bytes:
    """Return a plan formatted; its values, comments and digest are the same, and a second time changes nothing."""
    made = formatted(data, file)
    before, after = parse(data, file)[0], parse(made, file)[0]
    assert before is not None
    assert after is not None
    assert meaning(before) == meaning(after)
    assert hashes(data) == hashes(made)
    text = data.removeprefix(b"\xef\xbb\xbf").decode().replace("\r\n", "\n").replace("\r", "\n")
    assert comments(text) == comments(made.removeprefix(b"\xef\xbb\xbf").decode().replace("\r\n", "\n"))
    try:
        digest = load_bytes(data, file, cache=False).digest
    except InvalidPlan:
        pass
    else:
        assert load_bytes(made, file, cache=False).digest == digest
    assert formatted(made, file) == made
    return made


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_plan_of_the_repository(path: Path) -> None:
    """Each plan keeps its values, its comments and its digest; a file that is not YAML is refused."""
    data = path.read_bytes()
    tree, problems = parse(data, str(path))
    if tree is None or problems:
        with pytest.raises(InvalidPlan):
            formatted(data, str(path))
    else:
        is_safe(data, str(path))


@pytest.mark.parametrize("block", DOCS, ids=lambda block: block.name)
def test_every_plan_of_the_docs(block: Block) -> None:
    """So do the examples on the pages."""
    is_safe(block.text.encode(), "plan.yml")


INSERTED = (
    "# c",
    "  # c",
    "    # c",
    "      # c",
    "",
    "- ",
    "'",
    '"',
    "|",
    "&a ",
    "*a",
    ": ",
    "  # x",
    "|+",
    "|2",
    "? ",
)


def mutated(text: str, rnd: random.Random) -> str:
    """Return a plan with some lines moved, indented, removed, or with something put in."""
    for _ in range(rnd.randint(1, 4)):
        rows = text.split("\n")
        at, way = rnd.randrange(len(rows)), rnd.random()
        if way < 0.4:
            rows.insert(at, rnd.choice(INSERTED[:5]))
        elif way < 0.5:
            rows[at] += rnd.choice(("  # x", "   ", "\n\n\n"))
        elif way < 0.75:
            depth = " " * rnd.choice((1, 2, 4))
            end = at + rnd.randint(1, 5)
            rows[at:end] = [depth + row for row in rows[at:end]]
        elif way < 0.85:
            other = rnd.randrange(len(rows))
            rows[at], rows[other] = rows[other], rows[at]
        else:
            cut = rnd.randrange(len(rows[at]) + 1)
            rows[at] = rows[at][:cut] + rnd.choice(INSERTED) + rows[at][cut:]
        text = "\n".join(rows)
    return text


@pytest.mark.parametrize("seed", range(8))
def test_mutated_plans(seed: int) -> None:
    """Forty plans of each seed that can still be read keep values, comments and digest; others are refused."""
    rnd = random.Random(seed)
    texts = [path.read_bytes().decode() for path in FILES if path.stat().st_size < 4000]
    done = 0
    for _ in range(2000):
        data = mutated(rnd.choice(texts), rnd).encode()
        tree, problems = parse(data, "plan.yml")
        if tree is None or problems:
            with pytest.raises(InvalidPlan):
                formatted(data, "plan.yml")
            continue
        is_safe(data, "plan.yml")
        done += 1
        if done == 40:
            return
    pytest.fail("too few of the mutated plans can be read")


def test_indentation_and_spaces() -> None:
    """Two columns for each level, lists below their key included; one space after `:` and `-`; none at line ends."""
    assert layout(
        "version:   1\nsteps:\n-   id: a   \n    run:   make\n    env:\n        A :  x\n        B: y\n"
        "    tags:\n    -    one\n    - two\n"
    ) == (
        "version: 1\nsteps:\n  - id: a\n    run: make\n    env:\n      A: x\n      B: y\n    tags:\n"
        "      - one\n      - two\n"
    )


def test_scripts_keep_their_text() -> None:
    """The lines of a script move as a whole; deeper lines, blank lines and spaces inside are part of its text."""
    script = "set -e\n\n  if true; then   \n      make\n  fi\n# no comment of the plan\n"
    rows = "".join(f"         {row}\n" if row else "\n" for row in script.splitlines())
    made = layout(f"version: 1\nsteps:\n   - run: |\n{rows}\n\n   - run: x\n")
    tree, _ = parse(made.encode(), "plan.yml")
    assert tree is not None
    assert tree.value["steps"].value[0].value["run"].value == script
    assert "    run: |\n" not in made
    assert "  - run: |\n      set -e\n\n        if true; then   \n" in made


@pytest.mark.parametrize("header", ["|", "|-", "|+", ">", ">-", ">+", "|2", "|2-", "|-2", ">2+"])
@pytest.mark.parametrize("tail", ["", "\n", "\n\n", "\n\n\n  - run: x\n"])
def test_every_kind_of_text_in_lines(header: str, tail: str) -> None:
    """Whatever header a text has and whatever follows it, it says the same afterwards."""
    layout(f"version: 1\nsteps:\n  - title: a\n    run: {header}\n      one\n\n        two{tail}")


def test_order_of_keys_takes_comments_along() -> None:
    """Keys of the plan and of steps come in their order, each with the comments above it and behind it."""
    assert layout(
        "steps:\n  - run: make   # builds\n    # after the others\n    depends_on: [a]\n    id: b\n"
        "    env:\n      A: x\n      # B: y\n    title: T\n  - {run: x, id: a}\n# which language\nversion: 1\n"
    ) == (
        "# which language\nversion: 1\nsteps:\n  - id: b\n    title: T\n    # after the others\n    depends_on: [a]\n"
        "    run: make   # builds\n    env:\n      A: x\n      # B: y\n\n  - {run: x, id: a}\n"
    )


def test_order_stays_where_a_comment_belongs_to_no_key() -> None:
    """A comment that stands alone, anchors, and a comment that would come behind `-` leave a step as it is."""
    for step in (
        "  - run: make\n    # alone\n\n    id: a\n",
        "  - run: &x make\n    id: a\n    title: *x\n",
        "  - run: make\n    # about the id\n    id: a\n",
    ):
        assert layout(f"version: 1\nsteps:\n{step}") == f"version: 1\nsteps:\n{step}"


def test_the_comment_at_the_head_of_a_file_stays_there() -> None:
    """The first comment is about the file: a key does not move above or below it."""
    text = "# yaml-language-server: $schema=plan.schema.json\nname: x\nversion: 1\nsteps:\n  - run: make\n"
    assert layout(text) == text


def test_the_orders_have_every_key() -> None:
    """A key that is added to the language has a place."""
    assert sorted(STEP_ORDER) == sorted(OBJECTS["Step"])
    assert sorted(PLAN_ORDER) == sorted(OBJECTS["Plan"])


def test_blank_lines() -> None:
    """One between long steps and before `finally`, none at the ends, never two; short steps stay together."""
    assert layout(
        "\n\nversion: 1\n\n\n\nname: x\nsteps:\n\n  - id: a\n    run: x\n  # about b\n  - id: b\n    run: x\n\n\n\n"
        "  - {id: c, run: x}\n  - {id: d, run: x}\n\n  - {id: e, run: x}\nfinally:\n  - {id: f, run: x}\n\n\n"
    ) == (
        "version: 1\n\nname: x\nsteps:\n  - id: a\n    run: x\n\n  # about b\n  - id: b\n    run: x\n\n"
        "  - {id: c, run: x}\n  - {id: d, run: x}\n\n  - {id: e, run: x}\n\nfinally:\n  - {id: f, run: x}\n"
    )


@pytest.mark.parametrize(
    ("written", "made"),
    [
        ('"Build the app"', "Build the app"),
        ("'make && make test'", "make && make test"),
        ('"https://example.org/x"', "https://example.org/x"),
        ('"true"', '"true"'),
        ('"No"', '"No"'),
        ('"3.10"', '"3.10"'),
        ('"1e3"', '"1e3"'),
        ('"a: b"', '"a: b"'),
        ('"a #b"', '"a #b"'),
        ('"a\\tb"', '"a\\tb"'),
        ("'it''s'", "'it''s'"),
        ('"${{ params.x }}"', '"${{ params.x }}"'),
        ('" a"', '" a"'),
        ('"a "', '"a "'),
        ('""', '""'),
        ('"*a"', '"*a"'),
        ('"- a"', '"- a"'),
        ('"a:"', '"a:"'),
    ],
)
def test_quotes(written: str, made: str) -> None:
    """Quotes go where the text begins with a letter and no reader takes it for anything else."""
    text = "version: 1\nparams: {x: {type: string, default: a}}\nsteps:\n  - run: make\n    notes: %s\n"
    assert layout(text % written) == text % made


def test_text_without_quotes_is_text_everywhere() -> None:
    """What loses its quotes is text for YAML 1.1, too, between brackets and behind a key."""
    yaml = pytest.importorskip("yaml")
    rnd = random.Random(1)
    letters = "aZé_ 019./:-,+=@()[]{}#&*!|>%;?~^$<>\\'\"yYnNoOeEtrufalsx"
    for _ in range(20_000):
        text = "".join(rnd.choice(letters) for _ in range(rnd.randint(1, 6)))
        if is_plain(text):
            assert yaml.safe_load(f"k: {text}\n") == {"k": text}
        if is_plain(text, in_brackets=True):
            assert yaml.safe_load(f"[{text}, {{k: {text}}}]") == [text, {"k": text}]


@pytest.mark.parametrize(
    "data",
    [
        b'{"version": 1,   "steps": [{"run": "make"}]}\n',
        b"version: 1\n? steps\n: - run: make\n",
        b"version: 1\nsteps: [{run: make},   {run: x}]\n",
    ],
)
def test_other_layouts_stay(data: bytes) -> None:
    """JSON, `? ` before keys, and what stands between brackets are left as they are."""
    assert is_safe(data, "plan.yml") == data


def test_line_ends_and_byte_order_mark_stay() -> None:
    """A file from Windows keeps its line ends and its mark."""
    data = b"\xef\xbb\xbfversion:  1\r\nsteps:\r\n- run: |\r\n    a\r\n    b\r\n"
    assert is_safe(data, "plan.yml") == (
        b"\xef\xbb\xbfversion: 1\r\nsteps:\r\n  - run: |\r\n      a\r\n      b\r\n"
    )


def test_a_last_line_without_end_that_counts() -> None:
    """A text that ends the file without a line end has none: a line end would change it."""
    data = b"version: 1\nsteps:\n  - run: |\n      make"
    assert is_safe(data, "plan.yml") == data


@pytest.mark.parametrize(
    ("was", "becomes", "why"),
    [
        ("make", "rm", "a value would change"),
        ("# c", "# d", "a comment would change"),
        ("  - run", " - - run", "a value would change"),
        ("version", "version: 1\nversion", "line 2"),
    ],
)
def test_a_mistake_of_a_pass_is_found(
    was: str, becomes: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change of meaning or comments is not written: the pass that makes it is left out, and the end is compared."""
    data = b"version: 1\nsteps:\n  - run: make  # c\n"
    monkeypatch.setattr(fmt, "_PASSES", (lambda text: text.replace(was, becomes),))
    assert formatted(data, "plan.yml") == data
    tree, _ = parse(data, "plan.yml")
    assert tree is not None
    found = fmt._difference(tree, data.decode(), data.decode().replace(was, becomes), "plan.yml")
    assert found.startswith(why)
    with pytest.raises(InvalidInput, match=r"plan\.yml: cannot be formatted: .*; the file was not changed"):
        fmt._check(data, data, "plan.yml", found)


def test_another_digest_is_refused() -> None:
    """Even where no value seems to change, the digest is compared."""
    data = b"version: 1\nsteps:\n  - run: make\n"
    with pytest.raises(InvalidInput, match="the digest would change"):
        fmt._check(data, data.replace(b"make", b"made"), "plan.yml", "")


@pytest.mark.parametrize(
    ("written", "reads"),
    [("version: 1\nsteps:\n  - run: make\n", 1), ("version: 1\nsteps:\n  - run: 'make'\n", 2)],
)
def test_a_text_is_read_once(written: str, reads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many passes look at a text, it is read once: reading is most of what a large plan costs."""
    texts: list[str] = []

    def counted(text: str) -> Callable[[], Any]:
        texts.append(text)
        return events(text)

    read.cache_clear()
    comments.cache_clear()
    monkeypatch.setattr(spans, "events", counted)
    formatted(written.encode(), "plan.yml")
    assert len(texts) == len(set(texts)) == reads
