"""What asks machines, clusters and clouds: only what reads is written down, and what checks a project without applying it.

All of these have configurations of the user's own, which are the machine's and no plan's. Options that name another
configuration, another server or a file of credentials stay out, and so does what prints secrets.
"""

from __future__ import annotations

from planrun.risk.levels import high
from planrun.risk.table import Rule
from planrun.risk.words import names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.risk.levels import Finding
    from planrun.risk.table import Rules, Use

_ASKS = "network"
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:/,=@ ")
_HIDDEN = ("secret", "password", "credential", "token", "key")


def _asks(operands: str, options: str = "", **more: object) -> Rule:
    return Rule("medium", operands, options, effects=_ASKS, reason="asks a server", **more)  # type: ignore[arg-type]


# Containers

_LIST = "-a -q -n=number -l -s -f=text --all --quiet --no-trunc --last=number --latest --size --filter=text --format=text --digests"


_CONTAINER: dict[str, Rules] = {
    "ls": Rule("read-only", "", _LIST),
    "list": Rule("read-only", "", _LIST),
    "logs": Rule("read-only", "name", "-t -n=number --tail=text --since=text --until=text --timestamps --details"),
    "top": Rule("read-only", "name"),
    "port": Rule("read-only", "name name?"),
    "diff": Rule("read-only", "name"),
}  # fmt: skip
_DOCKER: dict[str, Rules] = {
    "ps": Rule("read-only", "", _LIST),
    "images": Rule("read-only", "name?", _LIST),
    "logs": _CONTAINER["logs"],
    "top": _CONTAINER["top"],
    "port": _CONTAINER["port"],
    "diff": _CONTAINER["diff"],
    "history": Rule("read-only", "name", "-q -H --quiet --human"),
    "version": Rule("read-only", "", "-f=text --format=text"),
    "info": Rule("read-only", "", "-f=text --format=text"),
    "stats": Rule("read-only", "name*", "-a --all --no-trunc --no-stream --format=text", needs="--no-stream"),
    "container": Rule("high", sub=_CONTAINER),
    "image": Rule("high", sub={"ls": Rule("read-only", "name?", _LIST), "list": Rule("read-only", "name?", _LIST), "history": Rule("read-only", "name", "-q -H --quiet --human"), "pull": _asks("name", "-q --quiet --platform=name")}),
    "volume": Rule("high", sub={"ls": Rule("read-only", "", "-q -f=text --quiet --filter=text --format=text")}),
    "network": Rule("high", sub={"ls": Rule("read-only", "", "-q -f=text --quiet --filter=text --format=text --no-trunc")}),
    "context": Rule("high", sub={"ls": Rule("read-only", "", "-q --quiet --format=text"), "show": Rule("read-only")}),
    "system": Rule("high", sub={"df": Rule("read-only", "", "-v --verbose --format=text"), "info": Rule("read-only", "", "-f=text")}),
    "buildx": Rule("high", sub={"version": Rule("read-only"), "ls": Rule("read-only")}),
    "compose": Rule(
        "high",
        "",
        "-f=inside -p=name --file=inside --project-name=name --profile=name --ansi=name",
        sub={
            "ps": Rule("read-only", "name*", "-a -q --all --quiet --services --status=name --format=name --filter=text"),
            "ls": Rule("read-only", "", "-a -q --all --quiet --format=name --filter=text"),
            "images": Rule("read-only", "name*", "-q --quiet --format=name"),
            "logs": Rule("read-only", "name*", "-t -n=text --tail=text --since=text --until=text --timestamps --no-color --no-log-prefix"),
            "version": Rule("read-only", "", "-f=name --short --format=name"),
            "pull": _asks("name*", "-q --quiet --ignore-pull-failures"),
        },
    ),
    "pull": _asks("name", "-q --quiet --platform=name"),
    "search": _asks("name", "-f=text --filter=text --limit=number --no-trunc --format=text"),
    "manifest": Rule("high", sub={"inspect": _asks("name", "-v --verbose")}),
}  # fmt: skip

# Clusters

_PLACE = " -n=name --namespace=name --context=name --request-timeout=number"
_PICK = " -A -l=text -L=text --all-namespaces --selector=text --field-selector=text --label-columns=text --show-labels"
_GET = f"{_PLACE}{_PICK} -o=text --output=text --sort-by=text --no-headers --ignore-not-found --show-kind --chunk-size=number"


def _resources(use: Use) -> Finding | None:
    """Refuse what shows secrets, and formats that are read from files."""
    for word in use.operands:
        if any(hidden in word.lower() for hidden in _HIDDEN):
            return high(f"{word}: shows secrets of a cluster", "secrets", "network")
    for name, value in use.options:
        if name in ("-o", "--output") and value and "file" in value.partition("=")[0]:
            return high(f"{name} {value}: a format that is read from a file")
    return None


_KUBECTL: dict[str, Rules] = {
    "get": _asks("name+", _GET, check=_resources),
    "describe": _asks("name+", f"{_PLACE}{_PICK} --show-events", check=_resources),
    "logs": _asks("name", f"{_PLACE} -c=name -l=text -p --container=name --all-containers --previous --tail=text --since=text --since-time=text --timestamps --prefix --selector=text --limit-bytes=number --ignore-errors"),
    "top": Rule("high", sub={"pods": _asks("name?", f"{_PLACE}{_PICK} --containers"), "pod": _asks("name?", f"{_PLACE}{_PICK} --containers")} | {"nodes": _asks("name?", f"{_PLACE}{_PICK}"), "node": _asks("name?", f"{_PLACE}{_PICK}")}),
    "wait": _asks("name+", f"{_PLACE}{_PICK} --for=text --timeout=number --all", check=_resources),
    "rollout": Rule("high", sub={"status": _asks("name name?", f"{_PLACE} -w --watch[=text] --timeout=number --revision=number"), "history": _asks("name name?", f"{_PLACE} --revision=number")}),
    "explain": _asks("name", f"{_PLACE} --recursive --api-version=name"),
    "version": _asks("", f"{_PLACE} -o=name --output=name --client"),
    "cluster-info": _asks("", _PLACE),
    "api-resources": _asks("", f"{_PLACE} -o=name --output=name --namespaced[=text] --verbs=text --api-group=name"),
    "api-versions": _asks("", _PLACE),
    "auth": Rule("high", sub={"can-i": _asks("text text?", f"{_PLACE} -A -q --all-namespaces --quiet --list")}),
    "config": Rule("high", sub={"current-context": Rule("read-only"), "get-contexts": Rule("read-only", "name*", "-o=name --output=name --no-headers"), "get-clusters": Rule("read-only")}),
}  # fmt: skip

# Charts and infrastructure

_HELM_AT = " -n=name --namespace=name --kube-context=name"
_CHART = " -f=inside --values=inside --set=text --set-string=text --include-crds --skip-tests --no-hooks --is-upgrade --kube-version=text -a=text --api-versions=text -s=text --show-only=text --name-template=text -g --generate-name --version=text --release-name --debug --skip-crds"
_HELM: dict[str, Rules] = {
    "list": _asks("", f"{_HELM_AT} -A -a -q -d -r -o=name --all-namespaces --all --short --output=name --filter=text --max=number --deployed --failed --pending --date --reverse"),
    "ls": _asks("", f"{_HELM_AT} -A -a -q -d -r -o=name --all-namespaces --all --short --output=name --filter=text --max=number"),
    "status": _asks("name", f"{_HELM_AT} -o=name --output=name --revision=number"),
    "history": _asks("name", f"{_HELM_AT} -o=name --output=name --max=number"),
    "template": (Rule("medium", "inside", f"{_HELM_AT}{_CHART}", effects="network", reason="renders a chart"), Rule("medium", "name inside", f"{_HELM_AT}{_CHART}", effects="network", reason="renders a chart")),
    "lint": Rule("read-only", "inside+", f"{_HELM_AT} --strict --quiet --with-subcharts -f=inside --values=inside --set=text --set-string=text --kube-version=text"),
    "version": Rule("read-only", "", "--short --client --template=text"),
    "show": Rule("high", sub=dict.fromkeys(("chart", "values", "readme", "crds", "all"), Rule("read-only", "inside"))),
    "search": Rule("high", sub={"repo": Rule("read-only", "name?", "-l --versions --version=text --devel -o=name"), "hub": _asks("name?", "-o=name --max-col-width=number")}),
    "repo": Rule("high", sub={"list": Rule("read-only", "", "-o=name --output=name")}),
    "dependency": Rule("high", sub={"list": Rule("read-only", "inside?"), "ls": Rule("read-only", "inside?"), "build": Rule("medium", "inside?", "--skip-refresh", effects="network writes", reason="fetches what a chart names"), "update": Rule("medium", "inside?", "--skip-refresh", effects="network writes", reason="fetches what a chart names")}),
}  # fmt: skip
_TF_VARS = " -var=text -var-file=values -no-color -json -compact-warnings"
_TERRAFORM: dict[str, Rules] = {
    "fmt": (Rule("read-only", "inside*", "-check -diff -recursive -no-color -list=text -write=text", style="single", needs="-check"), Rule("low", "make*", "-diff -recursive -no-color -list=text", style="single")),
    "validate": Rule("medium", "", "-json -no-color -no-tests", style="single", reason="runs the providers of the project"),
    "init": Rule("medium", "", "-backend={true,false} -input={true,false} -no-color -upgrade -get={true,false} -lockfile={readonly} -lock={true,false} -lock-timeout=number -reconfigure -json -test-directory=inside", style="single", effects="code network writes", reason="fetches the providers of the project"),
    "plan": Rule("medium", "", f"-out=write -input={{true,false}} -lock={{true,false}} -lock-timeout=number -refresh={{true,false}} -refresh-only -detailed-exitcode -parallelism=number -target=text -concise -destroy{_TF_VARS}", style="single", effects="code network", reason="runs the providers of the project"),
    "test": Rule("medium", "", f"-filter=text -verbose -test-directory=inside{_TF_VARS}", style="single", effects="code network publishes unknown", check=lambda _use: high("terraform test: makes infrastructure", "network", "publishes", "unknown")),
    "version": Rule("read-only", "", "-json", style="single"),
    "providers": Rule("medium", "", "", style="single", effects="network"),
    "graph": Rule("medium", "", "-draw-cycles -type=name", style="single", effects="code"),
    "output": _asks("", "-no-color", style="single"),
    "show": _asks("inside?", "-no-color", style="single"),
    "workspace": Rule("high", sub={"list": _asks(""), "show": Rule("read-only")}),
    "state": Rule("high", sub={"list": _asks("text*", "-id=text", style="single")}),
}  # fmt: skip
_TERRAFORMS = Rule("high", "", "-chdir=folder", sub=_TERRAFORM)

# GitHub

_GH = " -R=name --repo=name --json=text -q=text --jq=text -t=text --template=text"
_GH_LIST = f"{_GH} -L=number --limit=number -s=name --state=name -l=text --label=text -S=text --search=text -A=name --author=name -a=name --assignee=name"
_GH_PR = f"{_GH_LIST} -B=arg -H=arg --base=arg --head=arg -d --draft"
_GH_VIEW = f"{_GH} -c --comments"


def _github(use: Use) -> Finding | None:
    """Refuse what would send a token to another server, and filters that show the environment."""
    for name, value in use.options:
        if name in ("-q", "--jq") and "env" in (value or "").lower():
            return high(f"gh {name}: shows the environment", "secrets")
        if name in ("-R", "--repo") and (value or "").count("/") != 1:
            return high(f"gh {name} {value}: another server", "network", "secrets")
    for operand in use.operands:
        if "://" in operand or (operand.count("/") > 1 and "." in operand.partition("/")[0]):
            return high(f"gh {operand}: another server", "network", "secrets")
    return None


def _hub(operands: str, options: str = "") -> Rule:
    return _asks(operands, options, check=_github)


def _api(use: Use) -> Finding | None:
    """A path of GitHub's own API that is read; another address would get the token."""
    path = use.operands[0]
    if (
        not _PLAIN.union("?&+%{}").issuperset(path)
        or "://" in path
        or path.startswith(("//", "-"))
        or path == "graphql"
    ):
        return high(f"gh api {path}: no plain path of the API")
    if any(hidden in path.lower() for hidden in _HIDDEN):
        return high(f"gh api {path}: may show credentials", "secrets", "network")
    return _github(use)


_GITHUB: dict[str, Rules] = {
    "pr": Rule("high", sub={"view": _hub("arg?", _GH_VIEW), "list": _hub("", _GH_PR), "ls": _hub("", _GH_PR), "diff": _hub("arg?", f"{_GH} --name-only --patch --color=name"), "checks": _hub("arg?", f"{_GH} --required"), "status": _hub("", f"{_GH} -c --conflict-status")}),
    "issue": Rule("high", sub={"view": _hub("arg", _GH_VIEW), "list": _hub("", f"{_GH_LIST} -m=text --milestone=text --mention=name"), "ls": _hub("", _GH_LIST), "status": _hub("", _GH)}),
    "run": Rule("high", sub={"list": _hub("", f"{_GH_LIST} -w=arg -b=arg -e=name -u=name -c=name --workflow=arg --branch=arg --event=name --user=name --status=name --commit=name --created=text"), "view": _hub("name?", f"{_GH} -v -j=name --log --log-failed --job=name --attempt=number --verbose --exit-status")}),
    "release": Rule("high", sub={"view": _hub("name?", _GH), "list": _hub("", f"{_GH} -L=number --limit=number --exclude-drafts --exclude-pre-releases --order=name"), "ls": _hub("", f"{_GH} -L=number --limit=number")}),
    "repo": Rule("high", sub={"view": _hub("name?", "-b=arg --branch=arg --json=text -q=text --jq=text"), "list": _hub("name?", "-L=number --limit=number --json=text -q=text --jq=text --visibility=name --source --fork --language=name --topic=name")}),
    "workflow": Rule("high", sub={"list": _hub("", f"{_GH} -a -L=number --all --limit=number"), "view": _hub("arg?", f"{_GH} -y -r=arg --yaml --ref=arg")}),
    "label": Rule("high", sub={"list": _hub("", f"{_GH_LIST} --order=name --sort=name")}),
    "cache": Rule("high", sub={"list": _hub("", f"{_GH} -L=number -k=text -r=arg --limit=number --key=text --ref=arg")}),
    "api": _asks("text", "-q=text --jq=text --template=text --paginate --slurp -i --include --method={GET} -X={GET} --silent --cache=number", check=_api),
    "version": Rule("read-only"),
    "search": Rule("high", sub=dict.fromkeys(("issues", "prs", "repos", "commits", "code"), _hub("text*", f"{_GH_LIST} --owner=name --language=name --topic=name"))),
}  # fmt: skip

# Amazon

_AWS_READS = ("describe-", "list-")
_AWS_SERVICES = names_in("acm autoscaling cloudfront cloudwatch dynamodb ec2 ecr ecs efs eks elasticache elb elbv2 iam organizations rds route53 s3api sns sqs")  # fmt: skip
"""Services whose descriptions show no variables of programs, but for what _AWS_SHOWS names."""
_AWS_MORE = names_in("get-caller-identity get-bucket-location get-bucket-versioning get-bucket-tagging get-metric-statistics get-metric-data get-hosted-zone get-role get-user get-policy head-object head-bucket")  # fmt: skip
# What shows variables, scripts that machines start with, or keys.
_AWS_SHOWS = (
    *("secret", "password", "credential", "token", "user-data", "task", "instance-attribute", "launch-", "key", "export"),
    *("connection", "spot-fleet", "spot-instance-requests", "fleet"),
)  # fmt: skip
_AWS_FLAGS = names_in("--no-cli-pager --no-paginate --no-sign-request --recursive --human-readable --summarize --dry-run --only-show-errors --include-all-instances")  # fmt: skip
_AWS_NEVER = names_in("--endpoint-url --cli-input-json --cli-input-yaml --ca-bundle --no-verify-ssl --debug --profile --with-decryption --cli-read-timeout --query-file")  # fmt: skip


def _aws(use: Use) -> Finding | None:
    """Take what describes and lists, with options whose values are plain; nothing is read from files."""
    words, options, at = [], [], 0
    given = use.operands
    while at < len(given):
        word = given[at]
        at += 1
        if word[:1] != "-":
            words.append(word)
            continue
        name, sign, _ = word.partition("=")
        options.append(word)
        # aws takes abbreviations, but for the whole name of another option.
        is_refused = name != "--query" and any(never.startswith(name) for never in _AWS_NEVER)
        if is_refused or name[:2] != "--" or not _PLAIN.issuperset(word):
            return high(f"aws {name}: unknown option")
        if not sign and name not in _AWS_FLAGS:
            while at < len(given) and given[at][:1] != "-":
                at += 1
                value = given[at - 1]
                if (
                    "file" in value.partition(":")[0]
                    or (name != "--query" and not _PLAIN.issuperset(value))
                    or "://" in value
                ):
                    return high(f"aws {name}: a value that is read from elsewhere")
    return None if _aws_reads(words) else high(f"aws {' '.join(words[:2])}: unknown use")


def _aws_reads(words: list[str]) -> bool:
    """Whether a service and an operation only read, and show nothing that is secret."""
    if words[:2] == ["s3", "ls"]:
        return all(word.startswith("s3://") and _PLAIN.issuperset(word) for word in words[2:])
    if len(words) != 2:
        return False
    service, operation = words
    if operation in _AWS_MORE:
        return service in _AWS_SERVICES or service == "sts"
    reads = service in _AWS_SERVICES and operation.startswith(_AWS_READS)
    return reads and not any(shown in operation for shown in _AWS_SHOWS)


PROGRAMS: dict[str, Rules] = {
    "docker": Rule("high", sub=_DOCKER),
    "podman": Rule("high", sub={name: rule for name, rule in _DOCKER.items() if name not in ("compose", "buildx", "context")}),
    "kubectl": Rule("high", "", _PLACE, sub=_KUBECTL),
    "terraform": _TERRAFORMS,
    "tofu": _TERRAFORMS,
    "helm": Rule("high", "", _HELM_AT, sub=_HELM),
    "gh": Rule("high", sub=_GITHUB),
    "aws": _asks("text*", style="raw", check=_aws),
}  # fmt: skip
