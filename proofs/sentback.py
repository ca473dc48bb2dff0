"""A service, or a proxy before it, that sends the credentials of the model back: planrun prints them in no form.

Each check starts planrun with a fake service whose errors or answers hold the key in one form, and searches all that
planrun printed and wrote for a piece of the key in every form.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import tempfile
import textwrap
import time
import urllib.parse
from pathlib import Path
from typing import TYPE_CHECKING

from tests.conftest import Command
from tests.fakes.messages import FakeMessages, draft, status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

KEY = "sk-" + os.urandom(24).hex() + "~A/b+c="
PLAN = "version: 1\nname: p\ngoal: Build it.\nllm: {model: m, retries: 0}\nsteps: [{id: a, run: exit 77}]\n"


def wrapped(text: str) -> str:
    """Break a text into short lines, as MIME does."""
    return "\n".join(textwrap.wrap(text, 40))


FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64 of a header": lambda key: base64.b64encode(f"x-api-key: {key}\r\n".encode()).decode(),
    "base64 for addresses": lambda key: base64.urlsafe_b64encode(key.encode()).decode().rstrip("="),
    "base64 in lines": lambda key: wrapped(base64.b64encode(key.encode()).decode()),
    "hex": lambda key: key.encode().hex(),
    "HEX": lambda key: key.encode().hex().upper(),
    "hex in pairs": lambda key: key.encode().hex(":"),
    "hex in lines": lambda key: wrapped(key.encode().hex()),
    "url": lambda key: urllib.parse.quote(key, safe=""),
    "json": json.dumps,
    "json escapes": lambda key: "".join(f"\\u{ord(char):04x}" for char in key),
    "reversed": lambda key: key[::-1],
    "reversed in lines": lambda key: wrapped(key[::-1]),
    "lines": wrapped,
}


def traces(text: str) -> list[str]:
    """Return the forms of which a piece of 12 characters stands in a text."""
    flat = "".join(text.split())
    found = []
    for name, form in FORMS.items():
        whole = "".join(form(KEY).split())
        first = 16 if "header" in name else 0  # behind the name of the header, which is no secret
        if any(whole[at : at + 12] in flat for at in range(first, len(whole) - 12)):
            found.append(name)
    return found


def everything(planrun: Command) -> str:
    """Return all that was written in the test's folder, recordings and records included."""
    files = [path for path in planrun.folder.rglob("*") if path.is_file()]
    return "\n".join(path.read_text("utf-8", "replace") for path in files)


def environ(api: FakeMessages) -> dict[str, str]:
    """Return what has planrun ask the fake service."""
    return {**api.env, "PLANRUN_LLM_MODEL": "m"}


def error_shows_no_credentials(planrun: Command, form: str) -> None:
    """Whatever encoding the body and the headers of an error hold the key in: it is nowhere, and the rest is told."""
    said = FORMS[form](KEY)
    padding = "the proxy says " + "x" * 330 + " "  # so that the key stands where a message is cut
    header = "".join(said.split())
    with FakeMessages([status(401, message=f"bad key {said} sorry", request_id=header)], key=KEY) as api:
        short = planrun("generate", "ship it", env=environ(api))
    with FakeMessages([status(401, message=padding + said)], key=KEY) as api:
        long = planrun("generate", "ship it", env=environ(api))
    assert (short.returncode, long.returncode) == (1, 1), short.stderr
    assert "bad key " in short.stderr
    assert "***" in short.stderr
    assert "the proxy says xxx" in long.stderr
    assert traces(short.stdout + short.stderr + long.stdout + long.stderr) == []


def records_hold_no_credentials(planrun: Command, form: str) -> None:
    """A planning in a run that fails so: console, ledger, reports and recordings are without the key."""
    said = FORMS[form](KEY)
    (planrun.folder / "plan.yml").write_text(PLAN)
    with FakeMessages(
        [status(400, message=f"what is {said}?", request_id="".join(said.split()))], key=KEY
    ) as api:
        done = planrun("execute", "plan.yml", "--llm-record", "tape", env=environ(api))
    assert done.returncode == 1
    assert "what is " in done.stderr
    assert "***" in done.stderr
    assert traces(done.stdout + done.stderr) == []
    assert traces(everything(planrun)) == []


def answer_puts_none_into_the_plan(planrun: Command, *forms: str) -> None:
    """Text of a model is masked as well before it becomes a plan or a recording."""
    steps = [
        {"id": f"s{number}", "run": "make", "title": f"Use {FORMS[form](KEY)} here"}
        for number, form in enumerate(forms)
    ]
    with FakeMessages([draft(steps)], key=KEY) as api:
        planrun("generate", "ship it", "-o", "out.yml", "--llm-record", "tape", env=environ(api))
    text = everything(planrun)
    assert text.count("***") >= len(forms)
    assert traces(text) == []


def main(words: Sequence[str]) -> int:
    """Run the proof; 1 when the key is found anywhere."""
    parser = argparse.ArgumentParser(prog="python -m proofs sentback", description=__doc__)
    parser.parse_args(words)
    began, wrong = time.monotonic(), 0
    for form in FORMS:
        for check in (
            error_shows_no_credentials,
            records_hold_no_credentials,
            answer_puts_none_into_the_plan,
        ):
            with tempfile.TemporaryDirectory(prefix="sentback-") as folder:
                try:
                    check(Command(Path(folder)), form)
                except AssertionError as problem:
                    wrong += 1
                    print(f"{form}: {check.__name__}: {problem}")
    print(f"{len(FORMS)} forms, {wrong} problems, {time.monotonic() - began:.0f} s")
    return int(bool(wrong))
