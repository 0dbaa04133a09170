"""Soak: the real daemon for many minutes under 200 lines/s with rotation, judge faults and scrapes.

python tools/soak.py MINUTES [--out FOLDER]   # or: make soak MINUTES=20

Fails when memory grows after warm-up (linear fit), files stay open, the write-ahead log swells, the tail falls behind,
or the books do not balance. Writes soak.csv and soak.svg.
"""

from __future__ import annotations

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

LINES_A_SECOND = 200
ROTATE_EVERY = 20.0  # seconds
KEPT = 5  # rotated files
WARM_UP = 0.4  # share of the run; caches and the allocator fill for some eight minutes, then memory is level
MOST_RSS_SLOPE = 2.0  # MiB an hour
MOST_WAL = 64.0  # MiB
MOST_LAG = 5.0  # seconds, 99th percentile
MOST_FDS = 4  # more at the end than after warm-up

PASSAGE = "The old mill stands by the river since 1820 and ground corn for the villages around it until the war. "
FILLER = "Water turned the stone for two hundred years before it fell silent, and the miller kept a ledger of it. " * 6


@dataclass(frozen=True)
class Sight:
    """What was seen of the daemon at one moment."""

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
    """A service: 200 lines/s, some of them faults for judge or format. Rotates by rename, and removes old files."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._rng = random.Random(1)
        self.ended = threading.Event()
        self.written = 0

    def run(self) -> None:
        """Write until ended."""
        start = rotated = time.monotonic()
        while not self.ended.wait(0.05):
            now = time.monotonic()
            due = int((now - start) * LINES_A_SECOND) - self.written
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
    """A scrape, and the milliseconds it took."""
    start = time.perf_counter()
    with urllib.request.urlopen(address, timeout=30) as reply:  # noqa: S310 - our own address
        text = reply.read().decode()
    took = (time.perf_counter() - start) * 1e3
    lines = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}, took


def total(series: dict[str, float], name: str) -> float:
    """Sum over all labels of a series."""
    return sum(value for key, value in series.items() if key.partition("{")[0] == name)


def look(process: subprocess.Popen[str], address: str, state: Path, writer: Writer, start: float) -> Sight:
    """One sight."""
    series, took = series_of(address)
    status = Path(f"/proc/{process.pid}/status").read_text()
    rss = next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))
    wal = state / "ragwatch.db-wal"
    return Sight(
        seconds=time.monotonic() - start,
        rss_mib=rss,
        fds=len(list(Path(f"/proc/{process.pid}/fd").iterdir())),
        wal_mib=wal.stat().st_size / 2**20 if wal.exists() else 0.0,
        lag_seconds=total(series, "ragwatch_source_lag_seconds"),
        scrape_ms=took,
        seen=total(series, "ragwatch_requests_seen_total"),
        written=writer.written,
        pending=total(series, "ragwatch_samples_pending"),
        violations=total(series, "ragwatch_invariant_violations_total"),
    )


def run(minutes: float, folder: Path) -> tuple[list[Sight], dict[str, float], int]:
    """The whole soak: all sights, the last scrape when everything was read, and the lines written."""
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
        sights: list[Sight] = []
        try:
            while time.monotonic() - start < minutes * 60:
                time.sleep(1.0)
                sights.append(look(process, address, folder / "state", writer, start))
                if len(sights) % 60 == 0:
                    print(
                        f"{sights[-1].seconds / 60:5.1f} min  {sights[-1].rss_mib:.1f} MiB  {sights[-1].fds} fds",
                        flush=True,
                    )
            writer.ended.set()
            writer.join()
            last = settled(address, writer.written)
        finally:
            writer.ended.set()
            process.terminate()
    return sights, last, writer.written


def settled(address: str, written: int) -> dict[str, float]:
    """The series once everything written has been seen and judged, or after half a minute."""
    end = time.monotonic() + 30
    while True:
        series, _ = series_of(address)
        done = total(series, "ragwatch_requests_seen_total") >= written and series["ragwatch_samples_pending"] == 0
        if done or time.monotonic() > end:
            return series
        time.sleep(0.5)


def verdicts(sights: list[Sight], last: dict[str, float], written: int) -> list[tuple[str, float, float, bool]]:
    """(what, figure, bar, held) for every bar."""
    warm = [each for each in sights if each.seconds > WARM_UP * sights[-1].seconds]
    hours = np.array([each.seconds for each in warm]) / 3600
    slope = float(np.polyfit(hours, np.array([each.rss_mib for each in warm]), 1)[0])
    grown = max(each.fds for each in warm[-len(warm) // 4 :]) - max(each.fds for each in warm[: len(warm) // 4])
    wal = max(each.wal_mib for each in sights)
    lag = float(np.quantile([each.lag_seconds for each in sights], 0.99))
    missing = written - total(last, "ragwatch_requests_seen_total")
    drawn = total(last, "ragwatch_samples_drawn_total")
    settled_draws = total(last, "ragwatch_samples_judged_total") + total(last, "ragwatch_samples_unjudged_total")
    balance = abs(drawn - settled_draws - last["ragwatch_samples_pending"])
    violations = total(last, "ragwatch_invariant_violations_total")
    return [
        ("memory slope, MiB an hour", slope, MOST_RSS_SLOPE, slope <= MOST_RSS_SLOPE),
        ("open files grown", grown, MOST_FDS, grown <= MOST_FDS),
        ("largest write-ahead log, MiB", wal, MOST_WAL, wal <= MOST_WAL),
        ("lag, 99th percentile, s", lag, MOST_LAG, lag <= MOST_LAG),
        ("lines written and not seen", missing, 0, missing == 0),
        ("drawn - judged - unjudged - pending", balance, 0, balance == 0),
        ("invariant violations", violations, 0, violations == 0),
    ]


def plot(sights: list[Sight], path: Path) -> None:
    """Four curves over the minutes, one below the other."""
    width, height, gap, left = 900, 130, 46, 80
    curves = ("rss_mib", "fds", "wal_mib", "lag_seconds", "scrape_ms")
    end = max(sights[-1].seconds, 1.0)
    size = f'width="{width + left + 30}" height="{len(curves) * (height + gap) + 30}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="13">']
    parts.append('<rect width="100%" height="100%" fill="white"/>')
    for index, name in enumerate(curves):
        top = 30 + index * (height + gap)
        values = [float(getattr(each, name)) for each in sights]
        most = max(values) * 1.1 or 1.0
        points = " ".join(
            f"{left + each.seconds / end * width:.1f},{top + height - value / most * height:.1f}"
            for each, value in zip(sights, values, strict=True)
        )
        parts += [
            f'<text x="{left}" y="{top - 8}">{name}</text>',
            f'<text x="{left - 8}" y="{top + 10}" text-anchor="end">{most:.3g}</text>',
            f'<text x="{left - 8}" y="{top + height}" text-anchor="end">0</text>',
            f'<path d="M{left} {top}V{top + height}H{left + width}" fill="none" stroke="#999"/>',
            f'<polyline points="{points}" fill="none" stroke="#1d4ed8" stroke-width="1.5"/>',
            f'<text x="{left + width}" y="{top + height + 16}" text-anchor="end">{end / 60:.0f} min</text>',
        ]
    path.write_text("".join([*parts, "</svg>"]))


def main() -> None:
    """Run, write, print; exit 1 when a bar is broken."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("minutes", type=float)
    options.add_argument("--out", type=Path, default=Path("build/soak"))
    chosen = options.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ragwatch-soak-") as folder:
        sights, last, written = run(chosen.minutes, Path(folder))
    with (chosen.out / "soak.csv").open("w", newline="") as table:
        rows = csv.writer(table)
        rows.writerow([field.name for field in fields(Sight)])
        rows.writerows(astuple(each) for each in sights)
    plot(sights, chosen.out / "soak.svg")
    found = verdicts(sights, last, written)
    print(f"{chosen.minutes:g} minutes, {written} lines written")
    for what, figure, bar, held in found:
        shown = "unknown" if math.isnan(figure) else f"{figure:.2f}"
        print(f"{what:40} {shown:>10}  (at most {bar:g})  {'ok' if held else 'BROKEN'}")
    if not all(held for *_, held in found):
        raise SystemExit("the soak found a fault")


if __name__ == "__main__":
    main()
