"""Executors of Dagu that are a program elsewhere: http is curl, jq is jq, ssh is ssh."""

from __future__ import annotations

from planrun.app.converting.dagu.keys import Keys
from planrun.app.converting.findings import UntranslatableError
from planrun.app.converting.reading import text_of, truth_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.app.converting.reading import Reader

_INPUT = "PLANRUN_INPUT_END"


def script_of(kind: str, command: str, text: str, config: Keys, reader: Reader) -> str:
    """Return the command line of an executor; `text` is the step's `script`. Raises UntranslatableError."""
    return _PROGRAMS[kind](command, text, config, reader)


def _http(command: str, _text: str, config: Keys, reader: Reader) -> str:
    method, _, url = command.strip().partition(" ")
    if not url:
        raise UntranslatableError("executor:http", f"a request `METHOD URL`, not `{command}`")
    words = ["curl --silent --show-error --location --fail-with-body", f"--request {_quoted(method)}"]
    for name, value in reader.mapping(config.get("headers"), "`headers`").items():
        words.append(f"--header {_quoted(f'{name}: {text_of(value)}')}")
    query = reader.mapping(config.get("query"), "`query`")
    if query:
        words.append(
            "--url-query " + " --url-query ".join(_quoted(f"{k}={text_of(v)}") for k, v in query.items())
        )
    if config.has("body"):
        words.append(f"--data-raw {_quoted(config.text('body'))}")
    if config.has("timeout"):
        words.append(f"--max-time {_quoted(config.text('timeout'))}")
    if truth_of(config.get("skiptlsverify")):
        words.append("--insecure")
    return " ".join([*words, _quoted(url.strip())])


def _jq(command: str, text: str, config: Keys, _reader: Reader) -> str:
    option = " --raw-output" if truth_of(config.get("raw")) else ""
    query = "'" + command.strip().replace("'", "'\\''") + "'"
    return f"jq{option} {query} <<'{_INPUT}'\n{text}\n{_INPUT}"


def _ssh(command: str, text: str, config: Keys, _reader: Reader) -> str:
    if config.has("password") or config.has("bastion"):
        raise UntranslatableError("executor:ssh", "a connection by a password or over another host")
    host, user = config.text("host", "ip"), config.text("user")
    if not host:
        raise UntranslatableError("executor:ssh", "a connection without a host")
    words = ["ssh -o BatchMode=yes"]
    if config.has("port"):
        words.append(f"-p {_quoted(config.text('port'))}")
    if config.has("key"):
        words.append(f"-i {_key(config.text('key'))}")
    if truth_of(config.first("stricthostkey", "stricthostkeychecking")) is False:
        words.append("-o StrictHostKeyChecking=no")
    words.append(_quoted(f"{user}@{host}" if user else host))
    if text.strip():
        return " ".join([*words, f"sh -e <<'{_INPUT}'\n{text}\n{_INPUT}"])
    return " ".join([*words, _quoted(command)])


def _key(path: str) -> str:
    return f'"$HOME"/{_quoted(path[2:])}' if path.startswith("~/") else _quoted(path)


def _quoted(text: str) -> str:
    """Return a word in double quotes: Dagu fills in `$NAME` in it, and so does the shell."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


_PROGRAMS: dict[str, Callable[[str, str, Keys, Reader], str]] = {"http": _http, "jq": _jq, "ssh": _ssh}
KINDS = frozenset(_PROGRAMS)
"""The executors that are known here."""
