"""`--watch`: runs a plan again whenever its files change."""
