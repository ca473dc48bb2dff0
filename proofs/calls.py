"""Every fault of a Messages API ends a call of a model in a defined way, and what it cost is counted.

Each row of callrows.py is played by a real server on loopback to the real process that calls models. A row holds when
the call ends with the word, the rule and the number of attempts that it has to, when nothing of an answer that is not
whole comes back, when the usage is what the service told, or where it told nothing at least what it would bill, and
when the server has nothing to say against the client: no repeat of what cannot succeed, no pause cut short. Then
come streams that are twisted (calltwists.py), chains of faults drawn by a seed (callchains.py), and calls that planrun
itself cuts off (callcuts.py).
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from unittest import mock

import planrun
import planrun.entry
from planrun.llm.budget import estimate
from planrun.llm.credentials import endpoint_of
from planrun.llm.process import ModelProcess
from planrun.model.call import Answer, Request, Usage
from proofs.callchains import chains
from proofs.callcuts import CUTS, cut_off
from proofs.callrows import KINDS, TIMES, Row
from proofs.calltwists import TWISTS
from tests.fakes.messages import KEY, FakeMessages, Tokens
from tests.fakes.messages.script import as_script

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.fakes.messages import Entry

SECONDS = 30.0
"""What a call may take; far more than any row needs."""
HURRY = 4.0
"""The same where it is to be too short."""
BACKOFF = 0.02
PATH = "/usr/bin:/bin"
ROWS = {**KINDS, **TWISTS, "chains": chains(12, seed=1)}
"""The rows of the short form; the long one draws more chains."""
FAULTS: dict[str, tuple[str, str, str, str]] = {
    "cut answers are whole": (
        "stops",
        "stream.py",
        '"max_tokens": ("truncated",',
        '"max_tokens": ("answered",',
    ),
    "an early end is an end": (
        "breaks",
        "stream.py",
        'if stop is None or (stop == "end_turn" and not self._has_ended):',
        'if stop is None and (stop := "end_turn") == "":',
    ),
    "unknown blocks are text": ("content", "stream.py", "if kind not in _BLOCKS:", "if not kind:"),
    "any type of content": ("content", "stream.py", 'if kind != "text/event-stream":', "if not kind:"),
    "refusals are repeated": ("stops", "stream.py", ").but(repeat=0)", ").but(repeat=None)"),
    "all errors are transient": (
        "statuses",
        "outcomes.py",
        "repeat = None if ending in _TRANSIENT else 0",
        "repeat = None",
    ),
    "retry-after unread": ("waits", "outcomes.py", "after=wait_of(headers)", "after=None"),
    "errors by status alone": ("breaks", "outcomes.py", "_BY_TYPE.get(kind) or _BY_STATUS", "_BY_STATUS"),
    "the last attempt counts": (
        "breaks",
        "call.py",
        "self._before, self._is_estimate = usage, is_estimate",
        "self._is_estimate = is_estimate",
    ),
    "what broke off is free": (
        "breaks",
        "call.py",
        'counts["output_tokens"] = max(counts.get("output_tokens", 0), received)',
        'counts["output_tokens"] = 0',
    ),
    "estimates are called exact": ("breaks", "call.py", "self._is_estimate or not known", "False"),
    "no word of what is left out": (
        "features",
        "caller.py",
        '*[f"without:{each}" for each in lacking]',
        "*[]",
    ),
    "order unwatched": ("disorder", "stream.py", "if kind in KINDS:", "if not kind:"),
    "pieces get lost": ("chains", "stream.py", "self._texts.append(text)", "self._texts[:] = [text]"),
    "malformed without end": (
        "content",
        "outcomes.py",
        "message=text, repeat=1)",
        "message=text, repeat=None)",
    ),
    "paid for without end": ("chains", "caller.py", "if not call.tally.may_cost_more:", "if not call:"),
    "no deadline": ("silence", "serve.py", 'call.cut("late", f"the', 'print("late", f"the'),
}
"""Faults to plant into a copy of the process: which rows show it, file, text, other text."""


class Stage:
    """One server and one process; rows are played one after the other."""

    def __init__(self, main: str = "") -> None:
        self.api = FakeMessages("warm")
        self._main = main
        self._model: ModelProcess | None = None

    def __enter__(self) -> Self:
        self.api.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        if self._model:
            self._model.close()
        self.api.__exit__(None, None, None)

    def play(self, row: Row, *, is_silent: bool = False) -> list[str]:
        """Ask once under the row's script; returns what is not as it has to be."""
        model = self.warm()
        self.api.script = as_script(row.replies())
        before = len(self.api.journal.entries)
        fields = {"seconds": HURRY if is_silent else SECONDS, "retries": TIMES - 1, **row.request}
        request = question(row.name, **fields)
        model.ask(request)
        answer = model.wait(None)
        if answer is None:
            return ["no answer"]
        self.api.journal.settle()
        entries = self.api.journal.entries[before:]
        problems = [*judge(row, request, answer, entries), *self._against(entries)]
        if self.api.script.left:
            problems.append(f"{self.api.script.left} replies were not asked for")
        return [f"{row.name}: {problem}" for problem in problems]

    def forget(self) -> None:
        """Have the next row be played to a new process."""
        if self._model:
            self._model.close()
            self._model = None

    def warm(self) -> ModelProcess:
        """Return a process that has loaded what it needs, so that time is spent on the row alone."""
        if self._model and self._model.pid:
            return self._model
        with mock.patch.object(planrun.entry, "PATH", self._main or planrun.entry.PATH):
            endpoint = endpoint_of(self.api.url, {"ANTHROPIC_API_KEY": KEY, "PATH": PATH})
            self._model = self._model or ModelProcess(endpoint, backoff=BACKOFF)
            self.api.script = as_script("warm")
            self._model.ask(question("warm", seconds=300.0))
            answer = self._model.wait(None)
        if answer is None or answer.ending != "answered":
            raise RuntimeError(f"an undisturbed call ends so: {answer}")
        return self._model

    def _against(self, entries: list[Entry]) -> list[str]:
        numbers = {entry.number for entry in entries}
        return [
            f"{verdict.name}: {verdict.text}"
            for verdict in self.api.journal.verdicts()
            # The pauses are made short on purpose; how long they are is shown elsewhere.
            if verdict.number in numbers and verdict.name != "retry storm"
        ]


def question(text: str, **fields: Any) -> Request:
    """Return a request about a text, with some fields changed."""
    asked: dict[str, Any] = {
        "purpose": "generate",
        "model": "model-a",
        "system": ("You write plans.", "At most ten steps."),
        "messages": ({"role": "user", "content": f"Build it, and test it: {text}."},),
        "max_tokens": 400,
        "paid": 99,  # rows are about what is repeated, not about what is paid for; chains are about both
        **fields,
    }
    return Request(**asked)


def judge(row: Row, request: Request, answer: Answer, entries: list[Entry]) -> Iterator[str]:
    """Yield what is not as it has to be in an answer to a row."""
    if (answer.ending, answer.attempts) != (row.ending, len(row.replies())):
        yield f"{answer.ending} after {answer.attempts} attempts ({answer.message})"
    if not answer.rule.startswith(row.rule):
        yield f"the rule is {answer.rule}, not {row.rule}"
    if row.told not in answer.message:
        yield f"the message is {answer.message!r}"
    if bool(answer.text) != (answer.ending == "answered"):
        yield f"the text is {answer.text!r}"
    if row.text is not None and answer.text != row.text:
        yield f"the text is {answer.text!r}, not {row.text!r}"
    if answer.ending != "answered" and not answer.message:
        yield "there is no message"
    if KEY in repr(answer) or "Traceback" in answer.message or len(answer.message.splitlines()) > 1:
        yield f"the message is none for people: {answer.message!r}"
    yield from _counted(answer, request, entries)
    yield from _sent(entries)


def _counted(answer: Answer, request: Request, entries: list[Entry]) -> Iterator[str]:
    due = sum(entry.due.total for entry in entries)
    most = len(entries) * (estimate(request) + request.max_tokens) + sum(e.told.total for e in entries)
    if not due <= answer.usage.total <= most:
        yield f"{answer.usage} where {due} is due, and {most} is the most"
    paid = sum(entry.due.total > 0 for entry in entries)
    if paid > request.paid:
        yield f"{paid} attempts cost something, where {request.paid} may"
    told = sum((entry.told for entry in entries), Tokens())
    if not answer.is_estimate and _tokens(answer.usage) != told:
        yield f"{answer.usage} is told as exact where the service told {told}"
    if answer.is_estimate and told.total == due and all(entry.ended == "whole" for entry in entries):
        yield f"{answer.usage} is told as an estimate where the service told all"


def _tokens(usage: Usage) -> Tokens:
    """Return usage as the service has it."""
    return Tokens(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens)


def _sent(entries: list[Entry]) -> Iterator[str]:
    for entry in entries:
        body = entry.body or {}
        if body.get("stream") is not True or {"temperature", "top_p", "top_k"} & set(body):
            yield f"request {entry.number} is not streamed, or chooses how to draw words"


@contextmanager
def altered(name: str, text: str, other: str) -> Iterator[str]:
    """Give the path of the process in a copy of planrun in which a file of it has another text."""
    with tempfile.TemporaryDirectory(prefix="calls-") as folder:
        os.chmod(folder, 0o755)
        copy = Path(folder).resolve() / "planrun"
        shutil.copytree(Path(planrun.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
        file = copy / "llm" / "worker" / name
        source = file.read_text("utf-8")
        if source.count(text) != 1:
            raise RuntimeError(f"{name} does not hold {text!r} once, so the fault cannot be planted")
        file.write_text(source.replace(text, other), "utf-8")
        yield str(copy / "entry.py")


@contextmanager
def planted(fault: str) -> Iterator[str]:
    """Give the path of the process with a fault in it; the empty name is the process as it is."""
    if not fault:
        yield ""
        return
    with altered(*FAULTS[fault][1:]) as main:
        yield main


def play_all(
    fault: str = "", kinds: Sequence[str] = tuple(ROWS), rows: Mapping[str, Sequence[Row]] = ROWS
) -> tuple[Counter[str], list[str]]:
    """Play rows of some kinds; returns how many of each, and what is not as it has to be."""
    counts: Counter[str] = Counter()
    problems: list[str] = []
    with planted(fault) as main, Stage(main) as stage:
        for kind in kinds:
            for row in rows[kind]:
                problems += stage.play(row, is_silent=kind == "silence")
                counts[kind] += 1
                if kind == "features":  # what a process learned of a service it keeps to
                    stage.forget()
    return counts, problems


def main(words: Sequence[str]) -> int:
    """Run the proof; 1 when a row does not hold, or a planted fault was not found."""
    parser = argparse.ArgumentParser(prog="python -m proofs calls", description=__doc__)
    parser.add_argument("--fault", choices=FAULTS, help="plant this one only, and show what it breaks")
    parser.add_argument("--chains", type=int, default=400, help="chains of faults that are drawn")
    parser.add_argument("--seed", type=int, default=0, help="what they are drawn by; 0: the time of day")
    chosen = parser.parse_args(words)
    seed = chosen.seed or int(time.time())
    began = time.monotonic()
    if chosen.fault:
        _, problems = play_all(chosen.fault, [FAULTS[chosen.fault][0]])
        print(f"planted fault: {chosen.fault}", *problems, sep="\n")
        return 0 if problems else 1
    counts, problems = play_all(rows={**ROWS, "chains": chains(chosen.chains, seed)})
    for cut in CUTS.values():
        with Stage() as stage:
            problems += cut_off(stage, *cut)
    print(f"seed {seed}; {len(CUTS)} calls cut off by planrun itself")
    for kind, count in counts.items():
        print(f"{kind}: {count} rows, each by a real server to the real process")
    print(f"{len(problems)} not as they have to be", *problems, sep="\n")
    missed = []
    for fault in FAULTS:
        _, found = play_all(fault, [FAULTS[fault][0]])
        print(f"planted fault: {fault}: {(*found, 'NOT CAUGHT')[0]} ({len(found)} findings)")
        missed += [] if found else [fault]
    print(f"{time.monotonic() - began:.0f} s")
    return int(bool(problems or missed))
