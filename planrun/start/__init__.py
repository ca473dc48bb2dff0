"""`planrun init` and `planrun schema`."""
