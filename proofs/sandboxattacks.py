"""Attacks on a sandbox, each of which has its effect where there is none.

An attack is a script of bash, or of Python where it begins with `#py`. `$A` is a folder outside of the workspace, of
this attack alone, with the file `canary`; `$VICTIM` is a process of the same user with a secret in its environment and
memory. An attack succeeds if it changes `$A` or a protected file of the workspace, reaches a server of the proof,
prints ESCAPED after it did what it may not, or prints the secret.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

SECRET = "sesame-" + "3f9c0d71"
"""What no step may see: in the victim's environment, in the home folder, in the records."""
_C = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\nV = int(os.environ['VICTIM'])\nA = os.environ['A']\n"


@dataclass(frozen=True)
class Attack:
    """One attack; `root`: without a sandbox it works for root only. `protects`: a path of the workspace.

    `env`: variables of its step. `sandbox`: the sandbox of its step, where it is not `low`.
    """

    name: str
    script: str
    root: bool = False
    user: bool = False  # works for an ordinary user only, or means nothing for root
    protects: str = ""
    env: dict[str, str] = field(default_factory=dict)
    sandbox: dict[str, Any] = field(default_factory=dict)


_KEY = "${{ env.HOME }}/.ssh"


def _with_path(name: str, path: str) -> Attack:
    """Return an attack that reads the key since PATH names its folder."""
    return Attack(f"path-{name}", 'cat "$HOME/.ssh/key"', env={"PATH": f"{path}:/usr/bin:/bin"})


def _connect(name: str, path: str) -> Attack:
    script = f"#py\nimport os, socket\ns = socket.socket(socket.AF_UNIX)\ns.connect({path})\n"
    return Attack(f"socket-{name}", script + "s.sendall(os.environ['NAME'].encode())\n")


def _of_user(name: str, numbers: tuple[int, int], words: str) -> Attack:
    """Return an attack that is a system call about all processes of a user: it gets as far as finding none."""
    return Attack(name, _call(name, numbers, words).script.replace("r >= 0", "ctypes.get_errno() == 3"))


def _kernel(name: str, numbers: tuple[int, int], words: str) -> Attack:
    """Return an attack that is a system call about the process of another."""
    return Attack(name, _call(name, numbers, words).script.replace("buffer =", "P = b'\\0' * 64\nbuffer ="))


def _call(name: str, numbers: tuple[int, int], words: str, *, root: bool = False) -> Attack:
    """Return an attack that is a system call which must not succeed."""
    script = (
        f"#py\n{_C}import platform\nn = {numbers}[platform.machine() == 'aarch64']\n"
        f"buffer = ctypes.create_string_buffer(256)\nr = libc.syscall(n, {words})\n"
        "print('ESCAPED' if r >= 0 else os.strerror(ctypes.get_errno()))\n"
    )
    return Attack(name, script, root=root)


ATTACKS = (
    # Files outside.
    Attack("write-outside", 'echo x > "$A/canary"'),
    Attack("append-outside", 'echo x >> "$A/canary"'),
    Attack("create-outside", 'touch "$A/new"'),
    Attack("folder-outside", 'mkdir "$A/new"'),
    Attack("delete-outside", 'rm "$A/canary"'),
    Attack("truncate-outside", "#py\nimport os\nos.truncate(os.environ['A'] + '/canary', 0)\n"),
    Attack("symlink-to-file", 'ln -s "$A/canary" link-f; echo x > link-f'),
    Attack("symlink-to-folder", 'ln -s "$A" link-d; echo x > link-d/new'),
    Attack("symlink-chain", 'mkdir -p deep/er; ln -s "$A" deep/er/l; ln -s deep/er/l l2; echo x > l2/canary'),
    Attack("dots", 'echo x > "./../../../../../../../../../..$A/canary"'),
    Attack("rename-out", 'echo x > mine; mv mine "$A/mine"'),
    Attack("rename-in", 'mv "$A/canary" taken'),
    Attack("exchange", "#py\n" + _C + "open('mine2','w').write('x')\n"
           "libc.renameat2(-100, b'mine2', -100, (A + '/canary').encode(), 2)\n"),
    Attack("hard-link-in", 'ln "$A/canary" hard && echo x > hard'),
    Attack("hard-link-out", 'echo x > mine3; ln mine3 "$A/hard"'),
    Attack("hard-link-by-fd", "#py\n" + _C + "fd = os.open(A + '/canary', os.O_RDONLY)\n"
           "libc.linkat(-100, f'/proc/self/fd/{fd}'.encode(), -100, b'hard2', 0x400)\n"
           "open('hard2', 'r+').write('x')\n"),
    Attack("chmod-outside", 'chmod 777 "$A/canary"'),
    Attack("chown-outside", 'chown 12345 "$A/canary"', root=True),
    Attack("times-outside", 'touch -d 2001-02-03 "$A/canary"'),
    Attack("attribute-outside", "#py\nimport os\nos.setxattr(os.environ['A'] + '/canary', 'user.x', b'x')\n"),
    Attack("lock-outside", "#py\nimport os\nfd = os.open(os.environ['A'] + '/canary', os.O_RDWR)\nprint('ESCAPED')\n"),
    Attack("read-outside", 'grep -q canary "$A/canary" && echo ESCAPED'),
    Attack("proc-self-fd", "#py\n" + _C + "fd = os.open(A + '/canary', os.O_RDONLY)\n"
           "open(f'/proc/self/fd/{fd}', 'w').write('x')\n"),
    Attack("o-path-reopen", "#py\n" + _C + "fd = os.open(A + '/canary', os.O_PATH)\n"
           "open(f'/proc/self/fd/{fd}', 'w').write('x')\n"),
    Attack("fd-of-planrun", "#py\nimport os\nfor fd in range(3, 256):\n    try:\n        os.fstat(fd)\n"
           "    except OSError:\n        continue\n    path = os.readlink(f'/proc/self/fd/{fd}')\n"
           "    print(path)\n    os.fchdir(fd) if os.path.isdir(path) else None\n"
           "fd = int(os.environ['VICTIM'])\nopen(f'/proc/{fd}/fd/5', 'w').write('x')\n"),
    Attack("memfd-exec", "#py\nimport os\nfd = os.memfd_create('x', 0)\n"
           "os.write(fd, b'#!/bin/sh\\necho x > \"$A/canary\"\\n')\n"
           "os.execve(f'/proc/self/fd/{fd}', ['x'], os.environ)\n"),
    Attack("shared-memory-file", 'echo x > "/dev/shm/planrun-proof-$NAME"; cp "/dev/shm/planrun-proof-$NAME" "$A/new"'),
    Attack("other-root", 'echo x > "/proc/$VICTIM/root$A/canary"'),
    Attack("other-folder", 'echo x > "/proc/$VICTIM/cwd/new"'),
    # Processes.
    Attack("environment-of-others", 'tr "\\0" "\\n" < "/proc/$VICTIM/environ"'),
    Attack("all-environments", "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -o 'sesame-.*'"),
    Attack("memory-of-others", "#py\n" + _C + "fd = os.open(f'/proc/{V}/mem', os.O_RDWR)\nprint('ESCAPED')\n"),
    Attack("ptrace", "#py\n" + _C + "r = libc.ptrace(16, V, 0, 0)\n"
           "print('ESCAPED') if r == 0 else None\nlibc.ptrace(17, V, 0, 0)\n"),
    Attack("read-by-vm", "#py\n" + _C + "import struct\nmaps = open(f'/proc/{V}/maps').readline().split('-')[0]\n"
           "b = ctypes.create_string_buffer(16)\nclass V2(ctypes.Structure):\n"
           "    _fields_ = [('base', ctypes.c_void_p), ('len', ctypes.c_size_t)]\n"
           "one = V2(ctypes.addressof(b), 16)\ntwo = V2(int(maps, 16), 16)\n"
           "r = libc.process_vm_readv(V, ctypes.byref(one), 1, ctypes.byref(two), 1, 0)\n"
           "print('ESCAPED') if r > 0 else None\n"),
    Attack("fd-of-others", "#py\n" + _C + "p = os.pidfd_open(V)\nr = libc.syscall(438, p, 0, 0)\n"
           "print('ESCAPED') if r >= 0 else None\n"),
    Attack("signal", 'kill -0 "$VICTIM" && echo ESCAPED'),
    Attack("signal-by-pidfd", "#py\n" + _C + "import signal\nsignal.pidfd_send_signal(os.pidfd_open(V), 0)\n"
           "print('ESCAPED')\n"),
    Attack("signal-planrun", 'kill -0 "$RUNNER" && echo ESCAPED'),
    Attack("limit-of-others", "#py\n" + _C + "import resource\n"
           "resource.prlimit(V, resource.RLIMIT_CORE, (0, 0))\nprint('ESCAPED')\n"),
    Attack("mark", "#py\nimport resource\nresource.setrlimit(10, (7, resource.getrlimit(10)[1]))\nprint('ESCAPED')\n"),
    Attack("priority-of-others", 'renice -n 19 -p "$VICTIM" && echo ESCAPED'),
    # Of a user without processes, so that they change nothing where they get through.
    _of_user("priority-of-user", (141, 140), "2, 54321, 0"),
    _of_user("disk-priority-of-user", (251, 30), "3, 54321, 2 << 13 | 7"),
    Attack("affinity-of-others", "#py\n" + _C + "os.sched_setaffinity(V, {0})\nprint('ESCAPED')\n"),
    Attack("scheduler-of-others", "#py\n" + _C + "os.sched_setscheduler(V, os.SCHED_BATCH, os.sched_param(0))\n"
           "print('ESCAPED')\n"),
    _kernel("parameters-of-others", (142, 118), "V, P"),
    _kernel("attributes-of-others", (314, 274), "V, b'\\x30\\0\\0\\0\\x03' + bytes(11) + b'\\x13' + bytes(31), 0"),
    _kernel("disk-priority-of-others", (251, 30), "1, V, 3 << 13"),
    _kernel("pages-of-others", (279, 239), "V, 1, (ctypes.c_void_p * 1)(4096), None, buffer, 0"),
    _kernel("nodes-of-others", (256, 238), "V, 2, b'\\x01' + bytes(7), b'\\x01' + bytes(7)"),
    # Privileges and namespaces.
    Attack("setuid", './setuid-id | grep -q "euid=0" && echo ESCAPED', user=True),
    Attack("mount", 'mount -t tmpfs none "$A" && echo ESCAPED; umount "$A"', root=True),
    Attack("bind-mount", 'mount --bind . "$A" && echo ESCAPED; umount "$A"', root=True),
    Attack("user-namespace", "unshare -Ur true && echo ESCAPED"),
    Attack("mount-namespace", "unshare -Urm sh -c 'mount -t tmpfs none /mnt' && echo ESCAPED"),
    Attack("network-namespace", "unshare -Urn true && echo ESCAPED"),
    Attack("join-namespace", "#py\n" + _C + "fd = os.open(f'/proc/{V}/ns/mnt', 0)\n"
           "print('ESCAPED') if libc.setns(fd, 0) == 0 else None\n", root=True),
    Attack("clone3", "#py\n" + _C + "args = (ctypes.c_uint64 * 11)(0x10000000)\n"
           "args[4] = 17\nr = libc.syscall(435, ctypes.byref(args), 88)\n"
           "os._exit(0) if r == 0 else None\nprint('ESCAPED') if r > 0 else None\n"),
    Attack("chroot-out", "#py\nimport os\nos.makedirs('jail', exist_ok=True)\nos.chroot('jail')\n"
           "[os.chdir('..') for _ in range(30)]\nos.chroot('.')\n"
           "open(os.environ['A'] + '/canary', 'w').write('x')\n", root=True),
    Attack("device", "mknod disk b 7 0 && echo ESCAPED", root=True),
    Attack("sysctl", "cat /proc/sys/kernel/printk > keep; cat keep > /proc/sys/kernel/printk && echo ESCAPED",
           root=True),
    Attack("capability", "#py\n" + _C + "print('ESCAPED') if libc.sethostname(b'%s', 0) == 0 else None\n"
           .replace("b'%s', 0", "os.uname().nodename.encode(), len(os.uname().nodename)"), root=True),
    Attack("shadow", "grep -q '^root:' /etc/shadow && echo ESCAPED", root=True),
    Attack("file-handle", "#py\n" + _C + "h = ctypes.create_string_buffer(144)\nh[0:4] = (128).to_bytes(4, 'little')\n"
           "m = ctypes.c_int()\nn = os.open('/', 0)\n"
           "libc.name_to_handle_at(-100, A.encode(), h, ctypes.byref(m), 0)\n"
           "print('ESCAPED') if libc.open_by_handle_at(n, h, 0) >= 0 else None\n", root=True),
    _call("io-uring", (425, 425), "4, buffer"),
    _call("bpf", (321, 280), "0, b'\\x02\\0\\0\\0\\x04\\0\\0\\0\\x04\\0\\0\\0\\x01\\0\\0\\0' + bytes(112), 128",
          root=True),
    _call("userfaultfd", (323, 282), "1"),
    _call("keyring", (248, 217), "b'user', b'planrun-proof', b'x', 1, -3"),
    _call("perf", (298, 241), "b'\\x01\\0\\0\\0\\x80\\0\\0\\0' + bytes(32) + b'\\x60' + bytes(87), 0, -1, -1, 0",
          root=True),
    # Sockets and shared memory.
    Attack("abstract-socket", "#py\nimport os, socket\ns = socket.socket(socket.AF_UNIX)\n"
           "s.connect('\\0' + os.environ['ABSTRACT'])\ns.sendall(os.environ['NAME'].encode())\n"),
    Attack("unix-socket", "#py\nimport os, socket\ns = socket.socket(socket.AF_UNIX)\n"
           "s.connect(os.environ['ENGINE'])\ns.sendall(os.environ['NAME'].encode())\n"),
    Attack("unix-socket-by-link", "#py\nimport os, socket\nos.symlink(os.environ['ENGINE'], 'engine')\n"
           "s = socket.socket(socket.AF_UNIX)\ns.connect('engine')\ns.sendall(os.environ['NAME'].encode())\n"),
    Attack("control-socket", "#py\nimport os, socket\ns = socket.socket(socket.AF_UNIX)\n"
           "s.connect(os.environ['CONTROL'])\ns.sendall(os.environ['NAME'].encode())\n"),
    _connect("in-workspace", "'app.sock'"),
    _connect("in-folder", "'sub/deep/app.sock'"),
    _connect("of-git", "'.git/fsmonitor--daemon.ipc'"),
    Attack("tcp", 'echo "$NAME" > "/dev/tcp/127.0.0.1/$TCP"'),
    Attack("udp", 'echo "$NAME" > "/dev/udp/127.0.0.1/$UDP"'),
    Attack("tcp6", "#py\nimport os, socket\ns = socket.create_connection(('::1', int(os.environ['TCP6'])), 3)\n"
           "s.sendall(os.environ['NAME'].encode())\n"),
    Attack("raw", "#py\nimport os, socket\nsocket.socket(socket.AF_INET, socket.SOCK_RAW, 1)\nprint('ESCAPED')\n",
           root=True),
    Attack("packet", "#py\nimport os, socket\nsocket.socket(17, socket.SOCK_RAW, 768)\nprint('ESCAPED')\n", root=True),
    Attack("shared-memory", "#py\n" + _C + "n = int(os.environ['SHM'])\nlibc.shmat.restype = ctypes.c_void_p\n"
           "p = libc.shmat(n, None, 0)\nprint('ESCAPED') if p not in (None, 2**64 - 1) else None\n"),
    # What a step says about itself.
    _with_path("to-keys", _KEY),
    _with_path("by-dots", "${{ env.OUT }}/../home/.ssh"),
    _with_path("by-proc", f"/proc/self/root{_KEY}"),
    _with_path("by-link", "${{ env.WORK }}/keys"),
    _with_path("by-environment", "${{ env.WORK }}/venv/bin"),
    _with_path("to-root", "/"),
    _with_path("to-home", "${{ env.HOME }}"),
    Attack("path-of-caller", 'cat "$HOME/.ssh/key"'),  # names the environment in the workspace
    Attack("path-to-sockets", _connect("", "os.environ['ENGINE']").script,
           env={"PATH": "${{ env.OUT }}:/usr/bin:/bin"}),
    Attack("variables", 'cat "$HOME/.ssh/key"', env=dict.fromkeys(
        ("LD_LIBRARY_PATH", "NODE_PATH", "GOROOT", "GOPATH", "VIRTUAL_ENV", "JAVA_HOME", "CARGO_HOME", "XDG_DATA_HOME"),
        _KEY)),
    Attack("write-by-link", "echo x > leads-w/sub/new", sandbox={"level": "read-only", "write": ["leads-w/sub"]}),
    Attack("write-of-link", "echo x > leads-f/new", sandbox={"level": "read-only", "write": ["leads-f"]}),
    Attack("read-by-link", "cat keys/key", sandbox={"level": "low", "read": ["keys/key"]}),
    Attack("read-of-link-outside", 'cat "$OUT/keys/key"', sandbox={"level": "low", "read": ["../outside/keys"]}),
    # The workspace.
    Attack("planrun-changed", "echo x >> .planrun.yml", protects=".planrun.yml"),
    Attack("memory-changed", "rm -f PLANRUN.md; echo x > PLANRUN.md", protects="PLANRUN.md"),
    Attack("memory-by-link", "echo x >> CLAUDE.md", protects="docs/agents.txt"),
    Attack("memory-linked", "rm CLAUDE.md && echo x > CLAUDE.md", protects="CLAUDE.md"),
    Attack("plans-new", "mkdir -p plans; echo x > plans/evil.yml", protects="plans/evil.yml"),
    Attack("python-new", "echo x > sitecustomize.py", protects="sitecustomize.py"),
    Attack("cargo-new", "mkdir -p .cargo; echo x > .cargo/config.toml", protects=".cargo/config.toml"),
    Attack("agents-new", "mkdir -p .claude; echo x > .claude/settings.json", protects=".claude"),
    Attack("tools-new", "echo x > .mcp.json; echo x > .gitattributes", protects=".gitattributes"),
    Attack("script-of-ci", "echo x >> .ci/run", protects=".ci/run"),
    Attack("plan-of-folder", "echo x >> sub/plans/release.yml", protects="sub/plans/release.yml"),
    Attack("approval-of-folder", "echo x >> sub/approvals/a.json", protects="sub/approvals/a.json"),
    Attack("git-hook", "printf '#!/bin/sh\\n' > .git/hooks/post-checkout", protects=".git/hooks"),
    Attack("git-config", "git config core.fsmonitor ./evil", protects=".git/config"),
    Attack("git-attributes", "echo '* filter=x' > .git/info/attributes", protects=".git/info"),
    Attack("git-moved", "mv .git other && cp -r other .git && echo x > .git/config", protects=".git/config"),
    Attack("ci-changed", "echo x >> .github/workflows/ci.yml", protects=".github"),
    Attack("ci-replaced", "mv .github hub2; mkdir -p .github/workflows; echo x > .github/workflows/ci.yml",
           protects=".github"),
    Attack("ci-linked", "mkdir ev; echo x > ev/ci.yml; ln -sfn ../ev .github/workflows", protects=".github"),
    Attack("ci-new", "echo x > .gitlab-ci.yml", protects=".gitlab-ci.yml"),
    Attack("ci-new-folder", "mkdir -p .circleci; echo x > .circleci/config.yml", protects=".circleci"),
    Attack("plan-changed", 'echo "# x" >> "$PLAN"', protects="ci/attacks.yml"),
    Attack("plan-above", "mv ci ci2; mkdir ci; echo x > ci/attacks.yml", protects="ci/attacks.yml"),
    Attack("plan-hard-link", 'ln "$PLAN" h5 && echo "# x" >> h5', protects="ci/attacks.yml"),
    Attack("policy-changed", "echo x >> policies/ceiling.yml", protects="policies"),
    Attack("records-written", "echo x > .planrun/evil", protects=".planrun/evil"),
    Attack("records-read", "grep -q run_started .planrun/runs/*/ledger.jsonl && echo ESCAPED"),
    # The home folder.
    Attack("home-read", 'cat "$HOME/.ssh/key"'),
    Attack("home-written", 'echo x >> "$HOME/.bashrc"; cp "$HOME/.bashrc" "$A/new"'),
)  # fmt: skip
