"""What the records of runs show: status, explanations, progress; and their deletion."""
