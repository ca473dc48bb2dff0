"""Programs that look for text, sort it and cut it."""

from __future__ import annotations

from planrun.risk.table import Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.risk.table import Rules

PROGRAMS: dict[str, Rules] = {
    "grep": Rule(
        "read-only",
        "text read*",
        "-# -a -b -c -E -F -G -P -h -H -i -l -L -n -o -q -r -R -s -T -U -v -w -x -y -z -Z -A=number -B=number -C=number"
        " -m=number -d=text -D=text --color[=text] --colour[=text] --count --extended-regexp --fixed-strings --ignore-case"
        " --include=text --exclude=text --exclude-dir=text --invert-match --line-number --files-with-matches"
        " --files-without-match --max-count=number --no-filename --with-filename --only-matching --quiet --silent"
        " --recursive --no-messages --word-regexp --line-regexp --perl-regexp --null --text --context=number"
        " --after-context=number --before-context=number --binary-files=text --basic-regexp",
        glob=True,
    ),
    "sort": Rule(
        "read-only",
        "read*",
        "-b -c -C -d -f -g -h -i -m -M -n -r -R -s -u -V -z -k=text -t=text -o=write -S=number --field-separator=text"
        " --ignore-case --key=text --numeric-sort --reverse --unique --stable --version-sort --output=write"
        " --human-numeric-sort --general-numeric-sort --check[=text] --zero-terminated",
    ),
    "cut": Rule(
        "read-only",
        "read*",
        "-b=text -c=text -d=text -f=text -n -s -z --bytes=text --characters=text --delimiter=text --fields=text"
        " --only-delimited --complement --output-delimiter=text",
        glob=True,
    ),
    "uniq": Rule(
        "read-only",
        "read? write?",
        "-c -d -D -i -u -z -f=number -s=number -w=number --count --repeated --ignore-case --unique --skip-fields=number"
        " --skip-chars=number --check-chars=number",
    ),
}
