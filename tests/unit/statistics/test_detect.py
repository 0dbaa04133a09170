"""A watch: learning, latching, replays, failed judgements, a kill between any two readings, and the end of an alarm."""

import json
import random
from dataclasses import replace
from functools import cache, partial
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.draws import draws

from ragwatch.statistics.drift import detect
from ragwatch.statistics.drift.detectors import Betting, ControlScheme, ScorePair, TwoSample
from ragwatch.statistics.drift.recovery import MAX_BREAK, EndTest, Mend, Recovery, Sums, limit_time
from ragwatch.statistics.drift.reference import ReferenceScheme

DAY = 86400.0


SCHEME = ReferenceScheme(lambda baseline: Betting(baseline, 1000), scores=500, tolerance=0.05, first=500)
BASELINE, STEP = 0.9, 60.0


def stream(seed: int = 1, good: int = 800, bad: int = 400) -> list[detect.Score]:
    """Scores of .9, then of .5."""
    rng = random.Random(seed)
    return [detect.Score(float(rng.random() < (0.9 if index < good else 0.5))) for index in range(good + bad)]


def watched(
    scores: list[detect.Score],
    watch: detect.DetectorState[detect.Score] | None = None,
    first: int = 0,
    *,
    scheme: ReferenceScheme = SCHEME,
    every: float = 60.0,
    learn: bool = True,
) -> detect.DetectorState[detect.Score]:
    """The watch after these scores, one a minute."""
    result = detect.begin(scheme) if watch is None else watch
    for index, each in enumerate(scores, start=first):
        result = detect.step(scheme, result, index, every * index, each, learn=learn)
    return result


def test_learns_watches_and_latches() -> None:
    """No evidence while learning; then evidence; the first alarm stays, whatever comes after."""
    scores = stream()
    assert detect.begin(SCHEME).evidence is None
    assert watched(scores[:499]).evidence is None
    quiet = watched(scores[:800])
    assert (quiet.alarm, quiet.scores) == (None, 300)
    assert quiet.evidence is not None
    alarmed = whole()
    assert 800 <= alarmed.alarm.seq < 900
    assert alarmed.alarm.at == 60.0 * alarmed.alarm.seq
    assert alarmed.alarm.evidence >= alarmed.alarm.threshold == 1000
    assert alarmed.alarm.scores == alarmed.alarm.seq - 499
    assert watched([detect.Score(1.0)] * 500, alarmed, 1200).alarm == alarmed.alarm


@pytest.mark.costly
@settings(max_examples=draws(6))
@given(st.lists(st.integers(0, 1199), max_size=20))
def test_replays_and_failures_move_nothing(places: list[int]) -> None:
    """Readings that were taken already, and ones without a score, leave the watch as it is."""
    scores, result = stream(), detect.begin(SCHEME)
    for index, each in enumerate(scores):
        result = detect.step(SCHEME, result, index, 60.0 * index, each)
        if index in places:
            assert detect.step(SCHEME, result, index, 0.0, detect.Score(0.0)) is result
            assert detect.step(SCHEME, result, index // 2, 0.0, detect.Score(0.0)) is result
            assert detect.step(SCHEME, result, index + 1, 0.0, None) is result
    assert result == whole()


def test_acknowledge_starts_over_against_the_same_reference() -> None:
    """The alarm is taken down; if things are still bad the next one comes, and replays still move nothing."""
    alarmed = whole()
    calm = detect.acknowledge(alarmed)
    assert (calm.alarm, calm.evidence, calm.scores) == (None, 0.0, 0.0)
    assert (calm.reference, calm.detector, calm.seq) == (alarmed.reference, alarmed.detector, alarmed.seq)
    assert watched([detect.Score(0.0)] * 50, calm, 1200).alarm is not None


def test_renew_learns_anew() -> None:
    """What is ordinary now is learnt: the lower scores raise no second alarm."""
    renewed = detect.renew(SCHEME, whole())
    assert (renewed.alarm, renewed.evidence, renewed.reference) == (None, None, ())
    rng = random.Random(6)
    later = watched([detect.Score(float(rng.random() < 0.5)) for _ in range(1000)], renewed, 1200)
    assert later.evidence is not None
    assert later.alarm is None


def test_days_count_where_days_were_promised() -> None:
    """With run length in days evidence grows by the days that passed, not by scores; late ones add none."""
    scheme = ControlScheme(TwoSample(30.0), detect.Unit.DAYS)
    even = TwoSample(30.0).start()
    watch = detect.begin(scheme)
    pair = ScorePair(detect.Score(0.5), detect.Score(0.5))
    assert (watch.numbers, scheme.learn((), pair)) == (even, ())  # beside a control there is nothing to learn
    for seq, at in enumerate((0.0, DAY, 1.5 * DAY, 1.0 * DAY, 2.5 * DAY)):
        watch = detect.step(scheme, watch, seq, at, pair)
    assert watch.evidence == pytest.approx(2.5)
    assert (watch.at, watch.scores) == (2.5 * DAY, 5.0)


def test_another_design_starts_from_nothing() -> None:
    """A changed tolerance keeps what was learnt and the alarm that stands, and drops evidence of another baseline.

    Where a larger reference is wanted what was learnt is too little, and the alarm stays while the rest is learnt.
    Evidence in scores says nothing about days.
    """
    alarmed = whole()
    result = detect.from_dict(replace(SCHEME, tolerance=0.1), detect.to_dict(alarmed))
    assert (result.alarm, result.reference, result.evidence) == (alarmed.alarm, alarmed.reference, 0.0)
    wider = replace(SCHEME, scores=5000, first=5000)
    result = detect.from_dict(wider, detect.to_dict(alarmed))
    assert (result.detector, result.evidence, result.alarm) == (None, None, alarmed.alarm)
    assert detect.step(wider, result, alarmed.seq + 1, 1e9, detect.Score(1.0)).alarm == alarmed.alarm
    in_days = detect.from_dict(replace(SCHEME, unit=detect.Unit.DAYS), detect.to_dict(watched(stream()[:700])))
    assert (in_days.evidence, in_days.unit) == (0.0, detect.Unit.DAYS)
    learning = detect.to_dict(watched(stream()[:300]))
    assert detect.from_dict(replace(SCHEME, scores=300), learning).evidence == 0.0


@pytest.mark.parametrize("broken", [{}, {"reference": ["x"], "seq": 0, "at": None}])
def test_what_is_no_watch_is_refused(broken: dict[str, object]) -> None:
    """Invalid stored state raises an error instead of starting again without notice."""
    with pytest.raises((KeyError, ValueError)):
        detect.from_dict(SCHEME, broken)


def test_learns_for_as_long_as_asked() -> None:
    """Scores enough are not enough while they span too little time, here and after a restart.

    Who is asked seldom learns in the end: silences longer than an eighth of the time to learn for count as one.
    """
    scheme = replace(SCHEME, span=DAY)
    watch = detect.begin(scheme)
    for index, each in enumerate(stream()):
        watch = detect.step(scheme, watch, index, 60.0 * index, each)
        watch = detect.from_dict(scheme, json.loads(json.dumps(detect.to_dict(watch))))
    assert (watch.detector, watch.learnt) == (None, 1199 * 60.0)
    watched_on = detect.step(scheme, watch, 1200, 1199 * 60.0 + 0.1 * DAY, detect.Score(1.0))
    assert watched_on.detector is None
    watched_on = detect.step(scheme, watched_on, 1201, DAY, detect.Score(1.0))
    assert watched_on.detector is not None
    assert detect.renew(scheme, watched_on).learnt == 0.0
    seldom = watched(stream()[:600], scheme=scheme, every=7.0 * DAY)
    assert (seldom.learnt, seldom.detector is None) == (DAY * 499 / 8, False)


def test_a_stray_time_is_no_day_of_readings() -> None:
    """The first reading says it is a year old, or one of a later clock comes between: the rest is learnt for a day."""
    scheme = replace(SCHEME, span=DAY)
    for stray, at in ((0, -365.0 * DAY), (600, 0.9 * DAY)):
        watch = detect.begin(scheme)
        for index, each in enumerate(stream()):
            watch = detect.step(scheme, watch, index, at if index == stray else 60.0 * index, each)
            watch = detect.cap_time(watch, 60.0 * index)
        assert watch.detector is None
        assert watch.learnt <= 1199 * 60.0 + DAY / 8


def test_what_earlier_versions_kept_is_watched_on() -> None:
    """They kept when learning had begun; before that, nothing of it."""
    scheme = replace(SCHEME, span=DAY)
    watch = watched(stream()[:700], scheme=scheme, every=300.0)
    assert watch.detector is not None
    kept = {name: value for name, value in detect.to_dict(watch).items() if name != "learnt"}
    for since in ({}, {"since": None}, {"since": 0.0}):
        assert detect.from_dict(scheme, kept | since).detector == watch.detector
    assert detect.from_dict(scheme, kept | {"since": 599 * 300.0}).detector is None
    assert detect.from_dict(scheme, kept | {"reference": []}).learnt == 0.0


GROWING = ReferenceScheme(lambda mean: Betting(mean, 30.0), scores=800, tolerance=0.05, unit=detect.Unit.DAYS)


grown = partial(watched, scheme=GROWING)  # it starts with 100 scores
STREAMS = {SCHEME: stream(), GROWING: stream(3, 700, 200)}


@cache
def whole(scheme: ReferenceScheme = SCHEME) -> detect.DetectorState[detect.Score]:
    """The watch after all scores of its stream."""
    return watched(STREAMS[scheme], scheme=scheme)


@pytest.mark.costly
@pytest.mark.parametrize("scheme", STREAMS, ids=["complete", "growing"])
@settings(max_examples=draws(8))
@given(st.floats(0, 1))
def test_a_kill_changes_nothing(scheme: ReferenceScheme, share: float) -> None:
    """Stopped after any score, kept as JSON and restored, the watch is what it would have been, and grows on."""
    scores = STREAMS[scheme]
    cut = int(share * len(scores))
    kept = json.loads(json.dumps(detect.to_dict(watched(scores[:cut], scheme=scheme))))
    assert watched(scores[cut:], detect.from_dict(scheme, kept), cut, scheme=scheme) == whole(scheme)


def floor(watch: detect.DetectorState[detect.Score]) -> float:
    """The baseline in force."""
    assert isinstance(watch.detector, Betting)
    return watch.detector.baseline


def test_a_small_reference_watches_and_grows() -> None:
    """From 100 scores on there is a baseline; it tightens as the reference doubles, and ends with the complete one."""
    watch, sizes, floors = detect.begin(GROWING), [], []
    for index, each in enumerate(stream(seed=2, good=1000)[:1000]):
        watch = detect.step(GROWING, watch, index, 60.0 * index, each)
        if watch.detector is not None and watch.reference[0] not in sizes:
            sizes.append(watch.reference[0])
            floors.append(floor(watch))
    assert watch.alarm is None
    assert sizes[0] == 100
    assert 3 <= len(sizes) <= 4
    assert 800 <= sizes[-1] <= 1000
    assert floors[0] < floors[-1]
    assert watch.growing == ()


def test_a_breakage_does_not_become_the_baseline() -> None:
    """It begins after 180 scores: the alarm comes soon, against a baseline of few bad scores, which stays in force."""
    watch = grown(stream(good=180, bad=300))
    assert watch.alarm.seq < 260
    assert watch.reference[0] <= 200
    assert floor(watch) > 0.7
    calm = detect.acknowledge(watch)
    assert (calm.reference, calm.growing) == (watch.reference, ())


def test_a_pause_lets_no_score_into_the_reference() -> None:
    """Evidence goes on, the reference stays as it is; without a detector nothing happens at all."""
    scores = stream(seed=2, good=400, bad=0)
    watch = grown(scores[:150])
    paused = grown(scores[150:], watch, 150, learn=False)
    assert (paused.reference, paused.growing, paused.scores) == (watch.reference, watch.growing, 300)
    learning = grown(scores[:50])
    assert detect.step(GROWING, learning, 50, 3000.0, scores[50], learn=False) is learning


def test_a_reference_that_earlier_versions_were_learning_watches_at_once() -> None:
    """It has 300 of 800 scores and no detector: the baseline of 300 watches, and grows on."""
    watch = watched(stream()[:300], scheme=replace(GROWING, first=800))
    kept = {name: value for name, value in detect.to_dict(watch).items() if name != "growing"}
    assert kept["design"] is None
    opened = detect.from_dict(GROWING, kept)
    assert (opened.evidence, opened.reference) == (0.0, watch.reference)
    assert grown(stream(good=1000)[300:1000], opened, 300).reference[0] >= 800
    complete = {name: value for name, value in detect.to_dict(watched(stream()[:700])).items() if name != "growing"}
    assert detect.from_dict(SCHEME, complete) == watched(stream()[:700])


def test_silence_is_no_evidence() -> None:
    """A long gap or a clock that is a year ahead raises no alarm: a reading adds at most the run length of a day."""
    scheme = replace(SCHEME, build=lambda baseline: Betting(baseline, 30.0), unit=detect.Unit.DAYS)
    watch = watched(stream()[:700], scheme=scheme)
    for later in range(3):
        watch = detect.step(scheme, watch, 700 + later, (later + 1) * 365.0 * DAY, detect.Score(1.0))
    assert watch.alarm is None
    assert watch.evidence is not None
    assert watch.evidence < 4.0


def test_a_clock_that_was_ahead_is_set_back() -> None:
    """What was read a year ahead of time adds run length again as soon as the clock is right."""
    scheme = ControlScheme(TwoSample(30.0), detect.Unit.DAYS)
    pair = ScorePair(detect.Score(0.5), detect.Score(0.5))
    watch = detect.cap_time(detect.step(scheme, detect.begin(scheme), 0, 365.0 * DAY, pair), DAY)
    assert watch.at == DAY
    assert detect.step(scheme, watch, 1, 1.5 * DAY, pair).evidence == pytest.approx(0.5)
    learning = detect.step(SCHEME, detect.begin(SCHEME), 0, 365.0 * DAY, detect.Score(1.0))
    assert (detect.cap_time(learning, DAY).learnt, detect.cap_time(learning, DAY).at) == (0.0, DAY)
    for right in (detect.begin(SCHEME), detect.step(SCHEME, detect.begin(SCHEME), 0, 0.0, detect.Score(1.0))):
        assert detect.cap_time(right, DAY) is right


def followed(test: EndTest, state: Recovery, mean: float, count: int, start: int = 0) -> tuple[Recovery, Mend | None]:
    """The state after answers of a mean, or the mend as soon as there is one."""
    chance, baseline = Random(start), BASELINE if test.direction is detect.Direction.FALL else 1.0 - BASELINE
    for index in range(start, start + count):
        good = chance.random() < mean
        value = float(good == (test.direction is detect.Direction.FALL))
        state = test.step(state, detect.Score(value), STEP * index, STEP, baseline)
        mend = test.mend(state, baseline)
        if mend is not None:
            return state, mend
    return state, None


@pytest.mark.parametrize("direction", list(detect.Direction))
def test_a_mend_ends_the_alarm(direction: detect.Direction) -> None:
    """With the time of the first good answer, near that of the mend, and their mean in terms of the quantity."""
    test = EndTest(30.0, direction)
    state, mend = followed(test, Recovery(), 0.3, 200)
    assert mend is None
    assert Recovery.from_record(state._asdict()) == state
    _, mend = followed(test, state, 0.95, 300, start=200)
    assert STEP * 190 <= mend.since <= STEP * 230
    assert (mend.mean > 0.8) == (direction is detect.Direction.FALL)


def test_a_break_that_is_mended_in_part_goes_on() -> None:
    """Clearly better than before and clearly worse than the baseline: the test starts again from these answers."""
    test = EndTest(1.0)
    state, _ = followed(test, Recovery(), 0.05, 400)
    state, mend = followed(test, state, 0.6, 1500, start=400)
    assert mend is None
    assert 0.5 < state.worse.mean < 0.7


def test_answers_before_the_alarm_count_as_the_break_while_evidence_rises() -> None:
    """And are forgotten where it falls back to nothing."""
    test = EndTest(30.0)
    state = test.watch(Recovery(), detect.Score(0.0), rising=True)
    assert (state.worse.n, state.worse.mean) == (1.0, 0.0)
    assert test.watch(state, detect.Score(1.0), rising=False) == Recovery()


def test_a_long_break_forgets_and_times_are_capped() -> None:
    """The oldest answers lose weight; a clock that ran ahead leaves no begin in the future."""
    state = Recovery(worse=Sums(MAX_BREAK, MAX_BREAK, 0.0, MAX_BREAK))
    assert EndTest(30.0).watch(state, detect.Score(1.0), rising=True).worse.n == pytest.approx(MAX_BREAK, abs=1.0)
    ahead = Recovery(began=100.0)
    assert limit_time(ahead, 50.0).began == 50.0
    assert limit_time(ahead, 200.0) == ahead
