"""Which model is asked, where, and by whom: what the command line, the environment and the plan say of it, together."""

from __future__ import annotations

import os

from planrun.errors import InvalidInput
from planrun.llm.credentials import SECRETS, AddressError, credential_texts, endpoint_of, is_plain_network
from planrun.model.llm import Llm
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from planrun.app.settings import Settings
    from planrun.llm.credentials import Endpoint
    from planrun.model.planning import Planning
    from planrun.ports import Model

    Mask = Callable[[str], str]


class Taping(Record):
    """What a recording or a replay has to know of a run.

    `mask` hides its secrets in what is recorded; credentials of the environment are hidden anyway. `planning`: what it
    asked before, which a replay does not answer again.
    """

    mask: Mask | None = None
    planning: Planning | None = None


# Of a request: what planrun itself decides, checks and pays by.
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
NO_LIBRARY = (
    "anthropic is not installed: pip install anthropic; in the GitHub Action set the input `llm: true`"
)
UNTOLD = Taping()
"""Nothing is known of a run, or there is none."""


def llm_of(settings: Settings, llm: Llm | None) -> Llm:
    """Return the plan's `llm`, or the defaults, with the model that the caller names."""
    llm = llm or Llm()
    return llm.but(model=settings.llm_model) if settings.llm_model else llm


def why_no_model(settings: Settings, llm: Llm | None, environ: Mapping[str, str] = os.environ) -> str:
    """Return in one line why no model can be asked; empty when one can.

    A recording needs neither credentials nor the library that calls models.
    """
    unnamed = _unnamed(settings, llm_of(settings, llm))
    if unnamed or settings.llm_replay:
        return unnamed
    if lacking := _endpoint(settings, environ).lacking:
        return lacking
    from importlib.machinery import PathFinder

    # Only looked for: the library takes seconds to load, which is the business of the process that calls.
    return "" if PathFinder.find_spec("anthropic") else NO_LIBRARY


def open_model(
    settings: Settings,
    llm: Llm | None = None,
    environ: Mapping[str, str] = os.environ,
    *,
    wake: int = -1,
    taping: Taping = UNTOLD,
) -> Model:
    """Return the model to ask; its process is started here and loads what it needs while the question is written.

    With a replay there is none. `wake`: a descriptor that ends a wait for an answer when it can be read. Without
    credentials every answer is `unauthorized`; see `why_no_model`. Raises InvalidInput when no model may be asked or
    none is named, for an address that is none and a recording that cannot be read, RecordsLost for one that cannot be
    written.
    """
    if unnamed := _unnamed(settings, llm_of(settings, llm)):
        raise InvalidInput(unnamed)
    _refuse_both(settings)
    if own := sorted(_OWN_FIELDS & llm_of(settings, llm).extra_body.keys()):
        raise InvalidInput(f"llm.extra_body may not set {', '.join(own)}: planrun does")
    if settings.llm_replay:
        from planrun.llm.tapes import Player

        return Player(settings.llm_replay, _hiding(taping.mask, environ), _served(taping.planning))
    from planrun.llm.process import ModelProcess

    mask = _hiding(taping.mask, environ)
    model = ModelProcess(_endpoint(settings, environ), wake=wake, mask=mask)
    opened: Model = model
    if settings.llm_record:
        from planrun.llm.tapes import Recorder

        opened = Recorder(model, settings.llm_record, mask)
    model.start()
    return opened


def insecure(settings: Settings, environ: Mapping[str, str] = os.environ) -> str:
    """Return a warning, in one line, where credentials and questions cross a network unencrypted; else nothing."""
    if settings.llm_replay:
        return ""
    address = _endpoint(settings, environ).base_url
    if not is_plain_network(address):
        return ""
    return f"warning: {address} is not encrypted: others on the network can read the credentials and all that is asked"


def check_recording(settings: Settings) -> None:
    """Raise what `open_model` would of a recording, before anything starts: InvalidInput, RecordsLost."""
    _refuse_both(settings)
    if settings.llm_replay:
        from planrun.llm.shelf import entries

        entries(settings.llm_replay)
    elif settings.llm_record:
        from planrun.llm.shelf import Shelf

        Shelf(settings.llm_record).close()


def _refuse_both(settings: Settings) -> None:
    if settings.llm_replay and settings.llm_record:
        raise InvalidInput("--llm-record and --llm-replay exclude each other: what is replayed is recorded")


def _hiding(mask: Mask | None, environ: Mapping[str, str]) -> Mask:
    """Return what hides the credentials of an environment, and what `mask` does."""
    from planrun.secrets.known import PROVIDER_KEYS, known_secrets
    from planrun.secrets.masker import Masker
    from planrun.steps.environment import holds_credential

    known = known_secrets((*PROVIDER_KEYS, *SECRETS), environ)[0]
    known |= {name: value for name, value in environ.items() if value and holds_credential(name)}
    known |= credential_texts(environ)
    own = Masker(known).mask_text
    return own if mask is None else lambda text: own(mask(text))


def _served(planning: Planning | None) -> list[str]:
    """Return the keys of the requests that a run had recorded answers to, in order."""
    from planrun.llm.entries import ENDINGS

    calls = planning.calls if planning else []
    return [call.asked.request for call in calls if call.answered and call.answered.ending in ENDINGS]


def _unnamed(settings: Settings, llm: Llm) -> str:
    if settings.no_llm:
        return "--no-llm or PLANRUN_NO_LLM says that none is asked"
    if not llm.enabled:
        return "the plan says llm.enabled: false"
    return "" if llm.model else "no model is named: give --llm-model, or llm.model in the plan"


def _endpoint(settings: Settings, environ: Mapping[str, str]) -> Endpoint:
    try:
        return endpoint_of(settings.llm_base_url, environ)
    except AddressError as error:
        raise InvalidInput(f"--llm-base-url or ANTHROPIC_BASE_URL: {error}") from None
