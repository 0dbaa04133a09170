"""Defines the names in the configuration that pages show."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

Place = tuple[int, int]
OtherSentences = Callable[[str, Sequence[Place]], Iterable[tuple[int, int, str]]]
"""From an answer and the places of its claims, the sentences that are none, each with its kind."""


@dataclass(frozen=True, slots=True)
class PageScope:
    """Names that pages show even without data, and the thresholds."""

    sources: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()  # without `other`
    judges: tuple[str, ...] = ()  # the default one first
    windows: tuple[str, ...] = ()  # the shortest first
    thresholds: Mapping[str, float] = field(default_factory=dict)  # worst acceptable mean, by quantity
    suites: tuple[str, ...] = ()  # of canaries
    route_thresholds: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    """By route: thresholds that take precedence; None for no threshold."""
    unpaged: tuple[str, ...] = ()  # what cannot page, and why
    texts: str = "all"  # texts of which answers are stored: all, failing or none
    confidence: float = 0.95  # level of the intervals
    trace_url: str | None = None  # address of a trace, with `{trace_id}` in the place of its id; None for no links
    fingerprint: str = ""  # names the configuration: another one has another; empty if not known
    other_sentences: OtherSentences = lambda _answer, _claims: ()
    criteria: tuple[str, ...] = ()
    segments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # values of each segment

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
