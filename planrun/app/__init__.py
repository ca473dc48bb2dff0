"""The wiring: the only room that knows every other one, one file per thing the command line can ask for."""
