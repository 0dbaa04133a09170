"""A source of kind `join` as intake drives it: files of parts, batches that are stored, kills."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from ragwatch.ports import Batch, Part
from ragwatch.sources.join import JoinSource, Options
from ragwatch.statistics.tally import Tally
from support.kit import AT, Clock


def options(folder: Path | str = "/none", **changes: Any) -> Options:
    """Options that join two files."""
    inner = [
        {"kind": "tail", "name": name, "path": f"{folder}/{name}.jsonl", "scan_seconds": 0}
        for name in ("asked", "answered")
    ]
    return Options.model_validate({"name": "app", "of": inner, "by": "request_id", "start": "beginning", **changes})


def write(folder: Path, name: str, *rows: Any) -> None:
    """Append rows to a file."""
    with (folder / f"{name}.jsonl").open("a") as file:
        file.writelines(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows)


class Reading:
    """What intake does with a source: batches are stored with their parts, and counted."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        self.options, self.clock = options(folder, **changes), Clock(AT)
        self.cursors: dict[str, str] = {}
        self.stored: dict[tuple[str, str], Part] = {}
        self.tallies: Counter[Any] = Counter()
        self.records: list[dict[str, Any]] = []
        self.rejected: list[str] = []
        self.source = self.opened()

    def opened(self) -> JoinSource:
        """The source after a start."""
        source = JoinSource(self.options, self.clock, lambda: AT)
        source.resume(self.cursors)
        source.restore(self.stored.values())
        return source

    def kill(self) -> None:
        """End without a word, and start again."""
        self.source.close()
        self.source = self.opened()

    def read(self) -> list[dict[str, Any]]:
        """Read until nothing is new; returns the new records."""
        before = len(self.records)
        while (batch := self.source.read()) is not None:
            assert self.source.read() is batch
            self.admit(batch)
            self.source.commit(batch)
        return self.records[before:]

    def admit(self, batch: Batch) -> None:
        """Store a batch."""
        for part in batch.hold:
            self.stored.setdefault((part.group, part.name), part)
        self.stored = {key: part for key, part in self.stored.items() if key[0] not in batch.release}
        self.cursors[batch.stream] = batch.cursor
        self.tallies += Counter(batch.tallies)
        self.records += [line if isinstance(line, dict) else json.loads(line) for line in batch.lines]
        self.rejected += [f"{rejection.reason} {rejection.field}" for rejection in batch.rejections]

    def outcomes(self) -> dict[str, float]:
        """Parts by outcome."""
        return {labels[1]: count for (tally, labels), count in self.tallies.items() if tally is Tally.PARTS}
