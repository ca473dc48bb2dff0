"""The scheduler: the event loop that runs a plan."""
