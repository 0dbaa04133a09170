"""Sliding windows: sums by minute for routes, by segment for the configured values, added up over each window."""

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kit import JUDGE, a_draw, an_admission
from support.loops import a_judging, take_all

from ragwatch.model.estimate import Addends
from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.windows import SegmentWindows, SlidingWindows
from ragwatch.ports import ScoreRow
from ragwatch.statistics.estimators import hajek
from ragwatch.statistics.segments import Segments
from ragwatch.statistics.snapshot import EstimateRow, Exemplar
from ragwatch.statistics.tally import Tally
from ragwatch.stores.sqlite.store import SqliteStore

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


SPANS = {"15m": 900.0, "1d": 86400.0}


def a_segment_row(score: float | None = 1.0, *, at: float = NOW, release: str = "v1", **parts: Any) -> ScoreRow:
    """A judged row with one score, of a release."""
    row = ScoreRow(1, "k", at, "search", JUDGE, "1", 1.0, {F: score}, None, None, segments={"release": release})
    return replace(row, **parts)


@pytest.fixture
def segment_windows() -> SegmentWindows:
    """Two releases in two windows."""
    return SegmentWindows(Segments({"release": ("v1", "v2")}), SPANS, {JUDGE: "1"}, 0.95)


def values(segment_windows: SegmentWindows, now: float = NOW) -> dict[tuple[str, str], tuple[float, int]]:
    """Mean and number of scores by value and window."""
    return {(row.value, row.window): (row.estimate.value, row.estimate.n) for row in segment_windows.summary(now)}


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
    segment_windows = SegmentWindows(Segments({"release": ("v1", "v2")}), SPANS, {JUDGE: "1"}, 0.95)
    segment_windows.add([a_segment_row(x, at=NOW - age, release=value, probability=p) for value, x, p, age in answers])
    for row in segment_windows.summary(NOW):
        own = Addends.of([(x, p) for value, x, p, _ in answers if value == row.value])
        assert row.estimate.n == own.n
        assert row.estimate.value == pytest.approx(hajek.estimate(own).value)
        assert row.estimate.low == pytest.approx(hajek.estimate(own).low)
    assert {row.value for row in segment_windows.summary(NOW)} == {value for value, *_ in answers}


def test_windows_end(segment_windows: SegmentWindows) -> None:
    """Older answers leave the short window to the minute, and the long one to the quarter of an hour."""
    segment_windows.add([a_segment_row(1.0), a_segment_row(0.0, at=NOW - 1000)])
    assert values(segment_windows) == {("v1", "15m"): (1.0, 1), ("v1", "1d"): (0.5, 2)}
    segment_windows.forget(NOW + 1000)
    assert values(segment_windows, NOW + 1000) == {("v1", "1d"): (0.5, 2)}
    segment_windows.forget(NOW + 90_000)
    assert values(segment_windows, NOW + 90_000) == {}


def test_what_does_not_count(segment_windows: SegmentWindows) -> None:
    """Another judge version, an unjudged draw, an unknown score and a key that is not configured add nothing."""
    segment_windows.add(
        [
            a_segment_row(version="0"),
            a_segment_row(scores=None),
            a_segment_row(None),
            a_segment_row(segments={"tier": "free"}),
        ]
    )
    assert segment_windows.summary(NOW) == ()


def test_a_removed_value_counts_as_other(segment_windows: SegmentWindows) -> None:
    """What was judged under an earlier configuration has a place in the present one."""
    segment_windows.add([a_segment_row(release="v0"), a_segment_row(release="other")])
    assert values(segment_windows)["other", "1d"] == (1.0, 2)


def test_times_are_limited(segment_windows: SegmentWindows) -> None:
    """As for routes: no time is after now."""
    segment_windows.add([a_segment_row(1.0, at=NOW + 500)])
    segment_windows.forget(NOW)
    assert segment_windows.last_sample == {(F, "release", "v1", "search", JUDGE): NOW}
    assert values(segment_windows, NOW + 500)["v1", "15m"] == (1.0, 1)
    segment_windows.clear()
    assert segment_windows.summary(NOW + 500) == ()


async def test_the_judging_loop_finds_segments_in_metadata(store: SqliteStore) -> None:
    """A settled draw brings the segments of its metadata, read when it is judged."""
    draws = [a_draw("a", metadata={"release": "v2"}), a_draw("b", metadata={"release": "v9"}), a_draw("c")]
    store.admit(an_admission(*draws))
    loop = a_judging(store, segments=Segments({"release": ("v1", "v2")}))
    await take_all(loop)
    found = {row.key: row.segments for row in store.window(0, 0.0, 9)}
    assert [found[draw.key] for draw in draws] == [{"release": "v2"}, {"release": "other"}, {}]
    assert store.tallies()[Tally.SEGMENT_LEFT_OUT, ("release", "search", JUDGE)] == 1
