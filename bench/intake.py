"""Intake: tail + parse + format + sampling decision + signals + commit, beside a bare json.loads loop on the same file.

Prints lines a second of CPU time of both, their ratio (medians of interleaved rounds), and where the rest goes.
"""

import argparse
import asyncio
import gc
import json
import shutil
import statistics
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from ragwatch import formats
from ragwatch.daemon.process import limit_malloc_arenas
from ragwatch.formats.log_reader import LogReader, RecordRules
from ragwatch.formats.record import parse
from ragwatch.pipeline.intake import IntakeLoop, IntakeRules
from ragwatch.pipeline.vocabularies import Vocabularies
from ragwatch.ports import LoopContext
from ragwatch.redaction.redactor import Redactor
from ragwatch.sources.tail.options import Options
from ragwatch.sources.tail.source import TailSource
from ragwatch.statistics.sampling import SamplingPlan, key_of
from ragwatch.statistics.signals import RepeatedAnswers, SignalCounter
from ragwatch.statistics.text.vocabulary import NoveltyMeter, Vocabulary, learn
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry

FLOOR = 0.5
WORDS = [
    "the",
    "river",
    "bends",
    "below",
    "an",
    "old",
    "mill",
    "where",
    "water",
    "turned",
    "stone",
    "for",
    "two",
    "hundred",
    "years",
    "before",
    "it",
    "fell",
    "silent",
]


def write_log(path: Path, lines: int) -> None:
    """Canonical records of about 4 KB: five contexts of some 650 characters, an answer of some 450."""
    passage = " ".join(WORDS * 7)[:650]
    with path.open("w") as log:
        for number in range(lines):
            contexts = [
                {"id": f"d{number}-{rank}", "text": f"{rank}{number} {passage}", "score": 0.9} for rank in range(5)
            ]
            record = {
                "id": f"request-{number}",
                "at": "2026-01-01T00:00:00Z",
                "question": f"What happened to mill {number}?",
                "contexts": contexts,
                "answer": passage[:450],
                "route": "search",
                "metadata": {"trace_id": f"{number:032x}"},
            }
            log.write(json.dumps(record) + "\n")


def floor(path: Path) -> int:
    """The bare loop."""
    seen = 0
    with path.open("rb") as log:
        for line in log:
            json.loads(line)
            seen += 1
    return seen


def intake(path: Path, state: Path) -> int:
    """Our whole way, from the file to the committed cursor."""
    store = SqliteStore(state)
    source = TailSource(Options(name="app", path=str(path), start="beginning"))
    source.resume({})
    words = Vocabularies(1, ("search",), store=store)  # learnt after the first batch, as it is for months
    words.resume()
    rules = IntakeRules(
        SamplingPlan(0.01, known_routes=frozenset({"search"})),
        {"embedded": 1.0},
        Redactor(),
        max_pending=10**9,
        vocabularies=words,
    )
    loop = IntakeLoop(source, LogReader(RecordRules()), rules, LoopContext(store, Telemetry(), time.time))

    async def drain() -> None:
        while await loop.step():
            pass

    asyncio.run(drain())
    seen = sum(int(value) for (tally, _), value in store.tallies().items() if tally == "seen")
    source.close()
    store.close()
    return seen


def rate(work: Callable[[], int], lines: int) -> float:
    """Lines a second of CPU time of one round, which a busy machine stretches less than wall time."""
    start = time.process_time()
    if work() != lines:
        raise SystemExit("a round lost lines")
    return lines / (time.process_time() - start)


def shares(path: Path) -> list[tuple[str, float]]:
    """Microseconds a line of each part alone."""
    lines = path.read_bytes().splitlines()
    records = [parse(line)[0] for line in lines]
    read = formats.build("auto").read
    samples = [read(record, "x") for record in records]
    questions = [sample.question for sample in samples if sample.question]
    meter = NoveltyMeter(learn(Vocabulary(), questions[:5000]))
    signals = SignalCounter({"search": meter}, RepeatedAnswers())
    parts: list[tuple[str, Iterable[object]]] = [
        ("parse (orjson)", (parse(line) for line in lines)),
        ("format", (read(record, "x") for record in records)),
        ("identity (hash)", (key_of("app", sample.id) for sample in samples)),
        ("signals", map(partial(signals.add, "search"), samples)),
    ]
    found = []
    gc.disable()  # what is kept here for measuring would be walked again and again
    for name, work in parts:
        start = time.perf_counter()
        deque(work, maxlen=0)
        found.append((name, (time.perf_counter() - start) / len(lines) * 1e6))
    gc.enable()
    return found


def main() -> None:
    """Run and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--lines", type=int, default=60_000)
    options.add_argument("--rounds", type=int, default=5)
    chosen = options.parse_args()
    limit_malloc_arenas()  # as the daemon does
    folder = Path(tempfile.mkdtemp(prefix="ragwatch-bench-"))
    try:
        path = folder / "log.jsonl"
        write_log(path, chosen.lines)
        size = path.stat().st_size / chosen.lines
        bare, ours = [], []
        for number in range(chosen.rounds):
            bare.append(rate(lambda: floor(path), chosen.lines))
            state = folder / f"state{number}"
            ours.append(rate(lambda state=state: intake(path, state), chosen.lines))  # type: ignore[misc]
        low, high = statistics.median(bare), statistics.median(ours)
        print(f"{chosen.lines} lines of {size:.0f} bytes, p = 0.01, medians of {chosen.rounds} interleaved rounds")
        print(f"bare json.loads loop  {low:>10,.0f} lines/s  {1e6 / low:6.1f} us a line")
        print(f"intake                {high:>10,.0f} lines/s  {1e6 / high:6.1f} us a line")
        print(f"ratio                 {high / low:>10.2f}  (floor {FLOOR})")
        known = shares(path)
        for name, cost in known:
            print(f"  of which {name:<18}{cost:6.1f} us")
        print(f"  the rest (read, batch, draw, commit){1e6 / high - sum(cost for _, cost in known):6.1f} us")
        if high / low < FLOOR:
            raise SystemExit(f"intake is slower than {FLOOR} x the bare loop")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
