"""Programs whose every use is high, with the reason: they are in no other table.

Commands that destroy or publish whatever their options are: what a high command does, as far as its words show it.

The tables of programs only know that they do not know such a use. These rows say in words what it does, so that rules
of policies about effects fit, and so that reasons can be read.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Row = tuple[tuple[tuple[str, ...], ...], str, tuple[str, ...]]

_REASONS = {
    "runs a command as another user": "sudo su doas pkexec runuser setpriv",
    "runs a text as code": "eval",
    "replaces the shell": "exec",
    "runs commands made of its input": "xargs parallel",
    "runs on when the step has ended": "nohup setsid disown bg screen tmux at batch daemonize",
    "runs something later": "trap crontab",
    "changes what names mean": "alias unalias enable shopt hash function builtin",
    "prints the environment, secrets and all": "printenv declare typeset compgen",
    "talks to another machine": "ssh scp sftp ftp telnet nc ncat netcat socat rsync dig nslookup host ping mosh",
    "publishes": "twine",
    "changes remote state": "gcloud az glab flyctl heroku ansible ansible-playbook pulumi",
    "controls containers": "nerdctl buildah crictl",
    "installs into the system": "apt apt-get dpkg yum dnf rpm apk pacman zypper snap brew flatpak",
    "changes the system": "systemctl service sysctl mount umount chroot iptables nft ip ifconfig modprobe insmod reboot shutdown halt poweroff useradd userdel usermod groupadd passwd chpasswd visudo setcap nsenter unshare losetup swapon swapoff hostnamectl timedatectl",
    "destroys data for good": "dd shred mkfs mkfs.ext4 fdisk parted wipefs mkswap",
    "changes owners": "chown chgrp",
    "ends processes that are not its own": "kill killall pkill",
    "is a program to be used by a person": "vi vim nvim nano emacs ed ex less more most man top htop watch",
}  # fmt: skip
REASONS = {name: f"{name}: {reason}" for reason, names in _REASONS.items() for name in names.split()}
"""Name of a program -> why it is high."""

# What these do is known, besides that it may be anything.
_EFFECTS = {
    "runs a command as another user": ("privilege",),
    "prints the environment, secrets and all": ("secrets",),
    "talks to another machine": ("network",),
    "publishes": ("network", "publishes"),
    "changes remote state": ("network", "publishes"),
    "installs into the system": ("network", "privilege"),
    "changes the system": ("privilege",),
    "destroys data for good": ("destroys",),
    "changes owners": ("privilege",),
}


def effects(name: str, words: Sequence[str | None]) -> tuple[str, ...]:
    """Return what a high command does as far as that is known, `unknown` included: a rule may be about any of it."""
    listed = next((_EFFECTS.get(why, ()) for why, names in _REASONS.items() if name in names.split()), ())
    return tuple(sorted({"unknown", *listed, *known((name, *words))[1]}))


def deed(name: str, words: Sequence[str | None]) -> str:
    """Return in words what a command does that destroys or publishes; "" where nothing is known of that."""
    return known((name, *words))[0]


# Program and words, in this order with anything between them. `a|b`: one of them, `x*`: a beginning, `-f`: also in a
# bundle. Behind `:` what it does, behind `>` its effects besides `destroys`.
_DESTROYS = """
git clean -f|--force|-d|-x|-X : deletes untracked files
git reset --hard|--merge|--keep : throws away changes of files
git checkout --|.|-f|--force|:* : throws away changes of files
git restore . : throws away changes of files
git restore --worktree|-W : throws away changes of files
git switch --discard-changes|-f|--force|-C : throws away changes of files
git stash drop|clear : deletes stashed changes
git branch -D|-f|--force : deletes a branch or moves it
git tag -f|--force : moves a tag
git push -f|--force|--force-with-lease*|--mirror|--delete|-d|--prune|+*|:* : replaces or deletes what a remote has > network publishes
git update-ref -d : deletes a reference
git reflog expire|delete : deletes history that could be restored
git gc --prune* : deletes history that could be restored
git filter-branch|filter-repo : rewrites history
git worktree remove : deletes a working tree
git submodule deinit : deletes a submodule's files
rm -* : deletes files
rm : deletes files
rmdir : deletes files
unlink : deletes files
shred : destroys files for good
truncate : empties files
dd of=* : writes over a file or a disk
find -delete : deletes files
find -exec* rm|shred|unlink|truncate : deletes files
rsync --delete*|--remove-source-files : deletes files
docker|podman|nerdctl rm|rmi|prune|down|kill : deletes containers, images or volumes
docker-compose down|rm|kill : deletes containers, images or volumes
kubectl|oc delete|drain|replace|prune|evict : deletes or replaces resources of a cluster > network publishes
kubectl scale --replicas=0 : stops what runs in a cluster > network publishes
kubectl apply --prune|--force : deletes or replaces resources of a cluster > network publishes
helm uninstall|delete|rollback : deletes or replaces a release > network publishes
terraform|tofu|terragrunt|terramate destroy|apply : changes or destroys infrastructure > network publishes
terraform|tofu|terragrunt state rm|push : changes the record of infrastructure > network publishes
terraform|tofu|terragrunt workspace delete : changes the record of infrastructure > network publishes
pulumi destroy|up|cancel : changes or destroys infrastructure > network publishes
cdk destroy|deploy : changes or destroys infrastructure > network publishes
aws s3 rm|rb : deletes objects or buckets > network publishes
aws s3 sync --delete : deletes objects or buckets > network publishes
aws delete-*|terminate-*|remove-*|purge-*|deregister-* : deletes cloud resources > network publishes
az delete|purge : deletes cloud resources > network publishes
gcloud delete : deletes cloud resources > network publishes
gsutil rm|rb : deletes objects or buckets > network publishes
gh repo|release|secret|variable|cache|run|issue|label|gist delete|delete-asset|archive : deletes what GitHub keeps > network publishes
gh api DELETE|-XDELETE|--method=DELETE : deletes what GitHub keeps > network publishes
glab delete : deletes what GitLab keeps > network publishes
curl DELETE|-XDELETE|--request=DELETE : asks a server to delete > network publishes
npm|pnpm unpublish|deprecate : takes back what was published > network publishes
yarn unpublish : takes back what was published > network publishes
gem yank : takes back what was published > network publishes
cargo yank : takes back what was published > network publishes
heroku apps:destroy|pg:reset : destroys an app or its data > network publishes
flyctl|fly destroy : destroys an app > network publishes
dropdb|dropuser|mysqladmin : drops databases
redis-cli flushall|flushdb|FLUSHALL|FLUSHDB|del|DEL : deletes data of a store
mkfs* : formats a disk
wipefs|fdisk|parted|mkswap|blkdiscard : destroys data of a disk
rails|rake|bundle db:drop|db:reset|db:schema:load|db:purge|db:rollback : drops data of a database
prisma|npx reset : drops data of a database
alembic|flyway|liquibase downgrade|clean|undo|dropAll|rollback : drops data of a database
systemctl stop|disable|mask|kill : stops a service
apt|apt-get|yum|dnf|apk|brew|snap|pacman remove|purge|autoremove|uninstall|del|erase : removes programs
"""
_PUBLISHES = """
docker|podman|nerdctl|buildah push : publishes an image
docker buildx|compose --push : publishes an image
helm push|install|upgrade : changes a cluster
kubectl|oc apply|create|patch|edit|set|scale|rollout|label|annotate|expose|run|exec|cp|cordon|uncordon|taint : changes a cluster
gh release|repo|gist|issue|pr create|merge|edit|comment|close|reopen|upload|review|ready|sync|rename|fork : changes what GitHub keeps
gh secret|variable|label|ssh-key set|add|create|edit : changes what GitHub keeps
gh workflow run|enable|disable : changes what GitHub keeps
gh run rerun|cancel : changes what GitHub keeps
gh api POST|PUT|PATCH|-f|-F|--field|--raw-field|--input : changes what GitHub keeps
git push : sends commits to a remote
aws s3 cp|mv|sync|mb : changes what a cloud keeps
aws create-*|put-*|update-*|modify-*|start-*|stop-*|run-*|deploy|invoke|publish|send-* : changes what a cloud keeps
npm|pnpm|yarn|lerna|cargo|poetry|uv|flit|hatch|pdm publish : publishes a package
npm|pnpm|yarn dist-tag|access|owner : changes a published package
cargo|gem owner : changes a published package
gem push : publishes a package
nuget|dotnet push : publishes a package
mvn|gradle deploy|publish* : publishes a package
twine upload : publishes a package
bundle release : publishes a package
goreleaser|semantic-release|release-it|changeset|vsce : publishes a release
vercel|netlify|wrangler|firebase|serverless|sls|cdk|flyctl|fly|eb|now deploy|publish|--prod : deploys
scp|rsync|sftp : copies files to or from another machine
sendmail|mail|mailx|mutt : sends mail
"""
_SAYS = """
git tag : creates a git tag
git config : changes or shows git's configuration
docker|podman run|exec|start : runs a container
docker|podman build|buildx : builds an image
docker|podman inspect : shows the variables of containers
docker|podman login : stores credentials
bash|sh|dash|zsh -c : runs a text as code
python|python3 -c : runs a text as code
node -e|-p|--eval|--print : runs a text as code
perl|ruby -e : runs a text as code
gh auth : uses or shows credentials of GitHub
"""
_SQL = (
    "psql", "mysql", "mariadb", "sqlite3", "sqlcmd", "clickhouse-client", "cqlsh", "bq", "duckdb",
    "mongosh", "mongo",
)  # fmt: skip
_SQL_WORDS = (
    "drop ", "truncate ", "delete from", "alter table", ".drop(", ".deletemany(", ".dropdatabase(",
    "update ",
)  # fmt: skip
# What code that is given on a command line deletes by.
_CODE_WORDS = (
    *("rmtree", "os.remove", "os.unlink", "os.rmdir", ".unlink(", "rmsync", "rmdirsync", "unlinksync", "fs.rm"),
    *("file.delete", "fileutils.rm", "unlink(", "rmdir(", "truncate(", "removeall"),
)  # fmt: skip
_WORDS_PER_LINE = 400  # of one high command that are looked at
_MOST = 40  # places where a program may stand
_ROWS: dict[str, list[Row]] = {}


def known(words: Sequence[str | None]) -> tuple[str, tuple[str, ...]]:
    """Return what a command does and its effects, by its program and words; ("", ()) when no row fits."""
    first = words[0] or "" if words else ""
    name = first.rpartition("/")[2]
    for pattern, does, effects in _rows(name):
        if _fits(pattern, words[1:]):
            return does, effects
    if name in _SQL and _speaks(words, _SQL_WORDS):
        return "deletes or changes data of a database", ("destroys",)
    return "", ()


def effects_in(text: str) -> set[str]:
    """Return the effects of commands that may stand anywhere in a text of class high: also quoted, or behind others."""
    lower = text.lower()
    found = {"destroys"} if any(sign in lower for sign in _CODE_WORDS) else set()
    for line in text.translate(_PARTS).split("\n"):
        words = line.split()[:_WORDS_PER_LINE]
        places = [at for at, word in enumerate(words) if _rows(word.rpartition("/")[2]) or word in _SQL]
        for at in places[:_MOST]:
            found.update(known(words[at:])[1])
    return found


_PARTS = str.maketrans({**dict.fromkeys(";&|(){}`\n", "\n"), **dict.fromkeys("'\"\\,[]", " ")})


def _rows(name: str) -> list[Row]:
    if not _ROWS:
        for row in _read(_DESTROYS, ("destroys",)):
            _add(*row)
        for row in _read(_PUBLISHES, ("network", "publishes")):
            _add(*row)
        for row in _read(_SAYS, ()):
            _add(*row)
    return _ROWS.get("mkfs*" if name.startswith("mkfs") else name, [])


def _read(text: str, effects: tuple[str, ...]) -> Iterator[tuple[str, Row]]:
    for line in text.strip().split("\n"):
        command, _, rest = line.partition(" : ")
        does, _, more = rest.partition(" > ")
        names, *words = command.split()
        pattern = tuple(tuple(word.split("|")) for word in words)
        yield names, (pattern, does, tuple(sorted({*effects, *more.split()})))


def _add(names: str, row: Row) -> None:
    for name in names.split("|"):
        _ROWS.setdefault(name, []).append(row)


def _fits(pattern: tuple[tuple[str, ...], ...], words: Sequence[str | None]) -> bool:
    """Whether each part of a pattern fits a word, in this order."""
    rest = iter(words)
    return all(any(_is_one(word, choices) for word in rest) for choices in pattern)


def _is_one(word: str | None, choices: tuple[str, ...]) -> bool:
    if word is None:
        return False
    return any(
        word == choice
        or (choice[-1] == "*" and word.startswith(choice[:-1]))
        or (
            len(choice) == 2
            and choice[0] == "-"
            and choice != "--"
            and word[:1] == "-"
            and word[1:2] != "-"
            and choice[1] in word
        )
        for choice in choices
    )


def _speaks(words: Sequence[str | None], signs: tuple[str, ...]) -> bool:
    text = " ".join([word or "" for word in words[1:]]).lower()
    return any(sign in text for sign in signs)
