"""`planrun templates`: list templates, and make plans from them."""

from __future__ import annotations

import click

from planrun.cliutil import click as written
from planrun.cliutil.failure import printable
from planrun.cliutil.printing import say, say_bytes, say_json, table
from planrun.errors import InvalidInput, InvalidPlan
from planrun.plan.templates import text_of
from planrun.templates.templates import find, known, opened, render, values_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.plan.templates import Template
    from planrun.templates.templates import Rendered, TemplateFile

_VERBS = ("list", "show", "render")


@click.command(short_help="List templates, and make plans from them.")
@click.argument("verb", type=click.Choice(_VERBS), default="list")
@click.argument("name", required=False)
@click.option(
    "--var", "given", metavar="NAME=VALUE", multiple=True, help="With render: the value of a variable."
)
@click.option(
    "-o",
    "--output",
    default=written.STANDARD_OUTPUT,
    metavar="FILE",
    help="With render: where the plan goes; - is stdout.",
)
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def templates(  # noqa: PLR0913 - click gives each option as an argument
    verb: str, name: str | None, given: tuple[str, ...], output: str, *, force: bool, as_json: bool
) -> int:
    """List templates, show one, or make a plan from it.

    NAME is a template shipped with planrun or in plans/templates, or the path of a file.

    \b
    list     each template: its name, source and description
    show     its variables, required commands and files, and its text
    render   a checked plan, with the values of --var and defaults

    \b
    Examples:
      planrun templates
      planrun templates show express-api-endpoint
      planrun templates render express-api-endpoint --var resource=orders -o plan.yml
    """
    if verb == "list":
        _refuse_name(name)
        return _list(as_json=as_json)
    if name is None:
        raise InvalidInput(
            f"planrun templates {verb} needs the name of a template; planrun templates lists them"
        )
    file = find(name)
    if verb == "show":
        return _show(file, as_json=as_json)
    if output != written.STANDARD_OUTPUT:
        written.refuse_existing(output, forced=force)
    made = _made(file, given)
    if output != written.STANDARD_OUTPUT:
        written.write_file(output, made.text.encode(), forced=force)
    _print_rendered(file, made, output, as_json=as_json)
    return 0


def _refuse_name(name: str | None) -> None:
    if name is not None:
        raise InvalidInput(f"planrun templates list takes no name; planrun templates show {name} shows it")


def _list(*, as_json: bool) -> int:
    rows: list[dict[str, Any]] = []
    for file in known().values():
        try:
            rows.append(_document(file, opened(file)))
        except InvalidPlan as error:
            first = error.problems[0]
            wrong = f"{first.file}:{first.line}:{first.col}: {first.text}"
            rows.append({"name": file.name, "source": file.source, "file": file.file, "problem": wrong})
    if as_json:
        say_json({"templates": rows})
        return 0
    cells = [
        (row["name"], row["source"], printable(row.get("problem") or row["description"])) for row in rows
    ]
    say(table(("Template", "From", "Description"), cells))
    for row in rows:
        if row.get("hides"):
            say(f"{printable(row['file'])} replaces the shipped template of the same name")
    return 0


def _show(file: TemplateFile, *, as_json: bool) -> int:
    template = opened(file)
    document = _document(file, template)
    if as_json:
        say_json({**document, "text": template.data.decode("utf-8-sig")})
        return 0
    say(f"{file.name}: {printable(template.description)}")
    say(f"from: {printable(file.file)}")
    for title, words in (("requires", template.requires), ("prerequisites", template.prerequisites)):
        if words:
            say(f"{title}: {printable(', '.join(words))}")
    if template.vars:
        say("\nvariables:")
    for name, fragment in template.vars.items():
        say(printable(f"  {name} ({_words(fragment)}){_about(fragment)}"))
    say("")
    say_bytes(template.data)
    return 0


def _words(fragment: dict[str, Any]) -> str:
    words = [", ".join(map(str, fragment["enum"])) if "enum" in fragment else fragment["type"]]
    if "default" in fragment:
        words.append(f"default {text_of(fragment['default'])}")
    elif fragment.get("required"):
        words.append("required")
    return "; ".join(words)


def _about(fragment: dict[str, Any]) -> str:
    return f": {fragment['description']}" if "description" in fragment else ""


def _document(file: TemplateFile, template: Template) -> dict[str, Any]:
    return {
        "name": file.name,
        "source": file.source,
        "file": file.file,
        "hides": file.hides,
        "description": template.description,
        "vars": dict(template.vars),
        "requires": list(template.requires),
        "prerequisites": list(template.prerequisites),
    }


def _made(file: TemplateFile, given: tuple[str, ...]) -> Rendered:
    template = opened(file)
    return render(template, file.name, values_of(template, given))


def _print_rendered(file: TemplateFile, made: Rendered, output: str, *, as_json: bool) -> None:
    is_file = output != written.STANDARD_OUTPUT
    if as_json:
        say_json(
            {
                "template": file.name,
                "written": output if is_file else None,
                "plan": made.text,
                "steps": made.steps,
            }
        )
    elif is_file:
        steps = f"{made.steps} step{'' if made.steps == 1 else 's'}"
        say(f"wrote {printable(output)}: {steps}; next: planrun show {printable(output)}")
    else:
        say_bytes(made.text.encode())
