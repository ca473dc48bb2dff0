"""Programs whose every use is high, with the reason: they are in no other table."""

from __future__ import annotations

from planrun.risk.programs import losses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_REASONS = {
    "runs a command as somebody else": "sudo su doas pkexec runuser setpriv",
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
    "changes the system": "systemctl service sysctl mount umount chroot iptables nft ip ifconfig modprobe insmod reboot"
    " shutdown halt poweroff useradd userdel usermod groupadd passwd chpasswd visudo setcap nsenter unshare losetup"
    " swapon swapoff hostnamectl timedatectl",
    "destroys data for good": "dd shred mkfs mkfs.ext4 fdisk parted wipefs mkswap",
    "changes owners": "chown chgrp",
    "ends processes that are not its own": "kill killall pkill",
    "is a program to be used by a person": "vi vim nvim nano emacs ed ex less more most man top htop watch",
}
REASONS = {name: f"{name}: {reason}" for reason, names in _REASONS.items() for name in names.split()}
"""Name of a program -> why it is high."""

# What these do is known, besides that it may be anything.
_EFFECTS = {
    "runs a command as somebody else": ("privilege",),
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
    known = next((_EFFECTS.get(why, ()) for why, names in _REASONS.items() if name in names.split()), ())
    return tuple(sorted({"unknown", *known, *losses.known((name, *words))[1]}))


def deed(name: str, words: Sequence[str | None]) -> str:
    """Return in words what a command does that destroys or publishes; "" where nothing is known of that."""
    return losses.known((name, *words))[0]
