"""Programs that print harmless facts about the system, and small ones that only calculate."""

from __future__ import annotations

from planrun.risk.levels import high
from planrun.risk.table import Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.risk.levels import Finding
    from planrun.risk.table import Rules, Use


_PS_FLAGS = frozenset("AaxdefFlHjNrTtuwy")
_PS_TAKE = frozenset(
    ["-o", "-p", "-C", "-u", "-U", "-g", "-t", "-s", "o", "--ppid", "--pid", "--sort", "--format"]
)
_PS_WORDS = frozenset(("--no-headers", "--no-heading", "--forest", "--headers", "--cumulative"))


def _ps(use: Use) -> Finding | None:
    """Look for what shows environments: `e` without a dash, and formats that name them."""
    takes = False
    for word in use.operands:
        if takes:
            takes = False
            if "env" in word.lower():
                return high("ps: shows the environment of processes", "secrets")
        elif word in _PS_TAKE or (word[:1] == "-" and word[-1] == "o" and _PS_FLAGS.issuperset(word[1:-1])):
            takes = True
        elif word.startswith(("--sort=", "--pid=", "--ppid=", "--format=", "-o")):
            if "env" in word.lower():
                return high("ps: shows the environment of processes", "secrets")
        elif word[:1] == "-" and not (word in _PS_WORDS or _PS_FLAGS.issuperset(word[1:])):
            return high(f"ps {word}: unknown option")
        elif word[:1] != "-" and not (word.isdigit() or frozenset("aAxuflwrjTvX").issuperset(word)):
            return high(f"ps {word}: may show the environment of processes", "secrets")
    return None


def _date(use: Use) -> Finding | None:
    if any(not operand.startswith("+") for operand in use.operands):
        return high("date: an operand that would set the clock", "privilege")
    return None


PROGRAMS: dict[str, Rules] = {
    "date": Rule("read-only", "text?", "-u -R -d=text -I[=text] -r=read --utc --universal --date=text --iso-8601[=text] --rfc-3339=text --rfc-email --reference=read --debug", check=_date),
    "seq": Rule("read-only", "number+", "-s=text -w -f=text --separator=text --equal-width --format=text"),
    "ps": Rule("read-only", "text*", style="raw", check=_ps),
    "uptime": Rule("read-only", "", "-p -s --pretty --since"),
    "whoami": Rule("read-only"),
    "id": Rule("read-only", "name?", "-u -g -G -n -r --user --group --groups --name --real"),
    "groups": Rule("read-only", "name*"),
    "logname": Rule("read-only"),
    "who": Rule("read-only", "", "-b -r -q -H -u --boot --runlevel --count --heading"),
    "uname": Rule("read-only", "", "-a -s -n -r -v -m -p -i -o --all --kernel-name --nodename --kernel-release --kernel-version --machine --processor --hardware-platform --operating-system"),
    "arch": Rule("read-only"),
    "hostname": Rule("read-only", "", "-f -s -i -I -d -A --fqdn --short --domain --ip-address --all-ip-addresses --long"),
    "nproc": Rule("read-only", "", "--all --ignore=number"),
    "free": Rule("read-only", "", "-b -k -m -g -h -t -w -l --bytes --kilo --mega --giga --human --total --wide --si"),
    "locale": Rule("read-only", "name*", "-a -m -k -c --all-locales --charmaps"),
    "which": Rule("read-only", "name+", "-a -s --all"),
    "whereis": Rule("read-only", "name+", "-b -m -s -u"),
    "getconf": Rule("read-only", "name read?", "-a"),
    "factor": Rule("read-only", "number*"),
    "expr": Rule("read-only", "text+", style="raw"),
    "tty": Rule("read-only", "", "-s --silent --quiet"),
    "lscpu": Rule("read-only", "", "-a -b -c -e[=text] -p[=text] -J -x --all --json --extended[=text] --parse[=text]"),
    "lsb_release": Rule("read-only", "", "-a -c -d -i -r -s -v --all --codename --description --id --release --short"),
    "cal": Rule("read-only", "name*", "-1 -3 -m -s -y -j -w --monday --sunday --year --julian --week"),
}  # fmt: skip
