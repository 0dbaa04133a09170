"""Intake: every record is counted once, drawn by its hash, redacted, and written with its cursor in one transaction."""

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import LogCapture
from support.kit import AT, JUDGE, Clock, a_batch, a_draw, a_line, a_sample, an_admission
from support.loops import ALL, an_intake

from ragwatch.formats.log_reader import LogReader, RecordRules
from ragwatch.model.sample import RejectReason
from ragwatch.ports import Rejection
from ragwatch.redaction.redactor import Redactor
from ragwatch.statistics.sampling import SamplingHash, is_drawn, key_of
from ragwatch.statistics.snapshot import Lag
from ragwatch.statistics.tally import Tally, lines_read
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry


@pytest.fixture
def make(store: SqliteStore, telemetry: Telemetry) -> Any:
    """Makes the intake of some batches."""
    return partial(an_intake, store, telemetry=telemetry, clock=Clock(AT + 10))


def counts(store: SqliteStore, tally: Tally) -> dict[tuple[str, ...], float]:
    """All cells of one tally."""
    return {labels: value for (name, labels), value in store.tallies().items() if name is tally}


def leased(store: SqliteStore, judge: str = JUDGE) -> list[Any]:
    """All pending draws of a judge."""
    return store.lease(judge, 1000, now=AT, seconds=0)


async def test_records_become_draws(make: Any, store: SqliteStore) -> None:
    """Lines are seen, drawn, queued for each judge, and committed with the cursor; a silent source writes nothing."""
    intake = make(a_batch(a_line("a"), a_line("b"), cursor="c1"), judges={JUDGE: 1.0, "second": 1.0})
    assert (intake.lag, await intake.step()) == (None, True)
    assert [draw.sample.id for draw in leased(store)] == ["a", "b"]
    assert store.pending() == {JUDGE: 2, "second": 2}
    assert (store.cursors("app"), intake.source.committed, intake.lag) == ({"log": "c1"}, 1, Lag(0, None))
    assert counts(store, Tally.SEEN) == {("app",): 2}
    assert counts(store, Tally.DRAWN) == {("search",): 2}
    assert counts(store, Tally.CONTEXTS) == {("search", "2.0"): 2, ("search", "sum"): 4}
    before = store.tallies()
    assert (await intake.step(), store.tallies(), intake.lag) == (False, before, Lag(0, None))


@pytest.mark.parametrize(
    ("line", "reason"), [(b"{", "torn_json"), (b'{"question": "q", "contexts": [], "answer": 7}', "wrong_type")]
)
async def test_each_rejection_is_counted_and_told(
    make: Any, store: SqliteStore, log: LogCapture, line: bytes, reason: str
) -> None:
    """A record that is no sample is seen and rejected by reason; its neighbour goes in, and the cursor moves on."""
    await make(a_batch(line, a_line("good"), cursor="9")).step()
    assert (counts(store, Tally.SEEN), counts(store, Tally.REJECTED)) == ({("app",): 2}, {("app", reason): 1})
    assert ([draw.sample.id for draw in leased(store)], store.cursors("app")) == (["good"], {"log": "9"})
    told = log.entries[0]
    assert (told["event"], told["reason"], told["file"], told["line"]) == ("record rejected", reason, "app.jsonl", 1)


async def test_skipped_lines_are_no_records(make: Any, store: SqliteStore) -> None:
    """Lines that the source leaves out are counted by reason, apart from records: neither seen nor rejected."""
    batch = a_batch(b'{"level": "info"}', a_line("a"), b"Traceback:", b"{torn", a_line("b"), cursor="7")
    intake = make(batch, reader=LogReader(RecordRules("canonical", where="answer")))
    await intake.step()
    assert counts(store, Tally.SKIPPED) == {("app", "where"): 1, ("app", "no_json"): 1}
    assert (counts(store, Tally.SEEN), counts(store, Tally.REJECTED)) == ({("app",): 3}, {("app", "torn_json"): 1})
    assert ([draw.sample.id for draw in leased(store)], store.cursors("app")) == (["a", "b"], {"log": "7"})
    assert lines_read(store.tallies(), "app") == 5


async def test_a_batch_of_news_only(make: Any, store: SqliteStore, log: LogCapture) -> None:
    """A batch without lines moves the cursor; why a stream was started over is counted and told.

    What never became a line is seen and rejected, and bytes that are not UTF-8 are replaced, which is counted.
    """
    rejection = Rejection(RejectReason.LINE_TOO_LONG, "app.jsonl", 7)
    repaired = a_batch(a_line("a").replace(b"purr", b"p\xffrr"), cursor="d", rejections=[rejection])
    intake = make(a_batch(cursor="c", resets={"truncated": 2}), repaired)
    await intake.step()
    assert store.cursors("app") == {"log": "c"}
    assert store.tallies() == {(Tally.RESETS, ("app", "truncated")): 2}
    await intake.step()
    assert (counts(store, Tally.SEEN), counts(store, Tally.REPAIRED)) == ({("app",): 2}, {("app",): 1})
    assert counts(store, Tally.REJECTED) == {("app", "line_too_long"): 1}
    assert [(entry["event"], entry["reason"]) for entry in log.entries][:1] == [("stream started over", "truncated")]


async def test_samples_that_were_probably_read_wrongly_are_counted(
    make: Any, store: SqliteStore, log: LogCapture
) -> None:
    """By reason, and said once for each."""
    names = [a_line(f"r{n}", contexts=[{"text": "Kettle manual.pdf"}]) for n in range(3)]
    await make(a_batch(*names, a_line("r5"))).step()
    assert counts(store, Tally.SUSPECT) == {("app", "context_names"): 3}
    said = [entry["advice"].partition(":")[0] for entry in log.entries if "read wrongly" in entry["event"]]
    assert said == ["context_names"]


@pytest.mark.parametrize(
    ("late", "shifted"),
    [(lambda n: 5 * 3600.0 + n, 3), (lambda n: n, 0), (lambda n: 5 * 3600.0 - 60.0 * n, 0), (lambda _: 900.0, 0)],
    ids=["local times", "in time", "catching up", "a constant delay"],
)
async def test_times_that_look_shifted_are_counted(
    make: Any, store: SqliteStore, log: LogCapture, late: Callable[[int], float], shifted: int
) -> None:
    """Records that are always whole hours late are said once, after ten of them and ten minutes."""
    batches = [a_batch(a_line(f"r{n}", at=AT + 60.0 * n - late(n)), cursor=str(n)) for n in range(13)]
    clock = Clock(AT)
    intake = make(*batches, clock=clock)
    for _ in batches:
        await intake.step()
        clock.now += 60.0
    assert counts(store, Tally.SUSPECT) == ({("app", "times_shifted"): shifted} if shifted else {})
    said = [entry["advice"] for entry in log.entries if "read wrongly" in entry["event"]]
    assert [one.partition(";")[0] for one in said] == ["times_shifted: records are always 5 h late"] * bool(shifted)


async def test_reading_again_counts_no_draw_twice(make: Any, store: SqliteStore) -> None:
    """The same records under another cursor are duplicates, even inside one batch."""
    await make(a_batch(a_line("a"), a_line("a"))).step()
    await make(a_batch(a_line("a"), cursor="2")).step()
    assert counts(store, Tally.SEEN) == {("app",): 3}
    assert counts(store, Tally.REJECTED) == {("app", "duplicate_id"): 2}
    assert store.pending() == {JUDGE: 1}


async def test_records_without_id_are_named_by_place(make: Any, store: SqliteStore) -> None:
    """Two equal answers in one log are two samples when nothing names them."""
    line = a_line("", id=None)
    await make(a_batch(line, line)).step()
    assert [draw.sample.id for draw in leased(store)] == ["log:0", f"log:{len(line) + 1}"]


SECRETS = ("ann@example.org", "DE89370400440532013000", "4111111111111111")


async def test_redaction_does_not_move_the_draw(make: Any, store: SqliteStore) -> None:
    """The key comes from the id as logged, so turning redaction on later makes no second sample; off, texts stay."""
    line = a_line(SECRETS[0], question=SECRETS[0])
    await make(a_batch(line)).step()
    assert (leased(store)[0].sample.question, counts(store, Tally.REDACTED)) == (SECRETS[0], {})
    await make(a_batch(line, cursor="2"), redactor=Redactor()).step()
    assert store.pending() == {JUDGE: 1}


async def test_x11_routes_that_are_not_configured_are_other(make: Any, store: SqliteStore) -> None:
    """Labels come from configuration only; the sample keeps its own word."""
    await make(a_batch(a_line("a", route="s3cr3t"), a_line("b", route="support"))).step()
    assert [(draw.route, draw.sample.route) for draw in leased(store)] == [("other", "s3cr3t"), ("support", "support")]


async def test_probability_is_stored_with_the_row(make: Any, store: SqliteStore) -> None:
    """By stratum before route before the rest; and what is drawn is what the hash says."""
    plan = replace(ALL, probability=0.5, routes={"support": 0.25}, stratum="tier", strata={"gold": 1.0})
    names = [f"r{index}" for index in range(60)]
    lines = [a_line(name, route="support" if index % 3 else "search") for index, name in enumerate(names)]
    gold = [a_line(f"gold{index}", metadata={"tier": "gold"}) for index in range(3)]
    await make(a_batch(*lines, *gold), plan=plan).step()
    probabilities = {draw.sample.id: draw.probability for draw in leased(store)}
    odds = {name: 0.25 if index % 3 else 0.5 for index, name in enumerate(names)}
    expected = {name: p for name, p in odds.items() if is_drawn(key_of("app", name), p)}
    assert probabilities == expected | {f"gold{index}": 1.0 for index in range(3)}
    assert counts(store, Tally.SEEN) == {("app",): 63}
    assert sum(counts(store, Tally.ANSWER_CHARS).values()) > 63  # signals are of every request


async def test_x15_chosen_ids_are_drawn_and_read_by_the_secret(make: Any, store: SqliteStore) -> None:
    """500 ids that the public hash of none draws at 0.1: with a secret about 50 are, as for every reader of the log."""
    sampling = SamplingHash(b"secret of the state")
    names = [f"r{index}" for index in range(600) if not is_drawn(key_of("app", f"r{index}"), 0.1)][:500]
    await make(a_batch(*map(a_line, names)), plan=replace(ALL, probability=0.1, routes={}), sampling=sampling).step()
    drawn = {draw.sample.id for draw in leased(store)}
    assert drawn == {name for name in names if sampling.draws(key_of("app", name), 0.1)}
    assert 25 < len(drawn) < 80


async def test_a_judge_with_a_share_reads_a_share(make: Any, store: SqliteStore) -> None:
    """The probability of a pair is that of the draw times the judge's, and a draw nobody reads is none."""
    lines = [a_line(f"r{index}") for index in range(200)]
    await make(a_batch(*lines), plan=replace(ALL, probability=0.5), judges={JUDGE: 0.2}).step()
    draws = leased(store)
    assert 5 <= len(draws) <= 40
    assert {draw.probability for draw in draws} == {0.5 * 0.2}
    assert counts(store, Tally.DRAWN) == {("search",): len(draws)}
    assert store.pending() == {JUDGE: len(draws)}


@pytest.mark.parametrize(("logged", "expected"), [(AT, AT), (AT + 9999, AT + 10), (None, AT + 10)])
async def test_time_of_a_draw(make: Any, store: SqliteStore, logged: float | None, expected: float) -> None:
    """The log's time counts, but no answer comes from the future; unknown is when it was read."""
    await make(a_batch(a_line("a", at=logged))).step()
    assert leased(store)[0].at == expected


async def test_the_backlog_of_a_judge_that_is_gone_stops_nobody(make: Any, store: SqliteStore) -> None:
    """Only judges in force make the sources wait: then nothing is read and nothing lost, the log keeps what waits."""
    store.admit(an_admission(a_draw("x"), a_draw("y"), judges=("gone",)))
    intake = make(a_batch(a_line("a")), a_batch(a_line("b"), cursor="2"), max_pending=1)
    assert [await intake.step(), await intake.step(), intake.lag] == [True, False, Lag(1, None)]


REDACTOR = Redactor()
scalars = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=20)
anything = st.recursive(scalars, lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(), part, max_size=3))
odd_parts = st.dictionaries(st.sampled_from([*a_sample().to_record(), "trace_id", "response"]), anything, max_size=2)
lines = (odd_parts.map(lambda parts: a_sample().to_record() | parts) | anything).map(
    lambda record: json.dumps(record).encode()
)


@given(st.lists(lines | st.binary(max_size=40), min_size=1, max_size=8))
def test_no_line_stops_a_source(batch: list[bytes]) -> None:
    """Whatever a log holds is drawn or rejected: one poisoned line must not be read for ever."""
    with TemporaryDirectory() as state, closing(SqliteStore(Path(state))) as store:
        telemetry = Telemetry(structlog.wrap_logger(None, processors=[LogCapture()]))
        rules = {"plan": replace(ALL, stratum="tier"), "redactor": REDACTOR}
        intake = an_intake(store, a_batch(*batch), reader=LogReader(RecordRules()), telemetry=telemetry, **rules)
        assert intake._step() is True
        rejected = sum(counts(store, Tally.REJECTED).values())
        assert counts(store, Tally.SEEN) == {("app",): len(batch)}
        assert len(batch) == rejected + sum(store.pending().values())
        assert len(leased(store)) == sum(store.pending().values())


async def test_shedding_halves_the_probability_and_stores_it(make: Any, store: SqliteStore) -> None:
    """Above shed_above fewer are drawn, by the hash of their id, each with the probability it had; all are seen."""
    batches = (a_batch(*(a_line(f"{part}-{index}") for index in range(200))) for part in range(3))
    intake = make(*batches, max_pending=10_000, shed_above=150)
    assert [await intake.step() for _ in range(3)] == [True] * 3
    drawn = {draw.sample.id: draw.probability for draw in leased(store)}
    shares = {part: {p for name, p in drawn.items() if name.startswith(f"{part}-")} for part in range(3)}
    assert (shares, intake.factor) == ({0: {1.0}, 1: {0.5}, 2: {0.5}}, 0.5)
    assert all(is_drawn(key_of("app", f"1-{index}"), 0.5) == (f"1-{index}" in drawn) for index in range(200))


async def test_a_line_with_several_records(make: Any, store: SqliteStore) -> None:
    """Each of them is seen and drawn under an id of its own; a line without any is skipped."""
    row = {"question": "q", "contexts": ["The mill stands by the river."], "answer": "a"}
    page = {"data": [row, {**row, "id": "named"}, row, 7]}
    intake = make(
        a_batch(json.dumps(page).encode(), b'{"data": []}'), reader=LogReader(RecordRules("canonical", records="data"))
    )
    assert await intake.step()
    assert counts(store, Tally.SEEN) == {("app",): 4}
    assert counts(store, Tally.SKIPPED) == {("app", "no_records"): 1}
    assert counts(store, Tally.REJECTED) == {("app", RejectReason.NOT_AN_OBJECT): 1}
    assert sorted(draw.sample.id for draw in leased(store)) == ["log:0", "log:0.2", "named"]


async def test_a_wrong_optional_field_costs_that_field(make: Any, store: SqliteStore) -> None:
    """The answer is read at the time of reading it; what was left out is counted by name and reason."""
    row = {"id": "r1", "at": 0, "question": "q", "contexts": ["The mill stands by the river."], "answer": "a"}
    bad = {**row, "id": "r2", "answer": None}
    intake = make(a_batch(json.dumps(row).encode(), json.dumps(bad).encode()))
    assert await intake.step()
    assert counts(store, Tally.FIELDS_LOST) == {("app", "at", "implausible_time"): 1}
    assert counts(store, Tally.REJECTED) == {("app", RejectReason.WRONG_TYPE): 1}
    assert [(draw.sample.id, draw.at) for draw in leased(store)] == [("r1", AT + 10)]
