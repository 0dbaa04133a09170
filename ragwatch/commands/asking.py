"""Writes the parameters of a request to a running ragwatch, and reads why it refuses one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import urlencode

from ragwatch.errors import ConfigError


def query_of(options: Mapping[str, str | None]) -> str:
    """Return options of the command line, by name, as a query string; None leaves one out.

    >>> query_of({"route": "a b", "judge": None})
    'route=a+b'

    Raises:
        ConfigError: One is not UTF-8.
    """
    given = {name: value for name, value in options.items() if value is not None}
    for name, value in given.items():
        require_utf8(f"--{name}", value)
    return urlencode(given)


def require_utf8(option: str, value: str) -> None:
    """Refuse a value of the command line that is not UTF-8.

    Raises:
        ConfigError: It is not.
    """
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(f"{option} {value}: is not UTF-8; type it on a terminal with a UTF-8 locale") from error


def reason_of(body: bytes) -> str:
    """Return the reason in the body of a refusal.

    >>> reason_of(b'{"error": "quantity: is not known"}'), reason_of(b"no JSON")
    ('quantity: is not known', 'no JSON')
    """
    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return body.decode("utf-8", "replace").strip()[:200]
