"""The process beside a Dask worker that runs steps; planrun/entry.py starts it, and nothing imports it."""
