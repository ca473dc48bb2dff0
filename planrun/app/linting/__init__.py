"""Advice about plans that are valid: what a reviewer would ask, found by exact rules, each with a code."""
