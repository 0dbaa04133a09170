"""Traffic signals: their distributions, from the counts of all traffic."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from ragwatch.core.tally import BUCKETS, INF, Tallies, Tally, bound_label


class Signal(StrEnum):
    """Signals that can be watched; values of the label `signal`."""

    CONTEXTS = "contexts"
    TOP_SCORE = "top_context_score"
    ANSWER_CHARS = "answer_chars"
    ABSTENTIONS = "abstentions"
    EMPTY_RETRIEVALS = "empty_retrievals"
    DUPLICATE_CONTEXTS = "duplicate_contexts"
    QUESTION_WORDS = "question_words"


HISTOGRAMS: Mapping[Signal, Tally] = MappingProxyType(
    {
        Signal.CONTEXTS: Tally.CONTEXTS,
        Signal.TOP_SCORE: Tally.TOP_SCORE,
        Signal.ANSWER_CHARS: Tally.ANSWER_CHARS,
        Signal.QUESTION_WORDS: Tally.QUESTION_STRANGENESS,
    }
)
_RATES: Mapping[Signal, Tally] = MappingProxyType(
    {
        Signal.ABSTENTIONS: Tally.ABSTENTIONS,
        Signal.EMPTY_RETRIEVALS: Tally.EMPTY_RETRIEVALS,
        Signal.DUPLICATE_CONTEXTS: Tally.DUPLICATE_CONTEXTS,
    }
)


def buckets_of(signal: Signal) -> int:
    """Number of buckets of a signal's distribution; 2 for a rate.

    >>> buckets_of(Signal.ABSTENTIONS), buckets_of(Signal.CONTEXTS)
    (2, 12)
    """
    return len(BUCKETS[HISTOGRAMS[signal]]) + 1 if signal in HISTOGRAMS else 2


def counts_of(tallies: Tallies, signal: Signal, route: str) -> tuple[int, ...]:
    """Number of requests in each bucket so far; for a rate: without, and with.

    >>> tallies = Tallies({(Tally.CONTEXTS, ("search", "5.0")): 8, (Tally.ABSTENTIONS, ("search",)): 3})
    >>> counts_of(tallies, Signal.ABSTENTIONS, "search")
    (5, 3)
    """
    histogram = HISTOGRAMS.get(signal, Tally.CONTEXTS)  # which counts every request
    labels = [*map(bound_label, BUCKETS[histogram]), INF]
    buckets = tuple(int(tallies[histogram, (route, label)]) for label in labels)
    if signal in HISTOGRAMS:
        return buckets
    with_signal = int(tallies[_RATES[signal], (route,)])
    return sum(buckets) - with_signal, with_signal
