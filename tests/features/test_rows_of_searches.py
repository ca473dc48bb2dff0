"""Rows about the search for plans as a user sees them: each test starts planrun and reads what it printed and wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lxml import etree

from proofs.calm import in_html
from tests.agents.worlds import finish, git
from tests.fakes.messages import FakeMessages
from tests.features.test_rows_shown_by_commands import events, rundir

if TYPE_CHECKING:
    from tests.conftest import Command

# The way that looks cheapest needs a token twice and bars the other one; see tests/search.
TRAP = """\
version: 1
search: {goal: published, start: [token, permit]SETTINGS}
steps:
  - {id: hurry, run: 'true', requires: permit, deletes: permit, provides: z, ONE}
  - {id: cheap, run: 'true', requires: [z, token], deletes: token, provides: y, ONE}
  - {id: cheap-end, run: 'true', requires: [y, token], provides: published, ONE}
  - {id: mint, run: 'true', provides: token, estimated_time: 10m, estimated_success: 1}
  - {id: long, run: 'true', requires: permit, provides: x, estimated_time: 20s, estimated_success: 1}
  - {id: long-end, run: 'true', requires: x, provides: published, estimated_time: 20s, estimated_success: 1}
"""
LONG, SHORT = ["long", "long-end"], ["hurry", "cheap", "mint", "cheap-end"]
RELEASE = """\
version: 1
search:
  goal: published
SETTINGS
  parts:
    - {id: mirror, run: MIRROR, requires: packed, provides: uploaded, estimated_time: 20s}
    - {id: courier, run: echo by courier > sent, requires: packed, provides: uploaded, estimated_time: 2h}
steps:
  - {id: pack, run: echo packed > packed, provides: packed}
  - {id: upload, run: exit 1, depends_on: [pack], requires: packed, provides: uploaded}
  - {id: announce, run: cat sent, depends_on: [upload], requires: uploaded, provides: published}
"""


def write(folder: Path, text: str, settings: str = "", name: str = "plan.yml") -> None:
    """Write a plan with settings of its search."""
    (folder / name).write_text(
        text.replace("SETTINGS", settings).replace("ONE", "estimated_time: 1s, estimated_success: 1"), "utf-8"
    )


def tree(planrun: Command, folder: Path, *options: str, code: int = 0) -> dict[str, Any]:
    """Return the search that `planrun tree --json` shows."""
    found = planrun("tree", "plan.yml", "--json", *options, cwd=folder)
    assert found.returncode == code, found.stderr
    [search] = json.loads(found.stdout)["searches"]
    assert isinstance(search, dict)
    return search


def names(search: dict[str, Any]) -> list[str]:
    """Return the actions of the plan that was found."""
    return [step["action"] for step in search["plan"]]


@pytest.mark.shows("GM-30", "GM-33", "GM-34", "GP-73")
def test_beam_is_the_default_and_its_width_decides_what_it_sees(planrun: Command, tmp_path: Path) -> None:
    """A beam of one goes the dear way that looks cheap, the default of five does not; each depth has so many nodes."""
    write(tmp_path, TRAP)
    usual = tree(planrun, tmp_path)
    assert (usual["limits"]["algorithm"], usual["limits"]["beam_width"]) == ("beam", 5)
    assert names(usual) == LONG
    write(tmp_path, TRAP, ", algorithm: beam, beam_width: 1")
    narrow = tree(planrun, tmp_path)
    assert names(narrow) == SHORT
    depths = [node["depth"] for node in narrow["nodes"] if node["expanded"]]
    assert depths == sorted(set(depths))
    assert "pruned" in [node["status"] for node in narrow["nodes"]]


@pytest.mark.shows("GM-31", "GM-35")
def test_mcts_visits_by_ucb1_and_more_iterations_find_the_better_plan(
    planrun: Command, tmp_path: Path
) -> None:
    """One iteration finds no way, a hundred find the best one; same seed, same bytes; the root counts visits."""
    write(tmp_path, TRAP, ", algorithm: mcts")
    first, again = (planrun("tree", "plan.yml", "--json", cwd=tmp_path).stdout for _ in range(2))
    other = planrun("tree", "plan.yml", "--json", "--seed", "4", cwd=tmp_path).stdout
    assert first == again != other
    [search] = json.loads(first)["searches"]
    assert names(search) == LONG
    assert (search["limits"]["mcts_iterations"], search["nodes"][0]["visits"]) == (100, 100)
    below = [node for node in search["nodes"] if node["parent"] == 0]
    assert sum(node["visits"] for node in below) == 100
    means = {node["action"]: node["value"] / node["visits"] for node in below if node["visits"]}
    best = max(means, key=lambda name: means[name])
    assert max(below, key=lambda node: node["visits"])["action"] == best
    write(tmp_path, TRAP, ", algorithm: mcts, mcts_iterations: 1")
    few = tree(planrun, tmp_path, code=1)
    assert (few["solved"], few["nodes"][0]["visits"]) == (False, 1)


@pytest.mark.shows("GM-32", "GM-41")
def test_astar_expands_by_lower_bounds_and_scores_have_named_parts(planrun: Command, tmp_path: Path) -> None:
    """F never falls from one expanded node to the next, the plan is the cheapest, and the score is the weighted sum."""
    write(tmp_path, TRAP, ", algorithm: astar")
    search = tree(planrun, tmp_path)
    assert (names(search), search["optimal"]) == (LONG, True)
    nodes = sorted([node for node in search["nodes"] if node["expanded"]], key=lambda node: node["expanded"])
    bounds = [node["g"] + node["h"] for node in nodes]
    assert bounds == sorted(bounds)
    assert len(bounds) >= 3
    assert all(node["visits"] == 0 for node in search["nodes"])
    for node in search["nodes"]:
        part = node["score"]
        total = (
            0.4 * part["success"] + 0.3 * (1 - part["cost"]) + 0.3 * part["progress"] - 0.02 * part["depth"]
        )
        assert part["total"] == pytest.approx(min(1, max(0, total)), abs=1e-4)
    text = planrun("tree", "plan.yml", "--explain", cwd=tmp_path).stdout
    assert "score = 0.4*success + 0.3*(1-cost) + 0.3*progress - 0.02*depth" in text
    assert "runner-up: long → hurry → long-end: it costs 41.0, which is 1.0 more" in text


CHAIN = "version: 1\nsearch: {goal: f11SETTINGS}\nsteps:\n" + "".join(
    f"  - {{id: s{at}, run: 'true', provides: f{at}{f', requires: f{at - 1}' if at else ''}}}\n"
    for at in range(12)
)


@pytest.mark.shows("GM-36", "GM-37", "X-13")
def test_depth_and_nodes_bound_the_tree_and_thoroughness_sets_them(planrun: Command, tmp_path: Path) -> None:
    """Twelve steps are beyond the default depth of ten and within the fifteen of `thorough`; what ends it is named."""
    write(tmp_path, CHAIN)
    assert tree(planrun, tmp_path, code=1)["truncated"] == ["max_tree_depth"]
    write(tmp_path, CHAIN, ", max_tree_depth: 12, max_tree_nodes: 5")
    assert tree(planrun, tmp_path, code=1)["truncated"] == ["max_tree_nodes"]
    for algorithm in ("beam", "astar", "mcts"):
        for most in (2, 12, 13):
            write(tmp_path, CHAIN, f", max_tree_depth: 12, max_tree_nodes: {most}, algorithm: {algorithm}")
            found = tree(planrun, tmp_path, code=1 if most <= 12 else 0)
            assert len(found["nodes"]) <= most
            assert found["solved"] or found["truncated"] == ["max_tree_nodes"]
    write(tmp_path, CHAIN, ", max_tree_depth: 12")
    assert len(names(tree(planrun, tmp_path))) == 12
    for preset, numbers in (("quick", (3, 50, 5)), ("normal", (5, 100, 10)), ("thorough", (7, 200, 15))):
        write(tmp_path, CHAIN, f", thoroughness: {preset}")
        search = tree(planrun, tmp_path, code=0 if preset == "thorough" else 1)
        limits = search["limits"]
        assert (limits["beam_width"], limits["mcts_iterations"], limits["max_tree_depth"]) == numbers
        assert search["solved"] is (preset == "thorough")


@pytest.mark.shows("GM-40")
def test_the_planning_timeout_ends_a_search_and_is_recorded(planrun: Command, tmp_path: Path) -> None:
    """A millisecond is not enough for forty stages of four ways; `tree` says what ended the search."""
    stages = [
        f"  - {{id: s{at}-{way}, run: 'true', provides: f{at}{f', requires: f{at - 1}' if at else ''}, "
        f"estimated_time: {10 + way}s}}\n"
        for at in range(40)
        for way in range(4)
    ]
    settings = "planning_timeout: 1ms, max_tree_depth: 40, max_tree_nodes: 100000, algorithm: astar"
    write(tmp_path, f"version: 1\nsearch: {{goal: f39, {settings}}}\nsteps:\n{''.join(stages)}")
    search = tree(planrun, tmp_path, code=1)
    assert search["truncated"] == ["planning_timeout"]
    assert search["limits"]["planning_timeout"] == 0.001
    # What a search has found until then is the plan.
    settings = settings.replace("1ms", "2s").replace("astar", "mcts, mcts_iterations: 100000")
    write(tmp_path, f"version: 1\nsearch: {{goal: f39, {settings}}}\nsteps:\n{''.join(stages)}")
    anytime = tree(planrun, tmp_path)
    assert (len(names(anytime)), anytime["truncated"]) == (40, ["planning_timeout"])
    write(tmp_path, TRAP)
    assert tree(planrun, tmp_path)["limits"]["planning_timeout"] == 60


KINDS = """\
version: 1
llm: {model: model-a}
steps:
  - {id: compile, run: 'true', provides: built}
  - {id: review, agent: {type: explore, prompt: Look at it.}, requires: built, provides: reviewed}
  - {id: polish, title: Make it nice, requires: reviewed, provides: polished}
  - {id: check, validate: [{files_exist: plan.yml}], requires: polished, provides: checked}
"""


@pytest.mark.shows("GM-42", "GM-43", "GM-44", "GM-45")
def test_tree_actions_are_of_four_kinds_and_become_steps(planrun: Command, tmp_path: Path) -> None:
    """A command, an agent, a step to expand and a check: each is an action of the tree, and a step of its kind."""
    write(tmp_path, KINDS)
    search = tree(planrun, tmp_path)
    assert {node["action"]: node["kind"] for node in search["nodes"] if node["action"]} == {
        "compile": "toolcall",
        "review": "delegate",
        "polish": "decompose",
        "check": "verify",
    }
    composed = planrun("generate", "checked", "--search", "-o", "new.yml", cwd=tmp_path)
    assert composed.returncode == 0, composed.stderr
    steps = json.loads(planrun("show", "new.yml", "--json", cwd=tmp_path).stdout)["steps"]
    assert {step["id"]: (step["kind"], [edge["step"] for edge in step["depends_on"]]) for step in steps} == {
        "compile": ("run", []),
        "review": ("agent", ["compile"]),
        "polish": ("abstract", ["review"]),
        "check": ("validate", ["polish"]),
    }


@pytest.mark.shows("GM-43")
def test_a_search_takes_an_agent_that_stands_under_parts_only(planrun: Command, tmp_path: Path) -> None:
    """It works with the model of the plan; without one the run does not begin."""
    part = "agent: {type: explore, prompt: Look at it.}, requires: built, provides: reviewed"
    write(
        tmp_path,
        "version: 1\nllm: {model: model-a, replan_on_failure: fatal}\n"
        f"search:\n  goal: reviewed\n  parts:\n    - {{id: delegate, {part}}}\n"
        "steps:\n  - {id: build, run: 'true', provides: built}\n"
        "  - {id: review, run: exit 77, depends_on: [build], requires: built, provides: reviewed}\n",
    )
    for words in ((), ("--only", "review")):
        refused = planrun("execute", "plan.yml", *words, cwd=tmp_path)
        assert refused.returncode == 2
        assert "the plan has agents, and no model can be asked" in refused.stderr
        assert not (tmp_path / ".planrun" / "runs").exists()
    with FakeMessages(lambda _: finish(evidence=("plan.yml:1",))) as api:
        done = planrun("execute", "plan.yml", cwd=tmp_path, env=api.env)
    assert done.returncode == 0, done.stderr
    assert _statuses(tmp_path) == {"build": "completed", "review": "failed", "delegate": "completed"}
    assert len(events(tmp_path, "agent_started")) == 1


@pytest.mark.shows("GP-77")
def test_a_failed_step_is_replaced_by_search_and_statistics_count_it(
    planrun: Command, tmp_path: Path
) -> None:
    """The cheaper part is taken and no model asked; the finished step ran once; `tree` counts trees and replans."""
    write(tmp_path, RELEASE.replace("MIRROR", "echo by mirror > sent"), "  algorithm: astar")
    done = planrun("run", "plan.yml", "--html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "sent").read_text("utf-8") == "by mirror\n"
    page = (tmp_path / "planrun-out" / "report.html").read_text("utf-8")
    assert "Found: mirror (part of the plan) → announce (step of the plan)" in page
    assert [*in_html(page.encode(), 4, 1)] == []
    picture = etree.fromstring(planrun("tree", "last", "--svg", "-", cwd=tmp_path).stdout.encode())
    drawn = [str(box.text).split()[0] for box in picture.iterfind(".//{*}g/{*}g/{*}text")]
    assert sorted(drawn) == ["announce", "mirror", "start"]
    steps = {step["id"]: step for step in _ledger(tmp_path)["steps"]}
    assert (len(steps["pack"]["attempts"]), steps["mirror"]["origin"]) == (1, "searched")
    assert (steps["announce"]["status"], steps["announce"]["origin"]) == ("completed", "searched")
    assert not events(tmp_path, "model_asked")
    stats = json.loads(planrun("tree", "last", "--stats", "--json", cwd=tmp_path).stdout)
    assert (stats["algorithm"], stats["active_trees"], stats["total_replans"]) == ("astar", 0, 1)
    [search] = json.loads(planrun("tree", "last", "--json", cwd=tmp_path).stdout)["searches"]
    assert stats["total_nodes"] == len(search["nodes"]) > 2
    assert (search["failed"], names(search)) == (["upload"], ["mirror", "announce"])
    assert planrun("verify", "last", cwd=tmp_path).returncode == 0


def _statuses(folder: Path) -> dict[str, str]:
    return {step["id"]: step["status"] for step in _ledger(folder)["steps"]}


def _ledger(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "planrun-out" / "ledger.json").read_text("utf-8"))
    return found


def test_searches_are_limited_like_other_replans_and_can_be_turned_off(
    planrun: Command, tmp_path: Path
) -> None:
    """`quick` allows one replan, the default two more; without replan_on_failure only `replan` searches."""
    text = RELEASE.replace("MIRROR", "exit 3")
    first = tmp_path / "first"  # a folder of its own: a search learns from the runs before it
    first.mkdir()
    write(first, text)  # the mirror fails as well, and the courier comes
    assert planrun("run", "plan.yml", cwd=first).returncode == 0
    assert (first / "sent").read_text("utf-8") == "by courier\n"
    assert (len(events(first, "planning_started")), _statuses(first)["courier"]) == (2, "completed")
    searches = json.loads(planrun("tree", "last", "--json", cwd=first).stdout)["searches"]
    assert [search["failed"] for search in searches] == [["upload"], ["mirror"]]
    write(tmp_path, text, "  thoroughness: quick")
    assert planrun("run", "plan.yml", cwd=tmp_path).returncode == 1
    assert len(events(tmp_path, "planning_started")) == 1
    write(tmp_path, text.replace("exit 3", "echo > sent"), "  replan_on_failure: false")
    assert planrun("run", "plan.yml", cwd=tmp_path).returncode == 1
    assert not events(tmp_path, "planning_started")
    assert planrun("replan", "last", "--search", "--algorithm", "mcts", cwd=tmp_path).returncode == 0
    assert [event["model"] for event in events(tmp_path, "planning_started")] == ["search: mcts"]


def test_a_part_that_a_policy_denies_is_left_out_and_another_way_is_taken(
    planrun: Command, tmp_path: Path
) -> None:
    """The mirror is cheaper and denied; the courier comes instead, exactly as the reviewer wrote it."""
    text = RELEASE.replace("MIRROR", "echo by mirror > sent")
    write(tmp_path, text + "policy: {rules: [{deny: {step: mirror}}]}\n", "  algorithm: astar")
    assert planrun("run", "plan.yml", cwd=tmp_path).returncode == 0
    assert (tmp_path / "sent").read_text("utf-8") == "by courier\n"
    assert "echo by courier > sent" in (rundir(tmp_path) / "plan.v2.yml").read_text("utf-8")


def test_without_another_way_the_failure_counts_and_says_why(planrun: Command, tmp_path: Path) -> None:
    """No part provides what the failed step was for: the search says so, and the run fails as without it."""
    write(tmp_path, "version: 1\nsearch: {goal: b}\nsteps: [{id: a, run: exit 7, provides: b}]\n")
    done = planrun("run", "plan.yml", cwd=tmp_path)
    assert done.returncode == 1
    assert "no step or part that is left provides b" in done.stderr
    bad = planrun("generate", "publishd", "--search", "-o", "new.yml", cwd=tmp_path)
    assert bad.returncode == 2
    assert 'provides the fact "publishd"' in bad.stderr


SPLIT = """\
version: 1
search:
  parts:
    - {id: pack, run: echo pack > pack, requires: built, provides: packed}
    - {id: sign, run: echo sign > sign, requires: built, provides: signed}
    - {id: push, run: cat pack sign, requires: [packed, signed], provides: published}
    - {id: other, run: exit 9, requires: never, provides: published}
steps:
  - {id: build, run: 'true', provides: built}
  - {id: release, title: Release it, depends_on: [build], provides: published}
  - {id: tell, run: 'true', depends_on: [release]}
"""


@pytest.mark.shows("GM-44")
def test_an_abstract_step_is_split_into_parts_by_search(planrun: Command, tmp_path: Path) -> None:
    """What it provides is the goal: parts that provide it together become its pieces, in their order, and run."""
    write(tmp_path, SPLIT)
    done = planrun("expand", "plan.yml", "--search", "-o", "new.yml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    steps = json.loads(planrun("show", "new.yml", "--json", cwd=tmp_path).stdout)["steps"]
    assert {step["id"]: [edge["step"] for edge in step["depends_on"]] for step in steps} == {
        "build": [],
        "release-pack": ["build"],
        "release-sign": ["build"],
        "release": ["release-pack", "release-sign"],
        "tell": ["release"],
    }
    assert [step["provides"] for step in steps] == [["built"], [], [], ["published"], []]
    assert planrun("run", "new.yml", cwd=tmp_path).returncode == 0
    unknown = SPLIT.replace("[build], provides: published", "[build], provides: sold")
    write(tmp_path, unknown, name="no.yml")
    failed = planrun("expand", "no.yml", "--search", cwd=tmp_path)
    assert failed.returncode == 1
    assert "no way to sold found" in failed.stderr


def test_templates_tools_and_commands_of_the_project_are_parts_too(planrun: Command, tmp_path: Path) -> None:
    """A wheel comes from the template, the tests from the project's own file, a clean tree from the catalogue."""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "1"\n[tool.pytest]\n')
    (tmp_path / ".gitignore").write_text(".planrun\nnew.yml\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "begin")
    made = planrun("generate", "tested, built, clean", "--search", "-o", "new.yml", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    text = (tmp_path / "new.yml").read_text("utf-8")
    assert "  # from pyproject.toml\n  - id: test\n    run: pytest -q\n" in text
    assert "  # from the template python-package\n  - id: python-package-build\n" in text
    assert "  # from the catalogue of tools, git.status\n  - id: clean\n" in text
    steps = json.loads(planrun("show", "new.yml", "--json", cwd=tmp_path).stdout)["steps"]
    edges = {step["id"]: [edge["step"] for edge in step["depends_on"]] for step in steps}
    assert edges["python-package-build"] == ["python-package-tools"]
    done = planrun("run", "new.yml", "--only", "clean", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
