"""Sampling of the answers to judge, by a keyed hash of the id: reading a sample again gives the same result.

A judge may follow another: it reads a draw with a higher probability if the first one was unsure. Its inclusion
probability is that of the first times this one, which depends only on the evidence of the first, so weighting by the
inverse keeps estimates unbiased (two-phase sampling: Saerndal, Swensson and Wretman 1992, chapter 9); sampling more
where the first is unsure is Neyman allocation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from math import ceil, fsum, sqrt
from types import MappingProxyType

from ragwatch.model.evidence import Evidence
from ragwatch.model.sample import OTHER

_SPAN = 1 << 64
_MAX_HALVINGS = 10


def key_of(source: str, sample_id: str) -> str:
    """Return the identity of a sample in the store: a hash of source and id, as 32 hex digits (safe in URLs)."""
    return blake2b(f"{source}\x00{sample_id}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class SamplingHash:
    """Decides which samples are drawn, by a hash of their keys with the secret of the state, or else by the key itself.

    Without the secret nobody can choose ids that are never drawn.
    """

    def __init__(self, secret: bytes = b"") -> None:
        self._keyed = blake2b(digest_size=8, key=blake2b(secret, digest_size=32).digest()) if secret else None

    def draws(self, key: str, probability: float) -> bool:
        """Return whether the sample with this key is drawn."""
        return probability >= 1.0 or is_drawn(self.place(key), probability)

    def place(self, key: str) -> str:
        """Return the hex digits that decide on this key, uniformly distributed.

        >>> SamplingHash().place("ab"), len(SamplingHash(b"secret").place("ab"))
        ('ab', 16)
        """
        if self._keyed is None:
            return key
        keyed = self._keyed.copy()
        keyed.update(key.encode())
        return keyed.hexdigest()


def is_drawn(key: str, probability: float) -> bool:
    """Return whether the sample with this key is drawn: the first 64 bits of the key / 2^64 < probability.

    The key is a hash, so its bits are uniformly distributed, and the result never changes. Draws are nested: a sample
    that is drawn with probability 0.1 is drawn with every higher probability.
    """
    return key < _key_limit(probability)


@lru_cache(1024)
def _key_limit(probability: float) -> str:
    """Return the upper limit of the keys that are drawn; one that starts with it is longer, so greater, and is not."""
    first = ceil(probability * _SPAN)
    return f"{first:016x}" if first < _SPAN else "g"


@dataclass(frozen=True, slots=True)
class SamplingPlan:
    """Inclusion probabilities by route, and by stratum where one is configured."""

    probability: float = 0.1
    routes: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    stratum: str | None = None  # metadata key whose value names the stratum; None for no strata
    # probability by stratum; takes precedence over the route
    strata: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    known_routes: frozenset[str] = frozenset()  # allowed values of the label `route`

    def label(self, route: str) -> str:
        """Return the route as a label value: the route if it is configured, else `other`."""
        return route if route in self.known_routes else OTHER

    def probability_of(self, route: str, stratum: object = None) -> float:
        """Return the inclusion probability of a sample with this route label and stratum value."""
        if self.strata and isinstance(stratum, str) and stratum in self.strata:
            return self.strata[stratum]
        return self.routes.get(route, self.probability)

    @property
    def highest(self) -> float:
        """The highest inclusion probability of any sample."""
        return max(self.probability, *self.routes.values(), *self.strata.values(), 0.0)


def shedding_factor(pending: int, shed_above: int | None) -> float:
    """Return the load shedding factor on inclusion probabilities, given the number of pending draws.

    It is 1 up to `shed_above` draws, and halved for each further `shed_above`. No draw is dropped: fewer are drawn, and
    the lower probability is stored with each, so that estimates stay unbiased and only their intervals widen.

    >>> [shedding_factor(pending, 100) for pending in (0, 100, 101, 200, 201, 500)]
    [1.0, 1.0, 0.5, 0.5, 0.25, 0.0625]
    >>> shedding_factor(10**6, None)
    1.0
    """
    if shed_above is None or pending <= shed_above:
        return 1.0
    return 0.5 ** min(_MAX_HALVINGS, -(-pending // shed_above) - 1)


@dataclass(frozen=True, slots=True)
class FollowRule:
    """Sampling probabilities of a judge that follows another judge."""

    sure: float  # probability if the first judge is certain
    unsure: float  # probability if the first judge has the maximum uncertainty, or failed


def uncertainty(evidence: Evidence) -> float | None:
    """Returns a judge's uncertainty about its claims, 0 to 1: 2 sqrt(mean of s(1 - s)) over their supports s.

    None if the judge gives no probabilities, or there is no claim.

    >>> from ragwatch.model.evidence import Claim, ClaimVerdict
    >>> claims = tuple(Claim("c", None, None, ClaimVerdict.NOT_IN_CONTEXT, (), support=share) for share in (0.5, 1.0))
    >>> round(uncertainty(Evidence(claims, ())), 3)
    0.707
    """
    return uncertainty_of([claim.support for claim in evidence.counted if claim.support is not None])


def uncertainty_of(supports: Sequence[float]) -> float | None:
    """Returns the uncertainty, as above, about claims with these supports; None if there are none."""
    return 2.0 * sqrt(fsum(share * (1.0 - share) for share in supports) / len(supports)) if supports else None


def follow_probability(rule: FollowRule, evidence: Evidence | None) -> float:
    """Returns the probability that the second judge reads a draw; `evidence` is None if the first judge failed."""
    if evidence is None:
        return rule.unsure
    return rule.sure + (rule.unsure - rule.sure) * (uncertainty(evidence) or 0.0)
