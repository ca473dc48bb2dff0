"""Whatever way a plan takes to run a file: another content gives another digest, or the plan is not covered in full."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from planrun.approval.digest import review
from planrun.plan.load import load
from tests.agents.worlds import git

if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.approval.digest import Reviewed

    Run = Callable[..., subprocess.CompletedProcess[str]]

SCRIPT = "deploy.sh"
# A text of bash that runs `deploy.sh`; the workspace has it at its top and in `sub`.
TEXTS = (
    "./deploy.sh",
    "bash deploy.sh",
    'echo "running -> ./deploy.sh"; ./deploy.sh',
    "echo '> deploy.sh'; bash deploy.sh",
    "[[ a > deploy.sh ]]; ./deploy.sh",
    "echo done # > deploy.sh\n./deploy.sh",
    "test x \\> deploy.sh; ./deploy.sh",
    "bash < deploy.sh",
    'f=deploy.sh; bash < "$f"',
    "cat deploy.sh | bash",
    "cat deploy.sh | sh -s -- arg",
    "sh -c ./deploy.sh",
    "sh -c 'exec ./deploy.sh'",
    'bash -c "./deploy.sh"',
    "eval ./deploy.sh",
    'eval "$(cat deploy.sh)"',
    '"$PWD/deploy.sh"',
    "$PWD/deploy.sh",
    '"$(pwd)"/deploy.sh',
    "./dep*.sh",
    "./dep?oy.sh",
    "./[d]eploy.sh",
    "bash ./*.sh",
    'for f in ./*; do bash "$f"; done',
    "./dep{loy,}.sh",
    "./{deploy,other}.sh",
    "trap ./deploy.sh EXIT",
    "trap 'bash deploy.sh' EXIT",
    "flock /tmp/l ./deploy.sh",
    "flock /tmp/l -c ./deploy.sh",
    "echo deploy.sh | xargs bash",
    "ls *.sh | xargs -n1 sh",
    "xargs -a names sh",
    "find . -name deploy.sh -exec bash {} \\;",
    "find . -name 'dep*' -exec {} \\;",
    "find . -type f -exec sh {} +",
    "BASH_ENV=deploy.sh bash -c true",
    "ENV=deploy.sh sh -i -c true",
    "source deploy.sh",
    ". ./deploy.sh",
    "source <(cat deploy.sh)",
    "bash <(cat deploy.sh)",
    "bash <<EOF\n./deploy.sh\nEOF\n",
    "bash <<'EOF'\n. deploy.sh\nEOF\n",
    "bash <<< './deploy.sh'",
    "PATH=$PWD deploy.sh",
    "PATH=.:$PATH deploy.sh",
    "PATH=$PWD:$PATH; deploy.sh",
    "export PATH=$(pwd):$PATH; x",
    "command ./deploy.sh",
    "exec ./deploy.sh",
    "env ./deploy.sh",
    "env -S 'bash deploy.sh'",
    "timeout 5 ./deploy.sh",
    "time ./deploy.sh",
    "coproc ./deploy.sh",
    'dep"loy.sh"',
    "./dep''loy.sh",
    "./dep\\loy.sh",
    "x=deploy; ./$x.sh",
    "x=loy; ./dep${x}.sh",
    "a=./dep; b=loy.sh; $a$b",
    "./$'deploy.sh'",
    "./$'d\\x65ploy.sh'",
    "cd sub && ./deploy.sh",
    "cd sub; bash deploy.sh",
    '(cd "$D" && ./deploy.sh)',
    "cp deploy.sh /tmp/x.sh && bash /tmp/x.sh",
    "ln -s deploy.sh l && ./l",
    "mv deploy.sh x && sh x",
    "sed s/a/b/ deploy.sh | bash",
    "tee /tmp/t < deploy.sh | bash",
    "alias d=./deploy.sh; d",
    "f() { ./deploy.sh; }; f",
    "select x in 1; do ./deploy.sh; done",
    "case x in *) ./deploy.sh;; esac",
    "if ! ./deploy.sh; then :; fi",
    "awk 'BEGIN{system(\"./deploy.sh\")}'",
    "python3 -c 'import os; os.system(\"./deploy.sh\")'",
    "python3 - <<'X'\nimport subprocess; subprocess.run(['./deploy.sh'])\nX\n",
    "python3 -c \"exec(open('dep' + 'loy.sh').read())\"",
    "perl -e 'system \"./deploy.sh\"'",
    'node -e \'require("child_process").execSync("./deploy.sh")\'',
    "git -c core.pager=./deploy.sh log",
    "GIT_SSH_COMMAND=./deploy.sh git fetch",
    "tar -cf /dev/null --use-compress-program=./deploy.sh .",
    "busybox sh deploy.sh",
    "nohup ./deploy.sh &",
    "setsid -w ./deploy.sh",
    "parallel ./deploy.sh ::: 1",
    "parallel bash ::: *.sh",
    "watch -n1 ./deploy.sh",
    "printf './%s' deploy.sh | sh",
    "echo ZGVwbG95LnNo | base64 -d | xargs bash",
    "bash $(echo ZGVwbG95LnNo | base64 -d)",
    'mapfile -t a < names; bash "${a[0]}"',
    'read f < names; sh "$f"',
    "run-parts sub",
    "ssh host bash -s < deploy.sh",
    "make -f deploy.sh",
    "vim -es -S deploy.sh",
    "LD_PRELOAD=./deploy.sh ls",
    "docker run -v $PWD:/w image bash /w/deploy.sh",
)


def repository(folder: Path, files: dict[str, str]) -> None:
    """Make a repository of files, all of them tracked."""
    git(folder, "init", "-q", "-b", "main")
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(folder, "add", "-A")


def reviewed(folder: Path, plan: dict[str, Any]) -> Reviewed:
    """Return what a plan may run in a folder."""
    (folder / "plan.yml").write_text(json.dumps({"version": 1, **plan}))
    return review(load(str(folder / "plan.yml"), cache=False).but(file="plan.yml"), {}, str(folder))


def holds(folder: Path, plan: dict[str, Any], *names: str) -> None:
    """Check that a swapped file changes the digest, or that the plan is not covered in full."""
    before = reviewed(folder, plan)
    for name in names:
        path = folder / name
        kept = path.read_bytes()
        path.write_bytes(kept + b"\n# swapped\n")
        after = reviewed(folder, plan)
        path.write_bytes(kept)
        assert before.uncovered or before.later or after.digest != before.digest, name
    assert reviewed(folder, plan).digest == before.digest


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_of_bash(tmp_path: Path, text: str) -> None:
    """`deploy.sh` counts in each folder, or what may run is named as not covered; so without git."""
    files = {
        SCRIPT: "echo deploy\n",
        f"sub/{SCRIPT}": "echo deploy\n",
        "names": f"{SCRIPT}\n",
        "other.txt": "x\n",
    }
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    repository(one, files)
    plan = {"steps": [{"id": "a", "run": text}]}
    holds(one, plan, f"sub/{SCRIPT}" if "sub" in text else SCRIPT)
    for name, content in files.items():
        (two / name).parent.mkdir(parents=True, exist_ok=True)
        (two / name).write_text(content)
    holds(two, plan, f"sub/{SCRIPT}" if "sub" in text else SCRIPT)


# A plan, the files of its workspace, and those of which each must count.
FORMS: dict[str, tuple[dict[str, Any], dict[str, str], tuple[str, ...]]] = {
    "exec": ({"steps": [{"id": "a", "exec": ["bash", "x.sh"]}]}, {"x.sh": "1\n"}, ("x.sh",)),
    "exec of a folder": ({"steps": [{"id": "a", "exec": ["run-parts", "d"]}]}, {"d/one": "1\n"}, ("d/one",)),
    "environment": (
        {"steps": [{"id": "a", "run": "bash -c true", "env": {"BASH_ENV": "./x.sh"}}]},
        {"x.sh": "1\n"},
        ("x.sh",),
    ),
    "environment of the plan": (
        {"env": {"NODE_OPTIONS": "-r ./x.js"}, "steps": [{"id": "a", "run": "node -e 1"}]},
        {"x.js": "1\n"},
        ("x.js",),
    ),
    "hook": (
        {"hooks": {"before_step": {"run": "./x.sh"}}, "steps": [{"id": "a", "run": "true"}]},
        {"x.sh": "1\n"},
        ("x.sh",),
    ),
    "verify": ({"steps": [{"id": "a", "run": "true", "verify": "./x.sh"}]}, {"x.sh": "1\n"}, ("x.sh",)),
    "rollback": (
        {"steps": [{"id": "a", "run": "true", "rollback": {"run": "sh x.sh"}}]},
        {"x.sh": "1\n"},
        ("x.sh",),
    ),
    "finally": (
        {"steps": [{"id": "a", "run": "true"}], "finally": [{"id": "b", "run": "cat x.sh | sh"}]},
        {"x.sh": "1\n"},
        ("x.sh",),
    ),
    "matrix": (
        {"steps": [{"id": "a", "run": "bash deploy-${{ matrix.v }}.sh", "matrix": {"v": ["eu", "us"]}}]},
        {"deploy-eu.sh": "1\n", "deploy-us.sh": "1\n"},
        ("deploy-eu.sh", "deploy-us.sh"),
    ),
    "parameter": (
        {
            "params": {"f": {"type": "string", "default": "x.sh"}},
            "steps": [{"id": "a", "run": "bash ${{ params.f }}"}],
        },
        {"x.sh": "1\n"},
        ("x.sh",),
    ),
    "folder of a step": (
        {"steps": [{"id": "a", "run": "./x.sh", "workdir": "sub"}]},
        {"sub/x.sh": "1\n"},
        ("sub/x.sh",),
    ),
    "python -m": (
        {"steps": [{"id": "a", "run": "python3 -m pkg.tool"}]},
        {
            "pkg/__init__.py": "1\n",
            "pkg/tool.py": "from pkg import low\nimport near\n",
            "pkg/low.py": "1\n",
            "near.py": "1\n",
        },
        ("pkg/__init__.py", "pkg/tool.py", "pkg/low.py", "near.py"),
    ),
    "python -m of a package": (
        {"steps": [{"id": "a", "run": "python3 -m pkg"}]},
        {"pkg/__main__.py": "from .low import x as y, z\n", "pkg/low.py": "1\n"},
        ("pkg/__main__.py", "pkg/low.py"),
    ),
    "python script": (
        {"steps": [{"id": "a", "run": "python3 t.py"}]},
        {"t.py": "import os, one as two, three\n", "one.py": "1\n", "three/__init__.py": "1\n"},
        ("t.py", "one.py", "three/__init__.py"),
    ),
    "node -r": (
        {"steps": [{"id": "a", "run": "node -r ./setup server"}]},
        {
            "setup.js": "1\n",
            "server.js": "require('./lib/x'); import y from './y.mjs'\n",
            "lib/x.js": "1\n",
            "y.mjs": "1\n",
        },
        ("setup.js", "server.js", "lib/x.js", "y.mjs"),
    ),
    "package.json": (
        {"steps": [{"id": "a", "run": "npm run ship"}]},
        {
            "package.json": '{"scripts": {"ship": "sh tools/ship.sh"}}\n',
            "tools/ship.sh": "./last.sh\n",
            "tools/last.sh": "1\n",
        },
        ("package.json", "tools/ship.sh", "tools/last.sh"),
    ),
    "make": (
        {"steps": [{"id": "a", "run": "make ship"}]},
        {
            "Makefile": "include rules.mk\nship:\n\t./$(NAME).sh\n",
            "rules.mk": "NAME = ship\n",
            "ship.sh": "1\n",
        },
        ("Makefile", "rules.mk", "ship.sh"),
    ),
    "make includes by a pattern": (
        {"steps": [{"id": "a", "run": "make -C sub ship"}]},
        {"sub/Makefile": "include mk/*.mk\n", "sub/mk/a.mk": "1\n"},
        ("sub/Makefile", "sub/mk/a.mk"),
    ),
    "conftest.py": (
        {"steps": [{"id": "a", "run": "pytest -q"}]},
        {"conftest.py": "import helper\n", "helper.py": "1\n"},
        ("conftest.py", "helper.py"),
    ),
    "tests": (
        {"steps": [{"id": "a", "run": "python3 -m pytest tests"}]},
        {"tests/test_a.py": "1\n", "tests/conftest.py": "1\n"},
        ("tests/test_a.py", "tests/conftest.py"),
    ),
    "Dockerfile": (
        {"steps": [{"id": "a", "run": "docker build ."}]},
        {"Dockerfile": "FROM x\nCOPY tools/x.sh /x.sh\nRUN /x.sh\n", "tools/x.sh": "1\n"},
        ("Dockerfile", "tools/x.sh"),
    ),
    "closure": (
        {"steps": [{"id": "a", "run": "./a.sh"}]},
        {
            "a.sh": '. "$(dirname "$0")/b.sh"\n',
            "b.sh": "python3 c.py\n",
            "c.py": "open('d.json')\n",
            "d.json": "{}\n",
        },
        ("a.sh", "b.sh", "c.py", "d.json"),
    ),
    "program": ({"steps": [{"id": "a", "run": "./prog"}]}, {"prog": "\x7fELF\0\0\1"}, ("prog",)),
    "blanks": (
        {"steps": [{"id": "a", "run": "bash 'my own.sh'; bash my\\ other.sh"}]},
        {"my own.sh": "1\n", "my other.sh": "1\n"},
        ("my own.sh", "my other.sh"),
    ),
    "other letters": (
        {"steps": [{"id": "a", "run": "bash übung.sh; bash '日本 語.sh'"}]},
        {"übung.sh": "1\n", "日本 語.sh": "1\n"},
        ("übung.sh", "日本 語.sh"),
    ),
    "line end": ({"steps": [{"id": "a", "run": "bash $'a\\nb.sh'"}]}, {"a\nb.sh": "1\n"}, ("a\nb.sh",)),
    "signs": (
        {
            "steps": [
                {"id": "a", "run": "bash 'a$b.sh'; bash 'c(1).sh'; bash d#e.sh; bash f,g.sh; bash h=i.sh"}
            ]
        },
        {"a$b.sh": "1\n", "c(1).sh": "1\n", "d#e.sh": "1\n", "f,g.sh": "1\n", "h=i.sh": "1\n"},
        ("a$b.sh", "c(1).sh", "d#e.sh", "f,g.sh", "h=i.sh"),
    ),
    "notification": (
        {"notify": [{"command": ["./x.sh"], "on": "failed"}], "steps": [{"id": "a", "run": "true"}]},
        {"x.sh": "1\n"},
        ("x.sh",),
    ),
    "tool": (
        {"steps": [{"id": "a", "tool": "file.read", "args": {"path": "x.txt"}}]},
        {"x.txt": "1\n"},
        ("x.txt",),
    ),
    "another shell": (
        {"steps": [{"id": "a", "run": "import helper", "shell": ["python3", "-c"]}]},
        {"helper.py": "1\n"},
        ("helper.py",),
    ),
}


READ = [
    tuple(line.split(" => "))
    for line in (Path(__file__).parents[1] / "data" / "read_unasked.txt").read_text().splitlines()
    if not line.startswith("#")
]
# Commands that run no file of a workspace, and read none of these unasked.
QUIET = (
    "cp a b && mv b c; ls -la | sort | uniq -c",
    "git log -1 --format=%h || echo no commit",
    "mkdir -p build && tar -cf build/x.tar docs",
    "gh release create v1 --notes-file notes.md",
    "aws s3 cp dist s3://bucket --recursive",
    "f() { echo uno; }; f; for n in 1 2; do printf '%s' $n; done",
    "ssh host uptime; curl -fsS https://example.org",
    "sed -i s/1/2/ q.txt && awk '{print $1}' q.txt | jq -r .name",
)


def place(at: int) -> str:
    """Return where the file of a pair stands: in a folder of its own, or at the top."""
    name = READ[at][1]
    return name[1:] if name[0] == "/" else f"p{at}/{name}"


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the file of each pair in a folder of its own."""
    folder = tmp_path_factory.mktemp("everything")
    repository(folder, {place(at): "1\n" for at in range(len(READ))})
    return folder


@pytest.mark.parametrize("at", range(len(READ)), ids=[text for text, _ in READ])
def test_a_file_that_a_program_reads_unasked(everything: Path, at: int) -> None:
    """What programs load by options, modules and settings counts, or the step is named as not covered."""
    text = READ[at][0]
    found = reviewed(everything, {"steps": [{"id": "a", "run": text}]})
    assert place(at) in found.scripts or any(what.startswith("a: ") for what in found.uncovered)


THROUGH = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "read_by_files.jsonl").read_text().splitlines()
]


@pytest.mark.parametrize("row", THROUGH, ids=lambda row: f"{row[0]} reads {row[1]}")
def test_a_file_that_another_file_reads(tmp_path: Path, row: tuple[str, str, dict[str, str]]) -> None:
    """What scripts, recipes, tasks and code name or run counts, or the plan is not covered in full."""
    text, name, files = row
    repository(tmp_path, {**files, "unrelated.txt": "x\n"})
    holds(tmp_path, {"steps": [{"id": "a", "run": text}]}, name)


SCRIPTS = {
    "functions": "f() { echo; }\nif f; then\n  for x in 1 2; do echo $x | sort; done\nfi\n",
    "not understood": "select x in a b; do\n  echo $x; local y=1\ndone\n[[ a =~ ^b(c|d)$ ]] && cp a b # frob\n",
    "a function of another file": ". ./lib.sh\nhelp_me\n",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_that_runs_no_other_file(tmp_path: Path, name: str) -> None:
    """Ordinary scripts are covered in full."""
    repository(tmp_path, {"run.sh": SCRIPTS[name], "lib.sh": "help_me() { echo; }\n"})
    assert not reviewed(tmp_path, {"steps": [{"id": "a", "run": "sh run.sh"}]}).uncovered


def test_gaps_are_shown_in_part(tmp_path: Path) -> None:
    """One line for each file, and one for those beyond 20."""
    files = {f"s/{at}.sh": "frob\nfrobnicate\n" for at in range(25)}
    repository(tmp_path, files)
    uncovered = reviewed(
        tmp_path, {"steps": [{"id": "a", "run": "for f in s/*.sh; do echo; done"}]}
    ).uncovered
    assert len(uncovered) == 21
    assert {"s/0.sh: frob, and 1 more", "5 more files"} <= uncovered.keys()


@pytest.mark.parametrize("text", QUIET)
def test_a_command_that_runs_no_file(everything: Path, text: str) -> None:
    """Ordinary commands are covered in full, and bring no file along."""
    found = reviewed(everything, {"steps": [{"id": "a", "run": text}]})
    assert not found.uncovered
    assert set(found.scripts) <= {place(at) for at, (_, name) in enumerate(READ) if name[0] == "."}


def test_words_cover_no_files_of_their_stems_and_records_never_count(tmp_path: Path) -> None:
    """The word `build` is not `build.json`; approvals and locks are no part of a digest, look-alikes are."""
    approval = dict.fromkeys(("version", "id", "digest", "steps", "approver", "expires", "uses"), "x")
    files = {
        "docs/build.json": "{}\n",
        "a.json": json.dumps(approval),
        "package.json": json.dumps({**approval, "scripts": {"x": "y"}}),
        ".planrunner/x.sh": "true\n",
        "run.sh": '{ echo "digest" "approver"; }\n',
    }
    repository(tmp_path, files)
    run = "mkdir -p build; make build; cat a.json; npm run build; . .planrunner/x.sh; . ./run.sh"
    found = reviewed(tmp_path, {"steps": [{"id": "a", "run": run}]})
    assert sorted(found.scripts) == [".planrunner/x.sh", "package.json", "run.sh"]


@pytest.mark.parametrize("form", FORMS)
def test_other_forms(tmp_path: Path, form: str) -> None:
    """Each of the files counts, whatever part of the plan names it, by its name or through another file."""
    plan, files, names = FORMS[form]
    repository(tmp_path, files)
    found = reviewed(tmp_path, plan)
    assert set(names) <= found.scripts.keys()
    holds(tmp_path, plan, *names)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("./deploy.sh", False),
        ("bash < deploy.sh", False),
        ("x=deploy; ./$x.sh", False),
        ("cat deploy.sh | bash", True),
        ('f=names; bash < "$(cat $f)"', True),
        ("PATH=$PWD:$PATH deploy.sh", True),
        ("eval ./deploy.sh", True),
        ("bash /tmp/other.sh", True),
    ],
)
def test_what_locked_and_an_approval_let_run(planrun: Run, tmp_path: Path, text: str, *, named: bool) -> None:
    """`lock` and `approve` name what is not covered, `--locked` refuses it unless the plan allows it, also swapped."""
    repository(tmp_path, {SCRIPT: "#!/bin/sh\ntouch good\n", "names": f"{SCRIPT}\n"})
    (tmp_path / SCRIPT).chmod(0o755)
    plan = {"version": 1, "steps": [{"id": "a", "run": text, "on_failure": "continue"}]}
    (tmp_path / "plan.yml").write_text(json.dumps(plan))
    for words in (
        ["lock", "plan.yml"],
        ["approve", "plan.yml", "-o", "-"],
        ["show", "plan.yml"],
        ["review", "plan.yml"],
    ):
        done = planrun(*words)
        assert done.returncode == 0, done.stderr
        what = done.stdout + done.stderr
        assert ("not part of" in what.lower()) == named, words
    done = planrun("execute", "plan.yml", "--locked")
    assert done.returncode == (3 if named else 0), done.stderr
    if named:
        assert "allow_uncovered: true" in done.stderr
        (tmp_path / "plan.yml").write_text(json.dumps({**plan, "allow_uncovered": True}))
        assert planrun("lock", "plan.yml").returncode == 0
        assert planrun("execute", "plan.yml", "--locked").returncode == 0
        return
    (tmp_path / "good").unlink()
    (tmp_path / SCRIPT).write_text("#!/bin/sh\ntouch evil\n")
    done = planrun("execute", "plan.yml", "--locked")
    assert (done.returncode, f"script {SCRIPT} changed" in done.stderr) == (3, True)
    assert not (tmp_path / "evil").exists()


def test_an_approval_survives_a_fresh_clone(planrun: Run, tmp_path: Path) -> None:
    """The plan makes a virtual environment that git ignores: it is in no digest, before and after, here and there."""
    run = "python3 -m venv --without-pip .v && echo 'echo pip' > .v/bin/pip && bash .v/bin/pip && bash tools/x.sh"
    plan = {"version": 1, "policy": {"auto_approve": "none"}, "steps": [{"id": "a", "run": run}]}
    one = tmp_path / "one"
    one.mkdir()
    files = {".gitignore": ".v/\nplanrun-out/\n", "tools/x.sh": "echo x\n", "plan.yml": json.dumps(plan)}
    repository(one, files)
    git(one, "commit", "-q", "-m", "begin")
    done = planrun("approve", "plan.yml", "-o", "approvals/a.json", cwd=one)
    assert done.returncode == 0, done.stderr
    assert "not part of" not in done.stdout
    assert planrun("execute", "plan.yml", "--approval", "approvals/a.json", cwd=one).returncode == 0
    assert (one / ".v" / "bin" / "pip").exists()
    diff = planrun("diff", "HEAD:plan.yml", "plan.yml", "--exit-code", cwd=one)
    assert diff.returncode == 0, diff.stdout
    git(one, "add", "-A")
    git(one, "commit", "-q", "-m", "approve")
    two = tmp_path / "two"
    git(tmp_path, "clone", "-q", str(one), str(two))
    done = planrun("execute", "plan.yml", "--approval", "approvals/a.json", cwd=two)
    assert done.returncode == 0, done.stderr


def test_what_is_neither_tracked_nor_ignored_is_named(tmp_path: Path) -> None:
    """An untracked script is uncovered until it is added; an ignored one is neither covered nor named."""
    repository(tmp_path, {".gitignore": "ignored.sh\n"})
    for name in ("new.sh", "ignored.sh"):
        (tmp_path / name).write_text("true\n")
    plan = {"steps": [{"id": "a", "run": "bash new.sh; bash ignored.sh; bash missing.sh"}]}
    found = reviewed(tmp_path, plan)
    assert found.uncovered == {
        "missing.sh": "it does not exist when the run begins",
        "new.sh": "git does not track it",
    }
    git(tmp_path, "add", "new.sh")
    assert list(reviewed(tmp_path, plan).scripts) == ["new.sh"]


def test_files_of_a_submodule_and_behind_links_count(tmp_path: Path) -> None:
    """A submodule has an index of its own; a link counts by the content behind it, and one outside is named."""
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    for folder in (inner, outer):
        folder.mkdir()
    repository(inner, {"tool.sh": "1\n"})
    git(inner, "commit", "-q", "-m", "begin")
    repository(outer, {"real.sh": "1\n"})
    git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub")
    (outer / "link.sh").symlink_to("real.sh")
    (outer / "away.sh").symlink_to("../inner/tool.sh")
    git(outer, "add", "-A")
    plan = {"steps": [{"id": "a", "run": "bash sub/tool.sh; cat link.sh | sh; cat away.sh"}]}
    found = reviewed(outer, plan)
    assert {"sub/tool.sh", "link.sh"} <= found.scripts.keys()
    assert "leads out of the workspace" in found.uncovered["away.sh"]
    holds(outer, plan, "sub/tool.sh", "real.sh")


def test_the_limits_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies beyond them is named, whatever the order in which a folder is read."""
    from planrun.approval import scripts

    repository(tmp_path, {f"d/{number}.sh": f"{number}\n" for number in range(9)})
    plan = {"steps": [{"id": "a", "run": "run-parts d"}]}
    monkeypatch.setattr(scripts, "MOST_FILES", 4)
    found = reviewed(tmp_path, plan)
    assert sorted(found.scripts) == [f"d/{number}.sh" for number in range(4)]
    assert "further files" in " ".join(found.uncovered)
    monkeypatch.setattr(scripts, "MOST_TEXT", 5)
    assert (
        "the files that other files name"
        in reviewed(tmp_path, {"steps": [{"id": "a", "run": "cat 1.sh 2.sh 3.sh"}]}).uncovered
    )


def test_what_was_found_before_counts_until_a_file_changes(planrun: Run, tmp_path: Path) -> None:
    """A run without policies takes it from the cache: the digest is that of a search for each state of the files."""
    repository(tmp_path, {SCRIPT: ". ./lib.sh\n", "lib.sh": "true\n"})
    plan = {"steps": [{"id": "a", "run": "bash deploy.sh"}]}

    def digest() -> str:
        assert planrun("execute", "plan.yml").returncode == 0
        found: dict[str, Any] = json.loads((tmp_path / "planrun-out" / "ledger.json").read_bytes())
        return str(found["plan"]["digest"])

    seen = []
    for change in (None, "lib.sh", SCRIPT, "new.py"):
        if change:
            (tmp_path / change).write_text(f"true # {change} new.py\n")
            git(tmp_path, "add", "-A")
        expected = reviewed(tmp_path, plan).digest
        assert digest() == digest() == expected
        seen.append(expected)
    assert len(set(seen)) == 4


UNNAMED: dict[str, dict[str, Any]] = {
    "zsh": {"steps": [{"id": "a", "run": "frob", "shell": ["zsh", "-c"]}]},
    "a shell that is not known": {"steps": [{"id": "a", "run": "true", "shell": ["frob", "-c"]}]},
    "python": {"steps": [{"id": "a", "run": "subprocess.run(x)", "shell": ["python3", "-c"]}]},
    "HOME of the plan": {"env": {"HOME": "."}, "steps": [{"id": "a", "run": "git fetch"}]},
    "settings of the step": {"steps": [{"id": "a", "run": "git fetch", "env": {"XDG_CONFIG_HOME": "."}}]},
    "exec": {"steps": [{"id": "a", "exec": ["env", "HOME=.", "git", "fetch"]}]},
    "exec of awk": {"steps": [{"id": "a", "exec": ["awk", 'BEGIN{system("frob")}']}]},
    "file of variables": {"steps": [{"id": "a", "run": "true", "env_file": "e.env"}]},
}


@pytest.mark.parametrize("name", UNNAMED)
def test_a_plan_that_runs_what_nothing_names(tmp_path: Path, name: str) -> None:
    """Other shells, folders of programs and settings, calls in other languages: the plan is not covered in full."""
    repository(tmp_path, {"e.env": "PATH=.\n"})
    assert reviewed(tmp_path, UNNAMED[name]).uncovered
