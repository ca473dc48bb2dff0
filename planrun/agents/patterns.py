"""What errors of tools look like, in one table: each pattern is a whole line, and says what helps.

A pattern is matched line by line from the beginning to the end of a line, so a word inside of a sentence is no error.
The first row that matches counts; rows for special cases stand before general ones.
"""

from __future__ import annotations

import re

from planrun.model.record import Record

CATEGORIES = (
    "file_not_found",
    "permission_denied",
    "policy_denied",
    "command_not_found",
    "syntax_error",
    "compilation_error",
    "test_failure",
    "timeout",
    "network_error",
    "rate_limit",
    "resource_error",
    "invalid_args",
    "configuration_error",
    "dependency_error",
    "edit_mismatch",
    "conflict",
    "encoding_error",
    "logic_error",
    "unknown",
)
"""What an error can be; a model that analyses one chooses from these, too."""


class Pattern(Record):
    """One kind of error.

    `regex`: of a whole line; its group `path` is a path that was not found, `name` what else it is about.
    `suggested_fix`: a command or an action, with `{name}` and `{path}` filled in. `alternative`: another tool. `fix`:
    what planrun itself can try where it is allowed to: `path` repeats a reading tool with the path that was meant.
    """

    id: str
    category: str
    regex: re.Pattern[str]
    suggestion: str
    should_retry: bool = False
    suggested_fix: str = ""
    alternative: str = ""
    fix: str = ""


def _row(name: str, category: str, regex: str, suggestion: str, **more: str | bool) -> Pattern:
    whole = re.compile(rf"^(?:{regex})$", re.MULTILINE)
    return Pattern(id=name, category=category, regex=whole, suggestion=suggestion, **more)  # type: ignore[arg-type]


# A part of a line that stands before the message: programs, files, numbers. Bounded, so that no line takes long.
_BEFORE = r"[^\n]{0,300}?"
_OPEN, _CLOSE = "['\"`\u2018]", "['\"`\u2019]"  # quotes, also those of GNU programs
_PATH = rf"(?:{_OPEN}(?P<path>[^'\"`\u2019\n]{{1,300}}){_CLOSE}|(?P<bare>[^\s:'\"`]{{1,300}}))"
_FIND_FILE = "look for the file by its name: glob `**/NAME`"

PATTERNS = (
    # What planrun itself refuses.
    _row(
        "policy-denied",
        "policy_denied",
        r"(?:denied|refused) by (?:the )?(?:policy|rule|step|ceiling)\b[^\n]*|denied: [^\n]{1,500} \[[^\]\n]{1,200}\]",
        "The policy does not allow this call. It will not be allowed the next time either.",
        alternative="request_tool",
    ),
    _row(
        "tool-path-outside",
        "invalid_args",
        _BEFORE + r": (?:a path has to be relative, and in the workspace|a path must not lead upwards)",
        "Tools work in the workspace only. Name a path relative to it, without `..`.",
        should_retry=True,
    ),
    # Files.
    _row(
        "tool-no-such-file",
        "file_not_found",
        r"(?:(?:agent|file)\.\w{1,20}: )?(?P<path>[^\n]{1,300}): there is no such (?:file|folder)"
        r"(?:; `write` makes one)?",
        "The path does not exist in the workspace. Search for the file before the next call.",
        suggested_fix=_FIND_FILE,
        alternative="glob",
        fix="path",
    ),
    _row(
        "python-no-such-file",
        "file_not_found",
        r"FileNotFoundError: \[Errno 2\] No such file or directory: '(?P<path>[^'\n]{1,300})'[^\n]{0,300}",
        "The program opened a path that does not exist. Check the path and the folder that it runs in.",
        suggested_fix=_FIND_FILE,
        alternative="glob",
    ),
    _row(
        "node-no-such-file",
        "file_not_found",
        _BEFORE + r"ENOENT: no such file or directory, \w{1,20} '(?P<path>[^'\n]{1,300})'",
        "The program opened a path that does not exist. Check the path and the folder that it runs in.",
        suggested_fix=_FIND_FILE,
        alternative="glob",
    ),
    _row(
        "git-unknown-path",
        "file_not_found",
        r"error: pathspec '(?P<path>[^'\n]{1,300})' did not match any file\(s\) known to git\.?",
        "Git knows no such file. List the files that it has.",
        suggested_fix="git ls-files",
        alternative="glob",
    ),
    _row(
        "command-not-found",
        "command_not_found",
        r"[^\n]{0,100}?: (?:line \d{1,9}: |\d{1,9}: )?(?P<name>[\w./+-]{1,100}): (?:command )?not found"
        rf"|env: {_OPEN}?(?P<other>[\w./+-]{{1,100}}){_CLOSE}?: No such file or directory",
        "The program is not installed here, or not on the PATH.",
        suggested_fix="command -v {name}",
        alternative="bash",
    ),
    _row(
        "no-such-file",
        "file_not_found",
        _BEFORE + _PATH + r": No such file or directory",
        "The file or folder does not exist. Search for it, or check how it is spelled.",
        suggested_fix=_FIND_FILE,
        alternative="glob",
        fix="path",
    ),
    _row(
        "no-such-file-plain",
        "file_not_found",
        r"(?:(?:[Ff]ile|[Pp]ath|[Ff]older|[Dd]irectory) not found|[Nn]o such (?:file|folder|path)):? "
        + _PATH
        + r"\.?",
        "The file or folder does not exist. Search for it, or check how it is spelled.",
        suggested_fix=_FIND_FILE,
        alternative="glob",
        fix="path",
    ),
    _row(
        "file-does-not-exist",
        "file_not_found",
        r"(?:The )?(?:[Ff]ile|[Pp]ath|[Ff]older|[Dd]irectory):? "
        + _PATH
        + r" (?:(?:was )?not found|does not exist)\.?",
        "The file or folder does not exist. Search for it, or check how it is spelled.",
        suggested_fix=_FIND_FILE,
        alternative="glob",
        fix="path",
    ),
    _row(
        "is-a-folder",
        "invalid_args",
        rf"{_BEFORE}: (?:Is a directory|it is a folder[^\n]{{0,200}})|IsADirectoryError: [^\n]*",
        "The path is a folder, and the tool takes a file.",
        should_retry=True,
        alternative="list_dir",
    ),
    _row(
        "no-folder",
        "invalid_args",
        rf"{_BEFORE}: (?:Not a directory|it is no folder)|NotADirectoryError: [^\n]*",
        "A part of the path is a file, and no folder.",
        should_retry=True,
        alternative="tree",
    ),
    _row(
        "read-only-system",
        "permission_denied",
        rf"{_BEFORE}: Read-only file system",
        "The sandbox or the system does not allow writing there. Write inside of the workspace.",
    ),
    _row(
        "permission-denied",
        "permission_denied",
        rf"{_BEFORE}: Permission denied\.?|PermissionError: \[Errno (?:1|13)\][^\n]*"
        rf"|{_BEFORE}EACCES: permission denied[^\n]*|{_BEFORE}: Operation not permitted",
        "The user or the sandbox has no permission. Use a path inside of the workspace; do not change modes.",
    ),
    # Edits and git.
    _row(
        "edit-no-match",
        "edit_mismatch",
        r"[^\n]{0,300}?(?:old_str|old_text|the text|the search text)[^\n]{0,100}? "
        r"(?:(?:was |is )?not found|does not (?:occur|match|stand in it)|has no match)[^\n]{0,200}",
        "The file does not contain this text. Read the file again, and copy the text exactly.",
        should_retry=True,
        suggested_fix="read the file, then edit with its current text",
        alternative="read",
    ),
    _row(
        "edit-ambiguous",
        "edit_mismatch",
        r"[^\n]{0,300}?(?:old_str|old_text|the text|the search text)[^\n]{0,100}? "
        r"(?:occurs|matches|stands there|stands in it|was found) (?:\d{1,9} times|more than once|twice)[^\n]{0,200}",
        "The text occurs several times. Add lines around it until it is unique.",
        should_retry=True,
    ),
    _row(
        "patch-failed",
        "edit_mismatch",
        r"error: patch failed: [^\n]{1,300}:\d{1,9}|error: [^\n]{1,300}: patch does not apply"
        r"|Hunk #\d{1,9} FAILED at \d{1,9}\b[^\n]*|it does not fit, not even by merging; nothing was changed",
        "The patch was made for another text. Read the file again, and make the patch anew.",
        should_retry=True,
        suggested_fix="read the file, then write the patch for its current text",
        alternative="edit",
    ),
    _row(
        "merge-conflict",
        "conflict",
        r"CONFLICT \([^)\n]{1,100}\): [^\n]+"
        r"|error: Your local changes to the following files would be overwritten[^\n]*",
        "Two changes of the same lines conflict. Look at both before one of them is kept.",
        suggested_fix="git status",
        alternative="diff",
    ),
    _row(
        "git-locked",
        "resource_error",
        r"fatal: Unable to create '[^'\n]{1,300}\.lock': File exists\.",
        "Another git process works in this repository. Wait for its end.",
        should_retry=True,
    ),
    _row(
        "no-repository",
        "configuration_error",
        r"fatal: not a git repository[^\n]*",
        "The folder is no git repository. Check the folder that the command runs in.",
    ),
    # Dependencies.
    _row(
        "python-module",
        "dependency_error",
        r"(?:E {1,6})?ModuleNotFoundError: No module named '(?P<name>[\w.]{1,200})'",
        "The Python module is not installed here, or the path of the imports is wrong.",
        suggested_fix="install what the project declares; do not guess a package by the name `{name}`",
        alternative="grep",
    ),
    _row(
        "python-import",
        "dependency_error",
        r"(?:E {1,6})?ImportError: (?:cannot import name '(?P<name>[\w.]{1,200})'|attempted relative import)[^\n]*",
        "The module does not have this name. Look at what it defines, and at its version.",
        alternative="grep",
    ),
    _row(
        "node-module",
        "dependency_error",
        r"(?:Error(?: \[ERR_MODULE_NOT_FOUND\])?: )?Cannot find (?:module|package) '(?P<name>[^'\n]{1,200})'[^\n]*",
        "The module is not installed, or its path is wrong.",
        suggested_fix="npm ci",
        alternative="read",
    ),
    _row(
        "go-module",
        "dependency_error",
        rf"{_BEFORE}(?:cannot find package|no required module provides package|missing go\.sum entry)\b[^\n]*",
        "The Go module is not among the requirements.",
        suggested_fix="go mod tidy",
    ),
    _row(
        "rust-crate",
        "dependency_error",
        r"error: no matching package(?: named `(?P<name>[\w-]{1,100})`)? found[^\n]*"
        r"|error\[E0432\]: unresolved import [^\n]*",
        "The crate is not among the dependencies, or has another name.",
        alternative="read",
    ),
    _row(
        "python-package",
        "dependency_error",
        r"ERROR: (?:Could not find a version that satisfies the requirement|No matching distribution found for)"
        r" (?P<name>\S{1,200})[^\n]*",
        "No package index that is reachable here has this version.",
        alternative="read",
    ),
    _row(
        "npm-conflict",
        "dependency_error",
        r"npm (?:ERR!|error) code (?:ERESOLVE|E404|ETARGET)",
        "The versions of the packages exclude each other, or one does not exist.",
        alternative="read",
    ),
    # Limits of the network and the machine.
    _row(
        "rate-limit",
        "rate_limit",
        rf"{_BEFORE}\b(?:HTTP(?:/[\d.]+)?(?: [Ee]rror)?|status(?: code)?)[: ]{{1,3}}429\b[^\n]*"
        rf"|{_BEFORE}[Rr]ate limit exceeded\b[^\n]*",
        "The service takes no more requests for now. Wait before the next one.",
        should_retry=True,
    ),
    _row(
        "service-down",
        "network_error",
        rf"{_BEFORE}\b(?:HTTP(?:/[\d.]+)?(?: [Ee]rror)?|status(?: code)?)[: ]{{1,3}}(?:500|502|503|504)\b[^\n]*",
        "The service is not available for now.",
        should_retry=True,
    ),
    _row(
        "certificate",
        "configuration_error",
        rf"{_BEFORE}(?:certificate verify failed|self[- ]signed certificate)\b[^\n]*",
        "The certificate is not trusted here. Do not turn the check off.",
    ),
    _row(
        "no-connection",
        "network_error",
        rf"{_BEFORE}(?:Connection refused|Connection reset by peer|Connection timed out|Network is unreachable"
        r"|No route to host|Temporary failure in name resolution|Name or service not known"
        r"|Could not resolve host: \S{1,200}|ECONNREFUSED[^\n]{0,100}|ECONNRESET|ETIMEDOUT[^\n]{0,100})\.?",
        "There is no connection. The sandbox may not allow this host; otherwise try again.",
        should_retry=True,
    ),
    _row(
        "timeout",
        "timeout",
        rf"(?:[Tt]he )?(?:command|tool|step|process|test)\b[^\n]{{0,200}}? (?:timed out|took longer than)\b[^\n]*"
        rf"|(?:{_BEFORE}\.)?Timeout(?:Error|Expired)\b[^\n]*|{_BEFORE}: Operation timed out|timeout after \d[^\n]*",
        "The call took too long. Do less at once, or look for what it waits for.",
        should_retry=True,
        suggested_fix="run a part of it: one test, one folder",
    ),
    _row(
        "disk-full",
        "resource_error",
        rf"{_BEFORE}: No space left on device|OSError: \[Errno 28\][^\n]*|{_BEFORE}: Disk quota exceeded",
        "The disk is full. Nothing can be written before there is space.",
    ),
    _row(
        "no-memory",
        "resource_error",
        rf"MemoryError|Killed|{_BEFORE}: Cannot allocate memory|{_BEFORE}JavaScript heap out of memory",
        "The memory is used up. Work on less at once.",
        suggested_fix="run fewer jobs at once",
    ),
    _row(
        "too-many-files",
        "resource_error",
        rf"{_BEFORE}: Too many open files|{_BEFORE}: Resource temporarily unavailable",
        "A limit of the system is reached. Work on less at once.",
        should_retry=True,
    ),
    _row(
        "port-in-use",
        "resource_error",
        rf"{_BEFORE}(?:Address already in use|EADDRINUSE\b[^\n]{{0,200}})",
        "Another process uses the port. Take a free one.",
        suggested_fix="let the system choose: port 0",
    ),
    # Commands.
    _row(
        "unbound-variable",
        "configuration_error",
        r"[^\n]{0,200}?: (?P<name>[A-Za-z_]\w{0,100}): (?:unbound variable|parameter (?:null or )?not set)",
        "The variable is not set in this step.",
        suggested_fix="declare `{name}` under `env`, or give it a default",
        alternative="env",
    ),
    _row(
        "wrong-option",
        "invalid_args",
        rf"{_BEFORE}(?:unrecognized (?:arguments?|options?)|invalid option|unknown (?:option|flag)|illegal option"
        r"|No such option|unexpected argument)\b[^\n]{0,200}",
        "The program does not know this option. Read its help first.",
        should_retry=True,
        suggested_fix="call it with --help",
    ),
    # Syntax, before compilers: theirs look alike.
    _row(
        "json-syntax",
        "syntax_error",
        r"(?:json\.decoder\.)?JSONDecodeError: [^\n]+|SyntaxError: Unexpected (?:token|end)\b[^\n]*JSON[^\n]*"
        r"|(?:jq: |parse )error\b[^\n]*|[^\n]{0,300}: it is no JSON: [^\n]+",
        "The text is no valid JSON. Look at the place that is named.",
        alternative="read",
    ),
    _row(
        "yaml-syntax",
        "syntax_error",
        r"yaml\.(?:scanner|parser|composer)\.\w{1,40}Error: [^\n]*|(?:scan|pars)ing error in \"[^\n]+",
        "The text is no valid YAML. Look at the place that is named.",
        alternative="read",
    ),
    _row(
        "python-syntax",
        "syntax_error",
        r"(?:E {1,6})?(?:SyntaxError|IndentationError|TabError): [^\n]+",
        "The Python file cannot be parsed. Look at the line above the message.",
        suggested_fix="python -m py_compile FILE",
        alternative="read",
    ),
    _row(
        "shell-syntax",
        "syntax_error",
        r"[^\n]{0,200}?: (?:line \d{1,9}: )?(?:syntax error\b[^\n]*|unexpected EOF while looking for matching [^\n]+)",
        "The shell cannot parse the command. Check quotes and brackets.",
        should_retry=True,
    ),
    # Compilers.
    _row(
        "typescript",
        "compilation_error",
        r"[^\s(]{1,300}\(\d{1,9},\d{1,9}\): error TS\d{1,6}: [^\n]+"
        r"|[^\s:]{1,300}:\d{1,9}:\d{1,9} - error TS\d{1,6}: [^\n]+",
        "TypeScript does not accept the code at the place that is named.",
        alternative="read",
    ),
    _row(
        "compiler",
        "compilation_error",
        r"[^\s:]{1,300}:\d{1,9}(?::\d{1,9})?: (?:fatal )?error: [^\n]+",
        "The compiler does not accept the code at the place that is named. Correct the first error first.",
        alternative="read",
    ),
    _row(
        "rust-compiler",
        "compilation_error",
        r"error\[E\d{4}\]: [^\n]+|error: could not compile `[^\n]+",
        "The Rust compiler does not accept the code. The lines below name the place.",
        suggested_fix="cargo check",
        alternative="read",
    ),
    _row(
        "go-compiler",
        "compilation_error",
        r"(?:vet: )?[^\s:]{1,300}\.go:\d{1,9}:\d{1,9}: [^\n]+",
        "The Go compiler does not accept the code at the place that is named.",
        suggested_fix="go build ./...",
        alternative="read",
    ),
    _row(
        "linker",
        "compilation_error",
        r"collect2: error: [^\n]+|[^\n]{0,300}?: undefined reference to [^\n]+"
        r"|ld: [^\n]{0,200}(?:not found|undefined)[^\n]*",
        "A symbol or a library is missing when the program is linked.",
        alternative="grep",
    ),
    _row(
        "make",
        "compilation_error",
        r"make(?:\[\d{1,3}\])?: \*\*\* [^\n]+",
        "A rule of make failed. The first error above it is the cause.",
        alternative="read",
    ),
    # Tests and programs.
    _row(
        "tests-failed",
        "test_failure",
        r"FAILED \S{1,300}(?:::| - )[^\n]*|=+ [^\n]{0,100}\b\d{1,9} (?:failed|errors?)\b[^\n]{0,200} =+"
        r"|--- FAIL: [^\n]+|Tests:\s{1,20}\d{1,9} failed\b[^\n]*|test result: FAILED\.[^\n]*"
        r"|FAILED \(\w+=\d{1,9}[^\n]*",
        "Tests failed. Read the first failure before the code is changed.",
        suggested_fix="run the first failing test alone",
        alternative="read",
    ),
    _row(
        "null-access",
        "logic_error",
        r"(?:Uncaught )?TypeError: (?:Cannot read propert(?:y|ies) of (?:undefined|null)"
        r"|[^\n]{1,200} is not a function)[^\n]*"
        r"|AttributeError: 'NoneType' object has no attribute [^\n]+|java\.lang\.NullPointerException\b[^\n]*",
        "A value is missing where the code expects one. Look for where it should be set.",
        alternative="read",
    ),
    _row(
        "encoding",
        "encoding_error",
        r"Unicode(?:Decode|Encode)Error: [^\n]+|[^\n]{1,300}: it is no UTF-8 text: byte \d[^\n]*",
        "The file is no UTF-8 text. It may be binary, or in another encoding.",
    ),
    _row(
        "assertion",
        "logic_error",
        r"AssertionError\b[^\n]*|[^\n]{0,200}: Assertion [`'][^\n]+ failed\.",
        "A condition that the code relies on does not hold.",
        alternative="read",
    ),
    _row(
        "exception",
        "logic_error",
        r"(?:TypeError|AttributeError|NameError|KeyError|IndexError|ValueError|UnboundLocalError|ZeroDivisionError"
        r"|RecursionError|ReferenceError|RangeError)(?:: [^\n]+)?|panic: [^\n]+"
        r"|thread '[^'\n]{1,100}' (?:\(\d+\) )?panicked at [^\n]+"
        r"|Exception in thread \"[^\"\n]{1,100}\" [^\n]+",
        "The program failed with an exception. The lines above it name the place.",
        alternative="read",
    ),
    _row(
        "usage",
        "invalid_args",
        r"[Uu]sage: [^\n]+",
        "The program was called in a wrong way. Its usage says what it takes.",
        should_retry=True,
    ),
)
