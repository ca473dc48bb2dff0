"""Results of steps, kept by what they depend on: entries, and the bytes of files by their sha256."""
