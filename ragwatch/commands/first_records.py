"""Reads the first records of a source, for `ragwatch check`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from ragwatch.core.snapshot import Lag
from ragwatch.core.tally import Tally
from ragwatch.ports import Batch, Source
from ragwatch.ports.capabilities import Finishes


class FirstRecords(NamedTuple):
    """The beginning of a source.

    Attributes:
        batch: The first batch with records; None if there is none.
        lag: How far the source is behind.
        parts: Number of parts of requests that were read, by outcome.
    """

    batch: Batch | None
    lag: Lag
    parts: Mapping[str, float]


def first_records(source: Source) -> FirstRecords:
    """Read a source from its beginning up to its first records, and close it.

    Raises:
        SourceError: It cannot be read.
    """
    parts: Counter[str] = Counter()
    try:
        source.resume({})
        if isinstance(source, Finishes):
            source.finish()
        while (batch := source.read()) is not None:
            for (tally, labels), number in batch.tallies.items():
                if tally is Tally.PARTS:
                    parts[labels[1]] += int(number)
            if batch.lines:
                break
            source.commit(batch)
        return FirstRecords(batch, source.lag(), parts)
    finally:
        source.close()
