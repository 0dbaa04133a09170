"""What is read from the metadata of an answer: where it belongs, and which versions it names.

Where it belongs is its route, its inclusion probability, and whether it is an answer to a canary. A version is that of
a release, a model, a prompt or an index. The store knows which values it has seen, in the transaction that stores the
cursor of the records. So the first answer with another value becomes an event once, over restarts and workers.
"""

from collections.abc import Callable, Iterable, Sequence

from ragwatch.model.sample import OTHER, Sample
from ragwatch.ports import VersionValue
from ragwatch.redaction.redactor import Redactor
from ragwatch.statistics.sampling import SamplingPlan

MARK_ADVICE = "log the whole X-Ragwatch-Canary as metadata.canary; until then these answers count as traffic"
_NOT_CANARY = frozenset({"", "-", "0", "false", "no", "none", "null"})


def placing(plan: SamplingPlan, factor: float = 1.0) -> Callable[[Sample], tuple[str, float]]:
    """A function from a sample to its route (as a label value) and its inclusion probability times `factor`."""
    routes = {route: (route, factor * plan.probability_of(route)) for route in plan.known_routes}
    other = (OTHER, factor * plan.probability_of(OTHER))
    if plan.stratum is None:
        return lambda sample: routes.get(sample.route, other)

    def by_stratum(sample: Sample) -> tuple[str, float]:
        route = plan.label(sample.route)
        return route, factor * plan.probability_of(route, sample.metadata.get(str(plan.stratum)))

    return by_stratum


def names_canary(value: object) -> bool:
    """Whether the value under `CANARY` marks an answer to one of our canaries.

    A service that logs the header of every request logs null, "" or "-" for requests of its users, and one with canary
    releases may log false there. Without this check, all of its traffic would be left out.

    >>> [names_canary(value) for value in ("refunds", True, None, "", "-", "None", False)]
    [True, True, False, False, False, False, False]
    """
    return value.strip().lower() not in _NOT_CANARY if isinstance(value, str) else bool(value)


MAX_CHARS = 100  # of a value
MAX_NEW = 50  # of one batch of records; a key with another value in each is no version
MAX_KNOWN = 10_000  # values that are remembered, beyond which the store is asked again


class NamedVersions:
    """Finds the values of some metadata keys that this process has not stored yet."""

    def __init__(self, fields: Sequence[str], redactor: Redactor | None = None) -> None:
        self._fields = tuple(fields)
        self._redactor = redactor
        self._known: set[tuple[str, str]] = set()

    def read(self, sample: Sample, now: float, versions: list[VersionValue]) -> None:
        """Append the values of a sample that are neither stored nor in `versions`; only texts and integers count."""
        if len(versions) >= MAX_NEW:
            return
        for field in self._fields:
            value = sample.metadata.get(field)
            if not isinstance(value, str | int) or isinstance(value, bool) or value == "":
                continue
            text = str(value)[:MAX_CHARS]
            if (field, text) in self._known:
                continue
            clean = text if self._redactor is None else self._redactor.redact(text)
            if (field, clean) in self._known or any((one.field, one.value) == (field, clean) for one in versions):
                continue
            versions.append(VersionValue(field, clean, now if sample.at is None else min(sample.at, now)))

    def note(self, versions: Iterable[VersionValue]) -> None:
        """Remember values that were stored."""
        if len(self._known) > MAX_KNOWN:
            self._known.clear()
        self._known.update((version.field, version.value) for version in versions)
