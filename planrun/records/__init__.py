"""The run directory, its ledger and its lock."""
