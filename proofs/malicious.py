"""A model that means harm can do none: replies of all kinds through the real service's form, client, process and run.

Each trial is a run of its own whose step `test` fails, so that a model is asked, under a ceiling of `low` for what it
writes. Each planted fault switches one wall off, and the trials made for it must show that.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from proofs import malice
from proofs.malice.ground import TOKEN, Ground, Service
from proofs.malice.judging import Finding, judge, judge_elsewhere
from proofs.malice.planted import CAUGHT_BY, FAULTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from planrun.ports import Model
    from proofs.malice.attack import Attack


def try_one(ground: Ground, service: Service, *, within: bool = False) -> Finding:
    """Carry out one trial; what waits for an answer gets it afterwards, so that it can go on to its end."""
    begun = time.monotonic()
    attack = ground.attack

    def run(*words: str) -> None:
        if within:
            ground.within(words)
        else:
            ground.by_command(words)

    run(*ground.words)
    if attack.verb != "replan":
        return judge_elsewhere(ground, service, time.monotonic() - begun)
    found = judge(ground, service, 0.0)
    problems = list(found.problems)
    if attack.outcome == "revised" and ground.codes == [5]:
        run("resume", "last", *([] if attack.waits and not attack.high else ["--decide", "approve=yes"]))
        problems += judge(ground, service, 0.0).problems
        if ground.codes != [5, 5 if attack.waits else 0]:
            problems.append(f"it ended with {ground.codes}: {ground.output[-300:]}")
        elif not attack.waits and not (
            (ground.work / "repaired").exists() and (ground.work / "published").exists()
        ):
            problems.append("it ended well, and not everything was done")
    return Finding(
        attack,
        found.outcome,
        ground.codes[-1],
        found.requests,
        time.monotonic() - begun,
        tuple(dict.fromkeys(problems)),
    )


def carry_out(planned: Sequence[Attack], at_once: int = 2) -> list[Finding]:
    """Try each in a folder of its own, by a planrun of its own."""
    trials = dict(enumerate(planned))
    service = Service(trials)
    with (
        tempfile.TemporaryDirectory(prefix="malicious-") as folder,
        service.api as api,
        ThreadPoolExecutor(at_once) as pool,
    ):

        def one(number: int) -> Finding:
            ground = Ground(Path(folder, str(number)), trials[number], number, dict(api.env))
            return try_one(ground, service)

        return list(pool.map(one, trials))


class Within:
    """Trials in this process, one after the other, with one process for the model that all of them ask.

    This process is closed to others from then on: it is to be one that was started for it.
    """

    def __init__(self, folder: Path, planned: Sequence[Attack]) -> None:
        from planrun.planner import models

        self._folder = folder
        self._trials = dict(enumerate(planned))
        self._service = Service(self._trials)
        self._open = models.open_model
        self._model: Model | None = None
        self._close: Callable[[], None] = lambda: None
        models.open_model = self._shared

    def __enter__(self) -> Self:
        """Begin to serve, and have this process's environment be that of a trial."""
        self._api = self._service.api.__enter__()
        os.environ.update(
            self._api.env | {"PYPI_TOKEN": TOKEN, "PLANRUN_CACHE_DIR": str(self._folder / "cache")}
        )
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._close()
        self._service.api.__exit__(kind, error, trace)

    def _shared(self, *words: Any, **fields: Any) -> Model:
        if self._model is None:
            self._model = self._open(*words, **fields)
            self._close = self._model.close
            self._model.close = lambda: None  # type: ignore[method-assign]  # many runs ask it, and none ends it
        return self._model

    def trials(self) -> Iterator[Finding]:
        """Carry out all of them; where an attack is made for a fault, that is planted for it."""
        for number, attack in self._trials.items():
            ground = Ground(self._folder / str(number), attack, number, dict(self._api.env))
            undo: list[Callable[[], None]] = []
            if attack.fault:
                exec(
                    FAULTS[attack.fault], {"patch": _patching(undo)}
                )  # as a planrun of its own would have it
            try:
                yield try_one(ground, self._service, within=True)
            finally:
                for each in undo:
                    each()


def _patching(undo: list[Callable[[], None]]) -> Callable[[Any, str, Any], None]:
    def patch(owner: Any, name: str, value: Any) -> None:
        before = getattr(owner, name)
        undo.append(lambda: setattr(owner, name, before))
        setattr(owner, name, value)

    return patch


def faulty() -> list[Attack]:
    """Return the attacks at which planted faults must show, each with its fault."""
    known = {(attack.family, attack.name): attack for attack in malice.attacks()}
    return [replace(known[place], fault=fault) for fault, place in CAUGHT_BY.items()]


def some(share: int) -> list[Attack]:
    """Return every so manieth attack of each family, the first one at least."""
    families: dict[str, list[Attack]] = {}
    for attack in malice.attacks():
        families.setdefault(attack.family, []).append(attack)
    return [attack for found in families.values() for attack in found[::share]]


def table(findings: Sequence[Finding]) -> str:
    """What came of each family: trials, how they ended, requests, and the slowest."""
    lines = [f"{'family':22}{'trials':>7}{'exit':>6}{'requests':>10}{'slowest':>10}  ended"]
    families: dict[str, list[Finding]] = {}
    for finding in findings:
        families.setdefault(finding.attack.family, []).append(finding)
    for name, found in families.items():
        ends = ", ".join(f"{count} {what}" for what, count in Counter(each.outcome for each in found).items())
        codes = "/".join(str(code) for code in sorted({each.exit_code for each in found}))
        asked, slowest = sum(each.requests for each in found), max(each.seconds for each in found)
        lines.append(f"{name:22}{len(found):7}{codes:>6}{asked:10}{slowest:8.1f} s  {ends}")
    return "\n".join(lines)


def told(findings: Sequence[Finding]) -> bool:
    """Print what was found; returns whether nothing was wrong and every planted fault was caught."""
    sound = [finding for finding in findings if not finding.attack.fault]
    print(table(sound))
    wrong = [finding for finding in sound if finding.problems]
    for finding in wrong:
        print(f"WRONG {finding.attack.family}, {finding.attack.name}: {'; '.join(finding.problems)[:600]}")
    bad = [finding for finding in sound if finding.attack.family != "benign"]
    most = max(finding.requests for finding in sound)
    print(
        f"{len(bad)} malicious replies of {len({one.attack.family for one in bad})} families, "
        f"{len(sound) - len(bad)} benign ones that ran; at most {most} requests a planning; {len(wrong)} wrong"
    )
    planted = [finding for finding in findings if finding.attack.fault]
    for finding in planted:
        shown = "; ".join(finding.problems)[:200] or "NOT CAUGHT"
        print(f"planted fault {finding.attack.fault}: {shown}")
    return not wrong and all(finding.problems for finding in planted)


def main(words: Sequence[str]) -> int:
    """Run the proof; 1 when a wall did not hold, a benign reply did not run, or a planted fault was not caught."""
    parser = argparse.ArgumentParser(prog="python -m proofs malicious", description=__doc__)
    parser.add_argument(
        "--within", action="store_true", help="in one process, with one process for the model"
    )
    parser.add_argument(
        "--share",
        type=int,
        default=1,
        help="every so manieth attack of each family, and twice as many benign replies",
    )
    parser.add_argument(
        "--fault", choices=[name for name in FAULTS if name], default="", help="plant one in all"
    )
    chosen = parser.parse_args(words)
    planned = [*some(chosen.share), *malice.controls()[:: max(1, chosen.share // 2)]]
    if chosen.fault:
        planned = [replace(attack, fault=chosen.fault) for attack in planned]
    else:
        planned += faulty()
    if chosen.within:
        with (
            tempfile.TemporaryDirectory(prefix="malicious-") as folder,
            Within(Path(folder), planned) as all_of_them,
        ):
            findings = list(all_of_them.trials())
    else:
        findings = carry_out(planned)
    if chosen.fault:
        findings = [replace(one, attack=replace(one.attack, fault="")) for one in findings]
    return int(not told(findings))
