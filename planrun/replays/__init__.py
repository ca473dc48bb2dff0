"""Replay of a recorded run with the real scheduler: as recorded, or with another plan or policy."""
