"""`planrun attest`: an in-toto statement about a run, to be signed."""

from __future__ import annotations

import json
import os
from re import fullmatch

import click

from planrun.app.inspect import inspect
from planrun.attest.statement import Source, statement
from planrun.cliutil.completion import complete_runs
from planrun.cliutil.output import deliver
from planrun.errors import InvalidInput
from planrun.model.jsontext import well_formed
from planrun.opening import read_record
from planrun.records.rundir import LEDGER
from planrun.sha256 import sha256

KINDS = ("test-result", "provenance")


@click.command(short_help="Write an in-toto statement about a run.")
@click.argument("run", default="last", shell_complete=complete_runs)
@click.option(
    "--type", "kind", type=click.Choice(KINDS), default="test-result", show_default=True,
    help="What it states: which steps and test cases passed, or where the files that were made come from.",
)  # fmt: skip
@click.option(
    "--commit", metavar="SHA", default="", help="The git commit that it ran on. Default: the one of its CI."
)
@click.option("--repository", metavar="URL", default="", help="The URL of that commit's repository.")
@click.option("--predicate", is_flag=True, help="Write the predicate alone, for tools that add the subject.")
@click.option(
    "-o", "--output", type=click.Path(readable=False), metavar="FILE", help="Write to FILE instead of stdout."
)
def attest(run: str, kind: str, *, predicate: bool, output: str | None, **where: str) -> int:
    """Write a statement about RUN (default: the newest run), in the form of in-toto. It is not signed.

    Its subjects are the commit that the run was on, or the files that steps list under `produces`. The ledger has to
    be intact and the run at its end.

    \b
    Examples:
      planrun attest last -o test-result.json
      planrun attest last --type provenance
      planrun attest last --predicate -o predicate.json
    """
    commit = where["commit"]
    if commit and not fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", commit):
        raise InvalidInput(
            f"--commit takes the whole hash of a commit, e.g. of `git rev-parse HEAD`; not {commit}"
        )
    inspected = inspect(run)
    if inspected.reading.condition != "intact":
        raise InvalidInput(
            f"the ledger is {inspected.reading.condition}: {inspected.reading.detail or inspected.rundir}; "
            "a statement needs a run that ended and whose ledger is intact"
        )
    digest = str(sha256(read_record(os.path.join(inspected.rundir, LEDGER))).hexdigest())
    source = Source(state=inspected.state, rundir=inspected.rundir, ledger=digest, **where)
    found = statement(source, kind)
    whole = found["predicate"] if predicate else found
    data = json.dumps(well_formed(whole), indent=2, ensure_ascii=False).encode() + b"\n"
    deliver(data, output)
    return 0
