"""`ragwatch acknowledge`: acknowledges drift alarms of a running ragwatch over HTTP."""

from __future__ import annotations

import click

from ragwatch.commands.api_client import ApiClient, read_token
from ragwatch.commands.options.looking import AcknowledgeArguments
from ragwatch.commands.terminal import printable
from ragwatch.errors import ConfigError


def acknowledge(given: AcknowledgeArguments) -> None:
    """Acknowledge drift alarms. Evidence restarts at 0; if the drift persists, the alarm is raised again."""
    if given.judge is not None and (given.quantity is not None or given.route is not None):
        raise ConfigError("--judge: anchors have no quantity and no route; leave those out")
    options = {
        "quantity": given.quantity,
        "route": given.route,
        "judge": given.judge,
        "renew": "true" if given.renew else None,
    }
    client = ApiClient(given.url, read_token(given.token_file))
    click.echo(printable(client.acknowledge(options)), nl=False)
