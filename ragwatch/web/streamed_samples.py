"""Streams verdicts and samples with full texts as JSON, up to a maximum size per response.

Stored texts are compressed JSON. They are decompressed chunk by chunk into the response, so that a response takes
little memory regardless of the length of the texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from ragwatch.errors import StoreError
from ragwatch.ports import PackedVerdict, StoredText
from ragwatch.web.audit_trail import shown
from ragwatch.web.json_body import dumps
from ragwatch.web.samples import short

MAX_BYTES = 8 << 20  # of a response
VERDICT_BYTES = 3 << 20  # share of the verdicts in the response for one sample; the rest is for the sample
ESCAPE_FACTOR = 3  # stored size / UTF-8 size of non-ASCII text
_ROW_OVERHEAD = 4096  # maximum bytes of a row without its texts


def samples_json(
    entries: Iterator[PackedVerdict],
    next_address: Callable[[PackedVerdict, int], str],
    examined: Mapping[str, object] | None = None,
) -> Iterator[bytes]:
    """Streams `{"samples": [{"verdict", "sample"}]}`, with `next`, the address of the next page, if there is one.

    A row that is larger than a response is truncated to figures and excerpts, with `"truncated": true`; a damaged one
    has `error`.

    Raises:
        StoreError: The store cannot be read. A response in progress ends with `error` instead.
    """
    left, sent, last = MAX_BYTES, 0, None
    rest: dict[str, object] = {}
    yield b'{"samples":['
    try:
        for entry in entries:
            size, error = _size(entry)
            if size > left and last is not None:
                rest = {"next": next_address(last, sent)}
                break
            shown([entry.verdict.key])
            yield b"," if sent else b""
            cut = size > left
            yield from _row(entry, error, cut=cut)
            left, sent, last = left - (_ROW_OVERHEAD if cut else size), sent + 1, entry
    except StoreError as failure:
        rest = {"error": str(failure)}
    rest = {**(examined or {}), **rest}
    yield b"]" + (b"," + dumps(rest)[1:] if rest else b"}") + b"\n"


def _size(entry: PackedVerdict) -> tuple[int, str | None]:
    """Size of a row in bytes, and its error, if it is damaged."""
    try:
        texts = [entry.line, *([] if entry.sample is None else [entry.sample])]
        return _ROW_OVERHEAD + sum(text.size() for text in texts), None
    except StoreError as error:
        return _ROW_OVERHEAD, str(error)


def _row(entry: PackedVerdict, error: str | None, *, cut: bool) -> Iterator[bytes]:
    if error is not None:
        yield dumps({"verdict": entry.bare, "sample": None, "error": error})
    elif cut:
        sample = None if entry.sample is None else short(entry.sample.beginning(MAX_BYTES)[0])
        yield dumps({"verdict": entry.bare, "sample": sample, "truncated": True})
    else:
        yield b'{"verdict":'
        yield from _line(entry)
        yield b',"sample":'
        yield from iter((b"null",)) if entry.sample is None else entry.sample.pieces()
        yield b"}"


def _line(entry: PackedVerdict) -> Iterator[bytes]:
    """Streams a verdict, the fields of its place first."""
    pieces = entry.line.pieces()
    yield dumps(entry.place)[:-1] + b"," + next(pieces)[1:]
    yield from pieces


def sample_json(
    key: str, entries: Iterable[PackedVerdict], feedback: tuple[float, float] | None = None
) -> Iterator[bytes] | None:
    """Streams `{"key", "verdicts", "sample", "feedback"}` of one sample with full texts; None without entries.

    `truncated` names what exceeds the maximum size: verdicts are reduced to figures, a sample to its beginning.
    `errors` names what cannot be read.

    Raises:
        StoreError: The store cannot be read.
    """
    lines: list[PackedVerdict] = []
    sample: StoredText | None = None
    for entry in entries:  # each has the sample: keep one
        sample = sample or entry.sample
        lines.append(replace(entry, sample=None))
    return _sample_json(key, lines, sample, feedback) if lines else None


def _sample_json(
    key: str, lines: list[PackedVerdict], sample: StoredText | None, feedback: tuple[float, float] | None
) -> Iterator[bytes]:
    truncated: list[str] = []
    errors: list[str] = []
    left = VERDICT_BYTES
    yield b'{"key":' + dumps(key) + b',"verdicts":['
    for number, entry in enumerate(lines):
        yield b"," if number else b""
        size, error = _size(entry)
        if error is not None or size > left:
            yield dumps(entry.bare)
            (truncated if error is None else errors).append(error or f"verdicts[{number}]")
        else:
            yield from _line(entry)
            left -= size
    yield b'],"sample":'
    yield from _whole_sample(sample, truncated, errors)
    rated = None if feedback is None else {"user_score": feedback[0], "at": feedback[1]}
    notes: dict[str, object] = {"feedback": rated}
    notes |= {"truncated": truncated} if truncated else {}
    notes |= {"errors": errors} if errors else {}
    yield b"," + dumps(notes)[1:] + b"\n"


def _whole_sample(sample: StoredText | None, truncated: list[str], errors: list[str]) -> Iterator[bytes]:
    available = MAX_BYTES - VERDICT_BYTES
    try:
        size = 0 if sample is None else sample.size()
    except StoreError as error:
        errors.append(str(error))
        sample = None
    if sample is None:
        yield b"null"
    elif size <= available:
        yield from sample.pieces()
    else:
        # In UTF-8 it is smaller than with escapes; it is truncated if it is still too large.
        fields, complete = sample.beginning(ESCAPE_FACTOR * available)
        text = dumps(fields)
        if not complete or len(text) > available:
            truncated.append("sample")
            text = dumps(sample.beginning(available - _ROW_OVERHEAD)[0])
        yield text
