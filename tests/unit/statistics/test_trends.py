"""Trends: merging buckets is computing over all of their scores, and a gap is a gap."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kit import AT, a_draw, a_verdict, an_evidence, an_unjudged

from ragwatch.model.estimate import Addends
from ragwatch.statistics import trends
from ragwatch.statistics.estimators import hajek

SCORES = st.lists(
    st.tuples(st.integers(0, 7200), st.sampled_from((0.0, 0.25, 0.5, 1.0)), st.sampled_from((0.1, 0.5, 1.0))),
    max_size=30,
)


@given(SCORES)
def test_merging_buckets_is_computing_over_all(scores: list[tuple[int, float, float]]) -> None:
    """Sums by five minutes, merged to hours and to two hours, give the estimate over the scores themselves."""
    fine: dict[int, Addends] = {}
    for at, score, probability in scores:
        start = trends.start_of(at, 300)
        fine[start] = fine.get(start, Addends()) + Addends.one(score, probability)
    hours = trends.merged(fine.items(), 3600)
    assert trends.merged(hours.items(), 14400).keys() == ({0} if scores else set())
    for start, sums in (*hours.items(), *trends.merged(hours.items(), 14400).items()):
        span = 3600 if start in hours and sums == hours[start] else 14400
        inside = [pair for at, *pair in scores if start <= at < start + span]
        whole = Addends.of((score, probability) for score, probability in inside)
        assert sums.n == whole.n == len(inside)
        for name in ("w", "wx", "w2", "w2x", "w2x2", "w3", "w4"):
            assert getattr(sums, name) == pytest.approx(getattr(whole, name))
        point, direct = trends.estimate_of(sums, 0.95), hajek.estimate(whole)
        assert (point.value, point.low, point.high) == pytest.approx((direct.value, direct.low, direct.high))


@given(st.lists(st.booleans(), max_size=12))
def test_a_line_is_interrupted_at_each_gap(filled: list[bool]) -> None:
    """Stretches contain exactly the places with data, in order, and none touches another."""
    ranges = list(trends.stretches(filled))
    assert [place for stretch in ranges for place in stretch] == [place for place, full in enumerate(filled) if full]
    assert all(first.stop < second.start for first, second in pairwise(ranges))


def test_a_point_without_a_score_is_no_zero() -> None:
    """It has no estimate; with a score of 0 it has one."""
    assert trends.merged([(0, Addends.one(1.0, 1.0)), (600, Addends())], 600).keys() == {0}
    first, second = trends.points({600: Addends.one(0.0, 1.0)}, (0, 600), 0.95)
    assert first.estimate is None
    assert (second.estimate.value, second.estimate.n) == (0.0, 1)
    assert trends.estimate_of(Addends(), 0.95) is None
    bare = trends.points({0: Addends.of([(1.0, 1.0), (0.5, 1.0)])}, (0,), None)[0].estimate
    assert (bare.value, bare.low, bare.n) == (0.75, 0.75, 2)


@pytest.mark.parametrize("name", trends.RANGES)
def test_a_range_has_few_points_of_whole_buckets(name: str) -> None:
    """At most 48 points, which end with the present and begin a whole range before its end."""
    shown = trends.RANGES[name]
    starts = trends.steps_of(shown, AT)
    assert len(starts) * shown.step == shown.seconds
    assert len(starts) <= 48
    assert starts[-1] <= AT < starts[-1] + shown.step
    assert shown.step % shown.span == 0
    assert shown.span in trends.SPANS


def test_verdicts_add_their_scores_and_skip_what_has_none() -> None:
    """As in the gauges; unjudged draws count nowhere."""
    draw = a_draw(at=AT, probability=0.5)
    sums = trends.score_sums([a_verdict(draw, an_evidence((1, 0))), an_unjudged(a_draw("r2"))])
    names = {key.series.name for key in sums}
    assert "need_recall" not in names
    assert {key.span for key in sums} == set(trends.SPANS)
    for key, added in sums.items():
        assert (key.series.kind, key.series.place, key.series.version) == (
            trends.TrendKind.SCORE,
            "search",
            "scripted-1",
        )
        assert key.start == trends.start_of(AT, key.span)
        if key.series.name == "top_ranked_ignored":
            assert added == Addends.one(0.0, 0.5)


@given(st.floats(1e-12, 1e12), st.floats(1.5, 1e9))
def test_levels_of_evidence_follow_the_height(evidence: float, threshold: float) -> None:
    """More evidence is never a lower level or a lower height, and the words name the threshold's state."""
    levels = list(trends.EvidenceLevel)
    level = trends.evidence_level(evidence, threshold)
    assert levels.index(trends.evidence_level(evidence * 2, threshold)) >= levels.index(level)
    assert trends.log_height(evidence, 1.0, threshold) <= trends.log_height(evidence * 2, 1.0, threshold)
    assert (level is trends.EvidenceLevel.ALARM) is (evidence >= threshold)
    assert "e-" not in trends.evidence_words(evidence, threshold)


def test_words_for_each_level() -> None:
    """What evidence means is said without its number where that says nothing."""
    assert trends.evidence_words(1e-5, 270.0) == "no sign of a change (the alarm needs 270)"
    assert trends.evidence_words(2.0, 43200.0).startswith("weak signs of a change")
    assert trends.evidence_words(1e300, 270.0) == "the alarm is raised: it needs 270, and the evidence is far above"


@given(st.floats(0, 1e7), st.sampled_from((3600, 6 * 3600, trends.DAY)), st.floats(0, 5 * trends.DAY))
def test_both_sides_of_an_instant_are_as_long_and_leave_out_what_is_mixed(at: float, seconds: int, age: float) -> None:
    """No bucket is on both sides, none contains the instant, and both sides have the same length."""
    sides = trends.sides_of(at, seconds, now=at + age)
    assert sides.end - sides.before == sides.after - sides.start == seconds
    assert sides.end <= at <= sides.start
    assert sides.start - sides.end in (0, sides.span)
    buckets = [
        (sides.before + place * sides.span, Addends.one(1.0, 1.0)) for place in range(2 * seconds // sides.span + 2)
    ]
    before, after = sides.split(buckets)
    assert before.n == seconds // sides.span
    assert after.n in (before.n, before.n - 1, before.n + 1)
    assert math.isclose(before.w, before.n)


def test_a_side_without_a_score_has_no_difference() -> None:
    """Nothing is compared with nothing."""
    one = Addends.one(1.0, 1.0)
    assert trends.difference(one, Addends(), 0.95, low_is_good=False) is None
    assert trends.difference(Addends(), one, 0.95, low_is_good=False) is None
