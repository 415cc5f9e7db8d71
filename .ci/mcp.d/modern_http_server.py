"""A server of the Python SDK 2.x over HTTP: modern_http_server.py PORT."""

import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("modern")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
