"""Plans that a model writes: for review, or during a run within the reviewer's limits."""
