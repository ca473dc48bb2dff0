"""A small MCP server for tests, written with the official SDK."""
