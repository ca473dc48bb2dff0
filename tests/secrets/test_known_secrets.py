"""Where the values of secrets come from."""

from __future__ import annotations

from planrun.secrets.masker import known_secrets


def test_values_come_from_the_environment_under_the_same_names() -> None:
    """Each name once; what is not set or empty is named; nothing else of the environment is taken."""
    environ = {"TOKEN": "value", "EMPTY": "", "OTHER": "not asked for"}
    values, missing = known_secrets(["TOKEN", "EMPTY", "GONE", "TOKEN"], environ)
    assert values == {"TOKEN": "value"}
    assert missing == ("EMPTY", "GONE")
