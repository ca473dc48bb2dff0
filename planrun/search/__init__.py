"""Search for plans: beam search, Monte Carlo tree search and A* over states of facts; pure, it imports no other package."""
