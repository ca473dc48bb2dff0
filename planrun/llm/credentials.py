"""Who asks, and where: credentials and address of the Messages API, as planrun's own environment has them.

Names of variables are those of Anthropic's own libraries. Profiles in files are not read: a build gets what its
environment says and nothing that lies around on the machine.
"""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from planrun.model.record import Record

NO_LIBRARY = (
    "anthropic is not installed: pip install anthropic; in the GitHub Action set the input `llm: true`"
)
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal

API = "https://api.anthropic.com"
SECRETS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_IDENTITY_TOKEN")
"""Variables whose values are credentials; no step gets one unasked when a model may be asked."""
_FEDERATION = {
    "ANTHROPIC_FEDERATION_RULE_ID": "federation_rule_id",
    "ANTHROPIC_ORGANIZATION_ID": "organization_id",
    "ANTHROPIC_SERVICE_ACCOUNT_ID": "service_account_id",
    "ANTHROPIC_WORKSPACE_ID": "workspace_id",
    "ANTHROPIC_SCOPE": "scope",
}
_NEEDED = ("ANTHROPIC_FEDERATION_RULE_ID", "ANTHROPIC_ORGANIZATION_ID")
_TOKENS = ("ANTHROPIC_IDENTITY_TOKEN_FILE", "ANTHROPIC_IDENTITY_TOKEN")  # the first that is set counts
# What the process needs besides to find its way to the service.
_PLAIN = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_LONGEST_TOKEN = 1 << 16
_LOOPBACK = ("localhost", "::1", "0:0:0:0:0:0:0:1")


class Credentials(Record):
    """What authenticates: one value under `value`, or what workload identity needs, by the names of the library."""

    kind: Literal["api_key", "auth_token", "federation"]
    source: str  # the variable that decided
    fields: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Credentials({self.kind}, {self.source})"


class Endpoint(Record):
    """Where the Messages API is and who asks there.

    `credentials` None: there are none, and `lacking` says so in one line. `environ` is that of the process that calls.
    """

    base_url: str
    credentials: Credentials | None
    lacking: str
    environ: Mapping[str, str]


class AddressError(ValueError):
    """An address that cannot be that of a service; the text is one line for people."""


def endpoint_of(base_url: str, environ: Mapping[str, str]) -> Endpoint:
    """Return the service that an environment means; `base_url` wins over it. Raises AddressError."""
    address = _checked(base_url or environ.get("ANTHROPIC_BASE_URL", "") or API)
    found = find_credentials(environ)
    plain = {name: environ[name] for name in _PLAIN if environ.get(name)}
    return Endpoint(
        base_url=address,
        credentials=None if isinstance(found, str) else found,
        lacking=found if isinstance(found, str) else "",
        environ=plain if _is_loopback(address) else {**plain, **_proxies(environ)},
    )


def find_credentials(environ: Mapping[str, str]) -> Credentials | str:
    """Return the credentials in an environment, or in one line why there are none that can be used."""
    for name, kind in (("ANTHROPIC_API_KEY", "api_key"), ("ANTHROPIC_AUTH_TOKEN", "auth_token")):
        value = environ.get(name, "").strip()
        if not value:
            continue
        if not (value.isascii() and value.isprintable()) or " " in value:
            return f"{name} holds blanks, line breaks or other characters that no credential has"
        return Credentials(kind=kind, source=name, fields={"value": value})  # type: ignore[arg-type] # as listed above
    token = next((name for name in _TOKENS if environ.get(name)), "")
    missing = [name for name in _NEEDED if not environ.get(name)]
    if token and not missing:
        fields = {field: environ[name] for name, field in _FEDERATION.items() if environ.get(name)}
        place = "token_file" if token == _TOKENS[0] else "token"
        return Credentials(kind="federation", source=token, fields={**fields, place: environ[token].strip()})
    if token or len(missing) < len(_NEEDED):
        wanted = [*missing, *([] if token else [" or ".join(_TOKENS)])]
        return f"workload identity is set up in part: {', '.join(wanted)} is missing"
    return "there are no credentials for a language model: set ANTHROPIC_API_KEY"


def credential_texts(environ: Mapping[str, str]) -> dict[str, str]:
    """Return credentials inside other values: passwords of proxies, the token in a file; by their place."""
    found: dict[str, str] = {}
    for name, address in _proxies(environ).items():
        try:
            password = urlsplit(address if "//" in address else f"//{address}").password or ""
        except ValueError:
            continue
        found |= {f"{name} password": password, f"{name} password, decoded": unquote(password)}
    if path := environ.get(_TOKENS[0]):
        try:
            with open(path, "rb") as file:
                found[_TOKENS[0]] = file.read(_LONGEST_TOKEN).decode("utf-8", "replace").strip()
        except OSError:
            pass  # the exchange fails, and says why
    return {name: text for name, text in found.items() if text}


def _proxies(environ: Mapping[str, str]) -> dict[str, str]:
    names = [*_PROXIES, *[name.lower() for name in _PROXIES]]
    return {name: environ[name] for name in names if environ.get(name)}


def _checked(address: str) -> str:
    try:
        parts = urlsplit(address)
        parts.port  # noqa: B018 - looks at it, and raises for a port that is none
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or not address.isprintable():
        raise AddressError(f"not the address of a service: {_shown(address)}")
    if parts.username or parts.password:
        raise AddressError("the address of the service holds a user or password, which would be shown")
    if parts.query or parts.fragment:
        raise AddressError(f"an address of a service has no ? and no #: {_shown(address)}")
    return address.rstrip("/")


def _shown(address: str) -> str:
    """Return an address for people, without whatever stands before an @."""
    return ascii(address.rpartition("@")[2][:100])


def is_plain_network(address: str) -> bool:
    """Whether what is sent to an address leaves this machine unencrypted."""
    return address.lower().startswith("http:") and not _is_loopback(address)


def _is_loopback(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    return host in _LOOPBACK or (host.startswith("127.") and host.replace(".", "").isdecimal())
