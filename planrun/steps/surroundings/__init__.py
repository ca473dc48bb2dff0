"""What stands around the text of a command and changes what it does: variables, folders, configuration of git."""
