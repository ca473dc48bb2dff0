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

    from planrun.app.settings import Settings
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
        found = {"limits": dict(self.limits), "given": dict(self.given), "prices": table}
        return {**found, "notes": list(self.notes)} if self.notes else found

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
    limits: Limits, settings: Settings, kept: Mapping[str, Any] | None = None, *, is_bound: bool = False
) -> Spending:
    """Return what may be spent under the limits of a plan.

    `kept`: what the run recorded when it was last started; `is_bound`: what was reviewed is not to be exceeded.
    Raises InvalidInput, InvalidPlan for the table of prices, which is not to be another one than before unless named.
    """
    kept = kept or {}
    asked = {**kept.get("given", {}), **_given(settings)}
    found: dict[str, float] = {}
    notes = []
    for name in RESOURCES:
        planned: float | None = getattr(limits, f"max_{name}")
        value = asked.get(name, planned)
        if is_bound and planned is not None and value is not None and value > planned:
            notes.append(
                f"--max-{name} {value:g} is more than the {planned:g} {UNITS[name]} of the plan, which hold: "
                "under --policy and --locked only the plan can be given more"
            )
            value = planned
        if value is not None:
            found[name] = float(value)
    table = open_prices(settings.llm_prices) if settings.llm_prices else _table_on_record(kept)
    return Spending(limits=found, given=asked, prices=table, notes=tuple(notes))


def spending_on_record(options: Mapping[str, Any]) -> Spending:
    """Return what may be spent as a run recorded it among its options; raises InvalidInput, InvalidPlan."""
    known: Mapping[str, Any] = options.get("budget") or {}
    table = _table_on_record(known)
    return Spending(limits=known.get("limits", {}), given=known.get("given", {}), prices=table)


def _table_on_record(known: Mapping[str, Any]) -> PriceTable:
    """Return the prices that a run went by; raises InvalidInput when their file says something else by now.

    Steps can write to it: cheaper prices would lift the limit in dollars unseen.
    """
    kept = known.get("prices") or {}
    table = open_prices(kept.get("file", ""))
    if table.file and table.digest != kept.get("sha256"):
        raise InvalidInput(
            f"the prices in {table.file} are not those that the run went by any more; --llm-prices FILE names a table "
            "for the rest of it"
        )
    return table


def _given(settings: Settings) -> dict[str, float]:
    """Return what the command line limits, by resource."""
    values = {"tokens": settings.max_tokens, "usd": settings.max_usd, "turns": settings.max_turns}
    return {name: value for name, value in values.items() if value is not None}
