"""From YAML text to a Plan, or to every problem in it."""
