"""`ragwatch map` proposes a join where an id repeats over records of two shapes, in one file or in several."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from support.command_line import command

from ragwatch.config import parse
from ragwatch.sources.join.options import Options

RETRIEVAL = [
    {"request_id": f"r{n}", "query": f"Where is mill {n}?", "hits": [{"id": "c", "text": f"Mill {n}."}]}
    for n in range(9)
]
ANSWERS = [{"request_id": f"r{n}", "response": f"Mill {n} is by the river.", "took": n} for n in range(9)]
HEALTH = {"level": "info", "message": "GET /healthz"}


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
    assert proposed.mapping == {
        "question": "query",
        "contexts": "hits[].{id: id, text: text}",
        "answer": "response",
    }
    assert "9 requests are in 2 records each" in result.stdout


def test_other_lines_are_skipped_by_the_sources_of_the_parts(tmp_path: Path) -> None:
    """Records without the id, and text before the JSON."""
    proposed = options(run_map(tmp_path, [*RETRIEVAL, HEALTH, *ANSWERS], before="12:00 INFO "))
    assert (proposed.of[0]["where"], proposed.of[0]["prefix"]) == ("request_id != `null`", "auto")


def test_three_parts_in_a_known_format(tmp_path: Path) -> None:
    """The number of parts is proposed, and a format that reads the joined record."""
    asked = [{"run": {"id": n}, "question": "q"} for n in range(4)]
    others = (
        [{"run": {"id": n}, "contexts": ["The mill is green."]} for n in range(4)],
        [{"run": {"id": n}, "answer": "a"} for n in range(4)],
    )
    result = run_map(tmp_path, asked, *others)
    proposed = options(result)
    assert (result.return_value, proposed.by, proposed.parts, proposed.format) == (0, "run.id", 3, "canonical")


def test_ids_that_repeat_over_one_shape_or_not_at_all_join_nothing(tmp_path: Path) -> None:
    """Each file is mapped by itself, under its name."""
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
    assert "known bias: contexts are those of observations" in result.stdout


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


@pytest.mark.parametrize(("ends", "complete"), [([], None), ([{"type": "done"}], "type == 'done'")])
def test_answers_in_pieces_are_recognised(tmp_path: Path, ends: list[dict[str, Any]], complete: str | None) -> None:
    """Their pieces are joined up to the mark of the end, or to silence; the number of parts is no condition."""
    proposed = options(run_map(tmp_path, streamed(*ends)))
    assert (proposed.by, proposed.concat) == ("request_id", {"answer": "choices[0].delta.content"})
    assert (proposed.complete, proposed.parts, proposed.mapping["answer"]) == (complete, None, "answer")


def test_a_whole_answer_beside_its_pieces_is_taken(tmp_path: Path) -> None:
    """Nothing is put together; the record that has the answer ends the request."""
    proposed = options(run_map(tmp_path, streamed({"type": "done", "answer": "Mill {n} is by the river."})))
    assert (proposed.concat, proposed.complete) == ({}, "type == 'done'")
