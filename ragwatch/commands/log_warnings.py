"""Warnings about a log that can be read but is suspicious: unknown routes, keys that nothing has, rejects."""

from __future__ import annotations

import fcntl
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from ragwatch.core.sample import Sample
from ragwatch.errors import FormatError
from ragwatch.formats import canonical
from ragwatch.formats.auto import NAME as AUTO
from ragwatch.formats.custom import KEYS, REQUIRED
from ragwatch.formats.expressions import extractor
from ragwatch.formats.log_fields import log_fields
from ragwatch.formats.log_reader import RecordRules
from ragwatch.formats.record import Line
from ragwatch.formats.shape import Record

JSONL_ADVICE = "write one JSON object per line, each with its newline (of a whole array: jq -c '.[]')"
_MAX_ROUTES_SHOWN = 5
_MAX_COMPARED = 20  # records whose fields are compared with a name
_MAPPED, _SPELT = 0.7, 0.8  # how alike two names are, from 0 to 1, if one is the other with an error
_MIN_NAME_CHARS = 3


def route_warnings(samples: Sequence[Sample], routes: Sequence[str]) -> Iterator[str]:
    """Whether no sample has one of the configured routes."""
    logged = Counter(sample.route for sample in samples if sample.route)
    if (routes or logged) and samples and not any(sample.route in routes for sample in samples):
        names = ", ".join(repr(route) for route, _ in logged.most_common(_MAX_ROUTES_SHOWN))
        advice = f"list the logged ones: {names}" if names else "the records name none; map the field that does"
        yield f"every record is counted in route other; `routes`: {advice}"


def mapping_warnings(rules: RecordRules, records: Sequence[Record]) -> Iterator[str]:
    """Optional keys that are in no record, and how they are probably spelt.

    Args:
        rules: How the records are read.
        records: The records of samples.
    """
    if not records:
        return
    known = [field.path for field in log_fields(records[:_MAX_COMPARED])]
    for key, expression in rules.mapping.items():
        if key in REQUIRED:
            continue
        extract = extractor(f"mapping.{key}", expression)
        if all(_extracted(extract, record) is None for record in records):
            close = get_close_matches(expression, known, n=1, cutoff=_MAPPED)
            yield f"mapping.{key}: {expression!r} is null in every record" + _meant(close)
    if rules.format not in (AUTO, canonical.NAME):
        return
    for name in dict.fromkeys(path for path in known if path not in KEYS and len(path) > _MIN_NAME_CHARS):
        close = get_close_matches(name, KEYS, n=1, cutoff=_SPELT)
        if close and close[0] not in known:
            yield f"the key {name!r} is not read" + _meant(close)


def _extracted(extract: Callable[[Record], object], record: Record) -> object:
    try:
        return extract(record)
    except FormatError:
        return None


def _meant(close: Sequence[str]) -> str:
    return f"; did you mean {close[0]!r}?" if close else ""


def reject_warnings(rejected: int, records: int, limit: float) -> Iterator[str]:
    """Whether the share of rejected records is above the threshold of the alert on rejects."""
    if records and rejected > limit * records:
        yield (
            f"{rejected / records:.1%} of the records are rejected, above alerts.rejects ({limit:.1%}): "
            "RagwatchSourceRejects would fire; if these lines are no answers (health checks, errors), let `where` skip "
            "them; `ragwatch map FILE` proposes the condition"
        )


def incomplete_file(patterns: Sequence[str]) -> str | None:
    """Why no record of the first matching file with content is complete; None when there is no such file."""
    for path in _files(patterns):
        try:
            with path.open("rb") as file:
                start = file.read(4096).lstrip()
        except OSError:
            continue
        if start:
            fault = "is an incomplete JSON array" if start.startswith(b"[") else "has no complete line"
            return f"{path} {fault}, so it has no complete record; {JSONL_ADVICE}"
    return None


def _files(patterns: Sequence[str]) -> Iterator[Path]:
    for pattern in patterns:
        yield from sorted(path for path in Path("/").glob(str(Path(pattern).absolute())[1:]) if path.is_file())


def lock_owner(directory: Path) -> str | None:
    """Process id in the lock file of a state directory, as text; None when the directory is not locked."""
    try:
        lock = os.open(directory / "ragwatch.lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return os.pread(lock, 32, 0).decode("ascii", "replace").strip() or "unknown"
    finally:
        os.close(lock)
    return None


def format_advice(line: Line) -> Iterator[str]:
    """What to do when no line can be read.

    Args:
        line: The first line.
    """
    text = line.lstrip() if isinstance(line, bytes) else b"{"
    if text.startswith(b"["):
        yield f"the file is a JSON array; {JSONL_ADVICE}"
    elif not text.startswith(b"{") and b"{" in text:
        yield "there is text before the JSON; set prefix: auto in this source"
