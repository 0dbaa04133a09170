"""The source: replies after the commit, waiting for the rest of a trace, limits, late spans, restarts."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from typing import Any

import pytest
from support.kit import AT, Clock
from support.spans import ANSWER, JSON, OI, TRACE, a_request, a_span, as_json, as_protobuf, openinference

from ragwatch.formats.traces.span import Span
from ragwatch.model.sample import RejectReason
from ragwatch.ports import Batch, Part
from ragwatch.ports.sources import Reply
from ragwatch.sources.otlp import build
from ragwatch.sources.otlp import source as module
from ragwatch.sources.otlp.options import Options
from ragwatch.sources.otlp.source import METHOD, PATH, OtlpHandler, OtlpSource
from ragwatch.sources.otlp.waiting import MAX_SPANS, WaitingTraces, piece_of
from ragwatch.sources.requests import ByteBudget
from ragwatch.statistics.tally import Tally

GRACE, WAIT = 10.0, 120.0


def a_source(clock: Clock | None = None, **options: Any) -> OtlpSource:
    """A source with a clock that is wound by hand."""
    return OtlpSource(Options(name="traces", grace_seconds=GRACE, wait_seconds=WAIT, **options), clock or Clock())


async def sent(source: OtlpSource, spans: Iterable[Span]) -> asyncio.Task[Reply]:
    """A request on its way, until the source has taken it in."""
    source.wake.clear()
    task = asyncio.ensure_future(source.handlers[PATH](a_request(as_protobuf(spans))))
    await source.wake.wait()
    return task


async def stored(source: OtlpSource, spans: Iterable[Span]) -> Batch:
    """The batch of a request, committed; its client was answered with success, and not before."""
    task = await sent(source, spans)
    batch = source.read()
    assert batch is not None
    assert source.read() is batch
    await asyncio.sleep(0)
    assert not task.done()
    source.commit(batch)
    assert (await task).status == 200
    return batch


def records(batch: Batch | None) -> list[dict[str, Any]]:
    """The records of a batch."""
    return [] if batch is None else [json.loads(line) for line in batch.lines]


def settled(source: OtlpSource) -> list[Batch]:
    """All further batches."""
    batches = []
    while (batch := source.read()) is not None:
        source.commit(batch)
        batches.append(batch)
    return batches


def tallies_of(batches: Iterable[Batch]) -> dict[tuple[str, str], float]:
    """Counters of all batches, by name and last label."""
    return {(str(tally), labels[-1]): count for batch in batches for (tally, labels), count in batch.tallies.items()}


async def test_a_trace_waits_for_its_grace_and_is_released_with_its_record() -> None:
    """Spans are held by the first batch; the record comes after the grace, in the batch that releases them."""
    clock = Clock()
    source = a_source(clock)
    first = await stored(source, openinference())
    assert ([part.group for part in first.hold], records(first), first.release) == ([TRACE], [], [])
    clock.now += GRACE - 0.1
    assert source.read() is None
    clock.now += 0.2
    (last,) = settled(source)
    assert ([one["answer"] for one in records(last)], list(last.release)) == ([ANSWER], [TRACE])
    assert tallies_of([first, last]) == {("spans", "traces"): 9, ("traces", "assembled"): 1}
    with pytest.raises(ValueError, match="read last"):
        source.commit(last)


async def test_children_before_the_root_and_late_spans() -> None:
    """The root may come last; what comes after the record is counted as late, and is no second record."""
    clock = Clock()
    source = a_source(clock)
    spans = openinference()
    for span in reversed(spans[1:-1]):
        await stored(source, [span])
        clock.now += GRACE
        assert settled(source) == []
    await stored(source, [spans[0]])
    clock.now += GRACE
    assert len(records(settled(source)[0])) == 1
    late = await stored(source, [spans[-1]])
    again = await stored(source, spans)
    assert tallies_of([late]) == {("spans", "traces"): 1, ("spans_left_out", "late"): 1}
    assert (late.hold, again.hold) == ([], [])
    clock.now += WAIT
    assert settled(source) == []


async def test_spans_that_go_on_arriving_are_waited_for() -> None:
    """After the root each further span extends the grace, with restarts in between; but not for ever."""
    source = a_source(clock := Clock())
    spans = openinference()
    held: list[Part] = []
    for span in spans:
        held += (await stored(source, [span])).hold
        clock.now += 0.9 * GRACE
        assert settled(source) == []
        source = a_source(clock)
        source.restore(held)
    clock.now += GRACE
    assert len(records(settled(source)[0])) == 1
    source = a_source(clock)
    await stored(source, spans)
    seconds = 0.0
    while True:
        batch = await stored(source, [a_span(f"more {seconds}", "chain")])
        if batch.lines:
            break
        clock.now += 0.9 * GRACE
        seconds += 0.9 * GRACE
    assert 11 * GRACE < seconds <= 13 * GRACE


async def test_spans_that_are_sent_again_are_held_once() -> None:
    """A client without reply sends its request again, or a part of it: only new spans are held."""
    source = a_source(clock := Clock())
    spans = openinference()
    await stored(source, spans[:4])
    assert (await stored(source, spans[:4])).hold == []
    (part,) = (await stored(source, spans)).hold
    assert part.name == min(span.span_id for span in spans[4:])
    clock.now += GRACE
    assert len(records(settled(source)[0])) == 1


async def test_a_restart_takes_back_what_was_held() -> None:
    """A new source with the held parts goes on; a damaged part is counted, and does not stop the others."""
    source = a_source()
    spans = openinference()
    held = [*(await stored(source, spans[3:])).hold, *(await stored(source, spans[:3])).hold]
    clock = Clock(AT + 1000)
    after = a_source(clock)
    after.resume({})
    after.restore([*held, Part(TRACE, "x", b'{"spans":[[1]]}', AT), Part("y", "y", b"{", AT)])
    assert tallies_of(settled(after)) == {("spans_left_out", "damaged"): 2}
    clock.now += GRACE
    (batch,) = settled(after)
    assert ([one["answer"] for one in records(batch)], list(batch.release)) == ([ANSWER], [TRACE])


async def test_a_trace_without_root_is_given_up() -> None:
    """After the wait, its spans are released and counted; contexts and answer together are a record all the same."""
    source = a_source(clock := Clock())
    spans = openinference()
    other = [span._replace(trace_id="ab" * 16) for span in spans[1:]]
    await stored(source, spans[1:3])
    await stored(source, other)
    clock.now += WAIT
    (batch,) = settled(source)
    assert [one["metadata"]["root"] for one in records(batch)] == ["missing"]
    assert sorted(batch.release) == sorted([TRACE, "ab" * 16])
    assert tallies_of([batch]) == {
        ("spans_left_out", "no_root"): 2,
        ("traces", "incomplete"): 1,
        ("traces", "assembled"): 1,
    }


async def test_a_later_request_of_the_same_trace_is_a_record_of_its_own() -> None:
    """A trace of a whole conversation: the second request has another local root and comes after the first record."""
    source = a_source(clock := Clock())
    spans = openinference()
    await stored(source, spans)
    clock.now += GRACE
    settled(source)
    second = [
        a_span("second", "elsewhere", remote=True, attributes=spans[0].attributes),
        *(span._replace(span_id=f"{number:016x}", parent_id=a_span("second").span_id)
          for number, span in enumerate(spans[1:5], 1)),
    ]  # fmt: skip
    await stored(source, second)
    clock.now += GRACE
    (batch,) = settled(source)
    assert [one["id"] for one in records(batch)] == [f"{TRACE}-{second[0].span_id}"]


async def test_refused_requests_are_rejections_with_advice() -> None:
    """A trace without texts is rejected with its switch, named with its trace id, and counted by instrumentation."""
    source = a_source(clock := Clock())
    await stored(source, [a_span("m", attributes={OI: "LLM", "llm.model_name": "m"})])
    clock.now += GRACE
    (batch,) = settled(source)
    (rejection,) = batch.rejections
    assert (rejection.reason, rejection.file) == (RejectReason.NO_CONTENT, f"trace {TRACE}")
    assert "OPENINFERENCE_HIDE" in rejection.detail
    assert tallies_of([batch]) == {("traces", "refused"): 1, ("silent", "openinference"): 1}
    assert batch.tallies[Tally.SILENT, ("traces", "openinference")] == 1


async def test_a_full_queue_asks_to_come_back() -> None:
    """Requests that cannot be taken in are answered with 429 and a time; one alone is always taken in."""
    source = a_source(queue_bytes=1)
    first = await sent(source, openinference())
    reply = await source.handlers[PATH](a_request(as_json(openinference()), JSON))
    assert (reply.status, reply.headers["Retry-After"]) == (429, "5")
    assert source.lag().size > 0
    assert (source.lag().seconds or 0.0) >= 0.0
    settled(source)
    assert (await first).status == 200
    assert source.lag() == module.Lag(0, 0.0)


async def test_calls_over_grpc_share_the_queue() -> None:
    """Both are handled alike: a full queue is full for both. Fewer large messages than small ones come at once."""
    source = a_source(queue_bytes=1, grpc={})
    assert source.handlers[METHOD] is source.handlers[PATH]
    listeners = [
        Options(name="traces", grpc={"listen": "[::]:4317"}, max_body_bytes=size).grpc_listener
        for size in ("1KiB", "20MiB", "1GiB")
    ]
    assert [(one.address, one.receiving) for one in listeners if one] == [("[::]:4317", n) for n in (32, 6, 2)]
    assert Options(name="traces").grpc_listener is None


async def test_clients_do_not_wait_for_ever() -> None:
    """Spans that are not stored in time are answered with 503; they stay in the queue and are stored later."""
    source = a_source()
    handler = OtlpHandler(source._queue, ByteBudget(1), 1 << 20, deadline_seconds=0.0)
    reply = await handler(a_request(as_protobuf(openinference())))
    assert (reply.status, reply.headers["Retry-After"]) == (503, "5")
    (batch,) = settled(source)
    assert len(batch.hold) == 1


async def test_closing_answers_those_who_wait() -> None:
    """Requests in the queue and in a batch that is not committed are told to come back, later ones too."""
    source = build(Options.model_validate({"name": "traces", "resolve": {"url": "http://127.0.0.1:9/{id}"}}))
    tasks = [await sent(source, openinference()), await sent(source, openinference())]
    assert source.read() is not None
    tasks.append(await sent(source, openinference()))
    source.close()
    assert [(await task).status for task in tasks] == [503, 503, 503]
    assert (await source.handlers[PATH](a_request(as_protobuf(openinference())))).status == 503


async def test_memory_is_bounded() -> None:
    """Above the limit the oldest traces wait no longer: complete or not, they are assembled and released."""
    source = a_source(waiting_bytes=6_000)
    for number in range(1, 6):
        await stored(source, [span._replace(trace_id=f"{number:032x}") for span in openinference()])
    (batch,) = settled(source) or [None]
    assert batch is None
    assert source._traces.size <= 6_000
    assert len(source._traces) < 5


def test_a_trace_is_bounded() -> None:
    """Spans beyond the limits of one trace are left out, and the trace is refused as incomplete."""
    traces = WaitingTraces(GRACE, WAIT, 1 << 30, 6_000)
    whole = [piece_of(TRACE, [span]) for span in openinference()]
    assert [traces.add(one, AT)[0] is None for one in whole].count(True) > 0
    (trace,) = traces.complete(AT + WAIT)
    assert trace.too_large
    source = a_source()
    result = source._assembled(trace)
    assert ([one.reason for one in result.refused], result.records) == ([RejectReason.TRUNCATED], [])
    traces = WaitingTraces(GRACE, WAIT, 1 << 30, 1 << 30)
    traces.add(piece_of(TRACE, [a_span(str(number)) for number in range(MAX_SPANS)]), AT)
    assert traces.add(piece_of(TRACE, [a_span("more")]), AT) == (None, 0)


async def test_texts_of_other_spans_are_not_stored() -> None:
    """Of a query of a database nothing waits but its place, and attributes that become fields of a record."""
    source = a_source(clock := Clock(), metadata={"tenant": "tenant.id"})
    other = a_span("SELECT", "chain", 5, attributes={"db.query.text": "secret", "tenant.id": "t7"},
                   events=[("e", {"secret": "secret"})])  # fmt: skip
    batch = await stored(source, [*openinference(), other])
    assert all(b"secret" not in part.payload for part in batch.hold)
    clock.now += GRACE
    assert records(settled(source)[0])[0]["metadata"]["tenant"] == "t7"


async def test_bodies_that_are_received_at_once_are_bounded() -> None:
    """While one request is received, another beyond the bytes of the queue is refused; then there is room."""
    source = a_source(queue_bytes=4_000)
    request, arrived = a_request(as_protobuf(openinference())), asyncio.Event()
    chunks = request.chunks

    async def slow() -> AsyncIterator[bytes]:
        async for chunk in chunks:
            yield chunk
        await arrived.wait()

    first = asyncio.ensure_future(source.handlers[PATH](replace(request, chunks=slow())))
    await asyncio.sleep(0)
    reply = await source.handlers[PATH](a_request(b" " * 3_000, JSON))
    assert (reply.status, "received at once" in reply.body.decode()) == (429, True)
    arrived.set()
    await source.wake.wait()
    settled(source)
    assert (await first).status == 200
    assert (await source.handlers[PATH](a_request(b"{}" + b" " * 3_000, JSON))).status == 200
