"""Budget: what calls may cost, what they did cost, and how far probabilities must fall to stay within it.

A cap is never passed, for the worst case is set aside before a call. That alone would spend the day's money on the
morning's answers; therefore probabilities fall, for all draws alike and before the draw, while there is money left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil, exp, expm1

LEAST_FACTOR = 1 / 1024
HORIZON = 6
"""What is left of a cap is to last for this part of its span. Where traffic asks for more than a cap gives, spending
settles where f r = (C - f r S) / (S / 6) with rate r, span S and cap C: at 6/7 of the cap."""
BURST = 1.25
"""Never more than so many times what the cap gives on average. Without it the first quarter of a first day takes three
quarters of its money where traffic asks for ten times the cap, and the day's estimate has a tenth of the effective
sample size that the same money could buy (0.7 of it with it)."""
RATE_SECONDS = 600.0
ANCHOR_SECONDS = 86400.0
FEW = 20


@dataclass(frozen=True, slots=True)
class Cost:
    """Money and tokens.

    Attributes:
        usd: US dollars.
        tokens: Tokens in and out, together.
    """

    usd: float = 0.0
    tokens: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.usd + other.usd, self.tokens + other.tokens)


@dataclass(frozen=True, slots=True)
class SpendingCap:
    """The most that may be spent within any span of so many seconds.

    Attributes:
        seconds: Length of the sliding span.
        usd: US dollars; None for no limit.
        tokens: Tokens; None for no limit.
    """

    seconds: float
    usd: float | None = None
    tokens: int | None = None


def fits(cap: SpendingCap, spent: Cost, worst: Cost) -> bool:
    """Whether a call that may cost so much can be made when so much was spent within the cap's span.

    >>> fits(Cap(60.0, usd=1.0), Cost(0.75, 10), Cost(0.25, 10)), fits(Cap(60.0, tokens=19), Cost(0, 10), Cost(0, 10))
    (True, False)
    """
    return all(used + more <= limit for limit, used, more in _limits(cap, spent, worst))


def remaining(caps: Sequence[SpendingCap], spent: Sequence[Cost]) -> float:
    """Share of the budget that is left, 0 to 1: that of the cap, and of money or tokens, which has least.

    Args:
        caps: The caps.
        spent: What was spent within the span of each.

    >>> remaining([Cap(3600.0, usd=1.0, tokens=100), Cap(86400.0, usd=10.0)], [Cost(0.5, 80), Cost(2.0, 200)])
    0.2
    >>> remaining([], []), remaining([Cap(60.0, usd=1.0)], [Cost(1.5)])
    (1.0, 0.0)
    """
    shares = [
        max(0.0, (limit - used) / limit) if limit else 0.0
        for cap, total in zip(caps, spent, strict=True)
        for limit, used, _ in _limits(cap, total, Cost())
    ]
    return min(1.0, *shares) if shares else 1.0


def paced(caps: Sequence[SpendingCap], spent: Sequence[Cost], *, each: Cost, waiting: float, rate: float) -> float:
    """What a judge's probability is multiplied with, in (0, 1], so that its money lasts.

    For each cap, (left - waiting * each) / (horizon * rate * each): what is not promised to draws that wait already,
    over what will arrive within a sixth of the cap's span; and not much above cap / (span * rate * each), what it could
    give at this rate for ever. The smallest counts. It never falls to 0: an estimate covers only what may be drawn.

    Args:
        caps: The caps.
        spent: What was spent within the span of each.
        each: Expected cost of one reading.
        waiting: Draws that wait for the judge.
        rate: Draws a second that it would be given at factor 1.

    >>> day = Cap(86400.0, usd=8.64)
    >>> paced([day], [Cost()], each=Cost(0.001), waiting=0, rate=0.1)
    1.0
    >>> paced([day], [Cost()], each=Cost(0.001), waiting=0, rate=0.5)
    0.25
    >>> round(paced([day], [Cost(7.2)], each=Cost(0.001), waiting=720, rate=0.5), 6)
    0.1
    >>> paced([day], [Cost(7.2)], each=Cost(0.001), waiting=5000, rate=0.5) == LEAST_FACTOR
    True
    """
    factor = 1.0
    for cap, total in zip(caps, spent, strict=True):
        for limit, used, taken in _limits(cap, total, each):
            free, wanted = limit - used - waiting * taken, cap.seconds * rate * taken
            if free <= 0.0:
                return LEAST_FACTOR
            if wanted > 0.0:
                factor = min(factor, HORIZON * free / wanted, BURST * limit / wanted)
    return max(LEAST_FACTOR, factor)


def _limits(cap: SpendingCap, first: Cost, second: Cost) -> Iterator[tuple[float, float, float]]:
    """(limit, first, second) in dollars and in tokens, where the cap has that limit."""
    if cap.usd is not None:
        yield cap.usd, first.usd, second.usd
    if cap.tokens is not None:
        yield cap.tokens, first.tokens, second.tokens


@dataclass(slots=True)
class DecayingRate:
    """How often something happens of late: counts weighted by exp(-age / seconds), over the weight of the time watched.

    Attributes:
        seconds: Time constant.
    """

    seconds: float = RATE_SECONDS
    _count: float = 0.0
    _since: float | None = None
    _at: float = 0.0

    def add(self, count: float, now: float) -> None:
        """So many since the last time. The first time says only that we watch from now on.

        >>> rate = Rate(60.0)
        >>> rate.add(5, 0.0), rate.per_second
        (None, None)
        >>> rate.add(20, 10.0), round(rate.per_second, 2)
        (None, 2.17)
        >>> rate.add(0, 1000.0), round(rate.per_second, 6)
        (None, 0.0)
        """
        if self._since is None:
            self._since = self._at = now
            return
        self._count = self._count * exp(-max(0.0, now - self._at) / self.seconds) + count
        self._at = max(self._at, now)

    @property
    def per_second(self) -> float | None:
        """Happenings a second, as of the last time; None before any time has passed."""
        watched = 0.0 if self._since is None else self._at - self._since
        return self._count / (self.seconds * -expm1(-watched / self.seconds)) if watched > 0.0 else None


@dataclass(slots=True)
class SpendingForecast:
    """Learns what a judge is given and what a reading costs, and says how its probability must fall.

    Attributes:
        since: Begin of the span whose spending `see` is to be told next; None before the first time. It moves on once
            a day, so that prices are those of late.
        each: Mean cost of a reading, None before there were any.
    """

    since: float | None = None
    each: Cost | None = None
    _arrivals: DecayingRate = field(default_factory=DecayingRate)
    _assigned: float = 0.0
    _settled: float = 0.0

    def see(self, now: float, *, assigned: float, settled: float, spent: Cost, factor: float) -> None:
        """Learn from counts.

        Args:
            now: Seconds since the epoch.
            assigned: Draws that the judge was given, ever.
            settled: Draws that it has read, ever.
            spent: What it spent since `since`. What is under way counts at its worst.
            factor: What its probability was multiplied with since the last time.
        """
        first = self.since is None
        self._arrivals.add(0.0 if first else (assigned - self._assigned) / factor, now)
        self._assigned = assigned
        if self.since is None:
            self.since, self._settled = now, settled
            return
        readings = settled - self._settled
        if readings >= FEW or (readings > 0 and self.each is None):
            self.each = Cost(spent.usd / readings, ceil(spent.tokens / readings))
        if readings >= FEW and now - self.since >= ANCHOR_SECONDS:
            self.since, self._settled = now, settled

    def factor(self, caps: Sequence[SpendingCap], spent: Sequence[Cost], waiting: float) -> float:
        """What its probability is to be multiplied with from now on: see `paced`. 1 before anything is known."""
        return paced(caps, spent, each=self.each or Cost(), waiting=waiting, rate=self._arrivals.per_second or 0.0)
