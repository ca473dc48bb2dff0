"""Plain frozen data and pure functions: no clock, files, processes or libraries."""
