"""The keys of a plan file, their types and the forms of scalars."""
