"""One call: read and check its arguments, run the tool, write its outputs."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module

from planrun.model.tools import CATALOGUE, faults, place
from planrun.sha256 import sha256
from planrun.tools.ground import Ground, Refusal, hand_on

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.model.tools import Spec
    from planrun.tools.ground import Ground

# Tool -> its module, which is imported only for its own tools.
_HOMES = {
    "git.status": "git",
    "git.diff": "git",
    "git.commit": "git",
    "git.apply_patch": "git",
    "file.read": "files",
    "file.write": "files",
    "file.replace": "files",
    "file.copy": "files",
    "file.move": "files",
    "file.remove": "files",
    "file.mkdir": "files",
    "file.glob": "files",
    "json_patch": "json",
    **{f"agent.{name}": "reading" for name in ("read", "glob", "grep", "tree", "list_dir", "diff")},
    **{f"agent.{name}": "writing" for name in ("write", "edit", "apply_patch")},
    "agent.web_fetch": "web",
    # Not for models: what planrun does itself around an agent.
    "copies.make": "copies",
    "copies.patch": "copies",
    "patching.apply": "patching",
}
_FAILED = 1


def main(argv: list[str]) -> int:
    """Run the tool that the first argument names, and return the exit code of the process."""
    name = argv[0] if argv else ""
    try:
        outputs = _run(name, _arguments(argv[1:]))
        hand_on(os.environ.get("PLANRUN_OUTPUT", ""), outputs)
    except Refusal as refusal:
        return _fail(name, str(refusal))
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        return _fail(name, f"{error.strerror or error}{where}")
    except RecursionError:
        return _fail(name, "it is nested too deeply")
    return 0


def _run(name: str, args: dict[str, Any]) -> dict[str, Any]:
    if name not in _HOMES:
        raise Refusal(f"there is no tool {name}")
    for fault in faults(spec, args) if (spec := _spec(name)) else ():
        raise Refusal(f"{place(fault.path)} {fault.message}")
    module = import_module(f"planrun.tools.{_HOMES[name]}")
    tool = getattr(module, name.rpartition(".")[2])
    cwd = os.getcwd()
    ground = Ground(os.environ.get("PLANRUN_WORKSPACE") or cwd, cwd)
    try:
        found: dict[str, Any] = tool(ground, args)
    finally:
        ground.close()
    return found


def _spec(name: str) -> Spec | None:
    """Return the tool of plans or of agents; None for what planrun itself calls."""
    kind, _, tool = name.partition(".")
    if kind == "agent":
        from planrun.model.agenttools import SPECS  # few plans have agents

        return SPECS[tool]
    return CATALOGUE.get(name)


def _arguments(words: list[str]) -> dict[str, Any]:
    """Return the arguments from a JSON text, or from `--from FILE SHA256`."""
    text = words[0] if words else "{}"
    if text == "--from":
        with open(words[1], "rb") as file:
            data = file.read()
        if sha256(data).hexdigest() != words[2]:
            raise Refusal("its arguments were changed after it was decided that it may start")
        text = data.decode()
    try:
        found: dict[str, Any] = json.loads(text)
    except ValueError:
        raise Refusal("its arguments are no JSON") from None
    return found


def _fail(name: str, message: str) -> int:
    sys.stdout.flush()
    line = " ".join(message.split("\n"))
    os.write(2, f"{name}: {line}\n".encode("utf-8", "backslashreplace"))
    return _FAILED
