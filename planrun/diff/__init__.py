"""The difference of two plans, as text, JSON and markdown, and the approvals that the new one needs."""
