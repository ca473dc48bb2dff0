"""The bytes of a file as nodes with line and column."""
