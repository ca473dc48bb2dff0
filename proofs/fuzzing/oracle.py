"""What must be true of any input: it is a plan, or there are problems with places; nothing else ever happens."""

from __future__ import annotations

import json
import marshal
import re
import time
import traceback
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from planrun.approval import preview
from planrun.approval.digest import Reviewed
from planrun.approval.preview import DigestPreview, PolicyPreview
from planrun.errors import EvaluationError, InvalidPlan
from planrun.expressions import check, evaluate, parse, render
from planrun.expressions.tree import ROOTS, ExpressionError
from planrun.model import jsontext
from planrun.model.plan import Group
from planrun.plan import load, packed
from planrun.plan.compile import canonical
from planrun.plan.printing import render_github, render_json, render_sarif, render_text
from planrun.plan.problems import CODES, Problem
from planrun.reports import describe, drawing
from planrun.settings import Settings
from planrun.show import cli
from planrun.show import cli as markdown
from proofs.fuzzing.scopes import SCOPES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from planrun.model.plan import Plan

    Watch = AbstractContextManager[object]

NAMES = (
    "plan.yml",
    "::error::x.yml",
    "a\nb::error::.yml",
    "\x1b[0m.yml",
    "\udcff.yml",
    "a:b,c%25.yml",
    "é/\u202e.yml",
)
"""Names that a file may have."""
SECONDS = 2.0
"""Of processor time, for the check of a file."""
_COMMAND = re.compile(
    r"::(error|warning) file=[^:,]*,line=[0-9]+,col=[0-9]+(,endColumn=[0-9]+)?,title=planrun [EW][0-9]{3}::[^\n]*"
)
_OBEYED = re.compile(r"^\s*::|##(\[|vso\[|teamcity\[)", re.MULTILINE)
_NOBODY: Watch = nullcontext()


class Complaint(AssertionError):
    """Something that must be true is not."""


@dataclass(frozen=True)
class Verdict:
    """What became of an input. `complaint` is empty unless it went wrong; `mark` is the same for the same fault."""

    accepted: bool = False
    codes: tuple[str, ...] = ()
    complaint: str = ""
    mark: str = ""


def judge(kind: str, data: bytes, name: str = NAMES[0], watch: Watch = _NOBODY) -> Verdict:
    """Try an input in every way: `kind` is plan, condition, text or script; `watch` sees what reads it once."""
    try:
        if kind == "plan":
            with watch:
                load.load_bytes(data, name, cache=False)
    except InvalidPlan as error:
        with watch:
            render_text([each for each in error.problems if isinstance(each, Problem)], {name: data})
    except Exception:  # noqa: BLE001 - it will come again
        pass
    try:
        if kind == "plan":
            return _plan(data, name)
        with watch:
            return _expression(kind, data.decode("utf-8", "surrogatepass"))
    except Exception as error:  # noqa: BLE001 - the very thing that is looked for
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if "planrun" in frame.filename and "/tests/" not in frame.filename]
        last = own[-1] if own and not isinstance(error, Complaint) else frames[-1]
        said = f"{type(error).__name__}: {str(error)[:300]}"
        where = f"{last.filename.rpartition('/')[2]}:{last.name}"
        mark = (
            f"{type(error).__name__} in {where}:{last.lineno}"
            if not isinstance(error, Complaint)
            else said.partition(" |")[0]
        )
        return Verdict(complaint=f"{said} (in {where}:{last.lineno})", mark=mark)


def holds(fact: object, what: str, detail: object = "") -> None:
    """Raise Complaint unless a fact is true."""
    if not fact:
        raise Complaint(f"{what} | {detail!r}" if detail else what)


def _plan(data: bytes, name: str) -> Verdict:
    began = time.process_time()
    findings = load.check_bytes(data, name)
    spent = time.process_time() - began
    holds(spent <= SECONDS, "slow", f"{spent:.1f} s")
    again = load.check_bytes(data, name)
    problems = findings.problems
    written = render_json(problems)
    holds(written == render_json(again.problems), "checked twice, the problems differ")
    _places(problems, data, name)
    _forms(problems, data, name, written)
    codes = tuple(sorted({problem.code for problem in problems}))
    errors = [problem for problem in problems if problem.severity == "error"]
    holds(
        (findings.steps is None) == bool(errors), "steps are counted of invalid plans, or not of valid ones"
    )
    try:
        plan = load.load_bytes(data, name, cache=False)
    except InvalidPlan as refused:
        holds(errors, "loading refuses what the check accepts")
        holds(
            render_json([each for each in refused.problems if isinstance(each, Problem)]) == written,
            "loading finds other problems than the check",
        )
        return Verdict(codes=codes)
    holds(not errors, "loading accepts what the check refuses")
    # A group counts by its members; one whose members are found during the run is named apart.
    own = sum(not isinstance(step.action, Group) for step in plan.steps)
    holds(findings.steps == own, "the check counts other steps than there are")
    _kept(plan)
    _shown(plan)
    _evaluated(plan)
    return Verdict(accepted=True, codes=codes)


def _places(problems: Sequence[Problem], data: bytes, name: str) -> None:
    """Every problem stands in the file, at a character of it or behind the last one of a line."""
    lines = re.split("\r\n|\r|\n", data.decode("utf-8", "replace").removeprefix("\ufeff"))
    for problem in problems:
        said = (problem.code, problem.line, problem.col, problem.end_col, problem.message)
        holds(
            problem.code in CODES and problem.message and problem.file == name,
            "a problem without code, words or file",
            said,
        )
        for line, col in ((problem.line, problem.col), *(place[:2] for place in problem.related)):
            holds(
                1 <= line <= len(lines), f"{problem.code} stands at a line that the file does not have", said
            )
            width = len(lines[line - 1]) if problem.code != "E004" else len(data)
            holds(
                1 <= col <= width + 1, f"{problem.code} stands at a column that its line does not have", said
            )
        holds(
            problem.end_col == 0 or problem.end_col > problem.col,
            f"{problem.code} ends before it begins",
            said,
        )


def _forms(problems: Sequence[Problem], data: bytes, name: str, written: str) -> None:
    """Every form of the problems is well formed, harmless on a terminal, and no command by accident."""
    forms = {
        "text": render_text(problems, {name: data}),
        "json": written,
        "sarif": render_sarif(problems),
        "github": render_github(problems),
    }
    for form, text in forms.items():
        _harmless(text, f"the form {form}", command=form == "github")
    found = json.loads(forms["json"])
    holds(
        found["valid"] == all(each.severity == "warning" for each in problems),
        "the form json says the wrong thing",
    )
    holds(len(found["problems"]) == len(problems), "the form json leaves something out")
    results = json.loads(forms["sarif"])["runs"][0]["results"]
    holds(len(results) == len(problems), "the form sarif leaves something out")
    for line in forms["github"].splitlines():
        holds(_COMMAND.fullmatch(line), "a line of the form github is no command", line[:200])


def _harmless(text: str, what: str, *, command: bool = False) -> None:
    """A text that is printed steers no terminal and no CI agent, unless it is made of commands."""
    holds(text.replace("\n", "").isprintable(), f"{what} holds what a terminal obeys", text[:300])
    text.encode()
    if not command:
        found = _OBEYED.search(text)
        holds(not found, f"{what} holds what a CI agent obeys", found)


def _kept(plan: Plan) -> None:
    """A plan comes out of the cache as it went in, with the same digest, which its content gives again."""
    data = marshal.loads(marshal.dumps({"plan": packed.pack(plan)}))
    again = packed.unpack(data["plan"], plan.file, plan.source, plan.files)
    holds(again.digest == plan.digest == canonical.digest(plan), "the digest is another one")
    holds(canonical.digest(again) == plan.digest, "what comes out of the cache has another digest")
    for one, other in zip(plan.steps, again.steps, strict=True):
        holds(one == other, "a step comes out of the cache changed", one.id)
    for field in vars(plan):
        holds(
            getattr(plan, field) == getattr(again, field),
            f"the plan's {field} comes out of the cache changed",
        )


def _shown(plan: Plan) -> None:
    """Everything that shows a plan shows it, in characters that can be printed."""
    digests = DigestPreview(reviewed=Reviewed(digest=plan.digest))
    json.loads(jsontext.dumps(jsontext.well_formed(describe.as_data(plan, digests.as_data()))).encode())
    count = len(plan.steps)
    holds(
        len(describe.order(plan)) == count == sum(map(len, describe.levels(plan))),
        "steps are lost in the order",
    )
    ahead = PolicyPreview(plan, Settings())
    json.loads(jsontext.dumps(jsontext.well_formed(preview.plan_data(ahead))).encode())
    forms: dict[str, Callable[[], str]] = {
        "table": lambda: "\n".join(cli.overview(digests, ahead)),
        "page": lambda: markdown.markdown(plan, digests, ahead),
        "mermaid": lambda: drawing.mermaid(plan),
        "dot": lambda: drawing.dot(plan),
        "tree": lambda: drawing.text(plan),
    }
    for form, make in forms.items():
        _harmless(make(), f"the {form} of a plan")


def _evaluated(plan: Plan) -> None:
    """Every expression of an accepted plan has a value, or an EvaluationError, whatever its names stand for."""
    waiting: list[Any] = [
        vars(plan),
        *[vars(step) for step in plan.steps],
        *[vars(step.action) for step in plan.steps],
    ]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            waiting += part.values()
        elif isinstance(part, tuple) and part and part[0] == "template":
            _valued(part, render.render_script)
        elif isinstance(part, tuple) and len(part) > 3 and part[0] in evaluate._KINDS:
            _valued(part, evaluate.evaluate)
        elif isinstance(part, tuple | list):
            waiting += part


def _valued(tree: Any, walk: Callable[[Any, dict[str, Any]], Any]) -> None:
    for scope in SCOPES:
        try:
            walk(tree, scope)
        except EvaluationError as error:
            holds(str(error), "an error without words")


def _expression(kind: str, text: str) -> Verdict:
    """Parse, check and evaluate an expression or a text with interpolations."""
    read = {"condition": parse.parse, "text": parse.parse_template, "script": parse.parse_script}[kind]
    try:
        tree = read(text)
    except ExpressionError as error:
        holds(error.message, "an error without words")
        holds(
            0 <= error.offset <= len(text) and error.length > 0,
            "an error outside of the text",
            (error.offset, error.length),
        )
        return Verdict(codes=("E210",))
    holds(marshal.loads(marshal.dumps(tree)) == tree, "a tree is changed by the cache")
    for reference in check.references(tree):
        holds(reference.path[0] in ROOTS, "a path without a root", reference.path)
        part = text[reference.offset : reference.offset + reference.length]
        holds(part and 0 <= reference.offset < len(text), "a path outside of the text", reference)
    for kind_of_path in ("any", "string", "object", "integer", "null"):
        try:
            check.infer(tree, lambda _path, found=kind_of_path: found)  # type: ignore[misc]  # one of Type
        except ExpressionError as error:
            holds(
                0 <= error.offset < len(text) and error.length > 0,
                "types do not fit outside of the text",
                error.offset,
            )
    if isinstance(tree, tuple):
        _valued(
            tree,
            evaluate.evaluate
            if kind == "condition"
            else render.render_text
            if kind == "text"
            else render.render_script,
        )
    return Verdict(accepted=True)
