"""The queue of a workspace: plans that run one after another, or some at once, by priority, age and dependence."""
