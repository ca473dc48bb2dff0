"""The logs of the steps of a run: printed after it, and followed while it runs."""
