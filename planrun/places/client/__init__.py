"""The process that speaks to object stores: planrun/entry.py starts it, and nothing imports it."""
