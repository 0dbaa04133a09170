"""What is kept and for how long: retention, vocabularies, the stored snapshot, and files that cannot be read."""

import json
import math
import tempfile
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any
from zlib import compress

import pytest
from structlog.testing import LogCapture
from support.kit import AT, Clock, ListSource, a_batch, a_draw, a_line, a_verdict, an_admission
from support.loops import ALL, an_intake
from support.mortal import Fate, KilledError, MortalConnection
from support.snapshots import estimate, large, small

from ragwatch.errors import StoreError
from ragwatch.model.quantities import Quantity, quantity_of
from ragwatch.pipeline.digest import STATE, SharedSnapshot, snapshot_of, to_record
from ragwatch.pipeline.intake import SETTLE_SECONDS
from ragwatch.pipeline.retention import RetentionLoop
from ragwatch.pipeline.vocabularies import KIND, Vocabularies
from ragwatch.ports import LoopContext, Query, Retention
from ragwatch.statistics.estimators.corrected import AnnotatorShares, WithoutAnnotator
from ragwatch.statistics.estimators.interval import CountedInterval
from ragwatch.statistics.feedback import JudgeCorrelation, UserScoreRow, UserScores
from ragwatch.statistics.snapshot import EstimateRow, Gauge, Lag, SegmentRow, Snapshot
from ragwatch.statistics.tally import Tallies, Tally
from ragwatch.statistics.text.vocabulary import Vocabulary, learn
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry


async def test_old_verdicts_go(store: SqliteStore, telemetry: Telemetry, log: LogCapture) -> None:
    """The first step takes what is too old and says how many; the second finds nothing to do."""
    old, new = a_draw("old", at=AT - 2 * 86400), a_draw("new")
    store.admit(an_admission(old, new))
    store.settle([a_verdict(old), a_verdict(new)])
    keeping = RetentionLoop(Retention(1, 1, 1 << 40), LoopContext(store, telemetry, Clock()))
    assert [await keeping.step(), await keeping.step()] == [True, False]
    assert [row.verdict.id for row in store.find(Query())] == ["new"]
    assert [(entry["event"], entry["verdicts"]) for entry in log.entries] == [("verdicts pruned", 1)]


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_clock_that_leaps_is_not_believed_at_once(
    store: SqliteStore, telemetry: Telemetry, *, restarts: bool
) -> None:
    """Forty days ahead for a moment takes nothing; at the second step in a row what is too old goes.

    So it does on a machine that is asleep for days between all steps, or that starts ragwatch anew for each.
    """
    clock, days = Clock(), {0: False, 40: False, 1: False, 41: False, 41.1: True, 50: False, 60: True}
    keeping = RetentionLoop(Retention(30, 30, 1 << 40), LoopContext(store, telemetry, clock))
    for day, gone in days.items():
        draw = a_draw(str(day))
        store.admit(an_admission(draw))
        store.settle([a_verdict(draw)])
        clock.now = AT + day * 86400
        if restarts:
            keeping = RetentionLoop(Retention(30, 30, 1 << 40), LoopContext(store, telemetry, clock))
        assert await keeping.step() is gone


async def test_doubt_ends_where_nothing_can_be_written(store: SqliteStore, telemetry: Telemetry) -> None:
    """On a full disk forgetting is what helps: it is tried again at the second step, whatever could be noted."""
    clock = Clock()
    keeping = RetentionLoop(Retention(1, 1, 1 << 40), LoopContext(store, telemetry, clock))
    await keeping.step()
    draw = a_draw()
    store.admit(an_admission(draw))
    store.settle([a_verdict(draw)])
    with pytest.MonkeyPatch.context() as patch:

        def full(*_: object) -> None:
            raise StoreError("the disk is full")

        patch.setattr(store, "remember", full)
        for _ in range(2):
            clock.now += 2 * 86400
            with pytest.raises(StoreError):
                await keeping.step()
    assert store.find(Query()) == []


DENIED, SICK = {"a": "Permission denied"}, {"a": "Input/output error"}


def told(log: LogCapture) -> list[tuple[str, Any]]:
    """What the log says of files, and of which."""
    return [(entry["event"], entry["first"]) for entry in log.entries]


async def looked_at(
    store: SqliteStore, telemetry: Telemetry, failing: Iterable[tuple[float, Mapping[str, str]]]
) -> None:
    """An intake that looks at a source at these times, when these files cannot be read. Its steps do not fail."""
    source, clock = ListSource([]), Clock(AT)
    intake = an_intake(store, source=source, telemetry=telemetry, clock=clock)
    for at, files in failing:
        clock.now = AT + at
        source.lag = lambda files=files: Lag(0, 0.0, files)  # type: ignore[method-assign]
        assert await intake.step() is False


async def test_files_that_cannot_be_read_are_told_once(
    store: SqliteStore, telemetry: Telemetry, log: LogCapture
) -> None:
    """Anew for another reason; and when a file is readable again, once it has been so for a minute."""
    changes: list[Mapping[str, str]] = [{}, DENIED, DENIED, SICK, SICK | {"b": "gone"}, {"b": "gone"}]
    later = [(5 + SETTLE_SECONDS, {}), (6 + SETTLE_SECONDS, {})]
    await looked_at(store, telemetry, [*enumerate(changes), *later])
    assert told(log) == [
        *(("files cannot be read", reasons) for reasons in (DENIED, SICK, {"b": "gone"})),
        ("files no longer unreadable", ["a", "b"]),
    ]


async def test_what_comes_and_goes_is_told_once(store: SqliteStore, telemetry: Telemetry, log: LogCapture) -> None:
    """A sick disk opens a file on each scan, and fails where it is read."""
    await looked_at(store, telemetry, enumerate([{}, SICK] * 50))
    assert told(log) == [("files cannot be read", SICK)]


def full() -> Snapshot:
    """A Snapshot with a value in every field."""
    shares = AnnotatorShares(
        2, (WithoutAnnotator("ada", 3, None), WithoutAnnotator("bob", 2, estimate(0.4))), "ada", 0.1
    )
    row = EstimateRow(Quantity.CONTEXT_PRECISION, "other", "claude", "1d", estimate(1 / 3), corrected=True)
    row = replace(row, best=0.5, labels=3, labels_given=5, annotators=shares)
    return replace(
        small(),
        corrected=(row,),
        shares={"claude": 0.1},
        budgets={"claude": 0.9},
        lags={"app": Lag(1, 2.0, {"x": "denied"}, 1, ("sick",), "all", 7)},
        user_scores=UserScores(
            (UserScoreRow("search", "1h", estimate(0.7)),),
            (JudgeCorrelation("claude", Quantity.FAITHFULNESS, CountedInterval(0.1, -0.2, math.inf, 9)),),
            MappingProxyType({"search": 1.0}),
        ),
        gauges={(Gauge.DRIFT_ALARM, ("faithfulness", "search")): 1.0, (Gauge.STATE_FREE, ()): 5.0},
        problems=("a", "b"),
        segments=(SegmentRow(quantity_of("polite"), "tier", "free", "search", "claude", "1h", estimate(0.2)),),
        segment_last={("polite", "tier", "free", "search", "claude"): 7.0},
        exported=Counter({(Tally.SEEN, ("app",)): 3}),
    )


@pytest.mark.parametrize("snapshot", [Snapshot(at=1.5), small(), full(), large(3)])
def test_what_is_written_reads_back_as_it_was(snapshot: Snapshot) -> None:
    """Every field, through JSON."""
    assert snapshot_of(json.loads(json.dumps(to_record(snapshot)))) == snapshot


@pytest.mark.parametrize("record", [None, {}, [], [1.0], "x", to_record(Lag(None, None))])
def test_what_another_version_has_stored_is_refused(record: object) -> None:
    """With a ValueError, which makes a worker compute its own figures."""
    with pytest.raises(ValueError, match=r"."):
        snapshot_of(record)


def test_workers_share_all_but_what_is_their_own(store: SqliteStore) -> None:
    """Lags, probabilities and counters of the leader are not shown by others; nothing is, before there is a leader."""
    shared = SharedSnapshot(store, lambda: True, Counter)
    assert shared.latest() is None
    shared.save(full())
    assert shared.latest() == replace(full(), lags={}, probabilities={}, exported=None)
    store.remember(STATE, {"snapshot": [7]})
    assert shared.latest() is None


ORDINARY = "What do cats do?"
SHORT = b64encode(compress(bytes(8))).decode()


def words(store: SqliteStore, questions: int = 10) -> Vocabularies:
    """A process that has begun."""
    vocabularies = Vocabularies(questions, ("search", "other"), store=store)
    vocabularies.resume()
    return vocabularies


def test_learnt_once_and_left_alone(store: SqliteStore) -> None:
    """Ten questions make a vocabulary; later ones change nothing, nor does a restart or a larger wish."""
    first = words(store)
    first.learn({"search": [ORDINARY] * 6})
    assert (first.meters, first.mark("search")) == ({}, None)
    second = words(store)
    second.learn({"search": [ORDINARY] * 6, "other": ["Why?"]})
    assert second.meters["search"].vocabulary == learn(Vocabulary(), [ORDINARY] * 12)
    mark = second.mark("search")
    second.learn({"search": ["Refund!"] * 9})
    assert words(store, 100).mark("search") == second.mark("search") == mark
    assert second.mark("other") is None


def test_renewed_begins_with_nothing(store: SqliteStore) -> None:
    """Here and after a restart."""
    vocabularies = words(store)
    vocabularies.learn({"search": [ORDINARY] * 10})
    vocabularies.renew("search")
    for same in (vocabularies, words(store)):
        assert same.mark("search") is None
        same.learn({"search": ["Refund!"] * 10})
        assert same.meters["search"].vocabulary == learn(Vocabulary(), ["Refund!"] * 10)
        same.renew("search")


@pytest.mark.parametrize(
    "kept",
    [
        {},
        {"counts": "AAAA"},
        {"counts": SHORT, "questions": 1},
        {"counts": "?", "questions": 1},
        {"counts": 7, "questions": 1},
    ],
)
def test_what_another_version_kept_is_learnt_anew(store: SqliteStore, kept: dict[str, object]) -> None:
    """State that cannot be understood is no reason to stop."""
    store.remember(f"{KIND}/search", kept)
    vocabularies = words(store)
    vocabularies.learn({"search": [ORDINARY] * 10})
    assert vocabularies.meters["search"].vocabulary.questions == 10


def test_what_cannot_be_kept_is_not_used(tmp_path: Path) -> None:
    """A vocabulary that a restart would not know measures nothing."""
    store = SqliteStore(tmp_path / "state")
    vocabularies = words(store)
    store.close()
    with pytest.raises(StoreError):
        vocabularies.learn({"search": [ORDINARY] * 10})
    assert vocabularies.meters == {}


def lines(first: int, last: int, question: str) -> list[bytes]:
    """Lines of a log."""
    return [a_line(f"r{number}", question=question) for number in range(first, last)]


def read(store: SqliteStore, spans: list[tuple[int, int, str]]) -> tuple[Vocabularies, Tallies]:
    """What intake makes of these batches: vocabularies, and counts of strangeness."""
    vocabularies = words(store)
    batches = [a_batch(*lines(*span), cursor=str(span[1])) for span in spans]
    loop = an_intake(store, *batches, plan=replace(ALL, probability=0.0), vocabularies=vocabularies)
    while loop._step():
        pass
    counted = {place: count for place, count in store.tallies().items() if place[0] is Tally.QUESTION_STRANGENESS}
    return vocabularies, Tallies(counted)


def test_intake_learns_then_measures(store: SqliteStore) -> None:
    """The batch that completes the vocabulary is not measured with it, every one after it is."""
    vocabularies, counted = read(
        store, [(0, 6, ORDINARY), (6, 12, ORDINARY), (12, 14, ORDINARY), (14, 17, "Refund tickets")]
    )
    assert vocabularies.meters["search"].vocabulary.questions == 12
    cells = {labels[1]: count for (_, labels), count in counted.items() if labels[1] != "sum"}
    assert sum(cells.values()) == 5
    assert cells["1.0"] == 3


@pytest.mark.costly
def test_a_kill_never_changes_a_vocabulary_that_was_used() -> None:
    """At writes of a life: what was counted was counted with the vocabulary that the next life reads."""
    measured = []
    for instant in range(0, 42, 3):
        with tempfile.TemporaryDirectory() as folder:
            store, fate = SqliteStore(Path(folder)), Fate()
            store.engine._writer = MortalConnection(store.engine._writer, fate)  # type: ignore[assignment]
            fate.left = instant
            with suppress(KilledError):
                read(store, [(0, 10, ORDINARY), (10, 15, "Refund tickets")])
            store.close()
            store = SqliteStore(Path(folder))
            counted = [place for place in store.tallies() if place[0] is Tally.QUESTION_STRANGENESS]
            measured.append(bool(counted))
            assert not counted or words(store).mark("search") == learn(Vocabulary(), [ORDINARY] * 10).mark, instant
            store.close()
    assert measured == sorted(measured)
    assert (measured[0], measured[-1]) == (False, True)
