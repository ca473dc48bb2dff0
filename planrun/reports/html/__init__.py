"""The HTML report: one file without scripts, readable from a disk, as an artifact and under a strict CSP."""
