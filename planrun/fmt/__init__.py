"""The canonical layout of plan files: indentation, blank lines, key order and quotes, with every comment kept."""
