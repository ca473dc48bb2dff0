"""Text that wants to do something, and runs whose every field is made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from planrun.model.plan import Edge, Step
from planrun.plan.kinds.command import Run
from tests.reports.runs import Story

if TYPE_CHECKING:
    import random
    from pathlib import Path

CONTROLS = (
    *(
        "\x1b[31m",
        "\x1b]0;x\x07",
        "\x1b]8;;http://x.y\x1b\\z\x1b]8;;\x1b\\",
        "\x1b]52;c;eA==\x07",
        "\x1bP+q\x1b\\",
    ),
    *(
        "\x1b[2J\x1b[H",
        "\x1b",
        "\x1b[",
        "\x9b2J",
        "\x9d0;x\x9c",
        "\x90q\x9c",
        "\x07",
        "\x08\x08\x08",
        "\x7f",
        "\x00",
    ),
    *("50%\rdone", "\r", "\r\n", "\x85", "\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x1e"),
    *(
        "\u202e",
        "\u2066",
        "\u200f",
        "\u200b",
        "\u00ad",
        "\ufeff",
        "\ufffe",
        "\uffff",
        "\ud800",
        "\udc80",
        "\U0010ffff",
    ),
)
COMMANDS = (
    *("::error::x", "\n::set-output name=a::b\n", "::set-env name=PATH::x", "::add-mask::a", "::add-path::x"),
    *(
        "::stop-commands::x",
        "\n::endgroup::\n",
        "\n::group::x\n",
        "\n\t ::error::x",
        "::save-state name=a::b",
        "::",
    ),
    *("##[group]", "##[error]x", "##[set-env name=a]b", "###[group]", "##vso[task.setvariable variable=a]b"),
    *("##VSO[task.complete result=Succeeded;]", "##\x1b[0mvso[task.setvariable variable=a]b", "##", "["),
    *(
        "##teamcity[buildStatus status='SUCCESS']",
        "##\u200bvso[task.uploadfile]/etc/passwd",
        "##\u00ad[error]x",
    ),
    *("\n--- x\n", "\n+++ x\n", "\n~~~ x\n", "\n^^^ +++\n", "section_start:1:planrun_1\r\x1b[0Kx"),
    *(
        "\x1b[0Ksection_end:1:planrun_1\r\x1b[0K",
        "[[ATTACHMENT|/etc/passwd]]",
        "\nEOF\n",
        "\nresult=completed\n",
    ),
)
MARKUP = (
    *(
        "]]>",
        "<![CDATA[",
        "<script>alert(1)</script>",
        "<img src=x onerror=y>",
        "</testcase>",
        "<!--",
        "-->",
        "&amp;",
    ),
    *(
        "&#x1b;",
        '"',
        "'",
        "<?x?>",
        "```",
        "~~~",
        "````````",
        "`",
        "|",
        "\\|",
        "\\",
        "[a](javascript:x)",
        "![](http://x)",
    ),
    *(
        "[a]: http://x.y",
        "<http://x.y>",
        "https://x.y",
        "www.x.y",
        "mailto:a@b.cd",
        "@user",
        "#1",
        "GH-1",
        "a/b#1",
        ":x:",
    ),
    *(
        "\n\n# heading\n",
        "\n---\n",
        "\n===\n",
        "\n| a |\n| - |\n",
        "\n> x",
        "\n1. x",
        "\n* x",
        "\n    x",
        "$x$",
        "*x*",
    ),
    *("__x__", "~~x~~", "%0A", "%0D%0A::error::x", "%25", "{{ x }}", "${{ secrets.X }}", "$(id)", "\n"),
)
HOSTILE = CONTROLS + COMMANDS + MARKUP
STATUSES = ("completed", "failed", "flaky", "skipped", "blocked", "cancelled", "running", "pending")


@dataclass(frozen=True)
class Drawn:
    """A step of a story: what it is called, how it ends, what it prints and what it hands on."""

    name: str
    title: str
    status: str
    log: bytes
    outputs: dict[str, Any]


def word(chance: random.Random, most: int = 6) -> str:
    """Return some hostile pieces and some letters of any script, in any order."""
    pieces = [
        chance.choice(HOSTILE) if chance.random() < 0.7 else _letters(chance)
        for _ in range(chance.randrange(most))
    ]
    return "".join(pieces)


def _letters(chance: random.Random) -> str:
    highest = chance.choice((0x80, 0x100, 0x3000, 0x110000))
    return "".join([chr(chance.randrange(highest)) for _ in range(chance.randrange(8))])


def output(chance: random.Random) -> bytes:
    """Return what a step may print: hostile words, bytes that are no text, now and then a long line."""
    pieces = []
    for _ in range(chance.randrange(8)):
        kind = chance.random()
        if kind < 0.3:
            pieces.append(chance.randbytes(chance.randrange(30)))
        elif kind < 0.98:
            pieces.append(word(chance).encode("utf-8", "surrogatepass"))
        else:
            pieces.append(b"x" * chance.randrange(200_000))
    return b"".join(pieces)


def steps(chance: random.Random) -> list[Drawn]:
    """Return one to four steps with names of their own."""
    names = {word(chance) for _ in range(4)}
    usable = [name for name in sorted(names) if name.strip("./\0 ")] or ["a"]
    return [
        Drawn(name, word(chance), chance.choice(STATUSES), output(chance), {word(chance): _value(chance)})
        for name in usable
    ]


def _value(chance: random.Random) -> Any:
    return chance.choice((None, 7, word(chance), [word(chance)], {word(chance): word(chance)}))


def tell(rundir: Path, drawn: list[Drawn], title: str) -> Story:
    """Return a run of these steps; each depends on the one before."""
    plan = []
    for number, step in enumerate(drawn):
        edges = (Edge(on=drawn[number - 1].name, kind="done"),) if number else ()
        plan.append(
            Step(id=step.name, action=Run(script=""), kind="run", title=step.title, edges=edges, line=number)
        )
    story = Story(rundir, *plan, title=title, name=title or "x", file=title or "x")
    for number, step in enumerate(drawn):
        story.log_path = f"logs/{number}.log"
        _end(story, step)
    return story


def _end(story: Story, step: Drawn) -> None:
    error = {"class": "unknown", "rule": step.title, "message": step.title}
    checks = ({"name": step.title, "ok": False, "message": step.title},)
    if step.status in ("completed", "failed"):
        told: dict[str, Any] = {"error": error, "outputs": step.outputs, "checks": checks}
        story.run(step.name, step.status, log=step.log, notes=(step.title,), **told)
    elif step.status == "flaky":
        story.run(step.name, "waiting", log=step.log, error=error, checks=checks).run(step.name, log=step.log)
    elif step.status == "running":
        story.start(step.name, step.log)
    elif step.status != "pending":
        story.move(step.name, step.status, "upstream", step.title)
