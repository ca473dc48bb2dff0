"""Plans from other tools' files, with a list of everything that means something else."""
