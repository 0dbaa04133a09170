"""T1: kill -9 at random while a writer appends and rotates. Every line is counted once, none twice, none lost."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import pytest
from functional.daemon import RagwatchProcess, record, write_config

LINES_A_SECOND = 400


class Writer(threading.Thread):
    """Appends numbered lines, some in two pieces, and rotates by rename now and then. Files are never removed."""

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__()
        self._folder = folder
        self._rng = random.Random(seed)
        self._ended = threading.Event()
        self.written = 0
        self.rotations = 0

    def run(self) -> None:
        """Write until ended."""
        while not self._ended.wait(0.02):
            with (self._folder / "rag.jsonl").open("a", buffering=1) as log:
                for _ in range(self._rng.randrange(2 * LINES_A_SECOND // 50)):
                    self._append(log.write, log.flush)
            if self._rng.random() < 0.02:
                self.rotations += 1
                (self._folder / "rag.jsonl").rename(self._folder / f"rag.jsonl.{self.rotations}")

    def _append(self, write: object, flush: object) -> None:
        line = record(self.written) + "\n"
        cut = self._rng.randrange(len(line)) if self._rng.random() < 0.3 else len(line)
        for piece in (line[:cut], line[cut:]):
            write(piece)  # type: ignore[operator]
            flush()  # type: ignore[operator]
        self.written += 1

    def end(self) -> None:
        """Finish the line under way, and stop."""
        self._ended.set()
        self.join()


def _kill_at_random(tmp_path: Path, kills: int) -> None:
    rng = random.Random(kills)
    config = write_config(tmp_path, sources=f"[{{kind: tail, name: app, path: '{tmp_path}/log/*', start: beginning}}]")
    writer = Writer(tmp_path / "log", seed=kills)
    writer.start()
    try:
        for _ in range(kills):
            with RagwatchProcess(config) as ragwatch:
                time.sleep(rng.uniform(0.4, 1.4))
                assert ragwatch.process.poll() is None, "it ended by itself"
                ragwatch.kill()
    finally:
        writer.end()
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        judged = 'ragwatch_samples_judged_total{judge="embedded",route="search"}'
        series = ragwatch.wait_for(judged, writer.written)
        assert series['ragwatch_requests_seen_total{source="app"}'] == writer.written
        assert series['ragwatch_samples_drawn_total{route="search"}'] == writer.written
        assert series["ragwatch_samples_pending"] == 0
        rejected = [value for name, value in series.items() if name.startswith("ragwatch_requests_rejected")]
        assert sum(rejected) == 0
        assert writer.rotations > 0


def test_t01_kill_9_at_random(tmp_path: Path) -> None:
    """T1, the short loop: 20 kills."""
    _kill_at_random(tmp_path, 20)


@pytest.mark.slow
def test_t01_kill_9_a_hundred_times(tmp_path: Path) -> None:
    """T1, the acceptance line: 100 kills."""
    _kill_at_random(tmp_path, 100)
