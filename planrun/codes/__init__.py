"""The page of each problem code, as docs/errors.md and docs/lint.md have it: found, and shown on a terminal."""
