"""Texts for bash, made by chance from a grammar: harmless programs, and every way to write them down.

Most constructions are such that a classifier may understand them; some are such that it should give up. None of the
programs named here writes, deletes or sends anything, and nobody relies on that: bash is given none of them to run.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROGRAMS = (
    *(
        "ls",
        "ls -la",
        "cat",
        "cat -n",
        "wc -l",
        "head -n 3",
        "tail",
        "echo",
        "echo",
        "echo -n",
        "printf '%s'",
    ),
    *(
        "grep -n x",
        "grep -rn TODO",
        "sort -u",
        "uniq",
        "sed -n 5p",
        "cut -f1",
        "stat",
        "file",
        "basename",
        "pwd",
    ),
    *("git status", "git log --oneline", "git diff", "git show HEAD", "true", "mkdir -p", "touch", "pytest"),
    *("make", "test -f", "rm -f", "cp", "git add", "jq .", "python3 tools/x.py", "npm test"),
)
NAMES = (
    "a.txt",
    "b",
    "src",
    "build/x",
    "x-1",
    "README.md",
    "a_b",
    "1",
    "src/app.py",
    "x=1",
    "a:b",
    "a,b",
    "%s",
    "@",
)
LETTERS = "abxyz019._-,:@%+/ \t#'\"\\$`!*?[]{}()<>|&;~^=\n"
ODD = (
    "\r",
    "\u00a0",
    "\u200b",
    "\u3000",
    "\x0b",
    "\x0c",
    "\u2028",
    "\x01",
    "\x7f",
    "\ufeff",
    "\u00e4",
    "\u202e",
)


class Writer:
    """Writes texts from one seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def text(self) -> str:
        """Write one text of one to four lines, most of them plain, some with something odd in a random place."""
        made = self.script(self.chance.choice((1, 1, 2, 2, 3)))
        if self.chance.random() < 0.15:
            place = self.chance.randrange(len(made) + 1)
            odd = self.chance.choice((*ODD, *LETTERS))
            made = made[:place] + odd + made[place + self.chance.randrange(2) :]
        return made

    def script(self, depth: int) -> str:
        """Write some statements, each ended in some way."""
        lines = []
        for _ in range(self.chance.choice((1, 1, 1, 2, 3))):
            line = self.statement(depth)
            ends = ("\n", "\n", "\n\n", " # no comment\n", "\n\t", " \n# 'rm -rf\n")
            heredoc = line.endswith("\n")
            lines.append(line if heredoc else line + self.chance.choice((*ends, ";", "; ", " ;")))
        made = "".join(lines)
        return made.rstrip("; \n\t") if self.chance.random() < 0.5 and "<<" not in made else made

    def statement(self, depth: int) -> str:
        """Write a command, a list, or something that has statements in it."""
        compound: tuple[Callable[[int], str], ...] = (
            lambda d: f"{{ {self.script(d).rstrip('; ')}\n}}",
            lambda d: f"({self.script(d)}\n)",
            lambda d: f"if {self.pipeline()}; then {self.script(d)}\nfi",
            lambda d: f"if {self.pipeline()}\nthen\n{self.script(d)}\nelse {self.script(d)}\nfi",
            lambda d: f"for f in {self.words(3)}; do {self.script(d)}\ndone",
            lambda _: f'for f in a b\ndo echo "$f"{self.junction()}{self.pipeline()}\ndone',
            lambda d: f"cd src && {self.script(d)}",
            lambda d: f"until {self.pipeline()}; do {self.script(d)}\ndone",
            lambda _: f"case {self.word()} in a) {self.pipeline()};; esac",
            self.heredoc,
        )
        if depth > 0 and self.chance.random() < 0.3:
            return self.chance.choice(compound)(depth - 1)
        made = self.pipeline()
        while self.chance.random() < 0.3:
            made += self.junction() + self.pipeline()
        return made

    def junction(self) -> str:
        """Write what stands between two pipelines."""
        plain = (" && ", " || ", "; ", ";", "&&", "||", " && \\\n", " &&\n", "\n", ";\n", " ;\t")
        return (
            self.chance.choice(plain)
            if self.chance.random() < 0.97
            else self.chance.choice(("&", " & ", ";;"))
        )

    def pipeline(self) -> str:
        """Write one to three commands with pipes between."""
        made = self.chance.choice(("", "", "", "", "! ", "time ")) + self.command()
        while self.chance.random() < 0.2:
            made += self.chance.choice((" | ", "|", " |\n", " | \\\n", "|\t")) + self.command()
        return made

    def command(self) -> str:
        """Write a simple command: assignments, program, words, redirections."""
        before = self.chance.choice((*[""] * 20, "A=1 ", "A= B='x y' ", "LC_ALL=C ", "X=\"a\"'b' "))
        if self.chance.random() < 0.1:
            before = self.chance.choice(("timeout 5 ", "nice ", "env A=1 ", "nice -n 5 ", "env "))
        program = self.program(self.chance.choice(PROGRAMS))
        made = before + program
        for _ in range(self.chance.choice((0, 1, 1, 2, 3))):
            made += self.blank() + self.word()
        if self.chance.random() < 0.2:
            made += self.chance.choice(("", " ")) + self.redirection()
        return made

    def program(self, text: str) -> str:
        """Write a program's name, seldom as plainly as it is meant."""
        if self.chance.random() < 0.85:
            return text
        name, space, rest = text.partition(" ")
        half = self.chance.randrange(len(name))
        ways = (
            f'"{name}"',
            f"'{name}'",
            f"\\{name}",
            f"{name[:half]}''{name[half:]}",
            f"{name[:half]}\\\n{name[half:]}",
            f'{name[:half]}"{name[half:]}"',
        )
        return self.chance.choice(ways) + space + rest

    def blank(self) -> str:
        """Write what separates two words."""
        return self.chance.choice((" ", " ", " ", " ", " ", "  ", "\t", " \\\n", " \\\n  ", "\t \t"))

    def words(self, count: int) -> str:
        """Write some words with blanks between."""
        return "".join(self.word() + self.blank() for _ in range(count))

    def word(self) -> str:
        """Write a word of one to three pieces, each quoted or not."""
        if self.chance.random() < 0.5:
            return self.chance.choice(NAMES)
        return "".join(self.piece() for _ in range(self.chance.choice((1, 1, 2, 3))))

    def piece(self) -> str:
        """Write a part of a word."""
        choose = self.chance.choice
        kind = self.chance.random()
        letters = "".join(choose(LETTERS) for _ in range(choose((0, 1, 2, 4))))
        if kind < 0.2:
            return choose(NAMES)
        if kind < 0.45:
            return "'" + letters.replace("'", "") + "'"
        if kind < 0.7:
            return '"' + "".join(f"\\{c}" if c in '"$`' else c for c in letters.rstrip("\\")) + '"'
        if kind < 0.85:
            return "\\" + choose(LETTERS)
        if kind < 0.9:
            return self.expansion()
        bare = (
            "{a,b}",
            "{1..3}",
            "{a}",
            "{}",
            "a{",
            "}",
            "*.zz",
            "?zz",
            "[a]zz",
            "~",
            "~/x",
            "a~",
            "#a",
            "a#b",
            "=",
        )
        more = (
            "!",
            "a!b",
            "^a",
            "$",
            "a$",
            "%",
            "+x",
            "-",
            "--",
            "-x",
            "\\",
            "''",
            '""',
            "@(a)",
            "a=~/x",
            "\\\n",
        )
        return choose((*bare, *more))

    def expansion(self) -> str:
        """Write something that bash puts something else for."""
        inner = self.chance.choice(
            ("pwd", "git rev-parse HEAD", "echo 'a)'", 'echo ")"', "echo \\)", "ls # )\n")
        )
        ways = (
            '"$A"',
            '"${A}"',
            '"$f"',
            "$A",
            f'"$({inner})"',
            f"$({inner})",
            '"`pwd`"',
            "$((1+1))",
            "$'a\\x41'",
        )
        return self.chance.choice(
            (*ways, '$"a"', "${A:-x}", '"$$"', '"$?"', "<(pwd)", "$[1]", '"a $(echo "b $(pwd)")"')
        )

    def redirection(self) -> str:
        """Write a redirection; those that write stay in the folder."""
        plain = (
            ">/dev/null",
            "2>&1",
            "> /dev/null 2>&1",
            "< a.txt",
            "> build/x",
            ">>build/y",
            ">|build/z",
            "2> build/e",
        )
        odd = (
            "&> build/a",
            ">& build/b",
            "<<< x",
            "<<<'a b'",
            "3>&1",
            ">&-",
            "<>build/x",
            "{fd}>build/q",
            "1>build/w",
        )
        return self.chance.choice(plain if self.chance.random() < 0.8 else odd)

    def heredoc(self, depth: int) -> str:
        """Write a command with a here-document, whose text looks like commands."""
        del depth
        end = self.chance.choice(("EOF", "END", "E-1"))
        mark = self.chance.choice((end, f"'{end}'", f'"{end}"', f"\\{end}", f"{end[0]}'{end[1:]}'"))
        dash = self.chance.choice(("", "", "-"))
        tab = "\t" if dash and self.chance.random() < 0.7 else ""
        bodies = (
            "plain\n",
            "rm -rf /\n",
            f" {end}\n",
            "'\n",
            f"{end} \n",
            "\\\n",
            "$(pwd)\n",
            "`pwd`\n",
            "$A\n",
            "",
        )
        body = "".join(tab + self.chance.choice(bodies) for _ in range(self.chance.choice((0, 1, 2))))
        rest = self.chance.choice(("", "", " | wc -l", " > build/h", "; pwd", " && ls", " # x", " -n"))
        return (
            f"cat <<{dash}{self.chance.choice(('', ' '))}{mark}{rest}\n{body}{tab}{end}\n{self.command()}\n"
        )


def texts(count: int, seed: int) -> Iterator[str]:
    """Write so many texts."""
    writer = Writer(seed)
    for _ in range(count):
        yield writer.text()
