"""The process that speaks to Dask; it is started by its path, and nothing imports it."""
