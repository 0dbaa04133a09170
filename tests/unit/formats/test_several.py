"""`records`: the answers in a line or a document that holds several, each of them once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ragwatch.core.sample import SkipReason
from ragwatch.errors import ConfigError
from ragwatch.formats.log_reader import LogReader, RecordRules
from ragwatch.formats.selection import expanded, record_finder

ROWS = [{"id": f"r{n}", "question": "q", "contexts": ["A passage of text."], "answer": f"a{n}"} for n in range(3)]
OTLP = "resourceLogs[].scopeLogs[].logRecords[].body.stringValue"


def otlp_logs(*rows: Any) -> dict[str, Any]:
    """A line of the OTLP file exporter with some log records."""
    records = [{"severityText": "INFO", "body": {"stringValue": json.dumps(row)}} for row in rows]
    return {"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}


@pytest.mark.parametrize(
    ("expression", "document", "number"),
    [
        ("data", {"data": ROWS, "has_more": True}, 3),
        ("@", ROWS, 3),
        ("[]", ROWS, 3),
        ("data", [{"data": ROWS}, {"data": []}], 3),
        ("line", {"labels": {}, "line": json.dumps(ROWS[0])}, 1),
        (OTLP, otlp_logs(*ROWS), 3),
        ("data.result[].values[][1]", {"data": {"result": [{"values": [["17", json.dumps(row)] for row in ROWS]}]}}, 3),
    ],
)
def test_every_record_of_a_document_is_an_answer(expression: str, document: Any, number: int) -> None:
    """Pages of an API, arrays, Loki lines and responses, and OTLP log records."""
    reader = LogReader(RecordRules(records=expression))
    lines = [line for _, line in expanded([(1, json.dumps(document).encode())], reader.expand)]
    samples = [reader.read(reader.parse(line)[0], "") for line in lines]  # type: ignore[arg-type,index]
    assert [sample.id for sample in samples] == [f"r{n}" for n in range(number)]


def test_where_is_about_the_records() -> None:
    """`prefix` is about the line, `where` about each record in it."""
    reader = LogReader(RecordRules(records="items", where="kind == 'answer'", prefix="auto"))
    line = b'INFO {"items": [{"kind": "answer", "answer": "a"}, {"kind": "health"}]}'
    parsed = [reader.parse(one) for _, one in expanded([(1, line)], reader.expand)]  # type: ignore[arg-type]
    assert parsed == [({"kind": "answer", "answer": "a"}, False), SkipReason.WHERE]


def test_what_holds_no_record_is_said() -> None:
    """A line without records is skipped; one that is no JSON, and an element that is no object, are rejected."""
    reader = LogReader(RecordRules(records="data"))
    lines = [(1, b'{"data": []}'), (2, b'{"event": "start"}'), (3, b'{"data": [{"torn'), (4, b'{"data": [7]}')]
    found = list(expanded(lines, reader.expand))
    assert found == [(1, SkipReason.NO_RECORDS), (2, SkipReason.NO_RECORDS), (3, lines[2][1]), (4, b"7")]


def test_a_wrong_expression_stops_the_start() -> None:
    """As that of `where` does."""
    with pytest.raises(ConfigError, match=r"records: .*position"):
        record_finder("data[")


def test_a_conversation_has_one_record_for_each_answer() -> None:
    """With the question before it, what came between, and the turns before; a question without an answer has none."""
    chat = [
        {"role": "system", "content": "You are a helpful bot."},
        {"role": "user", "content": "When was the mill built?"},
        {"role": "assistant", "content": "Let me look."},
        {"role": "tool", "content": "The mill was built in 1820."},
        {"id": "m4", "role": "assistant", "content": "In 1820."},
        {"role": "user", "content": "By whom?"},
        {"id": "m6", "role": "assistant", "content": "By the miller."},
        {"role": "user", "content": "Thanks"},
    ]
    mapping = {
        "id": "message.id",
        "question": "question",
        "answer": "answer",
        "contexts": "between[?role=='tool'].content",
        "history": "history",
    }
    reader = LogReader(RecordRules("custom", mapping, records="answers(messages)"))
    lines = [line for _, line in expanded([(1, json.dumps({"messages": chat}).encode())], reader.expand)]
    first, second = (reader.read(line, "") for line in lines)  # type: ignore[arg-type]
    assert (first.id, first.question, first.answer) == ("m4", "When was the mill built?", "In 1820.")
    assert [context.text for context in first.contexts] == ["The mill was built in 1820."]
    assert (second.id, second.question, second.contexts) == ("m6", "By whom?", ())
    assert [turn.text for turn in second.history][-1] == "In 1820."
    assert reader.expand is not None
    assert reader.expand(b'{"messages": [{"role": "assistant", "content": "Hello."}]}') == []


def test_times_without_an_offset_are_those_of_the_time_zone() -> None:
    """Others keep theirs; of feedback, too, and of what a mapping extracts."""
    reader = LogReader(RecordRules(timezone="Europe/Berlin"))
    mapped = LogReader(
        RecordRules("custom", {"answer": "a", "contexts": "c", "at": "join(' ', [d, t])"}, timezone="Asia/Tokyo")
    )
    utc = LogReader(RecordRules())
    row = {"question": "q", "contexts": ["A passage of text."], "answer": "a"}
    for local, same in (
        ("2026-05-01T12:00:00", "2026-05-01T10:00:00Z"),
        ("2026-01-01 12:00:00,5", "2026-01-01T11:00:00.5Z"),
    ):
        assert reader.read({**row, "ts": local}, "1").at == utc.read({**row, "ts": same}, "1").at
        assert reader.read_without_wrong_fields({**row, "ts": same}, "1")[0].at == utc.read({**row, "ts": same}, "1").at
    taken = mapped.read({"a": "a", "c": ["A passage."], "d": "2026-05-01", "t": "12:00:00"}, "1")
    assert taken.at == utc.read({**row, "at": "2026-05-01T03:00:00Z"}, "1").at
    parsed = reader.parse(b'{"feedback_for": "r1", "thumbs": "up", "at": "2026-05-01T12:00:00"}')
    assert parsed == ({"feedback_for": "r1", "thumbs": "up", "at": 1_777_629_600.0}, False)
    with pytest.raises(ConfigError, match="timezone: 'Berlin' is not in the time zone database"):
        LogReader(RecordRules(timezone="Berlin"))
