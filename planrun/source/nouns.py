"""What is told of each kind of file that is read as YAML, by the noun that messages call it."""

from __future__ import annotations

BEGINNINGS = {
    "file": "it is empty",
    "plan": "it begins with `version: 1`",
    "policy": "write `auto_approve: medium`, say",
    "recording": "remove it, and record anew",
}
"""The hint where there is nothing in a file."""
KEYS = {
    "file": "`jobs:`, `tasks:` or `steps:`",
    "plan": "`version:` and `steps:`",
    "policy": "`auto_approve:` and `rules:`",
    "recording": "`version:` and `answer:`",
}
"""Keys that such a file has, for one that holds no mapping."""
