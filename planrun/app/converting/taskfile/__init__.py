"""From the tasks of a Taskfile (go-task, version 3) to steps of a plan."""
