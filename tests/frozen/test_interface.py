"""What scripts, editors and readers of ledgers rely on by name stays as it was; texts for people are free.

    names.json      codes of problems and advice, kinds of events with their fields, exit codes, rules of failures,
                    words and form of each JSON Schema, tools with their arguments
    verbs.json      the verbs, and of each the operands, options and variables that `planrun VERB --help` lists

Of a schema, `form` is a hash without titles, descriptions, examples and the names of definitions: it changes when other
files are accepted. `words` are the lists of words that are allowed somewhere; with the failure of `form` look at the
difference of `schemas/`.

A difference that is no mistake is accepted by `pytest tests/frozen --update-goldens`; the commit message says why.
Names may be added. One that is gone or changed breaks what users have written.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

from planrun import errors
from planrun.engine.failures import classify
from planrun.model.events import EVENTS
from planrun.model.job import Outcome
from tests.frozen.quick import ROOT, Line, run_all
from tests.frozen.table import HERE, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.golden import Golden

CODE = re.compile(r"[ELW]\d{3}")
TAIL = re.compile(r"^=== ([^\n]+)\n(.*?)(?=^=== |\Z)", re.MULTILINE | re.DOTALL)
REASONS = ("timeout", "idle_timeout", "lost", "not_ready", "refused", "verify", "outputs", "spawn", "denied")
UNKNOWN = "unknown, none"
"""Of a failure that no rule knows."""
SCHEMAS = ("plan", "policy", "ledger", "approval", "recording")
FOR_PEOPLE = {"title", "description", "examples", "$schema", "$id", "$comment"}
VERB = re.compile(r"^  (\w+)(?: [^ ]+)*  +\S", re.MULTILINE)
GROUP = re.compile(r"^  (\w+)  +(\w+,.*(?:\n   .*)*)", re.MULTILINE)
VARIABLE = re.compile(r"\[(PLANRUN_\w+)\]")


def printed(*lines: tuple[str, ...]) -> list[str]:
    """Return what command lines print; each has to end well."""
    done = run_all([Line(str(ROOT), words) for words in lines])
    assert {each.code for each in done} <= {0}
    return [each.out for each in done]


def test_names_stay(golden: Golden) -> None:
    """Every code, event, exit code, rule, word of a schema and tool is what it was."""
    codes_text, tools, *schemas = printed(
        ("help", "exit-codes"), ("tools", "--json"), *[("schema", name) for name in SCHEMAS]
    )
    numbers = {code for name, code in vars(errors).items() if name.startswith("EXIT_")}
    found = {
        "codes": codes(),
        **{f"event {kind}": fields(event) for kind, event in EVENTS.items()},
        "exit codes": sorted(numbers),
        "exit codes in help": re.findall(r"^  (\d+)  ", codes_text, re.MULTILINE),
        **{f"failure {how}": rule for how, rule in failures() if rule != UNKNOWN},
        **{f"schema {name}": schema(text) for name, text in zip(SCHEMAS, schemas, strict=True)},
        **{f"tool {each['name']}": bare(each) for each in json.loads(tools)["tools"]},
    }
    golden(HERE / "names.json", table(found))


def codes() -> list[str]:
    """Return every code that stands in the source as a text of its own."""
    found = set()
    for path in (ROOT / "planrun").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value):
                found.add(node.value)
    return sorted(found)


def fields(event: type[Any]) -> dict[str, str]:
    """Return the fields of a kind of event, and whether each is always there."""
    return {name: "" if hasattr(event, name) else "always" for name in event.__annotations__}


def failures() -> Iterator[tuple[str, str]]:
    """Return class and rule of each way to fail: by exit code, by reason, and by each ending of stderr on record."""
    for code in range(1, 256):
        yield f"exit {code}", class_and_rule(Outcome(status="failed", reason="exit", exit_code=code))
    for reason in REASONS:
        yield f"reason {reason}", class_and_rule(Outcome(status="failed", reason=reason))
    tails = (ROOT / "tests" / "data" / "errors" / "tails.txt").read_text("utf-8")
    for head, text in TAIL.findall(tails):
        yield (
            f"text {head}",
            class_and_rule(Outcome(status="failed", reason="exit", exit_code=1, errors=text)),
        )


def class_and_rule(outcome: Outcome) -> str:
    """Return class and rule of a failure."""
    found = classify(outcome)
    return f"{found.error_class}, {found.rule}"


def schema(text: str) -> dict[str, Any]:
    """Return a hash of what a schema accepts, and the words that it names."""
    whole = json.loads(text)
    words: set[str] = set()
    form = ordered(accepted(whole, whole, (), words))
    return {"form": hashlib.sha256(form.encode()).hexdigest(), "words": sorted(words)}


def ordered(value: Any) -> str:
    """Return what values of JSON are sorted by: the order of keys and lists means nothing in a schema."""
    return json.dumps(value, sort_keys=True)


def accepted(part: Any, whole: Any, above: tuple[str, ...], words: set[str]) -> Any:
    """Return a part of a schema without texts, its definitions put in where they are named."""
    if isinstance(part, list):
        return sorted([accepted(each, whole, above, words) for each in part], key=ordered)
    if not isinstance(part, dict):
        return part
    if isinstance(part.get("$ref"), str):
        name = part["$ref"].rpartition("/")[2]
        if name in above:
            return {"again": len(above) - above.index(name)}
        return accepted(whole["definitions"][name], whole, (*above, name), words)
    if isinstance(part.get("enum"), list):
        words.add(", ".join(sorted(map(str, part["enum"]))))
    found = {}
    for key, value in part.items():
        if key in ("properties", "patternProperties") and isinstance(value, dict):
            found[key] = {name: accepted(each, whole, above, words) for name, each in value.items()}
        elif key not in FOR_PEOPLE | {"definitions"}:
            found[key] = accepted(value, whole, above, words)
    return found["allOf"][0] if found.keys() == {"allOf"} and len(found["allOf"]) == 1 else found


def bare(tool: Any) -> Any:
    """Return what `planrun tools` prints about a tool, without descriptions."""
    if isinstance(tool, dict):
        return {
            key: bare(each)
            for key, each in tool.items()
            if not (key == "description" and isinstance(each, str))
        }
    return [bare(each) for each in tool] if isinstance(tool, list) else tool


def test_verbs_stay(golden: Golden) -> None:
    """Every verb has the operands, options and variables that it had."""
    [overview] = printed(("help", "all"))
    rows, _, spelled = overview.partition("\nVerbs can also")
    verbs = set(VERB.findall(rows))
    found: dict[str, Any] = {"verbs": sorted(verbs)}
    for group, words in GROUP.findall(spelled):
        found[f"words of {group}"] = words.replace(",", "").split()
    waiting: list[tuple[str, ...]] = [(verb,) for verb in sorted(verbs)]
    while waiting:
        helps = printed(*[(*words, "--help") for words in waiting])
        pages = dict(zip(waiting, helps, strict=True))
        found |= {" ".join(words): listed(page) for words, page in pages.items()}
        waiting = [
            (*words, verb)
            for words, page in pages.items()
            if "\nCommands:\n" in page
            for verb in VERB.findall(page.partition("\nCommands:\n")[2])
        ]
    golden(HERE / "verbs.json", table(found))


def listed(page: str) -> list[str]:
    """Return the usage of a verb, and its options with the word for their value and their variable."""
    usage = " ".join(page.partition("Usage: ")[2].partition("\n\n")[0].split())
    options = page.partition("\nOptions:\n")[2]  # and the sections after it
    rows = [
        " ".join([head, *VARIABLE.findall(tail)])
        for head, tail in re.findall(r"^  (-.*?)(?=  |$)((?:.*)(?:\n    .*)*)", options, re.MULTILINE)
    ]
    return [usage, *sorted(rows)]
