"""The process that sends the spans of a run while it runs; nothing imports it."""
