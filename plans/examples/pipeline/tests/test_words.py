"""Greetings are polite."""

import unittest

from greet.words import greeting


class Words(unittest.TestCase):
    """What is said."""

    def test_it_names_whom_it_greets(self) -> None:
        """The name stands in the greeting."""
        assert "you" in greeting("you")
