"""Soak: the real daemon for many minutes under 200 lines/s with rotation, judge faults and scrapes.

python tools/soak.py MINUTES [--out FOLDER]   # or: make soak MINUTES=20

Fails when memory grows after warm-up (linear fit), files stay open, the write-ahead log swells, the tail falls behind,
or an invariant is violated. Writes soak.csv and soak.svg.
"""

import argparse
import csv
import json
import math
import random
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np

LINES_PER_SECOND = 200
ROTATE_EVERY = 20.0  # seconds
KEPT = 5  # rotated files
WARM_UP = 0.4  # share of the run; caches and the allocator fill for about eight minutes, then memory is level
MAX_RSS_MIB_PER_HOUR = 2.0
MAX_WAL_MIB = 64.0
MAX_LAG_SECONDS = 5.0  # 99th percentile
MAX_FD_GROWTH = 4  # from the end of warm-up to the end

PASSAGE = "The old mill stands by the river since 1820 and ground corn for the villages around it until the war. "
FILLER = "Water turned the stone for two hundred years before it stopped, and the miller kept a ledger of it. " * 6


@dataclass(frozen=True)
class Measurement:
    """Memory, files, lag and counters of the daemon at one moment."""

    seconds: float
    rss_mib: float
    fds: int
    wal_mib: float
    lag_seconds: float
    scrape_ms: float
    seen: float
    written: float
    pending: float
    violations: float


class Writer(threading.Thread):
    """Writes a log at 200 lines/s, some of them invalid for judge or format. Rotates by rename; removes old files."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._rng = random.Random(1)
        self.ended = threading.Event()
        self.written = 0

    def run(self) -> None:
        """Writes until ended."""
        start = rotated = time.monotonic()
        while not self.ended.wait(0.05):
            now = time.monotonic()
            due = int((now - start) * LINES_PER_SECOND) - self.written
            with (self._folder / "rag.jsonl").open("a") as log:
                log.write("".join(self._line() + "\n" for _ in range(due)))
            if now - rotated > ROTATE_EVERY:
                rotated = now
                self._rotate()

    def _line(self) -> str:
        number, chance = self.written, self._rng.random()
        self.written += 1
        if chance < 0.01:
            return '{"torn": '
        answer = "" if chance < 0.02 else "The old mill stands by the river. " + FILLER[: self._rng.randrange(400)]
        if chance > 0.999:
            answer = "The mill stands. " * 600  # more claims than the judge takes: unjudged{reason="too_large"}
        contexts = [
            {"id": f"d{rank}", "text": f"{number}: {PASSAGE}{FILLER}", "score": 1 / (rank + 1)} for rank in range(5)
        ]
        record = {"id": f"r{number}", "question": "Where does the mill stand?", "contexts": contexts, "answer": answer}
        return json.dumps({**record, "at": time.time(), "route": self._rng.choice(("search", "support", "else"))})

    def _rotate(self) -> None:
        for age in range(KEPT, 0, -1):
            older = self._folder / f"rag.jsonl.{age}"
            if older.exists():
                older.unlink() if age == KEPT else older.rename(self._folder / f"rag.jsonl.{age + 1}")
        (self._folder / "rag.jsonl").rename(self._folder / "rag.jsonl.1")


def series_of(address: str) -> tuple[dict[str, float], float]:
    """Scrapes once; returns the series, and the duration in milliseconds."""
    start = time.perf_counter()
    with urllib.request.urlopen(address, timeout=30) as reply:  # noqa: S310 - our own address
        text = reply.read().decode()
    milliseconds = (time.perf_counter() - start) * 1e3
    lines = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}, milliseconds


def total(series: dict[str, float], name: str) -> float:
    """Sum over all labels of a series."""
    return sum(value for key, value in series.items() if key.partition("{")[0] == name)


def measure(process: subprocess.Popen[str], address: str, state: Path, writer: Writer, start: float) -> Measurement:
    """Measures the daemon once."""
    series, milliseconds = series_of(address)
    status = Path(f"/proc/{process.pid}/status").read_text()
    rss = next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))
    wal = state / "ragwatch.db-wal"
    return Measurement(
        seconds=time.monotonic() - start,
        rss_mib=rss,
        fds=len(list(Path(f"/proc/{process.pid}/fd").iterdir())),
        wal_mib=wal.stat().st_size / 2**20 if wal.exists() else 0.0,
        lag_seconds=total(series, "ragwatch_source_lag_seconds"),
        scrape_ms=milliseconds,
        seen=total(series, "ragwatch_requests_seen_total"),
        written=writer.written,
        pending=total(series, "ragwatch_samples_pending"),
        violations=total(series, "ragwatch_invariant_violations_total"),
    )


def run(minutes: float, folder: Path) -> tuple[list[Measurement], dict[str, float], int]:
    """Runs the soak; returns all measurements, the last scrape when everything was read, and the lines written."""
    (folder / "log").mkdir()
    config = folder / "ragwatch.yaml"
    config.write_text(
        f"state: {folder}/state\nweb: {{listen: '127.0.0.1:0'}}\nroutes: [search, support]\nlog: {{level: error}}\n"
        f"sources: [{{kind: tail, name: app, path: '{folder}/log/rag.jsonl', start: beginning}}]\n"
        "sampling: {probability: 0.1}\nretention: {bytes: 32MiB}\n"
    )
    command = [sys.executable, "-m", "ragwatch", "run", "--config", str(config)]
    writer = Writer(folder / "log")
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        address = next(line.split()[2] for line in process.stderr or () if line.startswith("ragwatch serves "))
        threading.Thread(target=lambda: [None for _ in process.stderr or ()], daemon=True).start()
        writer.start()
        start = time.monotonic()
        measurements: list[Measurement] = []
        try:
            while time.monotonic() - start < minutes * 60:
                time.sleep(1.0)
                measurements.append(measure(process, address, folder / "state", writer, start))
                if len(measurements) % 60 == 0:
                    last = measurements[-1]
                    print(f"{last.seconds / 60:5.1f} min  {last.rss_mib:.1f} MiB  {last.fds} fds", flush=True)
            writer.ended.set()
            writer.join()
            final = settled(address, writer.written)
        finally:
            writer.ended.set()
            process.terminate()
    return measurements, final, writer.written


def settled(address: str, written: int) -> dict[str, float]:
    """Waits until everything written was seen and judged, at most 30 s; returns the series."""
    end = time.monotonic() + 30
    while True:
        series, _ = series_of(address)
        done = total(series, "ragwatch_requests_seen_total") >= written and series["ragwatch_samples_pending"] == 0
        if done or time.monotonic() > end:
            return series
        time.sleep(0.5)


def checks(
    measurements: list[Measurement], final: dict[str, float], written: int
) -> list[tuple[str, float, float, bool]]:
    """Compares the measurements with the limits: (name, value, limit, passed) for each."""
    warm = [point for point in measurements if point.seconds > WARM_UP * measurements[-1].seconds]
    hours = np.array([point.seconds for point in warm]) / 3600
    slope = float(np.polyfit(hours, np.array([point.rss_mib for point in warm]), 1)[0])
    grown = max(point.fds for point in warm[-len(warm) // 4 :]) - max(point.fds for point in warm[: len(warm) // 4])
    wal = max(point.wal_mib for point in measurements)
    lag = float(np.quantile([point.lag_seconds for point in measurements], 0.99))
    missing = written - total(final, "ragwatch_requests_seen_total")
    drawn = total(final, "ragwatch_samples_drawn_total")
    settled_draws = total(final, "ragwatch_samples_judged_total") + total(final, "ragwatch_samples_unjudged_total")
    balance = abs(drawn - settled_draws - final["ragwatch_samples_pending"])
    violations = total(final, "ragwatch_invariant_violations_total")
    return [
        ("memory slope, MiB an hour", slope, MAX_RSS_MIB_PER_HOUR, slope <= MAX_RSS_MIB_PER_HOUR),
        ("open files grown", grown, MAX_FD_GROWTH, grown <= MAX_FD_GROWTH),
        ("largest write-ahead log, MiB", wal, MAX_WAL_MIB, wal <= MAX_WAL_MIB),
        ("lag, 99th percentile, s", lag, MAX_LAG_SECONDS, lag <= MAX_LAG_SECONDS),
        ("lines written and not seen", missing, 0, missing == 0),
        ("drawn - judged - unjudged - pending", balance, 0, balance == 0),
        ("invariant violations", violations, 0, violations == 0),
    ]


def plot(measurements: list[Measurement], path: Path) -> None:
    """Plots five curves over time, one below the other, as SVG."""
    width, height, gap, left = 900, 130, 46, 80
    curves = ("rss_mib", "fds", "wal_mib", "lag_seconds", "scrape_ms")
    end = max(measurements[-1].seconds, 1.0)
    size = f'width="{width + left + 30}" height="{len(curves) * (height + gap) + 30}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="13">']
    parts.append('<rect width="100%" height="100%" fill="white"/>')
    for index, name in enumerate(curves):
        top = 30 + index * (height + gap)
        values = [float(getattr(point, name)) for point in measurements]
        maximum = max(values) * 1.1 or 1.0
        points = " ".join(
            f"{left + point.seconds / end * width:.1f},{top + height - value / maximum * height:.1f}"
            for point, value in zip(measurements, values, strict=True)
        )
        parts += [
            f'<text x="{left}" y="{top - 8}">{name}</text>',
            f'<text x="{left - 8}" y="{top + 10}" text-anchor="end">{maximum:.3g}</text>',
            f'<text x="{left - 8}" y="{top + height}" text-anchor="end">0</text>',
            f'<path d="M{left} {top}V{top + height}H{left + width}" fill="none" stroke="#999"/>',
            f'<polyline points="{points}" fill="none" stroke="#1d4ed8" stroke-width="1.5"/>',
            f'<text x="{left + width}" y="{top + height + 16}" text-anchor="end">{end / 60:.0f} min</text>',
        ]
    path.write_text("".join([*parts, "</svg>"]))


def main() -> None:
    """Runs the soak, writes and prints the results; exits with 1 if a limit is exceeded."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("minutes", type=float)
    options.add_argument("--out", type=Path, default=Path("build/soak"))
    arguments = options.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ragwatch-soak-") as folder:
        measurements, final, written = run(arguments.minutes, Path(folder))
    with (arguments.out / "soak.csv").open("w", newline="") as table:
        rows = csv.writer(table)
        rows.writerow([field.name for field in fields(Measurement)])
        rows.writerows(astuple(point) for point in measurements)
    plot(measurements, arguments.out / "soak.svg")
    results = checks(measurements, final, written)
    print(f"{arguments.minutes:g} minutes, {written} lines written")
    for name, value, limit, passed in results:
        shown = "unknown" if math.isnan(value) else f"{value:.2f}"
        print(f"{name:40} {shown:>10}  (at most {limit:g})  {'ok' if passed else 'FAILED'}")
    if not all(passed for *_, passed in results):
        raise SystemExit("the soak exceeded a limit")


if __name__ == "__main__":
    main()
