"""The key `notify`: its targets and their checks, in a plan and in a policy file."""

from __future__ import annotations

from planrun.model.notify import LONGEST, Target
from planrun.plan.keys.outline import entries, members, scalar
from planrun.plan.keys.top import RESERVED, declared_secrets
from planrun.plan.schema.forms import as_duration
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.plan.keys.checked import Checked
    from planrun.plan.keys.outline import Outline

KINDS = ("webhook", "slack", "command")
MAX_TARGETS = 20
"""Of one plan or policy: each is a process of its own when a run ends."""
_MAX_URL = 2000  # characters
_OPEN = "${{"
# Keys that go with some kinds alone.
_BELONGS = {
    "headers": ("webhook", "slack"),
    "secret_headers": ("webhook", "slack"),
    "sign": ("webhook", "slack"),
    "secrets": ("command",),
}
# Headers that planrun sets itself.
_OWN_HEADERS = frozenset(
    (
        "host",
        "content-type",
        "content-length",
        "content-encoding",
        "transfer-encoding",
        "connection",
        "expect",
    )
)
_OWN_PREFIX = "x-planrun-"
_HEADER = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")
# Whoever knows such an address may post there.
_SECRET_URLS = (
    "hooks.slack.com/services/",
    "hooks.slack.com/workflows/",
    "hooks.slack.com/triggers/",
    "discord.com/api/webhooks/",
    "discordapp.com/api/webhooks/",
    ".webhook.office.com/",
    "outlook.office.com/webhook/",
    "api.telegram.org/bot",
)


def targets_of(node: Node) -> tuple[Target, ...]:
    """Return the targets of a list without problems."""
    return tuple([_target(each) for each in node.value])


def of_plan(outline: Outline, node: Node) -> tuple[Target, ...]:
    """Return the targets of a plan; those of a plan that it extends have no lines in its file."""
    targets = targets_of(node)
    return tuple([target.but(line=0) for target in targets]) if outline.path_of(node) else targets


def _target(node: Node) -> Target:
    kind = next(name for name in KINDS if name in node.value)
    fields: dict[str, Any] = {"kind": kind, "line": node.line}
    given = node.value[kind]
    if kind == "command":
        fields["argv"] = tuple([word.value for word in entries(given)])
    elif given.kind == SCALAR:
        fields["url"] = given.value
    else:
        fields |= {name: value.value for name, value in members(given)}
    if "on" in node.value:
        fields["on"] = tuple(dict.fromkeys([word.value for word in entries(node.value["on"])]))
    for key in ("headers", "secret_headers"):
        if key in node.value:
            fields[key] = {name: value.value for name, value in members(node.value[key])}
    if "sign" in node.value:
        fields["sign"] = node.value["sign"].value
    if "secrets" in node.value:
        fields["secrets"] = tuple([word.value for word in entries(node.value["secrets"])])
    if "timeout" in node.value:
        fields["timeout"] = as_duration(node.value["timeout"].value)
    return Target(**fields)


def check(checked: Checked) -> None:
    """Report what is wrong with the targets of a plan, and secrets that it does not declare."""
    outline = checked.outline
    node = outline.root.get("notify")
    if node is None:
        return
    check_targets(outline, node)
    declared = declared_secrets(outline.root)
    for name in _secrets_in(node):
        if name.value not in declared:
            names = ", ".join([*declared, name.value])
            hint = (
                outline.nearest(name.value, declared) or f"declare it at the top level: `secrets: [{names}]`"
            )
            outline.report("E232", f'undeclared secret "{name.value}"', name, hint)


def check_targets(outline: Outline, node: Node) -> None:
    """Report targets that could not be notified, in a plan or a policy; `true` says nothing."""
    if node.kind == SCALAR and node.plain and node.value.lower() == "true":
        outline.report("E300", "`notify: true` names no targets", node, "list the targets, or remove it")
    if node.kind != SEQUENCE:
        return
    if len(node.value) > MAX_TARGETS:
        message = f"too many targets: {len(node.value)}; at most {MAX_TARGETS} are allowed"
        outline.report("E241", message, node.value[MAX_TARGETS])
    for each in node.value:
        if each.kind == MAPPING:
            _check_target(outline, each)


def _check_target(outline: Outline, node: Node) -> None:
    kinds = [kind for kind in KINDS if kind in node.value]
    if not kinds:
        hint = "add `webhook: URL`, `slack: {url_secret: NAME}` or `command: [PROGRAM]`"
        outline.report("E102", "no target to notify", node, hint)
        return
    if len(kinds) > 1:
        message = f"`{kinds[0]}` and `{kinds[1]}` in one target"
        outline.report("E118", message, node.key(kinds[1]), "write one entry for each")
        return
    [kind] = kinds
    for key, others in _BELONGS.items():
        if key in node.value and kind not in others:
            hint = "use `secrets`" if key == "secret_headers" else f"`{key}` goes with {' and '.join(others)}"
            outline.report("E300", f"`{key}` does not apply to a `{kind}`", node.key(key), hint)
    seen: set[str] = set()
    for key in ("headers", "secret_headers"):
        for header, value in members(node.get(key)):
            place = node.value[key].key(header)
            lower = header.lower()
            if not header or len(header) > 100 or not _HEADER.issuperset(header):
                outline.report(
                    "E106", f'"{header}" is not a valid header', place, "use letters, digits and `-`"
                )
            elif lower in _OWN_HEADERS or lower.startswith(_OWN_PREFIX):
                outline.report("E300", f"`{header}` cannot be set: planrun sets it", place)
            elif lower in seen:
                outline.report("E300", f'duplicate header "{header}"', place)
            seen.add(lower)
            if key == "headers":
                _check_value(outline, header, value)
    for name in _secrets_in(Node(SEQUENCE, [node], node.line, node.col)):
        if name.value.startswith(RESERVED):
            outline.report("E230", f"reserved environment variable {name.value}: planrun sets it", name)
    if kind == "command":
        _check_command(outline, node)
    else:
        _check_address(outline, kind, node.value[kind])
    _check_timeout(outline, node)


def _check_timeout(outline: Outline, node: Node) -> None:
    timeout = scalar(node.get("timeout"))
    try:
        seconds = as_duration(timeout.value) if timeout is not None else 0.0
    except ValueError:  # reported by the check of the shape
        return
    if timeout is not None and seconds > LONGEST:
        hint = "a run waits for its notifications: at most 1m"
        outline.report("E115", f"`timeout` is too long: {timeout.value}", timeout, hint)


def _check_command(outline: Outline, node: Node) -> None:
    words = entries(node.value["command"])
    if words and not words[0].value.strip():
        outline.report("E113", "the first word of `command` is empty", words[0], "name a program")
    for word in words:
        _check_literal(outline, "command", word)


def _check_value(outline: Outline, name: str, value: Node) -> None:
    if value.kind != SCALAR:
        return
    _check_literal(outline, name, value)
    if name.lower() in ("authorization", "proxy-authorization", "cookie"):
        hint = f"write `secret_headers: {{{name}: NAME_OF_A_SECRET}}`"
        outline.report("E300", f"the header {name} in the text of a plan", value, hint)
    elif not value.value.isascii():
        outline.report("E300", f"the header {name} has characters outside of ASCII", value)


def _check_address(outline: Outline, kind: str, node: Node) -> None:
    if node.kind == SCALAR:
        _check_url(outline, kind, node)
        return
    if node.kind != MAPPING:
        return
    url, secret = node.get("url"), node.get("url_secret")
    if url is not None and secret is not None:
        message = f"`url` and `url_secret` in one `{kind}`"
        outline.report("E118", message, node.key("url_secret"), "keep one of them")
    elif url is None and secret is None:
        hint = "add `url_secret: NAME`, the secret that holds the address, or `url`"
        outline.report("E102", f"the address is missing in `{kind}`", node, hint)
    elif url is not None:
        _check_url(outline, kind, url)


def _check_url(outline: Outline, kind: str, node: Node) -> None:
    if node.kind != SCALAR or not node.value or not _check_literal(outline, "the address", node):
        return
    why, hint = fault_of(node.value)
    if why:
        outline.report("E300", why, node, hint.replace("KIND", kind))


def fault_of(url: str, *, secret: bool = False) -> tuple[str, str]:
    """Return what is wrong with an address, and a hint; two empty texts for a good one. `secret`: it may be one."""
    scheme, mark, rest = url.partition("://")
    if not mark or scheme.lower() not in ("http", "https"):
        return "the address is no web address", "it begins with https://"
    host = rest.partition("/")[0].partition("?")[0].partition("#")[0]
    if "@" in host:
        return "the address holds a user or password", _BY_NAME
    name, _, port = host.partition("]")[2].rpartition(":") if host[:1] == "[" else host.partition(":")
    if not (name or host[:1] == "[") or (
        port and not (port.isascii() and port.isdigit() and int(port) < 65536)
    ):
        return "the address has no valid host", "write https://HOST/PATH"
    if not url.isascii() or any(char <= " " or char in '"<>\\^`{|}\x7f' for char in url):
        return "the address has characters that no address has", "write them percent-encoded"
    if len(url) > _MAX_URL:
        return "the address is too long", f"it has {len(url):,} characters; at most {_MAX_URL:,} are allowed"
    if not secret and any(part in f"{host.lower()}/{rest.partition('/')[2]}" for part in _SECRET_URLS):
        return "the address is itself a secret: who knows it can post there", _BY_NAME
    return "", ""


_BY_NAME = "put the address into a secret: `KIND: {url_secret: NAME}`"


def _check_literal(outline: Outline, what: str, node: Node) -> bool:
    """Report a template, since nothing is filled in; say whether there is none."""
    if node.kind != SCALAR or _OPEN not in node.value:
        return True
    hint = "for secrets there are `url_secret`, `secret_headers` and `secrets`"
    outline.report("E300", f"interpolations are not evaluated in {_quoted(what)}", node, hint)
    return False


def _quoted(what: str) -> str:
    return what if " " in what else f"`{what}`"


def _secrets_in(node: Node) -> Iterator[Node]:
    """Yield the places of names of secrets."""
    for each in node.value if node.kind == SEQUENCE else ():
        if each.kind != MAPPING:
            continue
        for kind in ("webhook", "slack"):
            held = each.get(kind)
            yield from entries(held.get("url_secret") if held is not None and held.kind == MAPPING else None)
        yield from [value for _, value in members(each.get("secret_headers")) if value.kind == SCALAR]
        yield from entries(each.get("sign"))
        yield from entries(each.get("secrets"))
