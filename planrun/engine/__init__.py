"""The one loop that runs a plan."""
