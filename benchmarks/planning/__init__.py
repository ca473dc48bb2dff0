"""Searches measured against optimal planners: validity, cost, replans, expected cost, growth."""
