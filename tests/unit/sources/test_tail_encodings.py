"""`encoding` and `documents`: logs in UTF-16 and in encodings of one byte; files that are one JSON document."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from support.tail_reader import Reader, append

from ragwatch.config import parse
from ragwatch.errors import ConfigError, FormatError
from ragwatch.formats.record import parse as parse_line
from ragwatch.offline.input_files import records

ROWS: list[dict[str, Any]] = [{"answer": "Die Mühle"}, {"answer": "café 上 ĊĊ"}, {"answer": "the end"}]
LINES = [json.dumps(row, ensure_ascii=False) for row in ROWS]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_utf_16(path: Path, encoding: str, end: str) -> None:
    """In any byte order, across blocks and a restart; characters with a byte of a line end are no line ends."""
    text = "".join(line + end for line in LINES)
    append(path, text.encode(encoding), end=b"")
    reader = Reader(path, encoding=encoding, read_bytes=80, max_line_bytes=100)
    assert [json.loads(line) for line in reader.drain()] == ROWS
    with reader.away(stopped=True):
        append(path, text.encode("utf-16-be" if encoding == "utf-16-be" else "utf-16-le"), end=b"")
    assert [json.loads(line) for line in reader.drain()][-3:] == ROWS
    assert reader.rejections == []


def test_utf_16_from_its_end(path: Path) -> None:
    """What exists is skipped, up to the second byte of its last line end."""
    append(path, (LINES[0] + "\n").encode("utf-16-le"), end=b"")
    reader = Reader(path, encoding="utf-16-le", start="end")
    assert reader.drain() == []
    append(path, (LINES[2] + "\n").encode("utf-16-le"), end=b"")
    assert [json.loads(line) for line in reader.drain()] == [ROWS[2]]


def test_encodings_of_one_byte(path: Path) -> None:
    """A line becomes UTF-8."""
    append(path, LINES[0].encode("cp1252"))
    assert [json.loads(line) for line in Reader(path, encoding="cp1252").drain()] == [ROWS[0]]


def test_what_is_not_read_is_named() -> None:
    """A line of UTF-16 without the option; an encoding that is unknown, or has wide line ends."""
    with pytest.raises(FormatError, match="looks like UTF-16: set encoding: utf-16"):
        parse_line(LINES[0].encode("utf-16-le"))
    with pytest.raises(FormatError, match="a gap left by a crash"):
        parse_line(b"\0\0\0\0" + LINES[0].encode())
    for name in ("klingon", "utf-32", "hex"):
        with pytest.raises(ConfigError, match="encoding: "):
            parse({"sources": [{"kind": "tail", "name": "a", "path": "/a", "encoding": name}]}, folder=Path())


def test_files_of_the_command_line() -> None:
    """UTF-16 is known by its mark, other encodings by the option; lines may end in CR alone."""
    text = "".join(f"{line}\n" for line in LINES)
    files = [
        (text.encode("utf-16"), None),
        (text.encode("gb18030"), "gb18030"),
        (text.replace("\n", "\r").encode(), None),
    ]
    for content, encoding in files:
        lines = [line for _, line in records(io.BufferedReader(io.BytesIO(content)), encoding=encoding)]
        assert [json.loads(line) for line in lines if isinstance(line, bytes)] == ROWS


ANSWERS = [{"answer": f"a{n}"} for n in range(3)]


def document(folder: Path, text: str, **options: object) -> tuple[Path, Reader]:
    """A file, and a reader that takes documents."""
    path = folder / "export.json"
    path.write_text(text)
    return path, Reader(path, documents=True, **options)


def test_a_pretty_printed_file_is_one_record(tmp_path: Path) -> None:
    """Read once, also where it is longer than a block."""
    text = json.dumps({"data": ANSWERS}, indent=4) + "\n"
    _, reader = document(tmp_path, text, read_bytes=16)
    assert [json.loads(line) for line in reader.drain()] == [{"data": ANSWERS}]
    assert reader.drain() == [json.dumps({"data": ANSWERS}, separators=(",", ":")).encode()]
    assert reader.rejections == []


def test_an_array_is_its_elements(tmp_path: Path) -> None:
    """With their places as numbers, once its end is written; `records` gets it whole."""
    text = json.dumps(ANSWERS, indent=1)
    path, reader = document(tmp_path, text[:20])
    assert reader.drain() == []
    path.write_text(text)
    assert [json.loads(line) for line in reader.drain()] == ANSWERS
    assert reader.numbers == [1, 2, 3]
    (tmp_path / "whole").mkdir()
    _, reader = document(tmp_path / "whole", text, records="[]")
    assert [json.loads(line) for line in reader.drain()] == [ANSWERS]


def test_lines_stay_lines(tmp_path: Path) -> None:
    """A log of one object a line is no document, nor is one whose first line is torn; without the option none is."""
    lines = "".join(f"{json.dumps(row)}\n" for row in ANSWERS)
    _, reader = document(tmp_path, lines)
    assert len(reader.drain()) == 3
    (tmp_path / "torn").mkdir()
    _, reader = document(tmp_path / "torn", '{"answer": "a\n' + lines)
    assert len(reader.drain()) == 4
    pretty = tmp_path / "pretty.json"
    pretty.write_text(json.dumps(ANSWERS, indent=1) + "\n")
    assert len(Reader(pretty).drain()) == 11
