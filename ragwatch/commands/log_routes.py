"""Chooses the routes of a log that a configuration can list, for `ragwatch init`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ragwatch.commands.terminal import printable
from ragwatch.config.model import Settings
from ragwatch.core.sample import OTHER, Sample

MAX_ROUTES = 20
MAX_NAME_CHARS = 40


class LogRoutes(NamedTuple):
    """The routes of a log.

    Attributes:
        listed: Routes to list, at most `MAX_ROUTES`.
        more: Routes that could be listed too.
        refused: Routes that a configuration refuses.
    """

    listed: Sequence[str]
    more: Sequence[str]
    refused: Sequence[str]


def log_routes(samples: Iterable[Sample]) -> LogRoutes:
    """Return the routes of some samples, sorted."""
    routes = sorted({sample.route for sample in samples if sample.route})
    valid = [route for route in routes if _is_valid(route)]
    return LogRoutes(valid[:MAX_ROUTES], valid[MAX_ROUTES:], [route for route in routes if route not in valid])


def _is_valid(route: str) -> bool:
    try:
        Settings.model_validate({"routes": [route]})
    except ValueError:
        return False
    return True


def refused_lines(routes: LogRoutes) -> Iterator[str]:
    """Comments of YAML that name the routes which a configuration refuses; none if there are none."""
    if routes.refused:
        yield f'# Not listed, so that they count as "{OTHER}": {names_of(routes.refused)}.'
        yield "# A route that is listed has 1 to 128 of the characters A-Z a-z 0-9 _ . / : { } ~ -"


def names_of(routes: Sequence[str]) -> str:
    r"""The first routes in one line, quoted and shortened.

    >>> names_of(["my route", "a" + chr(10) + "b"])
    '"my route", "a\\nb"'
    """
    shown = [f"{route[:MAX_NAME_CHARS]}..." if len(route) > MAX_NAME_CHARS else route for route in routes[:MAX_ROUTES]]
    more = f" and {len(routes) - MAX_ROUTES} more" if len(routes) > MAX_ROUTES else ""
    return ", ".join(printable(json.dumps(route, ensure_ascii=False)) for route in shown) + more
