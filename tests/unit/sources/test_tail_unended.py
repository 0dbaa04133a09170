"""Unterminated records: a JSON object is complete at its last brace, so the last record of a file is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.tail_reader import Reader, append, lines_of, rotate

ONE, TWO, THREE, FOUR = lines_of("r", 4)
DOCKER = b'{"log":"{\\"id\\":1}\\n","stream":"stdout","time":"2026-01-01T00:00:00Z"}'


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"", b"\r", b" "])
def test_the_last_record_of_a_file_is_read(path: Path, reader: Reader, start: bytes, end: bytes) -> None:
    """Newlines between records, not after them: every record once, at its offset, also across a restart."""
    path.write_bytes(start + ONE + b"\n" + TWO + end)
    assert reader.drain() == [ONE, TWO]
    assert [reader.numbers, reader.places[1][1]] == [[1, 2], len(start + ONE) + 1]
    reader.restart()
    reader.settle()
    append(path, b"")
    append(path, THREE)
    assert reader.drain() == [ONE, TWO, THREE]
    assert reader.numbers == [1, 2, 3]
    assert (reader.reasons, reader.resets) == ([], {})


def test_a_newline_before_each_record(path: Path, reader: Reader) -> None:
    """The newest record does not wait for the next one, nor is it rejected at rotation."""
    for number, line in enumerate((ONE, TWO, THREE), 1):
        append(path, b"\n" + line, end=b"")
        assert len(reader.drain()) == number
    rotate(path)
    append(path, FOUR, end=b"")
    assert (reader.settle(), reader.reasons) == ([ONE, TWO, THREE, FOUR], [])


@pytest.mark.parametrize("cut", range(1, len(ONE)))
def test_a_torn_record_waits(path: Path, reader: Reader, cut: int) -> None:
    """No prefix of a record is a record; one that is written in pieces of any size is read once, complete."""
    append(path, TWO)
    append(path, ONE[:cut], end=b"")
    assert reader.settle() == [TWO]
    append(path, ONE[cut:])
    assert (reader.drain(), reader.numbers) == ([TWO, ONE], [1, 2])


@pytest.mark.parametrize("text", [b"[1]", b'"a"', b"1", b"null", b'{"a":1}x', b'{"a":1}\0', b'{"a":"\xff"}', DOCKER])
def test_what_is_no_object_waits(path: Path, text: bytes) -> None:
    """A number may be continued, and a frame of a container runtime is not the record."""
    append(path, text, end=b"")
    assert Reader(path).settle() == []


def test_a_frame_waits_for_its_newline(path: Path, reader: Reader) -> None:
    """Records in parts are joined by lines."""
    append(path, DOCKER)
    append(path, DOCKER, end=b"")
    assert reader.drain() == [b'{"id":1}']
    append(path, b"")
    assert reader.drain() == [b'{"id":1}'] * 2


@pytest.mark.parametrize("block", [1, 8, 64])
def test_blocks_smaller_than_a_record(path: Path, block: int) -> None:
    """The end of a block is not the end of the file."""
    path.write_bytes(b"\n".join([ONE, TWO, THREE]))
    reader = Reader(path, read_bytes=block, max_line_bytes=100)
    assert (reader.drain(), reader.reasons) == ([ONE, TWO, THREE], [])


@pytest.mark.parametrize("torn", [b"", b"\n" + THREE[:5]])
def test_a_last_record_that_was_there_before_the_first_start_is_history(path: Path, torn: bytes) -> None:
    """Reading starts after it; an unterminated line is new, because it was not complete yet."""
    path.write_bytes(ONE + b"\n" + TWO + torn)
    reader = Reader(path, start="end")
    assert reader.settle() == []
    append(path, THREE[len(torn) - 1 :] if torn else b"\n" + THREE)
    assert (reader.drain(), reader.numbers) == ([THREE], [3])
