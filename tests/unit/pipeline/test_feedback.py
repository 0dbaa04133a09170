"""Feedback from a log to figures: what is counted, what is estimated, and what follows when it arrives late."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest
from support.kit import AT, JUDGE, a_batch, a_draw, a_line, a_reading, a_verdict, an_admission, an_evidence, an_unjudged
from support.loops import ALL, an_intake, take_all

from ragwatch.formats.feedback import FeedbackReader
from ragwatch.model.estimate import Addends
from ragwatch.model.quantities import Quantity
from ragwatch.pipeline import feedback as module
from ragwatch.pipeline.feedback import FeedbackRules, FeedbackWindows
from ragwatch.ports import Batch, Erasure, Feedback, Store
from ragwatch.statistics.estimators import hajek
from ragwatch.statistics.feedback import Scale, UserScoreRow, UserScores
from ragwatch.statistics.sampling import key_of
from ragwatch.statistics.tally import Tally
from ragwatch.stores.sqlite.store import SqliteStore

HOUR = 3600.0


def feedback_line(name: str, **parts: Any) -> bytes:
    """A line of a log with feedback on an answer."""
    return orjson.dumps({"feedback_for": name} | parts)


async def read(
    store: SqliteStore, batches: Sequence[Batch], plan: float = 1.0, rules: FeedbackRules | None = None
) -> dict[str, float]:
    """Reads batches. Returns what became of the feedback, and how many records were seen and rejected."""
    await take_all(an_intake(store, *batches, plan=replace(ALL, probability=plan), feedback=rules or FeedbackRules()))
    counts: dict[str, float] = {}
    for (tally, labels), count in store.tallies().items():
        if tally in (Tally.FEEDBACK, Tally.SEEN, Tally.REJECTED):
            name = {Tally.FEEDBACK: labels[-1], Tally.SEEN: "seen"}.get(tally, "rejected")
            counts[name] = counts.get(name, 0) + count
    return counts


async def test_every_feedback_is_counted_once(store: SqliteStore) -> None:
    """In a field of an answer or a record of its own: it joins its sample, or a reason is counted. It is no request.

    In one table of both, answers have an empty column for feedback, and feedback an empty one for the id of an answer.
    """
    counts = await read(
        store,
        [
            a_batch(
                a_line("a", feedback="up"),
                a_line("b", metadata={"thumbs": "down"}),
                a_line("c", feedback="meh"),
                a_line("d", feedback_for=None),
                feedback_line("a", score="up"),
                feedback_line("b", id=None, thumbs="up", at=AT + 5),
                feedback_line("d", rating=4),
                feedback_line("d", rating="4/5"),
                feedback_line("d"),
                feedback_line("", thumbs="up"),
            )
        ],
    )
    assert counts == {
        "seen": 7,
        "rejected": 3,
        "joined": 3,
        "repeated": 1,
        "replaced": 1,
        "unknown_text": 1,
        "unknown_scale": 1,
        "missing": 1,
    }
    stored = [store.feedback_of(key_of("app", name)) for name in "abcd"]
    assert stored == [(1.0, AT), (1.0, AT), None, (0.75, AT)]


async def test_feedback_on_what_was_not_drawn_is_only_counted(store: SqliteStore) -> None:
    """Where the hash says that an answer cannot have been drawn, its feedback is counted at once and not stored."""
    counts = await read(store, [a_batch(a_line("a", thumbs="up"), feedback_line("a", thumbs="up"))], plan=1e-12)
    assert counts == {"seen": 1, "not_drawn": 1}
    assert store.feedback_after(0, 10) == []


async def test_feedback_names_its_source(store: SqliteStore) -> None:
    """Feedback without a source is tried with all sources; one that names another source is not of this one."""
    rules = FeedbackRules(FeedbackReader(scale=Scale(1, 5)), ("app", "gateway"))
    store.admit(replace(an_admission(replace(a_draw("g"), key=key_of("gateway", "g"))), source="gateway"))
    lines = [feedback_line("g", rating=5), feedback_line("g", rating=1, source="app"), feedback_line("g", rating=True)]
    counts = await read(store, [a_batch(*lines)], rules=rules)
    assert counts == {"seen": 0, "joined": 1, "repeated": 1}
    assert store.feedback_of(key_of("gateway", "g")) == (1.0, AT)


def windows_over(store: Store, spans: dict[str, float] | None = None) -> FeedbackWindows:
    """The figures of feedback over an hour."""
    return FeedbackWindows(spans or {"1h": HOUR}, {JUDGE: "scripted-1", "other": "v2"}, 0.95, store=store)


def summary(windows: FeedbackWindows, store: Store, now: float = AT + 60) -> UserScores:
    """Catches up with the store and returns the figures."""
    windows.add(store.window(0, 0.0, 1000))
    return windows.summary(now)


def rated(store: Store, name: str, score: float | None, **parts: Any) -> None:
    """Stores a judged answer with feedback."""
    draw = a_draw(name, **parts)
    said = () if score is None else (Feedback((draw.key,), score, draw.at, "app"),)
    store.admit(replace(an_admission(draw), feedback=said, at=AT))
    store.settle([a_verdict(draw)])


def test_the_mean_is_weighted_and_says_how_many_answered(store: SqliteStore) -> None:
    """Weights are 1 / inclusion probability; the coverage is the share of the drawn weight that has feedback."""
    rated(store, "a", 1.0, probability=0.5)
    rated(store, "b", 0.0, probability=0.25)
    rated(store, "c", None, probability=0.25)
    rated(store, "d", 1.0, route="other")
    unjudged = a_draw("e", probability=0.5)
    store.admit(an_admission(unjudged))
    store.settle([an_unjudged(unjudged)])
    figures = summary(windows_over(store), store)
    addends = Addends.of([(1.0, 0.5), (0.0, 0.25)])
    expected = hajek.estimate(addends, unjudged_weight=6.0)
    assert expected is not None
    assert figures.rows[1] == UserScoreRow("search", "1h", expected)
    assert (figures.rows[1].estimate.value, figures.rows[1].estimate.coverage) == (pytest.approx(1 / 3), 0.5)
    assert [row.route for row in figures.rows] == ["other", "search"]
    assert figures.last_sample == {"search": AT, "other": AT}
    assert figures.correlations == ()


def test_feedback_counts_when_it_arrives_late(store: SqliteStore) -> None:
    """Hours after the verdict, changed, and erased: each time, the next digest tells what is true then."""
    windows = windows_over(store, {"1d": 86400.0})
    rated(store, "a", None)
    assert summary(windows, store).rows == ()
    now = AT + 5 * HOUR

    def said(score: float, at: float) -> None:
        store.admit(replace(an_admission(), feedback=(Feedback((a_draw("a").key,), score, at, "app"),), at=now))

    said(1.0, now)
    assert [row.estimate.value for row in windows.summary(now).rows] == [1.0]
    said(0.0, now + 1)
    assert [row.estimate.value for row in windows.summary(now).rows] == [0.0]
    store.forget(Erasure(ids=frozenset({"a"})))
    assert windows.summary(now).rows == ()


def test_feedback_before_the_verdict_counts_with_it(store: SqliteStore) -> None:
    """An answer with feedback that waits for its judge enters the mean when it is settled."""
    windows = windows_over(store)
    draw = a_draw("a")
    store.admit(replace(an_admission(draw), feedback=(Feedback((draw.key,), 1.0, AT, "app"),)))
    assert summary(windows, store).rows == ()
    store.settle([a_verdict(draw)])
    assert [row.estimate.n for row in summary(windows, store).rows] == [1]


def test_figures_leave_the_window(store: SqliteStore) -> None:
    """An answer older than the longest window is forgotten, and `clear` reads everything again."""
    windows = windows_over(store)
    rated(store, "a", 1.0)
    assert len(summary(windows, store).rows) == 1
    windows.clear()
    assert len(summary(windows, store).rows) == 1
    assert windows.summary(AT + 2 * HOUR) == UserScores()


def test_a_long_history_is_read_in_several_digests(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest hours come first; the rest follows."""
    monkeypatch.setattr(module, "MAX_HOURS", 1)
    rated(store, "old", 1.0, at=AT - 3 * HOUR)
    rated(store, "new", 0.0)
    windows = windows_over(store, {"1d": 86400.0})
    assert [row.estimate.value for row in summary(windows, store).rows] == [0.0]
    assert [row.estimate.value for row in windows.summary(AT + 60).rows] == [0.5]


def test_correlation_with_each_judge(store: SqliteStore) -> None:
    """Over the answers that have both, for each judge in force and each quantity that varies."""
    draws = [(a_draw(f"r{place}", at=AT - place), place % 3 > 0) for place in range(60)]
    said = tuple(Feedback((draw.key,), float(good), AT, "app") for draw, good in draws)
    admission = an_admission(*(draw for draw, _ in draws), judges=(JUDGE, "other", "gone"))
    store.admit(replace(admission, feedback=said, at=AT))
    for reading in (a_reading(JUDGE), a_reading("gone"), a_reading("other", "v1")):
        store.settle([a_verdict(draw, an_evidence((1, 0) if good else (0, 0)), reading) for draw, good in draws])
    figures = summary(windows_over(store), store)
    by_series = {(one.judge, one.quantity): one.correlation for one in figures.correlations}
    correlation = by_series[JUDGE, Quantity.FAITHFULNESS]
    assert (correlation.n, correlation.value) == (60, pytest.approx(1.0))
    assert correlation.low < 0.99
    assert {judge for judge, _ in by_series} == {JUDGE}
    assert (JUDGE, Quantity.CONTEXT_PRECISION) not in by_series
