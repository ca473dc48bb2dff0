"""From the steps of a Dagu file to steps of a plan."""
