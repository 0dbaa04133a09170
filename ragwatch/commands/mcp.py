"""`ragwatch mcp`: answers an assistant on standard input and output, from a running ragwatch."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from ragwatch.commands.api_client import DEFAULT_URL, ApiClient, address_of, read_token
from ragwatch.commands.event_loop import run_async
from ragwatch.commands.options.lazy import usual_config
from ragwatch.commands.options.looking import McpArguments
from ragwatch.config import load
from ragwatch.errors import ConfigError


def mcp(given: McpArguments) -> int:
    """Serve until the input ends. Returns 0."""
    address, pages = given.url, None
    if address is None:
        path = given.path or usual_config()
        config = None if path is None else load(path)
        address, pages = (DEFAULT_URL, None) if config is None else (address_of(config), config.settings.web.pages)
    client = ApiClient(address, read_token(given.token_file))

    async def read(path: str, query: Mapping[str, str | None]) -> Mapping[str, Any]:
        return await asyncio.to_thread(client.read, path, query)

    try:
        from ragwatch.web.mcp.server import serve_streams  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ConfigError("mcp: needs the extra `mcp`; run pip install 'ragwatch-exporter[mcp]'") from error
    run_async(serve_streams(read, pages or address))
    return 0
