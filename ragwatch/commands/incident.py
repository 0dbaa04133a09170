"""`ragwatch incident`: writes what the pages say of a time as one Markdown file, from a running ragwatch."""

from __future__ import annotations

import click

from ragwatch.commands.api_client import DEFAULT_URL, ApiClient, address_of, read_token
from ragwatch.commands.options.lazy import usual_config
from ragwatch.commands.options.looking import IncidentArguments
from ragwatch.config import load
from ragwatch.errors import ConfigError


def incident(given: IncidentArguments) -> int:
    """Write the file, or print it."""
    address = given.url
    if address is None:
        path = given.path or usual_config()
        address = DEFAULT_URL if path is None else address_of(load(path))
    client = ApiClient(address, read_token(given.token_file))
    text = client.incident({"since": given.since, "until": given.until, "route": given.route})
    if given.out is None:
        click.echo(text, nl=False)
        return 0
    try:
        given.out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--out {given.out}: cannot be written: {error.strerror}; name another file") from error
    return 0
