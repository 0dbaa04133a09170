"""Sliding windows of segments: weighted estimates by segment, of the configured values and judge versions only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.judgings import a_judging
from support.kit import JUDGE, a_draw, an_admission

from ragwatch.core.estimate import Addends
from ragwatch.core.estimators import hajek
from ragwatch.core.segments import Segments
from ragwatch.core.tally import Tally
from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.windows import SegmentWindows
from ragwatch.ports import ScoreRow
from ragwatch.stores.sqlite.store import SqliteStore

NOW = 1_700_000_040.0
F = Quantity.FAITHFULNESS
SPANS = {"15m": 900.0, "1d": 86400.0}


def a_row(score: float | None = 1.0, *, at: float = NOW, release: str = "v1", **parts: Any) -> ScoreRow:
    """A judged row with one score, of a release."""
    row = ScoreRow(1, "k", at, "search", JUDGE, "1", 1.0, {F: score}, None, None, segments={"release": release})
    return replace(row, **parts)


@pytest.fixture
def windows() -> SegmentWindows:
    """Two releases in two windows."""
    return SegmentWindows(Segments({"release": ("v1", "v2")}), SPANS, {JUDGE: "1"}, 0.95)


def values(windows: SegmentWindows, now: float = NOW) -> dict[tuple[str, str], tuple[float, int]]:
    """Mean and number of scores by value and window."""
    return {(row.value, row.window): (row.estimate.value, row.estimate.n) for row in windows.summary(now)}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["v1", "v2"]),
            st.sampled_from([0.0, 0.25, 1.0]),
            st.sampled_from([1.0, 0.5, 0.1]),
            st.integers(0, 800),
        ),
        max_size=30,
    )
)
def test_each_segment_has_the_estimate_of_its_answers(answers: list[tuple[str, float, float, int]]) -> None:
    """The estimate of a segment is that of its answers alone, weighted by their inclusion probabilities."""
    windows = SegmentWindows(Segments({"release": ("v1", "v2")}), SPANS, {JUDGE: "1"}, 0.95)
    windows.add([a_row(x, at=NOW - age, release=value, probability=p) for value, x, p, age in answers])
    for row in windows.summary(NOW):
        own = Addends.of([(x, p) for value, x, p, _ in answers if value == row.value])
        assert row.estimate.n == own.n
        assert row.estimate.value == pytest.approx(hajek.estimate(own).value)
        assert row.estimate.low == pytest.approx(hajek.estimate(own).low)
    assert {row.value for row in windows.summary(NOW)} == {value for value, *_ in answers}


def test_windows_end(windows: SegmentWindows) -> None:
    """Older answers leave the short window to the minute, and the long one to the quarter of an hour."""
    windows.add([a_row(1.0), a_row(0.0, at=NOW - 1000)])
    assert values(windows) == {("v1", "15m"): (1.0, 1), ("v1", "1d"): (0.5, 2)}
    windows.forget(NOW + 1000)
    assert values(windows, NOW + 1000) == {("v1", "1d"): (0.5, 2)}
    windows.forget(NOW + 90_000)
    assert values(windows, NOW + 90_000) == {}


def test_what_does_not_count(windows: SegmentWindows) -> None:
    """Another judge version, an unjudged draw, an unknown score and a key that is not configured add nothing."""
    windows.add([a_row(version="0"), a_row(scores=None), a_row(None), a_row(segments={"tier": "free"})])
    assert windows.summary(NOW) == ()


def test_a_removed_value_counts_as_other(windows: SegmentWindows) -> None:
    """What was judged under an earlier configuration has a place in the present one."""
    windows.add([a_row(release="v0"), a_row(release="other")])
    assert values(windows)["other", "1d"] == (1.0, 2)


def test_times_are_limited(windows: SegmentWindows) -> None:
    """As for routes: no time is after now."""
    windows.add([a_row(1.0, at=NOW + 500)])
    windows.forget(NOW)
    assert windows.last_sample == {(F, "release", "v1", "search", JUDGE): NOW}
    assert values(windows, NOW + 500)["v1", "15m"] == (1.0, 1)
    windows.clear()
    assert windows.summary(NOW + 500) == ()


async def test_the_judging_loop_finds_segments_in_metadata(store: SqliteStore) -> None:
    """A settled draw brings the segments of its metadata, read when it is judged."""
    draws = [a_draw("a", metadata={"release": "v2"}), a_draw("b", metadata={"release": "v9"}), a_draw("c")]
    store.admit(an_admission(*draws))
    loop = a_judging(store, segments=Segments({"release": ("v1", "v2")}))
    while await loop.step():
        pass
    found = {row.key: row.segments for row in store.window(0, 0.0, 9)}
    assert [found[draw.key] for draw in draws] == [{"release": "v2"}, {"release": "other"}, {}]
    assert store.tallies()[Tally.SEGMENT_LEFT_OUT, ("release", "search", JUDGE)] == 1
