"""Beam search, Monte Carlo tree search and A* over states of facts; it imports no other package of planrun."""
