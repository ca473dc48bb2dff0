"""Find the files that a plan may run, by what its texts can name, and the commands that name nothing.

No parser finds all ways to run a file, so none is asked: a file counts when its path or base name occurs in a text of
the plan, when a pattern of a text matches it, when a program that occurs reads a file of its name, and again for the
texts of the files so found. Too much is found rather than too little.
"""

from __future__ import annotations

import os

from planrun.actions.command import BASH
from planrun.actions.render import Recipe, render_action
from planrun.actions.scripts import runs
from planrun.approval.notified import step_of
from planrun.errors import EvaluationError, InvalidInput
from planrun.model.record import Record
from planrun.plan.compile.canonical import plain
from planrun.plan.yaml.file import NotRegular, read_script
from planrun.risk.actions import reads_bash
from planrun.risk.defaults import LANGUAGES, files_read_by
from planrun.risk.scripts import Runs, functions_in, runs_of
from planrun.risk.tokens import HOLES
from planrun.risk.words import names_in
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from planrun.approval.digest import Listing
    from planrun.model.plan import Plan, Step, Text

_APPROVAL = (names_in("version id digest steps approver expires uses"),) * 2
_LOCK = (
    names_in("version plan digest canonical params head steps"),
    names_in("version plan digest canonical params scripts uncovered head steps policies policy"),
)
MOST_FILES = 5000
MOST_BYTES = 64 << 20  # of all of them
MOST_GAPS = 20  # files of which it is said what they run
MOST_TEXT = 4 << 20  # bytes of files that are searched for further names
_LONGEST = 1000  # characters of a path
_TEXT = 8192  # the first bytes; a text has no NUL among them
# What is written for people or about other things than what runs, in the canonical form.
_SILENT = names_in(
    "title description notes owner tags goal id name requires provides inputs makes produces keeps writes cache reports"
    " outputs policy llm limits sandbox condition edges on_failure recovers replaces group lock expect prompt suffix"
    " instructions search kind section retries concurrency"
)
_APART = str.maketrans(dict.fromkeys("\"'`;&|()<>{}[]$=,:!#\\\t\n\r\f\v", " "))
_QUOTES = str.maketrans("", "", "\"'\\")
_PLAIN_NAME = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+@%~^-")
_PLAIN_BYTES = "".join([*_PLAIN_NAME, "/", "\0"]).encode()
_FEW = 40  # names that are looked up one by one
_SPECIAL = ("$", "`", "{", "[", "*", "?", "(")  # may make a pattern of a word
_IMPORTS = ("import", "from", "require", "use", "include", "load", "source", "import_module")
_CODE = names_in(
    ".py .pyw .pyi .js .mjs .cjs .ts .tsx .jsx .mts .cts .json .node .sh .bash .rb .pl .pm .lua .php .mk .so"
    " .el .elc .jl .hs .psm1 .class .java .jar .kt .m .cr .rs .go .nim .ex .exs .erl .r .R .tcl"
    " .vim .scm .ru .t .beam .wasm"
)
_ENDINGS = frozenset([ending for endings in LANGUAGES.values() for ending in endings])
_FOLDERS = ("__init__", "__main__", "index", "main", "mod")  # stems that stand for their folder
# Documents and lists of what is left out are not searched: they name everything, and run nothing.
_DOCUMENTS = tuple(names_in("ignore .mailmap .md .rst .txt .adoc .csv .tsv .svg .html .css .lock .po .pdf"))
_SHELLS = ("", ".sh", ".bash", ".zsh", ".mk", ".json", ".toml", ".yml", ".yaml", ".ini", ".cfg")
_COMPUTING = ("__import__", "importlib", "runpy", "exec(", "eval(")
_LIKE_BASH = names_in("zsh ksh mksh ksh93 yash fish")
_STARTING = ("system", "spawn", "subprocess", "exec(", "popen", "child_process", "execSync", "require(")
_KEEPS = ("/", "~", "$HOME", "${HOME}", "$PATH", "${PATH")  # how a harmless entry of PATH begins


class Scripts(Record):
    """Files by workspace-relative path with their sha256, and the facts of `planrun.approval.digest.Reviewed`.

    `seen`: for each file that may count its state, so that a later search can find that nothing changed. `words`: what
    the texts name; a new file with another name changes nothing. None: they have patterns, which any file may fit.
    """

    known: dict[str, str]
    uncovered: dict[str, str]
    contents: dict[str, bytes]
    later: tuple[str, ...]
    seen: dict[str, tuple[int, ...]]
    words: set[str] | None


def _words(text: str) -> list[str]:
    return text.translate(_APART).split()


class _Names:
    def __init__(self, paths: Iterable[str]) -> None:
        self.paths = tuple(paths)
        self._all = "\0".join(["", *self.paths, ""])
        self._bases: dict[str, list[str]] = {}
        self._asked = 0
        self._stems: dict[str, list[str]] = {}
        self._odd: list[str] = []
        if self._all.encode("utf-8", "surrogatepass").translate(None, _PLAIN_BYTES):
            self._odd = [base for base in self.bases if not _PLAIN_NAME.issuperset(base)]
        self.words: set[str] = set()
        self.has_patterns = False

    @property
    def bases(self) -> dict[str, list[str]]:
        """The files by their base names."""
        if not self._bases:
            for path in self.paths:
                self._bases.setdefault(path[path.rfind("/") + 1 :], []).append(path)
        return self._bases

    def of_base(self, base: str) -> list[str]:
        """Return the files of a base name; a few are looked up in one text of all, which costs less than a table."""
        self._asked += 1
        if self._asked > _FEW:
            return self.bases.get(base, [])
        found, at = [], self._all.find(f"{base}\0")
        while at > 0:
            if self._all[at - 1] in "/\0":
                found.append(self._all[self._all.rfind("\0", 0, at) + 1 : at] + base)
            at = self._all.find(f"{base}\0", at + 1)
        return found

    def named(self, text: str, ending: str = "") -> set[str]:
        """Return the files that a text may name; `ending`: that of the file it stands in."""
        bare, filled = text.translate(_QUOTES), text
        if any(mark in text for mark in _SPECIAL):
            from planrun.approval.patterns import filled_in  # plain texts need no patterns

            filled = filled_in(text).translate(_QUOTES)
        words = {*_words(text), *_words(bare), *_words(filled)}
        words |= {word[2:] for word in words if word[0] == "-"}  # values attached to options
        words |= {word[1:] for word in words if word[:1] in ("@", "%", "+")}
        words.discard("")
        self.words |= words
        found = {path for word in words for path in self._of_word(word)}
        for base in self._odd:
            if base in text or base in bare or not base.isprintable():
                found.update(self.bases[base])
        objects = [f"{word[: word.rfind('.')]}.*" for word in words if word.endswith((".o", ".lo", ".obj"))]
        patterns = [word for word in words if "*" in word or "?" in word]
        found.update(self._of_patterns([*patterns, *objects]))
        if any(word in text for word in _IMPORTS) or ending in (".toml", ".cfg", ".ini", ".py"):
            from planrun.approval.patterns import modules_in

            for name in {*modules_in(text, ending), *modules_in(bare, ending)}:
                self.words.add(name)
                found.update([path for path in self.of_module(name) if os.path.splitext(path)[1] in _CODE])
        if ending in _SHELLS:
            programs = {word.rpartition("/")[2] for word in words}
            if any(name in LANGUAGES or name.rstrip("0123456789.") in LANGUAGES for name in programs):
                from planrun.approval.patterns import started_in

                for name, end in {*started_in(text), *started_in(bare)}:
                    self.words.add(name)
                    found.update([path for path in self.of_module(name) if path.endswith(end)])
            if "git" in programs:
                from planrun.approval.patterns import HOOKED

                programs |= {"git-hooks"} if HOOKED.search(text) else set()
            read = {glob for name in programs for glob in files_read_by(name) or ()}
            self.words |= read
            found.update(path for base in read for path in self.of_base(base))
            found.update(self._of_patterns([glob for glob in read if not _PLAIN_NAME.issuperset(glob)]))
        return found

    def called(self) -> set[str]:
        """Return all by which the texts so far may name a file: base names, stems, folders."""
        paths = {os.path.normpath(word.strip("/")) for word in self.words}
        return paths.union(
            *[path.replace(".", "/").split("/") for path in paths], map(os.path.basename, paths)
        )

    def below(self, texts: Iterable[str]) -> set[str]:
        """Return the files in the folders that texts name."""
        words = {word.strip("/").removeprefix("./") for text in texts for word in _words(text)}
        words |= {word[2:].lstrip("/") for word in words if word[:1] == "-"}
        inside = {f"{os.path.normpath(word)}/" for word in words if word}
        chosen = tuple([folder for folder in inside if f"\0{folder}" in self._all])
        return {path for path in self.paths if path.startswith(chosen)} if chosen else set()

    def has(self, path: str) -> bool:
        """Whether a path is that of one of the files."""
        return path in self.of_base(path[path.rfind("/") + 1 :])

    def _of_word(self, word: str) -> list[str]:
        """Return the files that end in a path; where none does, those of its base name."""
        parts = [part for part in word.rstrip("/.").split("/") if part not in ("", ".", "..")]
        if not parts:
            return []
        known = self.of_base(parts[-1])
        end = "/".join(parts)
        return [path for path in known if f"/{path}".endswith(f"/{end}")] or known

    def _of_patterns(self, patterns: list[str]) -> Iterator[str]:
        """Yield the files whose base name fits that of a pattern, a whole path that of `folder/*`.

        A pattern without a letter says nothing.
        """
        told = [pattern.rstrip("/") for pattern in patterns if any(map(str.isalnum, pattern))]
        bases = {base for pattern in told if any(map(str.isalnum, base := pattern.rpartition("/")[2]))}
        folders = {f"*/{pattern.removeprefix('./')}" for pattern in told if pattern.endswith("/*")}
        self.has_patterns = self.has_patterns or bool(told)
        if bases or folders:
            from planrun.approval.patterns import fitting

            for base in fitting(sorted(bases), self.bases) if bases else ():
                yield from self.bases[base]
            if folders:
                yield from [
                    path[1:] for path in fitting(sorted(folders), [f"/{path}" for path in self.paths])
                ]

    def of_module(self, name: str) -> Iterator[str]:
        """Yield the files of a module, `a.b` or `./a/b`, and of the packages around it."""
        if not self._stems:
            self._index()
        parts = [part for part in name.replace(".", "/").split("/") if part]
        for at, part in enumerate(parts):
            around = f"/{parts[at - 1]}/" if at else "/"
            for path in self._stems.get(part, ()):
                if around in f"/{path}":
                    yield path

    def _index(self) -> None:
        for base, paths in self.bases.items():
            stem, ending = os.path.splitext(base)
            if ending in _CODE or ending in _ENDINGS:
                self._stems.setdefault(stem, []).extend(paths)
                for path in paths if stem in _FOLDERS else ():
                    self._stems.setdefault(os.path.dirname(path).rpartition("/")[2], []).append(path)


def names_of_steps(plan: Plan, paths: Iterable[str]) -> dict[str, set[str]]:
    """Return which of some files each step of a plan names itself, by the id of the step."""
    names = _Names(paths)
    return {
        step.id: {path for text in _texts(plain(step)) for path in names.named(text)}
        for step in plan.reviewed()
    }


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in canonical data; what is filled in later is a pattern."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            if "" not in value and isinstance(item, str):  # names of variables and arguments may be any
                yield f"{name}={item}"
            elif name not in _SILENT or "" not in value:
                yield from _texts(item)
    elif isinstance(value, list):
        if any(isinstance(part, str) for part in value) and any(isinstance(part, list) for part in value):
            yield "".join([part if isinstance(part, str) else "*" for part in value])
        for part in value:
            yield from _texts(part)


class _Look(Record):
    """What a step would start as far as that is known before the run; `later`: its words are not."""

    argv: tuple[str, ...] = ()
    runs: Runs = Runs()
    later: bool = False

    def scripts(self) -> list[str]:
        """The files that it runs by words of their own."""
        return [script.path for script in self.runs.scripts]


class _Uncovered(Exception):
    """A file that does not count; the text says why."""


class _Search:
    def __init__(self, plan: Plan, root: str, listing: Listing) -> None:
        self.root, self.is_git, self._listing = root, listing.is_git, listing
        self.names = _Names(listing.names)
        own = os.path.normpath(plan.file)
        folder = os.path.dirname(own)
        self.own = {
            own,
            f"{os.path.splitext(own)[0]}.lock.json",
            *[os.path.normpath(os.path.join(folder, f)) for f in plan.files],
        }
        self.env = plan.env
        self.known: dict[str, str] = {}
        self.why: dict[str, str] = {}
        self.seen: dict[str, tuple[int, ...]] = {}
        self.made: set[str] = set()  # without git what these texts write is no part of the workspace
        self.commands: dict[str, tuple[list[str], list[str]]] = {}  # of files: see `patterns.commands_in`
        self.texts: dict[str, str] = {}
        self.bytes = self.text = 0

    def add(self, paths: Iterable[str], *, follow: bool) -> None:
        """Count files, and with `follow` what their texts name."""
        due = sorted(set(paths))
        while due:
            found: set[str] = set()
            for path in due:
                if path in self.seen or path in self.own or (path in self.made and not self.is_git):
                    continue
                data = self._count(path)
                if data is not None and follow and self._is_searched(path, data):
                    ending, text = os.path.splitext(path)[1], data.decode("utf-8", "replace")
                    found |= self.names.named(text, ending)
                    from planrun.approval.commands import commands_in  # many plans name no text

                    self.texts[path], self.commands[path] = text, commands_in(path, text)
                    for each in self.commands[path][0]:
                        found |= self.names.named(each) if each != text else set()
                    if not self.is_git and ending in _SHELLS:
                        self.made.update(runs_of(text).made)
            due = sorted(found - self.seen.keys())

    def _is_searched(self, path: str, data: bytes) -> bool:
        # A document covers nothing; a list with options does, such as `-r more.txt` for pip.
        if b"\0" in data[:_TEXT] or (
            path.lower().endswith(_DOCUMENTS)
            and not (path.endswith(".txt") and (data[:1] == b"-" or b"\n-" in data))
        ):
            return False
        self.text += len(data)
        if self.text > MOST_TEXT:
            self.why["the files that other files name"] = f"the texts have more than {MOST_TEXT >> 20} MiB"
            return False
        return True

    def _count(self, path: str) -> bytes | None:
        """Take a file into account; return its bytes, None where there are none to search."""
        state = self._listing.state(path)
        self.seen[path] = state
        if not state or not state[3] or state[0] == 2:  # it is gone, empty, or a folder behind a link
            return None
        if len(self.known) >= MOST_FILES or self.bytes + state[3] > MOST_BYTES:
            bound = f"more than {MOST_FILES} files or {MOST_BYTES >> 20} MiB are named"
            self.why["further files that the plan names"] = bound
            return None
        try:
            data = self.read(path)
        except (_Uncovered, InvalidInput) as error:
            self.why[path] = str(error)
            return None
        if path.endswith(".json") and _is_record(
            data
        ):  # an approval of the plan cannot be part of its digest
            return None
        self.bytes += len(data)
        digest = str(sha256(data).hexdigest())
        self.known[path] = digest
        return data

    def read(self, path: str) -> bytes:
        """Return the bytes of a file; raises _Uncovered, InvalidInput."""
        real = os.path.realpath(os.path.join(self.root, path))
        if not real.startswith(self.root.rstrip("/") + "/"):
            raise InvalidInput("it leads out of the workspace by a symbolic link")
        try:
            return read_script(real)
        except FileNotFoundError:
            raise _Uncovered("it does not exist when the run begins") from None
        except NotRegular as what:
            raise InvalidInput(f"it is {what}; a script is a regular file") from None
        except (OSError, ValueError) as error:
            raise _Uncovered(getattr(error, "strerror", None) or str(error)) from None

    def holds(self, path: str) -> bool:
        """Whether a path is a file with content."""
        state = self._listing.state(path)
        return state[:1] == (1,) and state[3] > 0


def _is_record(data: bytes) -> bool:
    """Whether a file is an approval or a lockfile, and nothing besides: no program finds anything else in it."""
    if b'"digest"' not in data:
        return False
    import json  # few files come this far

    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and any(
        needed <= found.keys() <= allowed for needed, allowed in (_APPROVAL, _LOCK)
    )


def collect(plan: Plan, params: Mapping[str, Any], workspace: str, listing: Listing) -> Scripts:
    """Read what a plan names; raises InvalidInput."""
    root = os.path.realpath(workspace)
    search = _Search(plan, root, listing)
    steps = [each for written in plan.reviewed() for each in (written, *written.attached_steps)]
    steps += [step_of(target) for target in plan.notify if target.argv]
    texts = list(_texts({name: item for name, item in plain(plan).items() if name != "steps"}))
    texts += _texts(plain(dict(params)))
    found = [_looked_at(step, params, workspace) for step in steps]
    for step, look in zip(steps, found, strict=True):
        texts += [*_texts(plain(step)), *look.argv]
    search.made.update([path for look in found for path in look.runs.made])
    search.made.update([path for step in steps for path in step.makes if isinstance(path, str)])
    unique = sorted(set(texts))
    ran = {path: step for step, look in zip(steps, found, strict=True) for path in look.scripts()}
    named = {path for text in unique for path in search.names.named(text)}
    named |= {path for path in ran if search.names.has(path) or not listing.is_git}
    search.add(named, follow=True)
    images = [
        text
        for path, text in search.texts.items()
        if "dockerfile" in path.lower() or "containerfile" in path.lower()
    ]
    search.add(search.names.below([*unique, *images]), follow=False)
    uncovered = dict(search.why)
    if listing.note:
        uncovered["files of the workspace"] = listing.note
    unsaid = [
        f"{step.id}: {what}"
        for step, look in zip(steps, found, strict=True)
        for what in _unsaid(step, look, search)
    ]
    uncovered |= dict.fromkeys([*unsaid, *_unsaid_in_files(ran, search)], "it may run any file")
    loose = _loose(steps, unique, search) if listing.is_git else set()
    uncovered |= _unread(plan, ran, loose - search.made, search)
    contents: dict[str, bytes] = {}
    for path in sorted(ran.keys() & search.known.keys()):
        data = search.read(path)
        if b"\0" not in data[:_TEXT] and sha256(data).hexdigest() == search.known[path]:
            contents[search.known[path]] = data
    later = tuple(dict.fromkeys([step.id for step, look in zip(steps, found, strict=True) if look.later]))
    return Scripts(
        known=search.known,
        uncovered=uncovered,
        contents=contents,
        later=later,
        seen=search.seen,
        words=None if search.names.has_patterns else search.names.called(),
    )


def _looked_at(step: Step, params: Mapping[str, Any], workspace: str) -> _Look:
    if not step.action.is_command:
        return _Look()
    later = False
    try:
        recipe: Recipe = render_action(step, {"params": params}, BASH)
    except EvaluationError:  # it reads outputs, or the environment
        words = tuple(map(_filled, step.action.argv if not step.action.is_script else (step.action.script,)))
        shell = (step.shell or BASH) if step.action.is_script else ()
        recipe, later = Recipe(argv=(*shell, *words), env={}, workdir=_filled(step.workdir or "")), True
    found = runs(step, recipe, workspace)
    if step.action.is_script and not reads_bash(recipe.argv[:-1]):
        argv = recipe.argv
        name = os.path.basename(argv[0])
        if name in _LIKE_BASH:
            found = runs_of(argv[-1]).but(scripts=())
        else:
            found = Runs() if files_read_by(name) is not None else Runs(strangers=(name,))
    later = later and bool(found.unsaid)
    return _Look(argv=recipe.argv, runs=found.but(unsaid=()) if later else found, later=later)


def _filled(text: Text) -> str:
    """Return a text with a placeholder for each value that is filled in later."""
    return (
        text
        if isinstance(text, str)
        else "".join([part if isinstance(part, str) else HOLES[0] for part in text[1]])
    )


def _unsaid(step: Step, look: _Look, search: _Search) -> Iterator[str]:
    if not look.argv:
        return
    if not look.runs.understood:
        yield "its script is not understood"
    text = "\n".join(look.argv)
    yield from _gaps(look.runs, text, search)
    yield from [word for word in _COMPUTING if word in text]
    if any(word in text for word in _STARTING):
        from planrun.approval.commands import commands_in  # few texts run others by calls

        named, unsaid = commands_in("", text)
        yield from unsaid
        for inner in named:
            yield from _gaps(runs_of(inner), "", search)
    env = {**search.env, **step.env}
    yield from _folders(
        "\n".join([f"{name}={value}" for name, value in env.items() if isinstance(value, str)])
    )


def _gaps(runs: Runs, text: str, search: _Search) -> Iterator[str]:
    """Yield what a text runs without a name of a file that counts."""
    for shown, base in runs.unsaid:
        if not any(path in search.known for path in search.names.of_base(base)):
            yield " ".join(shown.split())[:80]
    for name in runs.strangers:
        if name[:3] != "-m " or not any(path in search.known for path in search.names.of_module(name[3:])):
            yield name
    yield from _folders(text)


def _folders(text: str) -> Iterator[str]:
    """Yield what a text makes of variables with folders in which programs find code and settings."""
    if any(each in text for each in ("PATH=", "HOME=", "ZDOTDIR=", "USERBASE=", "XDG_")):
        from planrun.approval.patterns import paths_in

        for name, value in paths_in(text):
            entries = [entry for entry in value.split(":") if not entry.startswith(_KEEPS)]
            if any(name == "PATH" or "$" in each or "`" in each or not each.strip("./") for each in entries):
                yield f"{name}={value}"


def _unsaid_in_files(ran: Iterable[str], search: _Search) -> list[str]:
    """Return what the files that count run without naming it, one text for each file."""
    run = {path for path in ran if path in search.texts}
    due = sorted(search.commands)
    shells: dict[tuple[str, str], Runs] = {}
    while due:
        path = due.pop()
        is_bare = path in run and not os.path.splitext(path)[1] and not search.texts[path].startswith("#!")
        for text in [search.texts[path]] if is_bare else search.commands[path][0]:
            runs = runs_of(text)
            if not runs.understood:
                from planrun.approval.commands import runs_by_heads  # rare

                runs = runs_by_heads(text)
            shells[path, text] = runs
            more = {script.path for script in runs.scripts} & search.texts.keys() - run
            run |= more
            due += more
    defined = {name for _, text in shells for name in functions_in(text)}
    found = {path: list(unsaid) for path, (_, unsaid) in search.commands.items()}
    for (path, text), runs in shells.items():
        strangers = tuple([name for name in runs.strangers if name not in defined])
        found[path] += _gaps(runs.but(strangers=strangers), text, search)
    for path in [path for path in search.texts if path.endswith("env")]:
        found[path] += _folders(search.texts[path])
    gaps = {path: list(dict.fromkeys(what)) for path, what in sorted(found.items()) if what}
    lines = [
        f"{path}: {what[0]}" + (f", and {len(what) - 1} more" if what[1:] else "")
        for path, what in gaps.items()
    ]
    return [*lines[:MOST_GAPS], *([f"{len(lines) - MOST_GAPS} more files"] if lines[MOST_GAPS:] else [])]


def _loose(steps: Iterable[Step], texts: Iterable[str], search: _Search) -> set[str]:
    """Return the existing files that texts name by a path, and that git does not track."""
    folders = {"", *[step.workdir for step in steps if isinstance(step.workdir, str)]}
    words = {word for text in texts for word in _words(text) if len(word) < _LONGEST}
    paths = {os.path.normpath(os.path.join(folder, word)) for folder in folders for word in words}
    inside = {path for path in paths if not path.startswith(("/", "..", ".git", ".planrun", "planrun-out"))}
    return {path for path in inside - search.own if not search.names.has(path) and search.holds(path)}


def _unread(plan: Plan, ran: Mapping[str, Step], loose: set[str], search: _Search) -> dict[str, str]:
    """Return why files do not count that steps run or that texts name; what git ignores never counts."""
    found: dict[str, str] = {}
    for path in sorted({*ran, *loose} - search.known.keys() - search.own):
        if path in search.made and path in ran:
            found[path] = "a step of the plan writes it"
            continue
        try:
            data = search.read(path)
        except _Uncovered as error:
            found[path] = str(error)
        except InvalidInput as error:
            if path in ran:
                step = ran[path]
                where = f'{plan.file_of(step)}:{step.line}: step "{step.id}" runs {path}'
                raise InvalidInput(f"{where}, which {str(error).removeprefix('it ')}") from None
        else:
            if data and not search.names.has(path):
                found[path] = "git does not track it"
    if not (search.is_git and found):
        return found
    from planrun.plan.revisions import ignored_files  # it starts git

    ignored = ignored_files(search.root, list(found))
    return {path: why for path, why in found.items() if path not in ignored}
