"""`planrun init` and `planrun schema`: an example plan, and the schemas that editors check it with."""

from __future__ import annotations

import os
from shlex import quote

import click

from planrun.cliutil.failure import printable
from planrun.cliutil.printing import say, say_bytes
from planrun.cliutil.schemas import SCHEMAS, schema_bytes
from planrun.errors import InvalidInput

SCHEMA_FILE = "plan.schema.json"  # beside the plan, so that editors find it without a network

EXAMPLE = """\
# yaml-language-server: $schema=plan.schema.json
# $schema: plan.schema.json
version: 1
name: {name}
policy: {{auto_approve: medium}}       # a step of a higher risk waits for an approval

steps:
  - id: look
    run: echo "system=$(uname -s)" >> "$PLANRUN_OUTPUT"
    outputs: {{system: string}}        # later steps read it

  - id: greet
    depends_on: [look]
    run: echo "Hello from $SYSTEM"
    env: {{SYSTEM: "${{{{ steps.look.outputs.system }}}}"}}

  - id: announce
    depends_on: [greet]
    condition: run.ci                # only in CI; skipped elsewhere
    run: echo "this is CI"
"""
FULL = """\
# yaml-language-server: $schema=plan.schema.json
# $schema: plan.schema.json
#
# Check it: planrun validate {file}
# See it:   planrun show {file}
# Run it:   planrun run {file}
version: 1
name: {name}
description: An example to change; every step here really runs.

params: # set by: planrun run {file} --param greeting=Hi
  greeting: {{type: string, default: Hello}}

defaults: {{timeout: 5m}}
# A step of a higher risk waits for an approval. A script of the repository, such
# as ./deploy.sh, is medium and runs: `rules: [{{require: {{step: deploy}}}}]` asks
# first. `preset: careful` also asks before steps that destroy or publish something.
policy: {{auto_approve: medium}}

steps:
  - id: tools
    title: Everything needed is here
    validate:
      - commands_on_path: [sh, uname]

  - id: look
    title: Look at this machine
    depends_on: [tools]
    run: echo "system=$(uname -s)" >> "$PLANRUN_OUTPUT"
    outputs: {{system: string}}          # typed; later steps read it

  - id: lint
    title: Something that may fail
    depends_on: [tools]
    run: ls
    on_failure: continue               # a failure ends the run as `partial`

  - id: greet
    depends_on: [look]                 # lint runs at the same time
    run: echo "$GREETING from $SYSTEM"
    retries: 1
    env:                               # the shell reads no value here as code
      GREETING: ${{{{ params.greeting }}}}
      SYSTEM: ${{{{ steps.look.outputs.system }}}}

  - id: announce
    depends_on: [greet]
    condition: run.ci                  # only in CI; skipped elsewhere
    run: echo "this is CI"

finally:
  - id: bye                            # always runs, also after a failure
    run: echo "done"
"""


def write_example(file: str, text: str = EXAMPLE) -> list[str]:
    """Write the example plan and, unless there is one, its schema beside it; returns what was written.

    Raises InvalidInput when the file exists or cannot be written: a plan is never overwritten.
    """
    folder, name = os.path.split(file)
    stem = name.partition(".")[0]
    speaking = stem != "plan" and stem.isidentifier() and stem.isascii()
    _write(
        file,
        text.format(
            file=quote(file) if file.isprintable() else "plan.yml", name=stem if speaking else "example"
        ).encode(),
    )
    written = [file]
    schema = os.path.join(folder, SCHEMA_FILE)
    if not os.path.lexists(schema):
        _write(schema, schema_bytes("plan"))
        written.append(schema)
    return written


def _write(path: str, data: bytes) -> None:
    if os.path.lexists(path):
        raise InvalidInput(
            f"{path} exists already; planrun init never overwrites a file\n"
            f"  next: planrun show {quote(path)}; planrun run {quote(path)}; or planrun init OTHER.yml"
        )
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "xb") as out:  # exclusive: what appears in between is not overwritten either
            out.write(data)
    except OSError as error:
        raise InvalidInput(f"cannot write {path}: {error.strerror}") from None


@click.command(short_help="Write an example plan.")
@click.argument("file", default="plan.yml", type=click.Path(readable=False))
@click.option("--full", is_flag=True, help="A longer plan that shows more keys, with comments.")
def init(file: str, *, full: bool) -> int:
    """Write an example plan to FILE (plan.yml), and beside it the schema that editors check it with.

    A file that exists is never overwritten.

    \b
    Examples:
      planrun init
      planrun init plans/release.yml
      planrun init --full
    """
    for path in write_example(file, FULL if full else EXAMPLE):
        say(f"wrote {printable(path)}")
    operand = "" if file == "plan.yml" else f" {printable(file)}"  # the default plan needs no name
    say(f"next: planrun show{operand}; planrun run{operand}")
    return 0


@click.command(short_help="Print the JSON Schema of plans, policies, ledger.json, approvals or recordings.")
@click.argument("name", default="plan", type=click.Choice(SCHEMAS))
def schema(name: str) -> int:
    """Print a JSON Schema.

    Editors check plan files with `plan` and policy files with `policy`. `ledger` is of ledger.json, `approval` and
    `recording` of such files, `notification` of what a webhook gets.

    \b
    Examples:
      planrun schema > plan.schema.json
      planrun schema ledger | jq .required

    \b
    In a plan or a policy file, the first line names the schema for editors:
      # yaml-language-server: $schema=plan.schema.json
    """
    say_bytes(schema_bytes(name))
    return 0
