"""Letters are counted."""

import unittest

from greet.count import letters


class Count(unittest.TestCase):
    """What is counted."""

    def test_signs_are_no_letters(self) -> None:
        """Blanks and signs do not count."""
        assert letters("a, b!") == 2
