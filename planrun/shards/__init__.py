"""Split a plan over several machines, and merge what they report into one verdict."""
