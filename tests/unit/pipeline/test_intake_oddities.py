"""Intake beside its usual way: lag, odd records, records that come again, parts, canaries, named versions."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from sys import float_info
from typing import Any

import orjson
import pytest
from support.kit import AT, JUDGE, Clock, ListSource, a_batch, a_line, a_sample
from support.loops import ALL, an_intake, take_all

from ragwatch.errors import ReceivedMeanwhileError, SourceError, StoreError
from ragwatch.formats.log_reader import LogReader, RecordRules
from ragwatch.pipeline.intake import IntakeLoop
from ragwatch.pipeline.placing import MAX_CHARS, MAX_NEW, NamedVersions
from ragwatch.ports import Admission, Batch, BatchReport, RecordedEvent, VersionValue
from ragwatch.redaction.redactor import Redactor
from ragwatch.statistics.canary.definition import CanaryMarks
from ragwatch.statistics.sampling import SamplingPlan
from ragwatch.statistics.snapshot import Lag
from ragwatch.statistics.tally import Tally
from ragwatch.stores.sqlite.store import SqliteStore


@pytest.fixture
def intake(store: SqliteStore) -> IntakeLoop:
    """Two batches, the first of which is admitted."""
    return an_intake(store, a_batch(a_line("a"), cursor="1"), a_batch(a_line("b"), cursor="2"))


async def test_a_log_that_cannot_be_read_falls_behind(intake: IntakeLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits grows, and the lag of a better hour would deny it."""
    await intake.step()

    def read() -> Batch:
        intake.source.batches.append(a_batch(cursor="3"))  # type: ignore[attr-defined]
        raise SourceError("no permission")

    monkeypatch.setattr(intake.source, "read", read)
    for behind in (2, 3):
        with pytest.raises(SourceError):
            await intake.step()
        assert intake.lag == Lag(behind, None)


async def test_secrets_of_what_is_not_stored_are_not_counted(store: SqliteStore) -> None:
    """An id that comes twice is one draw, in one batch and in the next: its secrets are those of the first."""
    once, again = a_line("a", answer="ann@example.org"), a_line("a", answer="ann@example.org, bob@example.org")
    batches = a_batch(once, again), a_batch(again, a_line("b", answer="eve@example.org"), cursor="2")
    intake = an_intake(store, *batches, redactor=Redactor())
    assert [await intake.step(), await intake.step()] == [True, True]
    assert store.tallies()[Tally.REDACTED, ("EMAIL",)] == 2


@pytest.mark.parametrize("sentinel", [float_info.max, 3.4e38])
async def test_scores_that_stand_for_none_stop_no_source(store: SqliteStore, sentinel: float) -> None:
    """Retrievers write the largest float where they have no score: beyond a sum, and no figure either."""
    batches = [
        a_batch(
            *(a_line(f"{value}-{number}", contexts=[{"text": "Cats.", "score": value}]) for number in range(3)),
            cursor=str(cursor),
        )
        for cursor, value in enumerate((sentinel, -sentinel, 0.5))
    ]
    intake = an_intake(store, *batches)
    for _ in batches:
        assert await intake.step() is True
    counts = {labels: value for (tally, labels), value in store.tallies().items() if tally is Tally.TOP_SCORE}
    assert counts == {("search", "0.5"): 3.0, ("search", "sum"): 1.5}


DEEPEST = 1_000  # orjson decodes 1,024 levels, of which Python cannot show so many
NOBODY_FORESAW = {
    "large parts of a date": '"Mon, 01 Jan 2026 99999999999999999999:00:00 GMT"',
    "large offset": '"Mon, 01 Jan 2026 00:00:00 +999999999999999999999"',
    "deep list": "[" * DEEPEST + "]" * DEEPEST,
    "deep object": '{"text": ' * DEEPEST + "1" + "}" * DEEPEST,
    "large": "1.7e308",
    "integer": f"{2**64 - 1}",
}
FIELDS = (
    *("id", "at", "question", "answer", "contexts", "route", "history", "metadata", "user_score", "feedback", "rating"),
    *("thumbs", "task_outcome", "error", "trace_id", "reference", "feedback_for"),
)


@pytest.mark.parametrize("value", NOBODY_FORESAW.values(), ids=NOBODY_FORESAW)
async def test_x8_x10_no_value_stops_a_source(store: SqliteStore, value: str) -> None:
    """In any field, within a context, and beside another wrong field: read, rejected or left out, and others go on."""
    odd = [a_line(f"odd-{name}", **{name: "MARK"}) for name in FIELDS]
    odd += [a_line("score", contexts=[{"text": "Cats.", name: "MARK"}]) for name in ("id", "score", "updated_at")]
    odd += [a_line("two", at="MARK", history=5), a_line("said", feedback_for="a", at="MARK", thumbs="MARK")]
    lines = [line.replace(b'"MARK"', value.encode()) for line in odd]
    intake = an_intake(store, a_batch(*lines, a_line("plain")), reader=LogReader(RecordRules()), redactor=Redactor())
    assert await intake.step() is True
    seen = store.tallies()[Tally.SEEN, ("app",)]
    assert 0 < seen <= len(lines) + 1


class ReceivingSource(ListSource):
    """A source whose clients may send records again."""

    recognises_resent = True


def intake_of(batches: Sequence[Batch], store: SqliteStore, plan: float = 1.0) -> IntakeLoop:
    """The intake of these batches."""
    return an_intake(store, source=ReceivingSource(batches), plan=replace(ALL, probability=plan))


async def test_what_is_sent_again_counts_once(store: SqliteStore) -> None:
    """A record with a known id is neither seen nor drawn again: within a batch, in a later one, drawn or not."""
    reports = [BatchReport(), BatchReport()]
    batches = [
        a_batch(a_line("a"), a_line("b"), a_line("a"), report=reports[0]),
        a_batch(a_line("b"), b"{", a_line("c"), report=reports[1]),
    ]
    for plan in (1.0, 1e-9):
        intake = intake_of(batches, store, plan)
        await take_all(intake)
    tallies = store.tallies()
    assert (tallies[Tally.SEEN, ("app",)], tallies[Tally.RESENT, ("app",)]) == (5, 2 + 5)
    assert (tallies[Tally.DRAWN, ("search",)], store.pending()) == (3, {JUDGE: 3})
    assert ([report.resent for report in reports], [len(report.rejections) for report in reports]) == (
        [[1, 2, 3], [1, 3]],
        [0, 1],
    )
    assert (reports[1].rejections[0].line, reports[1].rejections[0].reason) == (2, "torn_json")


async def test_a_batch_that_was_not_stored_is_read_afresh(store: SqliteStore) -> None:
    """After a failure nothing is known: the records are seen once, and the report tells of the attempt that held."""
    report = BatchReport()
    intake = intake_of([a_batch(a_line("a"), b"{", report=report)], store)
    store.engine._writer.execute("PRAGMA query_only=ON")
    with pytest.raises(StoreError):
        await intake.step()
    assert (intake.source.committed, store.tallies()) == (0, {})  # type: ignore[attr-defined]
    store.engine._writer.execute("PRAGMA query_only=OFF")
    assert await intake.step()
    assert (store.tallies()[Tally.SEEN, ("app",)], report.resent, len(report.rejections)) == (2, [], 1)


class OvertakenStore(SqliteStore):
    """A store in which another worker receives the same records between look-up and admission, so many times."""

    times = 1

    def admit(self, admission: Admission) -> int:
        """Be overtaken, then admit."""
        if self.times:
            self.times -= 1
            super().admit(replace(admission, draws=(), tallies=Counter(), received=["b"], cursor="0"))
            raise ReceivedMeanwhileError("overtaken")
        return super().admit(admission)


async def test_what_another_worker_receives_meanwhile_counts_as_resent(tmp_path: Path) -> None:
    """The batch is admitted again with what is known then; where that happens twice, the step fails and is repeated."""
    report = BatchReport()
    store = OvertakenStore(tmp_path / "state")
    intake = intake_of([a_batch(a_line("a"), a_line("b"), report=report)], store)
    assert await intake.step()
    tallies = store.tallies()
    assert [tallies[tally, ("app",)] for tally in (Tally.SEEN, Tally.RESENT)] == [1, 1]
    assert (store.pending(), report.resent) == ({JUDGE: 1}, [2])
    store.times = 2
    again = intake_of([a_batch(a_line("c"))], store)
    with pytest.raises(ReceivedMeanwhileError):
        await again.step()
    assert await again.step()
    assert store.pending() == {JUDGE: 2}
    store.close()


MARKS = CanaryMarks(b"secret")
MARK = MARKS.mark("refunds", AT)


def drawn(store: SqliteStore) -> list[str]:
    """Ids of what is drawn."""
    return sorted(draw.sample.id for draw in store.lease(JUDGE, 9, now=AT, seconds=0))


async def test_answers_to_our_own_canaries_are_no_traffic(store: SqliteStore) -> None:
    """They are seen and counted as what they are, and enter neither the draw nor any signal."""
    lines = (a_line("a"), a_line("b", metadata={"canary": MARK}), a_line("c", metadata={"tier": "gold"}))
    await an_intake(store, a_batch(*lines), marks=MARKS).step()
    assert drawn(store) == ["a", "c"]
    tallies = store.tallies()
    assert (tallies[Tally.SEEN, ("app",)], tallies[Tally.OF_CANARIES, ("app",)]) == (3, 1)
    assert tallies[Tally.ANSWER_CHARS, ("search", "50.0")] == 2
    assert tallies[Tally.INVALID_MARKS, ("app",)] == 0


@pytest.mark.parametrize("mark", [True, "refunds", MARK[:-1], CanaryMarks(b"guess").mark("refunds", AT), {"x": 1}])
async def test_x26_nobody_else_can_hide_an_answer(store: SqliteStore, mark: object) -> None:
    """A mark without our secret is counted, and its answer drawn and measured as every other."""
    await an_intake(store, a_batch(a_line("a"), a_line("b", metadata={"canary": mark})), marks=MARKS).step()
    assert drawn(store) == ["a", "b"]
    tallies = store.tallies()
    assert (tallies[Tally.OF_CANARIES, ("app",)], tallies[Tally.INVALID_MARKS, ("app",)]) == (0, 1)


async def test_what_names_no_canary_is_traffic(store: SqliteStore) -> None:
    """A service that logs the header of every request logs nothing, in some spelling, for those of its users."""
    nobody = [None, "", " ", "-", "None", "null", "False", "0", False, 0, [], {}]
    lines = [a_line(f"r{index}", metadata={"canary": mark}) for index, mark in enumerate(nobody)]
    await an_intake(store, a_batch(*lines), marks=MARKS).step()
    assert store.pending() == {JUDGE: len(nobody)}
    tallies = store.tallies()
    assert (tallies[Tally.OF_CANARIES, ("app",)], tallies[Tally.INVALID_MARKS, ("app",)]) == (0, 0)


async def test_marks_may_be_trusted(store: SqliteStore) -> None:
    """`sampling.trust_canary_mark`, for services that cannot log the header: whatever the record says counts."""
    lines = (a_line("a"), a_line("b", metadata={"canary": True}))
    await an_intake(store, a_batch(*lines), marks=None).step()
    assert drawn(store) == ["a"]
    assert store.tallies()[Tally.OF_CANARIES, ("app",)] == 1


def new_values(versions: NamedVersions, *metadata: dict[str, Any]) -> list[tuple[str, str]]:
    """New values of records with this metadata."""
    new: list[VersionValue] = []
    for one in metadata:
        versions.read(a_sample(metadata=one), AT, new)
    return [(one.field, one.value) for one in new]


def test_texts_and_integers_are_versions_and_nothing_else() -> None:
    """Lists, booleans, numbers with a fraction and empty texts are none; long values are cut."""
    versions = NamedVersions(("release", "model"))
    metadata = [{"release": value} for value in ("v1", 2, True, None, "", 1.5, ["v3"], {"a": 1}, "x" * 500)]
    assert new_values(versions, *metadata, {"model": "v1", "other": "v9"}) == [
        ("release", "v1"),
        ("release", "2"),
        ("release", "x" * MAX_CHARS),
        ("model", "v1"),
    ]


def test_a_value_is_new_until_it_is_stored() -> None:
    """Within a batch it counts once; a batch that could not be stored is read again."""
    versions = NamedVersions(("release",))
    assert new_values(versions, {"release": "v1"}, {"release": "v1"}) == [("release", "v1")]
    assert new_values(versions, {"release": "v1"}) == [("release", "v1")]
    versions.note([VersionValue("release", "v1", AT)])
    assert new_values(versions, {"release": "v1"}, {"release": "v2"}) == [("release", "v2")]


def test_values_are_redacted_and_limited() -> None:
    """A key with a person in it names nobody; one with another value in each record fills neither batch nor memory."""
    versions = NamedVersions(("release",), Redactor())
    ((_, value),) = new_values(versions, {"release": "built by ada@example.com"})
    assert "ada" not in value
    versions.note([VersionValue("release", value, AT)])
    assert new_values(versions, {"release": "built by ada@example.com"}) == []
    assert len(new_values(NamedVersions(("release",)), *({"release": str(index)} for index in range(999)))) == MAX_NEW
    versions.note(VersionValue("release", str(index), AT) for index in range(20_000))
    versions.note([VersionValue("release", "v1", AT)])
    assert new_values(versions, {"release": "v1"}, {"release": "5"}) == [("release", "5")]  # the store knows the rest


async def test_the_first_answer_with_another_version_becomes_an_event(store: SqliteStore) -> None:
    """Of all answers, drawn or not; over restarts once; with its time."""

    def line(name: str, release: str, at: float) -> bytes:
        return orjson.dumps(a_sample(name, metadata={"release": release}, at=at).to_record())

    records = [line(f"r{index}", "v1" if index < 3 else "v2", AT + index) for index in range(6)]
    for start in (0, 2, 4, 4):
        batch, versions = a_batch(*records[start : start + 2], cursor=str(start)), NamedVersions(("release",))
        plan = SamplingPlan(1e-6)
        assert await an_intake(store, batch, plan=plan, versions=versions, clock=Clock(AT + 99)).step()
    assert store.events(0.0) == [RecordedEvent(AT + 3, "version", "release: v2")]
