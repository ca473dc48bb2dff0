"""What the verbs of the command line share: options, completion, printing and errors."""
