"""Pull requests on GitHub: one comment that is kept up to date, and approvals that people give in comments."""
