"""Goals that people have: a model answers as a good one would, and what it writes validates, previews and runs.

The commands are the real ones, as processes of their own in a fresh repository; only the model is a script.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LIMIT
from tests.fakes.messages import FakeMessages, draft, step

MODEL = "claude-haiku-4-5"
UPLOAD = '#!/bin/sh\nset -eu\n: "${PYPI_TOKEN:?}"\ncp "$@" index/\n'
DEPLOY = '#!/bin/sh\nset -eu\n: "${DEPLOY_KEY:?}"\necho "$2" > "site-$1"\n'
SERVER = """\
import http.server, sys
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), http.server.SimpleHTTPRequestHandler).serve_forever()
"""
PROBE = """\
import sys, urllib.request
urllib.request.urlopen("http://127.0.0.1:%s/%s" % (sys.argv[1], sys.argv[2]), timeout=5).read()
"""
REUSED = """\
version: 1
description: Test one package.
params: {name: {type: string, required: true}, rounds: {type: integer, default: 1}}
steps:
  - {id: run, run: "echo ${{ params.name }} ${{ params.rounds }} >> tested"}
"""

# What the plan must have, what it must ask a person for, and the files that its run must leave.
GOALS: dict[str, dict[str, Any]] = {
    "release version 1.2: test, build, ask, publish": {
        "files": {"tools/upload": UPLOAD, "index/.keep": "", "src.txt": "code"},
        "steps": [
            step("test", "grep -q code src.txt", timeout="10m"),
            step(
                "build",
                "mkdir -p dist\ntar -czf dist/shop-1.2.tgz src.txt",
                depends_on=["test"],
                produces=["dist/*.tgz"],
            ),
            step("confirm", ask="Publish version 1.2 to the index?", depends_on=["build"]),
            step(
                "publish",
                "tools/upload dist/shop-1.2.tgz",
                depends_on=["confirm"],
                secrets=["PYPI_TOKEN"],
                retries=2,
                review="sends dist/shop-1.2.tgz to the index",
            ),
        ],
        "keys": ["produces: [", "retries: 2", 'timeout: "10m"', "secrets: [PYPI_TOKEN]", "ask: {"],
        "secrets": {"PYPI_TOKEN": "publish"},
        "left": ["index/shop-1.2.tgz"],
    },
    "test on three versions of Python, with coverage of all": {
        "steps": [
            step(
                "test",
                "mkdir -p cov\necho covered > cov/${{ matrix.python }}.txt",
                matrix=["python=3.11,3.12,3.13"],
                produces=["cov/${{ matrix.python }}.txt"],
                timeout="20m",
            ),
            step("combine", "cat cov/*.txt > coverage.txt", depends_on=["test"], produces=["coverage.txt"]),
        ],
        "keys": ['python: ["3.11", "3.12", "3.13"]'],
        "left": ["cov/3.11.txt", "cov/3.13.txt", "coverage.txt"],
    },
    "a nightly backup of the data, and a check that it can be restored": {
        "files": {"data/a.txt": "rows", "data/b.txt": "more"},
        "steps": [
            step("backup", "mkdir -p backups\ntar -czf backups/data.tgz data", produces=["backups/data.tgz"]),
            step(
                "restore",
                "mkdir -p restored\ntar -xzf backups/data.tgz -C restored\n"
                "diff -r data restored/data\ntouch restore-ok",
                depends_on=["backup"],
                timeout="30m",
            ),
            step("tidy", "rm -rf restored", cleanup=True),
        ],
        "keys": ["\nfinally:\n", 'timeout: "30m"'],
        "left": ["backups/data.tgz", "restore-ok"],
        "gone": ["restored"],
    },
    "deploy to staging, smoke test, approval, production": {
        "files": {"tools/deploy": DEPLOY},
        "steps": [
            step("staging", "tools/deploy staging 7", secrets=["DEPLOY_KEY"]),
            step("smoke", "grep -q 7 site-staging", depends_on=["staging"], retries=3),
            step("approve", ask="Staging works. Deploy to production?", depends_on=["smoke"]),
            step("production", "tools/deploy production 7", depends_on=["approve"], secrets=["DEPLOY_KEY"]),
        ],
        "keys": ["secrets: [DEPLOY_KEY]", "retries: 3"],
        "secrets": {"DEPLOY_KEY": "staging"},
        "left": ["site-staging", "site-production"],
    },
    "run the integration tests against a server": {
        "files": {"server.py": SERVER, "probe.py": PROBE, "page.html": "hello"},
        "steps": [
            step(
                "server",
                "python3 server.py 18931",
                ready="python3 probe.py 18931 page.html",
            ),
            step("test", "python3 probe.py 18931 page.html\ntouch passed", depends_on=["server"]),
        ],
        "keys": ["service: true", "ready:"],
        "left": ["passed"],
    },
    "lint and test every package of the monorepo, then the whole": {
        "files": {"packages/core/x": "", "packages/web/x": ""},
        "steps": [
            step(
                "check",
                "test -f packages/${{ matrix.package }}/x\ntouch ${{ matrix.task }}-${{ matrix.package }}",
                matrix=["package=core,web", "task=lint,test"],
            ),
            step("whole", 'test "$(ls lint-* test-* | wc -l)" -eq 4', depends_on=["check"]),
        ],
        "keys": ["package: [core, web]", "task: [lint, test]"],
        "left": ["lint-core", "test-web"],
    },
    "download the vulnerability list, which often fails, and audit": {
        "steps": [
            step(
                "fetch", "test -f seen || { touch seen; exit 7; }\necho none > list", retries=2, timeout="2m"
            ),
            step(
                "audit", "grep -q none list\ncp list audit.txt", depends_on=["fetch"], produces=["audit.txt"]
            ),
        ],
        "keys": ["retries: 2", 'timeout: "2m"'],
        "left": ["audit.txt"],
    },
    "test both packages by the plan that is there": {
        "files": {"plans/one.yml": REUSED},
        "steps": [
            step("core", uses="./plans/one.yml", params=["name=core", "rounds=3"]),
            step("web", uses="./plans/one.yml", params=["name=web"], depends_on=["core"]),
            step("check", "grep -q 'core 3' tested\ngrep -q 'web 1' tested", depends_on=["web"]),
        ],
        "keys": ["uses: ./plans/one.yml", "with: {name: core, rounds: 3}"],
        "left": ["tested"],
    },
    "write release notes if there is something new": {
        "files": {"CHANGES": "Fixed: the cart\n"},
        "steps": [
            step("look", 'echo "count=$(wc -l < CHANGES)" >> "$PLANRUN_OUTPUT"', outputs=["count"]),
            step(
                "notes",
                "cp CHANGES notes.md",
                depends_on=["look"],
                condition="steps.look.outputs.count != '0'",
                produces=["notes.md"],
            ),
        ],
        "keys": ["outputs: {count: string}", "condition:"],
        "left": ["notes.md"],
    },
    "build the site, look at it in a server, and keep it": {
        "files": {"server.py": SERVER, "probe.py": PROBE},
        "steps": [
            step("build", "mkdir -p site\necho '<p>hi</p>' > site/index.html", produces=["site/**"]),
            step(
                "serve",
                "python3 server.py 18932",
                ready="python3 probe.py 18932 site/index.html",
                depends_on=["build"],
            ),
            step("links", "python3 probe.py 18932 site/index.html", depends_on=["serve"]),
            step("pack", "tar -czf site.tgz site", depends_on=["links"], produces=["site.tgz"]),
        ],
        "keys": ["service: true", "produces: [site.tgz]"],
        "left": ["site.tgz"],
    },
    "build an image for two platforms and push it": {
        "files": {"push": '#!/bin/sh\nset -eu\n: "${REGISTRY_TOKEN:?}"\ntouch "pushed-$1"\n'},
        "steps": [
            step(
                "build",
                "echo ${{ matrix.platform }} > image-${{ matrix.platform }}",
                matrix=["platform=amd64,arm64"],
            ),
            step(
                "push",
                "./push ${{ matrix.platform }}",
                matrix=["platform=amd64,arm64"],
                depends_on=["build"],
                secrets=["REGISTRY_TOKEN"],
                timeout="15m",
            ),
        ],
        "keys": ["platform: [amd64, arm64]", "secrets: [REGISTRY_TOKEN]"],
        "secrets": {"REGISTRY_TOKEN": "push"},
        "left": ["pushed-amd64", "pushed-arm64"],
    },
    "merge the regional exports, and clean up whatever happens": {
        "files": {"in/eu": "1\n", "in/us": "2\n"},
        "steps": [
            step(
                "sort",
                "mkdir -p tmp\nsort in/${{ matrix.region }} > tmp/${{ matrix.region }}",
                matrix=["region=eu,us"],
            ),
            step("merge", "cat tmp/eu tmp/us > merged.txt", depends_on=["sort"], produces=["merged.txt"]),
            step("overwrite", ask="Replace the published file?", depends_on=["merge"]),
            step("publish", "cp merged.txt published.txt", depends_on=["overwrite"]),
            step("clean", "rm -rf tmp", cleanup=True),
            step("note", "echo done > note.txt", cleanup=True, depends_on=["clean"]),
        ],
        "keys": ["\nfinally:\n", "ask: {"],
        "left": ["published.txt", "note.txt"],
        "gone": ["tmp"],
    },
}


def planrun(folder: Path, env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """Run the real command in a folder."""
    return subprocess.run(
        [sys.executable, "-m", "planrun", *words],
        cwd=folder,
        env=env,
        text=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=LIMIT,
        check=False,
    )


@pytest.fixture
def env() -> dict[str, str]:
    """The environment, without settings of planrun or a model."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC_", "PLANRUN_"))
    }


@pytest.mark.parametrize("goal", GOALS)
def test_a_goal_becomes_a_plan_that_validates_previews_and_runs(
    tmp_path: Path, env: dict[str, str], goal: str
) -> None:
    """What asks for something waits until a person grants it, and the preview says so."""
    wanted = GOALS[goal]
    for name, text in wanted.get("files", {}).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    with FakeMessages([draft(wanted["steps"])]) as api:
        made = planrun(tmp_path, {**env, **api.env, "PLANRUN_LLM_MODEL": MODEL}, "generate", goal)
        (asked,) = api.journal.entries
        assert api.journal.verdicts() == []
    assert made.returncode == 0, made.stderr
    text = (tmp_path / "plan.yml").read_text()
    for key in wanted["keys"]:
        assert key in text
    assert planrun(tmp_path, env, "validate", "plan.yml").returncode == 0
    shown = planrun(tmp_path, env, "show", "plan.yml")
    assert shown.returncode == 0, shown.stderr
    for secret, who in wanted.get("secrets", {}).items():
        assert f"{who} asks for {secret}: an approval grants it" in made.stdout
        assert secret in shown.stdout
        env[secret] = f"the-value-of-{secret}"
    asks = bool(wanted.get("secrets")) or "ask: {" in wanted["keys"]
    ran = planrun(tmp_path, env, "execute", "plan.yml")
    assert (ran.returncode == 5) is asks, ran.stderr
    rounds = 0
    while ran.returncode == 5 and rounds < 5:
        assert not any((tmp_path / name).exists() for name in wanted["left"][-1:])
        waiting = re.findall(r"^  (\S+) needs (?:approval|an answer)", ran.stdout + ran.stderr, re.MULTILINE)
        ran = planrun(tmp_path, env, "approve", "last", *waiting, "--by", "somebody", "--resume")
        rounds += 1
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for name in wanted["left"]:
        assert (tmp_path / name).exists(), name
    assert not any((tmp_path / name).exists() for name in wanted.get("gone", ()))
    if "uses" in text:
        assert "./plans/one.yml: Test one package.; parameters: name: string, rounds: integer" in json.dumps(
            asked.body
        )


PLAN = """\
version: 1
secrets: [DEPLOY_KEY]
policy: {auto_approve: high, llm_auto_approve: high}
llm: {model: claude-haiku-4-5, replan_on_failure: any}
steps:
  - {id: build, run: exit 3, outputs: {sha: string}}
"""
READER = "  - {id: ship, depends_on: [build], run: 'echo ${{ steps.build.outputs.sha }} > shipped'}\n"
OUTPUT = 'echo sha=abc >> "$PLANRUN_OUTPUT"'
REPLANS: dict[str, dict[str, Any]] = {
    "an output of a replaced step is read from what replaces it": {
        "plan": PLAN + READER,
        "answers": [draft([step("again", OUTPUT, replaces=["build"], outputs=["sha"])], keep=["ship"])],
        "code": 0,
        "left": {"shipped": "abc\n"},
    },
    "an output that nothing writes any more is a fault of the new step": {
        "plan": PLAN + READER,
        "answers": [
            draft([step("again", "true", replaces=["build"])], keep=["ship"]),
            draft([step("again", OUTPUT, replaces=["build"], outputs=["sha"])], keep=["ship"]),
        ],
        "code": 0,
        "found": {"path": "steps[0]", "rule": "E214"},
        "left": {"shipped": "abc\n"},
    },
    "what a model puts in the place of a failure is not green by itself": {
        "plan": PLAN,
        "answers": [draft([step("again", "touch deployed && test -f deployed", replaces=["build"])])],
        "code": 1,
        "said": "no reviewed step checked what a model put in the place of build",
        "left": {"deployed": ""},
    },
    "a reviewed step after it is a check": {
        "plan": PLAN + "  - {id: check, depends_on: [build], run: test -f deployed}\n",
        "answers": [draft([step("again", "touch deployed", replaces=["build"])], keep=["check"])],
        "code": 0,
        "left": {"deployed": ""},
    },
    "a reviewed step beside it is none": {
        "plan": PLAN + "  - {id: other, run: touch other}\n",
        "answers": [draft([step("again", "touch deployed", replaces=["build"])])],
        "code": 1,
        "left": {"deployed": "", "other": ""},
    },
    "a new step has what the language of models has": {
        "plan": PLAN + READER,
        "answers": [
            draft(
                [
                    step(
                        "parts",
                        "touch part-${{ matrix.n }}",
                        matrix=["n=1,2"],
                        timeout="1m",
                        replaces=["build"],
                    ),
                    step(
                        "again",
                        OUTPUT,
                        retries=2,
                        depends_on=["parts"],
                        outputs=["sha"],
                        replaces=["build"],
                        produces=["part-*"],
                    ),
                ],
                keep=["ship"],
            )
        ],
        "code": 0,
        "left": {"part-1": "", "part-2": "", "shipped": "abc\n"},
    },
    "a secret waits for an approval, whatever the level": {
        "plan": PLAN + READER,
        "answers": [
            draft(
                [
                    step(
                        "again",
                        f'{OUTPUT}\ntest -n "$DEPLOY_KEY"',
                        replaces=["build"],
                        outputs=["sha"],
                        secrets=["DEPLOY_KEY"],
                    )
                ],
                keep=["ship"],
            )
        ],
        "code": 5,
        "said": "it gets DEPLOY_KEY (plan:secrets)",
        "approved": 0,
        "left": {"shipped": "abc\n"},
    },
    "no expression of a new step reads a credential, in a probe either": {
        "plan": PLAN,
        "answers": [
            draft([step("again", "sleep 9", ready="echo ${{ env.API_TOKEN }}", replaces=["build"])]),
            draft([], infeasible="There is no other way."),
        ],
        "code": 1,
        "found": {"path": "steps[0].ready", "rule": "secret"},
        "left": {},
    },
    "a secret that the plan does not declare is a fault": {
        "plan": PLAN + READER,
        "answers": [
            draft(
                [step("again", OUTPUT, replaces=["build"], outputs=["sha"], secrets=["OTHER"])], keep=["ship"]
            ),
            draft([], infeasible="There is no other way."),
        ],
        "code": 1,
        "found": {"path": "steps[0]", "rule": "E2"},
        "left": {},
    },
}


@pytest.mark.parametrize("case", REPLANS)
def test_a_failure_is_replanned_with_what_plans_have(tmp_path: Path, env: dict[str, str], case: str) -> None:
    """By the real command; what the model is told has the language, and what is known of the project."""
    wanted = REPLANS[case]
    (tmp_path / "plan.yml").write_text(wanted["plan"])
    (tmp_path / "Makefile").write_text("test:\n\ttrue\n")
    env["DEPLOY_KEY"] = "the-value-of-the-key"
    with FakeMessages(wanted["answers"]) as api:
        ran = planrun(tmp_path, {**env, **api.env}, "execute", "plan.yml")
        asked = api.journal.entries
        assert len(asked) == len(wanted["answers"])
        assert api.journal.verdicts() == []
    body = json.dumps(asked[0].body)
    for told in (
        "steps.ID.outputs.NAME",
        "- condition: ",
        "- secrets: ",
        "test command named by Makefile: make test",
    ):
        assert told in body
    assert ran.returncode == wanted["code"], ran.stdout + ran.stderr
    assert wanted.get("said", "") in ran.stdout + ran.stderr
    if found := wanted.get("found"):
        repair = json.dumps(asked[1].body)
        assert f'\\"path\\": \\"{found["path"]}' in repair
        assert f'\\"rule\\": \\"{found["rule"]}' in repair
    if "approved" in wanted:
        assert not (tmp_path / "shipped").exists()
        resumed = planrun(tmp_path, env, "approve", "last", "again", "ship", "--resume")
        if resumed.returncode == 2:
            resumed = planrun(tmp_path, env, "approve", "last", "again", "--resume")
        assert resumed.returncode == wanted["approved"], resumed.stdout + resumed.stderr
    for name, text in wanted["left"].items():
        assert (tmp_path / name).read_text() == text
