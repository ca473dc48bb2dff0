"""Sandboxes: a step runs with the files, the network and the system calls that its level allows, by the kernel.

`view` says what a step sees: a list of mounts, plain data. `starter` is a small process that starts every sandboxed
step: it holds no secrets, and its children are planrun's own. Two backends enforce a view: `landlock` (namespaces,
Landlock and seccomp by `kernel` and `filters`) and `bubblewrap` (the program bwrap, with the same filter). `launcher`
is planrun's side of it, `probe` finds out what this machine can do, `proxy` lets a step reach the hosts that it may.
"""
