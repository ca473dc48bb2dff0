"""`planrun shard` and `planrun merge`: the split of a plan over machines, and one verdict from what they report."""

from __future__ import annotations

import os
from re import fullmatch

import click

from planrun.app.sharding import MOST, Request, request, seconds_of, split
from planrun.cliutil.completion import complete_plans
from planrun.cliutil.defaultplan import given
from planrun.cliutil.printing import say, say_json, table
from planrun.errors import InvalidInput
from planrun.model.jsontext import dumps
from planrun.plan.load import load
from planrun.records.rundir import HOME
from planrun.reports.ci import vendor
from planrun.reports.escape import line
from planrun.reports.facts import seconds
from planrun.reports.github import append_summary, write_outputs
from planrun.reports.write import write_texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.app.sharding import Split
    from planrun.shards.merging import Merged


@click.command(short_help="Split a plan over several machines.")
@click.argument("shard", metavar="N/M|M")
@click.argument("plan", required=False, type=click.Path(readable=False), shell_complete=complete_plans)
@click.option("--legs", multiple=True, metavar="STEP", help="Split the instances of this step; repeatable.")
@click.option(
    "--timings",
    default="",
    type=click.Path(),
    metavar="FILE",
    envvar="PLANRUN_TIMINGS",
    help="Durations: a ledger.json of an earlier run, or `history` for those of this folder. Default: all steps alike.",
)
@click.option(
    "--matrix", is_flag=True, help="Print the shards as a matrix of GitHub, and set the output `matrix`."
)
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def shard(  # noqa: PLR0913 - click gives each option as an argument
    shard: str, plan: str | None, legs: tuple[str, ...], timings: str, *, matrix: bool, as_json: bool
) -> int:
    """Print the steps of shard N of M, one a line; with M alone, how the plan is split into M shards.

    Each step is in exactly one shard. Steps that depend on each other stay together. With --legs the instances of a
    step (its matrix or foreach) are split: what that step depends on runs in each shard that needs it, and
    what depends on that step in none, since it needs all of them. The longest parts are dealt first, each to the shard
    with least to do. The same plan and timings give the same split on every machine.

    The option --shard of execute runs a shard; the verb merge checks that all are there and gives one verdict.

    \b
    Examples:
      planrun shard 4 plan.yml --legs test
      planrun shard 2/4 plan.yml --legs test --timings ledger.json
      planrun shard 4 plan.yml --legs test --matrix
    """
    chosen = given(plan)
    loaded = load(chosen.file)
    whole = bool(fullmatch(r"\d{1,4}", shard)) and 1 <= int(shard) <= MOST
    wanted = (
        Request(number=0, of=int(shard), legs=legs) if whole else request(shard, legs, timings, os.environ)
    )
    timings = timings if timings == "history" else chosen.path(timings)
    found = split(loaded, wanted, seconds_of(loaded, timings, HOME))
    if matrix:
        _print_matrix(found)
    elif as_json:
        say_json(_as_data(found, loaded.name))
    elif wanted.number:
        steps = found.shards[wanted.number - 1].steps
        say("\n".join(steps)) if steps else None
    else:
        say("\n".join(_rows(found)))
    return 0


def _label(number: int, found: Split) -> str:
    return f"{number}/{len(found.shards)}"


def _as_data(found: Split, plan: str) -> dict[str, object]:
    rows = [
        {"shard": _label(number, found), "seconds": part.seconds, "steps": list(part.steps)}
        for number, part in enumerate(found.shards, 1)
    ]
    return {
        "plan": plan,
        "split": found.digest,
        "shards": rows,
        "each": list(found.each),
        "after": list(found.after),
    }


def _print_matrix(found: Split) -> None:
    """Print the shards as GitHub's `strategy.matrix`, which a job reads by fromJSON."""
    rows = [{"shard": _label(number, found), "number": number} for number in range(1, len(found.shards) + 1)]
    text = dumps({"include": rows})
    if vendor(os.environ) in ("github", "gitea") and os.environ.get("GITHUB_OUTPUT"):
        write_outputs({"matrix": text}, os.environ["GITHUB_OUTPUT"])
    say(text)


def _rows(found: Split) -> list[str]:
    cells = [
        (_label(number, found), seconds(part.seconds), str(len(part.steps)), line(", ".join(part.steps), 100))
        for number, part in enumerate(found.shards, 1)
    ]
    rows = [table(("Shard", "Seconds", "Number", "Steps"), cells, right=(1, 2))]
    if found.each:
        rows.append(f"in each shard that needs them: {line(', '.join(found.each))}")
    if found.after:
        rows.append(f"in none, run them after all shards: {line(', '.join(found.after))}")
    if found.units < len(found.shards):
        rows.append(
            f"the plan has {found.units} part{'' if found.units == 1 else 's'} that can be split; "
            "--legs STEP splits the instances of a step"
        )
    return rows


@click.command(short_help="Merge the reports of shards into one verdict.")
@click.argument("places", nargs=-1, required=True, metavar="DIR|LEDGER...", type=click.Path())
@click.option(
    "--report-dir",
    type=click.Path(),
    default="planrun-out",
    show_default=True,
    metavar="DIR",
    envvar="PLANRUN_REPORT_DIR",
    help="Where the merged junit.xml, report.md and ledger.json go.",
)
@click.option(
    "--skip",
    "skipped",
    multiple=True,
    metavar="STEP",
    help="This step may be left out of every run; repeatable.",
)
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print the merged ledger.json.")
def merge(places: tuple[str, ...], report_dir: str, skipped: tuple[str, ...], *, as_json: bool) -> int:
    """Merge the ledgers and JUnit files of all shards of a plan; the exit code is that of the whole.

    DIR is a folder with the reports of a shard, or with folders of them, as CI systems download artifacts. All must be
    of the same plan and the same split, each shard once; a missing shard is a failure, and so is a step that every
    run left out, unless --skip names it here, too. A run without --shard adds the steps that were left for after the
    shards. Under GitHub Actions the page is added to the step summary.

    \b
    Exit codes:
      0    every shard is there, and completed or partial
      2    a file cannot be read, or is of another plan or another split
      else that of the shard that went worst; 1 where a shard or a step is missing

    \b
    Examples:
      planrun merge shards/ --report-dir planrun-out
      planrun merge shard-1/ledger.json shard-2/ledger.json
    """
    from planrun.shards.merging import (
        FILE,
        exit_code,
        find_ledgers,
        markdown,
        merge,
        merge_junit,
        read_ledger,
        rows,
    )

    found = merge([read_ledger(file) for file in find_ledgers(places)], skipped)
    beside = [os.path.join(os.path.dirname(part.file), FILE) for part in found.parts]
    absent = [file for file in beside if not os.path.isfile(file)]
    if absent:
        raise InvalidInput(f"no {FILE} beside the ledger: {', '.join(absent)}")
    page = markdown(found)
    junit = merge_junit(beside).decode()
    texts = {"ledger.json": f"{dumps(found.ledger)}\n", FILE: junit, "report.md": page}
    paths = write_texts(report_dir, texts)
    _tell(found, page, paths)
    if as_json:
        say_json(found.ledger)
    else:
        say("\n".join([*rows(found), f"  reports in {report_dir}: {', '.join(texts)}"]))
    return exit_code(found)


def _tell(found: Merged, page: str, paths: list[str]) -> None:
    """Write step summary and outputs, where the job asks for them."""
    if vendor(os.environ) not in ("github", "gitea"):
        return
    if os.environ.get("GITHUB_STEP_SUMMARY"):
        append_summary(page, os.environ["GITHUB_STEP_SUMMARY"])
    if os.environ.get("GITHUB_OUTPUT"):
        failed = [step["id"] for step in found.ledger["steps"] if step["status"] == "failed"]
        values = {
            "result": found.verdict,
            "failed-steps": dumps(failed),
            "missing-shards": dumps(list(found.missing)),
        }
        places = dict(zip(("ledger-path", "junit-path", "report-path"), paths, strict=True))
        write_outputs(values | places, os.environ["GITHUB_OUTPUT"])
