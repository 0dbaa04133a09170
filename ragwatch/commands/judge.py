"""`ragwatch judge`: JSONL in, one verdict a line out."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ragwatch import formats
from ragwatch.core.estimate import Addends
from ragwatch.core.estimators import hajek
from ragwatch.core.sample import Draw, Sample
from ragwatch.core.sampling import key_of
from ragwatch.core.scores import Quantity
from ragwatch.core.verdict import Judged, Verdict
from ragwatch.core.verdict_line import verdict_line
from ragwatch.errors import FormatError
from ragwatch.formats.record import parse
from ragwatch.judges import KINDS
from ragwatch.pipeline.reading import Reader
from ragwatch.telemetry import Telemetry, configure_logging

TIMEOUT_SECONDS = 120.0
AT_ONCE = 16


class Rows:
    """Samples of JSONL files; rows that cannot be read are told on stderr and counted.

    Args:
        format_name: A preset of `formats`, or `auto`.
    """

    def __init__(self, format_name: str) -> None:
        self._read = formats.build(format_name).read
        self._texts: dict[Path, dict[str, str]] = {}
        self.rejected: Counter[str] = Counter()

    def samples(self, name: str, stream: BinaryIO) -> Iterator[Sample]:
        """The samples of one stream, in its order."""
        folder = Path(name).parent
        for number, line in enumerate(stream, start=1):
            if not line.strip():
                continue
            try:
                record, _ = parse(line.rstrip(b"\r\n"))
                yield self._read(self._filled(record, folder), f"{name}:{number}")
            except FormatError as error:
                self.rejected[error.reason] += 1
                click.echo(f"{name}:{number}: {error.reason}: {error}", err=True)

    def _filled(self, record: dict[str, Any], folder: Path) -> dict[str, Any]:
        """A row of a labelled set that keeps its contexts in a file beside it, with the contexts filled in."""
        references = record.get("context_refs")
        if not isinstance(references, list) or not isinstance(record.get("docs"), str):
            return record
        path = folder / record["docs"]
        if path not in self._texts:
            try:
                self._texts[path] = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError) as error:
                raise FormatError("missing_field", "docs", f"{path.name} cannot be read: {error}") from error
        texts = self._texts[path]
        absent = [each for each in references if each not in texts]
        if absent:
            raise FormatError("missing_field", "context_refs", f"{absent[0]!r} is not in {path.name}")
        return {**record, "contexts": [texts[each] for each in references]}


@click.command()
@click.argument("files", nargs=-1, type=click.File("rb"))
@click.option("--judge", "kind", default="lexical", show_default=True, type=click.Choice(sorted(KINDS)), help="Kind.")
@click.option(
    "--format",
    "format_name",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", *formats.FORMATS]),
    help="Shape of the rows.",
)
def judge(files: Sequence[BinaryIO], kind: str, format_name: str) -> int:
    """Judge the samples in FILES (JSONL; `-` or none is standard input), one verdict JSON a line on stdout.

    A summary goes to stderr. Exit code 1 when a row could not be read as a sample.
    """
    configure_logging("error")
    rows = Rows(format_name)
    streams = files or (sys.stdin.buffer,)
    verdicts = asyncio.run(_judge(rows, streams, kind))
    _summarise(verdicts, rows.rejected)
    return 1 if rows.rejected else 0


async def _judge(rows: Rows, streams: Sequence[BinaryIO], kind: str) -> list[Verdict]:
    telemetry = Telemetry()
    made = KINDS[kind].build(KINDS[kind].Options(), name=kind)
    reader = Reader(made, timeout_seconds=TIMEOUT_SECONDS, telemetry=telemetry)
    verdicts: list[Verdict] = []
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
        for stream in streams:
            samples = list(rows.samples(getattr(stream, "name", "stdin"), stream))
            for first in progress.track(range(0, len(samples), AT_ONCE), description="judging"):
                few = await asyncio.gather(*(reader.read(_draw(each)) for each in samples[first : first + AT_ONCE]))
                for verdict in few:
                    sys.stdout.write(json.dumps(verdict_line(verdict)) + "\n")
                verdicts += few
    await made.close()
    return verdicts


def _draw(sample: Sample) -> Draw:
    return Draw(key_of("judge", sample.id), sample, "judge", "", 1.0, time.time() if sample.at is None else sample.at)


def _summarise(verdicts: Sequence[Verdict], rejected: Counter[str]) -> None:
    table = Table("quantity", "mean", "95 % interval", "answers", title=f"{len(verdicts)} samples")
    for quantity in Quantity:
        scores = [each.scores[quantity] for each in verdicts if isinstance(each, Judged)]
        found = hajek.estimate(Addends.of((score, 1.0) for score in scores if score is not None))
        if found is None:
            table.add_row(quantity, "unknown", "", "0")
        else:
            table.add_row(quantity, f"{found.value:.3f}", f"{found.low:.3f} .. {found.high:.3f}", str(found.n))
    console = Console(stderr=True)
    console.print(table)
    unjudged = Counter(str(each.reason) for each in verdicts if not isinstance(each, Judged))
    stages = Counter(str(each.stage) for each in verdicts if isinstance(each, Judged))
    for title, counts in (("stage", stages), ("unjudged", unjudged), ("rejected", rejected)):
        if counts:
            console.print(f"{title}: " + ", ".join(f"{name} {count}" for name, count in counts.most_common()))
