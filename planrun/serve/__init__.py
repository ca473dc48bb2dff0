"""`planrun serve`: the runs of a folder as pages on this machine."""
