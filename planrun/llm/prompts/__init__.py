"""What models are told, one module for each purpose; the beginnings are the same in every request of a kind."""
