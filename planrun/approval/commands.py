"""The commands that stand in files: scripts, recipes, tasks, and calls in the code of other languages."""

from __future__ import annotations

import json
import re

from planrun.risk.defaults import files_read_by
from planrun.risk.scripts import Runs, functions_in, runs_of
from planrun.risk.tokens import HOLES
from planrun.risk.words import names_in

_SHELLS = names_in("sh bash dash ash ksh zsh bats")
_HOOKS = names_in(".husky .githooks .git-hooks hooks")
_BLOCKS = names_in("makefile gnumakefile bsdmakefile justfile .justfile")
_TASKS = tuple(names_in("taskfile lefthook .lefthook .pre-commit tox.ini mise .mise pyproject.toml procfile"))
_DATA = names_in(".yaml .yml .toml .ini .cfg .c .h .css .proto .graphql .lock .env")
_LONGEST = 80  # characters of a call that are shown
_FEW = 4  # variables of a Makefile in each other

_SHEBANG = re.compile(r"#![ \t]*(\S+)[ \t]*(.*)")
_COPIED = re.compile(
    r"^[ \t]*(?:COPY|ADD)(?:[ \t]+--(?!from)\S+)*[ \t]+\[?\"?\./?[\", \t].*$", re.MULTILINE | re.IGNORECASE
)
# Where a command may begin in a text that is not understood, and what stands before one there.
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*|\[\[ .*? \]\]", re.MULTILINE)
_PLACES = re.compile(r"[;|&(){}`]|\b(?:then|do|else)\b")
_LEADING = names_in("if elif while until ! time exec command builtin export local declare readonly case")
_ASSIGNED = re.compile(r"\w+\+?=")
_HEAD = re.compile(r"(?!-|select\b|for\b|function\b)[\\\w./$\"'~{}+-]+")
# Makefiles and justfiles: recipes are indented, or follow a colon and a semicolon.
_BLOCK = re.compile(r"(?:^[ \t]+\S.*\n?|^[ \t]*\n(?=[ \t]+\S))+", re.MULTILINE)
_SHORT = re.compile(
    r"^[^\s#=:][^#=:\n]*:[^=;\n]*;[ \t]*(.*)$|\$\(shell ([^()]*)\)|=[ \t]*`([^`\n]*)`", re.MULTILINE
)
_CHOSEN = re.compile(r"^(?:\.RECIPEPREFIX|SHELL|set shell)[ \t]*[:?]?=.*$", re.MULTILINE)
_MARKS = re.compile(r"^[ \t]*[@+-]*[ \t]*", re.MULTILINE)
_VARIABLE = re.compile(r"^(?:export[ \t]+)?([\w.-]+)[ \t]*[:?+!]*=[ \t]*(.*)$", re.MULTILINE)
_VALUE = re.compile(r"\$[({]([\w.-]+)[)}]")
_FILLED = re.compile(r"\$[({][^(){}]*[)}]|\$[@<^*?+|%]|\{\{.*?\}\}|\{\w+\}")
_WORD = re.compile(r"[\w./=-]+")
_BUILT_IN = {"MAKE": "make", "RM": "rm -f", "CC": "cc", "CXX": "c++", "AR": "ar", "INSTALL": "install"}
# Tasks: the value of a key, on its line or below it, and the tables of short ones.
_KEYED = re.compile(
    r"^([ \t]*)(?:-[ ]+)?(?:(?:cmds?|sh|run|entry)[ \t]*[:=]|commands\w*[ \t]*=)[ \t]*[|>]?-?[ \t]*"
    r"(.*(?:\n(?:\1[ \t]+|[ \t]*-[ ]).*)*)",
    re.MULTILINE,
)
_OTHER_KEY = re.compile(r"^[ \t]*(?:-[ ]+)?\w+:(?:[ \t].*)?$", re.MULTILINE)
_ITEM = re.compile(r"^[ \t]*(?:-[ ]+)?(?:cmd:[ \t]*)?[\"']?(.*?)[\"']?,?$", re.MULTILINE)
_TABLE = re.compile(
    r"^(?:\[(?!project\.|tool\.poetry\.)[\w.\"-]*(?:tasks|scripts)\]|tasks:)[ \t]*\n((?:(?!\[|\S+:).*\n?)*)",
    re.MULTILINE,
)
_PAIR = re.compile(
    r"^(?:[ ]{0,2}[\w:-]+[ \t]*[:=]|[ ]{4}-)[ \t]+[\"']?([^\s|>{\[\"'].*?)[\"']?$", re.MULTILINE
)
# Calls that start a process or load code, with the first of what they are given.
_CALL = re.compile(
    r"(?:subprocess\.(?:run|call|check_\w+|Popen|getoutput|getstatusoutput)|create_subprocess_\w+|pty\.spawn"
    r"|os\.(?:system|popen|exec\w+|(?:posix_)?spawn\w+|execute)|io\.popen|exec(?:File)?Sync|execFile|spawnSync"
    r"|session\.run|(?:child_process|cp)\.\w+|exec\.Command(?:Context)?|Command::new|ProcessBuilder"
    r"|(?<!def )(?<![\w.'\"$-])(?:Popen|check_output|check_call|popen|system|shell_exec|passthru|proc_open|execa|exec"
    r"|(__import__|import_module|eval|require|import(?=\()|dofile|loadfile))|(importlib\.import_module|runpy\.run_\w+))"
    r"\s*\(\s*([\[(]*\s*[frbu]{0,2}(?:\"\"\"|'{3}|[\"'`])?)([^\"'`\n]*)"
)
# Languages in which a word, a key or a sign does it.
_LOOSE = re.compile(
    r"(?:^|[\s;{(@<])(?:system|exec|sh|spawn|shell|command|commandLine|COMMAND|executable)\b[ \t]*[=:>(\[]*[ \t]*"
    r"[\"'\[]*([\w./$@-][\w./$@ -]*)|(?://go:generate|\\!|:!|^e)[ \t]+([\w./$-]+)|:!([\w./$-]+)"
    r"|(?:`|%x\W|qx\W|\|&?[ \t]*\")([\w./$-]+)|[\"']([\w./$ -]+)(?:\|[\"']|[\"'][ \t]*\|)",
    re.MULTILINE,
)
_LOADED = re.compile(
    r"\b(?:(?:require|include)(?:_relative|_once)?|do|load|source)[ \t(]+(?:[$@]|[a-z_]\w*[ \t]*[;\n}]).*"
)
_LOOSE_ENDS = names_in(
    ".rb .rake .pl .pm .php .tcl .exp .gdb .vim .sql .xml .tf .hcl .ninja .gradle .kts .cmake .awk .go .sed"
)


def runs_by_heads(text: str) -> Runs:
    """Return what a text may run that is not understood: all words at places where a command may begin."""
    heads: dict[str, None] = {}
    for part in _PLACES.sub("\n", _COMMENT.sub("", text.replace("\\\n", " "))).split("\n"):
        words = part.split()
        while words and (words[0] in _LEADING or _ASSIGNED.match(words[0])):
            del words[0]
        if words and _HEAD.fullmatch(words[0]):
            heads[" ".join(words)] = None
    found = [runs_of(each) for each in heads]
    names = functions_in(text)
    return Runs(
        scripts=tuple([script for each in found for script in each.scripts]),
        unsaid=tuple([pair for each in found for pair in each.unsaid]),
        strangers=tuple([name for each in found for name in each.strangers if name not in names]),
    )


def commands_in(path: str, text: str) -> tuple[list[str], list[str]]:
    """Return the texts of bash in a file, and what of it runs something without naming it."""
    folder, _, base = path.lower().rpartition("/")
    ending = base[base.rfind(".") :] if "." in base[1:] else ""
    name = _interpreter(text)
    is_hook = not ending and not _HOOKS.isdisjoint(folder.split("/"))
    if name in _SHELLS or (not name and (ending[1:] in _SHELLS or is_hook)):
        return [text], []
    if base in _BLOCKS or ending in (".mk", ".just"):
        return _recipes(text), _CHOSEN.findall(text)
    if "dockerfile" in base or "containerfile" in base:
        return [], [found[0].strip() for found in _COPIED.finditer(text)]
    if ending == ".json" or base.startswith(_TASKS):
        return _scripts(text) if ending == ".json" else _tasks(base, text), []
    named: list[str] = []
    unsaid = [name] if name and files_read_by(name) is None else []
    is_play = ending in (".yml", ".yaml") and ("hosts:" in text or "tasks" in folder or "handlers" in folder)
    if ending not in _DATA:
        for call in _CALL.finditer(text):
            given = call[4].strip()
            if call[3][-1:] not in ('"', "'", "`") or given[:1] in ("", "{", "$", "%"):
                if given.startswith("sys.executable"):
                    line = text[call.start(4) :].partition("\n")[0].removeprefix("sys.executable")
                    named.append(f"python3 {' '.join(_WORD.findall(line))}")
                elif not given.startswith(")"):
                    unsaid.append(" ".join(call[0].split())[:_LONGEST])
            elif not (call[1] or call[2]) and not call[0].startswith("exec("):
                named.append(given)
    if is_play or ending in _LOOSE_ENDS or base == "rakefile":
        named += [next(filter(None, groups)) for groups in _LOOSE.findall(text) if any(groups)]
        unsaid += [found[0].strip()[:_LONGEST] for found in _LOADED.finditer(text)]
    return named, unsaid


def _interpreter(text: str) -> str:
    """Return the name of the program behind `#!`; "" when there is none."""
    found = _SHEBANG.match(text)
    words = f"{found[1]} {found[2]}".split() if found else []
    names = [word.rpartition("/")[2] for word in words if word[0] != "-" and "=" not in word]
    return next((name for name in names if name != "env"), "")


def _recipes(text: str) -> list[str]:
    values = _BUILT_IN | dict(_VARIABLE.findall(text.replace("\\\n", " ")))
    for _ in range(_FEW):
        text = _VALUE.sub(lambda name: values.get(name[1], name[0]), text)
    found = [_MARKS.sub("", block) for block in _BLOCK.findall(text)]
    found += [each for groups in _SHORT.findall(text) for each in groups if each]
    return [_FILLED.sub(HOLES[0], each).replace("$$", "$") for each in found]


def _tasks(base: str, text: str) -> list[str]:
    blocks = [_OTHER_KEY.sub("", block) if "\n" in block else block for _, block in _KEYED.findall(text)]
    tables = [text] if base.startswith("procfile") else _TABLE.findall(text)
    found = ["\n".join(_ITEM.findall(block)) for block in blocks]
    found += [each for table in tables for each in _PAIR.findall(table)]
    return [_FILLED.sub(HOLES[0], each) for each in found]


def _scripts(text: str) -> list[str]:
    """Return the commands in the settings of a package."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    tables = [found.get(key) for key in ("scripts", "tasks")] if isinstance(found, dict) else []
    values = [value for table in tables if isinstance(table, dict) for value in table.values()]
    flat = [each for value in values for each in (value if isinstance(value, list) else [value])]
    return [each for each in flat if isinstance(each, str)]
