"""Tables of prices: planrun's own, what calls cost by it, and what is refused in a table of somebody's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest

from planrun.errors import InvalidInput, InvalidPlan
from planrun.llm.prices import open_prices, prices_in
from planrun.model.call import Usage

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """\
version: 1
as_of: 2026-01-31
source: our contract
models:
  house-model: {input: 1, output: 2, cache_read: 0.1, cache_write: 1.25}
"""


def test_our_own_table_is_dated_and_names_its_source() -> None:
    """Who reads a cost can look up what it was reckoned with."""
    table = open_prices()
    assert table.recorded() == {
        "as_of": "2026-10-09",
        "source": "the provider's price page, the pages of its models, and its release notes",
        "file": "",
        "sha256": table.digest,
    }
    assert len(table.digest) == 64


def test_every_model_of_our_table_is_one_that_the_sdk_names() -> None:
    """No row is there for a model that cannot be asked; the newest ones may be missing."""
    from anthropic.types.model import Model

    named = {name for each in get_args(Model) for name in get_args(each)}
    assert set(open_prices().models) <= named


def test_every_kind_of_token_has_its_price() -> None:
    """A million of each."""
    cost = open_prices().cost
    assert cost("claude-opus-5-5", Usage(input_tokens=1_000_000)) == 4
    assert cost("claude-opus-5-5", Usage(output_tokens=1_000_000)) == 20
    assert cost("claude-opus-5-5", Usage(cache_read_tokens=1_000_000)) == 0.2
    assert cost("claude-opus-5-5", Usage(cache_write_tokens=1_000_000)) == 5
    assert cost("claude-opus-5-5", Usage()) == 0
    assert cost("nobody", Usage(input_tokens=1)) is None


def test_long_prompts_can_be_dearer() -> None:
    """The whole call has the higher price, its answer too, from one token above; what is cached counts."""
    table = open_prices()
    assert table.cost("claude-haiku-5-5", Usage(input_tokens=100_000, output_tokens=1000)) == 0.0105
    assert table.cost(
        "claude-haiku-5-5", Usage(input_tokens=1, cache_read_tokens=100_000, output_tokens=1000)
    ) == pytest.approx(0.0075005)
    assert table.most("claude-haiku-5-5", 100_001, 1000) == pytest.approx(0.065000625)


def test_what_is_reserved_is_never_less_than_what_is_counted() -> None:
    """Whatever part of a prompt is new, read from the cache or put there."""
    table = open_prices()
    for name in table.models:
        for usage in (
            Usage(input_tokens=777, output_tokens=333),
            Usage(cache_read_tokens=777, output_tokens=333),
            Usage(cache_write_tokens=777, output_tokens=333),
        ):
            most, cost = table.most(name, 777, 333), table.cost(name, usage)
            assert most is not None
            assert cost is not None
            assert most >= cost > 0


def test_a_table_of_ones_own_takes_its_place(tmp_path: Path) -> None:
    """YAML or JSON; its name is on record."""
    path = tmp_path / "prices.yml"
    path.write_text(GOOD)
    table = open_prices(str(path))
    assert table.cost("house-model", Usage(output_tokens=500_000)) == 1
    assert table.cost("claude-opus-5-5", Usage(input_tokens=1)) is None
    assert table.recorded()["file"] == str(path)
    json = b'{"version": 1, "as_of": "2026-01-31", "source": "x", "models": {}}'
    assert prices_in(json, "p.json").models == {}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("version: 1", "version: 2", '1:10: E106 "version" must be 1: other versions are not supported'),
        ("2026-01-31", "2026-02-31", '2:8: E106 "as_of" is a day, such as 2026-01-31'),
        ("source: our contract\n", "", '1:1: E102 a table of prices needs "source"'),
        ("output: 2", "output: two", '5:35: E106 "output" is a number of US dollars for a million tokens'),
        ("output: 2", "output: -2", '5:35: E106 "output" is a number of US dollars for a million tokens'),
        ("output: 2", "outputs: 2", '5:16: E102 "house-model" needs "output"'),
        ("1.25}", "1.25, above: {prompt: 0}}", '5:81: E102 "house-model.above" needs "input"'),
        ("{input", "[input", "5:16: E010 unclosed list: expected `,` or `]`"),
    ],
)
def test_what_is_wrong_with_a_table_is_told_with_its_place(old: str, new: str, told: str) -> None:
    """File, line and column, and every problem at once."""
    with pytest.raises(InvalidPlan) as found:
        prices_in(GOOD.replace(old, new).encode(), "prices.yml")
    rows = [f"{each.line}:{each.col}: {each.code} {each.message}" for each in found.value.problems]
    assert told in rows


def test_a_table_that_cannot_be_read_is_an_error_for_people(tmp_path: Path) -> None:
    """No traceback, exit code 2."""
    with pytest.raises(InvalidInput, match=r"cannot read prices from .*nowhere\.yml: No such file"):
        open_prices(str(tmp_path / "nowhere.yml"))
    with pytest.raises(InvalidInput, match="cannot read prices from /dev/zero: it is a device"):
        open_prices("/dev/zero")
