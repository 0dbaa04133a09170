"""Canary figures: what one run of a suite adds to the tallies, and shows as gauges until the next one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from ragwatch.core.canary.suite import SuiteReport
from ragwatch.core.snapshot import Gauge
from ragwatch.core.tally import Tallies, Tally, observe


def tallies_of(found: SuiteReport) -> Tallies:
    """What a run adds to the tallies. The time of a call that failed is not one of the retriever's."""
    tallies: Tallies = Counter({(Tally.CANARY_RUNS, (found.suite,)): 1})
    for failure, count in found.failures.items():
        tallies[Tally.CANARY_FAILURES, (found.suite, str(failure))] += count
    for each in found.reports:
        if each.failure is None:
            observe(tallies, Tally.CANARY_SECONDS, (found.suite,), each.retrieved.seconds)
    return tallies


def gauges_of(
    found: SuiteReport, *, at: float, last_success: float | None, ks: Collection[int] | None = None
) -> dict[tuple[Gauge, tuple[str, ...]], float]:
    """What the last run shows. What it could not find out is absent.

    Args:
        found: The run.
        at: When it was, in seconds since the epoch.
        last_success: When every canary could last be asked; None for never.
        ks: Cut-offs that are shown; None for those of the run.
    """
    suite = found.suite
    by_k = {
        Gauge.CANARY_RECALL: found.recall,
        Gauge.CANARY_PRECISION: found.precision,
        Gauge.CANARY_NDCG: found.ndcg,
    }
    known: dict[tuple[Gauge, tuple[str, ...]], float | None] = {
        (gauge, (suite, str(k))): figure(k) for gauge, figure in by_k.items() for k in found.ks if ks is None or k in ks
    }
    for each in found.reports:
        known[Gauge.CANARY_SUCCESS, (suite, each.canary.name)] = None if each.failure else float(each.success)
    asked = len(found.reports) - sum(found.failures.values())
    known |= {
        (Gauge.CANARY_RECIPROCAL_RANK, (suite,)): found.mrr,
        (Gauge.CANARY_COVERAGE, (suite,)): found.coverage,
        (Gauge.CANARY_HEALTH, (suite,)): found.health,
        (Gauge.CANARY_DEGRADED, (suite,)): len(found.degraded) if asked else None,
        (Gauge.CANARY_LAST_RUN, (suite,)): at,
        (Gauge.CANARY_LAST_SUCCESS, (suite,)): last_success,
    }
    return {cell: value for cell, value in known.items() if value is not None}
