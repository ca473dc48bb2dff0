"""Policies, gates, answers, approval files and the control socket."""
