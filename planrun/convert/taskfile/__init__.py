"""Taskfiles (go-task, version 3) as plans."""
