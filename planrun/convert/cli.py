"""`planrun convert`: another tool's file as a plan for review, with everything that means something else."""

from __future__ import annotations

import click

from planrun.cliutil import click as written
from planrun.cliutil import write_stderr
from planrun.cliutil.failure import complain, printable
from planrun.cliutil.printing import say, say_bytes, say_json
from planrun.errors import EXIT_INVALID, EXIT_OK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.convert.convert import Converted, Order

SOURCES = ("github", "gitlab", "taskfile", "dagu", "make", "just")


@click.command(short_help="Make a plan of a workflow, a GitLab CI file, a Taskfile, a Makefile …")
@click.argument("file", type=click.Path(readable=False))
@click.option(
    "--from",
    "source",
    type=click.Choice(SOURCES),
    default=None,
    help="The tool of FILE. Default: detected from its content.",
)
@click.option(
    "--job",
    "jobs",
    metavar="NAME",
    multiple=True,
    help="Only this job, task, target or recipe, and those that it depends on.",
)
@click.option(
    "-o",
    "--output",
    default=written.STANDARD_OUTPUT,
    metavar="FILE",
    help="The file to write; - is stdout.",
)
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@click.option(
    "--accept",
    "accepted",
    metavar="NAME",
    multiple=True,
    help="Convert without what is refused under NAME: a comment replaces it. "
    "NAME may be a pattern (key:*); all accepts everything.",
)
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def convert(  # noqa: PLR0913 - click gives each option as an argument
    file: str,
    source: str | None,
    jobs: tuple[str, ...],
    output: str,
    *,
    force: bool,
    accepted: tuple[str, ...],
    as_json: bool,
) -> int:
    """Convert FILE to a plan, and list the differences in meaning.

    FILE is a GitHub workflow, a GitLab CI file, a Taskfile, a Dagu file, a Makefile or a justfile. Nothing runs, and
    nothing is fetched. The list goes to stderr and to the head of the plan: `differs` is converted with a slightly
    different meaning, `todo` is left to you, as a comment or a step without an action, and `refused` cannot be
    converted: no plan is written until you leave that part out by --job or accept it by --accept. The plan is valid,
    and a draft: read it before you run it.

    \b
    Exit codes:
      0    the plan is written
      2    something is refused, or FILE cannot be read

    \b
    Examples:
      planrun convert .github/workflows/ci.yml -o plan.yml
      planrun convert .github/workflows/ci.yml --job test --job lint
      planrun convert Taskfile.yml --job build -o plans/build.yml
      planrun convert Makefile --job test -o plan.yml
      planrun convert ci.yml --accept all -o plan.yml
    """
    from planrun.convert.convert import Order
    from planrun.convert.convert import convert as make

    if output != written.STANDARD_OUTPUT:
        written.refuse_existing(output, forced=force)
    order = Order(file=file, source=source or "", jobs=jobs, accepted=accepted)
    found = make(order)
    if found.text and output != written.STANDARD_OUTPUT:
        written.write_file(output, found.text.encode(), forced=force)
    if as_json:
        say_json(_document(found, order, output))
    else:
        _tell(found, output)
    return EXIT_INVALID if found.is_refused else EXIT_OK


def _tell(found: Converted, output: str) -> None:
    rows = "\n".join(_rows(found))
    write_stderr(f"{rows}\n" if rows else "")
    if not found.text:
        names = dict.fromkeys(
            each.code for each in found.findings if each.kind == "refused" and not each.accepted
        )
        complain(f"no plan is written; what cannot be converted: {', '.join(names)}")
    elif output == written.STANDARD_OUTPUT:
        say_bytes(found.text.encode())
    else:
        steps = f"{found.steps} step{'' if found.steps == 1 else 's'}"
        say(f"wrote {printable(output)}: {steps}; next: planrun show {printable(output)}")


def _rows(found: Converted) -> Iterator[str]:
    for each in found.findings:
        yield printable(f"{each.file}:{each.line}:{each.col}: {each.text}").replace("\n", " ")


def _document(found: Converted, order: Order, output: str) -> dict[str, Any]:
    is_file = bool(found.text) and output != written.STANDARD_OUTPUT
    return {
        "source": found.source,
        "file": order.file,
        "written": output if is_file else None,
        "plan": found.text or None,
        "steps": found.steps,
        "refused": found.is_refused,
        "findings": [
            {
                "kind": each.kind,
                "code": each.code,
                "message": each.message,
                "line": each.line,
                "column": each.col,
                "step": each.step or None,
                "accepted": each.accepted,
            }
            for each in found.findings
        ],
    }
