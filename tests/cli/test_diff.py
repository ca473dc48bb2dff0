"""`planrun diff`: what changed in the meaning of a plan, from files, standard input and commits, in three forms."""

from __future__ import annotations

import io
import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from markdown_it import MarkdownIt

from planrun.plan.load import load_bytes
from tests.app.differing import BASE, plan_of, with_step

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Said

OLD = """\
version: 1
name: release
goal: Ship it.
params:
  target: {type: string, enum: [staging, prod], default: staging}
env: {LEVEL: info, API_TOKEN: first-value}
steps:
  - {id: lint, run: ruff check .}
  - {id: build, run: make}
  - id: test
    title: Unit tests
    run: |
      set -e
      pytest -q
      echo done
    depends_on: [build]
  - {id: dropped, run: echo dropped}
  - {id: publish, exec: [twine, upload, "dist/*"], depends_on: [test]}
"""
NEW = """\
# Comments, quotes and the order of keys are no difference.
name: 'release'
version: 1
goal: Ship it now.
params:
  target: {default: prod, enum: [staging, prod, dev], type: string}
env: {API_TOKEN: second-value, LEVEL: debug}
schedule: levels
defaults: {timeout: 10m}
steps:
  - {id: compile, run: make}
  - {run: ruff check ., id: lint}
  - id: test
    title: Unit tests
    run: |
      set -e
      pytest -q -x
      echo done
    depends_on: {compile: done, lint: ok}
    condition: params.target == 'prod'
  - {id: sign, run: ./sign.sh, timeout: 1m}
finally:
  - {id: publish, exec: [twine, upload, "dist/a b"]}
"""
TEXT = """\
Plan
  ~ goal: Ship it. → Ship it now.
  ~ env.API_TOKEN: (not shown: it is named like a credential)
  ~ env.LEVEL: info → debug
  ~ schedule: dag → levels
  + params.target.enum: dev
  ~ params.target.default: staging → prod

The same change in several steps
  ~ timeout: 5m → 10m
    in 4 steps: compile, lint, test, publish

Steps
  - dropped  (is gone)
      run:
      -   echo dropped
  = compile  (was build, moved to the front)
  ~ test: Unit tests
      run:
          set -e
      -   pytest -q
      +   pytest -q -x
          echo done
      ~ depends_on.compile: ok → done
      + depends_on.lint: ok
      + condition: params.target == 'prod'
  + sign  (is new)
      run:
      +   ./sign.sh
      + timeout: 1m
  ~ publish
      exec:
      -   twine upload "dist/*"
      +   twine upload "dist/a b"
      ~ moved from steps to finally
      - depends_on.test: ok
"""


@pytest.fixture
def plans(tmp_path: Path) -> Path:
    """Write both plans into the test's folder and return it."""
    (tmp_path / "old.yml").write_text(OLD)
    (tmp_path / "new.yml").write_text(NEW)
    return tmp_path


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Make the test's folder a repository with OLD as plans/release.yml in its only commit, and NEW in the checkout."""
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "release.yml").write_text(OLD)
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", "plans")
    git(tmp_path, "commit", "-q", "-m", "one")
    (tmp_path / "plans" / "release.yml").write_text(NEW)
    return tmp_path


def git(folder: Path, *words: str) -> None:
    """Run git in a folder with a fixed author."""
    someone = [
        "-c",
        "user.name=author",
        "-c",
        "user.email=author@example.org",
        "-c",
        "commit.gpgsign=false",
    ]
    subprocess.run(["git", *someone, *words], cwd=folder, check=True, timeout=300, stdin=subprocess.DEVNULL)


def sorted_rows(text: str) -> list[str]:
    """Return the rows of a text that say something."""
    return [row for row in text.split("\n") if row and not row.strip().startswith("risk: ")]


@pytest.mark.usefixtures("plans")
def test_the_text_tells_every_change_in_the_words_of_the_plan(say: Callable[..., Said]) -> None:
    """Digests and counts first, then head, shared settings, and each step; unchanged parts are left out."""
    said = say("diff", "old.yml", "new.yml")
    assert (said.code, said.err) == (0, "")
    first, second, *_rest = said.out.split("\n")
    old, new = (load_bytes(text.encode(), "x.yml", cache=False).digest[:12] for text in (OLD, NEW))
    assert first == f"old.yml ({old}) → new.yml ({new})"
    assert second == "steps: 1 added, 1 removed, 1 renamed, 3 changed; the head of the plan"
    rows = sorted_rows(said.out[said.out.index("Plan\n") :].split("\nPolicy in force")[0])
    assert sorted(rows) == sorted(sorted_rows(TEXT))


@pytest.mark.usefixtures("plans")
def test_the_exit_code_tells_when_it_is_asked_to(say: Callable[..., Said]) -> None:
    """0 for every comparison, and 1 for a difference with --exit-code."""
    assert say("diff", "old.yml", "new.yml").code == 0
    assert say("diff", "old.yml", "new.yml", "--exit-code").code == 1
    same = say("diff", "old.yml", "old.yml", "--exit-code")
    assert same.code == 0
    assert "no difference in meaning" in same.out


def test_the_problems_of_both_sides_are_shown(say: Callable[..., Said], plans: Path) -> None:
    """Two plans with mistakes: exit code 2, both with file, line and column."""
    (plans / "a.yml").write_text(OLD.replace("goal:", "gaol:"))
    (plans / "b.yml").write_text(OLD.replace("[build]", "[bulid]"))
    said = say("diff", "a.yml", "b.yml")
    assert (said.code, said.out) == (2, "")
    assert "a.yml:3:1: error[E104]" in said.err
    assert "b.yml:16:" in said.err


def test_standard_input_is_one_of_the_two(
    say: Callable[..., Said], plans: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`-` reads a plan that has the name of the other side's file; both cannot be it."""
    nameless = OLD.replace("name: release\n", "")
    (plans / "old.yml").write_text(nameless)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(nameless.encode())))
    assert "no difference in meaning" in say("diff", "-", "old.yml").out
    assert say("diff", "-", "-").code == 2


@pytest.mark.usefixtures("plans")
def test_json_has_everything(say: Callable[..., Said]) -> None:
    """One document: both sides, counts, risks, each change with its path, values as the plan language has them."""
    document = json.loads(say("diff", "old.yml", "new.yml", "--json").out)
    assert document["schema_version"] == 1
    assert document["same"] is False
    assert document["counts"] == {"added": 1, "removed": 1, "renamed": 1, "changed": 3, "order": 1}
    assert document["new"]["digest"] == load_bytes(NEW.encode(), "new.yml", cache=False).digest
    changes = {change["key"]: change for change in document["plan"]}
    assert (changes["env.LEVEL"]["old"], changes["env.LEVEL"]["new"]) == ("info", "debug")
    assert (changes["env.API_TOKEN"]["old"], changes["env.API_TOKEN"]["hidden"]) == (None, True)
    found = {step["id"]: step for step in document["steps"]}
    assert found["compile"]["was"] == "build"
    publish = {change["key"]: change for change in found["publish"]["changes"]}
    assert publish["exec"]["new"] == ["twine", "upload", "dist/a b"]
    assert found["sign"]["risk"]["old"] is None


@pytest.mark.usefixtures("plans")
def test_values_named_like_credentials_are_in_no_form(say: Callable[..., Said]) -> None:
    """The values of API_TOKEN are neither in the text nor in the JSON document nor in the markdown."""
    for form in ("text", "json", "markdown"):
        out = say("diff", "old.yml", "new.yml", "--format", form).out
        assert "API_TOKEN" in out
        assert "first-value" not in out
        assert "second-value" not in out


@pytest.mark.usefixtures("plans")
def test_colours_are_asked_for(say: Callable[..., Said]) -> None:
    """There is no colour unless requested; removed text is red, new text green."""
    assert "\x1b" not in say("diff", "old.yml", "new.yml").out
    out = say("diff", "old.yml", "new.yml", "--color", "always").out
    assert "\x1b[31m      -   pytest -q\x1b[0m\n" in out
    assert "\x1b[32m      +   pytest -q -x\x1b[0m\n" in out


# Commits.


def test_a_commit_is_read_and_not_the_checkout(say: Callable[..., Said], repository: Path) -> None:
    """COMMIT:PATH is the committed file, whatever the checkout holds, and also where a file has that very name."""
    (repository / "main:plans").mkdir()
    (repository / "main:plans" / "release.yml").write_text(NEW)
    document = json.loads(say("diff", "main:plans/release.yml", "plans/release.yml", "--json").out)
    assert document["old"]["digest"] == load_bytes(OLD.encode(), "release.yml", cache=False).digest
    assert len(document["old"]["commit"]) == 40
    assert say("diff", "main:plans/release.yml", "HEAD:plans/release.yml", "--exit-code").code == 0


def test_a_path_is_counted_from_the_root_and_from_here_with_a_dot(
    say: Callable[..., Said], repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a subfolder `main:plans/release.yml` and `main:./release.yml` are the same file."""
    monkeypatch.chdir(repository / "plans")
    assert say("diff", "main:plans/release.yml", "main:./release.yml", "--exit-code").code == 0
    assert say("diff", "main:./release.yml", "./release.yml", "--exit-code").code == 1


@pytest.mark.usefixtures("repository")
def test_a_plan_that_is_not_in_the_commit_is_new(say: Callable[..., Said]) -> None:
    """All its steps are added; the other way round they are gone; a plan that is nowhere is an error."""
    document = json.loads(say("diff", "main:plans/other.yml", "plans/release.yml", "--json").out)
    assert document["old"]["exists"] is False
    assert {step["change"] for step in document["steps"]} == {"added"}
    gone = json.loads(say("diff", "main:plans/release.yml", "/dev/null", "--json").out)
    assert {step["change"] for step in gone["steps"]} == {"removed"}
    assert say("diff", "main:a.yml", "main:b.yml").code == 2


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("--output=x:plans/release.yml", "no such option"),
        ("-x:plans/release.yml", "no such option"),
        (":plans/release.yml", "invalid commit name"),
        ("nowhere:plans/release.yml", 'unknown commit "nowhere"'),
        ("main..HEAD:plans/release.yml", "unknown commit"),
        ("HEAD^{/one}:plans/release.yml", "invalid commit name"),
        ("main:", "expected COMMIT:path/to/plan.yml"),
        ("main:plans/", "expected COMMIT:path/to/plan.yml"),
        ("main:plans", "must be a regular file, got a directory"),
        ("main:link.yml", "must be a regular file, got a symbolic link"),
        ("main:plans/large.yml", "larger than 8 MiB"),
    ],
)
def test_what_is_no_file_of_a_commit_is_refused(
    say: Callable[..., Said], repository: Path, name: str, complaint: str
) -> None:
    """Options, searches, ranges, folders, links and files that are too large end with exit code 2 and say why."""
    os.symlink("plans/release.yml", repository / "link.yml")
    (repository / "plans" / "large.yml").write_bytes(b"#" * (8 << 20) + b"\n")
    git(repository, "add", "link.yml", "plans/large.yml")
    git(repository, "commit", "-q", "-m", "two")
    said = say("diff", name, "plans/release.yml")
    assert (said.code, said.out) == (2, "")
    assert complaint in said.err


def test_an_option_in_the_place_of_a_commit_does_not_reach_git(
    say: Callable[..., Said], repository: Path
) -> None:
    """Behind `--` a word that looks like an option is still no name of a commit."""
    said = say("diff", "--", "--output=x:plans/release.yml", "plans/release.yml")
    assert said.code == 2
    assert "invalid commit name" in said.err
    assert not (repository / "x").exists()


def test_nothing_in_the_environment_or_the_repository_runs(
    say: Callable[..., Said], repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hooks, monitors, filters and text converters of the repository are not run, and GIT_DIR leads nowhere."""
    trap = repository / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {repository}/sprung\ncat\n")
    trap.chmod(0o755)
    for setting in (
        "core.fsmonitor",
        "core.pager",
        "diff.plan.textconv",
        "filter.plan.smudge",
        "core.sshCommand",
    ):
        git(repository, "config", setting, str(trap))
    (repository / ".git" / "info" / "attributes").write_text("*.yml diff=plan filter=plan\n")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(trap))
    monkeypatch.setenv("GIT_PAGER", str(trap))
    document = json.loads(say("diff", "main:plans/release.yml", "plans/release.yml", "--json").out)
    assert document["old"]["digest"] == load_bytes(OLD.encode(), "release.yml", cache=False).digest
    assert not (repository / "sprung").exists()


def test_outside_of_a_repository_the_error_names_it(
    say: Callable[..., Said], plans: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first line of git's error is shown; without git the message is that it cannot be run."""
    assert "not a git repository" in say("diff", "main:old.yml", "new.yml").err
    monkeypatch.setenv("PATH", str(plans))
    assert "cannot run git" in say("diff", "main:old.yml", "new.yml").err


def test_a_script_that_changed_is_a_difference(say: Callable[..., Said], repository: Path) -> None:
    """The same plan with another script differs: the script, the steps that run it, and exit code 1."""
    (repository / "plan.yml").write_text(
        "version: 1\nsteps:\n  - {id: sign, run: ./sign.sh}\n  - {id: b, run: bash my\\ own.sh}\n"
    )
    for name in ("sign.sh", "my own.sh"):
        (repository / name).write_text("echo one\n")
        (repository / name).chmod(0o755)
    git(repository, "add", "plan.yml", "sign.sh")
    git(repository, "commit", "-q", "-m", "two")
    (repository / "plan.yml").write_text("# a comment\n" + (repository / "plan.yml").read_text())
    assert (
        say("diff", "HEAD:plan.yml", "plan.yml", "--exit-code").code == 0
    )  # git does not track the other one
    git(repository, "add", "my own.sh")
    said = say("diff", "HEAD:plan.yml", "plan.yml", "--exit-code")
    assert (said.code, "sign.sh" in said.out) == (1, False)
    (repository / "sign.sh").write_text("echo two\n")
    said = say("diff", "HEAD:plan.yml", "plan.yml", "--exit-code")
    assert said.code == 1
    assert "~ sign.sh changed (run by sign)" in said.out
    git(repository, "commit", "-q", "-m", "three", "sign.sh")
    document = json.loads(say("diff", "HEAD~1:plan.yml", "HEAD:plan.yml", "--json").out)
    assert document["scripts"] == [{"path": "sign.sh", "change": "changed", "steps": ["sign"]}]
    assert (document["same"], document["steps"]) == (False, [])
    assert "sign.sh changed" in say("diff", "HEAD~1:plan.yml", "HEAD:plan.yml", "--format", "markdown").out


def test_the_value_of_a_secret_is_masked(
    say: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan that holds the value of a declared secret is shown without it, in every form."""
    monkeypatch.setenv("FIRST_KEY", "hunter2-and-more")
    (tmp_path / "a.yml").write_text(json.dumps(BASE))
    (tmp_path / "b.yml").write_text(json.dumps(with_step(run="echo hunter2-and-more")))
    for form in ("text", "json", "markdown"):
        out = say("diff", "a.yml", "b.yml", "--format", form).out
        assert "hunter2" not in out
        assert "echo" in out


# Markdown, and texts that mean harm.


def markdown_of(say: Callable[..., Said], old: str, new: str) -> str:
    """Return the difference of two texts of plans as markdown."""
    for name, text in (("a.yml", old), ("b.yml", new)):
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
    said = say("diff", "a.yml", "b.yml", "--format", "markdown")
    assert said.code == 0, said.err
    return said.out


@pytest.mark.usefixtures("repository")
def test_the_markdown_begins_with_a_line_for_the_bot(say: Callable[..., Said]) -> None:
    """An HTML comment with the path, whatever its source; then digests, the table, a block for each step."""
    out = say("diff", "main:plans/release.yml", "plans/release.yml", "--format", "markdown").out
    assert out.startswith("<!-- planrun-diff plans/release.yml -->\n### Plan `plans/release.yml`\n\n`")
    html = MarkdownIt("gfm-like", {"linkify": False}).render(out)
    assert html.count("<table>") == 1
    assert html.count('<code class="language-diff">') == out.count("<details>") == out.count("</details>")
    assert "-   pytest -q\n+   pytest -q -x\n" in out


def running_text(markdown: str) -> str:
    """Return the text outside of code and HTML, where GitHub looks for mentions and links."""
    tokens = MarkdownIt("gfm-like", {"linkify": False, "html": True}).parse(markdown)
    parts = [part for token in tokens for part in token.children or ()]
    return "\n".join([part.content for part in parts if part.type == "text"])


HOSTILE = (
    "`|</details><script>alert(1)</script> @team #1 [x](http://a.example) ![i](http://b.example/x.png) "
    "<!-- --> ``` ~~~ ::set-output name=a::b ##[error]x www.c.example"
)


@pytest.mark.parametrize("mark", ["title", "run", "condition", "env", "notes"])
def test_text_of_a_plan_stays_text_in_markdown(say: Callable[..., Said], mark: str) -> None:
    """Markup, links, images, mentions, fences and CI commands in any text of a plan have no effect."""
    values: dict[str, Any] = {
        "title": HOSTILE,
        "run": f"echo\n```\n{HOSTILE}\n::stop-commands::x\n",
        "condition": f"'{HOSTILE}' == 'x'",
        "env": {"TEXT": HOSTILE},
        "notes": f"one\n```\n</details>\n\n{HOSTILE}\n",
    }
    fields = {"run": "true", mark: values[mark]}
    out = markdown_of(say, json.dumps(BASE), json.dumps(with_step(**fields)))
    html = MarkdownIt("gfm-like", {"linkify": False, "html": False}).render(out.split("\n", 1)[1])
    raw = html.replace("&lt;details&gt;&lt;summary&gt;", "").replace("&lt;/summary&gt;", "")
    for tag in ("<a ", "<img", "<script", "<em>"):
        assert tag not in raw
    assert "@team" not in running_text(out)
    assert "www.c" not in running_text(out)
    assert not [row for row in out.split("\n") if row.lstrip().startswith("::")]
    assert "##[error]" not in out


def test_text_of_a_plan_cannot_steer_a_terminal_or_an_agent(say: Callable[..., Said], tmp_path: Path) -> None:
    """Escapes, marks of direction and invisible characters are shown as escapes; a text makes no rows of its own."""
    evil = "a\x1b[2Jb\u202ec\u200bd\ne\r::error::f"
    (tmp_path / "a.yml").write_text(json.dumps(BASE))
    (tmp_path / "b.yml").write_text(json.dumps(with_step(run=evil, env={"TEXT": evil}, notes=evil)))
    out = say("diff", "a.yml", "b.yml").out
    assert all(char.isprintable() or char == "\n" for char in out)
    assert "\\u202e" in out
    assert not [row for row in out.split("\n") if row.startswith("::")]


def test_a_comment_stays_below_its_limit_and_counts_the_rest(say: Callable[..., Said]) -> None:
    """2,000 steps with long scripts in both plans: below 65,536 characters, and a line says how many are left out."""

    def plan(word: str) -> str:
        rows = [{"id": f"step-{n}", "run": f"echo {word} {n}\n" * 5, "title": "🙂" * 50} for n in range(2000)]
        return json.dumps({"version": 1, "steps": rows}, ensure_ascii=False)

    out = markdown_of(say, plan("old"), plan("new"))
    assert len(out) < 65_536
    assert len(out.encode()) < 65_536
    assert "more steps are not listed" in out
    assert "more are not shown; `planrun diff` prints all of them." in out


def test_long_lines_show_where_they_differ(say: Callable[..., Said]) -> None:
    """Of two lines of 5,000 characters that differ near the end, the part that differs is shown."""
    start = "x" * 4900
    out = markdown_of(
        say, json.dumps(with_step(run=f"echo {start} old")), json.dumps(with_step(run=f"echo {start} new"))
    )
    assert "xxx old" in out
    assert "xxx new" in out
    assert "characters] …" in out


def test_the_digest_of_the_other_side_is_not_needed_to_compare() -> None:
    """The plans of these tests differ."""
    assert plan_of(OLD).digest != plan_of(NEW).digest
