"""Statements about a run in the form of in-toto: its test results, and where the files that it made come from."""
