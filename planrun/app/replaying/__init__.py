"""A run played again from its ledger by the real loop, as it was or as it would be; nothing is run or written."""
