"""Source kind `join`: parts of a request become one record, whatever their order, files and batches, across kills."""

import itertools
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.draws import draws
from support.joined_parts import Reading, options, write
from support.kit import AT, Clock, ListSource, a_batch

from ragwatch.config import parse
from ragwatch.errors import ConfigError, SourceError
from ragwatch.ports import Batch, BatchReport, Part, Source
from ragwatch.ports.capabilities import ReceivesRequests
from ragwatch.sources.join import JoinSource
from ragwatch.statistics.snapshot import Lag
from ragwatch.statistics.tally import Tally

ASKED = {"request_id": "r1", "ts": 1_767_225_600, "event": "ask", "question": "Where?", "rag": {"contexts": 2}}
ANSWERED = {
    "request_id": "r1",
    "ts": 1_767_225_603,
    "event": "answer",
    "answer": "By the river.",
    "rag": {"model": "m"},
}
RETRIEVED = {"request_id": "r1", "ts": 1_767_225_601, "event": "hits", "contexts": ["By the river."], "answer": None}
PARTS = (ASKED, RETRIEVED, ANSWERED)
ALMOST_TOO_DEEP = (
    '{"request_id": "r8", "answer": "a", "question": "", "contexts": [], "a": ' + '{"a": ' * 253 + "1" + "}" * 254
)


def test_parts_become_one_record(tmp_path: Path) -> None:
    """Fields of all parts; of different values the later one; the id of the request; and the parts themselves."""
    reading = Reading(tmp_path)
    write(tmp_path, "asked", {**ASKED, "contexts": ["By the river."]})
    assert reading.read() == []
    write(tmp_path, "answered", ANSWERED)
    (record,) = reading.read()
    assert (record["id"], record["event"], record["ts"]) == ("r1", "answer", ANSWERED["ts"])
    assert record["rag"] == {"contexts": 2, "model": "m"}
    assert [part["event"] for part in record["parts"]] == ["ask", "answer"]
    assert (reading.outcomes(), reading.stored) == ({"joined": 2}, {})


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_record_does_not_depend_on_the_order_of_arrival(tmp_path: Path, order: Sequence[int]) -> None:
    """All orders of three parts in two files give the same record, killed after each part."""
    reading = Reading(tmp_path, parts=3)
    for place in order:
        write(tmp_path, "answered" if PARTS[place] is ANSWERED else "asked", PARTS[place])
        reading.read()
        reading.kill()
    (record,) = reading.records
    assert [part["event"] for part in record["parts"]] == ["ask", "hits", "answer"]
    assert (record["event"], record["answer"], record["contexts"]) == ("answer", "By the river.", ["By the river."])
    assert reading.stored == {}


@settings(max_examples=draws(30))
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 2), st.booleans()), max_size=20))
def test_every_part_is_counted_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, bool]]
) -> None:
    """Any parts in any order, with kills between them: no request is joined twice, and parts are conserved."""
    folder = tmp_path_factory.mktemp("join")
    reading = Reading(folder)
    for group, place, kill in steps:
        part = {**(ASKED | {"contexts": []}, RETRIEVED, ANSWERED)[place], "request_id": group}
        write(folder, "answered" if place else "asked", part)
        reading.read()
        if kill:
            reading.kill()
    assert sum(reading.outcomes().values()) + len(reading.stored) == len(steps)
    reading.clock.now = AT + 301
    reading.read()
    assert (sum(reading.outcomes().values()), reading.stored) == (len(steps), {})


def test_what_arrives_late_or_again_is_counted(tmp_path: Path) -> None:
    """A part of a request that is done, a part that is sent again before and after, and one that waits in vain."""
    reading = Reading(tmp_path)
    asked = {**ASKED, "contexts": []}
    write(tmp_path, "asked", asked, asked, {**asked, "request_id": "r2"})
    write(tmp_path, "answered", ANSWERED, ANSWERED, {**ANSWERED, "answer": "Elsewhere."})
    assert len(reading.read()) == 1
    assert reading.outcomes() == {"joined": 2, "repeated": 2, "piece": 1}
    reading.clock.now = AT + 299
    reading.read()
    assert len(reading.stored) == 1
    reading.clock.now = AT + 300
    assert (reading.read(), reading.stored, reading.outcomes()["orphaned"]) == ([], {}, 1)
    write(tmp_path, "answered", {**ANSWERED, "request_id": "r2"})
    assert (reading.read(), reading.outcomes()["late"]) == ([], 1)
    reading.clock.now = AT + 10_000
    write(tmp_path, "answered", {**ANSWERED, "request_id": "r2"}, {**ANSWERED, "request_id": "r9"})
    write(tmp_path, "asked", {**asked, "request_id": "r2"})
    assert [record["id"] for record in reading.read()] == ["r2"]  # an id that is used again, long after


@pytest.mark.parametrize("finished", [False, True])
def test_what_can_be_read_is_joined_at_the_end_of_its_time(tmp_path: Path, finished: bool) -> None:
    """A request that lacks a part is not lost if it can be read without it; or at once, if nothing more is written."""
    reading = Reading(tmp_path, complete="`false`")
    write(tmp_path, "asked", {**ASKED, "contexts": []}, {**ASKED, "request_id": "r2"})
    write(tmp_path, "answered", ANSWERED)
    assert reading.read() == []
    reading.kill()
    if finished:
        reading.source.finish()
    else:
        reading.clock.now = AT + 300
    assert [record["id"] for record in reading.read()] == ["r1"]
    assert (reading.outcomes(), reading.stored) == ({"joined": 2, "orphaned": 1}, {})


@pytest.mark.parametrize("changes", [{}, {"complete": "`false`"}])
def test_what_cannot_be_encoded_is_counted(tmp_path: Path, changes: dict[str, Any]) -> None:
    """Almost too deep by itself, too deep as a part of a record: rejected when it is joined, orphaned if it waited."""
    reading = Reading(tmp_path, **changes)
    write(tmp_path, "asked", ALMOST_TOO_DEEP)
    assert reading.read() == []
    reading.clock.now = AT + 301
    assert (reading.read(), reading.outcomes()) == ([], {"orphaned": 1} if changes else {})
    assert reading.rejected == ([] if changes else ["too_deep "])


def test_a_backlog_orphans_nothing(tmp_path: Path) -> None:
    """Time counts only when every source is read to its end."""
    reading = Reading(tmp_path)
    write(tmp_path, "asked", {**ASKED, "contexts": []})
    reading.read()
    write(tmp_path, "answered", *[{"request_id": f"x{n}", "answer": "a"} for n in range(3)], ANSWERED)
    reading.clock.now = AT + 10_000
    assert len(reading.read()) == 1


@pytest.mark.parametrize("limit", [{"max_waiting": 2}, {"max_bytes": 120}])
def test_what_waits_is_bounded(tmp_path: Path, limit: dict[str, int]) -> None:
    """Beyond either limit the oldest request is dropped and counted."""
    reading = Reading(tmp_path, **limit)
    write(tmp_path, "asked", *[{"request_id": f"r{n}", "question": "x" * 20} for n in range(5)])
    reading.read()
    assert ({group for group, _ in reading.stored}, reading.outcomes()) == ({"r3", "r4"}, {"dropped": 3})


def test_lines_that_are_no_part(tmp_path: Path) -> None:
    """Without an id, torn, skipped by `where` of their source, too deep to be joined: each has its reason."""
    files = [{"kind": "tail", "name": "asked", "path": f"{tmp_path}/asked.jsonl", "where": "event != 'health'"}]
    reading = Reading(tmp_path, of=files)
    deep = '{"request_id": "r7", "a": ' + '{"a": ' * 260 + "1" + "}" * 261
    write(tmp_path, "asked", {"event": "x"}, '{"request_id', {"event": "health"}, {"request_id": 1.5}, deep)
    assert reading.read() == []
    assert sorted(reading.rejected) == ["missing_field by", "too_deep ", "torn_json ", "wrong_type by"]
    assert reading.tallies == {(Tally.SKIPPED, ("app", "where")): 1}


def test_feedback_is_passed_on(tmp_path: Path) -> None:
    """It names its answer itself, and waits for nothing; where its column is empty, the row is a part."""
    reading = Reading(tmp_path)
    write(tmp_path, "answered", {"feedback_for": "r1", "thumbs": "up"}, {**ANSWERED, "feedback_for": None})
    assert (reading.read(), len(reading.stored)) == ([{"feedback_for": "r1", "thumbs": "up"}], 1)


@pytest.mark.parametrize(
    ("changes", "records"),
    [({}, 1), ({"parts": 2}, 0), ({"complete": "rated"}, 0), ({"complete": "contains(rated, 'a')"}, 0),
     ({"complete": "answer"}, 1)],
)  # fmt: skip
def test_a_whole_record_waits_for_nothing(tmp_path: Path, changes: dict[str, Any], records: int) -> None:
    """A record that can be read as it is needs no other part; a condition or a number says otherwise."""
    reading = Reading(tmp_path, **changes)
    write(tmp_path, "asked", {"request_id": "r1", "question": "q", "contexts": [], "answer": "a"})
    assert len(reading.read()) == records


def test_a_mapping_reads_the_joined_record(tmp_path: Path) -> None:
    """Fields of one name are told apart by their part; the sample has the id of the request."""
    mapping = {
        "question": "parts[?kind=='in'] | [0].text",
        "answer": "parts[?kind=='out'] | [0].text",
        "contexts": "parts[?kind=='in'] | [0].hits",
    }
    reading = Reading(tmp_path, format="custom", mapping=mapping)
    assert reading.options.rules.mapping["id"] == "id"
    write(tmp_path, "answered", {"request_id": 7, "kind": "out", "text": "Tea."})
    write(tmp_path, "asked", {"request_id": 7, "kind": "in", "text": "What?", "hits": ["Tea is green."]})
    (record,) = reading.read()
    assert record["id"] == "7"


class Failing(ListSource):
    """A source that cannot be read."""

    def read(self) -> Batch | None:
        """Fail."""
        raise SourceError("gone")

    def lag(self) -> Lag:
        """Unknown."""
        return Lag(5, None, {"a.jsonl": "gone"}, closed=1, problems=("gone",), skipped="3 records")


def test_a_source_that_fails_stops_neither_the_others_nor_its_own_report(tmp_path: Path) -> None:
    """The others are read first; then the failure is raised; nothing expires meanwhile; lags add up."""
    source = JoinSource(options(tmp_path, within="1s"), Clock(AT))
    good: Source = ListSource([a_batch(json.dumps(ASKED).encode())])
    source._inner["asked"] = source._inner["asked"]._replace(source=good)
    source._inner["answered"] = source._inner["answered"]._replace(source=Failing([]))
    batch = source.read()
    assert batch is not None
    assert [part.group for part in batch.hold] == ["r1"]
    with pytest.raises(ValueError, match="read last"):
        source.commit(a_batch())
    source.commit(batch)
    with pytest.raises(SourceError):
        source.read()
    assert source.lag() == Lag(5, None, {"a.jsonl": "gone"}, closed=1, problems=("gone",), skipped="3 records")


def test_parts_that_are_sent_over_http(tmp_path: Path) -> None:
    """Requests reach the source they are sent to, and its clients learn which records are no parts."""
    source = JoinSource(options(tmp_path), Clock(AT))
    assert (isinstance(source, ReceivesRequests), source.handlers, source.wake.is_set()) == (True, {}, False)
    source = JoinSource(options(of=[{"kind": "push", "name": "asked"}]), Clock(AT))
    receiving = source._inner["asked"].source
    assert isinstance(receiving, ReceivesRequests)
    assert (source.handlers, source.wake) == (receiving.handlers, receiving.wake)
    batch = replace(a_batch(b'{"event": "x"}', json.dumps(ASKED).encode()), report=BatchReport())
    sent = ListSource([batch])
    source._inner["asked"] = source._inner["asked"]._replace(source=sent)
    outer = source.read()
    assert outer is not None
    assert batch.report is not None
    assert [(one.line, one.reason) for one in batch.report.rejections] == [(1, "missing_field")]
    source.commit(outer)
    assert sent.committed == 1


def test_parts_of_a_source_that_is_gone_are_released() -> None:
    """After a change of the configuration nothing waits for a source that does not exist."""
    clock, released = Clock(AT), list[str]()
    source = JoinSource(options(), clock)
    source.restore([Part("r1", "old/abc", b"{}", AT - 9_000), Part("r2", "asked/abc", b"{}", AT - 9_000)])
    for wait in (0, 299, 1):  # r2 waits from the start on
        clock.now += wait
        while (batch := source.read()) is not None:
            released += batch.release
            source.commit(batch)
        assert released == (["r1"] if clock.now < AT + 300 else ["r1", "r2"])


INNER = {"kind": "tail", "name": "a", "path": "/a"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"of": [{"kind": "join", "name": "a"}]}, "of[0].kind: 'join' cannot be joined"),
        ({"of": [{"kind": "push", "name": name} for name in "ab"]}, "of: has several sources of kind push"),
        ({"of": [{**INNER, "name": "a/b"}]}, "of[0].name: 'a/b' is taken or contains a slash"),
        ({"of": [{**INNER, "prefix": "a", "skip_prefix": True}]}, "of[0]: skip_prefix is the older"),
        ({"of": [INNER, INNER]}, "of[1].name: 'a' is taken"),
        ({"of": [{**INNER, "format": "ragas"}]}, "of[0].format: is not used here"),
        ({"of": [{**INNER, "where": "=="}]}, "of[0]: "),
        ({"of": [{"kind": "tail", "name": "a"}]}, "of[0].path: "),
        ({"by": "a["}, "by: "),
        ({"complete": "f(a)"}, "complete: unknown function"),
        ({"within": "13h"}, "within: "),
        ({"concat": {"answer": "delta["}}, "concat.answer: "),
        ({"complete": "a", "parts": 2}, "set `complete` or `parts`, not both"),
        ({"order": "index"}, "`order` is about the pieces that `concat` joins; set that too"),
    ],
)
def test_invalid_options_are_named(changes: dict[str, Any], message: str) -> None:
    """The place in the configuration, also inside `of`."""
    source = {"kind": "join", "name": "app", "of": [INNER], "by": "id", **changes}
    with pytest.raises(ConfigError, match=rf"^sources\[0\](\.|: ){re.escape(message)}"):
        parse({"state": "/s", "sources": [source]}, folder=Path())
