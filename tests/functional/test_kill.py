"""T1: kill -9 at random while a log is written and rotated. Every line is counted once, none twice, none lost."""

import os
import random
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import TextIO

import pytest
from functional.daemon import DRAWN, JUDGED, SEEN, RagwatchProcess, record, write_config
from support.patience import DEADLINE
from support.programs import installed

LINES_A_SECOND, LINES_A_SECOND_FOR_LONG = 200, 100


class Writer(threading.Thread):
    """Appends numbered lines, some in two pieces, and rotates by rename now and then. Files are never removed."""

    def __init__(self, folder: Path, seed: int, lines_a_second: int = LINES_A_SECOND) -> None:
        super().__init__()
        self._folder = folder
        self._most_lines = 2 * lines_a_second // 50
        self._rng = random.Random(seed)
        self._ended = threading.Event()
        self.written = 0
        self.rotations = 0

    def run(self) -> None:
        """Write until ended."""
        while not self._ended.wait(0.02):
            with self.open() as log:
                for _ in range(self._rng.randrange(self._most_lines)):
                    line = record(self.written) + "\n"
                    cut = self._rng.randrange(len(line)) if self._rng.random() < 0.3 else len(line)
                    for piece in (line[:cut], line[cut:]):
                        log.write(piece)
                        log.flush()
                    self.written += 1
            self.rotate()

    def open(self) -> TextIO:
        """The log, begun anew where there is none."""
        return (self._folder / "rag.jsonl").open("a")

    def rotate(self) -> None:
        """Rename now and then, between two batches."""
        if self._rng.random() < 0.02:
            self.rotations += 1
            (self._folder / "rag.jsonl").rename(self._folder / f"rag.jsonl.{self.rotations}")

    def end(self) -> None:
        """Finish the line under way, and stop."""
        self._ended.set()
        self.join()


class LogrotateWriter(Writer):
    """The same service, its log rotated by Debian's logrotate whenever that pleases, in the middle of a batch too."""

    def __init__(self, folder: Path, seed: int, lines_a_second: int = LINES_A_SECOND) -> None:
        super().__init__(folder, seed, lines_a_second)
        self._program = installed("logrotate")
        self._rules = folder.parent / "logrotate.conf"
        self._rules.write_text(f"{folder}/rag.jsonl {{\n  rotate 5000\n  create 0644\n  missingok\n}}\n")
        self._turns = threading.Thread(target=self._turn)

    def _turn(self) -> None:
        command = [self._program, "--force", "--state", str(self._rules.with_suffix(".state")), str(self._rules)]
        while not self._ended.wait(self._rng.uniform(0.3, 1.5)):
            subprocess.run(command, check=True, capture_output=True, timeout=DEADLINE)
            self.rotations += 1

    def open(self) -> TextIO:
        """The log that logrotate has created.

        Whoever begins one of his own in that instant finds it renamed to `.backup`, over the one of the same hour.
        """
        end = time.monotonic() + DEADLINE
        while True:
            try:
                return os.fdopen(os.open(self._folder / "rag.jsonl", os.O_WRONLY | os.O_APPEND), "a")
            except FileNotFoundError:
                assert time.monotonic() < end, "logrotate has created no log"
                time.sleep(0.001)

    def run(self) -> None:
        """Write and rotate until ended."""
        (self._folder / "rag.jsonl").touch()
        self._turns.start()
        super().run()
        self._turns.join()

    def rotate(self) -> None:
        """That is logrotate's affair."""


def _until_judged(ragwatch: RagwatchProcess, lines: int) -> dict[str, float]:
    """The series once so many samples are judged, or none for a while: after a long loop the judge has a backlog."""
    series: dict[str, float] = {}
    judged, since = -1.0, 0.0
    while judged < lines:
        series = ragwatch.series()
        if (done := series.get(JUDGED, 0.0)) > judged:
            judged, since = done, time.monotonic()
        elif time.monotonic() - since > DEADLINE:
            break
        time.sleep(0.2)
    return series


def _check(ragwatch: RagwatchProcess, writer: Writer, kills: int) -> None:
    """All books equal what was written; the figures are printed."""
    series = _until_judged(ragwatch, writer.written)
    rejected = sum(value for name, value in series.items() if name.startswith("ragwatch_requests_rejected"))
    seen, drawn = int(series[SEEN]), int(series[DRAWN])
    print(
        f"{kills} kills, {writer.rotations} rotations: {writer.written} lines written, {seen} seen, "
        f"{max(0, writer.written - drawn)} lost, {max(0, seen - writer.written)} doubled, {rejected:.0f} malformed"
    )
    assert (seen, drawn, rejected, series["ragwatch_samples_pending"]) == (writer.written, writer.written, 0, 0)
    assert series['ragwatch_invariant_violations_total{law="assigned_are_settled_or_pending"}'] == 0
    assert writer.rotations > 0


def _watching(folder: Path) -> Path:
    source = f"[{{kind: tail, name: app, path: '{folder}/log/rag.jsonl', start: beginning}}]"
    return write_config(folder, sources=source)


@pytest.mark.parametrize(
    ("kind", "kills", "lines_a_second"),
    [
        (Writer, 2, LINES_A_SECOND),
        (LogrotateWriter, 4, LINES_A_SECOND),
        pytest.param(LogrotateWriter, 50, LINES_A_SECOND, marks=pytest.mark.slow),
        pytest.param(
            LogrotateWriter, 500, LINES_A_SECOND_FOR_LONG, marks=[pytest.mark.slow, pytest.mark.ends_after(1800)]
        ),
    ],
)
def test_t01_kill_9_at_random(tmp_path: Path, kind: type[Writer], kills: int, lines_a_second: int) -> None:
    """T1: the service rotates by itself, or logrotate does."""
    rng = random.Random(kills)
    config = _watching(tmp_path)
    with RagwatchProcess(config).wait_until_serving() as ragwatch:  # what is written from now on is its affair
        ragwatch.wait_for('ragwatch_source_lag_bytes{source="app"}', 0)
    writer = kind(tmp_path / "log", kills, lines_a_second)
    writer.start()
    try:
        for _ in range(kills):
            with RagwatchProcess(config) as ragwatch:
                time.sleep(rng.uniform(0.4, 1.2))
                assert ragwatch.process.poll() is None, "it ended by itself"
                ragwatch.kill()
    finally:
        writer.end()
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        _check(ragwatch, writer, kills)


@pytest.mark.parametrize(
    ("seconds", "lines_a_second"),
    [(2.0, LINES_A_SECOND), pytest.param(120.0, LINES_A_SECOND_FOR_LONG, marks=pytest.mark.slow)],
)
def test_a_daemon_that_was_stopped_for_a_while_catches_up(tmp_path: Path, seconds: float, lines_a_second: int) -> None:
    """SIGSTOP while lines are written and files rotate: all are counted after SIGCONT.

    120 s are longer than every timeout of its own.
    """
    writer = Writer(tmp_path / "log", 3, lines_a_second)
    with RagwatchProcess(_watching(tmp_path)).wait_until_serving() as ragwatch:
        writer.start()
        try:
            time.sleep(1.0)
            ragwatch.signal(signal.SIGSTOP)
            time.sleep(seconds)  # the test is about this pause
            ragwatch.signal(signal.SIGCONT)
            time.sleep(1.0)
        finally:
            writer.end()
        _check(ragwatch, writer, 0)
