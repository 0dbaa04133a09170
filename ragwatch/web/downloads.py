"""Streams the verdicts of a search as CSV or JSONL, one row at a time."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from ragwatch.ports import PackedVerdict
from ragwatch.web import samples
from ragwatch.web.audit_trail import shown
from ragwatch.web.json_body import dumps
from ragwatch.web.pages.pages import Site
from ragwatch.web.request_limit import MIB

CSV_PATH, JSONL_PATH = "/samples.csv", "/samples.jsonl"
MAX_ROWS = 10_000
TEXT_BYTES = 1 << 20  # of one sample
RESPONSE_SIZE = 8 * MIB  # approximate memory for one response
_PLACE = ("key", "answered", "route", "judge", "version", "outcome", "reason", "stage")
_END = ("probability", "trace_id", "question", "answer", "truncated", "error")
# In any cell that a comma, semicolon, tab, bar or newline begins. The classes are disjoint: linear time.
_FORMULA = re.compile(r"(?:^|[,;|\t\r\n])[,;|\s\"\x00-\x1f\xad\u200b-\u200f\u2060\ufeff]*([=+\-@＝＋－＠﹦﹢﹣﹫])?")
_NARROW = "narrow the search, or download it in parts with `since` and `until`"


Row = Mapping[str, object]
"""A row of a download; the one that says why the download is not complete has nothing but `error`."""


def download_routes(site: Site) -> list[Route]:
    """Routes `/samples.csv` and `/samples.jsonl`, with the parameters of `/samples`; `limit` has no meaning here."""
    store = site.store

    def stream(pairs: Iterable[tuple[str, str]], name: str) -> ASGIApp:
        criteria = site.scope().criteria
        filters = [(name, value) for name, value in pairs if value and name != "limit"]
        query = replace(samples.query_of(filters, now=site.clock(), criteria=criteria), limit=MAX_ROWS + 1)
        entries = iter(()) if store is None else store.entries(query)
        since = None if store is None else samples.examined(store, query).get("examined_since")
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
            yield _row(entry)
    except StoreError as failure:
        yield {"error": f"the store cannot be read: {failure}"}
    if examined_since is not None:
        yield {"error": f"answers before {_instant(examined_since)} were not searched: {_NARROW}"}


def _row(entry: PackedVerdict) -> Row:
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
        cells = [*map(line.get, _PLACE), *map(scores.get, quantities), *map(line.get, _END)]
        yield _encoded(cells)


def _encoded(cells: Iterable[object]) -> bytes:
    written = io.StringIO()
    csv.writer(written, lineterminator="\r\n").writerow(cell(value) for value in cells)
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
