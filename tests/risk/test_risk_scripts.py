"""Which files of the workspace a command runs."""

from __future__ import annotations

import pytest

from planrun.risk.classifier import Setting
from planrun.risk.scripts import runs_of, runs_of_argv


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("./x.sh a", ["x.sh"]),
        ("bash x.sh; sh -eu tools/y.sh", ["x.sh", "tools/y.sh"]),
        ("bash -o pipefail x.sh", ["x.sh"]),
        (". ./env.sh && source b.sh", ["env.sh", "b.sh"]),
        ("python3 tools/x.py; python3.12 y.py", ["tools/x.py", "y.py"]),
        ("node a.js; ruby b.rb; perl c.pl", ["a.js", "b.rb", "c.pl"]),
        ("cd sub && ./x.sh && cd .. && ./y.sh", ["sub/x.sh", "y.sh"]),
        ("(cd sub && ./x.sh); ./y.sh", ["sub/x.sh", "y.sh"]),
        ("timeout 5 nice -n 3 env A=b ./x.sh", ["x.sh"]),
        ("sudo ./x.sh &", ["x.sh"]),
        ("f() { ./x.sh; }", ["x.sh"]),
        ("while true; do ./x.sh; done", ["x.sh"]),
        ('echo "$(./x.sh)"', ["x.sh"]),
        ("for f in a.sh b.sh; do bash $f; done", ["a.sh", "b.sh"]),
        ("cd sub; ./x.sh", ["sub/x.sh", "x.sh"]),
        ("python -m x; python -c 1; bash -c ./x.sh", []),
        ("/bin/ls; ls x.sh; ../x.sh; $X", []),
        ("ls 'a", []),
    ],
)
def test_the_files_that_a_text_runs(text: str, paths: list[str]) -> None:
    """They are found by the text alone, whatever the class of the text is."""
    assert sorted(script.path for script in runs_of(text).scripts) == sorted(paths)


def test_a_file_is_told_with_its_place_in_the_text() -> None:
    """The offsets are those of the word."""
    text = "cd sub && bash 'x y.sh'"
    (found,) = runs_of(text, Setting(cwd="top")).scripts
    assert found.path == "top/sub/x y.sh"
    assert text[found.start : found.end] == "'x y.sh'"


def test_the_file_that_a_program_without_a_shell_runs() -> None:
    """Its place is the index of the word."""
    (found,) = runs_of_argv(("bash", "-e", "./x.sh")).scripts
    assert (found.path, found.start, found.end) == ("x.sh", 2, -1)
    assert runs_of_argv(("ls", "x.sh")).scripts == ()
    assert runs_of_argv(("bash", "/x.sh")).scripts == ()
    (found,) = runs_of_argv(("/w/x.sh",), Setting(workspace="/w")).scripts
    assert found.path == "x.sh"
