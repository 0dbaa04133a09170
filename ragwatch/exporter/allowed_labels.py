"""Restricts label values to those of the configuration, which bounds the number of series."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from types import MappingProxyType

from ragwatch.core.canary.definition import Failure
from ragwatch.core.invariants import Invariant
from ragwatch.core.relevance import NoRanking
from ragwatch.core.sample import OTHER, LossReason, RejectReason, SkipReason
from ragwatch.core.scores import Fault
from ragwatch.core.stage import Stage
from ragwatch.core.tally import PartOutcome, Tally
from ragwatch.core.verdict import UnjudgedReason
from ragwatch.exporter.series import SeriesDefinition

_REASONS: Mapping[Tally, type[StrEnum]] = MappingProxyType(
    {
        Tally.REJECTED: RejectReason,
        Tally.SKIPPED: SkipReason,
        Tally.LOST: LossReason,
        Tally.UNJUDGED: UnjudgedReason,
        Tally.CANARY_FAILURES: Failure,
        Tally.UNRANKED: NoRanking,
    }
)


class InjectionPlace(StrEnum):
    """Part of a sample in which a prompt injection may occur."""

    QUESTION = "question"
    CONTEXT = "context"
    ANSWER = "answer"


_ENUMERATED: Mapping[str, type[StrEnum]] = MappingProxyType(
    {"stage": Stage, "fault": Fault, "law": Invariant, "place": InjectionPlace, "outcome": PartOutcome}
)


@dataclass(frozen=True, slots=True)
class AllowedLabels:
    """Allowed values of the labels `source`, `route`, `judge` and `suite`. `other` is always an allowed route.

    A value that is removed from the configuration is removed from the series as well, even if the store has counts.

    Attributes:
        default: The first judge, whose verdicts count in series without the label `judge`.
    """

    sources: frozenset[str]
    routes: frozenset[str]
    judges: frozenset[str]
    default: str = ""
    suites: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, *, sources: Iterable[str], routes: Iterable[str], judges: Iterable[str], suites: Iterable[str] = ()
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
            next(iter(ordered), ""),
            frozenset(suites),
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
            case _:
                return None

    def checks(self, labels: tuple[str, ...]) -> tuple[tuple[int, frozenset[str]], ...]:
        """Positions in a tuple of label values to check, each with its allowed values."""
        allowed = ((index, self.values(label)) for index, label in enumerate(labels))
        return tuple((index, values) for index, values in allowed if values is not None)

    def combinations(self, series: SeriesDefinition) -> Iterator[tuple[str, ...]]:
        """Yields every combination of label values of a series that is exported from zero."""
        return product(*(sorted(self._all(series, label)) for label in series.labels))

    def _all(self, series: SeriesDefinition, label: str) -> Iterable[str]:
        allowed = self.values(label)
        if allowed is not None:
            return allowed
        if label == "reason" and isinstance(series.origin, Tally):
            return map(str, _REASONS[series.origin])
        return map(str, _ENUMERATED[label])
