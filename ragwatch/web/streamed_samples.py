"""Whole: verdicts and samples with their whole texts, as JSON in pieces, up to a number of bytes a response.

What is stored is JSON already. It is unpacked piece by piece into the response and never held whole, so that a
response takes little memory however long the texts are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ragwatch.errors import StoreError
from ragwatch.ports import PackedVerdict, StoredText
from ragwatch.web.reply import dumps
from ragwatch.web.samples import short

MOST_BYTES = 8 << 20  # of a response
LINES_BYTES = 3 << 20  # of one sample's response that verdicts may take; the rest is left to the sample
ESCAPED = 3  # times the size that a text of letters beyond ASCII has as it is stored
_AROUND = 4096  # bytes that stand around the texts of a row, at most


def samples_json(entries: Iterator[PackedVerdict], following: Callable[[PackedVerdict, int], str]) -> Iterator[bytes]:
    """`{"samples": [{"verdict", "sample"}]}`; with `next`, the address of those that no longer fit, if any.

    A row that alone is larger than a response is cut to its figures and excerpts, and says `"truncated": true`; one
    that is damaged says `error`.

    Args:
        entries: The newest first.
        following: From the entry that was sent last, and how many were sent, to the address of those behind it.

    Raises:
        StoreError: The store cannot be read; what is sent already ends with `error`.
    """
    left, sent, last = MOST_BYTES, 0, None
    rest: dict[str, object] = {}
    yield b'{"samples":['
    try:
        for entry in entries:
            size, why = _size(entry)
            if size > left and last is not None:
                rest = {"next": following(last, sent)}
                break
            yield b"," if sent else b""
            cut = size > left
            yield from _row(entry, why, cut=cut)
            left, sent, last = left - (_AROUND if cut else size), sent + 1, entry
    except StoreError as error:
        rest = {"error": str(error)}
    yield b"]" + (b"," + dumps(rest)[1:] if rest else b"}") + b"\n"


def _size(entry: PackedVerdict) -> tuple[int, str | None]:
    """Bytes of a row, and what is wrong with it."""
    try:
        texts = [entry.line, *([] if entry.sample is None else [entry.sample])]
        return _AROUND + sum(text.size() for text in texts), None
    except StoreError as error:
        return _AROUND, str(error)


def _row(entry: PackedVerdict, why: str | None, *, cut: bool) -> Iterator[bytes]:
    if why is not None:
        yield dumps({"verdict": entry.bare, "sample": None, "error": why})
    elif cut:
        sample = None if entry.sample is None else _excerpt(entry.sample)
        yield dumps({"verdict": entry.bare, "sample": sample, "truncated": True})
    else:
        yield b'{"verdict":'
        yield from _line(entry)
        yield b',"sample":'
        yield from iter((b"null",)) if entry.sample is None else entry.sample.pieces()
        yield b"}"


def _line(entry: PackedVerdict) -> Iterator[bytes]:
    """The verdict line, with its place before its own fields."""
    pieces = entry.line.pieces()
    yield dumps(entry.place)[:-1] + b"," + next(pieces)[1:]
    yield from pieces


def _excerpt(text: StoredText) -> dict[str, Any]:
    fields, _ = text.beginning(MOST_BYTES)
    return short(fields)


def sample_json(key: str, entries: Iterable[PackedVerdict]) -> Iterator[bytes] | None:
    """`{"key", "verdicts", "sample"}` of one sample, its texts whole as far as a response goes; None for no entry.

    `truncated` names what is cut: a verdict to its figures, a sample to what is at its beginning. `errors` says what
    cannot be read.

    Raises:
        StoreError: The store cannot be read.
    """
    lines: list[PackedVerdict] = []
    sample: StoredText | None = None
    for entry in entries:  # each brings the sample along: only one of them is kept
        sample = sample or entry.sample
        lines.append(PackedVerdict(entry.seq, entry.place, entry.bare, entry.line, None))
    return _sample_json(key, lines, sample) if lines else None


def _sample_json(key: str, lines: list[PackedVerdict], sample: StoredText | None) -> Iterator[bytes]:
    truncated: list[str] = []
    errors: list[str] = []
    left = LINES_BYTES
    yield b'{"key":' + dumps(key) + b',"verdicts":['
    for number, entry in enumerate(lines):
        yield b"," if number else b""
        size, why = _size(entry)
        if why is not None or size > left:
            yield dumps(entry.bare)
            (truncated if why is None else errors).append(why or f"verdicts[{number}]")
        else:
            yield from _line(entry)
            left -= size
    yield b'],"sample":'
    yield from _whole_sample(sample, truncated, errors)
    notes: dict[str, object] = {"truncated": truncated} if truncated else {}
    notes |= {"errors": errors} if errors else {}
    yield (b"," + dumps(notes)[1:] if notes else b"}") + b"\n"


def _whole_sample(sample: StoredText | None, truncated: list[str], errors: list[str]) -> Iterator[bytes]:
    room = MOST_BYTES - LINES_BYTES
    try:
        size = 0 if sample is None else sample.size()
    except StoreError as error:
        errors.append(str(error))
        sample = None
    if sample is None:
        yield b"null"
    elif size <= room:
        yield from sample.pieces()
    else:
        yield _squeezed(sample, room, truncated)


def _squeezed(sample: StoredText, room: int, truncated: list[str]) -> bytes:
    """A sample that is too large as it is stored: its text in UTF-8, which takes less than escapes, or what fits."""
    fields, complete = sample.beginning(ESCAPED * room)
    text = dumps(fields)
    if complete and len(text) <= room:
        return text
    truncated.append("sample")
    return dumps(sample.beginning(room - _AROUND)[0])
