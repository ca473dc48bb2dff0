"""`planrun watch`: a run on the whole screen of a terminal, from another shell."""
