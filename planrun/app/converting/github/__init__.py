"""From the jobs of a GitHub workflow to steps of a plan."""
