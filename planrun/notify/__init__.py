"""Notifications of a run, sent by planrun outside of the steps."""
