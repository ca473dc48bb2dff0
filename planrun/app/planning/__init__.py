"""Plans that a model writes: for review, or during a run inside the limits that a reviewer set."""
