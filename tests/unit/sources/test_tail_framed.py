"""Framed logs: frames of container runtimes are removed, and split records are joined."""

import json
import random
from pathlib import Path

import pytest
from support.tail_reader import Reader, append, lines_of

from ragwatch.sources.tail.lines import detect

AT = b"2026-01-01T00:00:00.123456789Z"


def cri(text: bytes, *, stream: bytes = b"stdout", tag: bytes = b"F") -> bytes:
    """A line as containerd writes it."""
    return b"%s %s %s %s" % (AT, stream, tag, text)


def docker(text: bytes, *, stream: bytes = b"stdout", end: bytes = b"\n") -> bytes:
    """A line as Docker's json-file writes it."""
    value = {"log": (text + end).decode(), "stream": stream.decode(), "time": AT.decode()}
    return json.dumps(value, separators=(",", ":")).encode()


def part(text: bytes, kind: str, stream: bytes = b"stdout") -> bytes:
    """A part of a record that is continued."""
    return cri(text, stream=stream, tag=b"P") if kind == "cri" else docker(text, stream=stream, end=b"")


def end(text: bytes, kind: str, stream: bytes = b"stdout") -> bytes:
    """The last part of a record, or all of it."""
    return (cri if kind == "cri" else docker)(text, stream=stream)


@pytest.mark.parametrize("framing", ["auto", "same"])
@pytest.mark.parametrize("kind", ["cri", "docker"])
def test_frames_are_taken_off(tmp_path: Path, kind: str, framing: str) -> None:
    """Formats see what the service printed; offsets and numbers are those of the line in the file."""
    path = tmp_path / "app.log"
    append(
        path, b"", *(end(line, kind) for line in lines_of("a", 3)), end(b"chatter", kind, b"stderr"), end(b" ", kind)
    )
    append(path, b"what the runtime says itself", end(b"last\r", kind))
    reader = Reader(path, framing=kind if framing == "same" else "auto")
    assert [*lines_of("a", 3), b"chatter", b"what the runtime says itself", b"last"] == reader.drain()
    assert reader.numbers == [2, 3, 4, 5, 7, 8]
    content = path.read_bytes()
    assert all(content[offset - 1 : offset] == b"\n" for _, offset in reader.places)


@pytest.mark.costly
@pytest.mark.parametrize("kind", ["cri", "docker"])
@pytest.mark.parametrize("block", [64, 500, 100_000])
@pytest.mark.parametrize("seed", range(2))
def test_parts_are_joined(tmp_path: Path, kind: str, block: int, seed: int) -> None:
    """However two streams interleave, and wherever blocks end and ragwatch is killed: every record once, complete."""
    rng = random.Random(seed)
    path = tmp_path / "app.log"
    append(path)
    reader = Reader(path, framing=kind, read_bytes=block, max_line_bytes=4000)
    left = {stream: lines_of(stream.decode(), 40) for stream in (b"stdout", b"stderr")}
    printed = dict.fromkeys(left, b"")
    written = []
    while any(left.values()):
        stream = rng.choice([name for name, lines in left.items() if lines])
        rest = left[stream][0][len(printed[stream]) :]
        if rng.random() < 0.5 and len(rest) > 1:
            cut = rng.randint(1, len(rest) - 1)
            append(path, part(rest[:cut], kind, stream))
            printed[stream] += rest[:cut]
        else:
            append(path, end(rest, kind, stream))
            written.append(left[stream].pop(0))
            printed[stream] = b""
        if rng.random() < 0.3:
            reader.step()
        if rng.random() < 0.2:
            reader.source.read()
            reader.restart()
    assert sorted(written) == sorted(reader.drain())
    assert len(set(reader.places)) == 80
    assert reader.rejections == []


@pytest.mark.parametrize("kind", ["cri", "docker"])
@pytest.mark.parametrize("restart", [True, False])
def test_t13_parts_that_add_up_to_too_much(tmp_path: Path, kind: str, restart: bool) -> None:
    """One rejection for the record, in bounded memory, across restarts; the records around it are intact."""
    path = tmp_path / "app.log"
    append(path, end(b"before", kind))
    reader = Reader(path, framing=kind, read_bytes=300, max_line_bytes=1000)
    for number in range(40):
        append(path, part(b"x" * 100, kind))
        if number % 7 == 0:
            append(path, part(b"y" * 190, kind, b"stderr"))
        reader.step()
        if restart:
            reader.restart()
    assert reader.reads(
        path, end(b"x", kind), end(b"y", kind, b"stderr"), end(b"after", kind), end(b"after", kind, b"stderr")
    ) == [b"before", b"after", b"after"]
    assert reader.reasons == ["line_too_long", "line_too_long"]


def test_a_part_whose_stream_falls_silent(tmp_path: Path) -> None:
    """It is rejected within a bounded window; the other stream does not wait for ever."""
    path = tmp_path / "app.log"
    lines = lines_of("a", 400)
    append(path, part(b"never finished", "cri", b"stderr"), *(cri(line) for line in lines))
    reader = Reader(path, read_bytes=100, max_line_bytes=1000)
    assert lines == reader.drain()
    assert reader.reasons == ["line_too_long"]


def test_t12_a_record_in_parts_at_rotation(tmp_path: Path) -> None:
    """Its incomplete records are counted once, when the file is closed; complete records after them are read."""
    path = tmp_path / "app.log"
    append(path, cri(b"one"), part(b"half", "cri"), cri(b"other", stream=b"stderr"))
    reader = Reader(path)
    assert reader.settle() == [b"one"]
    path.rename(tmp_path / "app.log.1")
    append(path, cri(b"two"))
    reader.settle()
    append(tmp_path / "app.log.1", cri(b"and half"), b"torn", end=b"")
    assert sorted(reader.settle()) == [b"one", b"other", b"two"]
    assert reader.reasons == ["partial_at_rotation"]


def test_framing_is_decided_for_each_content(tmp_path: Path) -> None:
    """A truncated file may get another framing; JSON that only resembles a frame is passed on unchanged."""
    path = tmp_path / "app.log"
    reader = Reader(path)
    reader.reads(path, cri(b"one"), *[cri(b"more")] * 9)
    path.write_bytes(b"")
    assert reader.reads(path, docker(b"two"), b'{"log": torn', b'{"log":3,"stream":"stdout","time":""}')[10:] == [
        b"two",
        b'{"log": torn',
        b'{"log":3,"stream":"stdout","time":""}',
    ]


@pytest.mark.parametrize(
    ("block", "framing"),
    [
        (b"", None),
        (b"torn", None),
        (b"\n" * 99, None),
        (b'\xef\xbb\xbf{"id":1}\n', "plain"),
        (b'{"log":"text\\n","level":"info"}\n', "plain"),
        (b'{"log":torn\n', "plain"),
        (b"\n" + cri(b"x") + b"\n", "cri"),
        (cri(b"", tag=b"P:x").rstrip() + b"\n", "cri"),
        (docker(b"x") + b"\n", "docker"),
    ],
)
def test_detect(block: bytes, framing: str | None) -> None:
    """The first line that is not blank decides."""
    assert framing == detect(block)
