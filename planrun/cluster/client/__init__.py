"""The process that speaks to Dask; planrun/entry.py starts it, and nothing imports it."""
