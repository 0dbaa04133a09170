"""Traffic signals: their distributions, from the counts of all traffic."""

from __future__ import annotations

from ragwatch.core.tally import BUCKETS, INF, Tallies, Tally, bound_label
from ragwatch.model.signals import Signal


def buckets_of(signal: Signal) -> int:
    """Number of buckets of a signal's distribution; 2 for a rate.

    >>> buckets_of(Signal.ABSTENTIONS), buckets_of(Signal.CONTEXTS)
    (2, 12)
    """
    bounds = signal.row.bounds
    return 2 if bounds is None else len(bounds) + 1


def counts_of(tallies: Tallies, signal: Signal, route: str) -> tuple[int, ...]:
    """Number of requests in each bucket so far; for a rate: without, and with.

    >>> tallies = Tallies({(Tally.CONTEXTS, ("search", "5.0")): 8, (Tally.ABSTENTIONS, ("search",)): 3})
    >>> counts_of(tallies, Signal.ABSTENTIONS, "search")
    (5, 3)
    """
    counter = Tally(signal.row.counter)
    histogram = Tally.CONTEXTS if signal.row.bounds is None else counter  # the first counts every request
    labels = [*map(bound_label, BUCKETS[histogram]), INF]
    buckets = tuple(int(tallies[histogram, (route, label)]) for label in labels)
    if histogram is counter:
        return buckets
    with_signal = int(tallies[counter, (route,)])
    return sum(buckets) - with_signal, with_signal
