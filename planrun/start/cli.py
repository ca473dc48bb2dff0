"""`planrun init` and `planrun schema`: what a newcomer starts from."""

from __future__ import annotations

import click

from planrun.cliutil.printing import say, say_bytes


@click.command(short_help="Write an example plan to begin with.")
@click.argument("file", default="plan.yml", type=click.Path(readable=False))
def init(file: str) -> int:
    """Write an example plan to FILE (plan.yml), and beside it the schema that editors check it with.

    A file that exists is never overwritten.

    \b
    Examples:
      planrun init
      planrun init plans/release.yml
    """
    from planrun.cliutil.failure import printable
    from planrun.start.start import write_example

    for path in write_example(file):
        say(f"wrote {printable(path)}")
    say(f"next: planrun show {printable(file)}; planrun execute {printable(file)}")
    return 0


@click.command(short_help="Print the JSON Schema of plans, policies, ledger.json, approvals or recordings.")
@click.argument(
    "name", default="plan", type=click.Choice(["plan", "policy", "ledger", "approval", "recording"])
)
def schema(name: str) -> int:
    """Print a JSON Schema.

    Editors check plan files with `plan` and policy files with `policy`. `ledger` is of ledger.json, `approval` and
    `recording` of such files.

    \b
    Examples:
      planrun schema > plan.schema.json
      planrun schema ledger | jq .required

    \b
    In a plan or a policy file, the first line names the schema for editors:
      # yaml-language-server: $schema=plan.schema.json
    """
    from planrun.start.start import schema_bytes

    say_bytes(schema_bytes(name))
    return 0
