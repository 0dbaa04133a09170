"""Line parsing: what is a record, what is rejected, and what waits for more bytes; the last record of a file."""

import random
import tracemalloc
from pathlib import Path

import pytest
from support.tail_reader import Reader, append, lines_of, rotate


@pytest.mark.parametrize("size", [1, 10])
def test_t10_bytes_without_a_newline_wait(path: Path, reader: Reader, size: int) -> None:
    """An unterminated line is not read before it is complete, and then once. It is not reported as lag."""
    append(path, b"x" * size, end=b"")
    assert reader.settle(3600) == []
    assert (reader.source.lag().size, reader.source.lag().seconds) == (0, 0.0)
    append(path, b"y")
    assert [b"x" * size + b"y"] == reader.settle()
    assert reader.numbers == [1]
    assert reader.rejections == []


def test_t11_partial_line_across_a_restart(path: Path, reader: Reader) -> None:
    """One complete record, with its number and its offset."""
    append(path, b"one")
    append(path, b"two, fi", end=b"")
    reader.drain()
    with reader.away(stopped=True):
        append(path, b"nished")
    assert reader.drain() == [b"one", b"two, finished"]
    assert reader.numbers == [1, 2]
    assert [offset for _, offset in reader.places] == [0, 4]
    assert len({stream for stream, _ in reader.places}) == 1


@pytest.mark.parametrize("block", [64, 1000, 100_000])
def test_t13_a_line_that_is_too_long(path: Path, block: int) -> None:
    """One rejection with its line number, whatever the size of a block; the lines around it are intact."""
    append(path, b"before", b"x" * 5001, b"y" * 5000, b"after")
    reader = Reader(path, max_line_bytes=5000, read_bytes=block)
    assert reader.drain() == [b"before", b"y" * 5000, b"after"]
    assert [(r.reason, r.line) for r in reader.rejections] == [("line_too_long", 2)]
    assert reader.numbers == [1, 3, 4]


def test_t13_a_restart_inside_a_line_that_is_too_long(path: Path) -> None:
    """Progress inside the line is kept: it is counted once, and dropped up to its end, although that arrives later."""
    append(path, b"x" * 9000, end=b"")
    reader = Reader(path, max_line_bytes=1000, read_bytes=500)
    reader.step()
    reader.restart()
    reader.drain()
    reader.restart()
    assert reader.reads(path, b"x" * 9000, b"next") == [b"next"]
    assert reader.reasons == ["line_too_long"]
    assert reader.numbers == [2]


def test_t14_memory_is_bounded_on_an_endless_line(path: Path) -> None:
    """A 50 MiB line without a newline takes no more memory than the limit and 20 MiB."""
    with path.open("wb") as file:
        for _ in range(50):
            file.write(b"x" * (1 << 20))
    limit = 4 << 20
    reader = Reader(path, max_line_bytes=limit)
    tracemalloc.start()
    reader.drain()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < limit + (20 << 20)
    assert reader.reasons == ["line_too_long"]
    assert reader.reads(path, b"", b"next") == [b"next"]


@pytest.mark.parametrize("size", [10, 100_000])
def test_t15_a_hole_of_nul_bytes(path: Path, size: int) -> None:
    """A writer that kept its offset across a truncation leaves NUL bytes: skipped, counted once, the line intact."""
    old = lines_of("old", 3)
    reader = Reader(path, read_bytes=1000, max_line_bytes=2000)
    reader.reads(path, *old)
    path.write_bytes(b"")
    with path.open("r+b") as stale:
        stale.seek(size + 100)
        stale.write(b"after the hole\nand one more\n")
    reader.step()
    reader.restart()
    assert [*old, b"after the hole", b"and one more"] == reader.drain()
    assert reader.reasons == ["binary"]
    assert reader.numbers[3:] == [1, 2]


def test_t15_a_hole_between_lines(path: Path, reader: Reader) -> None:
    """A hole in the middle of a block is counted too; NUL bytes inside a line are left to the format."""
    assert reader.reads(path, b"one", b"\0\0\0two", b"th\0ree") == [b"one", b"two", b"th\0ree"]
    assert [(r.reason, r.line) for r in reader.rejections] == [("binary", 2)]
    assert [offset for _, offset in reader.places] == [0, 7, 11]


def test_t15_nul_bytes_at_the_end_wait(tmp_path: Path, path: Path, reader: Reader) -> None:
    """Preallocated space may be filled later, so it is not skipped; at rotation it is counted."""
    append(path, b"one", b"\0\0\0\0", end=b"\n")
    path.write_bytes(b"one\n\0\0\0\0")
    reader.settle()
    assert reader.reasons == []
    path.write_bytes(b"one\ntwo\n")
    assert reader.settle() == [b"one", b"two"]
    append(path, b"\0\0", end=b"")
    path.rename(tmp_path / "app.jsonl.1")
    reader.settle()
    assert reader.reasons == ["binary"]


def test_t16_bytes_that_are_no_text_pass_untouched(path: Path) -> None:
    """Invalid UTF-8 is replaced and counted by the format: the tail delivers the raw bytes."""
    append(path, b'{"answer":"\xff\xfe"}', b"ok")
    assert Reader(path).drain() == [b'{"answer":"\xff\xfe"}', b"ok"]


def test_t17_crlf_bom_and_empty_lines(path: Path, reader: Reader) -> None:
    """Line ends and the byte order mark are removed, blank lines are left out but counted in line numbers."""
    path.write_bytes(b"\xef\xbb\xbfone\r\n\r\n  \ntwo\n\n\nthree\r\r\n")
    assert reader.drain() == [b"one", b"two", b"three\r"]
    assert reader.numbers == [1, 4, 7]
    assert [offset for _, offset in reader.places] == [3, 13, 19]


def test_blank_lines_alone_move_the_cursor(path: Path, reader: Reader) -> None:
    """A batch without records still commits progress."""
    append(path, b"", b"")
    batch = reader.step()
    assert batch is not None
    assert list(batch.lines) == []
    assert reader.step() is None
    reader.restart()
    assert reader.step() is None


def test_numbers_and_offsets_find_the_line(path: Path) -> None:
    """For any content and block size, offsets and numbers of records are right."""
    rng = random.Random(5)
    ends = (b"\n", b"\r\n", b"\n\n")
    path.write_bytes(b"".join(b"r" * rng.randint(1, 90) + rng.choice(ends) for _ in range(300)))
    content = path.read_bytes()
    for block in (7, 64, 1000, 1 << 20):
        reader = Reader(path, read_bytes=block)
        lines = reader.drain()
        assert len(lines) == 300
        for line, number, (_, offset) in zip(lines, reader.numbers, reader.places, strict=True):
            assert content.startswith(line, offset)
            assert number == content.count(b"\n", 0, offset) + 1


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_wide_text_is_counted_once(tmp_path: Path, path: Path, reader: Reader, encoding: str) -> None:
    """A log in UTF-16 is rejected by the format, line by line; half of a line end is not counted as a hole as well."""
    path.write_bytes("".join(f'{{"answer": "{number}"}}\r\n' for number in range(50)).encode(encoding))
    reader.drain()
    path.rename(tmp_path / "app.jsonl.1")
    reader.settle()
    assert (len(reader.lines), reader.reasons) == (50, [])
    assert all(b"\0" in line for line in reader.lines)


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
    assert reader.reads(path, THREE) == [ONE, TWO, THREE]
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


@pytest.mark.parametrize("cut", range(1, len(ONE), 4))
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
