"""Plan: what a configuration asks of the kit, without knowing where it was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ragwatch.core.scores import Quantity
from ragwatch.exporter.oncall.burn import BURNS, Burn

WINDOWS = (900.0, 3600.0, 21600.0, 86400.0, 259200.0)


@dataclass(frozen=True, slots=True)
class Links:
    """Where the links of an alert lead; addresses without a slash at the end.

    Attributes:
        runbooks: Folder of the runbooks; None for no links to them, since a dead one costs more time than none.
        dashboards: Grafana; None for no links to it.
        pages: ragwatch itself, as people reach it.
    """

    runbooks: str | None
    dashboards: str | None
    pages: str


@dataclass(frozen=True, slots=True)
class Limits:
    """Where things other than quality begin to be bad. Times in seconds.

    Attributes:
        samples: Effective samples below which an estimate alarms nobody.
        hold: How long most conditions must hold before they are told.
        coverage: Judged share of the draws, below which estimates say little about the rest.
        stale: Age of the newest scored answer.
        silent: Time without any record from a source.
        lag: Age of the oldest unread record, and of the figures shown.
        rejects: Share of records that could not be read.
        canaries: Age of the last run of a suite that is run twice as often at least; for the others, how late a run is.
        failures: Share of a judge's calls that failed.
        budget: Share of a judge's budget that is left.
        unquoted: Claims called supported without a quote, for each judged answer.
        free: Free bytes on the disk of the state directory.
    """

    samples: int = 30
    hold: float = 300.0
    coverage: float = 0.8
    stale: float = 21600.0
    silent: float = 3600.0
    lag: float = 900.0
    rejects: float = 0.05
    canaries: float = 3600.0
    failures: float = 0.5
    budget: float = 0.1
    unquoted: float = 0.2
    free: int = 512 << 20


@dataclass(frozen=True, slots=True)
class Plan:
    """All that rules are made from.

    Attributes:
        judge: The judge whose word calls people.
        job: Value of the label `job` under which ragwatch is scraped.
        links: Where the links of an alert lead.
        thresholds: The worst mean that is still good, by quantity.
        objectives: Mean, 0 to 1, that is owed over thirty days, by quantity; for quantities of which little is good,
            1 - mean.
        burns: Speeds of using up the budget 1 - objective at which somebody is told.
        windows: Spans over which estimates are recorded, in seconds, rising. The first is for what is sudden, the
            last is the baseline.
        window: The one of them that thresholds are held against.
        confidence: Two-sided level of the intervals.
        rare: The longest time between two runs, in seconds, of suites of canaries that are run less than twice within
            `limits.canaries`.
        limits: Where other things begin to be bad.
    """

    judge: str
    job: str
    links: Links
    thresholds: Mapping[Quantity, float] = field(default_factory=lambda: MappingProxyType({}))
    objectives: Mapping[Quantity, float] = field(default_factory=lambda: MappingProxyType({}))
    burns: tuple[Burn, ...] = BURNS
    windows: tuple[float, ...] = WINDOWS
    window: float = 3600.0
    confidence: float = 0.95
    rare: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    limits: Limits = Limits()
