"""Everything people and CI systems read, as pure functions of a run's state and logs."""
