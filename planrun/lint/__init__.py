"""Advice about valid plans."""
