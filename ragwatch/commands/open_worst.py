"""`ragwatch open`: prints the address of the worst answer of the newest time, from a running ragwatch."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from math import inf
from urllib.parse import urlencode

import click

from ragwatch.commands.api_client import DEFAULT_URL, ApiClient, address_of, read_token
from ragwatch.commands.options.looking import OpenArguments
from ragwatch.commands.terminal import printable
from ragwatch.config import load
from ragwatch.core.sample import OTHER
from ragwatch.errors import ConfigError, RagwatchError
from ragwatch.model.quantities import LOW_IS_GOOD, Quantity
from ragwatch.model.stages import FAULTS
from ragwatch.stores.rows import number

NOTHING_FAILS = 3

Line = Mapping[str, object]


def open_worst(given: OpenArguments) -> int:
    """Print the address of the worst answer. Returns 0, or 3 if there is none."""
    config = None if given.path is None else load(given.path)
    if config is not None and given.route not in (None, *config.settings.routes, OTHER):
        raise ConfigError(
            f"--route {given.route}: is not configured; use one of: {', '.join((*config.settings.routes, OTHER))}"
        )
    address = given.url or (DEFAULT_URL if config is None else address_of(config))
    client = ApiClient(address, read_token(given.token_file))
    filters = {"since": given.since} | ({} if given.route is None else {"route": given.route})
    worst = _by_stage(client, filters) if given.quantity is None else _by_score(client, filters, given.quantity)
    if worst is None:
        what = "with a stage at fault" if given.quantity is None else f"with less than the best {given.quantity}"
        click.echo(printable(f"no answer {what} since {given.since}; choose an earlier --since"), err=True)
        return NOTHING_FAILS
    shown = address if config is None or given.url is not None else config.settings.web.external_url or address
    try:
        link = f"{shown.rstrip('/')}/samples/{worst['key']}?{urlencode({'judge': worst['judge_name']})}"
        about = _about(worst, given.quantity or str(Quantity.FAITHFULNESS))
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise RagwatchError(
            f"{address}: the response is not that of a ragwatch of this version; give its address with --url"
        ) from error
    click.echo(printable(about), err=True)
    click.echo(printable(link))
    return 0


def _by_score(client: ApiClient, filters: Mapping[str, str], quantity: str) -> Line | None:
    """The worst score of a quantity, unless it is the best that there can be."""
    bound = {"above": "0"} if quantity in LOW_IS_GOOD else {"below": "1"}
    return client.worst({**filters, **bound, "quantity": quantity, "sort": "worst"})


def _by_stage(client: ApiClient, filters: Mapping[str, str]) -> Line | None:
    """The answer with a stage at fault that has the lowest faithfulness; where none has any, the newest one."""
    worst_first = {"quantity": str(Quantity.FAITHFULNESS), "sort": "worst"}
    for order in (worst_first, {}):
        lines = [client.worst({**filters, **order, "stage": str(stage)}) for stage in FAULTS]
        failing = [line for line in lines if line is not None]
        if failing:
            return min(failing, key=_rank)
    return None


def _rank(line: Line) -> tuple[float, float]:
    score, at = _score(line, str(Quantity.FAITHFULNESS)), line.get("at")
    return (inf if score is None else score, -at if isinstance(at, int | float) else inf)


def _score(line: Line, quantity: str) -> float | None:
    scores = line.get("scores")
    score = scores.get(quantity) if isinstance(scores, dict) else None
    return score if isinstance(score, int | float) else None


def _about(line: Line, quantity: str) -> str:
    """One line about an answer, for people."""
    score = _score(line, quantity)
    figure = "unknown" if score is None else f"{score:.2f}"
    at = datetime.fromtimestamp(number(line["at"]), UTC)
    stage = line.get("stage") or "unknown"
    return f"{quantity} {figure}, stage at fault {stage}, route {line['route']}, {at:%Y-%m-%d %H:%M} UTC"
