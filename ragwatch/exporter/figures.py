"""Reads the values of gauges and infos from a Snapshot or from process telemetry. No value means no sample."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from platform import python_version
from time import monotonic
from types import MappingProxyType

from ragwatch import __version__
from ragwatch.core.estimate import Estimate
from ragwatch.core.snapshot import EstimateRow, Snapshot
from ragwatch.core.tally import Tally
from ragwatch.exporter.series import GaugeSource
from ragwatch.model.quantities import Quantity
from ragwatch.telemetry import Telemetry

Labels = tuple[str, ...]
Reading = tuple[Labels, float]
Estimates = Mapping[Quantity, list[EstimateRow]]

_OF_ESTIMATE: Mapping[GaugeSource, Callable[[Estimate], float]] = MappingProxyType(
    {
        GaugeSource.RATIO: attrgetter("value"),
        GaugeSource.RATIO_LOW: attrgetter("low"),
        GaugeSource.RATIO_HIGH: attrgetter("high"),
        GaugeSource.RATIO_BOUND_LOW: attrgetter("bound_low"),
        GaugeSource.RATIO_BOUND_HIGH: attrgetter("bound_high"),
        GaugeSource.SAMPLES: attrgetter("n"),
        GaugeSource.EFFECTIVE_SAMPLES: attrgetter("n_eff"),
    }
)


def estimates_by_quantity(snapshot: Snapshot) -> Estimates:
    """Groups the rows of estimates by quantity, once for the seven series that read them."""
    rows: dict[Quantity, list[EstimateRow]] = {}
    for row in (*snapshot.estimates, *snapshot.corrected):
        rows.setdefault(row.quantity, []).append(row)
    return rows


def of_quantity(figure: GaugeSource, quantity: Quantity, snapshot: Snapshot, estimates: Estimates) -> Iterable[Reading]:
    """Reads the values of a gauge of one quantity."""
    if figure is GaugeSource.LAST_SAMPLE:
        return [(tuple(labels), at) for (scored, *labels), at in snapshot.last_sample.items() if scored == quantity]
    read = _OF_ESTIMATE[figure]
    return [(_labels_of(row), read(row.estimate)) for row in estimates.get(quantity, ())]


def _labels_of(row: EstimateRow) -> Labels:
    return row.route, row.judge, row.window, row.reference or ("yes" if row.corrected else "no")


def _lag(name: str) -> Callable[[Snapshot], Iterable[Reading]]:
    """Reads an attribute of the lags of sources, where it is known."""
    read = attrgetter(name)
    return lambda snapshot: [
        ((source,), value) for source, lag in snapshot.lags.items() if (value := read(lag)) is not None
    ]


def _per_judge(snapshot: Snapshot, part: Tally, whole: Tally) -> Iterator[Reading]:
    """Divides `part` by `whole`, both by (judge, version, ...), for the configured versions of the judges."""
    for (tally, labels), total in snapshot.tallies.items():
        if tally is whole and total > 0:
            judge, version, *rest = labels
            if snapshot.judges.get(judge, ("", ""))[1] == version:
                yield (judge, *rest), snapshot.tallies[part, labels] / total


def _ranked(measure: str) -> Callable[[Snapshot], Iterable[Reading]]:
    """Divides the sum of a ranking metric by the number of ranked answers, by route and k."""

    def read(snapshot: Snapshot) -> Iterator[Reading]:
        for (tally, labels), total in snapshot.tallies.items():
            if tally is Tally.RANKING_SCORE and labels[1] == measure:
                route, _, k = labels
                ranked = snapshot.tallies[Tally.RANKED, (route,)]
                if ranked:
                    yield ((route, k) if k else (route,)), total / ranked

    return read


def _of_user_scores(name: str) -> Callable[[Snapshot], Iterable[Reading]]:
    """Reads an attribute of the estimates of scores by users."""
    read = attrgetter(name)
    return lambda snapshot: [((row.route, row.window), read(row.estimate)) for row in snapshot.user_scores.rows]


def _of_correlations(name: str) -> Callable[[Snapshot], Iterable[Reading]]:
    """Reads an attribute of the correlations of judges with users."""
    read = attrgetter(name)
    return lambda snapshot: [
        ((row.judge, str(row.quantity)), read(row.correlation)) for row in snapshot.user_scores.correlations
    ]


def _of_segments(name: str) -> Callable[[Snapshot], Iterable[Reading]]:
    """Reads an attribute of the estimates of segments."""
    read = attrgetter(name)
    return lambda snapshot: [
        ((str(row.quantity), row.segment, row.value, row.route, row.judge, row.window), read(row.estimate))
        for row in snapshot.segments
    ]


OF_SNAPSHOT: Mapping[GaugeSource, Callable[[Snapshot], Iterable[Reading]]] = MappingProxyType(
    {
        GaugeSource.COVERAGE: lambda snapshot: snapshot.coverage.items(),
        GaugeSource.PENDING: lambda snapshot: [((), sum(snapshot.pending.values()))] if snapshot.leads else [],
        GaugeSource.PROBABILITY: lambda snapshot: [
            ((route,), value) for route, value in snapshot.probabilities.items()
        ],
        GaugeSource.LAG_BYTES: _lag("size"),
        GaugeSource.LAG_RECORDS: _lag("records"),
        GaugeSource.LAG_SECONDS: _lag("seconds"),
        GaugeSource.UNREADABLE: lambda snapshot: [
            ((name,), len(lag.unreadable)) for name, lag in snapshot.lags.items()
        ],
        GaugeSource.CLOSED: lambda snapshot: [((name,), lag.closed) for name, lag in snapshot.lags.items()],
        GaugeSource.DIGESTED: lambda snapshot: [((), snapshot.at)],
        GaugeSource.SHARE: lambda snapshot: [((name,), value) for name, value in snapshot.shares.items()],
        GaugeSource.BUDGET_LEFT: lambda snapshot: [((name,), value) for name, value in snapshot.budgets.items()],
        GaugeSource.REPEAT_AGREEMENT: lambda snapshot: _per_judge(snapshot, Tally.REPEATED_ALIKE, Tally.REPEATED),
        GaugeSource.FOOLED: lambda snapshot: _per_judge(snapshot, Tally.FOOLED, Tally.KNOWN_BAD),
        GaugeSource.RETRIEVAL_RECALL: _ranked("recall"),
        GaugeSource.RETRIEVAL_PRECISION: _ranked("precision"),
        GaugeSource.RETRIEVAL_F1: _ranked("f1"),
        GaugeSource.RETRIEVAL_NDCG: _ranked("ndcg"),
        GaugeSource.RETRIEVAL_RECIPROCAL_RANK: _ranked("mrr"),
        GaugeSource.PADDING_PREFERRED: lambda snapshot: _per_judge(snapshot, Tally.PADDING_PREFERRED, Tally.PADDED),
        GaugeSource.USER_SCORE: _of_user_scores("value"),
        GaugeSource.USER_SCORE_LOW: _of_user_scores("low"),
        GaugeSource.USER_SCORE_HIGH: _of_user_scores("high"),
        GaugeSource.USER_SCORE_BOUND_LOW: _of_user_scores("bound_low"),
        GaugeSource.USER_SCORE_BOUND_HIGH: _of_user_scores("bound_high"),
        GaugeSource.USER_SCORE_RESPONSE: _of_user_scores("coverage"),
        GaugeSource.USER_SCORE_SAMPLES: _of_user_scores("n"),
        GaugeSource.USER_SCORE_EFFECTIVE: _of_user_scores("n_eff"),
        GaugeSource.USER_SCORE_LAST: lambda snapshot: [
            ((route,), at) for route, at in snapshot.user_scores.last_sample.items()
        ],
        GaugeSource.USER_CORRELATION: _of_correlations("value"),
        GaugeSource.USER_CORRELATION_LOW: _of_correlations("low"),
        GaugeSource.USER_CORRELATION_HIGH: _of_correlations("high"),
        GaugeSource.USER_CORRELATION_SAMPLES: _of_correlations("n"),
        GaugeSource.SEGMENT_RATIO: _of_segments("value"),
        GaugeSource.SEGMENT_RATIO_LOW: _of_segments("low"),
        GaugeSource.SEGMENT_RATIO_HIGH: _of_segments("high"),
        GaugeSource.SEGMENT_SAMPLES: _of_segments("n"),
        GaugeSource.SEGMENT_EFFECTIVE: _of_segments("n_eff"),
        GaugeSource.SEGMENT_LAST: lambda snapshot: snapshot.segment_last.items(),
        GaugeSource.JUDGES: lambda snapshot: [((name, *about), 1) for name, about in snapshot.judges.items()],
    }
)

OF_TELEMETRY: Mapping[GaugeSource, Callable[[Telemetry], Iterable[Reading]]] = MappingProxyType(
    {
        GaugeSource.BUILD: lambda _: [((__version__, python_version()), 1)],
        GaugeSource.PAGES: lambda telemetry: [] if telemetry.pages is None else [((telemetry.pages,), 1)],
        GaugeSource.REJECTED: lambda telemetry: [(labels, 1) for labels in telemetry.rejections.first(monotonic())],
        GaugeSource.LEADER: lambda telemetry: [] if telemetry.leader is None else [((), telemetry.leader)],
        GaugeSource.RELOAD_OK: lambda telemetry: (
            [] if telemetry.last_reload_ok is None else [((), telemetry.last_reload_ok)]
        ),
        GaugeSource.RELOAD_AT: lambda telemetry: (
            [] if telemetry.last_reload_at is None else [((), telemetry.last_reload_at)]
        ),
    }
)
