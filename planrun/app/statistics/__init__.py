"""What many runs add up to: read from their ledgers, one after the other, and told as figures."""
