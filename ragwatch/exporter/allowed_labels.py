"""Restricts label values to those of the configuration, which bounds the number of series."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import product
from operator import itemgetter

from ragwatch.core.criteria import Criterion
from ragwatch.core.sample import OTHER
from ragwatch.core.segments import Segments
from ragwatch.exporter.series import SeriesDefinition
from ragwatch.model.quantities import Quantity

Picked = Callable[[tuple[str, ...]], object]  # one label value, or several


@dataclass(frozen=True, slots=True)
class AllowedLabels:
    """Allowed values of the labels `source`, `route`, `judge`, `suite`, and of `segment` with `value`.

    `other` is always an allowed route.

    A value that is removed from the configuration is removed from the series as well, even if the store has counts.

    Attributes:
        default: The first judge, whose verdicts count in series without the label `judge`.
        segments: Allowed pairs of the labels `segment` and `value`.
        criteria: The configured criteria, which are quantities too.
    """

    sources: frozenset[str]
    routes: frozenset[str]
    judges: frozenset[str]
    default: str = ""
    suites: frozenset[str] = frozenset()
    segments: frozenset[tuple[str, str]] = frozenset()
    criteria: tuple[Criterion, ...] = ()

    @classmethod
    def of(
        cls,
        *,
        sources: Iterable[str],
        routes: Iterable[str],
        judges: Iterable[str],
        suites: Iterable[str] = (),
        segments: Segments | None = None,
        criteria: tuple[Criterion, ...] = (),
    ) -> AllowedLabels:
        """Builds the allowed values from names in the configuration.

        >>> sorted(AllowedLabels.of(sources=["app"], routes=["search"], judges=["embedded"]).routes)
        ['other', 'search']
        """
        ordered = tuple(judges)
        return cls(
            frozenset(sources),
            frozenset(routes) | {OTHER},
            frozenset(ordered),
            default=next(iter(ordered), ""),
            suites=frozenset(suites),
            segments=frozenset() if segments is None else segments.pairs,
            criteria=criteria,
        )

    def values(self, label: str) -> frozenset[str] | None:
        """Allowed values of a label; None for a label whose values come from an enumeration."""
        match label:
            case "source":
                return self.sources
            case "route":
                return self.routes
            case "judge":
                return self.judges
            case "suite":
                return self.suites
            case "segment":
                return frozenset(key for key, _ in self.segments)
            case _:
                return None

    def checks(self, labels: tuple[str, ...]) -> tuple[tuple[Picked, AbstractSet[object]], ...]:
        """What to pick from a tuple of label values, each with its allowed values."""
        allowed = ((index, self.values(label)) for index, label in enumerate(labels))
        single: list[tuple[Picked, AbstractSet[object]]] = [
            (itemgetter(index), values) for index, values in allowed if values is not None
        ]
        if _has_values(labels):
            single.append((itemgetter(labels.index("segment"), labels.index("value")), self.segments))
        return tuple(single)

    def combinations(self, series: SeriesDefinition) -> Iterator[tuple[str, ...]]:
        """Yields every combination of label values of a series that is exported from zero."""
        every = product(*(sorted(self._all(series, label)) for label in series.labels))
        if not _has_values(series.labels):
            return every
        pair = itemgetter(series.labels.index("segment"), series.labels.index("value"))
        return (values for values in every if pair(values) in self.segments)

    def _all(self, series: SeriesDefinition, label: str) -> Iterable[str]:
        allowed = self.values(label)
        if allowed is not None:
            return allowed
        if label == "quantity":
            return (*map(str, Quantity), *(criterion.name for criterion in self.criteria))
        if label == "value":
            return {value for _, value in self.segments}
        if series.values is None:
            raise LookupError(f"{series.name}: its row names no values of the label {label}")
        return map(str, series.values)


def _has_values(labels: tuple[str, ...]) -> bool:
    return "segment" in labels and "value" in labels
