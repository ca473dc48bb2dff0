"""The rules of the classes, each by texts that are just inside and just outside of it."""

from __future__ import annotations

import pytest

from planrun.risk.classifier import Setting, classify, classify_argv

READ_ONLY = r"""
ls -la
ls *.toml
cat src/*.py
! grep -q x a.txt
time ls
time -p ls
timeout 5 ls
nice -n 5 ls
env FOO=1 ls
FOO=1 ls
ls # a comment with a ' quote
ls && pwd || true
(cd src && ls)
{ ls; pwd; } 2>/dev/null
if [ -f a ]; then cat a; elif [ -d b ]; then ls b; else pwd; fi
for f in a.txt b.txt; do cat "$f"; done
for f in a.txt b.txt; do cat $f; done
case x in a|b) ls;; *) pwd;; esac
echo "$HOME_PAGE"
echo "$(git rev-parse HEAD)" "`date`"
echo $?
echo "$((1 + 2))"
printf '%s\n' "$NAME"
[ -n "$CI" ]
test "$A" = b
[[ -n "$CI" && "$A" == b* ]]
cat <<'EOF'
cat <<< text
X=src; ls $X
X=src; ls "$X/a"
sed -n '/a/,/b/p;$d' a.txt
sed 's/a\/b/c/g; s|x|y|' a.txt
awk '$3 > 5 {print $1}' data.txt
find . -name '*.py' -newer a.txt
git -C sub log
ls /usr/bin
command -v make
export LC_ALL=C; ls
set -euo pipefail; ls
"""
LOW = r"""
echo x > VERSION
ls > build/list 2>&1
ls &> build/list
: > build/empty
cd build && touch x
cd src && echo x > ../out.txt
for d in a b; do mkdir -p "build/$d"; done
(cd src; touch x)
tar czf x.tgz src
ln -s a.txt b.txt
git -C sub add .
"""
MEDIUM = r"""
rm -rf build
rm -rf ./build/../dist
cd build && rm -rf out
find . -name '*.pyc' -delete
./run.sh --fast
bash -eu scripts/x.sh
source env.sh
curl -fsS https://example.com/x -o build/x
make -C sub test
[ -d build ] && rm -rf build || true
if make lint; then make test; fi
tar xf a.tar -C build
git pull --ff-only
PYTHONPATH=src pytest
"""
HIGH = r"""
cd build; rm -rf ../x/..
cd src && echo x > ../../out.txt
cd "$D" && ls
cd src && rm -rf ..
rm -rf build/..
rm -rf .
rm -rf ""
rm -rf "$X"
rm -rf build/*
X=a; X=b; ls $X
X=a | true; cat $X
if x; then X=a; fi; cat $X
read X; cat "$X"
for X in a b; do ls; done; cat "$X"
for X in *; do cat "$X"; done
for X in "$@"; do ls; done
cat $FILE
cat "$FILE"
echo $X
echo "$GITHUB_TOKEN"
echo "${X:-y}"
echo "$@"
ls $(pwd)
cat "$(pwd)/x"
echo "$(rm -rf x/*)"
"l"s" -la
ls -la &
trap 'rm x' EXIT
f() { ls; }
coproc ls
while true; do ls; done
until ls; do pwd; done
select x in a b; do ls; done
for ((i=0;i<3;i++)); do ls; done
((x=1))
echo $[1+1]
ls {a,b}
ls {1..3}
ls ~root
cat ~/.ssh/id_rsa
cat $HOME/x
echo a > ~/x
echo x > /tmp/x
echo x > .git/config
echo x >> .bashrc
echo x > .planrun/x
echo x > "$F"
echo x > *.txt
cat .env.local
cat .e*
cat ../x
ls {fd}> x
ls <> x
cat < ~/.netrc
cat <<EOF
cat <<EOF > x
ls |
ls ;; ls
if ls; then; fi
{ }
()
( ls
ls )
case x in y) ls
ls 'a
ls "a
ls `a
ls \
PATH=. ls
LD_PRELOAD=x ls
GIT_DIR=x git log
PYTHONPATH=/x pytest
a[0]=1
a=(1 2)
./a=b
X=1 $X
timeout 5
env
env -i ls
nice
sudo ls
git -c a=b log
git --no-such log
git log --output=x
git push
git checkout README.md
git checkout .
git commit
git config --list
sort -o /etc/x a
tar xf a.tar -C /
tar cf host:x a
sed -i s/a/b/ /etc/x
sed 'r /etc/shadow' a
sed e a
sed -f x a
awk '{print > "x"}' a
awk '{print | "sh"}' a
awk -f x a
jq 'env' a
find . -name '*' -delete
find . -delete -name x
find . -name x -o -delete
find . -exec rm {} +
curl -d @x https://example.com
curl file:///etc/passwd
curl https://user:pw@example.com
wget -i x
xargs ls
exec ls
eval ls
bash
bash -c ls
bash -x
python3 -
ls -Z9z
ls --al
sleep infinity &
curl -o a.sh https://example.com/a && bash a.sh
echo ls > a.sh; ./a.sh
git clone https://example.com/x && make -C x
"""


def texts(block: str) -> list[str]:
    """Return the lines of a table."""
    return [line for line in block.split("\n") if line]


@pytest.mark.parametrize("text", texts(READ_ONLY))
def test_what_only_reads_is_read_only(text: str) -> None:
    """Reading, and constructs that are looked through, are read-only."""
    whole = text + "\n$x\nEOF\n" if "<<'EOF'" in text else text
    assert classify(whole).level == "read-only", classify(whole).reason


@pytest.mark.parametrize("text", texts(LOW))
def test_what_writes_in_the_workspace_is_low(text: str) -> None:
    """Ordinary files of the workspace may be written."""
    assert classify(text).level == "low", classify(text).reason


@pytest.mark.parametrize("text", texts(MEDIUM))
def test_what_runs_deletes_by_name_or_fetches_is_medium(text: str) -> None:
    """Code of the project, named deletion inside the workspace and fetching are medium."""
    assert classify(text).level == "medium", classify(text).reason


@pytest.mark.parametrize("text", texts(HIGH))
def test_everything_else_is_high(text: str) -> None:
    """What is dangerous, not known before it runs, or not understood, is high."""
    assert classify(text).level == "high"


@pytest.mark.parametrize(
    "sign", ["\r", "\x00", "\x1b", "\xa0", "\u200b", "\u202e", "\uff4c", "\u3164", "\ufe0f", "\ud800"]
)
def test_a_character_that_hides_or_mimics_makes_a_text_high(sign: str) -> None:
    """Wherever it stands, also in a comment or a quoted word."""
    for text in (f"ls {sign}", f"echo 'a{sign}'", f"ls # {sign}"):
        assert classify(text).level == "high"


def test_letters_of_any_language_are_fine() -> None:
    """A word may be written in any script."""
    assert classify("echo 'Übersicht 概要 ✓'").level == "read-only"


def test_what_is_known_of_the_setting_counts() -> None:
    """Known variables, places and the workspace's own path make a text certain."""
    setting = Setting(
        cwd="sub",
        variables={"PLANRUN_OUTPUT": "/run/x/out", "ROOT": "/w"},
        places=("/run/x",),
        workspace="/w",
    )
    assert classify('echo "sha=$(git rev-parse HEAD)" >> "$PLANRUN_OUTPUT"', setting).level == "low"
    assert classify("cat ../a.txt", setting).level == "read-only"
    assert classify("cat ../../a.txt", setting).level == "high"
    assert classify('cat "$ROOT/a.txt"', setting).level == "read-only"
    assert classify("cat /w/.env", setting).level == "high"
    assert classify('PLANRUN_OUTPUT=/etc/x; echo a > "$PLANRUN_OUTPUT"', setting).level == "high"
    assert classify("rm -rf /w", setting).level == "high"


@pytest.mark.parametrize("hole", ["\ue000", "\ue001"])
def test_a_value_that_is_put_in_counts_as_unknown(hole: str) -> None:
    """It is fine as an argument of echo, and nowhere else."""
    assert classify(f"echo {hole}").level == "read-only"
    for text in (
        f"{hole}",
        f"cat {hole}",
        f"rm -rf {hole}",
        f"ls {hole}",
        f"echo a >{hole}",
        f"cd {hole}",
    ):
        assert classify(text).level == "high", text


@pytest.mark.parametrize(
    "text", ["echo '\ue001'", 'echo "\ue001"', "# \ue001", "cat <<'E'\n\ue001\nE", "echo `\ue001`"]
)
def test_a_quoted_value_between_quotes_is_not_understood(text: str) -> None:
    """Its own quotes would end those around it."""
    assert not classify(text).understood


def test_values_that_change_what_a_sign_means_are_not_understood() -> None:
    """A value may be empty: then what follows it begins the word."""
    for text in ("ls \ue000#x", "ls \ue000~", "ls \ue000> x", "echo $A\ue000", "cat <<E\n\ue000\nE"):
        assert not classify(text).understood, text


def test_a_program_without_a_shell_gets_its_words_as_they_are() -> None:
    """Patterns, variables and tildes mean nothing; builtins do not exist."""
    assert classify_argv(("rm", "-rf", "*")).level == "medium"
    assert classify_argv(("ls", "$HOME", "~")).level == "read-only"
    assert classify_argv(("cat", "/etc/shadow")).level == "high"
    assert classify_argv(("cd", "src")).level == "high"
    assert classify_argv(("timeout", "5", "source", "x.sh")).level == "high"
    assert classify_argv(("bash", "-c", "ls")).level == "high"
    assert classify_argv(()).level == "high"
    assert classify_argv(("./x.sh", "a b")).level == "medium"
    assert classify_argv(("cat", "\ue000")).level == "high"


def test_every_command_is_told_with_its_place() -> None:
    """Words, offsets and folders of the commands, in the order of the text."""
    text = 'cd src && cat "a b.txt" | wc -l; echo "$X"'
    found = classify(text).commands
    assert [command.words for command in found] == [
        ("cd", "src"),
        ("cat", "a b.txt"),
        ("wc", "-l"),
        ("echo", None),
    ]
    assert [text[slice(*command.spans[-1])] for command in found] == ["src", '"a b.txt"', "-l", '"$X"']
    assert [command.cwd for command in found] == ["", "src", "src", None]


def test_effects_say_what_may_happen() -> None:
    """The effects of a text are those of all its commands."""
    assert classify("ls").effects == ()
    assert classify("rm -rf build").effects == ("destroys",)
    assert classify("pytest > x; curl https://example.com").effects == ("code", "network", "writes")
    assert classify("frobnicate").effects == ("unknown",)


def test_what_publishes_and_what_takes_rights_is_told_besides_that_it_is_not_known() -> None:
    """A rule about an effect fits commands that are high in any use, however they are wrapped; others gain nothing."""
    for text in (
        "git push",
        "git -C sub push origin",
        "timeout 5 npm publish",
        "cargo publish",
        "docker push x",
        "twine upload x",
    ):
        assert classify(text).effects == ("network", "publishes", "unknown"), text
    assert classify("git push").reason == "`git push`: sends commits to a remote"
    assert classify("env").reason == "`env`: env: prints every variable"
    assert classify("frobnicate --all").reason == "`frobnicate --all`: frobnicate: unknown program"
    assert classify("sudo ls").effects == ("privilege", "unknown")
    assert classify("docker build .").effects == ("unknown",)
    assert classify("git commit -m push").effects == ("writes",)


def test_a_text_with_too_many_words_is_high() -> None:
    """There is an end to what is followed, so that an answer never takes long."""
    assert classify("ls" + " a" * 1499).level == "read-only"
    assert classify("ls" + " a" * 1500).level == "high"


@pytest.mark.parametrize(
    "path",
    [
        "plan.yml",
        "ci/release.plan.yaml",
        "plan.lock.json",
        "policy.yml",
        "ci/strict-policy.yaml",
        "ceiling.yml",
        "decisions.yml",
        "approvals/publish.json",
        "approvals/",
        "policies/main.yml",
        ".planrun/approvals.jsonl",
        ".github/CODEOWNERS",
        ".github/workflows/ci.yml",
        ".pre-commit-config.yaml",
    ],
)
def test_who_writes_what_planrun_goes_by_is_high(path: str) -> None:
    """Plans, locks, policies, approvals and answers under their usual names are no ordinary files of the workspace."""
    for text in (f"echo x > {path}x; cp a {path}", f"mv a {path}", f"cd . && touch ./{path}"):
        assert classify(text).level == "high", text
    assert classify(f"cat ./{path}").level == "read-only"


def test_folders_of_a_project_may_have_the_same_names() -> None:
    """Code in a folder `policies` or `approvals` is code."""
    assert classify("touch src/policies/rules.py app/approvals/views.ts").level == "low"
