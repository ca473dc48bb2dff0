"""From a step to a Job, one file per kind of action."""
