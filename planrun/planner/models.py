"""The model of a run and its budget: from the plan, the command line, the environment, and the table of prices.

An option replaces the plan's limit, and stays in force when the run is resumed, until it is given again. Under
`--policy` or `--locked` it can only lower the plan's limit: a higher one must be reviewed.
"""

from __future__ import annotations

import os
from importlib.machinery import PathFinder

from planrun.actions.environment import holds_credential
from planrun.errors import InvalidInput
from planrun.llm.budget import UNITS, Budget
from planrun.llm.credentials import (
    NO_LIBRARY,
    SECRETS,
    AddressError,
    credential_texts,
    endpoint_of,
    is_plain_network,
)
from planrun.llm.entries import ENDINGS
from planrun.llm.prices import open_prices
from planrun.llm.process import ModelProcess
from planrun.llm.recordings import RecordingDirectory, RecordingModel, ReplayModel, entries
from planrun.model.planning import Llm
from planrun.model.record import Record
from planrun.secrets.masker import PROVIDER_KEYS, Masker, known_secrets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.llm.prices import PriceTable
    from planrun.model.plan import Limits
    from planrun.model.planning import Planning
    from planrun.settings import Settings

RESOURCES = ("tokens", "usd", "turns")
PER_RUN = "plan"
"""The scope of the budget of a whole run."""


class Spending(Record):
    """The limits in force by resource, which of them the command line gave, and the prices of tokens."""

    limits: Mapping[str, float]
    given: Mapping[str, float] = {}
    prices: PriceTable | None = None
    notes: tuple[str, ...] = ()  # for the user: the limit in force where an option asked for more

    def recorded(self) -> dict[str, Any]:
        """Return the limits as the ledger records them."""
        table = self.prices.recorded() if self.prices else None
        found = {"limits": dict(self.limits), "given": dict(self.given), "prices": table}
        return {**found, "notes": list(self.notes)} if self.notes else found

    def budget(self, planning: Planning | None = None) -> Budget:
        """Return the budget of a run; `planning` has what it spent, None: nothing yet."""
        used = {name: planning.used(name) for name in RESOURCES} if planning else {}
        crossed = planning.crossed if planning else ()
        return Budget(PER_RUN, self.limits, used, crossed, self.prices)

    def refuse_unpriced(self, model: str) -> None:
        """Raise InvalidInput when US dollars are limited and the price of the model is unknown."""
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
    """Return the limits of a run from those of its plan.

    `kept`: what the run recorded when it was last started; `is_bound`: the reviewed limits cannot be exceeded.
    Raises InvalidInput, and InvalidPlan for the table of prices, which must be the recorded one unless named.
    """
    kept = kept or {}
    values = {"tokens": settings.max_tokens, "usd": settings.max_usd, "turns": settings.max_turns}
    asked = {**kept.get("given", {}), **{name: value for name, value in values.items() if value is not None}}
    result: dict[str, float] = {}
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
            result[name] = float(value)
    table = open_prices(settings.llm_prices) if settings.llm_prices else _table_on_record(kept)
    return Spending(limits=result, given=asked, prices=table, notes=tuple(notes))


def spending_on_record(options: Mapping[str, Any]) -> Spending:
    """Return the limits that a run recorded among its options; raises InvalidInput, InvalidPlan."""
    known: Mapping[str, Any] = options.get("budget") or {}
    table = _table_on_record(known)
    return Spending(limits=known.get("limits", {}), given=known.get("given", {}), prices=table)


def _table_on_record(known: Mapping[str, Any]) -> PriceTable:
    """Return the prices that a run used; raises InvalidInput when their file has changed.

    Steps can write to it: lower prices would raise the limit in dollars unnoticed.
    """
    kept = known.get("prices") or {}
    table = open_prices(kept.get("file", ""))
    if table.file and table.digest != kept.get("sha256"):
        raise InvalidInput(
            f"the prices in {table.file} are not those that the run went by any more; --llm-prices FILE names a table "
            "for the rest of it"
        )
    return table


if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from planrun.llm.credentials import Endpoint
    from planrun.model.planning import Planning
    from planrun.ports import Model
    from planrun.settings import Settings

    Mask = Callable[[str], str]


class RecordingOptions(Record):
    """The data of a run for a recording or a replay.

    `mask` hides its secrets in recordings; credentials of the environment are always hidden. `planning`: its previous
    calls, which a replay does not answer again.
    """

    mask: Mask | None = None
    planning: Planning | None = None


# The fields of a request that planrun sets, checks, and uses for prices.
_OWN_FIELDS = frozenset(
    (
        "model",
        "messages",
        "system",
        "max_tokens",
        "stream",
        "tools",
        "tool_choice",
        "output_config",
        "mcp_servers",
    )
)
NO_RECORDING_OPTIONS = RecordingOptions()
"""The options outside of a run."""


def llm_of(settings: Settings, llm: Llm | None) -> Llm:
    """Return the plan's `llm`, or the defaults, with the model that the caller names."""
    llm = llm or Llm()
    return llm.but(model=settings.llm_model) if settings.llm_model else llm


def why_no_model(settings: Settings, llm: Llm | None, environ: Mapping[str, str] = os.environ) -> str:
    """Return in one line why no model can be called; empty when one can.

    A recording needs neither credentials nor the library that calls models.
    """
    unnamed = _unnamed(settings, llm_of(settings, llm))
    if unnamed or settings.llm_replay:
        return unnamed
    if lacking := _endpoint(settings, environ).lacking:
        return lacking
    # Not imported: the library takes seconds to load, and only the worker process needs it.
    return "" if PathFinder.find_spec("anthropic") else NO_LIBRARY


def open_model(
    settings: Settings,
    llm: Llm | None = None,
    environ: Mapping[str, str] = os.environ,
    *,
    wake: int = -1,
    recording: RecordingOptions = NO_RECORDING_OPTIONS,
) -> Model:
    """Return the model to ask; its process starts here and loads its libraries while the question is written.

    A replay has no process. `wake`: a descriptor that ends a wait for an answer when it becomes readable. Without
    credentials every answer is `unauthorized`; see `why_no_model`. Raises InvalidInput when no model may be asked or
    none is named, for an invalid address and an unreadable recording, RecordsLost for a recording that cannot be
    written.
    """
    if unnamed := _unnamed(settings, llm_of(settings, llm)):
        raise InvalidInput(unnamed)
    _refuse_both(settings)
    if own := sorted(_OWN_FIELDS & llm_of(settings, llm).extra_body.keys()):
        raise InvalidInput(f"llm.extra_body may not set {', '.join(own)}: planrun does")
    if settings.llm_replay:
        planning = recording.planning
        calls = planning.calls if planning else []
        served = [call.asked.request for call in calls if call.answered and call.answered.ending in ENDINGS]
        return ReplayModel(settings.llm_replay, _hiding(recording.mask, environ), served)
    mask = _hiding(recording.mask, environ)
    model = ModelProcess(_endpoint(settings, environ), wake=wake, mask=mask)
    opened: Model = model
    if settings.llm_record:
        opened = RecordingModel(model, settings.llm_record, mask)
    model.start()
    return opened


def insecure(settings: Settings, environ: Mapping[str, str] = os.environ) -> str:
    """Return a warning, in one line, if credentials and questions cross a network unencrypted; else nothing."""
    if settings.llm_replay:
        return ""
    address = _endpoint(settings, environ).base_url
    if not is_plain_network(address):
        return ""
    return f"warning: {address} is not encrypted: others on the network can read the credentials and all that is asked"


def check_recording(settings: Settings) -> None:
    """Raise the errors of `open_model` about a recording before anything starts: InvalidInput, RecordsLost."""
    _refuse_both(settings)
    if settings.llm_replay:
        entries(settings.llm_replay)
    elif settings.llm_record:
        RecordingDirectory(settings.llm_record).close()


def _refuse_both(settings: Settings) -> None:
    if settings.llm_replay and settings.llm_record:
        raise InvalidInput("--llm-record and --llm-replay exclude each other: what is replayed is recorded")


def _hiding(mask: Mask | None, environ: Mapping[str, str]) -> Mask:
    """Return a mask for the credentials of an environment, combined with `mask`."""
    known = known_secrets((*PROVIDER_KEYS, *SECRETS), environ)[0]
    known |= {name: value for name, value in environ.items() if value and holds_credential(name)}
    known |= credential_texts(environ)
    own = Masker(known).mask_text
    return own if mask is None else lambda text: own(mask(text))


def _unnamed(settings: Settings, llm: Llm) -> str:
    if settings.no_llm:
        return "--no-llm or PLANRUN_NO_LLM turns models off"
    if not llm.enabled:
        return "the plan sets llm.enabled: false"
    return "" if llm.model else "no model is named: give --llm-model, or llm.model in the plan"


def _endpoint(settings: Settings, environ: Mapping[str, str]) -> Endpoint:
    try:
        return endpoint_of(settings.llm_base_url, environ)
    except AddressError as error:
        raise InvalidInput(f"--llm-base-url or ANTHROPIC_BASE_URL: {error}") from None
