"""Snapshot: everything that may be shown at one instant. Pages and series are drawn from it, never from the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ragwatch.core.estimate import Estimate
from ragwatch.core.scores import Quantity
from ragwatch.core.tally import Tallies

_EMPTY: Mapping[Any, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class EstimateRow:
    """One estimate, and what it is about."""

    quantity: Quantity
    route: str
    judge: str
    window: str
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Exemplar:
    """The answer behind one observation in a histogram, so that a dashboard can link to it.

    Attributes:
        key: Identity of the sample in the store.
        trace_id: The trace it belongs to, if the log named one.
        value: The score.
        at: When it was answered, in seconds since the epoch.
    """

    key: str
    trace_id: str | None
    value: float
    at: float


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a source is behind its writer.

    Attributes:
        size: Unread bytes (or records, where a transport knows only those).
        seconds: Age of the oldest unread record; None when unknown, 0 when nothing is unread.
    """

    size: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All figures at one instant.

    Attributes:
        at: The instant, in seconds since the epoch.
        estimates: One row for each quantity, route, judge and window that has something to say.
        coverage: By (route, judge, window): judged share of the drawn weight.
        last_sample: By (quantity, route, judge): when the newest scored answer was given.
        exemplars: By (quantity, route, judge, bucket label): the newest answer in that bucket.
        tallies: All counts since the state directory was made.
        pending: Draws waiting for a judge, by judge.
        probabilities: Inclusion probability in force, by route.
        lags: By source.
        judges: Kind and version by judge name.
        problems: What keeps ragwatch from being ready, one sentence each.
    """

    at: float
    estimates: tuple[EstimateRow, ...] = ()
    coverage: Mapping[tuple[str, str, str], float] = field(default_factory=lambda: _EMPTY)
    last_sample: Mapping[tuple[str, str, str], float] = field(default_factory=lambda: _EMPTY)
    exemplars: Mapping[tuple[str, str, str, str], Exemplar] = field(default_factory=lambda: _EMPTY)
    tallies: Tallies = field(default_factory=Counter)
    pending: Mapping[str, int] = field(default_factory=lambda: _EMPTY)
    probabilities: Mapping[str, float] = field(default_factory=lambda: _EMPTY)
    lags: Mapping[str, Lag] = field(default_factory=lambda: _EMPTY)
    judges: Mapping[str, tuple[str, str]] = field(default_factory=lambda: _EMPTY)
    problems: tuple[str, ...] = ()
