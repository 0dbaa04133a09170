"""What is sent to the real daemon over HTTP: hostile bodies harm nothing; answers and feedback of the helper arrive."""

import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest
from functional.daemon import JUDGED, RagwatchProcess, asked, record, write_config
from support.patience import DEADLINE
from support.spans import JSON, PROTOBUF

from ragwatch.emit import AnswerLog

SOURCES = "[{kind: push, name: app}, {kind: otlp, name: traces}]"
MIB = 1 << 20
MAX_RISE = 50 * MIB
Attack = tuple[str, bytes, dict[str, str], set[int]]
PACKED, LINES = {"Content-Encoding": "gzip"}, {"Content-Type": "application/x-ndjson"}


def post(address: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
    """Status and body of the reply to a request."""
    return asked(address, body, {"Content-Type": JSON, **headers})[:2]


def bomb() -> bytes:
    """A few kilobytes that are 200 MiB once they are unpacked."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    block = bytes(MIB)
    return b"".join([packer.compress(b"{"), *(packer.compress(block) for _ in range(200)), packer.flush()])


def of_push() -> Iterator[Attack]:
    """Bodies that try to exhaust memory or stack, with the statuses that are right."""
    yield "bomb", bomb(), PACKED, {413}
    yield "members", gzip.compress(b"[" + bytes(1 << 16)) * 3200, PACKED, {413}
    yield "large", b"{" + b" " * (9 * MIB), {}, {413}
    yield "deep", b"[" * MIB, {}, {400, 413}
    yield "deep object", b'{"a":' * MIB, {}, {400, 413}
    yield "lists", b"[" + b"[]," * (2 * MIB) + b"1]", {}, {413}
    yield "lists in a record", b'{"a":[' + b"[]," * (2 * MIB) + b"1]}", {}, {400}
    yield "NaN", b'{"question": NaN, "contexts": [], "answer": Infinity}', {}, {400}
    yield "digits", b'{"id": ' + b"9" * MIB + b"}", {}, {400}
    yield "empty lines", b"\n" * (8 * MIB), LINES, {400}
    yield "small lines", b"{}\n" * (2 * MIB), LINES, {413}
    yield "garbage", bytes(range(256)) * 4096, {}, {400}
    yield "type", b"{}", {"Content-Type": "text/html"}, {415}


def of_traces() -> Iterator[Attack]:
    """The same for spans; an empty message is none."""
    yield "bomb", bomb(), PACKED, {413}
    yield "large", b" " * (30 * MIB), {}, {413}
    yield "garbage", b"garbage", {"Content-Type": PROTOBUF}, {400}
    yield "deep", b'{"resourceSpans":' + b"[" * 1_000_000, {}, {400}
    yield "type", b"{}", {"Content-Type": "text/plain"}, {415}
    yield "nothing", b"", {"Content-Type": PROTOBUF}, {200}


def take_little_memory(ragwatch: RagwatchProcess, path: str, attacks: Iterable[Attack]) -> None:
    """Each has the right status and a word to it, memory rises by less than 50 MiB, and the daemon goes on."""
    ragwatch.get("/metrics")
    Path(f"/proc/{ragwatch.process.pid}/clear_refs").write_text("5")  # the peak begins here
    before = ragwatch.memory()
    for name, body, headers, statuses in attacks:
        status, told = post(ragwatch.address + path, body, headers)
        assert (status in statuses, bool(told)) == (True, status != 200), (name, status)
        assert ragwatch.memory() - before < MAX_RISE, name
    print(f"peak rises by {(ragwatch.memory() - before) / MIB:.1f} MiB")
    assert ragwatch.get("/-/healthy")[0] == 200


@pytest.mark.costly
def test_x7_x8_hostile_bodies_take_little_memory(tmp_path: Path) -> None:
    """In records that are pushed, and in spans."""
    with RagwatchProcess(write_config(tmp_path, sources=SOURCES)).wait_until_serving() as ragwatch:
        assert post(f"{ragwatch.address}/v1/samples", record(1).encode(), {})[0] == 202
        take_little_memory(ragwatch, "/v1/samples", of_push())
        take_little_memory(ragwatch, "/v1/traces", of_traces())
        assert post(f"{ragwatch.address}/v1/samples", record(2).encode(), {})[0] == 202
        ragwatch.wait_for(JUDGED, 2)


def test_the_helper_and_feedback(tmp_path: Path) -> None:
    """`ragwatch.emit` sends answers and what users say of them; both reach the figures."""
    with RagwatchProcess(write_config(tmp_path, sources=SOURCES)).wait_until_serving() as ragwatch:
        log = AnswerLog(f"{ragwatch.address}/v1/samples")
        ids = [
            log.answer("Where is the mill?", ["The old mill stands by the river."], "By the river.", route="search")
            for _ in range(3)
        ]
        log.feedback(ids[0], "up")
        log.feedback(ids[1], "down")
        assert log.flush(DEADLINE)
        series = ragwatch.wait_for('ragwatch_user_score_samples{route="search",window="15m"}', 2)
        assert (log.failed, log.dropped) == (0, 0)
        assert series['ragwatch_user_score_ratio{route="search",window="15m"}'] == 0.5
        series = ragwatch.wait_for(JUDGED, 3)
        assert series['ragwatch_feedback_total{outcome="joined",source="app"}'] == 2
