"""Other ways to write a dangerous command, all of them as dangerous as before.

Inside a text only words are touched whose every letter stands for itself, so that what is meant stays what it is;
around a text anything may stand that leaves it running.
"""

from __future__ import annotations

import random
import re
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from proofs.commands.rows import Row

_PLAIN = re.compile(r"[A-Za-z0-9_./:=@,+~^*?% -]+(?:(?: ?(?:&&|\|\||[;|<>]) ?)[A-Za-z0-9_./:=@,+~^*?% -]+)*")
_LETTERS = re.compile(r"(?<![\\~])(?<=[A-Za-z])(?=[A-Za-z])")
_MEANINGLESS = re.compile(r"\s*(?:#[^\n\r]*)?\Z")
_STAYS = re.compile(
    r"^(?:x|q|OPT)=|(?:^|[;&|({\s])(?:cd|pushd|popd|exec|export|alias|shopt|set|trap|hash|enable)\b"
)
"""What changes the shell itself, and so does something else, or nothing, as the program that `env` starts."""
_ENDS = (
    "rm",
    "cat",
    "cp",
    "mv",
    "touch",
    "mkdir",
    "chmod",
    "ls",
    "head",
    "tail",
    "wc",
    "base64",
    "stat",
    "truncate",
)
"""Programs for which `--` before the last word changes nothing."""
_LONG = {
    "rm": {"r": "--recursive", "R": "--recursive", "f": "--force", "v": "--verbose"},
    "cp": {"r": "--recursive", "R": "--recursive", "f": "--force"},
    "chmod": {"R": "--recursive"},
    "chown": {"R": "--recursive"},
    "sed": {"n": "--quiet", "i": "--in-place"},
    "mkdir": {"p": "--parents"},
    "tail": {},
    "ls": {"a": "--all"},
}
"""Long names of short options without values."""


def is_fit(row: Row) -> bool:
    """Whether a row is dangerous by what it does, not by being no command at all."""
    if row.level != "high" or _MEANINGLESS.match(row.text) or "\0" in row.text:
        return False
    # -n: bash reads, and runs nothing.
    return not subprocess.run(["bash", "-n", "-c", row.text], capture_output=True, check=False).returncode


def _places(text: str) -> list[int]:
    """Give the places between two letters of a plain word."""
    return [match.start() for match in _LETTERS.finditer(text) if not _behind_home(text, match.start())]


def _behind_home(text: str, place: int) -> bool:
    """Whether a place is in a user's name after ~, where a quote takes the tilde's meaning."""
    start = max(text.rfind(sign, 0, place) for sign in " ;|&<>/=:")
    return text[start + 1 : start + 2] == "~"


def quoted_inside(text: str, chance: random.Random) -> str:
    """Put quotes that quote nothing into a word."""
    places = _places(text)
    if not places:
        return text
    place = chance.choice(places)
    return text[:place] + chance.choice(("''", '""', "''''", "\"\"''")) + text[place:]


def escaped(text: str, chance: random.Random) -> str:
    """Put a backslash, or one and a newline, before a letter."""
    places = _places(text)
    if not places:
        return text
    place = chance.choice(places)
    return text[:place] + chance.choice(("\\", "\\\n")) + text[place:]


def quoted(text: str, chance: random.Random) -> str:
    """Quote a whole word that has no sign in it that means something."""
    words = re.findall(r"(?<![^\s;|&])[A-Za-z0-9_./:@,+-]+(?![^\s;|&])", text)
    if not words:
        return text
    word, quote = chance.choice(words), chance.choice("'\"")
    return re.sub(rf"(?<![^\s;|&]){re.escape(word)}(?![^\s;|&])", f"{quote}{word}{quote}", text, count=1)


def spaced(text: str, chance: random.Random) -> str:
    """Write a blank in another way."""
    places = [place for place, sign in enumerate(text) if sign == " "]
    if not places:
        return text
    place = chance.choice(places)
    return text[:place] + chance.choice(("  ", "\t", " \\\n", "\t \t", " \\\n\t")) + text[place + 1 :]


ASSIGNING = re.compile(r"(?:^|[\s;&|(])[A-Za-z_]\w*\+?=\S*$")
"""The end of a text that assigns: bash splits no word there, so what stands for a blank is a part of the value."""


def split_by_ifs(text: str, chance: random.Random) -> str:
    """Have an expansion separate two words."""
    places = [
        place
        for place in range(1, len(text) - 1)
        if text[place - 1 : place + 2].strip().count(" ") == 1 and not ASSIGNING.search(text[:place])
    ]
    if not places:
        return text
    place = chance.choice(places)
    return text[:place] + chance.choice(("${IFS}", "$IFS$9", "${IFS%?}")) + text[place + 1 :]


def through_variable(text: str, chance: random.Random) -> str:
    """Have a variable stand for a word."""
    found = list(re.finditer(r"(?<![^\s])[A-Za-z0-9_./:@,+-]+(?![^\s])", text))
    if not found:
        return text
    match = chance.choice(found)
    name = chance.choice(("x", "q", "OPT"))
    use = chance.choice((f"${name}", f'"${name}"', f"${{{name}}}", f'"${{{name}}}"'))
    return f"{name}={match[0]}; " + text[: match.start()] + use + text[match.end() :]


def flags(text: str, chance: random.Random) -> str:
    """Split a cluster of short options, name one by its long name, or put them all behind the operands."""
    name, _, rest = text.partition(" ")
    names = _LONG.get(name)
    words = rest.split(" ")
    if names is None or re.search(r"[;|&<>]", text) or "--" in words:
        return text
    short = [place for place, word in enumerate(words) if re.fullmatch("-[A-Za-z]+", word)]
    known = [place for place in short if set(words[place][1:]) <= set(names)]
    if not known:
        return text
    place = chance.choice(known)
    letters = list(words[place][1:])
    chance.shuffle(letters)
    kind = chance.randrange(3)
    if kind == 0:
        words[place : place + 1] = [f"-{letter}" for letter in letters]
    elif kind == 1:
        words[place : place + 1] = [names[letter] for letter in letters]
    else:
        words.append(words.pop(place))
    return " ".join([name, *words])


def abbreviated(text: str, chance: random.Random) -> str:
    """Cut a long option, which many programs take for the whole one."""
    found = [match for match in re.finditer(r"(?<=\s)--[a-z-]{5,}", text) if "checkpoint" not in match[0]]
    if not found:
        return text
    match = chance.choice(found)
    return text[: match.end() - chance.randrange(1, 3)] + text[match.end() :]


def ended_options(text: str, chance: random.Random) -> str:
    """Put -- before the last operand."""
    del chance
    words = text.split(" ")
    if words[0] not in _ENDS or re.search(r"[;|&<>]", text) or len(words) < 2 or words[-1].startswith("-"):
        return text
    return " ".join([*words[:-1], "--", words[-1]])


_AHEAD = (
    *("true && ", "cd . ; ", "ls; ", "time ", ": ; ", "true\n", "echo 'a b' | wc -l\n", "false || ", "A=1; "),
    *("# no comment\n", "\n", " ", "\t", "pwd;", "set -u\n", "cd src/.. && "),
)


def behind(text: str, chance: random.Random) -> str:
    """Put something harmless in front; `!` only where nothing asks how the first command ended."""
    asked = re.search(r"&&|\|\||\bset -e|\bif\b", text)
    return chance.choice(_AHEAD if asked else (*_AHEAD, "! ")) + text


def before(text: str, chance: random.Random) -> str:
    """Put something harmless behind."""
    ways = (
        " || true",
        " && true",
        "; true",
        "\ntrue",
        "\n# x",
        " | cat",
        " 2>/dev/null",
        " > /dev/null",
        "\necho done",
    )
    return text + chance.choice(ways)


def wrapped(text: str, chance: random.Random) -> str:
    """Put the whole text into something that runs it."""
    ways = (
        "{{ {}\n}}",
        "({}\n)",
        "( {} \n) | cat",
        "if true; then {}\nfi",
        "if ! false; then\n{}\nfi",
        "for planrun in a b; do {}\ndone",
        "if false; then ls; else {}\nfi",
        "{{ ls; {}\n}} 2>/dev/null",
        "while true; do {}\ndone",
        'echo "$({}\n)"',
        "echo $({}\n)",
        "cat <(\n{}\n)",
        "f() {{ {}\n}}; f",
        "case a in a) {}\n;; esac",
    )
    return chance.choice(ways).format(text)


def led(text: str, chance: random.Random) -> str:
    """Have the first command run by a program that runs programs."""
    ways = (
        "env ",
        "timeout 5 ",
        "nice ",
        "nice -n 5 ",
        "env A=1 ",
        "A=1 ",
        "A= B='x y' ",
        "timeout -k 5 60 ",
    )
    more = (
        "command ",
        "nohup ",
        "exec ",
        "sudo ",
        "xargs ",
        "env -i ",
        "stdbuf -oL ",
        "builtin ",
        "time -p ",
    )
    return text if _STAYS.search(text) else chance.choice((*ways, *ways, *more)) + text


def in_document(text: str, chance: random.Random) -> str:
    """Have it run as part of a here-document."""
    ways = ("cat <<E\n$({}\n)\nE\n", "bash <<'E'\n{}\nE\n", "sh -s <<E\n{}\nE\n", "cat <<-E\n\t`{}`\n\tE\n")
    return text if "<<" in text or "`" in text or "\\" in text else chance.choice(ways).format(text)


INSIDE: Sequence[Callable[[str, random.Random], str]] = (
    *(
        quoted_inside,
        escaped,
        quoted,
        spaced,
        split_by_ifs,
        through_variable,
        flags,
        abbreviated,
        ended_options,
    ),
)
AROUND: Sequence[Callable[[str, random.Random], str]] = (behind, before, wrapped, led, in_document)


def mutations(rows: Sequence[Row], count: int, seed: int) -> Iterator[tuple[Row, str]]:
    """Write so many dangerous commands in other ways."""
    chance = random.Random(seed)
    for number in range(count):
        row = rows[number % len(rows)]
        text = row.text
        if _PLAIN.fullmatch(text):
            for _ in range(chance.choice((0, 1, 1, 2, 3))):
                text = _changed_inside(text, chance)
        for _ in range(chance.choice((0, 0, 1, 1, 2, 3))):
            text = chance.choice(AROUND)(text, chance)
        yield row, text


def _changed_inside(text: str, chance: random.Random) -> str:
    """Change a plain text inside; what is not plain any more is left alone."""
    return chance.choice(INSIDE)(text, chance) if _PLAIN.fullmatch(text) else text
