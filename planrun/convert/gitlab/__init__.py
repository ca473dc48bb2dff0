"""GitLab CI files as plans."""
