"""The short form of the proof that credentials of a model which are sent back are nowhere printed or written."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from proofs import sentback

if TYPE_CHECKING:
    from tests.conftest import Command


def test_errors_of_the_service_show_no_credentials(planrun: Command, seed: int) -> None:
    """Two of the forms in errors; the long form takes all."""
    for form in random.Random(seed).sample(sorted(sentback.FORMS), 2):
        sentback.error_shows_no_credentials(planrun, form)


def test_records_of_a_run_hold_no_credentials(planrun: Command, seed: int) -> None:
    """Two of the forms in runs in which a planning fails."""
    for form in random.Random(seed + 1).sample(sorted(sentback.FORMS), 2):
        sentback.records_hold_no_credentials(planrun, form)


def test_an_answer_that_holds_the_key_puts_none_into_the_plan(planrun: Command) -> None:
    """Every form in a plan that is made of one answer."""
    sentback.answer_puts_none_into_the_plan(planrun, *sentback.FORMS)


def test_the_proof_can_fail() -> None:
    """A piece of the key is found in whatever form it stands."""
    for name, form in sentback.FORMS.items():
        assert name in sentback.traces(f"before {form(sentback.KEY)} behind"), name
