"""`ragwatch judge`: one verdict line a sample, in the shape of the contract; what is no sample is told."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ragwatch.commands import cli

ROW = {
    "id": "r1",
    "question": "Where is the mill?",
    "contexts": ["The old mill stands by the river.", "Cats purr."],
    "answer": "The old mill stands by the river.",
    "label": {"faithful": True},
}
SHARED = Path(__file__).parents[4] / "shared" / "data" / "judge" / "dev"


def _judge(text: str, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["judge", *arguments], input=text, standalone_mode=False)


def test_a_verdict_line_has_the_shape_of_the_contract() -> None:
    """Every key of the contract is there, offsets point into the answer, and what is unread is null."""
    result = _judge(json.dumps(ROW) + "\n")
    assert result.return_value == 0
    (line,) = (json.loads(each) for each in result.stdout.splitlines())
    assert {"id", "outcome", "reason", "scores", "stage", "fault", "claims", "contexts", "missing", "judge"} <= set(
        line
    )
    assert (line["id"], line["outcome"], line["reason"]) == ("r1", "judged", None)
    assert line["scores"]["faithfulness"] == 1.0
    assert line["scores"]["contradiction"] is None
    assert line["scores"]["need_recall"] is None
    (claim,) = line["claims"]
    assert ROW["answer"][claim["start"] : claim["end"]] == claim["text"]  # type: ignore[index]
    assert claim["contexts"] == [0]
    assert [each["used"] for each in line["contexts"]] == [True, False]
    assert line["judge"]["kind"] == "lexical"
    assert "1 samples" in result.stderr


def test_rows_that_are_no_samples_are_told_and_exit_1() -> None:
    """A bad line is named by file, line, reason and field on stderr; the others are judged."""
    result = _judge(json.dumps(ROW) + '\n{"torn\n\n' + json.dumps({**ROW, "contexts": [{"id": "x"}]}) + "\n")
    assert result.return_value == 1
    assert len(result.stdout.splitlines()) == 1
    assert ":2: torn_json" in result.stderr
    assert ":4: missing_field: contexts[0].text" in result.stderr
    assert "rejected:" in result.stderr


def test_an_empty_answer_is_unjudged_with_a_reason() -> None:
    """No claim is no score: the outcome is `unjudged`, the scores are null."""
    line = json.loads(_judge(json.dumps({**ROW, "answer": "  "})).stdout)
    assert (line["outcome"], line["reason"]) == ("unjudged", "empty_answer")
    assert set(line["scores"].values()) == {None}


def test_contexts_kept_in_a_file_beside_the_rows_are_looked_up(tmp_path: Path) -> None:
    """Rows of labelled sets name their contexts by key; a key that is not there is a rejection."""
    (tmp_path / "docs.json").write_text(json.dumps({"k1": "The old mill stands by the river."}))
    row = {**ROW, "contexts": [], "docs": "docs.json"}
    rows = [
        row | {"context_refs": ["k1"]},
        row | {"context_refs": ["k2"]},
        row | {"context_refs": [], "docs": "no.json"},
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    result = _judge("", str(path))
    assert json.loads(result.stdout)["scores"]["faithfulness"] == 1.0
    assert "context_refs: 'k2' is not in docs.json" in result.stderr
    assert "docs: no.json cannot be read" in result.stderr


def test_the_labelled_set_of_the_acceptance_list() -> None:
    """All 500 rows of AttributionBench's test file become verdict lines, in their order."""
    path = SHARED / "attributionbench" / "test_id500.jsonl"
    if not path.exists():
        pytest.skip("needs ../shared/data/judge/dev/attributionbench/test_id500.jsonl")
    command = [sys.executable, "-m", "ragwatch", "judge", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    lines = [json.loads(each) for each in done.stdout.splitlines()]
    ids = [json.loads(each)["id"] for each in path.read_text(encoding="utf-8").split("\n") if each]
    assert [each["id"] for each in lines] == ids
    assert len(ids) == 500
