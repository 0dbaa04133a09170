"""Compares the retriever's scores with those of earlier runs: a fall of all of them shows where no rank does.

A retriever whose scores all fall, after a change of the embedding for example, may still rank the right passages first:
recall and MRR stay. The scores of a canary fell if the best one is below the worst one of before, so by more than their
own spread.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from ragwatch.core.canary.definition import Canary, Direction
from ragwatch.core.canary.report import CanaryReport, SuiteReport

RELEARN_RUNS = 40
"""Runs after which lower scores count as the new level."""


class ScoreLevel(NamedTuple):
    """Usual scores of a canary, the higher the better; distances have their sign changed.

    Attributes:
        fallen: Number of runs in a row whose scores were all lower.
    """

    low: float
    high: float
    fallen: int = 0


Levels = Mapping[str, ScoreLevel]


def levels_of(state: object) -> dict[str, ScoreLevel]:
    """Returns the levels in a saved state; those that are none are left out."""
    rows = state.items() if isinstance(state, Mapping) else ()
    return {
        str(key): ScoreLevel(float(row[0]), float(row[1]), int(row[2]))
        for key, row in rows
        if isinstance(row, list | tuple) and len(row) == 3 and all(isinstance(cell, int | float) for cell in row)
    }


def with_levels(run: SuiteReport, before: Levels) -> tuple[SuiteReport, dict[str, ScoreLevel]]:
    """Returns the run, with `scores_fell` set if the scores of every canary fell, and the levels after it.

    A single canary whose scores fell is no change of the retriever: its passages may have been edited. Where a canary
    has one score only, its spread is the range of the best scores of the suite.
    """
    tops = [level.high for level in before.values()]
    across = max(tops, default=0.0) - min(tops, default=0.0)
    after, known, fell = dict(before), 0, set()
    for report in run.reports:
        now, key = _level(report), _key(report.canary)
        if now is None:
            continue
        old = before.get(key)
        spread = 0.0 if old is None else (old.high - old.low) or across
        known += old is not None
        if old is None or not spread or now.high >= old.high - spread or old.fallen >= RELEARN_RUNS:
            after[key] = now
        else:
            fell.add(report.canary.name)
            after[key] = old._replace(fallen=old.fallen + 1)
    if not fell or len(fell) < known:
        return run, after
    reports = (replace(report, scores_fell=report.canary.name in fell) for report in run.reports)
    return replace(run, reports=tuple(reports)), after


def _level(report: CanaryReport) -> ScoreLevel | None:
    """Scores of a run; None without a direction, or if a passage has no score."""
    scores = [hit.score for hit in report.retrieved.hits if hit.score is not None]
    if report.retrieved.direction is None or not scores or len(scores) < len(report.retrieved.hits):
        return None
    sign = 1.0 if report.retrieved.direction is Direction.SIMILARITY else -1.0
    ordered = sorted(sign * score for score in scores)
    return ScoreLevel(ordered[0], ordered[-1])


def _key(canary: Canary) -> str:
    """A canary with another query is another one. The query itself is not kept."""
    return hashlib.sha256(f"{canary.name}\0{canary.query}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
