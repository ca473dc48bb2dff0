"""`| sh` inside of quotes: found where it does not protect, with a real shell as the judge of what protects."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from planrun.expressions.parse import parse_script
from planrun.expressions.render import render_script
from planrun.plan.check.quoting import misplaced
from planrun.plan.load import check_bytes

if TYPE_CHECKING:
    from pathlib import Path

HOLE = "${{ params.x | sh }}"
HOSTILE = (
    "$(touch pwned)",
    "`touch pwned`",
    "'; touch pwned; '",
    '"; touch pwned; "',
    "a\ntouch pwned\nb",
    "a\nEOF\ntouch pwned\n",
    ";touch pwned;",
    " $(touch pwned) ",
    "` ; touch pwned ; `",
)
SAFE = (
    "echo @",
    "echo a@b",
    "echo 'it'@\"s\"",
    'echo "a"@"b"',
    "echo it\\'s @",
    'echo "say \\"hi\\"" @',
    "echo 'a\\' @",
    'echo "$(printf %s @)"',
    'echo "a $(echo "b $(echo @) c") d" @',
    "echo $(echo @)",
    "echo ${A:-@} @",
    'echo "${A:-none}" @',
    "# it's a comment\necho @",
    "echo a#'b' $# ${#A} @",
    "cat <<EOF\nit's text\nEOF\necho @",
    "cat <<'EOF'\n\"\nEOF\necho @",
    "cat <<-EOF\n\tit's\n\tEOF\necho @",
    'echo "$(cat <<EOF\nit\'s\nEOF\n)" @',
    "cat <<EOF @\nx\nEOF",
    "cat <<< @",
    "echo $((1 << 2)) @",
    "(( 1 < 2 )) && echo @",
    "case @ in (a) echo \"b\";; c) echo 'd';; esac; echo @",
    "a=(1 @); (echo @)",
    "echo $'it\\n' @",
    "if [[ @ == x* ]]; then echo @; fi",
    "f() { echo @; }; f",
    "echo a \\\n  @",
    "echo \\\\@",
    'for i in @; do echo "$i" >/dev/null; done',
)
WRONG = {
    'echo "@"': "inside double quotes",
    "echo '@'": "inside single quotes",
    'echo "a \\" @"': "inside double quotes",
    'echo "it\'s @"': "inside double quotes",
    'echo "$(echo a) @"': "inside double quotes",
    'echo "$(echo "@")"': "inside double quotes",
    'echo "${A:-@}"': "inside double quotes",
    "echo `echo @`": "inside backquotes",
    "echo $((@))": "inside `((…))`",
    "echo a # @": "in a comment",
    "cat <<EOF\n@\nEOF": "in a here-document",
    "cat <<'EOF'\n@\nEOF": "in a here-document",
    "cat <<-EOF\n\ta @\n\tEOF": "in a here-document",
    "echo \\@": "after a backslash",
}
DOUBTFUL = (
    'echo "$(case a in a) echo b;; esac) @"',
    "cat <<EOF\n@\n",
    "cat <<${{ run.id }}\n@\n",
    'echo "${A%\'}\'} @"',
)  # fmt: skip


def verdicts(script: str) -> list[tuple[str, bool]]:
    """Return where each misplaced interpolation of a script stands, and whether that is sure."""
    template = parse_script(script.replace("@", HOLE))
    assert not isinstance(template, str)
    return [(where, sure) for _tree, where, sure in misplaced(template)]


def pwned(script: str, folder: Path) -> bool:
    """Run a script with each hostile value in bash; say whether one of them was taken for code."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("this machine has no bash to judge by")
    template = parse_script(script.replace("@", HOLE))
    for value in HOSTILE:
        text = render_script(template, {"params": {"x": value}})
        subprocess.run(
            [bash, "-c", text], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=False
        )  # fmt: skip
    return (folder / "pwned").exists()


@pytest.mark.parametrize("script", SAFE)
def test_what_is_accepted_protects(script: str, tmp_path: Path) -> None:
    """Outside of quotes `| sh` is accepted, and bash takes no hostile value for code there."""
    assert verdicts(script) == []
    assert not pwned(script, tmp_path)


@pytest.mark.parametrize("script", WRONG)
def test_what_is_refused_does_not_protect(script: str, tmp_path: Path) -> None:
    """Inside of quotes `| sh` is an error with its place, and bash shows that it must be one."""
    ((where, sure),) = verdicts(script)
    assert sure
    assert where.startswith(WRONG[script])
    assert pwned(script, tmp_path)


@pytest.mark.parametrize("script", DOUBTFUL)
def test_what_is_not_certain_is_a_doubt(script: str) -> None:
    """Where the quotes cannot be followed, the finding says so."""
    assert [sure for _where, sure in verdicts(script)] == [False]


def test_interpolations_without_sh_are_valid_anywhere() -> None:
    """Values that are checked instead of quoted are harmless in quotes, and do not disturb what follows."""
    assert verdicts('echo "${{ params.a }}" @ \'${{ params.b }}\' <<< "${{ params.c }}" @') == []
    assert len(verdicts('echo "${{ params.a }}" @ \'${{ params.b }}\' "@"')) == 1


def plan(run: str, more: str = "") -> bytes:
    """Return a plan with one script."""
    return f"version: 1\nparams: {{x: {{type: string, default: a}}}}\nsteps:\n  - run: {run}\n{more}".encode()


def test_an_error_is_at_the_expression() -> None:
    """E218 is at the interpolation, keeps the plan from running, and names the fix."""
    (found,) = check_bytes(plan('echo "a ${{ params.x | sh }}"'), "plan.yml").problems
    assert (found.code, found.severity, found.line, found.col) == ("E218", "error", 4, 22)
    assert found.text == (
        "`| sh` inside double quotes does not protect the value;"
        " move the interpolation out of the quotes, or pass the value in `env:`"
    )


@pytest.mark.parametrize("shell", ["python3", "[node]", "pwsh -NoProfile"])
def test_another_shell_is_a_warning(shell: str) -> None:
    """A program other than a POSIX shell may read the quotes differently: W302, also by `defaults`."""
    for data in (
        plan("print(${{ params.x | sh }})", f"    shell: {shell}\n"),
        plan("print(${{ params.x | sh }})", f"defaults: {{shell: {shell}}}\n"),
    ):
        assert [(each.code, each.severity) for each in check_bytes(data, "p.yml").problems] == [
            ("W302", "warning")
        ]
    assert not check_bytes(
        plan("echo ${{ params.x | sh }}", "    shell: /usr/bin/env bash -eu\n"), "p"
    ).problems


@pytest.mark.parametrize("text", ["<<A\n" * 50_000 + "@", '"$(' * 50_000 + "@", "((`" * 50_000 + "@"])
def test_a_hostile_script_takes_no_time(text: str) -> None:
    """Documents without an end and substitutions inside each other are read in one pass."""
    assert len(verdicts(text)) <= 1
