"""`planrun doctor`: what this machine, folder and environment offer."""
