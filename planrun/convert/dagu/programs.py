"""What executors and actions of Dagu do, as command lines: `http` by curl, `jq` by jq, `postgres` by psql and so on."""

from __future__ import annotations

import re

from planrun.convert.dagu.calls import DOCUMENT, Call
from planrun.convert.dagu.files import FILES
from planrun.convert.dagu.models import MODELS
from planrun.convert.dagu.stores import STORES
from planrun.convert.reader import UntranslatableError, text_of, truth_of
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_BOUNDARY = "planrun-mail-part"


_PARTS = {
    "headers": ("--header", "{}: {}"),
    "query": ("--url-query", "{}={}"),
    "form": ("--form-string", "{}={}"),
    "files": ("--form", "{}=@{}"),
}


def _http(call: Call) -> str:
    method, _, url = call.command.strip().partition(" ")
    if not url:
        url, method = call.settings.text("url") or method, call.settings.text("method") or "GET"
    if not url.strip() or not re.fullmatch(r"[A-Za-z]+", method):
        raise UntranslatableError("executor:http", f"a request `METHOD URL`, not `{call.command}`")
    settings, reader = call.settings, call.reader
    settings.refuse_unknown({
        "url", "method", "headers", "query", "body", "form", "files", "timeout", "skiptlsverify", "silent", "debug",
        "json", "format", "output",
    })  # fmt: skip
    words = ["curl --silent --show-error --location --fail-with-body", f"--request {call.word(method)}"]
    for key, (option, form) in _PARTS.items():
        for name, value in reader.mapping(settings.get(key), f"`{key}`").items():
            words.append(f"{option} {call.word(form.format(name, text_of(value)))}")
    body = settings.get("body")
    if body is not None:
        text = text_of(body) if body.kind == SCALAR else call.json(body)
        words.append(f"--data-raw {call.word(text)}")
    if settings.has("timeout"):
        words.append(f"--max-time {call.word(settings.text('timeout'))}")
    if truth_of(settings.get("skiptlsverify")):
        words.append("--insecure")
    if settings.has("output"):
        words.append(f"--output {call.word(settings.text('output'))}")
    line = " ".join([*words, call.word(url.strip())])
    return _answered(line, call) if truth_of(settings.get("json")) else line


def _answered(line: str, call: Call) -> str:
    """Return a request that prints status code and body as JSON."""
    message = "`json`: status code and body are printed by jq, which has to be there; headers are left out"
    call.reader.found.differs("executor:http", message, call.node)
    query = (
        'split("\\n") | {status_code: (.[-1] | tonumber), body: (.[:-1] | join("\\n") | (fromjson? // .))}'
    )
    return f"{line} --write-out '\\n%{{http_code}}' | jq -Rsc '{query}'"


def _jq(call: Call) -> str:
    option = " --raw-output" if truth_of(call.settings.get("raw")) else ""
    filter_text = call.command.strip() or call.settings.text("filter", "query")
    if not filter_text:
        raise UntranslatableError("executor:jq", "a filter is missing")
    query = "'" + filter_text.replace("'", "'\\''") + "'"
    if call.settings.has("input"):
        return f"jq{option} {query} < {call.word(call.settings.text('input'))}"
    data = call.settings.get("data")
    text = call.script if data is None else call.json(data)
    return f"jq{option} {query} <<{call.document(text)}"


def _ssh(call: Call) -> str:
    host, words = _connection(call)
    command = call.command or call.settings.text("command")
    text = call.script.strip()
    if "\n" in command.strip():
        command, text = "", command
    if text:
        return " ".join([*words, host, f"sh -e <<{call.document(text)}"])
    return " ".join([*words, host, call.word(command)])


def _connection(call: Call, program: str = "ssh", port: str = "-p") -> tuple[str, list[str]]:
    """Return the word for the host, and the program with its options."""
    settings = call.settings
    if settings.has("password"):
        raise UntranslatableError(f"executor:{call.kind}", "a connection by a password")
    host, user = settings.text("host", "ip"), settings.text("user")
    if not host:
        raise UntranslatableError(f"executor:{call.kind}", "a connection without a host")
    words = [f"{program} -o BatchMode=yes"]
    if settings.has("port"):
        words.append(f"{port} {call.word(settings.text('port'))}")
    if settings.has("key"):
        words.append(f"-i {_key(call, settings.text('key'))}")
    if truth_of(settings.first("stricthostkey", "stricthostkeychecking")) is False:
        words.append("-o StrictHostKeyChecking=no")
    if settings.has("knownhostfile"):
        words.append(f"-o {call.word('UserKnownHostsFile=' + settings.text('knownhostfile'))}")
    if re.fullmatch(r"\d+s?", settings.text("timeout")):
        words.append(f"-o ConnectTimeout={settings.text('timeout').rstrip('s')}")
    if settings.has("bastion"):
        words.append(f"-J {call.word(_bastion(call))}")
    return call.word(f"{user}@{host}" if user else host), words


def _bastion(call: Call) -> str:
    own = call.settings.below("bastion")
    if own.has("password") or own.has("key") or not own.text("host", "ip"):
        raise UntranslatableError(f"executor:{call.kind}", "a bastion with a key or password of its own")
    user, port = own.text("user"), own.text("port")
    return f"{user + '@' if user else ''}{own.text('host', 'ip')}{':' + port if port else ''}"


def _key(call: Call, path: str) -> str:
    return f'"$HOME"/{call.word(path[2:])}' if path.startswith("~/") else call.word(path)


def _sftp(call: Call) -> str:
    host, words = _connection(call, "scp -rq", "-P")
    source, target = call.required("source"), call.required("destination")
    direction = call.op or call.settings.text("direction") or "upload"
    remote = host.rstrip('"')
    if direction == "upload":
        return " ".join([*words, call.word(source), f"{remote}:{call.word(target)[1:]}"])
    return " ".join([*words, f"{remote}:{call.word(source)[1:]}", call.word(target)])


def _mail(call: Call) -> str:
    settings = call.settings
    to = ", ".join(call.reader.texts(settings.get("to"), "`to`"))
    body = settings.text("message", "body")
    kind = "text/html" if "<html" in body.lower() else "text/plain"
    heads = {"From": settings.text("from"), "To": to, "Subject": settings.text("subject")}
    lines = [f"{name}: {value}" for name, value in heads.items() if value]
    type_line = f"Content-Type: {kind}; charset=utf-8"
    files = call.reader.texts(settings.get("attachments"), "`attachments`")
    if not files:
        text = "\n".join([*lines, type_line, "", f"{body.rstrip(chr(10))}\n"])
        return f"sendmail -t <<{call.document(text)}"
    lines += [
        "MIME-Version: 1.0",
        f'Content-Type: multipart/mixed; boundary="{_BOUNDARY}"',
        "",
        f"--{_BOUNDARY}",
    ]
    head = "\n".join([*lines, type_line, "", f"{body.rstrip(chr(10))}\n"])
    return "\n".join([
        "{",
        f"cat <<{call.document(head)}",
        f"for file in {' '.join(map(call.word, files))}; do",
        '[ -f "$file" ] || { echo "the attachment $file is not there" >&2; exit 1; }',
        f"printf -- '--{_BOUNDARY}\\nContent-Type: application/octet-stream\\nContent-Transfer-Encoding: base64\\n'",
        "printf 'Content-Disposition: attachment; filename=\"%s\"\\n\\n' \"${file##*/}\"",
        'base64 "$file"',
        "done",
        f"printf -- '--{_BOUNDARY}--\\n'",
        "} | sendmail -t",
    ])  # fmt: skip


def _template(call: Call) -> str:
    """Render a Go template that only names values; the shell fills in what they refer to."""
    template = call.script or call.settings.text("template") or call.command
    data = call.settings.get("data")
    if not template or (call.settings.has("templateref")):
        raise UntranslatableError("executor:template", "a template that a reference names")
    found, ends = "", 0
    for match in re.finditer(r"\{\{-?\s*(.*?)\s*-?\}\}", template, re.DOTALL):
        found += _literal(template[ends : match.start()])
        ends = match.end()
        path = re.fullmatch(r"\.([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)", match[1])
        if path is None or match[0].startswith("{{-") or match[0].endswith("-}}"):
            raise UntranslatableError("executor:template", f"the template expression `{match[0]}`")
        found += call.inner(_member(data, path[1]))
    found += _literal(template[ends:])
    output = call.settings.text("output")
    text = f"cat <<{DOCUMENT}\n{found.rstrip(chr(10))}\n{DOCUMENT}"
    if not output:
        return text
    target = call.word(output)
    return f'mkdir -p "$(dirname {target})"\n{text.replace("cat <<", f"cat > {target} <<", 1)}'


def _literal(text: str) -> str:
    return re.sub(r"([\\$`])", r"\\\1", text)


def _member(data: Node | None, path: str) -> str:
    node = data
    for name in path.split("."):
        node = node.get(name) if node is not None and node.kind == MAPPING else None
    if node is None or node.kind != SCALAR:
        raise UntranslatableError("executor:template", f"the value `.{path}` of a template")
    return text_of(node)


def _log(call: Call) -> str:
    return f"printf '%s\\n' {call.word(call.settings.text('message') or call.command)}"


def _wait(call: Call) -> str:
    seconds = call.settings.text("duration", "seconds") or call.command
    if call.op not in ("", "duration") or not re.fullmatch(r"\d+(\.\d+)?[smhd]?", seconds):
        raise UntranslatableError(f"action:wait.{call.op}", f"the action wait.{call.op}")
    return f"sleep {seconds}"


def _kubernetes(call: Call) -> str:
    settings = call.settings
    settings.refuse_unknown({"image", "namespace", "command", "args", "env", "kubeconfig", "context", "name"})
    command = settings.get("command")
    words = (
        call.reader.texts(command, "`command`") if command is not None and command.kind == SEQUENCE else []
    )
    if not words:
        text = call.command or call.settings.text("command") or call.script
        words = ["sh", "-c", text] if text else []
    image = call.required("image")
    parts = [
        'kubectl run "planrun-$PLANRUN_STEP-$$" --rm --attach --quiet --restart=Never',
        f"--image={call.word(image)}",
    ]
    for key, option in (
        ("namespace", "--namespace"),
        ("kubeconfig", "--kubeconfig"),
        ("context", "--context"),
    ):
        if settings.has(key):
            parts.append(f"{option}={call.word(settings.text(key))}")
    for name, value in call.pairs("env"):
        parts.append(f"--env={call.word(f'{name}={value}')}")
    words += call.reader.texts(settings.get("args"), "`args`")
    return " ".join([*parts, *(["--command", "--", *map(call.word, words)] if words else [])])


PROGRAMS: dict[str, Callable[[Call], str]] = {
    "http": _http,
    "jq": _jq,
    "k8s": _kubernetes,
    "kubernetes": _kubernetes,
    "log": _log,
    "mail": _mail,
    "sftp": _sftp,
    "ssh": _ssh,
    "template": _template,
    "wait": _wait,
    **STORES,
    **FILES,
    **MODELS,
}
"""What is known here, by the kind of an executor or the first word of an action."""

# The program that does the work, where it is not named like the kind; "" for programs that every system has.
NEEDED: dict[str, Any] = {
    "http": "curl",
    "mail": "sendmail",
    "postgres": "psql",
    "sqlite": "sqlite3",
    "redis": "redis-cli",
    "s3": "aws",
    "sftp": "scp",
    "k8s": "kubectl",
    "kubernetes": "kubectl",
    "archive": "tar",
    "chat": "curl",
    "git": "git",
    "file": "",
    "log": "",
    "template": "",
    "wait": "",
    "harness": "",
}
