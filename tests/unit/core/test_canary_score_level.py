"""Levels of the retriever's scores: a fall of all of them shows in the health of a suite, and nothing less does."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from support.canaries import a_canary, a_failure, a_reply, a_report

from ragwatch.core.canary.history import RELEARN_RUNS, levels_of, with_levels
from ragwatch.core.canary.metric import CanaryMetric
from ragwatch.core.canary.report import SuiteReport

USUAL = (0.90, 0.86, 0.82)
CANARIES = [a_canary("d0", name=f"c{number}") for number in range(6)]


def a_run(*scores: Sequence[float], direction: str | None = "similarity") -> SuiteReport:
    """A run in which every canary finds what it expects first; the last scores are those of all further canaries."""
    replies = [scores[min(index, len(scores) - 1)] for index in range(len(CANARIES))]
    reports = [
        a_report(canary, a_reply(*(f"d{rank}" for rank in range(len(row))), scores=list(row), direction=direction))
        for canary, row in zip(CANARIES, replies, strict=True)
    ]
    return SuiteReport("docs", (5,), tuple(reports))


def health(before: SuiteReport, after: SuiteReport) -> tuple[float | None, float | None]:
    """Health and MRR of a run after another one."""
    run, _ = with_levels(after, with_levels(before, {})[1])
    return run.mean(CanaryMetric.HEALTH), run.mean(CanaryMetric.MRR)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ((0.60, 0.55, 0.50), 0.0),  # all below the worst of before
        ((0.81, 0.80, 0.79), 0.0),
        ((0.86, 0.82, 0.78), 1.0),  # by their spread of .08 and less
        ((0.95, 0.91, 0.87), 1.0),
    ],
)
def test_a_fall_of_all_scores_by_more_than_their_spread(scores: Sequence[float], expected: float) -> None:
    """Though every expected context ranks first, and no canary has a minimum score."""
    assert health(a_run(USUAL), a_run(scores)) == (expected, 1.0)


def test_distances_rise() -> None:
    """They are better the lower they are."""
    near, far = (0.1, 0.12, 0.15), (0.5, 0.52, 0.55)
    assert health(a_run(near, direction="distance"), a_run(far, direction="distance"))[0] == 0.0
    assert health(a_run(far, direction="distance"), a_run(near, direction="distance"))[0] == 1.0


def test_a_single_canary_that_falls_is_no_fall_of_all() -> None:
    """Its passages may have been edited. A canary without a reply says nothing for or against the others."""
    assert health(a_run(USUAL), a_run((0.5, 0.4, 0.3), USUAL))[0] == 1.0
    fallen = a_run((0.5, 0.4, 0.3))
    failed = SuiteReport("docs", (5,), (*fallen.reports[:-1], a_report(CANARIES[-1], a_failure())))
    assert health(a_run(USUAL), failed)[0] == 0.0


def test_one_score_is_compared_with_the_range_of_the_suite() -> None:
    """The best scores of six canaries lie between .7 and .9; without a direction nothing is compared."""
    tops = [(0.7 + 0.04 * number,) for number in range(6)]
    assert health(a_run(*tops), a_run(*((score - 0.3,) for (score,) in tops)))[0] == 0.0
    assert health(a_run(*tops), a_run(*((score - 0.1,) for (score,) in tops)))[0] == 1.0
    assert health(a_run((0.9,)), a_run((0.1,)))[0] == 1.0
    assert health(a_run(USUAL, direction=None), a_run((0.1, 0.1, 0.1), direction=None))[0] == 1.0


def test_lower_scores_become_usual_and_what_fell_does_not_hide_it() -> None:
    """The level stays while all are lower, also when canaries fall one after another, and is learned again at last."""
    run, levels = with_levels(a_run(USUAL), {})
    low = (0.5, 0.4, 0.3)
    _, levels = with_levels(a_run(low, low, USUAL), levels)
    run, levels = with_levels(a_run(low), levels)
    assert run.scores_fell
    for _ in range(RELEARN_RUNS + 1):
        run, levels = with_levels(a_run(low), levels)
    assert not run.scores_fell
    assert levels_of({key: list(level) for key, level in levels.items()}) == levels
    assert levels_of({"x": ["a", 1, 2], "y": [1.0], "z": None}) == levels_of(None) == {}
