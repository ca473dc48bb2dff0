"""A queue of plans that run by priority, age and dependence."""
