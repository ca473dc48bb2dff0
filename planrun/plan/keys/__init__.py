"""What each key of a plan means: its checks and its compiled form."""
