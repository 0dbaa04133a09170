"""Proposes thresholds by route from stored drift baselines, and counts what they would have paged last week."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import floor

import click

from ragwatch.config import Config
from ragwatch.config.drift import lowest_probability
from ragwatch.daemon.runtime import sampling_plan
from ragwatch.errors import ConfigError
from ragwatch.model.estimate import Addends
from ragwatch.model.quantities import LOW_IS_GOOD, Quantity
from ragwatch.model.sample import OTHER
from ragwatch.offline.state_reader import score_rows, state_reader
from ragwatch.pipeline.drift.loop import name_of
from ragwatch.pipeline.drift.scores import KIND
from ragwatch.ports import ScoreRow
from ragwatch.rules import RulePlan
from ragwatch.statistics.estimators import hajek
from ragwatch.stores.store_base import StoreBase

WEEK = 7 * 86400.0
_STEP = 900.0


@dataclass(frozen=True, slots=True)
class Proposal:
    """A threshold for one quantity on one route.

    Attributes:
        route: Value of the label `route`.
        quantity: Quantity.
        threshold: The drift baseline (lower bound of the mean, less the tolerance), rounded away from it.
        pages: Times at which a page would have begun in the last week.
        configured: Threshold in the configuration; None for none.
        configured_pages: The same for that threshold.
    """

    route: str
    quantity: Quantity
    threshold: float
    pages: tuple[float, ...]
    configured: float | None
    configured_pages: tuple[float, ...]


def show(config: Config, plan: RulePlan) -> int:
    """Print the proposals as YAML, and as comments what they would have paged. Returns 3 if there is no baseline.

    What would have paged last week is a comment as a whole: nobody but the operator knows whether something was broken.
    """
    if plan.watcher != plan.judge:
        raise ConfigError(
            f"alerts.judge: thresholds are for scores of {plan.judge!r}, but baselines are learned from those of "
            f"{plan.watcher!r}; write drift.judge: {plan.judge}, and ask again when /drift shows its baselines"
        )
    with state_reader(config) as store:
        proposals = list(proposals_of(config, plan, store))
    if not proposals:
        click.echo("no baseline is learned yet; /drift shows how far it is", err=True)
        return 3
    show_proposals(proposals)
    return 0


def show_proposals(proposals: Sequence[Proposal]) -> None:
    """Print proposals as the section `thresholds` of a configuration."""
    quiet = {proposal.route for proposal in proposals if not proposal.pages}
    click.echo("thresholds:\n  routes:" if quiet else "# thresholds:\n#   routes:")
    for route in dict.fromkeys(proposal.route for proposal in proposals):
        click.echo(f"    {route}:" if route in quiet else f"    # {route}:")
        for proposal in (proposal for proposal in proposals if proposal.route == route):
            line = f"      {proposal.quantity}: {proposal.threshold:g}"
            if proposal.pages:  # of unchanged traffic, it would page again
                line = f"      # not proposed unless those were incidents: {line.strip()}"
            now = "no threshold now"
            if proposal.configured is not None:
                now = f"now {proposal.configured:g}: {_pages(proposal.configured_pages)}"
            click.echo(f"{line:<40}  # last week: {_pages(proposal.pages)}; {now}")


def _pages(times: Sequence[float]) -> str:
    if not times:
        return "no page"
    first = f"{datetime.fromtimestamp(times[0], UTC):%Y-%m-%d %H:%M} UTC"
    return f"1 page, {first}" if len(times) == 1 else f"{len(times)} pages, the first {first}"


def proposals_of(config: Config, plan: RulePlan, store: StoreBase) -> Iterator[Proposal]:
    """A proposal for each stored baseline."""
    state = store.recall(KIND)
    if state is None:
        return
    sampling, routes = sampling_plan(config), (*config.settings.routes, OTHER)
    probability = next(judge.place.probability for judge in config.judges if judge.place.name == plan.watcher)
    lowest = {route: lowest_probability(sampling, route, probability) for route in routes}
    rules = config.settings.drift.rules(plan.watcher, str(state["version"]), routes, lowest)
    stored = score_rows(store)
    newest = max((row.at for row in stored), default=0.0)
    scored = (row for row in stored if row.judge == plan.watcher and row.scores is not None)
    rows = sorted((row for row in scored if row.at > newest - WEEK), key=lambda row: row.at)
    for quantity, route in rules.cells:
        stream = rules.stream(quantity, route)
        try:
            stream.load(state["streams"][name_of((quantity, route))])
        except (KeyError, TypeError, ValueError):
            continue
        baseline = stream.baseline
        if baseline is None or quantity.row.own_alert:
            continue
        threshold = _rounded(baseline, quantity)
        configured = plan.threshold(quantity, route)
        here = [row for row in rows if row.route == route]
        yield Proposal(
            route,
            quantity,
            threshold,
            pages=pages(here, quantity, threshold, plan),
            configured=configured,
            configured_pages=() if configured is None else pages(here, quantity, configured, plan),
        )


def _rounded(baseline: float, quantity: Quantity) -> float:
    """Two digits, on the side of fewer pages."""
    return 1.0 - floor((1.0 - baseline) * 100) / 100 if quantity in LOW_IS_GOOD else floor(baseline * 100) / 100


def pages(rows: Iterable[ScoreRow], quantity: Quantity, threshold: float, plan: RulePlan) -> tuple[float, ...]:
    """Times at which RagwatchQualityBad would have begun, looking every quarter of an hour at rows in order of time."""
    scored = [(row.at, row.scores[quantity], row.probability) for row in rows if row.scores and quantity in row.scores]
    known = deque((at, value, probability) for at, value, probability in scored if value is not None)
    window: deque[tuple[float, float, float]] = deque()
    begun: list[float] = []
    firing = False
    now = known[0][0] + _STEP if known else 0.0
    while known or window:
        while known and known[0][0] <= now:
            window.append(known.popleft())
        while window and window[0][0] <= now - plan.window:
            window.popleft()
        if not known and not window:
            break
        bad = _is_bad([(value, probability) for _, value, probability in window], quantity, threshold, plan)
        if bad and not firing:
            begun.append(now)
        firing = bad
        now += _STEP
    return tuple(begun)


def _is_bad(scores: Sequence[tuple[float, float]], quantity: Quantity, threshold: float, plan: RulePlan) -> bool:
    if not scores:
        return False
    _, low, high, effective = hajek.interval(Addends.of(scores), plan.confidence)
    if effective < plan.limits.samples:
        return False
    return low > threshold if quantity in LOW_IS_GOOD else high < threshold
