"""Files that are one JSON document over several lines: read whole with `documents`, as lines without it."""

from __future__ import annotations

import json
from pathlib import Path

from support.tail_reader import Reader

ROWS = [{"answer": f"a{n}"} for n in range(3)]


def document(folder: Path, text: str, **options: object) -> tuple[Path, Reader]:
    """A file, and a reader that takes documents."""
    path = folder / "export.json"
    path.write_text(text)
    return path, Reader(path, documents=True, **options)


def test_a_pretty_printed_file_is_one_record(tmp_path: Path) -> None:
    """Read once, also where it is longer than a block."""
    text = json.dumps({"data": ROWS}, indent=4) + "\n"
    _, reader = document(tmp_path, text, read_bytes=16)
    assert [json.loads(line) for line in reader.drain()] == [{"data": ROWS}]
    assert reader.drain() == [json.dumps({"data": ROWS}, separators=(",", ":")).encode()]
    assert reader.rejections == []


def test_an_array_is_its_elements(tmp_path: Path) -> None:
    """With their places as numbers; `records` gets it whole."""
    _, reader = document(tmp_path, json.dumps(ROWS, indent=1))
    assert [json.loads(line) for line in reader.drain()] == ROWS
    assert reader.numbers == [1, 2, 3]
    (tmp_path / "whole").mkdir()
    _, reader = document(tmp_path / "whole", json.dumps(ROWS, indent=1), records="[]")
    assert [json.loads(line) for line in reader.drain()] == [ROWS]


def test_an_unfinished_document_waits(tmp_path: Path) -> None:
    """It is read when its end is written."""
    text = json.dumps(ROWS, indent=1)
    path, reader = document(tmp_path, text[:20])
    assert reader.drain() == []
    path.write_text(text)
    assert [json.loads(line) for line in reader.drain()] == ROWS


def test_lines_stay_lines(tmp_path: Path) -> None:
    """A log of one object a line is no document, nor is one whose first line is torn; without the option none is."""
    lines = "".join(f"{json.dumps(row)}\n" for row in ROWS)
    _, reader = document(tmp_path, lines)
    assert len(reader.drain()) == 3
    (tmp_path / "torn").mkdir()
    _, reader = document(tmp_path / "torn", '{"answer": "a\n' + lines)
    assert len(reader.drain()) == 4
    pretty = tmp_path / "pretty.json"
    pretty.write_text(json.dumps(ROWS, indent=1) + "\n")
    assert len(Reader(pretty).drain()) == 11
