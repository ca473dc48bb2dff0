"""Values that cannot be masked: everybody's words, and too short to be told from the rest of a log."""

from __future__ import annotations

SHORTEST = 6
"""Characters. What is shorter turns up by chance."""
_FEWEST_KINDS = 3  # different characters: rulers, zeros and dots are no secrets
_COMMON = frozenset(
    """
    0.0.0.0 123123 123456 1234567 12345678 123456789 1234567890 127.0.0.1 abc123 admin123 administrator
    application approved branch cancel canceled cancelled changed changeme commit completed config container
    credentials custom database debugging default deploy deployment develop developer development disable
    disabled docker enable enabled encrypted errors example example.com failed failure github gitlab google
    hidden information inherit integration latest letmein library localhost master memory missing namespace
    nothing object passed passphrase password password1 password123 plaintext postgres postgresql preview
    private product production profile project public qwerty qwerty123 readonly registry release removed
    repository required running sandbox secret secrets security server service session staging started status
    stderr stdout stopped string succeeded success system testing tokens trusted undefined unknown update
    upload username version warning warnings windows workspace
    """.split()  # noqa: SIM905 - a list of words reads best as words
)


def is_plain(value: str) -> bool:
    """Whether a value, stripped of white space and quotes, is too short or too common to be masked."""
    return len(value) < SHORTEST or len(set(value)) < _FEWEST_KINDS or value.casefold() in _COMMON
