"""`planrun show`: what a plan would do, as table, graph, levels, order and JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from planrun.reports.policies import NO_POLICY_IN_SHORT
from tests.cli.conftest import PLAN

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Said


@pytest.fixture
def plan(tmp_path: Path) -> str:
    """Write PLAN into the test's folder and return its name."""
    (tmp_path / "plan.yml").write_text(PLAN)
    return "plan.yml"


@pytest.mark.shows("D-08", "D-29", "N-11")
def test_the_table_has_a_row_per_step_and_a_total(say: Callable[..., Said], plan: str) -> None:
    """`show` prints `# Step Tokens Deps Risk` as a markdown table, then the total and what bounds the run."""
    said = say("show", plan)
    assert said.code == 0
    assert said.out.split("\n")[2:] == [
        "",
        "|   # | Step                   | Tokens | Deps          | Risk      |",
        "| --: | ---------------------- | -----: | ------------- | --------- |",
        "|   1 | lint: Look at the code |  ~1200 | -             | read-only |",
        "|   2 | test                   |      - | -             | read-only |",
        "|   3 | build                  |      - | -             | low       |",
        "|   4 | pack                   |   ~800 | test, build   | read-only |",
        "|   5 | ship                   |      - | pack          | read-only |",
        "|   6 | prod                   |      - | build         | read-only |",
        "|   7 | mourn                  |      - | test (failed) | read-only |",
        "|   8 | tidy (finally)         |      - | -             | read-only |",
        "",
        "Total: 8 steps, ~2000 tokens",
        "Risk: low, 0 destructive, 1 modifies files",
        f"Policy: {NO_POLICY_IN_SHORT}",
        "Schedule: dag, at most 2 at once",
        "Longest path: test > pack > ship (at most 3m30s, by its timeouts and retries)",
        "",
        "Risks:",
        '  build: low (writes), `echo size=3 >> "$PLANRUN_OUTPUT"`: writes $PLANRUN_OUTPUT',
        "",
        "Parameters:",
        '  target: string, one of "staging", "prod", default "staging"',
        "",
        "Conditions:",
        "  prod: params.target == 'prod' and steps.build.outputs.size > 2",
        "",
        "On failure:",
        "  lint: continue",
        "  test: 1 more attempt",
        "  (continue: the failure is tolerated and dependent steps run)",
        "",
    ]


@pytest.mark.shows("N-61")
def test_levels_wait_for_the_level_above(say: Callable[..., Said], plan: str) -> None:
    """`show --levels` lists every step once, below everything it waits for, and finally last."""
    assert say("show", plan, "--levels").out.split("\n") == [
        "Level 1: lint, test, build",
        "Level 2: pack, prod, mourn",
        "Level 3: ship",
        "Level 4: tidy",
        "",
    ]


@pytest.mark.shows("N-12")
def test_order_is_topological_and_otherwise_that_of_the_file(
    say: Callable[..., Said], tmp_path: Path
) -> None:
    """`show --order` moves a step only as far down as what it waits for demands."""
    (tmp_path / "plan.yml").write_text(
        "version: 1\nsteps:\n"
        "  - {id: late, run: 'true', depends_on: [b]}\n"
        "  - {id: a, run: 'true'}\n"
        "  - {id: b, run: 'true'}\n"
        "  - {id: c, run: 'true'}\n"
    )
    assert say("show", "plan.yml", "--order").out == "a\nb\nlate\nc\n"


def test_the_tree_of_text_shows_what_follows_once(say: Callable[..., Said], plan: str) -> None:
    """`show --graph text` puts each step below those it waits for, and repeats no branch."""
    assert say("show", plan, "--graph", "text").out.split("\n") == [
        "lint: Look at the code",
        "test",
        "├─ pack",
        "│  └─ ship",
        "└─ mourn (failed)",
        "build",
        "├─ pack …",
        "└─ prod",
        "",
        "finally:",
        "tidy",
        "",
    ]


def test_dot_and_mermaid_draw_every_edge(say: Callable[..., Said], plan: str) -> None:
    """`show --graph dot` and `mermaid` have a node per step and an edge per dependency, with its kind."""
    dot = say("show", plan, "--graph", "dot").out
    assert dot.startswith('digraph "mixed" {\n')
    assert [row.strip() for row in dot.split("\n") if "->" in row] == [
        '"test" -> "pack";',
        '"build" -> "pack";',
        '"pack" -> "ship";',
        '"build" -> "prod";',
        '"test" -> "mourn" [label="failed", style=dashed];',
    ]
    mermaid = say("show", plan, "--graph", "mermaid").out
    assert mermaid.startswith("flowchart LR\n")
    assert mermaid.count("-->") == 4
    assert "  s2 -. failed .-> s7\n" in mermaid


def test_labels_cannot_break_out_of_a_drawing(say: Callable[..., Said], tmp_path: Path) -> None:
    """Quotes, brackets and bars in a title stay text in the table and in both drawings."""
    title = r'a"]; x -> y | <b> \"'
    (tmp_path / "plan.yml").write_text(
        "version: 1\nsteps: [{id: a, title: 'a\"]; x -> y | <b> \\\"', run: 'true'}]\n"
    )
    assert r'[label="a\"]; x -> y | <b> \\\""];' in say("show", "plan.yml", "--graph", "dot").out
    assert '"]; x' not in say("show", "plan.yml", "--graph", "mermaid").out
    assert title.replace("|", r"\|") in say("show", "plan.yml").out


def test_a_long_chain_is_drawn_in_little_space(say: Callable[..., Said], tmp_path: Path) -> None:
    """A chain of 3,000 steps is drawn without recursion and in lines that stay narrow."""
    rows = ["version: 1", "steps:", "  - {id: s0, run: 'true'}"]
    rows += [f"  - {{id: s{n}, run: 'true', depends_on: [s{n - 1}]}}" for n in range(1, 3000)]
    (tmp_path / "plan.yml").write_text("\n".join(rows))
    drawn = say("show", "plan.yml", "--graph", "text").out.split("\n")
    assert {row.strip("│├└─ …") for row in drawn} == {""} | {f"s{n}" for n in range(3000)}
    assert max(map(len, drawn)) < 80


def test_json_holds_what_the_table_does_not(say: Callable[..., Said], plan: str) -> None:
    """`show --json` is one document with a schema version: steps, edges, order, levels and totals."""
    document = json.loads(say("show", plan, "--json").out)
    assert document["schema_version"] == 1
    assert document["plan"]["name"] == "mixed"
    assert document["order"] == [step["id"] for step in document["steps"]]
    assert document["levels"][0] == ["lint", "test", "build"]
    assert document["total"] == {"steps": 8, "estimated_tokens": 2000}
    mourn = document["steps"][6]
    assert mourn["depends_on"] == [{"step": "test", "kind": "failed"}]
    assert document["steps"][1]["action"] == "echo first line; echo Connection refused >&2; exit 75"
    assert document["longest_path"] == {"steps": ["test", "pack", "ship"], "timeouts_s": 210.011}


def test_the_longest_path_names_instances(say: Callable[..., Said], tmp_path: Path) -> None:
    """A group whose instances are known is not named beside them."""
    (tmp_path / "plan.yml").write_text(
        "version: 1\nsteps:\n  - {id: a, matrix: {n: [1, 2]}, run: echo}\n  - {id: b, depends_on: [a], run: echo}\n"
    )
    assert "Longest path: a[n=1] > b (at most" in say("show", "plan.yml").out


def test_interpolations_are_shown_as_written(say: Callable[..., Said], tmp_path: Path) -> None:
    """A script with interpolations is shown as it stands in the file."""
    (tmp_path / "plan.yml").write_text(
        "version: 1\nparams: {who: {type: string, default: you}}\nsteps:\n"
        "  - {id: a, exec: [echo, '${{ params.who }} and me', \"two\\nlines\"]}\n"
    )
    step = json.loads(say("show", "plan.yml", "--json").out)["steps"][0]
    assert step["action"] == "echo '${{ params.who }} and me' 'two\\nlines'"


def test_whose_failure_a_model_is_asked_about(say: Callable[..., Said], tmp_path: Path) -> None:
    """`show` and `explain` say it of a step that asks for it, and of one for which the plan's `llm` does."""
    steps = "  - {id: a, run: ls}\n  - {id: b, run: ls, on_failure: replan}\n"
    steps = f"steps:\n{steps}  - {{id: c, run: ls, on_failure: block}}\n"
    (tmp_path / "asks.yml").write_text(f"version: 1\nllm: {{model: model-a}}\n{steps}")
    assert (
        "On failure:\n  b: replan\n  a: a model replans after a fatal failure\n"
        "  (replan: a model writes a recovery plan; if it cannot, as block)\n"
    ) in say("show", "asks.yml").out
    outputs = {name: say("explain", "asks.yml", name).out for name in "abc"}
    assert "  replan: after a fatal failure (from llm, line 2)\n" in outputs["a"]
    assert (
        "  on_failure: replan (set here, line 5): a model writes a recovery plan; if it cannot, as block\n"
        in outputs["b"]
    )
    assert "replan" not in outputs["c"]
