"""A recorded run, run again by the real loop: as it was, or with another plan or policy."""
