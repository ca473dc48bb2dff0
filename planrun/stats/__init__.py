"""Statistics over many runs, folded from their ledgers."""
