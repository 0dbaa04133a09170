"""Traffic drift: shifts of all traffic raise an alarm, ordinary days do not, and kills change nothing."""

import random
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import LogCapture
from support.kit import AT, Clock, an_admission
from support.mortal import Fate, KilledError, MortalConnection

from ragwatch.model.signals import Signal
from ragwatch.pipeline.drift.traffic import KIND, TrafficDriftLoop, TrafficRules
from ragwatch.pipeline.vocabularies import Vocabularies
from ragwatch.ports import LoopContext
from ragwatch.statistics.snapshot import Gauge
from ragwatch.statistics.tally import Tallies, Tally, observe
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry

HOUR = 3600.0
RULES = TrafficRules(tuple(Signal), ("search",), requests=2000)
WORDS = ("question_words", "search")


def requests(count: int, *, score: float, abstained: float, seed: int) -> Tallies:
    """Counts of some requests whose best context scores about so much, of which a share abstained."""
    rng, tallies = random.Random(seed), Tallies()
    for _ in range(count):
        observe(tallies, Tally.CONTEXTS, ("search",), 5)
        observe(tallies, Tally.ANSWER_CHARS, ("search",), rng.uniform(50, 900))
        observe(tallies, Tally.TOP_SCORE, ("search",), min(1.0, max(0.0, rng.gauss(score, 0.1))))
        tallies[Tally.ABSTENTIONS, ("search",)] += rng.random() < abstained
    return tallies


def hours(first: int, last: int, *, score: float = 0.8, abstained: float = 0.05) -> list[Tallies]:
    """Some hours of 200 requests each."""
    return [requests(200, score=score, abstained=abstained, seed=hour) for hour in range(first, last)]


def a_watch(store: SqliteStore, clock: Clock, telemetry: Telemetry | None = None) -> TrafficDriftLoop:
    """A process that has begun."""
    loop = TrafficDriftLoop(RULES, LoopContext(store, telemetry or Telemetry(), clock))
    loop.resume()
    return loop


def pass_by(store: SqliteStore, clock: Clock, watch: TrafficDriftLoop, some: Sequence[Tallies]) -> None:
    """An hour passes for each of these, with a look at its end."""
    for tallies in some:
        clock.now += HOUR
        store.admit(an_admission(tallies=Counter(tallies)))
        assert watch._step() is True


def test_learns_for_a_day_then_warns(store: SqliteStore, telemetry: Telemetry, log: LogCapture) -> None:
    """Nothing is said on the first day, though requests were enough; then only what has shifted is, and where."""
    clock = Clock()
    watch = a_watch(store, clock, telemetry)
    assert watch._step() is False
    pass_by(store, clock, watch, hours(0, 24))
    assert watch.gauges() == {}
    pass_by(store, clock, watch, hours(24, 60))
    assert {value for (gauge, _), value in watch.gauges().items() if gauge is Gauge.TRAFFIC_DRIFT_ALARM} == {0.0}
    pass_by(store, clock, watch, hours(60, 64, score=0.6))
    warned = [at for (gauge, at), value in watch.gauges().items() if gauge is Gauge.TRAFFIC_DRIFT_ALARM and value]
    assert warned == [("top_context_score", "search")]
    run = store.runs(KIND, "top_context_score/search", 5)[0]
    assert (run.body["direction"], run.at) == ("fall", AT + 61 * HOUR)
    assert 0.5 <= float(run.body["cut"]) <= 0.8
    before, since = (
        watch.gauges().get((Gauge.TRAFFIC_DRIFT_SHARE, (*warned[0], run.body["cut"], period)), -1.0)
        for period in ("before", "since")
    )
    assert before > since + 0.2 > 0.2
    assert [entry["event"] for entry in log.entries] == ["traffic has shifted"]


@pytest.mark.costly
def test_a_rate_that_rises_is_noticed(store: SqliteStore) -> None:
    """Four times as many abstentions: an early warning, until it is acknowledged, or learnt as ordinary."""
    clock = Clock()
    watch = a_watch(store, clock)
    pass_by(store, clock, watch, hours(0, 30))
    pass_by(store, clock, watch, hours(30, 36, abstained=0.25))
    cell = (Gauge.TRAFFIC_DRIFT_ALARM, ("abstentions", "search"))
    assert watch.gauges()[cell] == 1.0
    share = [
        watch.gauges()[Gauge.TRAFFIC_DRIFT_SHARE, ("abstentions", "search", "", period)]
        for period in ("before", "since")
    ]
    assert share == [pytest.approx(0.05, abs=0.01), pytest.approx(0.25, abs=0.03)]
    low = watch.gauges()[Gauge.TRAFFIC_DRIFT_SHARE_LOW, ("abstentions", "search", "")]
    assert share[1] - 0.1 < low < share[1] - 0.01
    assert watch.gauges()[Gauge.TRAFFIC_DRIFT_BEGAN, ("abstentions", "search")] == AT + 30 * HOUR
    assert a_watch(store, clock).gauges() == watch.gauges()
    assert watch._settle("contexts", None, renew=False) == ()
    assert watch._settle(None, "support", renew=False) == ()
    assert watch._settle(None, None, renew=False) == (("abstentions", "search"),)
    for loop in (watch, a_watch(store, clock)):
        assert loop.gauges()[cell] == 0.0
    assert watch._settle("abstentions", "search", renew=True) == (("abstentions", "search"),)
    assert cell not in watch.gauges()
    pass_by(store, clock, watch, hours(36, 90, abstained=0.25))
    assert watch.gauges()[cell] == 0.0
    assert len(store.runs(KIND, "abstentions/search", 5)) == 1


@pytest.mark.costly
@pytest.mark.parametrize("restarts", [False, True])
def test_an_alarm_ends_after_the_mend_and_not_before(store: SqliteStore, restarts: bool) -> None:  # noqa: FBT001
    """With an event that says since when; the share since the change is that of the break, until the end."""
    clock = Clock()
    watch = a_watch(store, clock)
    cell, since = ("abstentions", "search"), (Gauge.TRAFFIC_DRIFT_SHARE, ("abstentions", "search", "", "since"))
    pass_by(store, clock, watch, hours(0, 30))
    for hour in range(30, 60):
        pass_by(store, clock, watch, hours(hour, hour + 1, abstained=0.25))
        watch = a_watch(store, clock) if restarts else watch
    assert watch.gauges()[Gauge.TRAFFIC_DRIFT_ALARM, cell] == 1.0
    shares = [watch.gauges()[since]]
    for hour in range(60, 63):
        pass_by(store, clock, watch, hours(hour, hour + 1))
        watch = a_watch(store, clock) if restarts else watch
        shares.append(watch.gauges().get(since, shares[-1]))
    assert min(shares) == pytest.approx(0.25, abs=0.03)
    assert watch.gauges()[Gauge.TRAFFIC_DRIFT_ALARM, cell] == 0.0
    ended, alarm = store.runs(KIND, "abstentions/search", 5)
    assert (ended.failing, ended.body["seq"]) == (False, alarm.body["seq"])
    assert ended.body["since"] == pytest.approx(AT + 60 * HOUR, abs=2 * HOUR)
    assert [event.detail.split(" UTC, ")[0][:-5] for event in store.events(0.0)] == ["abstentions/search: back since "]
    pass_by(store, clock, watch, hours(63, 72))
    assert watch.gauges()[Gauge.TRAFFIC_DRIFT_ALARM, cell] == 0.0


def left_behind(store: SqliteStore, clock: Clock) -> tuple[Any, ...]:
    """Everything that a later process, or a page, could see."""
    runs = store.runs(KIND, "top_context_score/search", 10)
    return runs, store.recall(KIND), a_watch(store, clock).gauges()


STORY = [*hours(0, 30), *hours(30, 34, score=0.6)]


def lived(folder: Path, instants: int) -> tuple[Any, ...]:
    """What is left when the process died at a write while it learnt and when it warned, and began again at once."""
    store, clock = SqliteStore(folder), Clock()
    watch = a_watch(store, clock)
    for hour, tallies in enumerate(STORY):
        clock.now += HOUR
        store.admit(an_admission(tallies=Counter(tallies)))
        if hour in (5, 24, 30, 31):
            fate = Fate()
            store.engine._writer = MortalConnection(store.engine._writer, fate)  # type: ignore[assignment]
            fate.left = instants
            with suppress(KilledError):
                watch._step()
            store.close()
            store = SqliteStore(folder)
            watch = a_watch(store, clock)
        watch._step()
    traces = left_behind(store, clock)
    store.close()
    return traces


@pytest.mark.costly
@pytest.mark.parametrize(
    "instants", [range(0, 14, 3), pytest.param(range(14), marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_a_kill_changes_nothing(tmp_path: Path, instants: range) -> None:
    """At writes of the hours in which it learns and warns: the same warning, once, as in one life."""
    store, clock = SqliteStore(tmp_path / "one"), Clock()
    pass_by(store, clock, a_watch(store, clock), STORY)
    uninterrupted = left_behind(store, clock)
    store.close()
    assert len(uninterrupted[0]) == 1
    for instant in instants:
        assert lived(tmp_path / str(instant), instant) == uninterrupted, instant


@pytest.mark.parametrize("kept", [{"watch": {}}, {"counts": [1], "watch": None}])
def test_what_another_version_kept_is_begun_anew(store: SqliteStore, kept: dict[str, Any]) -> None:
    """State that cannot be understood is no reason to stop, nor to warn."""
    store.remember(KIND, {"contexts/search": kept})
    assert a_watch(store, Clock()).gauges() == {}


def asked(count: int, strangeness: float, seed: int) -> Tallies:
    """Counts of some requests whose questions are about so strange."""
    rng, tallies = random.Random(seed), Tallies()
    for _ in range(count):
        observe(tallies, Tally.QUESTION_STRANGENESS, ("search",), min(1.0, max(0.0, rng.gauss(strangeness, 0.15))))
    return tallies


def a_worded_watch(store: SqliteStore, clock: Clock) -> tuple[TrafficDriftLoop, Vocabularies]:
    """A process that has begun, and knows what words are ordinary."""
    words = Vocabularies(3, ("search",), store=store)
    words.resume()
    rules = replace(RULES, signals=(Signal.QUESTION_WORDS,))
    loop = TrafficDriftLoop(rules, LoopContext(store, Telemetry(), clock), vocabularies=words)
    loop.resume()
    return loop, words


def test_other_words_in_questions_are_noticed(store: SqliteStore) -> None:
    """Stranger questions than in the reference: an early warning, and where."""
    clock = Clock()
    watch, words = a_worded_watch(store, clock)
    words.learn({"search": ["what do cats do"] * 3})
    assert watch._step() is True  # from now on, with these words
    pass_by(store, clock, watch, [asked(200, 0.4, seed) for seed in range(30)])
    assert watch.gauges()[Gauge.TRAFFIC_DRIFT_ALARM, WORDS] == 0.0
    watch, _ = a_worded_watch(store, clock)
    pass_by(store, clock, watch, [asked(200, 0.6, seed) for seed in range(30, 34)])
    assert watch.gauges()[Gauge.TRAFFIC_DRIFT_ALARM, WORDS] == 1.0
    assert store.runs(KIND, "/".join(WORDS), 5)[0].body["direction"] == "rise"


def test_a_new_reference_is_one_of_new_words(store: SqliteStore) -> None:
    """Who renews it learns words anew; what is counted until then, and before it is known again, is no reference."""
    clock = Clock()
    watch, words = a_worded_watch(store, clock)
    words.learn({"search": ["what do cats do"] * 3})
    pass_by(store, clock, watch, [asked(200, 0.4, seed) for seed in range(31)])
    assert (Gauge.TRAFFIC_DRIFT_ALARM, WORDS) in watch.gauges()
    assert watch._settle("contexts", None, renew=True) == ()
    assert words.mark("search") is not None
    assert watch._settle("question_words", "search", renew=True) == (WORDS,)
    assert words.mark("search") is None
    assert watch.gauges() == {}
    watch, words = a_worded_watch(store, clock)
    assert words.mark("search") is None
    words.learn({"search": ["where is my refund"] * 3})
    pass_by(store, clock, watch, [asked(200, 0.6, seed) for seed in range(31, 63)])
    assert watch.gauges()[Gauge.TRAFFIC_DRIFT_ALARM, WORDS] == 0.0


def test_without_its_vocabulary_a_reference_is_none(store: SqliteStore) -> None:
    """What was measured with words that are lost is learnt anew, instead of warning of the loss."""
    clock = Clock()
    watch, words = a_worded_watch(store, clock)
    words.learn({"search": ["what do cats do"] * 3})
    pass_by(store, clock, watch, [asked(200, 0.4, seed) for seed in range(31)])
    store.remember("vocabulary/search", {"counts": "AAAA", "questions": 3, "learnt": True})
    watch, words = a_worded_watch(store, clock)
    assert (watch._step(), watch.gauges(), words.meters) == (True, {}, {})


@pytest.mark.costly
@pytest.mark.parametrize("learnt", [0, 30])
def test_a_clock_that_was_a_year_ahead_leaves_nobody_blind(store: SqliteStore, learnt: int) -> None:
    """Set right again, it learns and warns as if that hour had been an ordinary one."""
    clock = Clock()
    watch = a_watch(store, clock)
    pass_by(store, clock, watch, hours(0, learnt))
    clock.now += 365 * 24 * HOUR
    pass_by(store, clock, watch, hours(learnt, learnt + 1))
    clock.now -= 365 * 24 * HOUR
    pass_by(store, clock, watch, hours(learnt + 1, learnt + 60))
    cell = (Gauge.TRAFFIC_DRIFT_ALARM, ("top_context_score", "search"))
    assert watch.gauges()[cell] == 0.0
    pass_by(store, clock, watch, hours(learnt + 60, learnt + 64, score=0.6))
    assert watch.gauges()[cell] == 1.0


@pytest.mark.costly
@pytest.mark.parametrize("learnt", [3, 30])
def test_counts_that_went_back_stop_nobody(store: SqliteStore, learnt: int) -> None:
    """Counts of other buckets than those that were kept are no traffic: watching goes on from there."""
    clock = Clock()
    watch = a_watch(store, clock)
    pass_by(store, clock, watch, hours(0, learnt))
    kept = {name: dict(state) for name, state in (store.recall(KIND) or {}).items()}
    cell = "top_context_score/search"
    kept[cell]["counts"] = [*kept[cell]["counts"][3:], 0, 0, 0]
    store.remember(KIND, kept)
    again = a_watch(store, clock)
    pass_by(store, clock, again, hours(learnt, 60))
    warned = (Gauge.TRAFFIC_DRIFT_ALARM, ("top_context_score", "search"))
    assert again.gauges()[warned] == 0.0
    pass_by(store, clock, again, hours(60, 64, score=0.6))
    assert again.gauges()[warned] == 1.0
