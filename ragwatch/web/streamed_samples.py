"""Serves verdicts and samples as data: a search as JSON, CSV or JSONL, and one answer in full.

Stored texts are compressed JSON. They are decompressed chunk by chunk into the response, up to a maximum size, so that
a response takes little memory regardless of the length of the texts.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import cast

from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp

from ragwatch.errors import StoreError
from ragwatch.model.quantities import Quantity
from ragwatch.ports import PackedVerdict, Query, StoredText
from ragwatch.web import samples
from ragwatch.web.audit_trail import shown
from ragwatch.web.json_values import dumps, json_reply
from ragwatch.web.pages.pages import Site
from ragwatch.web.request_limit import MIB

RESPONSE_SIZE = 8 * MIB  # approximate memory for one response
MAX_JUDGES = 50  # per sample
MAX_BYTES = 8 << 20  # of a response
VERDICT_BYTES = 3 << 20  # share of the verdicts in the response for one sample; the rest is for the sample
ESCAPE_FACTOR = 3  # stored size / UTF-8 size of non-ASCII text
_ROW_OVERHEAD = 4096  # maximum bytes of a row without its texts
CSV_PATH, JSONL_PATH = "/samples.csv", "/samples.jsonl"
MAX_ROWS = 10_000  # of a download
TEXT_BYTES = 1 << 20  # of one sample in a download
_PLACE = ("key", "answered", "route", "judge", "version", "outcome", "reason", "stage")
_END = ("probability", "trace_id", "question", "answer", "truncated", "error")
# In any cell that a comma, semicolon, tab, bar or newline begins. The classes are disjoint: linear time.
_FORMULA = re.compile(r"(?:^|[,;|\t\r\n])[,;|\s\"\x00-\x1f\xad\u200b-\u200f\u2060\ufeff]*([=+\-@＝＋－＠﹦﹢﹣﹫])?")
_NARROW = "narrow the search, or download it in parts with `since` and `until`"

Row = Mapping[str, object]
"""A row of a download; the one that says why the download is not complete has nothing but `error`."""


def search_routes(site: Site) -> list[Route]:
    """Routes of searches for verdicts, and of one answer in full, as JSON."""
    store, limit = site.store, site.limit

    async def search(request: Request) -> ASGIApp:
        pairs = request.query_params.multi_items()
        query, with_texts = samples.json_query_of(pairs, now=site.clock(), criteria=site.scope().criteria)

        def answer() -> ASGIApp:
            examined = samples.examined(store, query)
            if with_texts:
                return limit.stream(samples_json(store.entries(query), samples.next_address(pairs, query), examined))
            return json_reply({"samples": [samples.line(stored) for stored in store.summaries(query)], **examined})

        return await limit.answer(answer, RESPONSE_SIZE)

    async def show(request: Request) -> ASGIApp:
        key = request.path_params["key"]

        def answer() -> ASGIApp:
            if samples.KEY.fullmatch(key):
                entries = store.entries(Query(key=key, limit=MAX_JUDGES))
                if chunks := sample_json(key, entries, store.feedback_of(key)):
                    return limit.stream(chunks)
            return json_reply({"error": "there is no sample with this key"}, 404)

        return await limit.answer(answer, RESPONSE_SIZE)

    return [Route("/api/v1/samples", search), Route("/api/v1/samples/{key}", show)]


def samples_json(
    entries: Iterator[PackedVerdict],
    next_address: Callable[[PackedVerdict, int], str],
    examined: Mapping[str, object] | None = None,
) -> Iterator[bytes]:
    """Streams `{"samples": [{"verdict", "sample"}]}`, with `next`, the address of the next page, if there is one.

    A row that is larger than a response is truncated to figures and excerpts, with `"truncated": true`; a damaged one
    has `error`. Raises StoreError: the store cannot be read; a response in progress ends with `error` instead.
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
            yield from _json_row(entry, error, cut=cut)
            left, sent, last = left - (_ROW_OVERHEAD if cut else size), sent + 1, entry
    except StoreError as failure:
        rest = {"error": str(failure)}
    rest = {**(examined or {}), **rest}
    yield b"]" + (b"," + dumps(rest)[1:] if rest else b"}") + b"\n"


def _size(entry: PackedVerdict) -> tuple[int, str | None]:
    """Size of a row in bytes, and its error, if it is damaged."""
    try:
        return _ROW_OVERHEAD + entry.line.size() + (0 if entry.sample is None else entry.sample.size()), None
    except StoreError as error:
        return _ROW_OVERHEAD, str(error)


def _json_row(entry: PackedVerdict, error: str | None, *, cut: bool) -> Iterator[bytes]:
    if error is not None:
        yield dumps({"verdict": entry.bare, "sample": None, "error": error})
    elif cut:
        sample = None if entry.sample is None else samples.short(entry.sample.beginning(MAX_BYTES)[0])
        yield dumps({"verdict": entry.bare, "sample": sample, "truncated": True})
    else:
        yield b'{"verdict":'
        yield from _line(entry)
        yield b',"sample":'
        yield from (b"null",) if entry.sample is None else entry.sample.pieces()
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
    `errors` names what cannot be read. Raises StoreError: the store cannot be read.
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
    notes: dict[str, object] = {"feedback": feedback and {"user_score": feedback[0], "at": feedback[1]}}
    notes |= {name: texts for name, texts in (("truncated", truncated), ("errors", errors)) if texts}
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


def download_routes(site: Site) -> list[Route]:
    """Routes `/samples.csv` and `/samples.jsonl`, with the parameters of `/samples`; `limit` has no meaning here."""
    store = site.store

    def stream(pairs: Iterable[tuple[str, str]], name: str) -> ASGIApp:
        criteria = site.scope().criteria
        filters = [(name, value) for name, value in pairs if value and name != "limit"]
        query = replace(samples.query_of(filters, now=site.clock(), criteria=criteria), limit=MAX_ROWS + 1)
        entries = store.entries(query)
        since = samples.examined(store, query).get("examined_since")
        first = next(entries, None)  # a store that cannot be read is an error of the whole response
        whole = entries if first is None else chain([first], entries)
        quantities = (*map(str, Quantity), *criteria)
        as_csv, lines = name == CSV_PATH, rows(whole, examined_since=since)
        chunks = csv_chunks(lines, quantities) if as_csv else (dumps(line) + b"\n" for line in lines)
        disposition = f'attachment; filename="{name.strip("/")}"'
        content_type = "text/csv; charset=utf-8" if as_csv else "application/x-ndjson"
        return site.limit.stream(chunks, {"content-type": content_type, "content-disposition": disposition})

    async def serve(request: Request) -> ASGIApp:
        pairs, name = request.query_params.multi_items(), request.scope["path"]
        return await site.limit.answer(partial(stream, pairs, name), RESPONSE_SIZE)

    return [Route(CSV_PATH, serve), Route(JSONL_PATH, serve)]


def rows(
    entries: Iterable[PackedVerdict], *, max_rows: int = MAX_ROWS, examined_since: float | None = None
) -> Iterator[Row]:
    """Yields rows of a download. `error` says what cannot be read; in the last row, why the download is not complete.

    With `examined_since`, older answers were not searched. It is in seconds since the epoch.
    """
    try:
        for number, entry in enumerate(entries):
            if number == max_rows:
                yield {"error": f"more than {max_rows:,} answers: {_NARROW}"}
                break
            shown([entry.verdict.key])
            yield _download_row(entry)
    except StoreError as failure:
        yield {"error": f"the store cannot be read: {failure}"}
    if examined_since is not None:
        yield {"error": f"answers before {_instant(examined_since)} were not searched: {_NARROW}"}


def _download_row(entry: PackedVerdict) -> Row:
    verdict = entry.verdict
    fields: Mapping[str, object] = {}
    whole, error = True, None
    try:
        if entry.sample is not None:
            fields, whole = entry.sample.beginning(TEXT_BYTES)
    except StoreError as damage:
        error = str(damage)
    return {
        "key": verdict.key,
        "answered": _instant(verdict.at),
        "route": verdict.route,
        "judge": verdict.judge,
        "version": verdict.judge_version,
        "outcome": verdict.outcome,
        "reason": verdict.reason,
        "stage": verdict.stage,
        "scores": {str(quantity): score for quantity, score in verdict.scores.items()},
        "probability": verdict.probability,
        "trace_id": verdict.trace_id,
        "question": fields.get("question"),
        "answer": fields.get("answer"),
        "truncated": not whole,
        "error": error,
    }


def _instant(at: float) -> str | None:
    """A time as ISO 8601; None if there is no such date.

    >>> _instant(0.25)
    '1970-01-01T00:00:00.250000+00:00'
    """
    try:
        return datetime.fromtimestamp(at, UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return None


def csv_chunks(lines: Iterable[Row], quantities: Sequence[str]) -> Iterator[bytes]:
    """Yields a header and rows as CSV (RFC 4180), a column for each quantity; what is unknown is empty."""
    yield _encoded((*_PLACE, *quantities, *_END))
    for line in lines:
        scores = cast("Mapping[str, float | None]", line.get("scores", {}))
        yield _encoded([*map(line.get, _PLACE), *map(scores.get, quantities), *map(line.get, _END)])


def _encoded(cells: Iterable[object]) -> bytes:
    written = io.StringIO()
    csv.writer(written, lineterminator="\r\n").writerow(map(cell, cells))
    return written.getvalue().encode("utf-8", "replace")


def cell(value: object) -> object:
    """Returns the value of a cell. What a spreadsheet takes for a formula gets an apostrophe before it.

    A spreadsheet splits a text at semicolons in some countries, and does not heed the quotes around it then: so every
    part of a text is looked at.

    >>> cell("=1+1"), cell(" @x"), cell("a;=1+1"), cell("plain"), cell(0.5), cell(None)
    ("'=1+1", " '@x", "a;'=1+1", 'plain', 0.5, '')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return value
    marked = _FORMULA.sub(_marked, value)
    return f"'{marked}" if value[:1] in ("\t", "\r", "\n") else marked


def _marked(beginning: re.Match[str]) -> str:
    sign = beginning[1] or ""
    return f"{beginning[0].removesuffix(sign)}'{sign}" if sign else beginning[0]
