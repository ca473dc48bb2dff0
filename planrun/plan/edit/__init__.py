"""Edits of a plan's text that leave every other byte as it is."""
