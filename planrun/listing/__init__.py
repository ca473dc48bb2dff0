"""The plans of a folder with their steps: what a bare `planrun` prints, and `planrun list`."""
