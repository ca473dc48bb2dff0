"""From a checked tree to a Plan, its canonical form and its digest."""
