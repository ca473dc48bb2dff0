"""Edits of a plan's text: what they add, and that they leave every other byte as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planrun.errors import InvalidPlan
from planrun.model.plan import Plan
from planrun.plan.edit.page import EditError, append_steps, replace_step
from planrun.plan.load import load_bytes
from tests.docs.pages import blocks

ROOT = Path(__file__).parents[2]
NEW = """\
# Look at this one first.
- id: new.1
  title: "It's new: {yes}"
  run: |
    echo 'a: {b}' "#"

    echo c
- id: new.2
  depends_on: [new.1]
  run: "true"
"""


def plan_files() -> list[tuple[str, bytes]]:
    """Return every valid plan of the project with at least one step of its own: files, test cases, blocks of docs."""
    paths = [
        *ROOT.glob("plans/*.yml"),
        *ROOT.glob("tests/cases/*/*.yml"),
        *ROOT.glob("tests/plan/good/*.yml"),
    ]
    found = [(str(path.relative_to(ROOT)), path.read_bytes()) for path in sorted(paths)]
    found += [(block.name, block.text.encode()) for block in blocks("yaml")]
    return [(name, data) for name, data in found if b"steps:" in data and is_plan(data)]


def is_plan(data: bytes) -> bool:
    """Say whether these bytes can be executed."""
    try:
        load_bytes(data, "plan.yml", cache=False)
    except InvalidPlan:
        return False
    return True


FILES = plan_files()


def ids(plan: Plan, section: str = "steps") -> list[str]:
    """Return the ids of a section in their order."""
    return [step.id for step in plan.steps if step.section == section]


def keeps(old: bytes, new: bytes) -> bool:
    """Return whether all old bytes are in the new ones, in their order."""
    rest = iter(new)
    return all(any(byte == other for other in rest) for byte in old)


def test_steps_are_added_to_every_plan_of_the_project() -> None:
    """Two steps go to the end of the list, all others are what they were, and every byte of the old text stays."""
    for name, data in FILES:
        try:
            made = append_steps(data, "plan.yml", NEW)
        except EditError as error:
            assert "not written out as a list" in str(error), name  # noqa: PT017 - the one reason that a file may have
            continue
        old, new = load_bytes(data, "plan.yml", cache=False), load_bytes(made, "plan.yml", cache=False)
        assert ids(new) == [*ids(old), "new.1", "new.2"], name
        assert ids(new, "finally") == ids(old, "finally"), name
        assert keeps(data, made), name


def test_any_step_of_every_plan_can_be_replaced() -> None:
    """Each step in turn becomes three; no other step changes, whatever was counted by its position."""
    for name, data in FILES:
        old = load_bytes(data, "plan.yml", cache=False)
        for step in old.steps:
            last = f"- id: {step.id}\n  run: echo last\n"
            try:
                made = replace_step(data, "plan.yml", step.id, [NEW, last])
            except (EditError, InvalidPlan):
                continue  # a decision, an anchor that others use, outputs that others read
            new = load_bytes(made, "plan.yml", cache=False)
            wanted = [
                each
                for other in ids(old, step.section)
                for each in (["new.1", "new.2"] if other == step.id else []) + [other]
            ]
            assert ids(new, step.section) == wanted, (name, step.id)


NEWLINES = ("\n", "\r\n", "\r")
SCALARS = (
    "echo x",
    "'it''s'",
    '"a\\tb # no"',
    "echo\n{in}  two\n{in}  lines",
    "|\n{in}  a\n\n{in}  b\n",
    "|-\n{in}  a\n{in}    # no comment\n",
    "|+\n{in}  a\n\n\n",
    ">\n{in}  a\n{in}  b\n\n",
    "|2\n{in}    a\n",
    "# here\n{in}  echo x",
)


@st.composite
def written_plans(draw: st.DrawFn) -> str:
    """Write a plan with two to four steps in some style."""
    indent = draw(st.sampled_from([0, 2, 4]))
    named = draw(st.booleans())
    lines = draw(
        st.sampled_from(["version: 1\n", "---\n# head\nversion: 1\n", "%YAML 1.2\n---\nversion: 1\n"])
    )
    lines += draw(st.sampled_from(["steps:\n", "steps: # all\n\n", "steps: &all\n", "'steps':\n# first\n"]))
    count = draw(st.integers(2, 4))
    gap = draw(st.sampled_from(["", "\n", "# between\n", "\n    # deep\n"]))
    for number in range(1, count + 1):
        lines += (gap if number > 1 else "") + draw(step_lines(number, indent, named=named))
    lines += draw(st.sampled_from(["", "\n", "  # deep\n", "# flush\n", "\n# flush\n\n"]))
    if draw(st.booleans()):
        lines += "finally:\n  - run: echo end\n"
    lines += draw(st.sampled_from(["", "name: last\n", "...\n", "...\n# after\n"]))
    if draw(st.booleans()):
        lines = lines.rstrip("\n")
    return lines.replace("\n", draw(st.sampled_from(NEWLINES)))


@st.composite
def step_lines(draw: st.DrawFn, number: int, indent: int, *, named: bool) -> str:
    """Write one step of a list."""
    margin = " " * indent
    key = f"id: s{number}" if named else f"title: number {number}"
    style = draw(st.integers(0, 4))
    if style == 0:
        return f"{margin}- {{{key}, run: 'a, b'}} # flow\n"
    if style == 1:
        return f"{margin}- {{{key},\n{margin}   run: 'echo [x]',}}\n"
    opening = draw(st.sampled_from(["- ", "-   ", "- &a{n}\n{m}  ", "- # why\n{m}  ", "-\n\n{m}  "]))
    opening = opening.replace("{n}", str(number)).replace("{m}", margin)
    column = len(opening.rsplit("\n", 1)[-1]) + (0 if "\n" in opening else indent)
    inner = " " * column
    text = draw(st.sampled_from(SCALARS)).replace("{in}", inner)
    if style == 2 and "\n" not in opening:
        return f"{margin}{opening}{key}\n{inner}run: {text}".rstrip("\n") + "\n" * (1 + text.endswith("\n\n"))
    return f"{margin}{opening}{key} # note\n{inner}run: {text}" + ("" if text.endswith("\n") else "\n")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(written_plans(), st.booleans())
def test_any_style_takes_new_steps(text: str, marked: bool) -> None:  # noqa: FBT001 - drawn
    """Whatever the style, steps can be added and replaced, and no other step changes."""
    data = (b"\xef\xbb\xbf" if marked else b"") + text.encode()
    old = load_bytes(data, "plan.yml", cache=False)
    made = append_steps(data, "plan.yml", NEW)
    assert ids(load_bytes(made, "plan.yml", cache=False)) == [*ids(old), "new.1", "new.2"]
    assert keeps(data, made) or text.rstrip() != text[:-1]
    for step in ids(old):
        again = replace_step(data, "plan.yml", step, [NEW, f"- id: {step}\n  run: last\n"])
        new = load_bytes(again, "plan.yml", cache=False)
        assert {*ids(new)} == {*ids(old), "new.1", "new.2"}
        assert again.startswith(b"\xef\xbb\xbf") == marked


FLOWS = (
    "steps: [{id: a, run: x}, {id: b, run: y}]\n",
    "steps: [{id: a, run: x}, {id: b, run: y},]\n",
    "steps: [ {id: a, run: x} , {id: b, run: y} ] # all\n",
    "steps: [\n  {id: a, run: x}, # c\n  {id: b, run: y} # d\n]\n",
    "steps: [\n  {id: a, run: x}, # c\n  {id: b, run: y}, # d\n  ]\n",
    "steps: [\n  {id: a, run: x},\n  {id: b, run: y}]\n",
    "steps: [{id: a, run: x}, {id: b, run: y} # c, d\n ]\n",
    "steps:\n  [{id: a, run: x},\n   {id: b,\n    run: y}]\nfinally: [{run: z}]\n",
)


@pytest.mark.parametrize("text", FLOWS)
def test_lists_between_brackets_take_new_steps(text: str) -> None:
    """Steps are written between braces there, comments on lines of their own, and commas where they belong."""
    data = ("version: 1\n" + text).encode()
    made = append_steps(data, "plan.yml", NEW)
    new = load_bytes(made, "plan.yml", cache=False)
    assert ids(new) == ["a", "b", "new.1", "new.2"]
    assert keeps(data, made)
    assert b"# Look at this one first." in made
    for step in ("a", "b"):
        again = replace_step(data, "plan.yml", step, [NEW, f"- id: {step}\n  run: last\n"])
        assert b"# Look at this one first." in again


def test_a_plan_in_json_stays_json() -> None:
    """What is added to a JSON file is JSON, ids that are written down included."""
    data = b'{"version": 1,\n "steps": [\n  {"id": "a", "run": "x"}\n ],\n "finally": [{"run": "z"}]}\n'
    made = append_steps(data, "plan.yml", NEW)
    found = json.loads(made)
    assert [step["id"] for step in found["steps"]] == ["a", "new.1", "new.2"]
    assert found["steps"][1]["run"] == "echo 'a: {b}' \"#\"\n\necho c\n"
    assert found["finally"] == [{"id": "2", "run": "z"}]


def test_a_step_counted_by_its_position_keeps_its_number() -> None:
    """Steps without an id that would be counted otherwise get the id that they had."""
    data = b"version: 1\nsteps:\n- run: a\n- title: T\n- run: c\n  depends_on: [2]\nfinally:\n- {run: d}\n"
    made = replace_step(data, "plan.yml", "2", [NEW, "- id: 2\n  run: b\n"])
    assert made.endswith(
        b"- id: 2\n  run: b\n- id: 3\n  run: c\n  depends_on: [2]\nfinally:\n- {id: 4, run: d}\n"
    )


def test_a_text_that_ends_the_file_gets_no_line_end() -> None:
    """A script whose file ends without a line end has none; the header says so when something follows it."""
    data = b"version: 1\nsteps:\n- id: a\n  run: |\n    echo x"
    made = append_steps(data, "plan.yml", "- id: b\n  run: y\n")
    assert made == b"version: 1\nsteps:\n- id: a\n  run: |-\n    echo x\n- id: b\n  run: y\n"


def test_comments_of_a_replaced_step_are_kept() -> None:
    """A reviewer's comment beside a step is above its replacements."""
    data = (
        b"version: 1\nsteps:\n  # the schema\n  - id: a # ask the owners\n    title: 'T # 1'\n    # twice\n"
        b"    description: |\n      # text\n  - id: b\n    run: y\n"
    )
    made = replace_step(data, "plan.yml", "a", ["- id: a\n  run: x\n"])
    assert made == (
        b"version: 1\nsteps:\n  # the schema\n  # ask the owners\n  # twice\n  - id: a\n    run: x\n"
        b"  - id: b\n    run: y\n"
    )


def test_an_edit_that_would_break_the_text_is_refused() -> None:
    """A step whose anchor is used elsewhere cannot be replaced; the error names the obstacle."""
    data = b"version: 1\nsteps:\n- id: a\n  env: &e {A: b}\n  run: x\n- id: b\n  env: *e\n  run: y\n"
    with pytest.raises(EditError, match=r"plan\.yml: .* unknown alias: no anchor of this name above"):
        replace_step(data, "plan.yml", "a", ["- id: a\n  run: z\n"])


def test_a_list_that_is_defined_elsewhere_is_refused() -> None:
    """An alias in the place of the list has nowhere to add to."""
    data = b"version: 1\nfinally: &all\n- id: a\n  run: x\nsteps: *all\n"
    with pytest.raises((EditError, InvalidPlan)):
        append_steps(data, "plan.yml", NEW)


def test_a_step_that_is_not_there_is_refused() -> None:
    """The error names the step and the file."""
    with pytest.raises(EditError, match=r'plan\.yml: no step "b"'):
        replace_step(b"version: 1\nsteps: [{id: a, run: x}]\n", "plan.yml", "b", [NEW])


@pytest.mark.parametrize("text", ["", "run: x\n", "- id: [\n", "[{id: a}]\n", "- id: a\n  id: b\n"])
def test_a_text_that_is_no_list_of_steps_is_refused(text: str) -> None:
    """What is to be added has to be a list in lines."""
    with pytest.raises(EditError, match="not a list of steps"):
        append_steps(b"version: 1\nsteps: [{id: a, run: x}]\n", "plan.yml", text)


@pytest.mark.parametrize("new", ["- id: a\n  run: x\n", "- id: b\n  depends_on: [c]\n  run: x\n"])
def test_new_steps_have_to_fit_the_plan(new: str) -> None:
    """Ids that are taken and references to nothing are problems of the plan, with their places in the new text."""
    with pytest.raises(InvalidPlan) as raised:
        append_steps(b"version: 1\nsteps:\n- id: a\n  run: x\n", "plan.yml", new)
    assert raised.value.problems[0].line >= 5
