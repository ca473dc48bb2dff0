"""Agents: steps in which a model works with tools."""
