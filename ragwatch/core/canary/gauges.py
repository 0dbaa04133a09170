"""Converts a run of a canary suite to counters and gauges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ragwatch.core.canary.report import SuiteReport
from ragwatch.core.estimate import Addends
from ragwatch.core.snapshot import Gauge
from ragwatch.core.tally import Tallies, Tally, observe
from ragwatch.core.trends import BucketKey, TrendKey, TrendKind, add_to

NO_ANSWERS: Mapping[tuple[Gauge, tuple[str, ...]], float] = MappingProxyType({})


def tallies_of(run: SuiteReport) -> Tallies:
    """Returns what a run adds to the counters. Durations of failed calls are not observed."""
    tallies: Tallies = Counter({(Tally.CANARY_RUNS, (run.suite,)): 1})
    for failure, count in run.failures.items():
        tallies[Tally.CANARY_FAILURES, (run.suite, str(failure))] += count
    for report in run.reports:
        if report.failure is None:
            observe(tallies, Tally.CANARY_SECONDS, (run.suite,), report.retrieved.seconds)
    return tallies


def gauges_of(
    run: SuiteReport, *, at: float, last_success: float | None, ks: Collection[int] | None = None
) -> dict[tuple[Gauge, tuple[str, ...]], float]:
    """Returns the gauges of the latest run. Unknown figures are left out.

    Args:
        run: The run.
        at: Time of the run, in seconds since the epoch.
        last_success: Time of the last run in which every canary got a reply; None if there was none.
        ks: Cut-offs to export; None for all cut-offs of the run.
    """
    exported = tuple(k for k in run.ks if ks is None or k in ks)
    gauges = _ratios(run, _SUITE_GAUGES, (run.suite,), exported)
    for category, part in run.by_category.items():
        gauges |= _ratios(part, _CATEGORY_GAUGES, (run.suite, str(category)), exported)
    for report in run.reports:
        success = None if report.failure else float(report.success)
        gauges[Gauge.CANARY_SUCCESS, (run.suite, report.canary.name)] = success
    gauges |= {
        (Gauge.CANARY_LAST_RUN, (run.suite,)): at,
        (Gauge.CANARY_LAST_SUCCESS, (run.suite,)): last_success,
    }
    return {key: value for key, value in gauges.items() if value is not None}


def sums_of(
    run: SuiteReport, at: float, answers: Mapping[tuple[Gauge, tuple[str, ...]], float] = NO_ANSWERS
) -> dict[BucketKey, Addends]:
    """Returns what a run adds to the trends: each figure counts once. Unknown figures are left out.

    Args:
        run: The run.
        at: Time of the run, in seconds since the epoch.
        answers: Mean scores of the answers to the canaries, by (suite, quantity, origin of the contexts).
    """
    by_k = {"recall": run.recall, "precision": run.precision, "f1": run.f1, "ndcg": run.ndcg}
    figures = {f"{name}@{k}": figure(k) for name, figure in by_k.items() for k in run.ks}
    figures |= {"mrr": run.mrr, "coverage": run.coverage, "health": run.health}
    figures["degraded"] = len(run.degraded) / run.replies if run.replies else None
    figures |= {f"{quantity} ({contexts} contexts)": value for (_, (_, quantity, contexts)), value in answers.items()}
    sums: dict[BucketKey, Addends] = {}
    for name, figure in figures.items():
        if figure is not None:
            add_to(sums, TrendKey(TrendKind.CANARY, run.suite, name), at, Addends.one(figure, 1.0))
    return sums


class _Gauges(NamedTuple):
    """Gauges of a run: of a whole suite, or of one category."""

    recall: Gauge
    precision: Gauge
    f1: Gauge
    ndcg: Gauge
    reciprocal_rank: Gauge
    coverage: Gauge
    health: Gauge
    degraded: Gauge


_SUITE_GAUGES = _Gauges(
    recall=Gauge.CANARY_RECALL,
    precision=Gauge.CANARY_PRECISION,
    f1=Gauge.CANARY_F1,
    ndcg=Gauge.CANARY_NDCG,
    reciprocal_rank=Gauge.CANARY_RECIPROCAL_RANK,
    coverage=Gauge.CANARY_COVERAGE,
    health=Gauge.CANARY_HEALTH,
    degraded=Gauge.CANARY_DEGRADED,
)
_CATEGORY_GAUGES = _Gauges(
    recall=Gauge.CANARY_CATEGORY_RECALL,
    precision=Gauge.CANARY_CATEGORY_PRECISION,
    f1=Gauge.CANARY_CATEGORY_F1,
    ndcg=Gauge.CANARY_CATEGORY_NDCG,
    reciprocal_rank=Gauge.CANARY_CATEGORY_RECIPROCAL_RANK,
    coverage=Gauge.CANARY_CATEGORY_COVERAGE,
    health=Gauge.CANARY_CATEGORY_HEALTH,
    degraded=Gauge.CANARY_CATEGORY_DEGRADED,
)


def _ratios(
    run: SuiteReport, names: _Gauges, labels: tuple[str, ...], ks: Sequence[int]
) -> dict[tuple[Gauge, tuple[str, ...]], float | None]:
    """Figures of a run by gauge; unknown ones are None."""
    by_k = {names.recall: run.recall, names.precision: run.precision, names.f1: run.f1, names.ndcg: run.ndcg}
    return {(gauge, (*labels, str(k))): figure(k) for gauge, figure in by_k.items() for k in ks} | {
        (names.reciprocal_rank, labels): run.mrr,
        (names.coverage, labels): run.coverage,
        (names.health, labels): run.health,
        (names.degraded, labels): len(run.degraded) if run.replies else None,
    }
