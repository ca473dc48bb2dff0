"""The available templates by name, and plans made from them as text, with their comments.

`planrun templates`: list templates, and make plans from them.
"""

from __future__ import annotations

import os
import re

import click

from planrun import __version__
from planrun.cliutil import click as written
from planrun.cliutil.failure import printable
from planrun.cliutil.printing import say, say_bytes, say_json, table
from planrun.errors import InvalidInput, InvalidPlan
from planrun.llm.plantext import comment, flow_text, line_text
from planrun.model.record import Record
from planrun.plan.includes import IncludedPlans, check_tree
from planrun.plan.load import check_bytes
from planrun.plan.problems import did_you_mean, name_hint
from planrun.plan.schema.forms import to_data
from planrun.plan.templates import (
    ENDINGS,
    HEAD,
    REQUIREMENTS,
    TemplateFile,
    filled,
    inserted,
    known,
    needs_edge,
    opened,
    requirement_checks,
    text_of,
    uses_in,
    value_problem,
)
from planrun.plan.yaml.document import parse
from planrun.plan.yaml.node import MAPPING, SCALAR, Node
from planrun.values import read_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from planrun.plan.problems import Problem
    from planrun.plan.templates import Template, Use

_MODELINE = re.compile(r"#\s*(yaml-language-server:|\$schema:)")
_SCHEMA = "plan.schema.json"


def plan_text(template: Template, tree: Node, name: str, values: Mapping[str, Any]) -> str:
    """Return the template as a plan; `tree` is what it must mean. Raises InvalidPlan where text cannot say that."""
    text = template.data.decode("utf-8-sig").replace("\r\n", "\n")
    text = _Text(text, template, values).filled()
    given = ", ".join([f"{key}={text_of(value)}" for key, value in values.items()])
    heading = [f"yaml-language-server: $schema={_SCHEMA}", f"$schema: {_SCHEMA}"]
    origin = f"Made of the template {name} by planrun {__version__}{f': {given}' if given else ''}"
    lines = text.lstrip("\n").split("\n")
    while lines and _MODELINE.match(lines[0]):
        lines.pop(0)
    top = "\n".join([*map(comment, heading), "#", comment(origin)])
    whole = f"{top}\n" + "\n".join(lines)
    found, problems = parse(whole.encode(), name)
    if found is None or problems or repr(to_data(found)) != repr(to_data(tree)):
        message = "this place of the template cannot take a value"
        hint = "give its variable a whole value, in double quotes or none, or fewer signs"
        template.outline.report("E299", message, _culprit(found, tree) or template.root, hint)
        raise InvalidPlan(template.outline.problems[-1:], sources={template.file: template.data})
    return whole


def _culprit(found: Node | None, wanted: Node) -> Node | None:
    """Return the first value of a tree that is another one in the text that was written."""
    if found is None or found.kind != wanted.kind:
        return wanted
    if wanted.kind == SCALAR:
        return None if repr(to_data(found)) == repr(to_data(wanted)) else wanted
    if wanted.kind == MAPPING:
        pairs = [(found.value.get(key), value) for key, value in wanted.value.items()]
    else:
        pairs = list(zip([*found.value, *[None] * len(wanted.value)], wanted.value, strict=False))
    return next((culprit for one, other in pairs if (culprit := _culprit(one, other))), None)


class _Text:
    """A template's text, changed place by place from its end on, so that places before stay where they are."""

    def __init__(self, text: str, template: Template, values: Mapping[str, Any]) -> None:
        self._text = text
        self._template = template
        self._values = values
        self._starts = [0]
        for line in text.split("\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)

    def filled(self) -> str:
        changes = {change[0]: change for change in [*self._variables(), *self._requirements()]}
        text = self._text
        for start in sorted(changes, reverse=True):
            _, end, new = changes[start]
            text = text[:start] + new + text[end:]
        return self._without_head(text)

    def _at(self, line: int, col: int = 1) -> int:
        return self._starts[min(line, len(self._starts)) - 1] + col - 1

    def _variables(self) -> Iterator[tuple[int, int, str]]:
        keys = {key: node for key, node in self._template.root.value.items() if key != HEAD}
        for node in _scalars(keys):
            uses = list(uses_in(node.value))
            if uses:
                yield from self._in_scalar(node, uses)

    def _in_scalar(self, node: Node, uses: list[Use]) -> Iterator[tuple[int, int, str]]:
        text: str = node.value
        at = self._at(node.line, node.col)
        quote = self._text[at] if self._text[at] in "'\"|>&" else ""
        width = len(text) + 2 * (quote in ("'", '"') and bool(quote))
        written = self._text[at : at + width]
        is_whole = len(uses) == 1 and uses[0].end - uses[0].start == len(text) and not uses[0].quoted
        if is_whole and written in (text, f"'{text}'", f'"{text}"'):
            yield at, at + width, flow_text(self._values[uses[0].name])
            return
        if not quote and written == text:
            yield at, at + width, line_text(self._joined(text, uses))
            return
        for use in uses:
            raw = text[use.start : use.end]
            start = self._text.find(raw, at)
            while start > 0 and self._text[start - 1] == "$":  # `$${{` is text
                start = self._text.find(raw, start + 1)
            if start < 0:
                return
            at = start + len(raw)
            yield start, at, _within(inserted(self._values[use.name], quoted=use.quoted), quote)

    def _joined(self, text: str, uses: list[Use]) -> str:
        for use in reversed(uses):
            value = inserted(self._values[use.name], quoted=use.quoted)
            text = text[: use.start] + value + text[use.end :]
        return text

    def _requirements(self) -> Iterator[tuple[int, int, str]]:
        """Yield the step that looks what is there, and an edge to it for each step that waits for nothing."""
        checks = requirement_checks(self._template)
        steps = self._template.root.get("steps")
        if not checks or steps is None or not steps.value:
            return
        listed = self._at(steps.line, steps.col)
        if self._text[listed] == "[":
            looks = ", ".join([f"{{{kind}: {flow_text(list(names))}}}" for kind, names in checks])
            yield listed + 1, listed + 1, f"{{id: {REQUIREMENTS}, validate: [{looks}]}}, "
        else:
            margin = " " * (steps.value[0].col - 3)
            rows = [f"{margin}- id: {REQUIREMENTS}", f"{margin}  validate:"]
            rows += [f"{margin}    - {kind}: {flow_text(list(names))}" for kind, names in checks]
            first = self._at(self._template.root.keys["steps"].line + 1)
            yield first, first, "\n".join([*rows, "", ""])
        for step in steps.value:
            if not needs_edge(step) or "id" not in step.value:
                continue
            if self._text[self._at(step.line, step.col)] == "{":
                name = step.value["id"]
                after = self._at(name.line, name.col) + len(name.value) + (0 if name.plain else 2)
                yield after, after, f", depends_on: {flow_text([REQUIREMENTS])}"
            else:
                after = self._at(step.value["id"].line + 1)
                yield after, after, f"{' ' * (step.col - 1)}depends_on: {flow_text([REQUIREMENTS])}\n"

    def _without_head(self, text: str) -> str:
        """Return a text without the key that makes it a template, and what stands under it."""
        lines = text.split("\n")
        heads = [at for at, line in enumerate(lines) if re.match(rf"['\"]?{HEAD}['\"]?\s*:", line)]
        if not heads:  # a file in braces: the result has extra keys, and is refused
            return text
        start = heads[0]
        end = start + 1
        while end < len(lines) and (not lines[end].strip() or lines[end][0] in " \t-"):
            end += 1
        return "\n".join([*lines[:start], *lines[end:]])


def _within(text: str, quote: str) -> str:
    """Return a text as it is written inside of a scalar of a kind, by the sign that this begins with."""
    if quote == "'":
        return text.replace("'", "''")
    return flow_text(f"{text}\n")[1:-3] if quote == '"' else text


def _scalars(keys: Mapping[str, Node]) -> Iterator[Node]:
    """Yield every scalar of some values, once each."""
    waiting = list(keys.values())
    seen = set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.kind == SCALAR:
            yield node
        else:
            waiting += node.value.values() if node.kind == MAPPING else node.value


class Rendered(Record):
    """A plan that was made of a template: its text, the number of its steps, and warnings about it."""

    text: str
    steps: int
    warnings: tuple[Problem, ...] = ()


def find(name: str) -> TemplateFile:
    """Return a template by its name or by the path of its file; raises InvalidInput."""
    if name.endswith(ENDINGS) or "/" in name:
        return TemplateFile(name=os.path.basename(name).partition(".")[0], file=name, source="project")
    templates = known()
    if name not in templates:
        hint = did_you_mean(name, templates) or f"templates are {', '.join(templates)}"
        raise InvalidInput(f'there is no template "{name}"; {hint}')
    return templates[name]


def values_of(template: Template, given: Iterable[str]) -> dict[str, Any]:
    """Return the values of a template's variables from `name=value` texts.

    Raises InvalidInput with all that is wrong.
    """
    problems: list[str] = []
    texts = _texts(template, given, problems)
    values: dict[str, Any] = {}
    for name, fragment in template.vars.items():
        if name in texts:
            try:
                values[name] = _read(fragment, texts[name])
            except ValueError as error:
                problems.append(f'the variable "{name}" {error}')
        elif "default" in fragment:
            values[name] = fragment["default"]
        elif fragment.get("required"):
            problems.append(f'the variable "{name}" is required: give it by --var {name}=VALUE')
    if problems:
        raise InvalidInput("; ".join(problems))
    return values


def _texts(template: Template, given: Iterable[str], problems: list[str]) -> dict[str, str]:
    """Return what is given by name, and add to the `problems` what names nothing or is given twice."""
    texts: dict[str, str] = {}
    for word in given:
        name, equals, text = word.partition("=")
        if not equals:
            problems.append(f'a variable is given as name=value, not "{word[:60]}"')
        elif name in texts:
            problems.append(f'the variable "{name}" is given twice')
        elif name not in template.vars:
            hint = name_hint(name, template.vars, "variables") or "the template has none"
            problems.append(f'no variable "{name}" in the template; {hint}')
        texts[name] = text
    return texts


def _read(fragment: Mapping[str, Any], text: str) -> Any:
    value = read_value(fragment, text)
    if why := value_problem(value):
        raise ValueError(why)
    return value


def render(template: Template, name: str, values: Mapping[str, Any]) -> Rendered:
    """Return the plan that a template becomes; raises InvalidPlan with what is wrong, at its place in the template."""
    tree = filled(template, values)
    problems = check_tree(tree, template.data, IncludedPlans(template.file))
    errors = [each for each in problems if each.severity == "error"]
    if errors:
        raise InvalidPlan(errors, sources={template.file: template.data})
    text = plan_text(template, tree, name, values)
    findings = check_bytes(text.encode(), f"{name}.yml")
    errors = [each for each in findings.problems if each.severity == "error"]
    if errors or findings.steps is None:  # files that it uses are looked for from another place
        raise InvalidPlan(errors, sources={f"{name}.yml": text.encode()})
    return Rendered(text=text, steps=findings.steps, warnings=findings.problems)


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
        if name is not None:
            raise InvalidInput(
                f"planrun templates list takes no name; planrun templates show {name} shows it"
            )
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
    template = opened(file)
    made = render(template, file.name, values_of(template, given))
    if output != written.STANDARD_OUTPUT:
        written.write_file(output, made.text.encode(), forced=force)
    _print_rendered(file, made, output, as_json=as_json)
    return 0


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
