"""`--dry-run`: what this invocation would run, in which order, with which decisions; nothing starts or is written."""
