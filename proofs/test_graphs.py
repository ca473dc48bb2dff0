"""The short form of the proof that steps and runs end as the rules about edges, tolerance and recovery say."""

from __future__ import annotations

import itertools
import random

import pytest

from proofs import graphs


def test_every_graph_of_up_to_three_steps_ends_as_the_rules_say() -> None:
    """8,000 graphs of three steps, each kind of edge, each end and each way of tolerating it."""
    small = itertools.chain.from_iterable(map(graphs.graphs, (1, 2, 3)))
    assert graphs.prove(small) == (4 + 80 + 8000, [])


def test_recovery_ends_as_the_rules_say(seed: int) -> None:
    """A handler that recovers a failure, with dependents that look at the failure, the handler or both."""
    assert graphs.prove(graphs.drawn_recoveries(3000, seed)) == (3000, [])


def test_graphs_of_four_steps_end_as_the_rules_say(seed: int) -> None:
    """A few of the four million; the long form takes 300,000."""
    assert graphs.prove(graphs.drawn(3000, seed)) == (3000, [])


def test_edges_between_instances_are_judged_before_conditions_and_selection(seed: int) -> None:
    """A step that is skipped hides no failure of the instances that its own instances would have waited for."""
    some = random.Random(seed).sample(list(graphs.instances()), 750)
    assert graphs.prove_instances(some) == (750, [])


@pytest.mark.parametrize("fault", graphs.FAULTS)
def test_the_proof_can_fail(fault: str, seed: int) -> None:
    """An engine that understands edges or recovery otherwise is found out."""
    assert graphs.prove(graphs.drawn_recoveries(300, seed), fault)[1] != []
