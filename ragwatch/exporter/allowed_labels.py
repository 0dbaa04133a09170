"""Restricts label values to those of the configuration, which bounds the number of series."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from itertools import product
from operator import itemgetter

from ragwatch.exporter.series import SeriesDefinition
from ragwatch.model.criteria import Criterion
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import OTHER
from ragwatch.statistics.segments import Segments

Picked = Callable[[tuple[str, ...]], object]  # one label value, or several


class AllowedLabels:
    """Allowed values of the labels `source`, `route`, `judge`, `suite`, and of `segment` with `value`.

    A value that is removed from the configuration is removed from the series as well, even if the store has counts.

    Args:
        sources: Names of the configured sources.
        routes: Configured routes; `other` is added.
        judges: Names of the configured judges. The first is the `default`, which series without a judge are about.
        suites: Names of the configured suites of canaries.
        segments: The configured segments.
        criteria: The configured criteria, which are quantities too.
    """

    def __init__(
        self,
        *,
        sources: Iterable[str] = (),
        routes: Iterable[str] = (),
        judges: Iterable[str] = (),
        suites: Iterable[str] = (),
        segments: Segments | None = None,
        criteria: tuple[Criterion, ...] = (),
    ) -> None:
        ordered = tuple(judges)
        self.default, self.criteria = next(iter(ordered), ""), criteria
        self._pairs = frozenset[tuple[str, str]]() if segments is None else segments.pairs
        self._values = {
            "source": frozenset(sources),
            "route": frozenset(routes) | {OTHER},
            "judge": frozenset(ordered),
            "suite": frozenset(suites),
            "segment": frozenset(key for key, _ in self._pairs),
        }

    def checks(self, labels: tuple[str, ...]) -> tuple[tuple[Picked, AbstractSet[object]], ...]:
        """What to pick from a tuple of label values, each with its allowed values."""
        single: list[tuple[Picked, AbstractSet[object]]] = [
            (itemgetter(index), self._values[label]) for index, label in enumerate(labels) if label in self._values
        ]
        if _has_values(labels):
            single.append((itemgetter(labels.index("segment"), labels.index("value")), self._pairs))
        return tuple(single)

    def combinations(self, series: SeriesDefinition) -> Iterator[tuple[str, ...]]:
        """Yields every combination of label values of a series that is exported from zero."""
        every = product(*(sorted(self._all(series, label)) for label in series.labels))
        if not _has_values(series.labels):
            return every
        pair = itemgetter(series.labels.index("segment"), series.labels.index("value"))
        return (values for values in every if pair(values) in self._pairs)

    def _all(self, series: SeriesDefinition, label: str) -> Iterable[str]:
        if label in self._values:
            return self._values[label]
        if label == "quantity":
            return (*map(str, Quantity), *(criterion.name for criterion in self.criteria))
        if label == "value":
            return {value for _, value in self._pairs}
        if series.values is None:
            raise LookupError(f"{series.name}: its row names no values of the label {label}")
        return map(str, series.values)


def _has_values(labels: tuple[str, ...]) -> bool:
    return "segment" in labels and "value" in labels
