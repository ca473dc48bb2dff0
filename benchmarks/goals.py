"""The rows of the goals: what runs against what, and which ratio is promised."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import dags, dialects, peers, reports, verify
from benchmarks.bench import NO_SYNC, Bench
from benchmarks.figures import Figure, Row
from benchmarks.masks import secrets
from benchmarks.measure import Contender, MeasureError, Usage, run_once
from benchmarks.sandboxes import sandboxes
from benchmarks.schedules import planned, share, sleeping, works

SEEN, NEW, SH = peers.PLANRUN, "planrun, new plan", peers.PLANRUN_SH
PEERS = (peers.C_LOOP, "make", "ninja", "task", "doit")
MS_A_STEP = 20.0  # milliseconds that an empty step may cost
SECRET = "c1f5be2d0a7741e09b38"
FASTEST = 150e6  # bytes a second that masks have to let through
SLEPT_SEED = 90
PRINTED = b"one line of the kind that a compiler or a test runner prints, over and over again\n"
LARGEST_PLAN = 8 * 2**20  # bytes; planrun refuses more


def start(bench: Bench, row: Row) -> None:
    """P1: one step, plan seen before. The bare interpreter is the floor of any program in Python."""
    dag = dags.one("true")
    bare = bench.program("python -c pass", [sys.executable, "-c", "pass"])
    mine = bench.contender(bench.planrun, dag)
    hiding = bench.contender(bench.planrun, dag, name="planrun, a credential around")
    hiding.env["DEPLOY_TOKEN"] = SECRET
    peers_here = bench.against(dag, PEERS)
    ran = bench.compare("one step", [bare, mine, hiding, *peers_here], bench.size.rounds)
    row.ratio("one step, seen before", mine, ran.get("task"), 0.45)
    row.ratio("one step, seen before", mine, bare, 2.5)
    row.ratio("one step, a credential around", hiding, mine, None)
    row.memory("one step, seen before", mine, 20)
    row.keep("one step", ran.values(), bare)


def first_start(bench: Bench, row: Row) -> None:
    """P2: one step, plan never seen before."""
    dag = dags.one("true")
    bare = bench.program("python -c pass", [sys.executable, "-c", "pass"])
    contenders = [bare, bench.new_plan(dag), *bench.against(dag, ("task",))]
    ran = bench.compare("one step, never seen", contenders, bench.size.rounds)
    row.ratio("one step, never seen", ran[NEW], ran.get("task"), 0.7)
    row.keep("one step, never seen", ran.values(), bare)


def answers(bench: Bench, row: Row) -> None:
    """P3: --version and --help."""
    for option in ("--version", "--help"):
        bare = bench.program("python -c pass", [sys.executable, "-c", "pass"])
        mine = bench.program(SEEN, [*peers.planrun_command(), option])
        task = bench.peers.get("task")
        other = [bench.program("task", [task.argv[0], option])] if task else []
        ran = bench.compare(option, [bare, mine, *other], bench.size.rounds)
        row.ratio(option, mine, bare, 1.5)
        row.ratio(option, mine, ran.get("task"), 0.5)
        row.keep(option, ran.values(), bare)


@dataclass(frozen=True)
class Kind:
    """A kind of steps in P4: the command, which tools run it besides planrun, and the targets."""

    name: str
    command: dags.Command
    peers: tuple[str, ...]
    fan: float | None = None  # times the C loop
    layers: float | None = None
    chain: float | None = None  # without it there is no chain of these steps
    own: float | None = None  # ms of planrun's own processor time a step
    task: float | None = None
    doit: float | None = None


KINDS = (
    Kind("silent", dags.silent, PEERS, 1.2, 1.3, 1.5, own=0.4, doit=0.6),
    Kind("printing", dags.printing, (peers.C_LOOP, peers.C_LOGS, "make", "ninja"), 1.6, 1.6, own=0.5),
    # task starts no process for `true` and `echo`: only this kind is the same work for it.
    Kind("programs", dags.program, (peers.C_LOOP, "make", "ninja", "task"), task=1.0),
)


def graphs(bench: Bench, row: Row) -> None:
    """P4: a thousand steps, wide and layered, and a chain of a hundred; silent, printing, starting a program."""
    largest: list[Contender] = []
    for kind in KINDS:
        fan, layers = _usual(bench, kind.command)
        largest += _graph(bench, row, fan, kind, kind.fan)
        largest += _graph(bench, row, layers, kind, kind.layers)
        if kind.name != "printing":
            _graph(bench, row, dags.chain(bench.size.chain, kind.command), kind, kind.chain)
    row.memory("the largest of these runs", max(largest, key=lambda run: run.median().rss), 24)
    for label, command in (("silent", dags.silent), ("printing", dags.printing)):
        dag = _usual(bench, command)[1]
        _masked_graph(bench, row, dag, f"{dag.name} {label}, masked")


def _masked_graph(bench: Bench, row: Row, dag: dags.Dag, work: str) -> None:
    plain = bench.contender(bench.planrun, dag)
    masked = bench.masked(dag, {"DEPLOY_TOKEN": SECRET}, name="planrun, one secret")
    bench.compare(work, [plain, masked], bench.size.long_rounds)
    row.ratio(work, masked, plain, 1.1)
    row.keep(work, [plain, masked], plain)


def _usual(bench: Bench, command: dags.Command) -> tuple[dags.Dag, dags.Dag]:
    steps = bench.size.steps
    return dags.fan(steps, command), dags.layers(10, steps // 10, command)


def _graph(bench: Bench, row: Row, dag: dags.Dag, kind: Kind, limit: float | None) -> list[Contender]:
    work = f"{dag.name} {kind.name}"
    mine = [bench.contender(bench.planrun, dag), bench.new_plan(dag), bench.contender(bench.planrun_sh, dag)]
    contenders = [*bench.against(dag, kind.peers), *mine]
    single = _singles(bench, kind) if kind.own else []
    ran = bench.compare(work, [*contenders, *single], bench.size.long_rounds)
    loop, (seen, new, sh) = ran[peers.C_LOOP], mine
    row.ratio(work, seen, loop, limit)
    # The start of a new plan is P2's; in a chain it would be half of the time.
    row.ratio(f"{work}, never seen", new, loop, None if dag.name.startswith("chain") else limit)
    row.ratio(f"{work}, shell: sh", sh, loop, limit)
    if "task" in kind.peers:
        row.ratio(work, seen, ran.get("task"), kind.task)
        row.ratio(f"{work}, never seen", new, ran.get("task"), kind.task)
    if "doit" in kind.peers:
        row.ratio(f"{work}, never seen", new, ran.get("doit"), kind.doit)
    if single:
        row.own(work, seen, single[0], len(dag.steps) - 1, kind.own)
        row.own(f"{work}, never seen", new, single[1], len(dag.steps) - 1, kind.own)
        row.each(f"{work}, never seen", new, len(dag.steps), MS_A_STEP)
    row.keep(work, contenders, loop)
    return mine


def _singles(bench: Bench, kind: Kind) -> list[Contender]:
    """Runs of one step, whose processor time is that of a start."""
    dag = dags.one(kind.command(0))
    seen, new = bench.contender(bench.planrun, dag), bench.new_plan(dag)
    seen.name, new.name = "planrun, one step", "planrun, one step, new plan"
    return [seen, new]


def growth(bench: Bench, row: Row) -> None:
    """P5: ten times as many steps."""
    few = dags.layers(10, bench.size.steps // 10, dags.silent)
    many = dags.layers(bench.size.many_steps // 100, 100, dags.silent)

    def shapes(dag: dags.Dag) -> list[Contender]:
        return [
            bench.contender(bench.planrun, dag),
            bench.new_plan(dag),
            bench.contender(bench.planrun_sh, dag),
        ]

    small, large = shapes(few), shapes(many)
    for contender in small:
        contender.name += f", {few.name}"
    others = bench.against(many, (peers.C_LOOP, "make"))
    ran = bench.compare(many.name, [*others, *large, *small], bench.size.long_rounds)
    for label, mine, less in zip(("", ", never seen", ", shell: sh"), large, small, strict=True):
        work = f"{many.name} silent{label}"

        def each(much: Usage, little: Usage) -> float:
            return much.wall / len(many.steps) / (little.wall / len(few.steps))

        row.ratio(work, mine, ran[peers.C_LOOP], 1.3)
        row.compute(work, f"x a step of {few.name}", 1.2, each, mine, less)
        row.memory(work, mine, 48)
    row.keep(many.name, ran.values(), ran[peers.C_LOOP])


def validation(bench: Bench, row: Row) -> None:
    """P6: reading and checking large plans, against PyYAML's C reader, which only reads."""
    bench.insist_on_refusal()
    bare = bench.program("python -c pass", [sys.executable, "-c", "pass"])
    library = bench.program("import yaml", [sys.executable, "-c", "import yaml"])
    few, many = bench.size.validated
    small, large = _validation(bench, few), _validation(bench, many)
    read = "import yaml; yaml.load(open('plan.yml', 'rb'), Loader=yaml.CSafeLoader)"
    reader = Contender("CSafeLoader", [sys.executable, "-c", read], small.workspace, bench.environment())
    bench.compare("validate", [bare, library, reader, small, large], bench.size.long_rounds)

    def checking(mine: Usage, start: Usage, other: Usage, imported: Usage) -> float:
        return (mine.wall - start.wall) / (other.wall - imported.wall)

    def each(much: Usage, little: Usage) -> float:
        return much.wall / many / (little.wall / few)

    work = f"validate {few}"
    row.compute(f"{work}, start-up taken off", "x CSafeLoader", 0.5, checking, small, bare, reader, library)
    row.ratio(f"{work}, whole process", small, reader, 1.0)
    row.compute(f"validate {many}", f"x a step of {few}", 1.2, each, large, small)
    row.memory(f"validate {many}", large, 1024)
    row.keep("validate", [reader, small, large, bare], reader)


def _validation(bench: Bench, count: int) -> Contender:
    text = dialects.planrun(dags.layers(count // 100, 100, dags.silent))
    if len(text.encode()) > LARGEST_PLAN:
        raise ValueError(f"a plan of {count} steps is larger than planrun accepts")
    command = [*peers.planrun_command(), "validate", "plan.yml"]
    workspace = bench.workspace({"plan.yml": text})
    return Contender(
        f"planrun validate {count}", command, workspace, bench.environment(), before=bench.fresh_cache
    )


def output(bench: Bench, row: Row) -> None:
    """P7: one step that prints much.

    By default planrun shows what a step prints and keeps it in a log, as `tee` does; `--output failed` shows nothing
    of a step that passes, as `sh > file` does.
    """
    amount = f"{bench.size.printed / 1e6:g} MB"
    work = f"one step prints {amount}"
    command = _much(bench, bench.size.printed)
    file, tee, mine, hidden = _printers(bench, command)
    bench.compare(amount, [file, tee, mine, hidden], bench.size.long_rounds)
    row.ratio(f"{work}, shown in a file", mine, file, 1.15)
    row.ratio(f"{work}, shown in a file", mine, tee, 1.15)
    row.ratio(f"{work}, not shown", hidden, file, 1.15)
    row.keep(amount, [file, tee, mine, hidden], file)
    _, tee, mine, _ = _printers(bench, command)
    tee.terminal = mine.terminal = True
    bench.compare(f"{amount}, terminal", [tee, mine], bench.size.long_rounds)
    row.ratio(f"{work}, shown on a terminal", mine, tee, 1.15)
    row.keep(f"{amount}, terminal", [tee, mine], tee)
    _masked_printer(bench, row, amount)
    if bench.size.flooded is None:
        row.notes.append("10 GB are printed with --full only")
    else:
        flood = bench.contender(bench.planrun, dags.one(_flood(bench.size.flooded)))
        flood.before = bench.purge
        grown = run_once(bench.launcher, flood).rss - mine.median().rss
        row.add(Figure(f"memory, {bench.size.flooded / 1e9:g} GB against {amount}", grown, "MiB more", 50))
        bench.purge({})


def _masked_printer(bench: Bench, row: Row, amount: str) -> None:
    tokens = {f"SECRET_{n}": value for n, value in enumerate(secrets()["tokens of 20 and more"])}
    masked = bench.masked(dags.one(_much(bench, bench.size.printed)), tokens, name="planrun, 20 secrets")
    masked.before = bench.purge
    work = f"one step prints {amount}, 20 secrets"
    bench.compare(work, [masked], bench.size.long_rounds)
    usual = bench.size.printed / FASTEST
    row.compute(work, "x its time at 150 MB/s", 1.0, lambda used: used.wall / usual, masked)
    row.memory(work, masked, 64)
    row.keep(f"{amount}, 20 secrets", [masked], masked)


def _much(bench: Bench, amount: int) -> str:
    """A command that prints so many bytes of a file, as a program that has them ready."""
    source = bench.folder / "printed"
    if not source.exists():
        source.write_bytes((PRINTED * (amount // len(PRINTED) + 1))[:amount])
    return f"head -c {amount} {source}"


def _flood(amount: int) -> str:
    """A command that prints more than one wants to have in a file; the default shell fails for a broken pipe."""
    return f"yes '{PRINTED.decode().strip()}' | head -c {amount} || true"


def _printers(bench: Bench, command: str) -> tuple[Contender, Contender, Contender, Contender]:
    """The shell into a file and through tee, planrun showing the output and not."""
    file = bench.program("sh > file", ["/bin/sh", "-c", f"{command} > output.log"])
    tee = bench.program("sh | tee file", ["/bin/sh", "-c", f"{command} | tee output.log"])
    mine = bench.contender(bench.planrun, dags.one(command))
    hidden = bench.contender(bench.planrun, dags.one(command), name="planrun --output failed")
    hidden.argv = [*hidden.argv, "--output", "failed"]
    for contender in (file, tee, mine, hidden):
        contender.before = bench.purge
    return file, tee, mine, hidden


def reporting(bench: Bench, row: Row) -> None:
    """P8: each report of a run of 10,000 steps, of which a tenth fails; together they print more than reports show."""
    steps = bench.size.many_steps
    workspace = bench.workspace(reports.inputs(steps))
    run = Contender(
        "planrun", [*peers.planrun_command(), "execute", "plan.yml"], workspace, bench.environment()
    )
    summary = bench.folder / "summary.md"
    run.env |= {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}
    bench.progress.show(f"run of {steps} steps", 1, 1, "planrun")
    status = run_once(bench.launcher, run, may_fail=True).status
    if status != 1:
        raise MeasureError(f"the run whose reports are measured ended with {status}, not 1")
    made = []
    for name in reports.FORMATS:
        command = [*peers.planrun_command(), "report", "--format", name, "-o", f"report.{name}"]
        kept = replace(
            workspace, keep=workspace.keep | {".planrun"} | {f"report.{other}" for other in reports.FORMATS}
        )
        made.append(Contender(f"planrun report --format {name}", command, kept, bench.environment()))
    bench.compare(f"reports of {steps} steps", made, bench.size.long_rounds)
    for (name, limit), contender in zip(reports.FORMATS.items(), made, strict=True):
        work = f"report of {steps} steps, {name}"
        row.compute(work, "s", 3.0, lambda used: used.wall, contender)
        report = workspace.folder / f"report.{name}"
        row.add(Figure(work, report.stat().st_size / 2**20, "MiB", None))
        if limit:
            row.add(Figure(f"{work}, logs in it", reports.log_bytes(report) / 2**20, "MiB", limit / 2**20))
    size = summary.stat().st_size / 2**20
    row.add(Figure(f"step summary of {steps} steps", size, "MiB", reports.SUMMARY_BYTES / 2**20))
    row.keep("reports", made, made[0])


def schedules(bench: Bench, row: Row) -> None:
    """P9: how close `dag` is to the lower bound, on a virtual clock, and in real time with steps that sleep."""
    found = works(bench.size.graphs)
    for way, spans in planned(found).items():
        against = dict(zip(("bound", "tight bound", "best order"), zip(*spans, strict=True), strict=True))
        if way == "dag, durations recorded":
            # The goal is about the bound; p95 is held against what can be reached, which the bound need not be.
            row.add(Figure(f"{way}, median", share(against["bound"], 0.5), "x bound", 1.05))
            row.add(Figure(f"{way}, p95", share(against["best order"], 0.95), "x best order", 1.05))
        elif way == "levels":
            row.add(Figure(f"{way}, median", share(against["bound"], 0.5), "x bound", None))
        parts = [
            f"{name} " + ", ".join(f"{share(values, part):.2f}" for part in (0.5, 0.95, 1.0))
            for name, values in against.items()
        ]
        within = sum(span[0] <= 1.05 for span in spans) / len(spans)
        row.notes.append(
            f"{way} (median, p95, max): {'; '.join(parts)}; {within:.0%} within 1.05 of the bound"
        )
    _slept(bench, row)


def _slept(bench: Bench, row: Row) -> None:
    spans: dict[str, list[float]] = {"nothing recorded": [], "durations recorded": []}
    for number, work in enumerate(works(bench.size.slept, seed=SLEPT_SEED), 1):
        bench.progress.show("steps that sleep", number, bench.size.slept, "planrun")
        scaled, text = sleeping(work, bench.size.slept_seconds)
        contender = Contender(
            "planrun", [*peers.planrun_command(), "execute", "plan.yml", "--jobs", str(work.jobs)],
            bench.workspace({"plan.yml": text}), bench.environment(),
        )  # fmt: skip
        kept = contender.workspace.keep | {".planrun"}
        contender.workspace = replace(contender.workspace, keep=kept)
        for values in spans.values():  # the second run has the durations of the first
            run_once(bench.launcher, contender)
            values.append(verify.took(contender.workspace.folder) / scaled.bound())
    for way, values in spans.items():
        for what, part in (("median", 0.5), ("max", 1.0)):
            work_told = f"{len(values)} graphs of steps that sleep, {way}, {what}"
            row.add(Figure(work_told, share(values, part), "x bound", None))


def durability(bench: Bench, row: Row) -> None:
    """P10: events are recorded before what depends on them starts; what the syncs of the ledger cost."""
    witnesses = dags.layers(10, 10, dags.witnessing)
    contender = bench.contender(bench.planrun, witnesses)
    run_once(bench.launcher, contender)
    late = verify.unrecorded(witnesses, contender.workspace.folder)
    row.add(Figure("edges whose event was written late", len(late), "edges", 0))
    if not _knows_no_sync():
        row.notes.append(f"planrun does not know {NO_SYNC}: there is no run without syncs to compare with")
        return
    for dag in _usual(bench, dags.silent):
        synced = bench.contender(bench.planrun, dag)
        loose = bench.contender(bench.planrun, dag, name="planrun without syncs")
        loose.env[NO_SYNC] = "1"
        bench.compare(f"{dag.name}, syncs", [loose, synced], bench.size.long_rounds)
        row.ratio(dag.name, synced, loose, 1.5)
        row.keep(dag.name, [loose, synced], loose)


def _knows_no_sync() -> bool:
    package = importlib.util.find_spec("planrun")
    folders = package.submodule_search_locations if package and package.submodule_search_locations else []
    return any(NO_SYNC in source.read_text() for folder in folders for source in Path(folder).rglob("*.py"))


ROWS: dict[str, Callable[[Bench, Row], None]] = {
    "P1": start,
    "P2": first_start,
    "P3": answers,
    "P4": graphs,
    "P5": growth,
    "P6": validation,
    "P7": output,
    "P8": reporting,
    "P9": schedules,
    "P10": durability,
    "S3": sandboxes,
}


def with_flood(bench: Bench) -> None:
    """Add what `--full` adds: 10 GB of output."""
    bench.size = replace(bench.size, flooded=10_000_000_000)
