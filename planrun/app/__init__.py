"""The wiring: the only package that imports all layers, with one module per use case of the command line."""
