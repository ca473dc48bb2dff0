"""Who may start: rules and levels, weighed against what a step would do."""
