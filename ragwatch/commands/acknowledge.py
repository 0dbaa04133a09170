"""`ragwatch acknowledge`: acknowledges drift alarms of a running ragwatch over HTTP."""

from __future__ import annotations

from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import click

from ragwatch.commands.asking import query_of, reason_of
from ragwatch.commands.credentials import ADVICE, authorize, certificate_advice, read_token
from ragwatch.commands.options.looking import AcknowledgeArguments
from ragwatch.commands.terminal import printable
from ragwatch.errors import ConfigError, ExternalError

PATH = "/-/drift/acknowledge"
TIMEOUT_SECONDS = 30.0
BAD_REQUEST, UNAUTHORIZED = 400, 401
_MAX_BYTES = 100_000


def acknowledge(given: AcknowledgeArguments) -> None:
    """Acknowledge drift alarms. Evidence restarts at 0; if the drift persists, the alarm is raised again."""
    if urlsplit(given.url).scheme not in ("http", "https"):
        raise ConfigError(f"--url: {given.url!r} is not a URL; give one such as http://127.0.0.1:10477")
    if given.judge is not None and (given.quantity is not None or given.route is not None):
        raise ConfigError("--judge: anchors have no quantity and no route; leave those out")
    parameters = {
        "quantity": given.quantity,
        "route": given.route,
        "judge": given.judge,
        "renew": "true" if given.renew else None,
    }
    request = Request(f"{given.url.rstrip('/')}{PATH}?{query_of(parameters)}", data=b"", method="POST")  # noqa: S310 - scheme is checked above
    authorize(request, read_token(given.token_file))
    try:
        with urlopen(request, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310 - the same
            click.echo(printable(response.read(_MAX_BYTES).decode("utf-8", "replace")), nl=False)
    except HTTPError as error:
        with error:
            reason = reason_of(error.read(_MAX_BYTES))
        if error.code == BAD_REQUEST:
            raise ConfigError(f"{given.url} refused: {reason}") from error
        advice = f" {ADVICE}" if error.code == UNAUTHORIZED else ""
        raise ExternalError(f"{given.url} refused: {error.code} {reason}{advice}") from error
    except (URLError, OSError) as error:
        reason = f"{getattr(error, 'reason', error)}{certificate_advice(error)}"
        raise ExternalError(f"{given.url} cannot be reached: {reason}") from error
