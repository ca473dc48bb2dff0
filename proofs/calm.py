"""Whether what planrun wrote can be shown to anybody: reports by their own readers, consoles by those of CI systems."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import jsonschema
from lxml import etree, html
from markdown_it import MarkdownIt

from planrun.reports.facts import ICONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markdown_it.token import Token

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data" / "junit"
LEDGER = jsonschema.Draft7Validator(json.loads((ROOT / "schemas" / "ledger.schema.json").read_bytes()))
SCHEMAS = {
    "jenkins-xunit": etree.XMLSchema(etree.parse(DATA / "jenkins-xunit-junit-10.xsd")),
    "surefire": etree.XMLSchema(etree.parse(DATA / "surefire-test-report.xsd")),
    "ant": etree.XMLSchema(etree.parse(DATA / "windyroad-JUnit.xsd")),
}
"""The dialects of JUnit that have a schema."""
SUMMARY = 1_000 * 1024
"""Bytes: GitHub shows nothing of a step summary above 1,024 KiB."""
JUNIT = 30_000_000
"""Bytes: GitLab reads no more of a report."""
ERRORS = 10
"""GitHub shows so many errors of a step."""

_ACTIVE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufffe\uffff\ud800-\udfff]")
_IGNORED = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u2064\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\U000e0000-\U000e0fff]"
)
_COMMAND = re.compile(r"##(\[|vso\[|teamcity\[)", re.IGNORECASE)
_GITHUB = re.compile(
    r"::group::.*|::endgroup::|::stop-commands::[0-9a-f]{32}"
    r"|::(?:error|warning) (file=[^,:]*,line=\d+,)?title=[^,:]*::.*"
)
_AZURE = re.compile(
    r"^(##\[(end)?group\]|##vso\[task\.logissue type=(?:error|warning);sourcepath=[^;\]]*;linenumber=\d+\]"
    r"|##vso\[task\.setvariable variable=[\w.-]+;isOutput=true\]|##vso\[task\.uploadsummary\])",
    re.MULTILINE,
)
# Whole lines, with nothing in a value that could end it.
_TEAMCITY = re.compile(
    r"^##teamcity\[(?:blockOpened|blockClosed|buildProblem|message|setParameter|importData)"
    r"(?: [a-z]+='(?:[^|'\[\]\x00-\x1f\x7f-\U0010ffff]|\|['|\[\]nr]|\|0x[0-9a-f]{4})*')+\]$",
    re.MULTILINE,
)
_GITLAB = re.compile(
    "^\x1b\\[0Ksection_(?:start|end):\\d+:planrun_\\d+(?:\\[collapsed=true\\])?\r\x1b\\[0K", re.MULTILINE
)
_BUILDKITE = re.compile(r"---|\+\+\+|~~~|\^\^\^")
_LINKED = re.compile(r"(?<![\w`])@\w|(?<!\w)#\d|\bGH-\d|://|\bwww\.|\bmailto:", re.IGNORECASE)


def in_text(text: str) -> Iterator[str]:
    """Yield what a terminal or a CI agent would obey in a text."""
    if found := _ACTIVE.search(text):
        yield f"U+{ord(found[0]):04X}"
    # Who compares text as people read it does not see these characters between the others.
    seen = _IGNORED.sub("", text)
    if found := _COMMAND.search(seen):
        yield f"the command {found[0]}"
    for row in seen.split("\n"):
        if row.lstrip().startswith("::"):
            yield f"a line that begins with ::, {row[:40]!r}"


def in_junit(data: bytes, cases: int, dialect: str = "") -> Iterator[str]:
    """Yield what is wrong with a JUnit report of so many cases."""
    if len(data) > JUNIT:
        yield f"{len(data)} bytes"
    try:
        root = etree.fromstring(data, etree.XMLParser(resolve_entities=False, huge_tree=True))
        yield from in_text(data.decode())
    except (etree.XMLSyntaxError, UnicodeDecodeError) as error:
        yield f"not XML: {error}"
        return
    if dialect in SCHEMAS and not SCHEMAS[dialect].validate(root):
        yield f"not valid: {SCHEMAS[dialect].error_log}"
    if (found := len(root.findall(".//testcase"))) != cases:
        yield f"{found} cases, not {cases}"
    if any("[[ATTACHMENT" in (out.text or "") for out in root.iter("system-out")):
        yield "an attachment of Jenkins"


def in_json(data: bytes, steps: int) -> Iterator[str]:
    """Yield what is wrong with a ledger.json of so many steps, for a reader that takes the standard at its word."""
    try:
        value: Any = json.loads(data.decode(), parse_constant=_no_number)
        yield from in_text(data.decode())
    except ValueError as error:
        yield f"not JSON: {error}"
        return
    if _half(value) or not LEDGER.is_valid(value):
        yield "half a character, or not what its schema says"
    elif len(value["steps"]) != steps:
        yield f"{len(value['steps'])} steps, not {steps}"


def _half(value: object) -> bool:
    """Whether an escape stands for half a character, which strict readers refuse."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)


def in_markdown(data: bytes, steps: int, failures: int, most: int = 2**63) -> Iterator[str]:
    """Yield what is active in a page of at most so many bytes when it is rendered, and what it lacks."""
    if len(data) > most:
        yield f"{len(data)} bytes"
        return
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        yield f"not UTF-8: {error}"
        return
    yield from in_text(text)
    page = _flat(MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text))
    # Sections are folded by lines of ours, whose headings are words of ours, too.
    page = [token for token in page if token.type != "html_block" or not _FOLDED.fullmatch(token.content)]
    kinds = {token.type for token in page}
    yield from sorted(
        kinds & {"html_inline", "html_block", "link_open", "image", "s_open", "blockquote_open"}
    )
    for token in page:
        # A zero-width space parts what GitHub would make a mention, a reference or a link of.
        if token.type == "text" and (found := _LINKED.search(token.content)):
            yield f"GitHub makes a link of {found[0]!r} in {token.content[:60]!r}"
    tags = [token.tag for token in page if token.type == "heading_open"]
    if len(data) < most // 2 and (tags.count("h1"), tags.count("h3")) != (1, failures):
        yield f"headings {tags} with {failures} failures"
    rows = [token for token in page if token.type == "tr_open"]
    if len(data) < most // 2 and len(rows) not in (0, steps + 1):
        yield f"{len(rows)} rows for {steps} steps"


def _flat(tokens: list[Token] | None) -> list[Token]:
    """All tokens of a page, inline ones too."""
    return [found for token in tokens or [] for found in (token, *_flat(token.children))]


_ELEMENTS = frozenset(
    {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "a",
        "header",
        "h1",
        "h2",
        "h3",
        "h4",
        "p",
        "span",
        "ul",
    }
    | {"li", "main", "section", "article", "pre", "code", "dl", "dt", "dd", "b", "small", "fieldset"}
    | {"legend", "label", "input", "div", "table", "caption", "thead", "tbody", "tr", "th", "td", "svg"}
    | {"g", "path", "rect", "text", "title", "details", "summary", "footer", "wbr"}
)
_ATTRIBUTES = frozenset(
    {"aria-hidden", "aria-label", "aria-labelledby", "charset", "checked", "class", "content", "d", "fill"}
    | {"fill-opacity", "font-family", "font-size", "height", "hidden", "href", "http-equiv", "id", "lang"}
    | {"name", "open", "role", "rx", "scope", "stroke", "stroke-dasharray", "stroke-width", "tabindex"}
    | {"title", "type", "viewbox", "width", "x", "y"}
)
_FOLDED = re.compile(r"<details>\n<summary>[A-Za-z -]+</summary>\n|</details>\n")
POLICY = re.compile(r"default-src 'none'; style-src 'sha256-([^']+)'; base-uri 'none'; form-action 'none'")


def in_html(data: bytes, steps: int, failures: int) -> Iterator[str]:
    """Yield what a browser would run, load or be led to by a page, and what the page lacks."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        yield f"not UTF-8: {error}"
        return
    yield from in_text(text)
    if not text.startswith('<!DOCTYPE html>\n<html lang="en">'):
        yield f"begins with {text[:40]!r}"
    page = html.document_fromstring(text, parser=html.HTMLParser(huge_tree=True))
    yield from _active_in(page)
    style = page.findtext("head/style") or ""
    metas = {meta.get("http-equiv"): meta.get("content", "") for meta in page.iter("meta")}
    found = POLICY.fullmatch(metas.get("Content-Security-Policy", ""))
    if not found or found[1] != b64encode(sha256(style.encode()).digest()).decode():
        yield "no policy, or not that of the style"
    rows = page.findall(".//table[@class='timeline']/tbody/tr")
    if len(rows) != steps:
        yield f"{len(rows)} rows for {steps} steps"
    said = (page.findtext(".//h2[@id='failures']") or "").partition(" ")[0]
    if (said or "0") != str(failures):
        yield f"{said or 'no'} failures, not {failures}"
    levels = [int(each.tag[1]) for each in page.iter("h1", "h2", "h3")]
    if levels[:1] != [1] or levels.count(1) != 1 or any(b - a > 1 for a, b in pairwise(levels)):
        yield f"headings {levels}"


def _active_in(page: html.HtmlElement) -> Iterator[str]:
    """Yield elements and attributes that planrun does not write, and links that leave the page or lead nowhere."""
    ids: set[str] = set()
    for element in page.iter():
        if not isinstance(element.tag, str):
            yield f"a comment or an instruction: {element.text!r:.60}"
            continue
        if element.tag not in _ELEMENTS:
            yield f"an element {element.tag[:40]!r}"
        yield from [f"an attribute {name[:40]!r}" for name in element.attrib if name not in _ATTRIBUTES]
        if (own := element.get("id")) is not None:
            if own in ids:
                yield f"two elements {own!r}"
            ids.add(own)
    for link in page.iter("a"):
        if not (link.get("href") or "").startswith("#") or (link.get("href") or "")[1:] not in ids:
            yield f"a link to {link.get('href')!r:.60}"


def in_console(vendor: str, text: str, failures: int) -> Iterator[str]:
    """Yield what is active in a console's text but for planrun's own marks in the language of this CI system."""
    if vendor in ("github", "gitea"):
        text, errors, problems = _heard_by_github(text)
        yield from problems
        yield from _counted(errors, failures)
    elif vendor == "azure":
        yield from _counted(text.count("##vso[task.logissue"), failures)
        text = _AZURE.sub("", text)
    elif vendor == "teamcity":
        told = text.count("##teamcity[buildProblem") + text.count(" status='WARNING']")
        yield from _counted(told, failures)
        text = _TEAMCITY.sub("", text)
    elif vendor == "gitlab":
        text = _GITLAB.sub("", text)
    elif vendor == "buildkite":
        yield from _heard_by_buildkite(text, failures)
    yield from in_text(text)


def _counted(errors: int, failures: int) -> Iterator[str]:
    """One error for each failure, or a warning for a tolerated one; of many the last one counts the rest."""
    if errors != min(ERRORS, failures):
        yield f"{errors} errors, and {failures} steps failed"


def _heard_by_github(text: str) -> tuple[str, int, list[str]]:
    """Follow a console as GitHub's runner does; return what is no command of planrun's, its errors, what is wrong."""
    kept: list[str] = []
    wrong: list[str] = []
    word, errors, depth = "", 0, 0
    for row in text.split("\n"):
        if word:
            if row == f"::{word}::":
                word = ""
            else:
                kept.append(row)
        elif _GITHUB.fullmatch(row):
            depth += row.startswith("::group::")
            depth -= row == "::endgroup::"
            errors += row.startswith(("::error ", "::warning "))
            word = row.removeprefix("::stop-commands::") if row.startswith("::stop-commands::") else ""
        else:
            kept.append(row)
        if depth not in (0, 1):
            wrong.append("groups that do not match")
            depth = 0
    if word:
        wrong.append("commands stay stopped")
    return "\n".join(kept), errors, wrong


def _heard_by_buildkite(text: str, failures: int) -> Iterator[str]:
    """Buildkite folds at every line that begins with its marks; planrun's own have an icon or tell a failure."""
    heads = [row for row in text.split("\n") if _BUILDKITE.match(row)]
    opened = [row for row in heads if row.startswith("+++ ")]
    if len(opened) > failures + 1:
        yield f"{len(opened)} open headings, and {failures} steps failed"
    own = (*ICONS.values(), "▶")  # the last above what a step has printed so far, where it takes long
    for row in heads:
        if not row.startswith(("+++ ", *(f"--- {icon} " for icon in own))):
            yield f"a heading that is not planrun's: {row[:40]!r}"


def in_outputs(data: bytes) -> Iterator[str]:
    """Yield what GitHub's runner would read out of a file of outputs besides those of the action."""
    known = {
        "run-id",
        "result",
        "failed-steps",
        "junit-path",
        "ledger-path",
        "report-path",
        "digest",
        "outputs",
    }
    word, found = "", []
    for row in re.split(r"\r\n|\n|\r", data.decode()):
        if word:
            word = "" if row == word else word
        elif row:
            name, _, rest = row.partition("=") if "=" in row.partition("<<")[0] else row.partition("<<")
            word = rest if "=" not in row.partition("<<")[0] else ""
            found.append(name)
    if sorted(found) != sorted(known) or word:
        yield f"outputs {sorted(found)[:9]}{' without an end' if word else ''}"
