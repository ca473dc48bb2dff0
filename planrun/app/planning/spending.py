"""What a run may spend on models: the limits of its plan and of the command line, and the table of prices.

An option holds in place of what the plan says, and goes on holding when the run is resumed, until it is given anew.
Under `--policy` or `--locked` it can only lower what the plan says: more has to be reviewed.
"""

from __future__ import annotations

from planrun.errors import InvalidInput
from planrun.llm.budget import UNITS, Budget
from planrun.llm.prices import open_prices
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.llm.prices import PriceTable
    from planrun.model.plan import Limits
    from planrun.model.planning import Planning

RESOURCES = ("tokens", "usd", "turns")
PER_RUN = "plan"
"""The scope of what a whole run may spend."""


class Spending(Record):
    """The limits in force by resource, which of them the command line gave, and what tokens cost."""

    limits: Mapping[str, float]
    given: Mapping[str, float] = {}
    prices: PriceTable | None = None
    notes: tuple[str, ...] = ()  # for people: what holds where an option asked for more

    def recorded(self) -> dict[str, Any]:
        """Return what the ledger says of it."""
        table = self.prices.recorded() if self.prices else None
        return {"limits": dict(self.limits), "given": dict(self.given), "prices": table}

    def budget(self, planning: Planning | None = None) -> Budget:
        """Return the budget of a run that has spent what `planning` says; None: nothing yet."""
        used = {name: planning.used(name) for name in RESOURCES} if planning else {}
        told = planning.crossed if planning else ()
        return Budget(PER_RUN, self.limits, used, told, self.prices)

    def refuse_unpriced(self, model: str) -> None:
        """Raise InvalidInput when US dollars are limited and nobody knows what a model costs."""
        if "usd" not in self.limits or (self.prices and model in self.prices.models):
            return
        table = f"the prices of {self.prices.as_of}" if self.prices else "any table of prices"
        raise InvalidInput(
            f'max_usd limits what models may cost, and "{model}" is not in {table}: name a table that has it by '
            "--llm-prices FILE or PLANRUN_LLM_PRICES, or limit tokens (max_tokens) instead"
        )


def spending(
    limits: Limits, given: Mapping[str, float], kept: Mapping[str, Any], prices: str = "", *, is_bound: bool
) -> Spending:
    """Return what may be spent.

    `given`: by options, by resource; `kept`: what the run recorded when it was last started; `prices`: the file of a
    table; `is_bound`: what was reviewed is not to be exceeded. Raises InvalidInput, InvalidPlan for the table.
    """
    asked = {**kept.get("given", {}), **given}
    found, notes = {}, []
    for name in RESOURCES:
        planned: float | None = getattr(limits, f"max_{name}")
        value = asked.get(name, planned)
        if is_bound and planned is not None and value is not None and value > planned:
            option, unit = f"--max-{name}", UNITS[name]
            notes.append(
                f"{option} {value:g} is more than the {planned:g} {unit} of the plan, which hold: "
                "under --policy and --locked only the plan can be given more"
            )
            value = planned
        if value is not None:
            found[name] = float(value)
    table = open_prices(prices or (kept.get("prices") or {}).get("file", ""))
    return Spending(limits=found, given=asked, prices=table, notes=tuple(notes))
