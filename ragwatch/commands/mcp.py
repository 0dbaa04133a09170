"""`ragwatch mcp`: answers an assistant on standard input and output.

The SDK is imported with this module: Ctrl-C then ends the process at once, and raises nothing that the SDK may swallow.
"""

import asyncio

from ragwatch.commands.looking import client_for
from ragwatch.errors import extra_for
from ragwatch.terminal.event_loop import run_async
from ragwatch.terminal.options.people import McpArguments

with extra_for("mcp", "mcp"):
    from ragwatch.web.mcp.server import serve_streams


def mcp(given: McpArguments) -> int:
    """Answer an assistant until the input ends. Returns 0."""
    client, config = client_for(given)
    run_async(
        serve_streams(
            lambda path, query: asyncio.to_thread(client.read, path, query),
            (None if config is None else config.settings.web.pages) or client.address,
        )
    )
    return 0
