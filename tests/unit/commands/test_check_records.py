"""`ragwatch check` on records: what is read wrongly has an exit code of its own, and the first samples are shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import Result
from support.command_line import command, configured, log_of

from ragwatch.commands.check_records import check_records
from ragwatch.config.model import Settings
from ragwatch.ports import Batch

PASSAGE = "The old mill stands by the river. Its wheel was built by monks."
QUESTION = "Where does the old mill stand?"


def _row(context: str, **more: object) -> dict[str, object]:
    return {"question": QUESTION, "contexts": [context], "answer": "By the river.", **more}


def _check(folder: Path, *rows: object, mapping: dict[str, str] | None = None) -> Result:
    log_of(folder / "rag.jsonl", *rows)
    source: dict[str, object] = {"kind": "tail", "name": "app", "path": str(folder / "rag.jsonl")}
    if mapping:
        source |= {"format": "custom", "mapping": mapping}
    return command("check", "--config", configured(folder, web={"listen": "127.0.0.1:0"}, sources=[source]))


def _said(result: Result) -> str:
    """The text of the table, with its lines joined."""
    return " ".join(result.stdout.replace("│", " ").split())


def test_the_first_fault_is_shown_with_file_and_line() -> None:
    """A finding about content names the place."""
    batch = Batch("s", "a.jsonl", [b"{"], [0], [7], "")
    assert "a.jsonl:7: torn_json" in check_records("s", object(), batch, Settings()).detail


@pytest.mark.parametrize(
    "context",
    [
        f"You are a helpful assistant. Answer the question.\n\n{PASSAGE}",
        f"System: use only the following context.\n{PASSAGE}",
        f"{PASSAGE}\n\nQuestion: {QUESTION}",
    ],
)
def test_a_context_that_is_a_whole_prompt_is_suspect(tmp_path: Path, context: str) -> None:
    """All of a prompt would count as support; a passage about the same thing is none."""
    result = _check(tmp_path, *[_row(context)] * 3)
    assert result.return_value == 3
    assert "looks like a whole prompt" in _said(result)
    assert "whole prompt" not in _said(_check(tmp_path, *[_row(PASSAGE)] * 3, _row(f"{PASSAGE} Yes."), _row(context)))


def test_names_in_place_of_contexts_are_suspect(tmp_path: Path) -> None:
    """Names of passages support nothing; a short passage beside them is one."""
    result = _check(tmp_path, *map(_row, ("Kettle manual.pdf", "Mill handbook.txt")))
    assert result.return_value == 3
    assert "contexts hold names of documents" in _said(result)
    assert "hold names" not in _said(_check(tmp_path, _row("Yes."), _row(PASSAGE)))


def test_the_first_samples_are_shown_as_they_are_read(tmp_path: Path) -> None:
    """Three of them, each below its record."""
    result = _check(tmp_path, *(_row(f"{PASSAGE} {n}.", id=f"r{n}") for n in range(5)))
    assert result.return_value == 0
    lines = result.stdout[result.stdout.index("the first samples") :].splitlines()
    assert [line.split(":")[0] for line in lines[1:5]] == ["record", "  question", "  contexts", "  answer"]
    assert lines[2] == f'  question: "{QUESTION}"'
    assert "id: r2" in result.stdout
    assert "id: r3" not in result.stdout


def test_an_optional_key_that_no_record_has_is_a_warning(tmp_path: Path) -> None:
    """With the name that was probably meant; a key that a record has is none."""
    mapping = {"question": "q", "contexts": "docs", "answer": "a", "at": "tiemstamp", "route": "path"}
    rows = [
        {"q": f"{QUESTION} {n}", "docs": [f"{PASSAGE} {n}"], "a": f"River {n}.", "timestamp": 1_780_000_000 + n}
        for n in range(3)
    ]
    result = _check(tmp_path, *rows, {**rows[0], "path": "search"}, mapping=mapping)
    assert result.return_value == 0
    assert "mapping.at: 'tiemstamp' is null in every record; did you mean 'timestamp'?" in _said(result)
    assert "mapping.route" not in _said(result)


def test_a_misspelt_key_of_a_record_is_a_warning(tmp_path: Path) -> None:
    """One that is nearly a key of the format, where the key itself is missing."""
    result = _check(tmp_path, _row(PASSAGE, refrence="By the river."))
    assert "the key 'refrence' is not read; did you mean 'reference'?" in _said(result)
    assert "did you mean" not in _said(_check(tmp_path, _row(PASSAGE, reference="By it.", latency_ms=3)))
