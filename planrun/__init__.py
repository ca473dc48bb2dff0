"""planrun runs a reviewed plan in CI."""

__version__ = "0.1.0"
