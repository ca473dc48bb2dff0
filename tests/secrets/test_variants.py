"""The forms of a secret: what belongs to them, and what would mask too much."""

from __future__ import annotations

import base64
import random
import string

import pytest

from planrun.secrets.encodings import is_plain, variants

CHANCE = random.Random(3)
KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG\n9w0BAQEFAASC\nab12\n-----END PRIVATE KEY-----\n"


def token(length: int) -> str:
    """Return letters and digits."""
    return "".join(CHANCE.choice(string.ascii_letters + string.digits) for _ in range(length))


@pytest.mark.parametrize("length", range(6, 30))
def test_base64_is_known_amid_any_bytes_by_what_the_secret_alone_decides(length: int) -> None:
    """For any bytes before and after, one form is part of the base64, and reaches all but two characters."""
    value = token(length)
    forms = variants(value)
    for before in range(5):
        for after in range(5):
            whole = base64.b64encode(CHANCE.randbytes(before) + value.encode() + CHANCE.randbytes(after))
            longest = max((form for form in forms if form in whole), key=len)
            assert len(longest) >= (len(value) * 8 - 10) // 6


def test_a_form_of_base64_holds_nothing_of_its_neighbours() -> None:
    """Other secrets' base64 would be masked by too long an end; without an end the last letters would show."""
    forms = variants("Zq8-xVt2")
    assert b"WnE4LXhWdD" in forms  # 64 bits in ten characters, four bits open
    assert b"WnE4LXhWdDI=" in forms
    assert b"WnE4LXhWdDI" in forms
    assert not [form for form in forms if form.startswith(b"WnE4LXhWdDI") and len(form) > 12]


def test_an_ordinary_token_has_few_forms() -> None:
    """Nobody escapes letters and digits."""
    assert len(variants(token(40))) < 60


def test_every_line_of_a_key_is_a_form_but_what_all_keys_share() -> None:
    """The lines around it are everybody's, and the last one is too short alone."""
    forms = variants(KEY)
    assert {b"MIIEvQIBADANBgkqhkiG", b"9w0BAQEFAASC", KEY.strip().encode()} <= forms
    assert not {b"-----BEGIN PRIVATE KEY-----", b"ab12"} & forms


def test_a_key_written_in_one_line_is_known_with_its_lines() -> None:
    r"""Where `\n` stands for a newline, tools print newlines."""
    assert {b"MIIEvQIBADANBgkqhkiG", b"9w0BAQEFAASC"} <= variants(KEY.replace("\n", "\\n"))


def test_quotes_and_white_space_around_a_value_do_not_hide_it() -> None:
    """Who copies a value with its quotes means what is between them."""
    assert b"s3cr3t value" in variants(" 's3cr3t value'\n") & variants('"s3cr3t value"') & variants(
        "s3cr3t value"
    )


@pytest.mark.parametrize("value", ["s3cr3", "true", " 'production' ", "--------", "ababab", "Password"])
def test_plain_values_have_no_forms(value: str) -> None:
    """Too short, too common, or of two characters."""
    assert variants(value) == frozenset()
    assert is_plain(value.strip(" '"))


def test_no_form_is_too_short() -> None:
    """A line or an encoding of five characters would be found anywhere."""
    values = [token(6), KEY, "a b c d e f", "ü" * 5 + "éa", "x\ny\nz\nlong enough"]
    assert all(len(form) >= 6 for value in values for form in variants(value))
