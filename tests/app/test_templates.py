"""Templates: those that are shipped, a project's own, what their variables may hold, and what is made of them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from planrun.errors import InvalidInput, InvalidPlan
from planrun.plan.load import check_bytes, load_bytes
from planrun.plan.templates import known, opened, read_template
from planrun.templates.cli import find, render, values_of
from tests.conftest import LIMIT

if TYPE_CHECKING:
    from pathlib import Path

SAMPLES = {
    "python-package": ["package=demo"],
    "node-package": [],
    "express-api-endpoint": ["resource=orders", "extension=ts"],
    "react-component": ["component=Card"],
    "jwt-authentication": ["lifetime=30", "library=jose"],
}
HEAD = "version: 1\ntemplate: {vars: {v: {type: string, required: true}}}\n"
HOSTILE = [
    "$(touch hacked)", "`id`", "a; id", "a && b", "a\nb", "'", '"', "\\", "a b", "#x", "*", "~", "!!python", "{a: b}",
    "[a]", "- a", "a: b", "a #b", "|", ">", "&a", "%", "null", "true", "12", "0x1f", "1e3", "", " ", "é", "yes",
    "a'b\"c", "$", "{{ x }}", "}}", "$HOME", "key:", "? a", "...", "---", "<<",
]  # fmt: skip

SAFE = re.compile("[A-Za-z0-9._/@:+=,-]*")  # what every shell takes as it is


def planrun(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line in a folder."""
    command = [sys.executable, "-m", "planrun", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=LIMIT)


def made(text: str, *given: str) -> str:
    """Return the plan that a template becomes."""
    template = read_template(text.encode(), "t.yml")
    return render(template, "t", values_of(template, given)).text


def wrong(text: str, *given: str) -> str:
    """Return the error of a template, or of values, without a valid plan."""
    with pytest.raises((InvalidPlan, InvalidInput)) as caught:
        made(text, *given)
    if isinstance(caught.value, InvalidPlan):
        return "\n".join(f"{each.line}:{each.col}: {each.code} {each.text}" for each in caught.value.problems)
    return str(caught.value)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_shipped_template_becomes_a_valid_plan(name: str) -> None:
    """Each template that comes with planrun gives a plan without problems, with what it needs as the first step."""
    found = find(name)
    template = opened(found)
    assert template.description
    assert all("description" in fragment for fragment in template.vars.values())
    plan = render(template, name, values_of(template, SAMPLES[name]))
    assert {each.code for each in plan.warnings} <= {"W305"}  # what a model or a person is to write
    assert "vars." not in plan.text
    assert "template:" not in plan.text
    loaded = load_bytes(plan.text.encode(), f"{name}.yml", cache=False)
    assert loaded.steps[0].id == "template-requirements"
    roots = [step.id for step in loaded.steps if not step.edges]
    assert roots == ["template-requirements"]


def test_all_that_are_shipped_are_tried() -> None:
    """The templates that come with planrun are those of the samples above."""
    assert {name for name, found in known().items() if found.source == "shipped"} == set(SAMPLES)


def test_a_variable_keeps_its_type_and_comments_stay() -> None:
    """A text that is one variable becomes its value, with its type; inside a text it is text; comments stay."""
    text = """\
# yaml-language-server: $schema=x.json
# What it is for.
version: 1
template:
  vars:
    n: {type: integer, default: 3}
    words: {type: array, items: {type: string}, default: [a, "1"]}
    flag: {type: boolean, default: true}
# the steps
steps:
  - id: one # the first
    retries: ${{ vars.n }}
    timeout: ${{ vars.n }}m
    condition: ${{ vars.flag }}
    exec: [echo, "${{ vars.n }}", '$${{ vars.n }}']
    tags: "${{ vars.words }}"
"""
    assert (
        made(text).partition("flag=true\n")[2]
        == """\
# What it is for.
version: 1
# the steps
steps:
  - id: one # the first
    retries: 3
    timeout: "3m"
    condition: true
    exec: [echo, 3, '$${{ vars.n }}']
    tags: [a, "1"]
"""
    )


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("place", ["whole", "double", "single", "plain", "argument", "mapping"])
def test_a_value_is_data_wherever_it_stands(value: str, place: str) -> None:
    """Whatever a value holds, the plan says exactly that text there, or no plan is made of it."""
    places = {
        "whole": "a: ${{ vars.v }}",
        "double": 'a: "<${{ vars.v }}>"',
        "single": "a: '<${{ vars.v }}>'",
        "plain": "a: <${{ vars.v }}>",
        "argument": 'a: "${{ vars.v }}"',
        "mapping": '{a: "${{ vars.v }}"}',
    }
    inside = places[place] if place == "mapping" else f"\n      {places[place]}"
    text = f"{HEAD}steps:\n  - id: x\n    run: env\n    env: {inside}\n"
    try:
        found = made(text, f"v={value}")
    except InvalidPlan as error:
        found = " ".join(each.code for each in error.problems)
    if found == "E299":
        return
    plan = load_bytes(found.encode(), "p.yml", cache=False)
    wanted = f"<{value}>" if place in ("double", "single", "plain") else value
    assert dict(plan.steps[0].env) == {"a": wanted}


@pytest.mark.parametrize("value", [value for value in HOSTILE if not SAFE.fullmatch(value)])
def test_a_script_takes_no_value_that_a_shell_would_read(value: str) -> None:
    """In a script a value with a sign of the shell is refused, at the line of the template."""
    error = wrong(f"{HEAD}steps:\n  - id: x\n    run: echo ${{{{ vars.v }}}}\n", f"v={value}")
    assert error.startswith("5:10: E299 ")


@pytest.mark.parametrize("value", HOSTILE)
def test_quoted_for_the_shell_a_value_is_one_word(value: str, tmp_path: Path) -> None:
    """With `| sh` the script gives the program exactly the text, whatever it holds."""
    text = f"{HEAD}steps:\n  - id: x\n    run: |\n      printf %s ${{{{ vars.v | sh }}}} > out\n"
    if "\n" in value:  # in a block a line of it would have to be indented
        assert "E299" in wrong(text, f"v={value}")
        return
    (tmp_path / "p.yml").write_text(made(text, f"v={value}"))
    assert planrun("execute", "p.yml", cwd=tmp_path).returncode == 0
    assert (tmp_path / "out").read_text() == value


def test_quotes_around_a_quoted_value_are_refused() -> None:
    """`| sh` inside of quotes protects nothing, and is an error."""
    message = wrong(f'{HEAD}steps:\n  - id: x\n    run: echo "${{{{ vars.v | sh }}}}"\n', "v=a")
    assert message.startswith("5:10: E299 `| sh` does not protect")


def test_no_value_becomes_an_expression() -> None:
    """Neither a value nor two of them together make an expression, or take one away."""
    assert "contains `${{`" in wrong(f"{HEAD}steps: [{{id: x, run: 'true'}}]\n", "v=${{ secrets.A }}")
    two = "version: 1\ntemplate: {vars: {a: string, b: string}}\nsteps:\n  - id: x\n    run: env\n    env: {E: '%s'}\n"
    assert "would form an expression" in wrong(two % "${{ vars.a }}${{ vars.b }}", "a=$", "b={{ run.ci }}")
    assert "would form an expression" in wrong(two % "${{ vars.a }}${{ run.ci }}${{ vars.b }}", "a=$", "b=x")
    condition = f"{HEAD}steps:\n  - id: x\n    condition: %s\n    run: 'true'\n"
    assert "E299 the value of the variable" in wrong(condition % "${{ vars.v }}", "v=run.ci")
    assert "E299 a variable cannot be part" in wrong(condition % "run.ci == ${{ vars.v }}", "v=true")


def test_all_problems_of_values_are_reported() -> None:
    """Unknown, missing, doubled and unfitting variables are reported together, with the nearest name."""
    text = "version: 1\ntemplate: {vars: {count: {type: integer, required: true}, n: {type: integer}}}\nsteps: []\n"
    error = wrong(text, "coutn=1", "n=x", "n=1", "z")
    assert 'no variable "coutn" in the template; did you mean "count"?' in error
    assert 'the variable "n" is given twice' in error
    assert 'the variable "count" is required' in error
    assert 'not "z"' in error


def test_a_mistake_in_a_template_stands_at_its_own_line() -> None:
    """Problems of the resulting plan are reported at their line in the template."""
    text = f"{HEAD}steps:\n  - id: x\n    depends_on: [${{{{ vars.v }}}}]\n    run: 'true'\n".replace(
        "[$", '["$'
    ).replace("}]", '}"]')
    assert wrong(text, "v=missing").startswith("5:18: E202 ")
    assert '5:10: E299 unknown variable "w" of the template' in wrong(
        f"{HEAD}steps:\n  - id: x\n    run: ${{{{ vars.w }}}}\n", "v=a"
    )


@pytest.mark.parametrize(
    "text",
    [
        '{"version": 1, "template": {}, "steps": [{"id": "x", "run": "true"}]}',
        f"{HEAD}steps:\n  - id: x\n    run: env\n    env: {{A: &a '${{{{ vars.v }}}}', B: *a}}\n",
        "version: 1\ntemplate: {\n}\nsteps:\n  - {id: x, run: 'true'}\n",
    ],
)
def test_a_form_that_text_cannot_be_put_into_is_refused(text: str) -> None:
    """Where the text of a template cannot be changed so that it says what is meant, no plan is made of it."""
    given = ["v=it's"] if "vars: {v:" in text else []
    assert "E299 this place of the template cannot take a value" in wrong(text, *given)


@pytest.mark.parametrize(("key", "code"), [("extends: node-package", "E290"), ("vars: {a: b}", "E104")])
def test_a_plan_that_extends_a_template_is_refused_with_advice(key: str, code: str) -> None:
    """A plan that names a template as a file, or gives variables, is refused with what to do instead."""
    (problem,) = check_bytes(f"version: 1\n{key}\nsteps: [{{run: 'true'}}]\n".encode(), "p.yml").problems
    assert problem.code == code
    assert problem.hint


def test_a_template_is_no_plan() -> None:
    """A template that is checked as a plan is refused with the way to make one of it."""
    (problem,) = check_bytes(f"{HEAD}steps: []\n".encode(), "t.yml").problems
    assert (problem.code, problem.line, problem.col) == ("E297", 2, 1)
    assert "planrun templates render t.yml" in problem.text


@pytest.mark.shows("D-53")
def test_a_projects_own_template_comes_first_and_is_listed(tmp_path: Path) -> None:
    """A file in plans/templates stands in for a shipped template of its name; the list says so."""
    folder = tmp_path / "plans" / "templates"
    folder.mkdir(parents=True)
    (folder / "node-package.yml").write_text(
        "version: 1\ntemplate: {description: Ours.}\nsteps:\n  - {id: ours, run: 'true'}\n"
    )
    (folder / "broken.yml").write_text("version: 1\n")
    listed = planrun("templates", "--json", cwd=tmp_path)
    rows = {row["name"]: row for row in json.loads(listed.stdout)["templates"]}
    assert rows["node-package"]["hides"] is True
    assert rows["broken"]["problem"].startswith("plans/templates/broken.yml:1:1: not a template")
    assert "replaces the shipped template" in planrun("templates", cwd=tmp_path).stdout
    done = planrun("templates", "render", "node-package", "-o", "plan.yml", cwd=tmp_path)
    assert done.stdout == "wrote plan.yml: 1 step; next: planrun show plan.yml\n"
    assert planrun("execute", "plan.yml", cwd=tmp_path).returncode == 0
    again = planrun("templates", "render", "node-package", "-o", "plan.yml", cwd=tmp_path)
    assert (again.returncode, "exists already" in again.stderr) == (2, True)
    assert planrun("templates", "show", "nod-package", cwd=tmp_path).returncode == 2


@pytest.mark.parametrize("name", SAMPLES)
def test_each_step_of_a_shipped_template_provides_a_fact(name: str) -> None:
    """What a step requires is what the steps before it provide, so that a search can take it."""
    template = opened(known()[name])
    text = render(template, name, values_of(template, SAMPLES[name])).text
    plan = load_bytes(text.encode(), "plan.yml", cache=False)
    steps = {step.id: step for step in plan.steps if step.id != "template-requirements"}
    provided = {step.id: set(step.provides) for step in steps.values()}
    assert all(provided.values())
    for step in steps.values():
        before = [provided[edge.on] for edge in step.edges if edge.on in steps]
        assert set(step.requires) == set().union(*before)
