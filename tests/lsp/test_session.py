"""A session of an editor with `planrun lsp`, over its pipes: everything that it asks while a plan is written."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.app.test_linting import ALIKE, took
from tests.app.test_linting import HEAD as HEAD_OF_LINT
from tests.cli.test_no_model_library import bare_python
from tests.conftest import LIMIT, Command
from tests.lsp.client import Editor, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PLAN = """\
version: 1
params:
  who: {type: string, default: "😀 me"}
steps:
  - id: build
    title: Build it
    run: |
      rm -rf dist
      echo "$WHO"
    env: {WHO: "${{ params.who }}"}
    outputs: {size: integer}
  - id: test
    title: "😀"
    depends_on: [build]
    run: "echo ${{ steps.build.outputs.size }}"
    condition: steps.build.status == 'completed'
  - id: ship-it
    depends_on: {test: ok, build: done}
    condition: step_build_succeeded
    run: git push
  - id: last
    depends_on: [ship-it, bild]
    condition: steps['ship-it'].status == 'completed' and params.who == "x"
    retrys: 1
"""
WHOLE = PLAN.replace(", bild", "").replace("retrys", "retries") + "    run: exit 0\n"
HEAD = "version: 1\nsteps:\n  - id: one\n    run: echo\n    outputs: {a: string}\n  - id: two\n    "


WRONG = [
    *(
        "- a\n",
        '"',
        "{",
        "{}",
        "steps: [",
        "\0",
        "version: 1\nsteps:\n  - *x\n",
        "version: 1\nextends: new.plan.yml\n",
    ),
    "version: 1\nsteps:\n  - &a {id: a, run: x}\n  - *a\n",
    "version: 1\nx-lint: {ignore: [L999]}\nsteps: [{id: a, run: x}]\n",
    (
        "version: 1\nsteps:\n  - id: [1]\n    depends_on: {a: {b: c}}\n    condition: [x]\n    run: {a: b}\n"
        "finally: x\nparams: [a]\npolicy: {rules: x}\nsecrets: [{a: b}]\ndecisions: [x]\n"
    ),
]
"""Texts that are no plans, or not even mappings."""


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """An editor that counts in UTF-16, as most do."""
    with Editor(tmp_path_factory.mktemp("edited")) as editor:
        yield editor
    assert editor.code == 0


@pytest.fixture(scope="module")
def problems(editor: Editor) -> list[dict[str, Any]]:
    """The diagnostics of the plan with two mistakes."""
    return editor.open("plan.yml", PLAN)


@pytest.fixture(scope="module")
def whole(editor: Editor) -> Editor:
    """The editor with the plan without its mistakes, which was checked."""
    editor.open("whole.plan.yml", WHOLE)
    return editor


def test_mistakes_are_shown_where_they_stand(problems: list[dict[str, Any]], editor: Editor) -> None:
    """Each has its code, a link to its description and its range, counted in UTF-16 after an emoji, too."""
    found = {each["code"]: each for each in problems}
    unknown = found["E104"]
    assert unknown["message"] == 'unknown key "retrys" in step "last"; did you mean "retries"?'
    assert (unknown["severity"], unknown["source"]) == (1, "planrun")
    assert unknown["range"] == {"start": {"line": 23, "character": 4}, "end": {"line": 23, "character": 10}}
    assert unknown["codeDescription"]["href"].endswith("errors.md#e104")
    assert Path(unknown["codeDescription"]["href"].removeprefix("file://").partition("#")[0]).is_file()
    line = '  - {id: a, title: "😀", bogus: 1, run: exit 0}\n'
    (after,) = editor.open("emoji.plan.yml", f"version: 1\nsteps:\n{line}")
    start = len(line.partition("bogus")[0].encode("utf-16-le")) // 2
    assert after["range"]["start"] == {"line": 2, "character": start}
    assert start == line.index("bogus") + 1


def test_problems_come_and_go_while_typing(editor: Editor) -> None:
    """A text that is no YAML has one problem with its place; advice of `lint` is shown when the plan is valid."""
    (broken,) = editor.open("typed.plan.yml", "version: 1\nsteps:\n  - {id: a, run: 'x\n")
    assert broken["code"] == "E010"
    editor.type("typed.plan.yml", "version: 1\nsteps:\n  - {id: a, run: 'true'}\n", 2)
    assert {each["severity"] for each in editor.diagnostics("typed.plan.yml", 2)} <= {3}
    risky = "version: 1\nparams: {unused: {type: string, default: x}}\nsteps:\n  - {id: a, run: pytest}\n"
    editor.type("typed.plan.yml", risky, 3)
    advice = editor.diagnostics("typed.plan.yml", 3)
    assert any(each["code"].startswith("L") and "unused" in each["message"] for each in advice)
    duplicate = risky + "  - {id: a, run: pytest}\n"
    editor.type("typed.plan.yml", duplicate, 4)
    (second,) = editor.diagnostics("typed.plan.yml", 4)
    (related,) = second["relatedInformation"]
    assert (related["message"], related["location"]["range"]["start"]["line"]) == ("first defined here", 3)


def test_other_files_are_left_alone(editor: Editor) -> None:
    """A YAML file that is no plan has no diagnostics, whatever is in it; a template is checked as one."""
    assert editor.open("deploy.yml", "kind: Deployment\nspec: [1\n") == []
    head = "version: 1\ntemplate: {vars: {a: {type: string, default: x}}}\nsteps:\n"
    found = editor.open(
        "plans/templates/t.yml", f"{head}  - {{id: a, run: 'echo ${{{{ vars.b }}}}', bogus: 1}}\n"
    )
    assert [each["code"] for each in found] == ["E299"]
    editor.type("plans/templates/t.yml", f"{head}  - {{id: a, run: 'echo ${{{{ vars.a }}}}', bogus: 1}}\n", 2)
    assert [each["code"] for each in editor.diagnostics("plans/templates/t.yml", 2)] == ["E104"]


def hovered(editor: Editor, name: str, mark: str, shift: int = 0) -> str:
    """Return what is shown over a text."""
    found = editor.ask("textDocument/hover", editor.at(name, mark, shift))
    return str(found["contents"]["value"]) if found else ""


def test_hover_describes_keys_commands_steps_and_expressions(whole: Editor) -> None:
    """A key has its description, a command its risk and why, a step its edges, an expression its type."""
    name = "whole.plan.yml"
    assert "How many extra attempts there are" in hovered(whole, name, "retries", 2)
    assert hovered(whole, name, "rm -rf", 3).startswith("risk: **")
    assert "git push" in hovered(whole, name, "git push", 3)
    step = hovered(whole, name, "id: build", 5)
    assert "Build it" in step
    assert "needed by: `test`, `ship-it`" in step
    assert "expression: `integer`" in hovered(whole, name, "outputs.size", 9)
    assert '"default": "😀 me"' in hovered(whole, name, "params.who", 8)
    assert "expression: `boolean`" in hovered(whole, name, "condition: steps['ship", 20)
    assert hovered(whole, name, "version: 1", 9) == ""


def offered(editor: Editor, text: str, version: int) -> list[str]:
    """Return what is offered at the mark ¦ of a text."""
    editor.type("typed.plan.yml", text.replace("¦", ""), version)
    place = editor.at("typed.plan.yml", text.partition("¦")[0][-30:] or "")
    before = text.partition("¦")[0]
    row = before.rpartition("\n")[2]
    place["position"] = {"line": before.count("\n"), "character": len(row.encode("utf-16-le")) // 2}
    return [item["label"] for item in editor.ask("textDocument/completion", place)["items"]]


COMPLETED = {
    "¦": ["title", "run", "depends_on"],
    "on_failure: ¦": ["block", "abort", "continue"],
    "idempotent: ¦": ["true", "false"],
    "depends_on: [¦]": ["one"],
    "depends_on:\n      - ¦": ["one"],
    "depends_on: {one: ¦}": ["ok", "completed", "failed", "done"],
    "retries:\n      ¦": ["max", "backoff", "on"],
    "retries: {¦}": ["max", "backoff", "on"],
    "tool: ¦": ["git.status", "file.read"],
    "run: echo ${{ ¦": ["params", "steps", "len"],
    "run: echo ${{ steps.¦": ["one"],
    "run: echo ${{ steps.one.¦": ["status", "outputs"],
    "condition: steps.one.outputs.¦": ["a"],
    "condition: steps['¦": ["one"],
}


@pytest.mark.parametrize("typed", COMPLETED)
def test_completion_knows_what_may_stand_there(editor: Editor, typed: str) -> None:
    """Keys by their place, words, ids of other steps, and in expressions what can be read; the text may be broken."""
    if "typed.plan.yml" not in editor.texts:
        editor.open("typed.plan.yml", HEAD)
    found = offered(editor, f"{HEAD}{typed}\n", 100 + list(COMPLETED).index(typed))
    assert set(COMPLETED[typed]) <= set(found)
    assert "two" not in found  # a step does not wait for itself
    if typed == "¦":
        assert "id" not in found  # it has one
        assert "steps" not in found


def test_nothing_is_offered_in_a_script(editor: Editor) -> None:
    """Lines of a script that look like keys are no keys."""
    editor.open("typed.plan.yml", HEAD)
    assert offered(editor, f"{HEAD}run: |\n      foo: bar\n      ¦\n", 200) == []


def test_definitions_and_references_of_steps_and_files(whole: Editor) -> None:
    """From any place that names a step to its id, and back to all of them; from `uses` and `extends` to the file."""
    name = "whole.plan.yml"
    for mark, shift in (("[build", 2), ("steps.build.status", 7), ("build: done", 1), ("step_build", 7)):
        (found,) = whole.ask("textDocument/definition", whole.at(name, mark, shift))
        assert found["range"]["start"] == {"line": 4, "character": 8}
    params = {**whole.at(name, "id: build", 5), "context": {"includeDeclaration": True}}
    lines = [each["range"]["start"]["line"] for each in whole.ask("textDocument/references", params)]
    assert lines == [4, 13, 14, 15, 17, 18]
    whole.open("user.plan.yml", "version: 1\nsteps:\n  - {id: a, uses: ./whole.plan.yml}\n")
    (file,) = whole.ask("textDocument/definition", whole.at("user.plan.yml", "./whole", 3))
    assert file["uri"] == whole.uri(name)


def test_rename_changes_every_place_and_the_plan_stays_the_same(whole: Editor) -> None:
    """The renamed plan is valid and has the same edges; an id that is no name gets brackets in expressions."""
    name, place = "whole.plan.yml", whole.at("whole.plan.yml", "id: build", 5)
    range_ = whole.ask("textDocument/prepareRename", place)
    assert range_["end"]["character"] - range_["start"]["character"] == len("build")
    edit = whole.ask("textDocument/rename", {**place, "newName": "make"})
    text = whole.applied(edit["changes"])[name]
    assert text == WHOLE.replace("build", "make")
    again = whole.at(name, "ship-it\n", 2)
    edit = whole.ask("textDocument/rename", {**again, "newName": "push.it"})
    assert whole.applied(edit["changes"])[name] == WHOLE.replace("ship-it", "push.it")
    parameter = whole.at(name, "who:", 1)
    edit = whole.ask("textDocument/rename", {**parameter, "newName": "whom"})
    assert whole.applied(edit["changes"])[name] == WHOLE.replace("who", "whom")
    test = whole.at(name, "id: test", 5)
    edit = whole.ask("textDocument/rename", {**test, "newName": "check-it"})
    assert "{check-it: ok, build: done}" in whole.applied(edit["changes"])[name]
    for wrong in ("no name", "", "last", "LAST", "make-it"):  # the last one cannot stand in step_…_succeeded
        with pytest.raises(Refused, match=r"name|already"):
            whole.ask("textDocument/rename", {**place, "newName": wrong})


def test_rename_reaches_the_plan_that_is_extended(whole: Editor) -> None:
    """A step of a base is renamed in both files, in expressions of both quotes."""
    base = "version: 1\nsteps:\n  - {id: lint, run: exit 0, outputs: {n: integer}}\n"
    own = (
        "version: 1\nextends: base.plan.yml\nsteps:\n  - id: more\n    depends_on: [lint]\n"
        "    run: 'echo ${{ steps.lint.outputs.n }}'\n"
    )
    whole.open("base.plan.yml", base)
    whole.open("own.plan.yml", own)
    edit = whole.ask("textDocument/rename", {**whole.at("own.plan.yml", "[lint", 1), "newName": "lint-it"})
    found = whole.applied(edit["changes"])
    assert found["base.plan.yml"] == base.replace("lint", "lint-it")
    assert found["own.plan.yml"] == own.replace("[lint]", "[lint-it]").replace(".lint.", '["lint-it"].')
    for name, text in found.items():
        (whole.folder / name).write_text(text, "utf-8")
    assert Command(whole.folder)("validate", "own.plan.yml").returncode == 0
    back = whole.ask("textDocument/rename", {**whole.at("base.plan.yml", "lint,", 1), "newName": "x"})
    assert set(back["changes"]) == {whole.uri("base.plan.yml"), whole.uri("own.plan.yml")}


def test_rename_reaches_plans_that_are_not_open(whole: Editor) -> None:
    """Closed plans of the folder that extend or use the plan change, too; others with the same names do not."""
    files = {
        "first.plan.yml": "version: 1\nparams: {who: {type: string}}\nsteps:\n  - {id: lint, run: exit 0}\n",
        "far/own.yml": "version: 1\nextends: ../first.plan.yml\nsteps:\n  - {id: a, depends_on: [lint], run: exit 0}\n",
        "far/top.yml": "version: 1\nextends: own.yml\nsteps:\n  - {id: b, depends_on: [lint, a], run: exit 0}\n",
        "using.yml": "version: 1\nsteps:\n  - {id: lint, uses: first.plan.yml, with: {who: me}}\n",
        "other.yml": "version: 1\nsteps:\n  - {id: lint, run: exit 0}\n",
        "node_modules/x.yml": "version: 1\nextends: ../first.plan.yml\nsteps: [{id: c, depends_on: [lint], run: y}]\n",
    }
    for name, text in files.items():
        (whole.folder / name).parent.mkdir(exist_ok=True)
        (whole.folder / name).write_text(text, "utf-8")
    whole.open("first.plan.yml", files["first.plan.yml"])
    place = whole.at("first.plan.yml", "lint,", 1)
    edit = whole.ask("textDocument/rename", {**place, "newName": "check"})
    reached = ("first.plan.yml", "far/own.yml", "far/top.yml")
    assert whole.applied(edit["changes"]) == {name: files[name].replace("lint", "check") for name in reached}
    asked = {**place, "context": {"includeDeclaration": True}}
    assert {each["uri"] for each in whole.ask("textDocument/references", asked)} == set(edit["changes"])
    place = whole.at("first.plan.yml", "who:", 1)
    edit = whole.ask("textDocument/rename", {**place, "newName": "whom"})
    users = ("first.plan.yml", "using.yml")
    assert whole.applied(edit["changes"]) == {name: files[name].replace("who", "whom") for name in users}


def test_a_problem_of_another_file_leads_there(whole: Editor) -> None:
    """A mistake in a plan that is used is shown at `uses`, with the place of the mistake in the other file."""
    (whole.folder / "used.yml").write_text(
        "version: 1\nsteps:\n  - {id: a, bogus: 1, run: exit 0}\n", "utf-8"
    )
    found = whole.open("using.plan.yml", "version: 1\nsteps:\n  - {id: u, uses: ./used.yml}\n")
    (problem,) = [each for each in found if each["code"] == "E104"]
    assert problem["range"]["start"]["line"] == 2
    (related,) = problem["relatedInformation"]
    assert related["location"]["uri"] == whole.uri("used.yml")
    assert related["location"]["range"]["start"] == {"line": 2, "character": 12}


def test_actions_apply_hints(problems: list[dict[str, Any]], editor: Editor) -> None:
    """What "did you mean" suggests is one click away, for a key and for the id of a step."""
    titles, texts = [], set()
    for problem in problems:
        context = {"diagnostics": [problem]}
        document = {"uri": editor.uri("plan.yml")}
        params = {"textDocument": document, "range": problem["range"], "context": context}
        for action in editor.ask("textDocument/codeAction", params):
            titles.append(action["title"])
            texts.add(editor.applied(action["edit"]["changes"])["plan.yml"])
    assert sorted(titles) == ['Replace "bild" by "build"', 'Replace "retrys" by "retries"']
    assert texts == {PLAN.replace("bild", "build"), PLAN.replace("retrys", "retries")}


def test_formatting_is_that_of_fmt(editor: Editor) -> None:
    """The edit makes what `planrun fmt` writes, and a formatted text needs none."""
    text = "version: 1\nsteps:\n- {run: exit 0,   id: a}\n"
    editor.open("plain.plan.yml", text)
    document = {"uri": editor.uri("plain.plan.yml")}
    params = {"textDocument": document, "options": {"tabSize": 2, "insertSpaces": True}}
    (edit,) = editor.ask("textDocument/formatting", params)
    assert Command(editor.folder)("fmt", "plain.plan.yml").returncode == 0
    assert edit["newText"] == (editor.folder / "plain.plan.yml").read_text("utf-8")
    editor.type("plain.plan.yml", edit["newText"], 2)
    assert editor.ask("textDocument/formatting", params) == []


def test_the_longest_path_comes_first_on_request(editor: Editor, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fix of L412, which goes by recorded durations, is offered as one edit: that of `planrun lint --fix`."""
    text = f"{HEAD_OF_LINT}{ALIKE}"
    (editor.folder / "alike.plan.yml").write_text(text, "utf-8")
    monkeypatch.chdir(editor.folder)
    took(editor.folder, {"format": 10.0, "spell": 10.0, "test": 30.0}, "alike.plan.yml")
    (problem,) = editor.open("alike.plan.yml", text)
    assert problem["code"] == "L412"
    document = {"uri": editor.uri("alike.plan.yml")}
    params = {"textDocument": document, "range": problem["range"], "context": {"diagnostics": [problem]}}
    (action,) = editor.ask("textDocument/codeAction", params)
    assert Command(editor.folder)("lint", "alike.plan.yml", "--fix").returncode == 0
    made = editor.applied(action["edit"]["changes"])["alike.plan.yml"]
    assert made == (editor.folder / "alike.plan.yml").read_text("utf-8") != text


def test_symbols_and_the_digest(whole: Editor) -> None:
    """The outline has parameters and steps with their titles; the line above names the digest of `show`."""
    document = {"textDocument": {"uri": whole.uri("whole.plan.yml")}}
    symbols = {each["name"]: each for each in whole.ask("textDocument/documentSymbol", document)}
    assert [each["name"] for each in symbols["steps"]["children"]] == ["build", "test", "ship-it", "last"]
    assert symbols["steps"]["children"][0]["detail"] == "Build it"
    assert symbols["steps"]["children"][1]["range"]["end"]["line"] == 15
    assert [each["name"] for each in symbols["params"]["children"]] == ["who"]
    (lens,) = whole.ask("textDocument/codeLens", document)
    shown = json.loads(Command(whole.folder)("show", "whole.plan.yml", "--json").stdout)
    assert lens["command"]["arguments"] == [shown["plan"]["digest"]]
    assert "4 steps" in lens["command"]["title"]


def test_broken_texts_get_empty_answers_and_no_errors(editor: Editor) -> None:
    """Every beginning of the plan, as it is typed, is answered for every request; nothing is run or written."""
    before = sorted(path.name for path in editor.folder.rglob("*"))
    editor.show("new.plan.yml", "")
    requests = (
        "hover",
        "completion",
        "definition",
        "prepareRename",
        "documentSymbol",
        "codeLens",
        "formatting",
    )
    texts = [PLAN[:end] for end in range(0, len(PLAN), 41)] + WRONG
    for number, text in enumerate(texts):
        editor.type("new.plan.yml", text, number + 2)
        row = text.rpartition("\n")[2]
        place = {"line": text.count("\n"), "character": len(row.encode("utf-16-le")) // 2}
        for request in requests:
            options = {"tabSize": 2, "insertSpaces": True}
            params = {
                "textDocument": {"uri": editor.uri("new.plan.yml")},
                "position": place,
                "options": options,
            }
            editor.ask(f"textDocument/{request}", params)
    assert sorted(path.name for path in editor.folder.rglob("*")) == before


def test_other_encodings_of_places(tmp_path: Path) -> None:
    """An editor that prefers UTF-8 gets columns in bytes."""
    with Editor(tmp_path, ("utf-8", "utf-16")) as editor:
        assert editor.capabilities["positionEncoding"] == "utf-8"
        line = '  - {id: a, title: "😀", bogus: 1, run: exit 0}\n'
        (found,) = editor.open("plan.yml", f"version: 1\nsteps:\n{line}")
        assert found["range"]["start"]["character"] == len(line.partition("bogus")[0].encode())


def test_without_the_library_it_says_what_to_install(tmp_path: Path) -> None:
    """Exit code 2, and the command that installs the extra; the same for spans without OpenTelemetry."""
    python = bare_python(tmp_path / "bare", ("pygls", "opentelemetry"))
    (tmp_path / "plan.yml").write_text("version: 1\nsteps:\n  - {id: a, run: touch ran}\n")
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:1"}
    for words, extra in (
        (["lsp"], "lsp"),
        (["run", "--otel"], "otel"),
        (["trace", "--otlp", "http://a:1"], "otel"),
    ):
        done = subprocess.run(
            [python, "-m", "planrun", *words],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert done.returncode == 2, done
        assert f"pip install 'planrun[{extra}]'" in done.stderr
    assert not (tmp_path / "ran").exists()
