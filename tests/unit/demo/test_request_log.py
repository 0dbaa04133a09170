"""The log of the demo service."""

from __future__ import annotations

import json
from pathlib import Path

from ragwatch.demo.service import RequestLog


def test_a_record_is_one_line_of_json(tmp_path: Path) -> None:
    """Appended in order, folders made on the way, texts as they are."""
    journal = RequestLog(tmp_path / "logs" / "rag.jsonl")
    journal.append({"answer": "zwölf\nKannen"})
    journal.append({"answer": "2"})
    lines = journal.path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["answer"] for line in lines] == ["zwölf\nKannen", "2"]
    assert "zwölf" in lines[0]


def test_it_rotates_by_renaming_before_it_grows_too_large(tmp_path: Path) -> None:
    """No file passes the size, the renamed file is the same file, and only two old ones are kept."""
    journal = RequestLog(tmp_path / "rag.jsonl", max_bytes=20)
    journal.append({"n": 1})
    journal.append({"n": 2})
    inode = journal.path.stat().st_ino
    journal.append({"n": 3})
    assert (tmp_path / "rag.jsonl.1").stat().st_ino == inode
    for number in range(4, 10):
        journal.append({"n": number})
    files = {path.name: path.read_text().split() for path in tmp_path.iterdir()}
    assert sorted(files) == ["rag.jsonl", "rag.jsonl.1", "rag.jsonl.2"]
    assert [line for name in sorted(files, reverse=True) for line in files[name]][1::2] == [
        "5}",
        "6}",
        "7}",
        "8}",
        "9}",
    ]


def test_a_record_larger_than_the_limit_is_still_written(tmp_path: Path) -> None:
    """One line never waits for room that cannot be had."""
    journal = RequestLog(tmp_path / "rag.jsonl", max_bytes=5)
    journal.append({"n": "long"})
    assert journal.path.read_text() == '{"n": "long"}\n'
