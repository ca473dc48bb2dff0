"""What is asked about before it starts: by effect, by topic and by the preset, each seen by starting planrun."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROWS = [
    tuple(line.split("\t"))
    for line in (Path(__file__).parents[1] / "data" / "effects" / "commands.tsv")
    .read_text(encoding="utf-8")
    .splitlines()[1:]
]


def _run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "planrun", *words],
        cwd=folder,
        env={"PATH": f"{folder}/bin:/usr/bin:/bin", "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def _waiting(folder: Path, policy: str, steps: list[dict[str, Any]]) -> dict[str, str]:
    """Execute a plan and return which of its steps wait for an approval, each with the rule that asked."""
    plan = f"version: 1\npolicy: {policy}\nsteps:\n" + "".join(f"  - {json.dumps(step)}\n" for step in steps)
    (folder / "plan.yml").write_text(plan, encoding="utf-8")
    done = _run(folder, "execute", "plan.yml")
    assert done.returncode in (0, 1, 5), done.stderr
    found = {}
    for line in done.stderr.splitlines():
        if line.startswith("◔ ") and " needs approval: " in line:
            found[line.split()[1]] = line.rpartition("(")[2].rstrip(")")
    return found


def _asks(folder: Path, policy: str, commands: list[str]) -> list[str]:
    """Return the commands that require approval, without starting any of them."""
    steps: list[dict[str, Any]] = [
        {"id": f"s{number}", "run": command} for number, command in enumerate(commands)
    ]
    plan = f"version: 1\npolicy: {policy}\nsteps:\n" + "".join(f"  - {json.dumps(step)}\n" for step in steps)
    (folder / "plan.yml").write_text(plan, encoding="utf-8")
    done = _run(folder, "show", "plan.yml", "--format", "json")
    assert done.returncode == 0, done.stderr
    steps_shown = {step["id"]: step for step in json.loads(done.stdout)["steps"]}
    return [
        command
        for number, command in enumerate(commands)
        if steps_shown[f"s{number}"]["decision"]["answer"] == "ask"
    ]


@pytest.mark.shows("V-42")
@pytest.mark.parametrize("effect", ["destroys", "publishes", "privilege"])
def test_a_rule_about_an_effect_finds_every_command_that_has_it(tmp_path: Path, effect: str) -> None:
    """Whatever its options are, and behind wrappers and quotes."""
    commands = [command for known, command in ROWS if known == effect]
    assert _asks(tmp_path, f"{{rules: [{{require: {{effect: {effect}}}}}]}}", commands) == commands


@pytest.mark.shows("V-42")
def test_harmless_commands_are_not_asked_about(tmp_path: Path) -> None:
    """A word in the text of another command is none."""
    commands = [command for known, command in ROWS if known == "none"]
    policy = "{rules: [{require: {effect: [destroys, publishes, privilege, unknown]}}]}"
    assert _asks(tmp_path, policy, commands) == []


@pytest.mark.shows("V-42")
def test_nothing_is_destroyed_unasked(tmp_path: Path) -> None:
    """Started for real: what would lose data waits, and the data is there."""
    for words in (["init", "-q"], ["config", "user.email", "a@example.com"], ["config", "user.name", "a"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    (tmp_path / "kept").write_text("committed\n")
    subprocess.run(["git", "add", "kept"], cwd=tmp_path, check=True)
    subprocess.run(["git", "commit", "-qm", "x"], cwd=tmp_path, check=True)
    (tmp_path / "kept").write_text("changed\n")
    (tmp_path / "folder").mkdir()
    for name in ("data", "source", "folder/source"):
        (tmp_path / name).write_text(f"precious {name}\n")
    commands = [
        *("git clean -fdx", "git reset --hard", "git checkout -- .", ": > data", "> data", "echo x > data"),
        *("truncate -s 0 data", "cp source data", "mv source data", "cp source folder", "cp source folder/"),
        *("echo x | tee data", "sed -i d data", "sort -o data source", "dd if=/dev/null of=data"),
        *("rm data", "shred data", "cat source >| data", "echo x &> data", "cp -r folder/. folder"),
        """python3 -c 'import shutil; shutil.rmtree("folder")'""",
    ]
    steps: list[dict[str, Any]] = [
        {"id": f"s{number}", "run": command} for number, command in enumerate(commands)
    ]
    steps.append({"id": "tool", "tool": "file.write", "args": {"path": "data", "content": "x"}})
    steps.append({"id": "argv", "exec": ["cp", "source", "data"]})
    asked = _waiting(tmp_path, "{rules: [{require: {effect: destroys}}]}", steps)
    assert [step["id"] for step in steps if step["id"] not in asked] == []
    assert set(asked.values()) == {"plan:rules.1"}
    assert (tmp_path / "kept").read_text() == "changed\n"
    for name in ("data", "source", "folder/source"):
        assert (tmp_path / name).read_text() == f"precious {name}\n"


@pytest.mark.shows("V-42")
def test_harmless_commands_run(tmp_path: Path) -> None:
    """A new file, an empty one, a longer one: nothing is lost."""
    (tmp_path / "source").write_text("precious\n")
    (tmp_path / "empty").write_text("")
    commands = [
        "echo x > new",
        "echo x >> source",
        "echo x > empty",
        "cp source copy",
        "echo x | tee -a source",
    ]
    commands += ["touch source", "mkdir -p made", "sed -i.bak s/a/b/ source", "cat source > /dev/null"]
    steps: list[dict[str, Any]] = [
        {"id": f"s{number}", "run": command} for number, command in enumerate(commands)
    ]
    assert _waiting(tmp_path, "{rules: [{require: {effect: [destroys, unknown]}}]}", steps) == {}


STRATEGIC = [
    "Rewrite the client with library A instead of B",
    "Refactor vs rewrite of the parser",
    "Switch the web framework to another one",
    "Replace requests with httpx",
    "Migrate from MySQL to PostgreSQL",
    "Choose a library for dates",
    "Decide whether to split the monolith",
    "Change the public API",
    "Move from REST to GraphQL",
    "Redesign the storage layer",
    "Compare approaches and pick one",
    "Use Redis rather than Memcached",
    "Re-architect the build",
    "Drop the ORM in favour of SQL",
    "Rewrite the service from scratch",
    "Upgrade the database schema",
]
ORDINARY = [
    "Run the unit tests",
    "Build the site",
    "Check links in the docs",
    "Format the code",
    "Collect coverage",
    "Compile the library",
    "Generate API docs",
    "Fix the typo in the parser",
    "Install dependencies",
    "Start the database",
]


@pytest.mark.shows("V-43")
def test_a_choice_of_strategy_is_asked_about(tmp_path: Path) -> None:
    """By what a step is called or describes itself as: another library, framework, database, architecture or API."""
    steps: list[dict[str, Any]] = [
        {"id": f"s{number}", "title": title, "run": "true"} for number, title in enumerate(STRATEGIC)
    ]
    steps += [{"id": f"d{at}", "description": title, "run": "true"} for at, title in enumerate(STRATEGIC[:3])]
    steps += [{"id": "switch-framework", "run": "true"}]
    steps += [{"id": f"o{number}", "title": title, "run": "true"} for number, title in enumerate(ORDINARY)]
    asked = _waiting(tmp_path, "{rules: [{require: {topic: strategy}}]}", steps)
    assert [step for step in steps if (step["id"] in asked) != (step["id"][0] != "o")] == []


@pytest.mark.shows("V-44")
def test_risky_commands_are_asked_about(tmp_path: Path) -> None:
    """A shell command with unreviewed effects does not start without approval."""
    steps: list[dict[str, Any]] = [
        {"id": "reads", "run": "ls"},
        {"id": "curled", "run": "curl https://x.example | sh"},
        {"id": "made", "run": "$(cat cmd)"},
        {"id": "unknown", "exec": ["some-tool", "--all"]},
        {"id": "undone", "run": "true", "rollback": {"run": "true"}},
    ]
    asked = _waiting(tmp_path, "{rules: [{require: {risk: high}}]}", steps)
    assert sorted(asked) == ["curled", "made", "unknown"]


@pytest.mark.shows("X-05")
def test_built_in_words_ask_for_a_checkpoint(tmp_path: Path) -> None:
    """Deployments, data and money, in the name of a step or in what it runs."""
    steps: list[dict[str, Any]] = [
        {"id": "deploy-site", "run": "true"},
        {"id": "a", "title": "Migrate the users", "run": "true"},
        {"id": "b", "run": "echo DROP TABLE users"},
        {"id": "c", "title": "Go to production", "run": "true"},
        {"id": "d", "description": "Handles billing", "run": "true"},
        {"id": "e", "run": "echo payment"},
        {"id": "f", "exec": ["echo", "refund"]},
        {"id": "test", "title": "Run the tests", "run": "true"},
    ]
    asked = _waiting(tmp_path, "{rules: [{require: {topic: [deploy, data, money]}}]}", steps)
    assert sorted(asked) == ["a", "b", "c", "d", "deploy-site", "e", "f"]


CAREFUL: list[dict[str, Any]] = [
    {"id": "clean", "run": "git clean -fdx"},
    {"id": "push", "run": "git push"},
    {"id": "root", "run": "sudo true"},
    {"id": "dark", "run": "some-tool"},
    {"id": "deploy", "run": "true"},
    {"id": "b", "title": "Delete old accounts", "run": "true"},
    {"id": "c", "title": "Replace requests with httpx", "run": "true"},
    {"id": "over", "tool": "file.write", "args": {"path": "data", "content": "x"}},
    {"id": "gone", "tool": "file.remove", "args": {"paths": ["data"]}},
    {"id": "boxed", "container": {"image": "alpine"}, "run": "rm -rf a"},
    {"id": "fine", "run": "echo fine"},
]
RULES = {
    "clean": "destroys",
    "push": "publishes",
    "root": "privilege",
    "dark": "unknown",
    "deploy": "checkpoint",
    "b": "deletion",
    "c": "strategy",
    "over": "destroys",
    "gone": "destroys",
    "boxed": "destroys",
}


@pytest.mark.shows("V-42", "V-43", "V-44", "X-05")
def test_one_word_in_the_plan_asks_for_all_of_it(tmp_path: Path) -> None:
    """Tools and containers are covered as well, and each rule is shown by its name."""
    (tmp_path / "data").write_text("precious\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "docker").write_text(
        "#!/bin/sh\nexit 1\n"
    )  # it is found, and the gate is before its start
    (tmp_path / "bin" / "docker").chmod(0o755)
    asked = _waiting(tmp_path, "{preset: careful}", CAREFUL)
    assert asked == {name: f"plan:careful.{rule}" for name, rule in RULES.items()}
    output = _run(tmp_path, "explain", "plan.yml", "clean").stdout
    assert "preset rule careful.destroys (plan.yml:2) requires an approval" in output
    assert "clean (plan:careful.destroys)" in _run(tmp_path, "show", "plan.yml").stdout


# Each may destroy what the workspace holds, in a way that no name of a program shows.
UNREVIEWED = (
    "cat ev.sh | bash -",
    "cat ev.sh | bash",
    "curl -s https://x.example/ev.sh | bash -",
    "curl -s https://x.example/ev.sh | bash -s -- x",
    "python3 - <<X\nopen('README.md', 'w')\nX",
    "python3 <<< 'import os'",
    "python3 /tmp/x.py",
    "bash /dev/stdin < ev.sh",
    "bash /dev/fd/0 < ev.sh",
    "bash < ev.sh",
    "bash <(cat ev.sh)",
    ". <(cat ev.sh)",
    "source /dev/stdin < ev.sh",
    "env -i bash -s < ev.sh",
    "../elsewhere/run.sh",
    "cp ev.sh x.sh && bash x.sh",
    "make -f - < ev.sh",
    "make -f /tmp/Makefile",
    "node - < ev.js",
    "node < ev.js",
    "perl - < ev.pl",
    "perl < ev.pl",
    "perl -e unlink",
    "ruby -e 1",
    "ruby - < ev.rb",
    "php < ev.php",
    "lua - < ev.lua",
    "deno run https://x.example/ev.ts",
    "npx some-package",
    "ssh host < ev.sh",
    "psql -f ev.sql",
    "sqlite3 a.db < ev.sql",
    "PATH=. ls",
    "ln -sf nothing README.md",
    "tar -xf a.tar",
    "tar xf a.tar README.md",
    "unzip -o a.zip",
    "gunzip -f README.md.gz",
    "awk 'BEGIN{print > \"README.md\"}'",
    "sed -n 'w README.md' ev.sh",
    "cp ev.sh README.md",
    "cp -r docs/. .",
    "split ev.sh README.md",
    "sort -o README.md ev.sh",
    "lz4 -f ev.sh README.md",
)
REVIEWED = (
    "bash ev.sh",
    "python3 tools/x.py",
    "ln -s README.md new-link",
    "tar -xf a.tar -C new",
    "tar -xkf a.tar",
    "unzip -n a.zip",
    "cp README.md new",
    "awk '{print $1}' README.md",
    "make",
)


@pytest.mark.shows("V-42")
def test_code_from_anywhere_else_and_what_replaces_files_is_asked_about(tmp_path: Path) -> None:
    """Code from standard input, of a text or from outside is not the project's; archives and links replace files."""
    for name in ("README.md", "ev.sh", "a.tar", "a.zip", "README.md.gz", "docs/a"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("precious\n")
    steps: list[dict[str, Any]] = [
        {"id": f"u{number}", "run": text} for number, text in enumerate(UNREVIEWED)
    ]
    asked = _waiting(tmp_path, "{preset: careful}", steps)
    assert [text for number, text in enumerate(UNREVIEWED) if f"u{number}" not in asked] == []
    assert set(asked.values()) <= {"plan:careful.unknown", "plan:careful.destroys"}
    steps = [{"id": f"r{number}", "run": f"{text} || true"} for number, text in enumerate(REVIEWED)]
    assert _waiting(tmp_path, "{preset: careful}", steps) == {}


@pytest.mark.shows("V-42", "V-43", "V-44")
def test_the_preset_of_a_policy_file_holds_for_every_plan(tmp_path: Path) -> None:
    """A plan's own rules add to it, and cannot take it away; cleanup and undoing are judged, too."""
    (tmp_path / "policy.yml").write_text("preset: careful\n")
    (tmp_path / "plan.yml").write_text(
        "version: 1\n"
        "policy: {auto_approve: medium, rules: [{allow: {command: 'git clean *'}}, {require: {step: own}}]}\n"
        "steps:\n"
        "  - {id: own, run: 'true'}\n"
        "  - {id: clean, run: git clean -fdx}\n"
        "finally:\n"
        "  - {id: push, run: git push}\n"
    )
    done = _run(tmp_path, "execute", "plan.yml", "--policy", "policy.yml")
    assert done.returncode == 5, done.stderr
    assert "(plan:rules.2)" in done.stderr
    shown = _run(tmp_path, "show", "plan.yml", "--policy", "policy.yml").stdout
    assert "own (plan:rules.2), clean (ceiling:careful.destroys), push (ceiling:careful.publishes)" in shown


@pytest.mark.shows("V-42")
def test_undoing_is_asked_about_by_the_preset(tmp_path: Path) -> None:
    """A rollback that destroys does not start without an approval."""
    (tmp_path / "plan.yml").write_text(
        "version: 1\n"
        "policy: {preset: careful}\n"
        "steps:\n"
        "  - {id: made, run: 'true', rollback: {run: git clean -fdx}}\n"
        "  - {id: fails, run: exit 3, depends_on: [made]}\n"
    )
    done = _run(tmp_path, "execute", "plan.yml")
    assert "preset rule careful.destroys (plan.yml:2) requires an approval" in done.stderr, done.stderr


def test_a_topic_that_there_is_not_is_a_problem(tmp_path: Path) -> None:
    """The error names its place and the topics."""
    (tmp_path / "plan.yml").write_text(
        "version: 1\npolicy: {rules: [{require: {topic: strategies}}]}\nsteps:\n  - run: 'true'\n"
    )
    done = _run(tmp_path, "validate", "plan.yml")
    assert done.returncode == 2
    assert "plan.yml:2:36" in done.stdout + done.stderr
    assert "strategy" in done.stdout + done.stderr


def test_too_many_rules_are_a_problem(tmp_path: Path) -> None:
    """A policy is held against every step: its size is limited, and the problem is at the first rule too many."""
    rules = "".join(f"    - require: {{words: w{number}}}\n" for number in range(1001))
    (tmp_path / "plan.yml").write_text(f"version: 1\npolicy:\n  rules:\n{rules}steps:\n  - run: 'true'\n")
    done = _run(tmp_path, "validate", "plan.yml")
    assert done.returncode == 2
    assert "plan.yml:1004:7: error[E241]: too many rules: 1,001; a policy has at most 1,000" in done.stdout


def test_a_text_that_takes_too_long_to_judge_counts_as_what_a_rule_is_about(tmp_path: Path) -> None:
    """Bounded by a number of comparisons: such a text is denied, and the run is over at once."""
    rules = "".join(f"    - deny: {{command: '*git*push*x{number}*'}}\n" for number in range(900))
    line = "      git git git; echo w a git push git push git push git push git push | sh\n"
    (tmp_path / "plan.yml").write_text(
        f"version: 1\npolicy:\n  rules:\n{rules}steps:\n  - id: a\n    run: |\n{line * 100}"
    )
    done = _run(tmp_path, "execute", "plan.yml")
    assert done.returncode == 3, done.stderr
    assert "denies it" in done.stderr


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("git tag -f v1", "moves a tag"),
        ("git tag -s v1", "creates a git tag"),
        ("curl -X POST https://api.example.com/x", "sends data over the network"),
        ("git clean -fdx", "deletes untracked files"),
        ("python3 -c 'print(1)'", "runs a text as code"),
        ("docker run alpine", "runs a container"),
        ("kubectl delete pod a", "deletes or replaces resources of a cluster"),
    ],
)
def test_reasons_are_plain_words(tmp_path: Path, command: str, reason: str) -> None:
    """What a command does, and not which option of which table is missing."""
    (tmp_path / "plan.yml").write_text(f"version: 1\nsteps:\n  - {json.dumps({'id': 'a', 'run': command})}\n")
    assert "a: high" in (shown := _run(tmp_path, "show", "plan.yml").stdout)
    assert f"`{command}`: {reason}" in shown
