"""From a step to a Job, one module per kind of action."""
