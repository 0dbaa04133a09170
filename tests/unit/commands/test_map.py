"""`ragwatch map`: known formats are named, others get a proposal, also of a join; what is no JSON is named, too."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from support.command_line import command, jsonl

from ragwatch.commands.map import print_source
from ragwatch.config import parse
from ragwatch.formats import FORMATS, build
from ragwatch.formats.guessing.guess import propose
from ragwatch.sources.join import Options

DATA = Path(__file__).parents[2] / "data" / "formats"


def _map(text: str) -> Result:
    return command("init", "--print", "-", said=text)


def test_every_known_format_is_named() -> None:
    """The file of each format is recognised as that format."""
    for name in FORMATS:
        result = _map((DATA / f"{name}.jsonl").read_text(encoding="utf-8"))
        assert yaml.safe_load(result.stdout)["format"] == name
        assert result.return_value == 0


def test_a_proposal_can_be_pasted_into_the_configuration() -> None:
    """YAML whose mapping reads the record, with scores, moments and routes; routes are listed."""
    record = {"payload": {"query": "why?", "hits": [{"body": "Because it rained."}]}, "reply": "so"}
    result = _map(json.dumps(record) + "\n")
    assert result.return_value == 1
    source = yaml.safe_load(result.stdout)
    sample = build(source["format"], source["mapping"]).read(record, "x")
    assert (sample.question, sample.answer, sample.contexts[0].text) == ("why?", "so", "Because it rained.")
    result = _map(jsonl(*[RECORD] * 3))
    mapping = _mapped(result)["mapping"]
    assert isinstance(mapping, dict)
    sample = build("custom", mapping).read(RECORD, "x")
    assert (sample.id, sample.at, sample.route) == ("r1", 1767225600.123, "/search")
    assert [(each.id, each.score) for each in sample.contexts] == [("c1", 0.83)]
    assert 'routes to list at the top level of the configuration: ["/search"]' in result.stdout


def test_a_file_without_json_is_refused() -> None:
    """Nothing is guessed from nothing; of text before the JSON the option that passes over it is told once."""
    result = _map("hello\n\n")
    assert result.return_value == 1
    assert "holds no JSON object" in result.stderr
    assert ":1: torn_json" in result.stderr
    assert "write a mapping by hand" in _map('{"level": 3}\n').stdout
    row = {"question": "Where?", "contexts": ["By the river."], "answer": "By the river."}
    result = _map("".join(f"2026-01-01 12:00:{n % 60:02} INFO {{app}} {json.dumps(row)}\n" for n in range(100)))
    assert (result.return_value, result.stderr) == (0, "")
    assert _mapped(result) == {"format": "canonical", "prefix": "auto"}
    assert "100 lines have text before the JSON" in result.stdout


RECORD = {
    "req": {"query": "Where is the mill?", "request_id": "r1", "received": {"timestamp_ms": 1767225600123}},
    "path": "/search",
    "retrieval": {"hits": [{"chunk_id": "c1", "body": "The mill is by the river.", "similarity": 0.83}]},
    "reply": "By the river.",
}


def _mapped(result: Result) -> dict[str, object]:
    """The keys of a source that were printed."""
    return dict(yaml.safe_load(result.stdout))


def test_no_answer_is_made_out_of_contexts() -> None:
    """Where retrieval and answer are separate records, that is said, and a retrieved text is proposed as nothing."""
    retrieval = {"request_id": "r1", "query": "Where?", "hits": [{"id": "c1", "text": "By the river."}]}
    for answers in ([], [{"request_id": "r1", "response": "By the river."}, {"level": "info"}]):
        result = _map(jsonl(retrieval, *answers, {"level": "info"}))
        assert result.return_value == 1
        assert "hits[0]" not in result.output
        assert "separate records" in result.stderr
        assert "no answer is proposed" in result.stdout
        assert "answer" not in yaml.safe_load(result.stdout)["mapping"]
    assert "no field looks like answer" in _map(jsonl(retrieval)).stderr


def test_a_moment_in_any_unit_is_mapped_and_a_duration_is_not() -> None:
    """Seconds, milliseconds, microseconds and nanoseconds since 1970; `time: 0.35` is how long something took.

    A list of names of passages is not proposed where texts should stand.
    """
    for unit in (1, 1_000, 1_000_000, 1_000_000_000):
        assert propose([{**RECORD, "ts": 1_767_225_600 * unit, "time": 0.35}]).mapping["at"] == "ts"
    assert "at" not in propose([{**RECORD, "req": {}, "time": 0.35}]).mapping
    assert "contexts" not in propose([{"answer": "Yes.", "context_ids": ["d1#3", "d2#1"], "docs": ["d1"]}]).mapping


def test_the_share_and_the_first_record_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    """How much the proposal reads, and where, in which field and why it first does not."""
    path = tmp_path / "log.jsonl"
    path.write_text(jsonl(*[RECORD] * 8, RECORD | {"reply": None}, RECORD | {"reply": None}, '{"torn": "'))
    result = command("init", "--print", path)
    assert "reads 8 of 11 records (73%)" in result.stdout
    assert f"{path}:9: missing_field: answer: is missing (2 records of this file, the first at line 9)" in result.stderr


ROW = {"event": "answer", "question": "Where?", "contexts": ["By the river."], "answer": "By the river."}
FEEDBACK = {"feedback_for": "r1", "thumbs": "up"}
HEALTH = {"event": "health", "status": 200}


def test_other_records_and_text_are_skipped_by_a_proposed_condition() -> None:
    """What is proposed reads every answer and skips the rest, but no answer under other names and no broken one."""
    text = jsonl(*[ROW] * 6, FEEDBACK, *[HEALTH] * 20) + "Traceback (most recent call last):\n  File 'a.py', line 1\n"
    result = _map(text)
    assert (result.return_value, result.stderr) == (0, "")
    assert _mapped(result) == {"format": "canonical", "where": "event == 'answer'"}
    other_names = [{"query": f"Where is river {n}?", "reply": f"There, {n}."} for n in range(3)]
    hidden = _map(jsonl(*[ROW] * 6, *other_names))
    assert (hidden.return_value, "where" in _mapped(hidden)) == (1, False)
    assert "3 more records look like answers and are not read" in hidden.stderr
    assert "20 records and 2 lines without JSON are no answers" in result.stdout
    result = _map(jsonl(*[ROW] * 6, *[HEALTH] * 3, {**ROW, "answer": None}))
    assert _mapped(result)["where"] == "event == 'answer'"
    assert ":10: wrong_type: answer" in result.stderr
    assert _mapped(_map(jsonl(*[ROW] * 3) + "Killed\n")) == {"format": "canonical", "where": "@"}
    text = "".join(f"12:00 INFO {json.dumps(ROW)}\n" for _ in range(3)) + "12:01 INFO bye\n"
    assert _mapped(_map(text)) == {"format": "canonical", "prefix": "auto"}


def test_passages_in_a_prompt_are_cut_out() -> None:
    """A chat with everything in its system message: the format stays, and split is proposed with what it yields."""
    rows = [
        {
            "messages": [
                {"role": "system", "content": f"You are a bot. Use the following:\n[1] Mill {n}.\n[2] River {n}."},
                {"role": "user", "content": f"Where is mill number {n}?"},
            ],
            "choices": [{"message": {"content": f"By river {n}."}}],
        }
        for n in range(6)
    ]
    result = _map(jsonl(*rows))
    assert (result.return_value, _mapped(result)) == (0, {"format": "openai", "split": "numbered"})
    assert "2.0 passages on average" in result.stdout


@pytest.mark.parametrize("before", ["12:00 INFO ", "[rag] ", "[2026-05-01 12:00:00] "])
def test_only_the_head_of_a_log_with_text_is_read(tmp_path: Path, before: str) -> None:
    """A file is taken as one JSON document only if it begins like one: a log may be larger than the memory."""
    path = tmp_path / "app.log"
    path.write_text((before + json.dumps(ROW) + "\n") * 20_000)
    with path.open("rb") as stream:
        assert print_source([stream]) == 0
        assert stream.tell() < path.stat().st_size / 4


@pytest.mark.parametrize(
    ("document", "path"),
    [
        (lambda rows: {"data": rows, "has_more": False}, "data"),
        (lambda rows: {"result": {"items": rows}}, "result.items"),
        (lambda rows: {"messages": [one for row in rows for one in _said(row)]}, "answers(messages)"),
    ],
)
def test_answers_in_a_list_are_found(document: Callable[[list[dict[str, Any]]], object], path: str) -> None:
    """A page of an API and a conversation, pretty-printed: `records` says where they are, not the first of them."""
    rows = [
        {"question": f"Where is mill {n}?", "contexts": [f"It is at {n}."], "answer": f"Here, {n}."} for n in range(9)
    ]
    result = _map(json.dumps(document(rows), indent=1))
    assert "reads 9 of 9 records" in result.stdout
    assert _mapped(result)["records"] == path
    assert "[0]" not in result.stdout


def _said(row: dict[str, Any]) -> list[dict[str, Any]]:
    """A turn of a conversation."""
    told = {"role": "assistant", "content": row["answer"], "contexts": row["contexts"]}
    return [{"role": "user", "content": row["question"]}, told]


def test_what_is_probably_read_wrongly_has_an_exit_code_of_its_own() -> None:
    """Contexts that are names, and previews of a fixed length: shown with an example."""
    rows = [
        {"question": f"Where is mill {n}?", "contexts": [f"Mill {n}.pdf"], "answer": f"Here, {n}."} for n in range(4)
    ]
    result = _map(jsonl(*rows))
    assert result.return_value == 3
    assert 'contexts hold names of documents (ids, files, links or titles) instead of texts, such as "Mill 0.pdf"' in (
        result.stderr
    )
    text = "The old mill by the river was built by monks, and its wheel, which turns to this day, is made of oak from"
    rows = [
        {"query": f"Which mill is {n}?", "hits": [{"preview": f"{n} {text}"[:100]}], "reply": f"Mill {n}."}
        for n in range(6)
    ]
    result = _map(jsonl(*rows))
    assert result.return_value == 3
    assert "contexts are cut to 100 characters" in result.stderr
    assert _mapped(result)["mapping"]["contexts"] == "hits[].{text: preview}"  # type: ignore[index]


def test_the_former_name_works_with_a_note() -> None:
    """For one release, `map` prints the same and says what it is called now."""
    now = _map(jsonl(*[RECORD] * 3))
    before = command("map", "-", said=jsonl(*[RECORD] * 3))
    assert (before.stdout, before.return_value) == (now.stdout, now.return_value)
    assert "`ragwatch init --print` now" in before.stderr


RETRIEVAL = [
    {"request_id": f"r{n}", "query": f"Where is mill {n}?", "hits": [{"id": "c", "text": f"Mill {n}."}]}
    for n in range(9)
]
ANSWERS = [{"request_id": f"r{n}", "response": f"Mill {n} is by the river.", "took": n} for n in range(9)]
OTHER = {"level": "info", "message": "GET /healthz"}


def run_map(folder: Path, *logs: list[dict[str, Any]], before: str = "") -> Result:
    """Map some files."""
    paths = []
    for number, rows in enumerate(logs):
        paths.append(folder / f"{number}.jsonl")
        paths[-1].write_text("".join(f"{before}{json.dumps(row)}\n" for row in rows))
    return command("init", "--print", *paths)


def options(result: Result) -> Options:
    """The proposed source, as the configuration reads it."""
    item = yaml.safe_load(result.stdout)
    proposed = parse({"state": "/s", "sources": [item]}, folder=Path()).sources[0].options
    assert isinstance(proposed, Options)
    return proposed


@pytest.mark.parametrize("files", [1, 2])
def test_a_join_is_proposed_over_records_of_two_shapes(tmp_path: Path, files: int) -> None:
    """By the id that both have, over one file or two; the mapping is that of the joined record."""
    result = run_map(tmp_path, *([[*RETRIEVAL, *ANSWERS]] if files == 1 else [RETRIEVAL, ANSWERS]))
    proposed = options(result)
    assert (result.return_value, proposed.by, len(proposed.of), proposed.parts) == (0, "request_id", files, None)
    assert proposed.mapping == {"question": "query", "contexts": "hits[].{id: id, text: text}", "answer": "response"}
    assert "9 requests are in 2 records each" in result.stdout


def test_two_searches_of_a_request_are_a_question(tmp_path: Path) -> None:
    """The last search would be read alone, with its rewritten query as the question: a person has to say which."""
    again = [{**row, "query": f"again: {row['query']}", "hits": row["hits"][:1]} for row in RETRIEVAL]
    result = run_map(tmp_path, [*RETRIEVAL, *again, *ANSWERS])
    assert (result.return_value, options(result).parts) == (1, 3)
    assert "several records of a request hold query" in result.stdout


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("2026-01-01 12:00:00,123 INFO {'question': 'Why?', 'answer': 'So.'}", "dicts as Python prints them"),
        ('time=2026-01-01T12:00:00Z level=info question="Why?"', "logfmt"),
        ("id,question,answer\n1,Why?,So.", "CSV"),
    ],
)
def test_what_is_no_json_is_named(line: str, kind: str) -> None:
    """The message says what the lines are, and where the line that converts them stands."""
    said = _map(f"{line}\n").stderr
    assert f"holds {kind}" in said
    assert "docs/logs.md has the line that converts" in said


def _answered(number: int) -> dict[str, Any]:
    passage = f"The kettle number {number} lasts {number} years, and the jug longer."
    return {"query": f"How long does kettle {number} last?", "hits": [passage], "reply": f"It lasts {number} years."}


@pytest.mark.parametrize(
    ("document", "records"),
    [
        (
            {"events": [
                {"eventId": f"e{number}{kind}", "message": text} for number in range(4)
                for kind, text in (("a", "START RequestId: 7"), ("b", json.dumps(_answered(number))))
            ]},
            "events[?starts_with(message, '{')].from_json(message)",
        ),
        ({"items": [_answered(number) for number in range(4)]}, "items"),
    ],
)  # fmt: skip
def test_records_in_a_document_have_ids_of_their_own(document: dict[str, Any], records: str) -> None:
    """Of an export of CloudWatch those messages are read that hold JSON; answers without ids are no single one."""
    result = _map(json.dumps(document, indent=2))
    source = yaml.safe_load(result.stdout)
    assert (result.return_value, result.stderr, source["records"]) == (0, "", records)
    assert "reads 4 of 4 records" in result.stdout


def test_parts_in_several_records(tmp_path: Path) -> None:
    """Other records and text are skipped, the number of parts is proposed; what no id joins is mapped by itself."""
    proposed = options(run_map(tmp_path, [*RETRIEVAL, OTHER, *ANSWERS], before="12:00 INFO "))
    assert (proposed.of[0]["where"], proposed.of[0]["prefix"]) == ("request_id != `null`", "auto")
    asked = [{"run": {"id": n}, "question": "q"} for n in range(4)]
    others = (
        [{"run": {"id": n}, "contexts": ["The mill is green."]} for n in range(4)],
        [{"run": {"id": n}, "answer": "a"} for n in range(4)],
    )
    result = run_map(tmp_path, asked, *others)
    proposed = options(result)
    assert (result.return_value, proposed.by, proposed.parts, proposed.format) == (0, "run.id", 3, "canonical")
    result = run_map(tmp_path, RETRIEVAL, [{**row, "request_id": None} for row in ANSWERS])
    assert result.return_value == 1
    assert "kind: join" not in result.stdout
    assert f"# {tmp_path}/1.jsonl" in result.stdout
    assert "kind: join" not in run_map(tmp_path, [*RETRIEVAL, *RETRIEVAL]).stdout


def test_rows_of_a_trace_export_are_joined_for_the_whole_time(tmp_path: Path) -> None:
    """Nothing says how many rows a trace has; the format reads them from the parts, and its bias is printed."""
    rows = []
    for n in range(4):
        trace = {"trace_id": f"t{n}", "name": "x", "start_time": f"2026-05-01 10:00:0{n}.000000"}
        rows += [
            {**trace, "id": f"a{n}", "parent_observation_id": None, "type": "SPAN", "input": "q", "output": "a"},
            {**trace, "id": f"b{n}", "parent_observation_id": f"a{n}", "type": "RETRIEVER", "output": ["c"]},
        ]
        rows += [{**trace, "id": f"c{n}{k}", "parent_observation_id": f"a{n}", "type": "EVENT"} for k in range(n % 2)]
    result = run_map(tmp_path, rows)
    proposed = options(result)
    assert (proposed.by, proposed.complete, proposed.format) == ("trace_id", "`false`", "langfuse")
    assert "known bias: contexts are the documents of observations" in result.stdout


def streamed(*ends: dict[str, Any]) -> list[dict[str, Any]]:
    """Requests whose answers are logged word by word."""
    rows: list[dict[str, Any]] = []
    for n in range(9):
        place = {"request_id": f"r{n}"}
        words = f"Mill {n} is by the river{' and the old bridge' * (n % 3)}.".split(" ")
        pieces = [{**place, "type": "delta", "choices": [{"delta": {"content": f"{word} "}}]} for word in words]
        search = {**place, "type": "search", "query": f"Where is mill {n}?", "hits": [{"text": f"Mill {n} is by it."}]}
        rows += [search, *pieces, *({**place, **{key: text.format(n=n) for key, text in end.items()}} for end in ends)]
    return rows


def test_answers_in_pieces_are_recognised(tmp_path: Path) -> None:
    """Their pieces are joined up to the mark of the end, or to silence; the number of parts is no condition.

    Where a whole answer stands beside them nothing is put together; the record that has it ends the request.
    """
    for ends, complete in (((), None), (({"type": "done"},), "type == 'done'")):
        proposed = options(run_map(tmp_path, streamed(*ends)))
        assert (proposed.by, proposed.concat) == ("request_id", {"answer": "choices[0].delta.content"})
        assert (proposed.complete, proposed.parts, proposed.mapping["answer"]) == (complete, None, "answer")
    whole = options(run_map(tmp_path, streamed({"type": "done", "answer": "Mill {n} is by the river."})))
    assert (whole.concat, whole.complete) == ({}, "type == 'done'")
