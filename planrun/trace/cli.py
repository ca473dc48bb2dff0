"""`planrun trace`: the spans of a run, from its ledger."""

from __future__ import annotations

import json

import click

from planrun.app.inspect import inspect
from planrun.cliutil import write_stderr
from planrun.cliutil.completion import complete_runs
from planrun.cliutil.failure import printable
from planrun.cliutil.output import deliver
from planrun.errors import EXIT_FAILED, EXIT_OK
from planrun.model.jsontext import well_formed
from planrun.records.reading import BROKEN
from planrun.trace.otlp import document
from planrun.trace.sending import Sender, endpoint_of, require_otel, without_credentials
from planrun.trace.spans import trace_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.trace.span import Trace

_INDENT = 1


@click.command(short_help="Write the spans of a run for OpenTelemetry, or send them.")
@click.argument("run", default="last", shell_complete=complete_runs)
@click.option(
    "--otlp",
    "url",
    metavar="URL",
    help="Send them to this collector by OTLP over HTTP, e.g. http://localhost:4318; needs planrun[otel].",
)
@click.option(
    "-o", "--file", type=click.Path(readable=False), metavar="FILE", help="Write to FILE instead of stdout."
)
def trace(run: str, url: str | None, file: str | None) -> int:
    """Write RUN (default: the newest run) as one OTLP document in JSON, or send it to a collector.

    One span for the run, each step and each attempt, by OpenTelemetry's conventions for CI/CD; one for each agent,
    tool call and model call. All are from the ledger, so secrets are masked. A later --otlp sends the same ids.
    Exit code 1: the collector did not take them.

    \b
    Examples:
      planrun trace last --file trace.json
      planrun trace --otlp http://localhost:4318
      planrun trace 20260131-09 | jq '.resourceSpans[].scopeSpans[].spans[].name'
    """
    if url is not None:
        require_otel()
        url = endpoint_of(url)
    inspected = inspect(run)
    if inspected.reading.condition in BROKEN:
        write_stderr(f"planrun: warning: the ledger is {inspected.reading.condition}; the trace ends there\n")
    found = trace_of(inspected.state, inspected.reading.events, over=not inspected.is_active)
    if url is None or file is not None:
        text = json.dumps(well_formed(document(found)), indent=_INDENT)
        deliver(text.encode() + b"\n", file)
    return EXIT_OK if url is None else _send(found, url)


def _send(found: Trace, url: str) -> int:
    spans = [span for span in found.spans if span.end]
    sender, shown = Sender(url), printable(without_credentials(url))
    taken = sender.send(found, spans)
    if sender.failure:
        write_stderr(
            f"planrun: error: {len(spans) - taken} of {len(spans)} spans were not sent to {shown}: "
            f"{printable(sender.failure)}\n"
        )
        return EXIT_FAILED
    write_stderr(f"planrun: sent {taken} spans of trace {found.trace} to {shown}\n")
    return EXIT_OK
