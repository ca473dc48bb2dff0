"""Plans out of other tools' files: what each construct becomes, and a list of everything that means something else."""
