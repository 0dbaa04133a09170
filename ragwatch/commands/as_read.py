"""Shows samples as they were read, below the records that they were read from, for `init --print` and `check`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import orjson

from ragwatch.commands.terminal import printable
from ragwatch.core.sample import Sample
from ragwatch.formats.shape import Record
from ragwatch.formats.suspicion import example

MAX_SHOWN = 3
_MAX_RECORD_CHARS = 160


def as_read(record: Record, sample: Sample) -> Iterator[str]:
    """Yield lines that show a record and the sample that was read from it."""
    text = orjson.dumps(record, default=str).decode("utf-8", "replace")
    yield "record: " + printable(text if len(text) <= _MAX_RECORD_CHARS else f"{text[:_MAX_RECORD_CHARS]}...")
    yield "  question: " + ("not read" if sample.question is None else printable(example(sample.question)))
    passages = ", ".join(printable(example(context.text)) for context in sample.contexts[:MAX_SHOWN])
    yield f"  contexts: {len(sample.contexts)}" + (f": {passages}" if passages else "")
    yield f"  answer: {printable(example(sample.answer))}"
    moment = None if sample.at is None else f"{datetime.fromtimestamp(sample.at, UTC):%Y-%m-%d %H:%M:%S} UTC"
    known = {"id": sample.id, "at": moment, "route": sample.route}
    yield "  " + ", ".join(f"{name}: {printable(str(value))}" for name, value in known.items() if value)
