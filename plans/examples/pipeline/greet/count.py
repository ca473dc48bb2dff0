"""What there is to count in a greeting."""


def letters(text: str) -> int:
    """Return how many letters a text has."""
    return sum(letter.isalpha() for letter in text)
