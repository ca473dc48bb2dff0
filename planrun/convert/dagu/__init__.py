"""Dagu files as plans."""
