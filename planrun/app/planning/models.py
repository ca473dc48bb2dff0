"""Which model is asked, where, and by whom: what the command line, the environment and the plan say of it, together."""

from __future__ import annotations

import os

from planrun.errors import InvalidInput
from planrun.llm.credentials import AddressError, endpoint_of
from planrun.model.llm import Llm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from planrun.app.settings import Settings
    from planrun.llm.credentials import Endpoint
    from planrun.ports import Model


def llm_of(settings: Settings, llm: Llm | None) -> Llm:
    """Return the plan's `llm`, or the defaults, with the model that the caller names."""
    llm = llm or Llm()
    return llm.but(model=settings.llm_model) if settings.llm_model else llm


def why_no_model(settings: Settings, llm: Llm | None, environ: Mapping[str, str] = os.environ) -> str:
    """Return in one line why no model can be asked; empty when one can. A recording needs no credentials."""
    unnamed = _unnamed(llm_of(settings, llm))
    return unnamed or ("" if settings.llm_replay else _endpoint(settings, environ).lacking)


def open_model(
    settings: Settings, llm: Llm | None = None, environ: Mapping[str, str] = os.environ, *, wake: int = -1
) -> Model:
    """Return the model to ask; its process starts with the first question, or with `start`.

    `wake`: a descriptor that ends a wait for an answer when it can be read. Without credentials every answer is
    `unauthorized`; see `why_no_model`. Raises InvalidInput when no model may be asked or none is named, and for an
    address that is none.
    """
    if unnamed := _unnamed(llm_of(settings, llm)):
        raise InvalidInput(unnamed)
    from planrun.llm.process import ModelProcess

    return ModelProcess(_endpoint(settings, environ), wake=wake)


def _unnamed(llm: Llm) -> str:
    if not llm.enabled:
        return "the plan says llm.enabled: false"
    return "" if llm.model else "no model is named: give --llm-model, or llm.model in the plan"


def _endpoint(settings: Settings, environ: Mapping[str, str]) -> Endpoint:
    try:
        return endpoint_of(settings.llm_base_url, environ)
    except AddressError as error:
        raise InvalidInput(f"--llm-base-url or ANTHROPIC_BASE_URL: {error}") from None
