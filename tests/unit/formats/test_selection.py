"""Mixed logs: which lines are records of answers, which are skipped and why; `records`: several answers in a line.

Every line of the table of `records` in docs/logs.md gives as many answers as it says, and its lines of Python work.
"""

import csv
import json
import re
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.errors import ConfigError, FormatError
from ragwatch.formats.log_reader import LogReader, RecordRules
from ragwatch.formats.record import parse
from ragwatch.formats.selection import expanded, line_parser
from ragwatch.model.sample import RejectReason, SkipReason
from ragwatch.sources.tail.options import Options

STAMP = r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:,]{8,12} [A-Z]{4,8} "


@pytest.mark.parametrize(
    "line",
    [
        b'2026-01-01 12:00:00,123 INFO {"a": {"b": 1}}',
        b'<14>1 host app[7]: {svc} { "a": {"b": 1}}\r',
        b'\x1b[36mweb_1  |\x1b[0m {"a": {"b": 1}}',
        b'{"a": {"b": 1}}',
    ],
)
def test_text_before_the_object_is_passed_over_on_request(line: bytes) -> None:
    """The object begins at the first brace that a key follows; a line without any text before it is read as ever."""
    assert line_parser(prefix="auto")(line) == ({"a": {"b": 1}}, False)


@pytest.mark.parametrize(
    "line",
    [b'INFO {"a": 1} after', b'INFO {"a": 1', b'INFO {"a": {"b": 1}', b'tail": {"b": 1}}', b"{torn", b"\x00\x00"],
)
@pytest.mark.parametrize("where", [None, "a"])
def test_a_torn_object_is_a_loss(line: bytes, where: str | None) -> None:
    """Neither an inner object of a torn one, nor one with text behind it, passes for the record; it is not skipped."""
    with pytest.raises(FormatError) as caught:
        line_parser(where, "auto")(line)
    assert caught.value.reason in {RejectReason.TORN_JSON, RejectReason.BINARY}


def test_text_before_the_object_is_refused_otherwise() -> None:
    """Users' text at the end of another line must not pass for a record where nobody asked for it."""
    line = b'WARN bad input: {"question": "q", "contexts": ["c"], "answer": "c"}'
    with pytest.raises(FormatError):
        line_parser()(line)
    assert line_parser(where="answer")(line) is SkipReason.NO_JSON


@pytest.mark.parametrize(
    "line",
    [b"", b"Traceback (most recent call last):", b'  File "app.py", line 3, in ask', b"[1, 2]", b"null", b"{}"[:0]],
)
@pytest.mark.parametrize("options", [{"where": "a"}, {"prefix": "auto"}, {"prefix": STAMP}])
def test_text_without_an_object_is_skipped(line: bytes, options: dict[str, Any]) -> None:
    """A traceback between the records of a mixed log is no loss of a record."""
    assert line_parser(**options)(line) is SkipReason.NO_JSON


def test_a_pattern_is_stricter_than_auto() -> None:
    """A line that the pattern does not match is no record, whatever its text ends with; one without prefix is."""
    read = line_parser(prefix=STAMP)
    assert read('2026-01-01 12:00:00,1 INFO {"a": "é"}'.encode()) == ({"a": "é"}, False)
    assert read(b' {"a": 1}') == ({"a": 1}, False)
    assert read(b'user said: {"a": 1}') is SkipReason.NO_JSON
    with pytest.raises(FormatError):
        read(b"2026-01-01 12:00:00,1 INFO started")
    assert line_parser(prefix="[^{]{1,9}")(b"\xff\xe9: {}") == ({}, False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prefix": "("}, "prefix: is not a regular expression"),
        ({"prefix": ".* "}, "prefix: has a repetition without a bound"),
        ({"prefix": "a{0,1}"}, "prefix: matches texts of no character"),
        ({"where": "a =="}, "where: "),
        ({"where": "lower(a)"}, "where: unknown function 'lower' at position 0"),
        ({"records": "data["}, "records: the expression ends too early or cannot be read at position"),
        ({"timezone": "Berlin"}, "timezone: 'Berlin' is not in the time zone database"),
    ],
)
def test_invalid_options_are_named(options: dict[str, Any], message: str) -> None:
    """What cannot work is refused when the configuration is read."""
    with pytest.raises(ConfigError) as caught:
        LogReader(RecordRules(**options))
    assert str(caught.value).startswith(message)


def test_feedback_is_always_read() -> None:
    """What a user says of an answer is no answer, and no other line either."""
    line = b'{"feedback_for": "r1", "thumbs": "up"}'
    assert line_parser(where="event == 'answer'")(line) == ({"feedback_for": "r1", "thumbs": "up"}, False)
    assert line_parser(where="event == 'answer'")(b'{"feedback_for": null, "thumbs": "up"}') is SkipReason.WHERE


def test_a_condition_selects() -> None:
    """True takes the record; false and failing skip it, under different reasons."""
    read = line_parser(where="contains(path, 'ask') && status < `500`")
    assert read(b'{"path": "/ask", "status": 200}') == ({"path": "/ask", "status": 200}, False)
    assert read(b'{"path": "/healthz", "status": 200}') is SkipReason.WHERE
    assert read(b'{"path": "/ask", "status": 502}') is SkipReason.WHERE
    assert read(b'{"status": 200}') is SkipReason.WHERE_FAILED


@given(st.binary(max_size=60), st.sampled_from([None, "a", "contains(a, 'b')"]), st.sampled_from([None, "auto", STAMP]))
def test_any_bytes(line: bytes, where: str | None, prefix: str | None) -> None:
    """Any bytes are a record, a reason to skip, or a FormatError; without options it is what `parse` says."""
    outcomes = []
    for read in (line_parser(where, prefix), line_parser(), parse):
        try:
            outcomes.append(read(line))
        except FormatError as error:
            outcomes.append(RejectReason(error.reason))
    assert isinstance(outcomes[0], tuple | SkipReason | RejectReason)
    assert outcomes[1] == outcomes[2]


ROWS = [{"id": f"r{n}", "question": "q", "contexts": ["A passage of text."], "answer": f"a{n}"} for n in range(3)]


@pytest.mark.parametrize(
    ("expression", "document"),
    [
        ("[]", ROWS),
        ("data", [{"data": ROWS}, {"data": []}]),
        ("data.result[].values[][1]", {"data": {"result": [{"values": [["17", json.dumps(row)] for row in ROWS]}]}}),
    ],
)
def test_every_record_of_a_document_is_an_answer(expression: str, document: Any) -> None:
    """Arrays, several pages of an API, and responses of Loki."""
    reader = LogReader(RecordRules(records=expression))
    lines = [line for _, line in expanded([(1, json.dumps(document).encode())], reader.expand)]
    samples = [reader.read(reader.parse(line)[0], "") for line in lines]  # type: ignore[arg-type,index]
    assert [sample.id for sample in samples] == ["r0", "r1", "r2"]


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
    mapping = {"id": "message.id", "contexts": "between[?role=='tool'].content"}
    mapping |= {part: part for part in ("question", "answer", "history")}
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


LOGS_PAGE = (Path(__file__).parents[3] / "docs" / "logs.md").read_text(encoding="utf-8")
LINES = re.findall(r"(?m)^\| `([{\[].*)`(?: \([^|]*\))? \| `(\{.*\})` \| (\d+) \|$", LOGS_PAGE)
ANSWERS = [
    {"question": f"q{n}", "contexts": json.dumps([f"Text {n}, with a comma."]), "answer": f"a{n}"} for n in range(3)
]


def test_the_table_was_read() -> None:
    """A change of its form must not leave it untested."""
    assert len(LINES) == 8


@pytest.mark.parametrize(("line", "keys", "number"), LINES)
def test_every_line_gives_its_answers(line: str, keys: str, number: str) -> None:
    """With the keys beside it."""
    options = Options.model_validate({"name": "app", "path": "/log", **yaml.safe_load(keys.replace(r"\|", "|"))})
    reader = LogReader(options.rules)
    found = [record for _, record in expanded([(1, line.encode())], reader.expand)]
    samples = [reader.read(reader.parse(record)[0], "1") for record in found]  # type: ignore[arg-type,index]
    assert [sample.answer for sample in samples] == ["a", "b"][: int(number)]
    assert [context.text for context in samples[0].contexts] == ["A text."]


def test_logs_that_are_no_json(tmp_path: Path) -> None:
    """The lines make logs of them that can be read."""
    with (tmp_path / "log.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ("question", "contexts", "answer"))
        writer.writeheader()
        writer.writerows(ANSWERS)
    with closing(sqlite3.connect(tmp_path / "app.db")) as database, database:
        database.execute("CREATE TABLE answers (question LOGS_PAGE, contexts LOGS_PAGE, answer LOGS_PAGE)")
        database.executemany("INSERT INTO answers VALUES (:question, :contexts, :answer)", ANSWERS)
    fields = (" ".join(f"{key}={json.dumps(value)}" for key, value in row.items()) for row in ANSWERS)
    (tmp_path / "app.logfmt").write_text("".join(f"level=info {line}\n" for line in fields))
    (tmp_path / "app.log").write_text("".join(f"12:00:00,123 INFO {row!r}\n" for row in ANSWERS))
    lines = re.findall(r"(?m)^    (python3 -c .*)$", LOGS_PAGE)
    assert len(lines) == 4
    for line in lines:
        subprocess.run(["sh", "-c", line], check=True, cwd=tmp_path)
        reader = LogReader(Options(name="app", path="/log").rules)
        samples = [reader.read(json.loads(row), "1") for row in (tmp_path / "log.jsonl").read_text().splitlines()]
        assert [sample.answer for sample in samples] == ["a0", "a1", "a2"]
        assert [context.text for context in samples[1].contexts] == ["Text 1, with a comma."]
