"""Pages that are played as a reader plays them: by what is visible on the page, and nothing else.

    File `plan.yml`:            the block below is this file, from here on
    ```console                  each line of the block that begins with `$ ` is typed; what it printed follows it

A reader stands in a folder in which planrun was installed into `.venv`. All commands of a page are typed into one
bash, which has no settings. Files get the modes that an editor gives them. What a command prints is both of its
streams, and its exit code where that is not 0. Nothing of whoever runs the tests is seen: no settings of git, no
variables of planrun or of a CI system. Times, ids and hashes are another in each play and are not compared.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple, Self

from tests.conftest import LIMIT
from tests.docs.pages import DOCS, ROOT
from tests.users import NOBODY, admitted

SHOWN = re.compile(
    r"^(?:File `(?P<name>[^`\n]+)`:\n\n)?(?P<fence>`{3,})(?P<language>\w*)\n(?P<text>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
END = "\x1e"
# Each command is read from its own pipe, so that a program that reads its input does not take the next command.
SHELL = f"""
while IFS= read -r -d '' -u 3 line; do
  eval "$line" 3<&- < /dev/null
  printf '{END}%s{END}' "$?"
done
"""
# What is another in each play: what it became, and what stands in its place.
VOLATILE = (
    (r"\b\d{8}-\d{6}-[0-9a-f]{6}\b", "RUN"),
    (r"\ba-[0-9a-f]{16}\b", "APPROVAL"),
    (r"\b[0-9a-f]{64}\b|\b[0-9a-f]{40}\b|\b[0-9a-f]{12}\b|\b(?=[a-f]*\d)[0-9a-f]{7}\b", "HASH"),
    (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(?:Z| UTC)?", "TIME"),
    (r"(?<![\d.])(\d+(\.\d+)?(s|ms)|\d+m\d\ds)\b", "SECONDS"),
    (r" +SECONDS\b", " SECONDS"),
)


class Play(NamedTuple):
    """What became of a page: its text as it should be."""

    text: str
    sessions: int


class Reader:
    """Somebody who has installed planrun and does what pages say, in one shell."""

    def __init__(self, folder: Path) -> None:
        """Install planrun as the README's first command does: into `.venv` of the folder `planrun`."""
        self.home = folder / "home"
        self.home.mkdir()
        installed = self.home / "planrun"
        install(installed / ".venv")
        # As root the tests play the pages as an ordinary user, if that user may read this Python.
        user = NOBODY if os.geteuid() == 0 and admitted(NOBODY) else None
        if user is not None:
            os.chown(self.home, user, user)
            os.chown(installed, user, user)
            folder.chmod(0o755)
        commands, self._commands = os.pipe()
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-c", f"exec 3<&{commands} {commands}<&-\n{SHELL}"],
            cwd=installed,
            env=self._environment(),
            pass_fds=(commands,),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
        )
        os.close(commands)

    def __enter__(self) -> Self:
        """Stay until the last page was played."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the shell."""
        os.close(self._commands)
        self._shell.communicate(timeout=LIMIT)

    def play(self, text: str) -> Play:
        """Write the files of a page and type its commands, in their order; return the page with what they print."""
        parts, at, sessions = [], 0, 0
        for block in SHOWN.finditer(text):
            parts.append(text[at : block.start("text")])
            at = block.end("text")
            if block["language"] == "console":
                sessions += 1
                parts.append("".join([f"$ {line}\n{self.type(line)}" for line in commands(block["text"])]))
            else:
                if block["name"]:
                    self._write(block["name"], block["text"])
                parts.append(block["text"])
        return Play("".join([*parts, text[at:]]), sessions)

    def type(self, line: str) -> str:
        """Return what a command prints, on both streams, and its exit code if that is not 0."""
        os.write(self._commands, line.encode() + b"\0")
        printed, code = self._read(), int(self._read())
        if printed and not printed.endswith("\n"):
            printed += "\n"
        return printed.replace(str(self.home), "/home/ada") + (f"exit code {code}\n" if code else "")

    def _read(self) -> str:
        assert self._shell.stdout is not None
        read = bytearray()
        while (byte := self._shell.stdout.read(1)) != END.encode():
            assert byte, f"the shell ended: {read.decode()}"
            read += byte
        return read.decode()

    def _write(self, name: str, text: str) -> None:
        os.write(self._commands, b"pwd -P\0")
        folder = Path(self._read().rstrip("\n"))
        self._read()
        path = folder / name
        owner = folder.stat()
        for parent in [*reversed(path.parents)]:
            if not parent.is_dir():
                parent.mkdir()
                os.chown(parent, owner.st_uid, owner.st_gid)
        path.write_text(text, encoding="utf-8")
        os.chown(path, owner.st_uid, owner.st_gid)

    def _environment(self) -> dict[str, str]:
        path = [
            entry
            for entry in os.environ["PATH"].split(os.pathsep)
            if not os.path.exists(os.path.join(entry, "planrun"))
        ]
        return {
            "PATH": os.pathsep.join(path),
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
            "PLANRUN_JOBS": "2",  # as if the machine had two processors, which is what the pages show
        }


def steady(text: str) -> str:
    """Return what a page shows without what is another in each play."""
    for pattern, name in VOLATILE:
        text = re.sub(pattern, name, text)
    return text


def played() -> list[Path]:
    """Return the pages that have something to play."""
    return [page for page in sorted(DOCS.rglob("*.md")) if "\n```console\n" in page.read_text("utf-8")]


def commands(text: str) -> list[str]:
    """Return the command lines of a session."""
    return [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]


def install(venv: Path) -> None:
    """Make what `python3 -m venv .venv && .venv/bin/pip install .` leaves, with the libraries that are there."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    (libraries,) = venv.glob("lib/python*/site-packages")
    (libraries / "shared.pth").write_text("\n".join([str(ROOT), *sys.path[1:]]))
    script = venv / "bin" / "planrun"
    script.write_text(f"#!{venv / 'bin' / 'python'}\nfrom planrun.cli import run\n\nrun()\n", "utf-8")
    script.chmod(0o755)


def checked_out(folder: Path) -> Path:
    """Put into a folder what the scripts use of a source archive, without modes and without git; returns the folder."""
    for name in ("docs", "action"):
        shutil.copytree(ROOT / name, folder / name)
    for script in (folder / "docs").glob("*.sh"):
        script.chmod(0o644)
    return folder


def start(
    name: str, checkout: Path, *, without: tuple[str, ...] = ("planrun",)
) -> subprocess.CompletedProcess[str]:
    """Type the command of a page, where no folder of PATH has one of these programs."""
    (command,) = re.findall(
        rf"^bash docs/{name}\.sh$", (DOCS / f"{name}.md").read_text("utf-8"), re.MULTILINE
    )
    programs = checkout / "programs"
    programs.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        if not os.access(folder, os.R_OK | os.X_OK):  # a folder of somebody else, or none
            continue
        for program in Path(folder).glob("*"):
            if program.name not in without and not (programs / program.name).is_symlink():
                (programs / program.name).symlink_to(program)
    return subprocess.run(
        ["bash", "-c", command],
        cwd=checkout,
        env=os.environ | {"PATH": str(programs)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT * 4,
        check=False,
    )


def parts_of(name: str, folder: Path, hint: str = "") -> dict[str, str]:
    """Play a script in a checkout with an environment, in a shell that has activated nothing.

    Returns what each part of it printed. `hint` ends the message when it fails.
    """
    install(checked_out(folder) / ".venv")
    done = start(name, folder)
    assert (done.returncode, done.stderr) == (0, ""), f"{done.stdout}{done.stderr}\n{hint}"
    _, *found = re.split(r"^=== (\w+)\n", done.stdout, flags=re.MULTILINE)
    return {part: f"{text.strip()}\n" for part, text in zip(found[::2], found[1::2], strict=True)}
