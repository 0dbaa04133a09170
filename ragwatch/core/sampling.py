"""Sampling: which answers are judged. A hash of the sample's identity decides, so reading it again decides alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from math import ceil
from types import MappingProxyType

from ragwatch.core.sample import OTHER

_SPAN = 1 << 64
_MOST_HALVINGS = 10


def key_of(source: str, sample_id: str) -> str:
    """Identity of a sample in the store: 32 hex digits that depend on source and sample id only.

    Hex, because ids come from outside and end up in URLs and file names.

    >>> key_of("app", "request-1") == key_of("app", "request-1") != key_of("other", "request-1")
    True
    """
    digest = _begun(source).copy()
    digest.update(sample_id.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


@lru_cache(256)
def _begun(source: str) -> blake2b:
    """The hash with the source in it: a copy goes on from there for half of what a new one takes."""
    return blake2b(f"{source}\x00".encode("utf-8", "surrogatepass"), digest_size=16)


def chosen(key: str, probability: float) -> bool:
    """Whether the sample with this key is drawn: the first 64 bits of the key / 2^64 < probability.

    The key is a hash already, so its bits are as good as random, and the same sample is decided alike for ever.
    Draws are nested: what is chosen at 0.1 is chosen at every higher probability too.

    >>> chosen("00ff" + 28 * "0", 0.01), chosen("ff" + 30 * "0", 0.99), chosen("ff" + 30 * "f", 1.0)
    (True, False, True)
    """
    return key < _bound(probability)


@lru_cache(1024)
def _bound(probability: float) -> str:
    """The hex digits that keys chosen with this probability come before.

    A key is longer than its first 16 digits, so that one beginning with just these comes behind them, as it ought to.

    >>> _bound(0.5), _bound(1.0), _bound(0.0)
    ('8000000000000000', 'g', '0000000000000000')
    """
    first = ceil(probability * _SPAN)
    return f"{first:016x}" if first < _SPAN else "g"


@dataclass(frozen=True, slots=True)
class SamplingPlan:
    """Inclusion probabilities by route, and by stratum where one is configured.

    Attributes:
        probability: For routes and strata not named.
        routes: By route.
        stratum: Metadata key whose value names the stratum; None for no strata.
        strata: By stratum; takes precedence over the route.
        known_routes: Allowed values of the label `route`.
    """

    probability: float = 0.1
    routes: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    stratum: str | None = None
    strata: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    known_routes: frozenset[str] = frozenset()

    def label(self, route: str) -> str:
        """The route as a label value: itself when configured, else `other`.

        >>> SamplingPlan(known_routes=frozenset({"search"})).label("s3cr3t-user-42")
        'other'
        """
        return route if route in self.known_routes else OTHER

    def probability_of(self, route: str, stratum: object = None) -> float:
        """Inclusion probability of a sample with this route label and stratum value.

        >>> plan = SamplingPlan(0.1, {"support": 1.0}, "tier", {"gold": 0.5})
        >>> plan.probability_of("search"), plan.probability_of("support"), plan.probability_of("support", "gold")
        (0.1, 1.0, 0.5)
        """
        if self.strata and isinstance(stratum, str) and stratum in self.strata:
            return self.strata[stratum]
        return self.routes.get(route, self.probability)


def kept_when_behind(pending: int, shed_above: int | None) -> float:
    """Factor on inclusion probabilities while draws pile up: 1 up to `shed_above`, halved with each further as many.

    Nothing is dropped after the draw. Fewer are drawn, still by the hash of their id, and the lower probability is
    stored with each: the estimates stay unbiased, only their intervals widen.

    >>> [kept_when_behind(pending, 100) for pending in (0, 100, 101, 200, 201, 500)]
    [1.0, 1.0, 0.5, 0.5, 0.25, 0.0625]
    >>> kept_when_behind(10**6, None)
    1.0
    """
    if shed_above is None or pending <= shed_above:
        return 1.0
    return 0.5 ** min(_MOST_HALVINGS, -(-pending // shed_above) - 1)
