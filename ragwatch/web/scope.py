"""Defines the names in the configuration that pages show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import quote

Place = tuple[int, int]
OtherSentences = Callable[[str, Sequence[Place]], Iterable[tuple[int, int, str]]]


@dataclass(frozen=True, slots=True)
class PageScope:
    """Names that pages show even without data, and the thresholds.

    Attributes:
        sources: Configured sources.
        routes: Configured routes, without `other`.
        judges: Configured judges, the default one first.
        windows: Configured windows, the shortest first.
        thresholds: Worst acceptable mean, by quantity.
        route_thresholds: By route: thresholds that take precedence; None for no threshold.
        unpaged: What cannot page, and why.
        suites: Configured canary suites.
        segments: Configured values of each segment.
        criteria: Names of the configured criteria.
        texts: Texts of which answers are stored: all, failing or none.
        confidence: Level of the intervals.
        other_sentences: From an answer and the places of its claims, the sentences that are none, each with its kind.
        fingerprint: Names the configuration: another one has another; empty if not known.
        trace_url: Address of a trace, with `{trace_id}` in the place of its id; None for no links.
    """

    sources: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    windows: tuple[str, ...] = ()
    thresholds: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    suites: tuple[str, ...] = ()
    route_thresholds: Mapping[str, Mapping[str, float | None]] = field(default_factory=lambda: MappingProxyType({}))
    unpaged: tuple[str, ...] = ()
    texts: str = "all"
    confidence: float = 0.95
    trace_url: str | None = None
    fingerprint: str = ""
    other_sentences: OtherSentences = lambda _answer, _claims: ()
    criteria: tuple[str, ...] = ()
    segments: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))

    def trace_link(self, trace_id: str | None) -> str | None:
        """Address of a trace; None without a template or an id.

        >>> PageScope(trace_url="https://traces/t/{trace_id}").trace_link("a/../b?c")
        'https://traces/t/a%2F..%2Fb%3Fc'
        """
        if self.trace_url is None or not trace_id or not trace_id.strip("."):
            return None
        return self.trace_url.replace("{trace_id}", quote(trace_id, safe="", errors="replace"))

    def threshold(self, quantity: str, route: str) -> float | None:
        """Worst acceptable mean of a quantity on a route; None for none."""
        own = self.route_thresholds.get(route, {})
        return own[quantity] if quantity in own else self.thresholds.get(quantity)
