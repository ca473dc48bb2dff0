"""GitHub workflows as plans."""
