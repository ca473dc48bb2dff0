"""Masking of secrets in every form in which a step may print them."""
