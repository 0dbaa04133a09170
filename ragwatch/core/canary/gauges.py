"""Converts a run of a canary suite to counters and gauges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from ragwatch.core.canary.answer import answer_means
from ragwatch.core.canary.definition import Category
from ragwatch.core.canary.metric import CanaryMetric
from ragwatch.core.canary.report import SuiteReport
from ragwatch.core.estimate import Addends
from ragwatch.core.snapshot import Gauge
from ragwatch.core.tally import Tallies, Tally, observe
from ragwatch.core.trends import BucketKey, TrendKey, TrendKind, add_to


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
    """Returns the known gauges of the latest run, at time `at`, for the cut-offs `ks` (all by default).

    `last_success` is the time of the last run in which every canary got a reply.
    """
    exported = tuple(k for k in run.ks if ks is None or k in ks)
    gauges = _ratios(run, None, exported)
    for category, part in run.by_category.items():
        gauges |= _ratios(part, category, exported)
    for report in run.reports:
        success = None if report.failure else float(report.success)
        gauges[Gauge.CANARY_SUCCESS, (run.suite, report.canary.name)] = success
    gauges |= {(Gauge.CANARY_ANSWER, (run.suite, *labels)): mean for labels, mean in answer_means(run.answers).items()}
    gauges |= {
        (Gauge.CANARY_LAST_RUN, (run.suite,)): at,
        (Gauge.CANARY_LAST_SUCCESS, (run.suite,)): last_success,
    }
    return {key: value for key, value in gauges.items() if value is not None}


def sums_of(run: SuiteReport, at: float) -> dict[BucketKey, Addends]:
    """Returns what a run at this time adds to the trends: each figure counts once. Unknown figures are left out."""
    figures = {
        f"{metric}@{k}" if metric.row.by_k else str(metric): run.mean(metric, k)
        for metric in CanaryMetric
        if metric.row.series is not None
        for k in (run.ks if metric.row.by_k else (run.cutoff,))
    }
    figures["degraded"] = len(run.degraded) / run.replies if run.replies else None
    means = answer_means(run.answers)
    figures |= {f"{quantity} ({contexts} contexts)": value for (quantity, contexts), value in means.items()}
    sums: dict[BucketKey, Addends] = {}
    for name, figure in figures.items():
        if figure is not None:
            add_to(sums, TrendKey(TrendKind.CANARY, run.suite, name), at, Addends.one(figure, 1.0))
    return sums


def _ratios(
    run: SuiteReport, category: Category | None, ks: Sequence[int]
) -> dict[tuple[Gauge, tuple[str, ...]], float | None]:
    """Figures of a suite, or of one category of its canaries, by gauge; unknown ones are None."""
    labels = (run.suite,) if category is None else (run.suite, str(category))
    gauges: dict[tuple[Gauge, tuple[str, ...]], float | None] = {}
    for metric in CanaryMetric:
        if (series := metric.row.series) is not None:
            gauge = series.gauge if category is None else series.by_category
            if metric.row.by_k:
                gauges |= {(gauge, (*labels, str(k))): run.mean(metric, k) for k in ks}
            else:
                gauges[gauge, labels] = run.mean(metric)
    degraded = Gauge.CANARY_DEGRADED if category is None else Gauge.CANARY_CATEGORY_DEGRADED
    return gauges | {(degraded, labels): len(run.degraded) if run.replies else None}
