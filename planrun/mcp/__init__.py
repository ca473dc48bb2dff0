"""The processes between an agent and an MCP server; nothing imports them.

`serve` is the client: it starts or reaches one server by the official SDK, in the sandbox of that server, and listens
on a socket in a folder of the run. `call` asks it for one thing and ends. `list` starts a server only to list its
tools.
"""
