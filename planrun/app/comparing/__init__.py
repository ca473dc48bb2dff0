"""What two plans do not have in common: found once, told in several forms."""
