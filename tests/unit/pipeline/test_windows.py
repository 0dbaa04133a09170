"""Sliding windows: sums by minute, added up over the range of each window."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from support.kit import JUDGE

from ragwatch.core.estimate import Addends
from ragwatch.core.estimators import hajek
from ragwatch.core.snapshot import EstimateRow, Exemplar
from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.windows import SlidingWindows
from ragwatch.ports import ScoreRow

NOW = 1_700_000_040.0  # a minute has begun 20 seconds ago
F = Quantity.FAITHFULNESS


def a_row(score: float | None = 1.0, *, at: float = NOW, **parts: Any) -> ScoreRow:
    """A judged row with one score (None: unknown)."""
    return replace(
        ScoreRow(
            seq=1,
            key="k",
            at=at,
            route="search",
            judge=JUDGE,
            version="v1",
            probability=1.0,
            scores={F: score},
            reason=None,
            trace_id="t",
        ),
        **parts,
    )


def missed(**parts: Any) -> ScoreRow:
    """An unjudged row."""
    return a_row(scores=None, reason="timeout", **parts)


@pytest.fixture
def windows() -> SlidingWindows:
    """Two windows, one judge in force at version v1."""
    return SlidingWindows({"1m": 60.0, "15m": 900.0}, {JUDGE: "v1"}, 0.95)


def ns(windows: SlidingWindows, now: float = NOW) -> dict[str, int]:
    """Number of scores by window."""
    return {row.window: row.estimate.n for row in windows.summary(now)[0]}


def test_the_share_in_unmeasured_languages_is_by_weight(windows: SlidingWindows) -> None:
    """Over minutes that are added up, and of the answers that have the score."""
    windows.add([a_row(probability=0.5, language="de"), a_row(at=NOW - 300), a_row(at=NOW - 300, language="fr")])
    assert [row.unmeasured for row in windows.summary(NOW)[0]] == [1.0, 0.75]


def test_empty(windows: SlidingWindows) -> None:
    """Nothing in, nothing out: no estimate, no coverage, no zero."""
    assert windows.summary(NOW) == ((), {})
    assert (windows.last_sample, windows.exemplars, windows.longest) == ({}, {}, 900.0)


def test_estimates_are_those_of_the_scores(windows: SlidingWindows) -> None:
    """The sums of the rows give the estimate, weights and all."""
    windows.add([a_row(1.0, probability=0.5), a_row(0.0, at=NOW - 300), missed(probability=0.25)])
    rows = windows.summary(NOW)[0]
    recent = hajek.estimate(Addends.of([(1.0, 0.5)]), unjudged_weight=4.0)
    whole = hajek.estimate(Addends.of([(1.0, 0.5), (0.0, 1.0)]), unjudged_weight=4.0)
    assert rows == (  # best: the share with the best score
        EstimateRow(F, "search", JUDGE, "1m", recent, best=1.0),  # type: ignore[arg-type]
        EstimateRow(F, "search", JUDGE, "15m", whole, best=2 / 3),  # type: ignore[arg-type]
    )


def test_windows_slide(windows: SlidingWindows) -> None:
    """A row leaves each window in its time, and memory with the longest."""
    windows.add([a_row()])
    assert ns(windows) == {"1m": 1, "15m": 1}
    assert ns(windows, NOW + 60) == {"15m": 1}
    windows.forget(NOW + 840)
    assert ns(windows, NOW + 840) == {"15m": 1}
    assert ns(windows, NOW + 900) == {}
    windows.forget(NOW + 1000)
    assert windows._minutes == {}


def test_order_of_arrival_means_nothing(windows: SlidingWindows) -> None:
    """Late rows count in the minute of their answer."""
    rows = [a_row(0.1 * index, at=NOW - 37 * index) for index in range(11)]
    other = SlidingWindows({"1m": 60.0, "15m": 900.0}, {JUDGE: "v1"}, 0.95)
    windows.add(rows)
    other.add(reversed(rows))
    for mine, theirs in zip(windows.summary(NOW)[0], other.summary(NOW)[0], strict=True):
        assert mine.estimate.value == pytest.approx(theirs.estimate.value)
        assert (mine.window, mine.estimate.n) == (theirs.window, theirs.estimate.n)


@pytest.mark.parametrize("other", [{"version": "v0"}, {"judge": "gone"}])
def test_rows_of_other_versions_never_enter_a_mean(windows: SlidingWindows, other: dict[str, str]) -> None:
    """Verdicts of another version, or of a judge that is not in force, are left out everywhere."""
    windows.add([a_row(**other), missed(**other)])
    assert windows.summary(NOW) == ((), {})
    assert (windows.last_sample, windows.exemplars) == ({}, {})


def test_coverage(windows: SlidingWindows) -> None:
    """Judged share of the drawn weight; an all-failed window has coverage 0 and no estimate."""
    windows.add([a_row(probability=0.5), missed(), missed(route="support"), a_row(None, route="blind")])
    estimates, coverage = windows.summary(NOW)
    assert {row.route for row in estimates} == {"search"}
    assert coverage["search", JUDGE, "1m"] == pytest.approx(2 / 3)
    assert (coverage["support", JUDGE, "1m"], coverage["blind", JUDGE, "1m"]) == (0.0, 1.0)


def test_newest_is_remembered(windows: SlidingWindows) -> None:
    """By bucket the newest answer is the exemplar, whatever order they came in."""
    windows.add([a_row(0.95, key="new"), a_row(0.92, key="old", at=NOW - 50), a_row(0.05, key="low", at=NOW - 70)])
    assert windows.last_sample == {("faithfulness", "search", JUDGE): NOW}
    assert windows.exemplars == {
        ("faithfulness", "search", JUDGE, "1.0"): Exemplar("new", "t", 0.95, NOW),
        ("faithfulness", "search", JUDGE, "0.1"): Exemplar("low", "t", 0.05, NOW - 70),
    }
    windows.add([a_row(0.91, key="newer", at=NOW + 1)])
    assert windows.exemplars["faithfulness", "search", JUDGE, "1.0"].key == "newer"


@pytest.mark.costly
def test_what_is_kept_changes_no_figure() -> None:
    """Day after day of rows, late ones among them: the same as from windows that were asked only once."""
    spans, rng = {"15m": 900.0, "6h": 21600.0, "1d": 86400.0}, random.Random(4)
    often, rows, taken = SlidingWindows(spans, {JUDGE: "v1"}, 0.95), list[ScoreRow](), 0
    for turn in range(60):
        now = NOW + turn * 2500.0
        scores = [rng.choice((0.0, 0.5, 1.0, None)) for _ in range(rng.randrange(4))]
        for score in scores:
            late = rng.choice((0.0, 90.0, 9000.0, 80_000.0))
            rows.append(a_row(score, at=now - late, probability=rng.choice((0.1, 1.0)), route=rng.choice("ab")))
        rows += [missed(at=now - 30.0, route="a")] * (turn % 3 == 0)
        often.add(rows[taken:])
        taken = len(rows)
        often.summary(now)
        rows += [a_row(0.25, at=now - 1.0, route="b")] * (turn % 4 == 0)  # comes between two looks in one minute
        often.add(rows[taken:])
        taken = len(rows)
        often.forget(now)
        waiting = {("a", JUDGE, int(now // 60)): 2.0} if turn % 2 else {}
        once = SlidingWindows(spans, {JUDGE: "v1"}, 0.95)
        once.add(rows)
        assert often.summary(now, waiting) == once.summary(now, waiting)
        assert often.summary(now, waiting) == often.summary(now, waiting)
    assert len(often._minutes) < 200
    assert len(often._hours) <= 25
