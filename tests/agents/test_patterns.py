"""The table of error patterns: each knows real messages, and none takes a sentence for an error."""

from __future__ import annotations

import pytest

from planrun.agents.patterns import CATEGORIES, PATTERNS
from planrun.agents.reflection import category_of, matched

# What programs really print, by the pattern that has to know it.
REAL: dict[str, tuple[str, ...]] = {
    "policy-denied": (
        "denied by rule policy.rules[0]: words: prod",
        "refused by the policy",
        "denied: risk high is above low [llm_auto_approve]",
    ),
    "tool-path-outside": (
        "/etc/passwd: a path has to be relative, and in the workspace",
        "../x: a path must not lead upwards",
    ),
    "tool-no-such-file": ("src/app.py: there is no such file", "a/b: there is no such folder"),
    "python-no-such-file": ("FileNotFoundError: [Errno 2] No such file or directory: 'data/in.csv'",),
    "node-no-such-file": ("Error: ENOENT: no such file or directory, open '/app/config.json'",),
    "git-unknown-path": ("error: pathspec 'src/x.py' did not match any file(s) known to git",),
    "no-such-file": (
        "cat: notes.txt: No such file or directory",
        "ls: cannot access 'my file': No such file or directory",
        "bash: line 1: ./run.sh: No such file or directory",
        "grep: src/*.c: No such file or directory",
        "make: stat: \u2018x y\u2019: No such file or directory",
    ),
    "no-such-file-plain": ("File not found: src/x.py", "no such file: a.txt"),
    "file-does-not-exist": ("path 'src/x.py' does not exist", "The file src/x.py was not found."),
    "is-a-folder": ("cat: src: Is a directory", "IsADirectoryError: [Errno 21] Is a directory: 'src'"),
    "no-folder": ("ls: a/b: Not a directory", "docs: it is no folder"),
    "read-only-system": ("touch: cannot touch '/usr/x': Read-only file system",),
    "permission-denied": (
        "bash: ./run.sh: Permission denied",
        "PermissionError: [Errno 13] Permission denied: '/root/x'",
        "Error: EACCES: permission denied, mkdir '/usr/lib'",
    ),
    "edit-no-match": ("old_str was not found in src/a.py", "the text does not occur in src/a.py"),
    "edit-ambiguous": ("old_str occurs 3 times in src/a.py", "the text matches more than once"),
    "patch-failed": (
        "error: patch failed: src/a.py:12",
        "error: src/a.py: patch does not apply",
        "Hunk #1 FAILED at 7.",
    ),
    "merge-conflict": ("CONFLICT (content): Merge conflict in src/a.py",),
    "git-locked": ("fatal: Unable to create '/w/.git/index.lock': File exists.",),
    "no-repository": ("fatal: not a git repository (or any of the parent directories): .git",),
    "python-module": (
        "ModuleNotFoundError: No module named 'yaml'",
        "E   ModuleNotFoundError: No module named 'app.core'",
    ),
    "python-import": ("ImportError: cannot import name 'x' from 'y' (/w/y.py)",),
    "node-module": (
        "Error: Cannot find module 'express'",
        "Cannot find package 'vite' imported from /w/x.js",
    ),
    "go-module": ("main.go:4:2: no required module provides package example.com/x: go.mod file not found",),
    "rust-crate": (
        "error: no matching package named `serde2` found",
        "error[E0432]: unresolved import `foo`",
    ),
    "python-package": ("ERROR: No matching distribution found for nothere==9",),
    "npm-conflict": ("npm ERR! code ERESOLVE", "npm error code E404"),
    "rate-limit": (
        "curl: (22) The requested URL returned error: HTTP 429",
        "Error: Rate limit exceeded, retry later",
    ),
    "service-down": ("HTTP Error 503: Service Unavailable", "request failed with status code 502"),
    "certificate": ("curl: (60) SSL certificate problem: self-signed certificate",),
    "no-connection": (
        "curl: (7) Failed to connect to localhost port 1: Connection refused",
        "curl: (6) Could not resolve host: example.invalid",
        "Error: connect ECONNREFUSED 127.0.0.1:5432",
    ),
    "timeout": (
        "The command timed out after 120 seconds",
        "TimeoutError",
        "subprocess.TimeoutExpired: Command 'x' timed out after 5 seconds",
    ),
    "disk-full": (
        "cp: error writing 'x': No space left on device",
        "OSError: [Errno 28] No space left on device",
    ),
    "no-memory": (
        "MemoryError",
        "Killed",
        "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
    ),
    "too-many-files": ("bash: /dev/null: Too many open files",),
    "port-in-use": (
        "OSError: [Errno 98] Address already in use",
        "Error: listen EADDRINUSE: address already in use :::80",
    ),
    "command-not-found": (
        "bash: line 1: cargo: command not found",
        "/bin/sh: 1: cargo: not found",
        "env: \u2018node\u2019: No such file or directory",
        "env: 'node': No such file or directory",
    ),
    "unbound-variable": ("bash: line 3: TARGET: unbound variable",),
    "wrong-option": (
        "app.py: error: unrecognized arguments: --fast",
        "ls: unrecognized option '--x'",
        "ls: invalid option -- 'Y'",
    ),
    "json-syntax": (
        "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
        "jq: error (at <stdin>:1): Cannot index string",
        "a.json: it is no JSON: Expecting value at 1:1",
    ),
    "yaml-syntax": ("yaml.scanner.ScannerError: mapping values are not allowed here",),
    "python-syntax": ("SyntaxError: invalid syntax", "IndentationError: unexpected indent"),
    "shell-syntax": (
        "bash: line 1: syntax error near unexpected token `)'",
        "bash: line 2: unexpected EOF while looking for matching `\"'",
    ),
    "typescript": (
        "src/a.ts(3,7): error TS2322: Type 'x' is not assignable.",
        "src/a.ts:3:7 - error TS2304: Cannot find name.",
    ),
    "compiler": (
        "main.c:4:5: error: unknown type name 'foo'",
        "Main.java:3: error: ';' expected",
        "a.c:1:10: fatal error: x.h: not there",
    ),
    "rust-compiler": (
        "error[E0308]: mismatched types",
        'error: could not compile `app` (bin "app") due to 1 previous error',
    ),
    "go-compiler": ("./main.go:7:2: undefined: foo", "vet: ./main.go:7:2: undefined: foo"),
    "linker": (
        "collect2: error: ld returned 1 exit status",
        "a.o: in function `main': undefined reference to `foo'",
    ),
    "make": ("make: *** [Makefile:2: all] Error 1",),
    "tests-failed": (
        "FAILED tests/test_a.py::test_b - assert 1 == 2",
        "=========== 1 failed, 3 passed in 0.12s ===========",
        "--- FAIL: TestParse (0.00s)",
        "Tests:       1 failed, 4 passed, 5 total",
        "test result: FAILED. 1 passed; 1 failed; 0 ignored",
        "FAILED (failures=1)",
    ),
    "null-access": (
        "AttributeError: 'NoneType' object has no attribute 'name'",
        "TypeError: Cannot read properties of undefined (reading 'x')",
        "TypeError: foo is not a function",
    ),
    "encoding": (
        "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0",
        "x.bin: it is no UTF-8 text: byte 3",
    ),
    "assertion": ("AssertionError", "AssertionError: 1 != 2", "a.out: a.c:3: main: Assertion `x' failed."),
    "exception": (
        "KeyError: 'name'",
        "ZeroDivisionError: division by zero",
        "panic: runtime error: index out of range [3] with length 3",
        "thread 'main' panicked at src/main.rs:2:5:",
        'Exception in thread "main" java.lang.IllegalStateException: x',
    ),
    "usage": ("usage: app.py [-h] FILE", "Usage: app [OPTIONS]"),
}
# Sentences, logs and code that speak of errors without being one.
HARMLESS = (
    "this test checks that no such file is opened",
    "the parser reports: No such file or directory when it should not",
    "assert 'Permission denied' in output",
    "we handle timeouts and connection refused errors",
    "# raise KeyError when the name is not found",
    "3 passed, 0 failed in 0.1s",
    "fixed: command not found in the docs of cargo",
    "see usage: below",
    "HTTP 200 OK",
    "HTTP status 4290",
    "port 5029 and status code 5030",
    "def memory_error(): return 'MemoryError'",
    "Killed 3 mutants",
    "file: src/x.py",
    "path src/x.py",
    "ok",
    "",
)


def test_the_table_has_more_than_25_patterns_of_known_categories() -> None:
    """Each has an id of its own, a category, and a sentence for people; each category is used."""
    assert len(PATTERNS) >= 25
    assert len({pattern.id for pattern in PATTERNS}) == len(PATTERNS)
    assert {pattern.category for pattern in PATTERNS} == set(CATEGORIES) - {"unknown"}
    assert all(pattern.suggestion.endswith(".") for pattern in PATTERNS)
    assert len(CATEGORIES) >= 14
    assert set(REAL) == {pattern.id for pattern in PATTERNS}


MESSAGES = [(rule, message) for rule, messages in REAL.items() for message in messages]


@pytest.mark.parametrize(("rule", "message"), MESSAGES)
@pytest.mark.parametrize(
    "around", ["{}", "Traceback:\n  File x\n{}\n", "\x1b[31m{}\x1b[0m\nnote: see the log"]
)
def test_a_pattern_knows_what_programs_print(rule: str, message: str, around: str) -> None:
    """Alone, among other lines, and in colours."""
    found = matched(around.format(message))
    assert found is not None
    assert found[0].id == rule


@pytest.mark.parametrize("text", HARMLESS)
def test_a_sentence_about_errors_is_no_error(text: str) -> None:
    """A pattern is a whole line from its beginning to its end, never a word in it."""
    assert category_of(text) == "unknown"


def test_the_special_row_counts_before_the_general_one() -> None:
    """A file that a test did not find is a missing file, and the failed test beside it is not what helps."""
    text = "FAILED tests/test_a.py::test_b\ncat: in.txt: No such file or directory"
    assert category_of(text) == "file_not_found"


@pytest.mark.parametrize(
    "text",
    [
        "a: " * 20_000,
        "'" * 50_000,
        "error: " * 10_000 + ":1",
        ("x" * 599 + "\n") * 200,
        "= " * 40_000 + "1 failed",
        "usage:" * 10_000,
        ": : " * 10_000 + "not found",
    ],
)
def test_long_texts_made_for_backtracking_match_nothing(text: str) -> None:
    """The parts of a pattern are bounded; without bounds these texts would take hours."""
    assert matched(text) is None
