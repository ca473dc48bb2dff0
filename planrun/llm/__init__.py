"""What is asked of a language model, and what is made of its answers; the model itself is called by a process apart."""
