"""Reads the values of gauges and infos from a Snapshot or from process telemetry. No value means no sample."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter

from ragwatch.model.quantities import Quantity
from ragwatch.statistics.snapshot import EstimateRow, Snapshot
from ragwatch.statistics.tally import Tally
from ragwatch.telemetry import Telemetry

Labels = tuple[str, ...]
Reading = tuple[Labels, float]
Estimates = Mapping[Quantity, list[EstimateRow]]
_OF_SEGMENT = ("quantity", "segment", "value", "route", "judge", "window")


@dataclass(frozen=True, slots=True)
class FromSnapshot:
    """Values that are read from a Snapshot, with their labels in order."""

    labels: Labels
    read: Callable[[Snapshot], Iterable[Reading]]


@dataclass(frozen=True, slots=True)
class FromTelemetry:
    """Values that are read from the telemetry of this process, likewise."""

    labels: Labels
    read: Callable[[Telemetry], Iterable[Reading]]


@dataclass(frozen=True, slots=True)
class OfQuantity:
    """Values of one quantity that are read from a Snapshot, likewise."""

    labels: Labels
    read: Callable[[Quantity, Snapshot, Estimates], Iterable[Reading]]


def estimates_by_quantity(snapshot: Snapshot) -> Estimates:
    """Groups the rows of estimates by quantity, once for the seven series that read them."""
    rows: dict[Quantity, list[EstimateRow]] = {}
    for row in (*snapshot.estimates, *snapshot.corrected):
        rows.setdefault(row.quantity, []).append(row)
    return rows


def estimated(name: str) -> OfQuantity:
    """Reads an attribute of the estimates of a quantity."""
    read = attrgetter(name)
    return OfQuantity(
        ("quantity", "route", "judge", "window", "corrected"),
        lambda quantity, _, estimates: [
            (
                (row.route, row.judge, row.window, row.reference or ("yes" if row.corrected else "no")),
                read(row.estimate),
            )
            for row in estimates.get(quantity, ())
        ],
    )


LAST_SAMPLE = OfQuantity(
    ("quantity", "route", "judge"),
    lambda quantity, snapshot, _: [
        (tuple(labels), at) for (scored, *labels), at in snapshot.last_sample.items() if scored == quantity
    ],
)


def by_name(label: str, name: str) -> FromSnapshot:
    """Reads a figure of each source, route or judge, an attribute of the Snapshot that maps its name to the figure."""
    read: Callable[[Snapshot], Mapping[str, float]] = attrgetter(name)
    return FromSnapshot((label,), lambda snapshot: [((one,), value) for one, value in read(snapshot).items()])


def lag(name: str) -> FromSnapshot:
    """Reads an attribute of the lags of sources, where it is known."""
    read = attrgetter(name)
    return FromSnapshot(
        ("source",),
        lambda snapshot: [
            ((source,), value) for source, lag in snapshot.lags.items() if (value := read(lag)) is not None
        ],
    )


def per_judge(part: Tally, whole: Tally) -> FromSnapshot:
    """Divides `part` by `whole`, both by (judge, version, ...), for the configured versions of the judges."""

    def read(snapshot: Snapshot) -> Iterator[Reading]:
        for (tally, labels), total in snapshot.tallies.items():
            if tally is whole and total > 0:
                judge, version, *rest = labels
                if snapshot.judges.get(judge, ("", ""))[1] == version:
                    yield (judge, *rest), snapshot.tallies[part, labels] / total

    return FromSnapshot(tuple(label for label in whole.labels if label != "version"), read)


def ranked(measure: str, *labels: str) -> FromSnapshot:
    """Divides the sum of a ranking metric by the number of ranked answers, by route and k."""

    def read(snapshot: Snapshot) -> Iterator[Reading]:
        for (tally, values), total in snapshot.tallies.items():
            if tally is Tally.RANKING_SCORE and values[1] == measure:
                route, _, k = values
                answers = snapshot.tallies[Tally.RANKED, (route,)]
                if answers:
                    yield ((route, k) if k else (route,)), total / answers

    return FromSnapshot(labels, read)


def user_scores(name: str) -> FromSnapshot:
    """Reads an attribute of the estimates of scores by users."""
    read = attrgetter(name)
    return FromSnapshot(
        ("route", "window"),
        lambda snapshot: [((row.route, row.window), read(row.estimate)) for row in snapshot.user_scores.rows],
    )


def correlations(name: str) -> FromSnapshot:
    """Reads an attribute of the correlations of judges with users."""
    read = attrgetter(name)
    return FromSnapshot(
        ("judge", "quantity"),
        lambda snapshot: [
            ((row.judge, str(row.quantity)), read(row.correlation)) for row in snapshot.user_scores.correlations
        ],
    )


def segments(name: str) -> FromSnapshot:
    """Reads an attribute of the estimates of segments."""
    read = attrgetter(name)
    return FromSnapshot(
        _OF_SEGMENT,
        lambda snapshot: [
            ((str(row.quantity), row.segment, row.value, row.route, row.judge, row.window), read(row.estimate))
            for row in snapshot.segments
        ],
    )


def known(name: str) -> FromTelemetry:
    """Reads an attribute of the telemetry, where it is known."""
    read = attrgetter(name)
    return FromTelemetry((), lambda telemetry: [] if (value := read(telemetry)) is None else [((), value)])
