"""The process that speaks to object stores: started by its path, imported by no other part of planrun."""
