"""Programs that fetch over the network: fetching is medium, sending and running what comes is high."""

from __future__ import annotations

from planrun.risk import paths
from planrun.risk.levels import HIGH, LOW, Finding, high
from planrun.risk.table import Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.risk.table import Rules, Use

_SECRET_HEADERS = (
    "authorization", "cookie", "proxy-", "x-api-key", "private-token", "job-token", "x-auth", "token",
    "key",
)  # fmt: skip


def _headers(use: Use) -> Finding | None:
    for name, value in use.options:
        if name in ("-H", "--header") and value is not None:
            header = value.lower().partition(":")[0]
            if value.startswith("@") or any(word in header for word in _SECRET_HEADERS):
                return high(f"{name} {header}: sends credentials", "secrets", "network")
        if name in ("-w", "--write-out") and value is not None and (value[:1] == "@" or "%output" in value):
            return high(f"{name}: reads or writes a file by its format")
    return None


def _saved(use: Use, urls: list[str]) -> Finding | None:
    for url in urls:
        name = url.partition("://")[2].partition("?")[0].partition("#")[0].rpartition("/")[2]
        if "%" in name or paths.writing(name or "index.html", use.cwd, use.ground):
            return high(f"{name}: a file that controls what runs later, or is not known", "writes")
        use.trace.writes.append(paths.locate(name, use.cwd, use.ground)[1])
    return Finding(level=LOW, reason="writes in the workspace", effects=("writes",)) if urls else None


def _curl(use: Use) -> Finding | None:
    given = {name for name, _ in use.options}
    if not use.operands and "--url" not in given:
        return high("no address")
    saved = use.operands if given & {"-O", "--remote-name", "--remote-name-all"} else []
    return _headers(use) or _saved(use, saved)


def _sends(use: Use) -> Finding | None:
    """Say what a request with a method or data does: it is high, and known to be no more than that."""
    found = _curl(use)
    if found is not None and found.level == HIGH:
        return found
    for name, value in use.options:
        if name in _DATA and value is not None:
            path = value[1:] if value[:1] == "@" else ""
            if name in _FORMS:
                path = value.replace("<", "@").partition("@")[2].partition(";")[0]
            reason = paths.reading(path, use.cwd, use.ground) if path and path != "-" else ""
            if reason:
                return high(reason, "secrets", "network", "publishes")
    deletes = any(value == "DELETE" for name, value in use.options if name in ("-X", "--request"))
    if deletes:
        return high("asks a server to delete", "destroys", "network", "publishes")
    return high("sends data over the network", "network", "publishes")


def _wget(use: Use) -> Finding | None:
    given = {name for name, _ in use.options}
    return _headers(use) or _saved(
        use, [] if given & {"-O", "--output-document", "--spider"} else use.operands
    )


_FORMS = ("-F", "--form", "--data-urlencode")
_DATA = ("-d", "--data", "--data-raw", "--data-binary", "--data-ascii", "--json", "--form-string", *_FORMS)
_METHODS = "{GET,HEAD,POST,PUT,PATCH,DELETE,OPTIONS}"
_CURL = (
    "-s -S -f -L -I -i -v -O -R -N -g -4 -6 -G -H=text -A=text -o=write -m=number -w=text -r=text -y=number -Y=number"
    " -X={GET,HEAD} -z=text --silent --show-error --fail --fail-early --fail-with-body --location --head --include"
    " --verbose --remote-name --remote-name-all --remote-time --no-buffer --globoff --ipv4 --ipv6 --header=text"
    " --user-agent=text --output=write --output-dir=write --max-time=number --connect-timeout=number --write-out=text"
    " --range=text --request={GET,HEAD} --retry=number --retry-delay=number --retry-max-time=number"
    " --retry-all-errors --retry-connrefused --compressed --progress-bar --no-progress-meter --create-dirs"
    " --url=url --http1.0 --http1.1 --http2 --http3 --tlsv1.2 --tlsv1.3 --proto=text --max-redirs=number"
    " --max-filesize=number --limit-rate=number --speed-limit=number --speed-time=number --no-clobber --parallel"
    " --time-cond=text --ssl-reqd --referer=text --no-keepalive --tcp-nodelay"
)
_SENDING = (
    f" -X={_METHODS} --request={_METHODS} -d=text --data=text --data-raw=text --data-binary=text --data-ascii=text"
    " --data-urlencode=text --json=text -F=text --form=text --form-string=text"
)

PROGRAMS: dict[str, Rules] = {
    "curl": (Rule("medium", "url*", _CURL, effects="network", check=_curl, reason="fetches over the network"), Rule("medium", "url*", _CURL + _SENDING, effects="network", check=_sends)),
    "wget": Rule(
        "medium",
        "url+",
        "-q -v -nv -c -N -S -nc -nd -x -4 -6 -O=write -P=write -t=number -T=number -w=number -U=text --quiet --verbose"
        " --no-verbose --continue --timestamping --server-response --no-clobber --no-directories --spider"
        " --output-document=write --directory-prefix=write --tries=number --timeout=number --wait=number --waitretry=number"
        " --user-agent=text --header=text --show-progress --progress=text --retry-connrefused --max-redirect=number"
        " --connect-timeout=number --read-timeout=number --dns-timeout=number --limit-rate=number --https-only --no-hsts"
        " --compression=text --inet4-only --inet6-only --no-cache --no-cookies --content-on-error --secure-protocol=text",
        effects="network",
        check=_wget,
        reason="fetches over the network",
    ),
}  # fmt: skip
