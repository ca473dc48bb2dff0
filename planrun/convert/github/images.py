"""The tags and labels of images that `docker/metadata-action` derives from branch, tag and commit, as a script."""

from __future__ import annotations

import re
import shlex

from planrun.convert.reader import UntranslatableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from planrun.convert.github.programs import Inputs

_USUAL = "type=schedule\ntype=ref,event=branch\ntype=ref,event=tag\ntype=ref,event=pr"
# The order in which tags count; the first is the version.
_PRIORITY = {"schedule": 1000, "semver": 900, "match": 800, "edge": 700, "ref": 600, "raw": 200, "sha": 100}
_HEAD = """\
ref=${GITHUB_REF:-$(git symbolic-ref -q HEAD || echo "refs/tags/$(git describe --tags --exact-match)")}
name=${ref#refs/*/} number=${ref#refs/tags/} number=${number#v} core=${number%%[-+]*}
main=$(git symbolic-ref -q --short refs/remotes/origin/HEAD || echo origin/main) main=${main#origin/}
commit=$(git rev-parse HEAD) version= latest=false all=
add() {  # a tag, and whether `latest` stands for it, too
  tag=$(printf '%s' "$1" | sed 's/[^A-Za-z0-9._-]\\{1,\\}/-/g')
  if [ -z "$version" ]; then version=$tag latest=$2; fi
  case " $all " in *" $tag "*) ;; *) all="$all $tag" ;; esac
}
"""
_IS_VERSION = (
    "case $ref in refs/tags/*) printf '%s' \"$number\" | "
    "grep -Eq '^[0-9]+\\.[0-9]+\\.[0-9]+([-+].*)?$' && {body};; esac"
)
_PARTS = {
    "{{version}}": "${number%%+*}",
    "{{raw}}": "$name",
    "{{major}}": '$(printf %s "$core" | cut -d . -f 1)',
    "{{minor}}": '$(printf %s "$core" | cut -d . -f 2)',
    "{{patch}}": '$(printf %s "$core" | cut -d . -f 3)',
}
_DATES = re.compile(r"\{\{date '([YMDHms\-._]+)'(?: tz='UTC')?\}\}")


def metadata(inputs: Inputs) -> str:
    """Return the script that writes the outputs `tags`, `labels` and `version`; raises UntranslatableError."""
    inputs.drop("github-token", "bake-target", "context", "sep-labels", "sep-annotations", "annotations")
    flavor = _fields(inputs.take("flavor"), ",\n")
    rows = [_row(line) for line in (inputs.take("tags") or _USUAL).split("\n") if _is_row(line)]
    rows.sort(key=lambda row: -int(row.get("priority", str(_PRIORITY.get(row["type"], 0)))))
    lines = [_lines(inputs, row, flavor, at) for at, row in enumerate(rows, 1)]
    names = [line.strip() for line in inputs.take("images").replace(",", "\n").split("\n") if _is_row(line)]
    if not names or any("=" in name for name in names):
        raise UntranslatableError("", "its images have conditions")
    images = " ".join(inputs.word(name, f"image_{at}") for at, name in enumerate(names, 1))
    mark = inputs.take("sep-tags", "\n")
    if mark not in ("\n", ","):
        raise UntranslatableError("", f"its input `sep-tags: {mark}` has no equivalent here")
    latest = {"true": "latest=true\n", "false": "latest=false\n"}.get(flavor.get("latest", "auto"), "")
    joined = "" if mark == "\n" else " | paste -s -d , -"
    labels = inputs.word(text, "labels") if (text := inputs.take("labels")) else ""
    extra = f"\n  printf '%s\\n' {labels}" if labels else ""
    return (
        f'{_HEAD}{"".join(lines)}{latest}[ "$latest" = false ] || add latest false\n'
        f"tags=$(for image in {images}; do for tag in $all; do\n"
        f"  echo \"$(printf '%s' \"$image\" | tr '[:upper:]' '[:lower:]'):$tag\"; done; done{joined})\n"
        'labels=$(for label in "created=$(date -u +%Y-%m-%dT%H:%M:%SZ)" "revision=$commit" "version=$version" \\\n'
        '  "source=${GITHUB_SERVER_URL:-https://github.com}/${GITHUB_REPOSITORY:-}" \\\n'
        '  "title=${GITHUB_REPOSITORY#*/}"; do\n'
        f'  echo "org.opencontainers.image.$label"; done{extra})\n'
        'echo "version=$version" >> "$GITHUB_OUTPUT"\n'
        'printf \'tags<<PLANRUN_END\\n%s\\nPLANRUN_END\\n\' "$tags" >> "$GITHUB_OUTPUT"\n'
        'printf \'labels<<PLANRUN_END\\n%s\\nPLANRUN_END\\n\' "$labels" >> "$GITHUB_OUTPUT"'
    )


def _is_row(line: str) -> bool:
    return bool(line.strip()) and not line.strip().startswith("#")


def _fields(text: str, marks: str) -> dict[str, str]:
    """Return `a=b,c=d` as names and values; expressions may hold commas."""
    found: dict[str, str] = {}
    for part in re.findall(rf"(?:\$\{{\{{.*?\}}\}}|[^{marks}])+", text):
        name, _, value = part.strip().partition("=")
        if name:
            found[name] = value
    return found


def _row(line: str) -> dict[str, str]:
    text = line.strip()
    if text.startswith("${{"):
        raise UntranslatableError("", f"its tag `{text}` is worked out when it runs")
    row = _fields(text, ",")
    if "type" not in row:
        row = {"type": "raw", "value": text}
    known = {
        "type",
        "enable",
        "priority",
        "prefix",
        "suffix",
        "pattern",
        "value",
        "event",
        "format",
        "branch",
    }
    if row["type"] not in _PRIORITY or row["type"] == "match" or set(row) - known:
        raise UntranslatableError("", f"its tag `{text}` is not read here")
    return row


def _lines(inputs: Inputs, row: Mapping[str, str], flavor: Mapping[str, str], at: int) -> str:
    """Return the line that adds one kind of tag where it applies."""
    kind = row["type"]
    value, test, latest = _value(inputs, row, at)
    prefix = row.get("prefix", "sha-" if kind == "sha" else "pr-" if row.get("event") == "pr" else "")
    before, after = prefix or _shared(flavor, "prefix"), row.get("suffix", "") or _shared(flavor, "suffix")
    if "prefix" in row:
        before = row["prefix"]
    word = _words(inputs, before, f"prefix_{at}") + value + _words(inputs, after, f"suffix_{at}")
    body = f"add {word} {latest} "
    enabled = row.get("enable", "true")
    if enabled == "{{is_default_branch}}":
        body = f'[ "$name" = "$main" ] && {body}'
    elif enabled != "true":
        body = f"[ {inputs.word(enabled, f'enable_{at}')} = true ] && {body}"
    text = (test.format(body=body) if test else body).rstrip()
    return f"{text} || true\n"


def _shared(flavor: Mapping[str, str], key: str) -> str:
    return flavor.get(key, "")


def _words(inputs: Inputs, text: str, name: str) -> str:
    if "{{" in text and "${{" not in text:
        raise UntranslatableError("", f"`{text}` is not read here")
    return inputs.word(text, name) if text else ""


def _value(inputs: Inputs, row: Mapping[str, str], at: int) -> tuple[str, str, str]:
    """Return the word of a tag, the test around the line that adds it, and whether `latest` stands for it."""
    kind = row["type"]
    if kind == "sha":
        return ('"$commit"' if row.get("format") == "long" else '"$(printf %.7s "$commit")"'), "", "false"
    if kind == "raw":
        return _dated(inputs, row.get("value", ""), f"value_{at}"), "", "false"
    if kind == "edge":
        branch = inputs.word(row["branch"], f"branch_{at}") if "branch" in row else '"$main"'
        return "edge", f'if [ "$ref" = "refs/heads/"{branch} ]; then {{body}}; fi', "false"
    if kind == "schedule":
        word = _dated(inputs, row.get("pattern", "nightly"), f"value_{at}")
        return word, 'if [ "${{GITHUB_EVENT_NAME:-}}" = schedule ]; then {body}; fi', "false"
    return _of_ref(row.get("event", "branch")) if kind == "ref" else _of_version(row)


def _of_ref(event: str) -> tuple[str, str, str]:
    where = {"branch": "refs/heads/*", "tag": "refs/tags/*", "pr": "refs/pull/*"}.get(event)
    if where is None:
        raise UntranslatableError("", f"its tag for the event {event} is not read here")
    word = '"${name%%/*}"' if event == "pr" else '"$name"'
    return word, f"case $ref in {where}) {{body}};; esac", "true" if event == "tag" else "false"


def _of_version(row: Mapping[str, str]) -> tuple[str, str, str]:
    pattern = row.get("pattern", "{{version}}")
    if "value" in row or "${{" in pattern:
        raise UntranslatableError("", "the version of a tag is worked out when it runs")
    text = pattern
    for part, spelled in _PARTS.items():
        text = text.replace(part, spelled)
    if "{{" in text:
        raise UntranslatableError("", f"its pattern `{pattern}` is not read here")
    test = _IS_VERSION
    if pattern not in (
        "{{version}}",
        "{{raw}}",
        "v{{version}}",
    ):  # of a pre-release only the whole version counts
        test = test.replace("([-+].*)?$", "$")
    return f'"{text}"', test, '"$(case $number in *-*) echo false ;; *) echo true ;; esac)"'


def _dated(inputs: Inputs, text: str, name: str) -> str:
    """Return a value in which `{{date 'YYYYMMDD'}}` may stand."""
    match = _DATES.search(text)
    if match is None:
        return _words(inputs, text, name)
    form = match[1]
    for theirs, ours in (
        ("YYYY", "%Y"),
        ("MM", "%m"),
        ("DD", "%d"),
        ("HH", "%H"),
        ("mm", "%M"),
        ("ss", "%S"),
    ):
        form = form.replace(theirs, ours)
    before, after = text[: match.start()], text[match.end() :]
    return f'{_words(inputs, before, name)}"$(date -u +{shlex.quote(form)})"{_words(inputs, after, f"{name}_end")}'
