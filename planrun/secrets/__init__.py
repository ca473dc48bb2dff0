"""What planrun knows and must not show: the values of secrets, in every form a step may print them."""
