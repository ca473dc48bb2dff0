"""`planrun show`: a plan as a table, a graph or markdown."""
