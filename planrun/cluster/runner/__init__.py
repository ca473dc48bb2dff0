"""The process beside a Dask worker that runs steps; it is started by its path, and nothing imports it."""
