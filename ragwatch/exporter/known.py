"""Known: the label values that configuration allows. No other value ever reaches a series."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from types import MappingProxyType

from ragwatch.core.canary.definition import Failure
from ragwatch.core.invariants import Invariant
from ragwatch.core.sample import OTHER, RejectReason
from ragwatch.core.scores import Fault
from ragwatch.core.stage import Stage
from ragwatch.core.tally import Tally
from ragwatch.core.verdict import UnjudgedReason
from ragwatch.exporter.series import SeriesDefinition

_REASONS: Mapping[Tally, type[StrEnum]] = MappingProxyType(
    {Tally.REJECTED: RejectReason, Tally.UNJUDGED: UnjudgedReason, Tally.CANARY_FAILURES: Failure}
)


class InjectionPlace(StrEnum):
    """Part of a sample in which a prompt injection may occur."""

    QUESTION = "question"
    CONTEXT = "context"
    ANSWER = "answer"


_ENUMERATED: Mapping[str, type[StrEnum]] = MappingProxyType(
    {"stage": Stage, "fault": Fault, "law": Invariant, "place": InjectionPlace}
)


@dataclass(frozen=True, slots=True)
class KnownLabels:
    """Values of the labels `source`, `route`, `judge` and `suite`. `other` is always a known route.

    A value that is gone from the configuration is gone from the series as well, whatever the store remembers.

    Attributes:
        default: The first judge: whose word counts where a series has no label `judge`.
    """

    sources: frozenset[str]
    routes: frozenset[str]
    judges: frozenset[str]
    default: str = ""
    suites: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, *, sources: Iterable[str], routes: Iterable[str], judges: Iterable[str], suites: Iterable[str] = ()
    ) -> KnownLabels:
        """What a configuration names.

        >>> sorted(Known.of(sources=["app"], routes=["search"], judges=["embedded"]).routes)
        ['other', 'search']
        """
        ordered = tuple(judges)
        return cls(
            frozenset(sources),
            frozenset(routes) | {OTHER},
            frozenset(ordered),
            next(iter(ordered), ""),
            frozenset(suites),
        )

    def values(self, label: str) -> frozenset[str] | None:
        """Allowed values of a label; None for a label whose values are written in our code."""
        match label:
            case "source":
                return self.sources
            case "route":
                return self.routes
            case "judge":
                return self.judges
            case "suite":
                return self.suites
            case _:
                return None

    def checks(self, labels: tuple[str, ...]) -> tuple[tuple[int, frozenset[str]], ...]:
        """Which positions of a tuple of label values must be in which sets."""
        found = ((index, self.values(label)) for index, label in enumerate(labels))
        return tuple((index, values) for index, values in found if values is not None)

    def combinations(self, series: SeriesDefinition) -> Iterator[tuple[str, ...]]:
        """Every combination of label values of a series that is counted from zero."""
        return product(*(sorted(self._all(series, label)) for label in series.labels))

    def _all(self, series: SeriesDefinition, label: str) -> Iterable[str]:
        known = self.values(label)
        if known is not None:
            return known
        if label == "reason" and isinstance(series.origin, Tally):
            return map(str, _REASONS[series.origin])
        return map(str, _ENUMERATED[label])
