"""`ragwatch acknowledge`: a person has seen a drift alarm of a running ragwatch."""

from __future__ import annotations

from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

import click

from ragwatch.commands.terminal import plain
from ragwatch.errors import ConfigError, ForeignError

PATH = "/-/drift/acknowledge"
TIMEOUT_SECONDS = 30.0
_MOST_BYTES = 100_000


def acknowledge(url: str, quantity: str | None, route: str | None, judge: str | None, *, renew: bool) -> None:
    """Take drift alarms down. Evidence is gathered from nothing; if things are still bad, the alarm comes again."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise ConfigError(f"--url: {url!r} is no address; give one such as http://127.0.0.1:10477")
    if judge is not None and (quantity is not None or route is not None):
        raise ConfigError("--judge: anchors have no quantity and no route; leave those out")
    wanted = {"quantity": quantity, "route": route, "judge": judge, "renew": "true" if renew else None}
    query = urlencode({key: value for key, value in wanted.items() if value is not None})
    request = Request(f"{url.rstrip('/')}{PATH}?{query}", data=b"", method="POST")  # noqa: S310 - scheme is checked above
    try:
        with urlopen(request, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310 - the same
            click.echo(plain(response.read(_MOST_BYTES).decode("utf-8", "replace")), nl=False)
    except HTTPError as error:
        with error:
            told = error.read(_MOST_BYTES).decode("utf-8", "replace").strip()
        raise ForeignError(f"{url} refused: {error.code} {told}") from error
    except (URLError, OSError) as error:
        raise ForeignError(f"{url} cannot be reached: {getattr(error, 'reason', error)}") from error
