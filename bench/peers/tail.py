"""Following a log: our intake, and GNU `tail -F` with a json.loads loop, on the same log.

Speed is lines a second of CPU time, of both processes for tail. Ours does more with a line: it also reads the format,
decides whether to sample it, counts its signals and commits a cursor. Then a writer rotates its log every 500 lines,
and the reader is killed with SIGKILL twice in 1,000 lines and started again 100 or 200 lines later; the log is rotated
in the second gap. Lines that never came are lost, those that came more than once are duplicates.

Vector is not measured: under its name neither Debian nor PyPI nor npm has a package of it.
"""

import argparse
import json
import os
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Protocol

import intake
from peers.page import Bar, Chart, Part, figure

from ragwatch.statistics.sampling import key_of

LINES_BETWEEN_ROTATIONS = 500
KILLS = {150: 250, 400: 600}
"""Of every 1,000 lines: at which the reader is killed and started again; one gap has a rotation in it, one has none."""
PAUSE, PATIENCE, CALM = 0.02, 120.0, 3.0
"""Seconds that the writer waits after ten lines; that a reader may take; without news after which it has finished."""
MOST_CPU_LOOP = """
import json, sys, time
wanted, seen, start = int(sys.argv[1]), 0, time.process_time()
for line in sys.stdin.buffer:
    json.loads(line)
    seen += 1
    if seen == wanted:
        break
print(time.process_time() - start)
"""
LOOP = """
import json, os, sys
with open(sys.argv[1], "ab", buffering=0) as seen:
    for line in sys.stdin.buffer:
        seen.write(json.loads(line)["id"].encode() + b"\\n")
"""


def tail_cpu(path: Path, lines: int) -> float:
    """CPU seconds of tail and of the loop behind it."""
    command = ["tail", "-n", "+1", "-F", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as tail:
        loop = subprocess.run(
            [sys.executable, "-c", MOST_CPU_LOOP, str(lines)],
            stdin=tail.stdout,
            capture_output=True,
            text=True,
            check=True,
        )
        tail.terminate()
        _, _, used = os.wait4(tail.pid, 0)
        tail.returncode = 0
    return float(loop.stdout) + used.ru_utime + used.ru_stime


def speeds(lines: int, rounds: int) -> dict[str, float]:
    """Lines a second of CPU time; medians of interleaved rounds."""
    folder = Path(tempfile.mkdtemp(prefix="ragwatch-bench-"))
    try:
        path = folder / "log.jsonl"
        intake.write_log(path, lines)
        rates: dict[str, list[float]] = {"tail": [], "json.loads": [], "ragwatch": []}
        for number in range(rounds):
            state = folder / f"state{number}"
            rates["tail"].append(lines / tail_cpu(path, lines))
            rates["json.loads"].append(intake.rate(lambda: intake.floor(path), lines))
            rates["ragwatch"].append(intake.rate(lambda state=state: intake.intake(path, state), lines))  # type: ignore[misc]
        return {name: statistics.median(some) for name, some in rates.items()}
    finally:
        shutil.rmtree(folder)


class Reader(Protocol):
    """A reader that can be killed and started again."""

    def start(self) -> None:
        """Start, and return when it follows the log."""
        ...

    def kill(self) -> None:
        """End it with SIGKILL."""
        ...

    def seen(self) -> tuple[int, int]:
        """Lines seen, and different ones among them."""
        ...


class TailLoop:
    """GNU tail with a loop behind it.

    Args:
        folder: Where the log is.
        first: Its option -n: `0` skips what is there at its start, `+1` reads it all.
    """

    def __init__(self, folder: Path, first: str) -> None:
        self._folder, self._first = folder, first
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start both in a process group of their own."""
        seen = self._folder / "seen"
        log = self._folder / "log.jsonl"
        self._process = subprocess.Popen(
            [
                "sh",
                "-c",
                'tail -n "$1" -F "$2" 2>/dev/null | exec "$3" -c "$4" "$5"',
                "sh",
                self._first,
                str(log),
                sys.executable,
                LOOP,
                str(seen),
            ],
            start_new_session=True,
        )
        wait_until(seen.exists)
        time.sleep(0.3)

    def kill(self) -> None:
        """End the group."""
        if self._process:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def seen(self) -> tuple[int, int]:
        """From the list of the loop."""
        ids = (self._folder / "seen").read_bytes().splitlines()
        return len(ids), len(set(ids))


class Daemon:
    """ragwatch, sampling every line, so that its store knows which it saw."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None
        (folder / "ragwatch.yaml").write_text(
            f"state: {folder}/state\nweb: {{listen: '127.0.0.1:0'}}\nsampling: {{probability: 1.0}}\n"
            f"sources: [{{kind: tail, name: app, path: '{folder}/log.jsonl', start: beginning}}]\n"
        )

    def start(self) -> None:
        """Start the daemon."""
        command = [sys.executable, "-m", "ragwatch", "run", "--config", str(self._folder / "ragwatch.yaml")]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        next(line for line in self._process.stderr or () if line.startswith("ragwatch serves "))

    def kill(self) -> None:
        """End it."""
        if self._process:
            self._process.kill()
            self._process.communicate()

    def seen(self) -> tuple[int, int]:
        """The tally of lines seen, and the different samples in the store."""
        with closing(sqlite3.connect(self._folder / "state" / "ragwatch.db")) as store:
            lines = store.execute("SELECT sum(value) FROM tallies WHERE name = 'seen'").fetchone()[0] or 0
            keys = {key for (key,) in store.execute("SELECT key FROM samples")}
        wrote = (self._folder / "written").read_text().split()
        return int(lines), sum(key_of("app", name) in keys for name in wrote)


def wait_until(done: Callable[[], bool]) -> None:
    """Wait for a condition."""
    end = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > end:
            raise SystemExit("a reader of the log did not start in time")
        time.sleep(0.05)


class Writer:
    """A service that logs and rotates.

    Args:
        copies: It copies the log and empties it (`copytruncate`), where others rename it and begin a new one.
    """

    def __init__(self, folder: Path, *, copies: bool) -> None:
        self._log, self._copies = folder / "log.jsonl", copies
        self._names = folder / "written"
        self._count = 0
        self._file = self._log.open("ab", buffering=0)

    def write(self) -> None:
        """One line."""
        record = {
            "id": f"r{self._count}",
            "question": f"Where does mill {self._count} stand?",
            "contexts": [
                {"text": f"Mill {self._count} stands by the river since 1820 and ground corn for the villages."}
            ],
            "answer": f"Mill {self._count} stands by the river.",
        }
        self._file.write(json.dumps(record).encode() + b"\n")
        with self._names.open("a") as names:
            names.write(f"r{self._count}\n")
        self._count += 1

    def rotate(self) -> None:
        """Set the log aside."""
        aside = self._log.with_name(f"log.jsonl.{self._count}")
        if self._copies:
            shutil.copyfile(self._log, aside)
            self._file.truncate(0)
            return
        self._file.close()
        self._log.rename(aside)
        self._file = self._log.open("ab", buffering=0)


def losses(make: Callable[[Path], Reader], lines: int, *, copies: bool) -> dict[str, int]:
    """Lines lost and read twice by a reader that is killed."""
    folder = Path(tempfile.mkdtemp(prefix="ragwatch-bench-"))
    reader = make(folder)
    try:
        writer = Writer(folder, copies=copies)
        reader.start()
        kills = 0
        for number in range(lines):
            if number and number % LINES_BETWEEN_ROTATIONS == 0:
                writer.rotate()
            place = number % (2 * LINES_BETWEEN_ROTATIONS)
            if place in KILLS:
                reader.kill()
                kills += 1
            if place in KILLS.values():
                reader.start()
            writer.write()
            if number % 10 == 0:
                time.sleep(PAUSE)
        seen, different = _settled(reader)
        return {"lines": lines, "kills": kills, "lost": lines - different, "twice": seen - different}
    finally:
        with suppress(ProcessLookupError):
            reader.kill()
        shutil.rmtree(folder)


def _settled(reader: Reader) -> tuple[int, int]:
    """What the reader has seen once nothing more comes."""
    seen, since = reader.seen(), time.monotonic()
    while time.monotonic() - since < CALM:
        time.sleep(0.2)
        now = reader.seen()
        if now != seen:
            seen, since = now, time.monotonic()
    return seen


READERS: dict[str, Callable[[Path], Reader]] = {
    "ragwatch": Daemon,
    "tail -n 0 -F and a loop": lambda folder: TailLoop(folder, "0"),
    "tail -n +1 -F and a loop": lambda folder: TailLoop(folder, "+1"),
}


def measure(chosen: argparse.Namespace) -> dict[str, Any]:
    """Speed, then losses."""
    rates = speeds(chosen.lines, chosen.rounds)
    print(rates, flush=True)
    rows = []
    for copies in (False, True):
        for name, make in READERS.items():
            rows.append({"reader": name, "copies": copies, **losses(make, chosen.killed_lines, copies=copies)})
            print(rows[-1], flush=True)
    return {"rates": rates, "rows": rows, "lines": chosen.lines}


def part(results: dict[str, Any]) -> Part:
    """The table, and bars of the losses."""
    rates = results["rates"]
    speed = {
        "ragwatch": f"{rates['ragwatch'] / rates['tail']:.2f}× ({rates['ragwatch']:,.0f})",
        "tail": f"1.00× ({rates['tail']:,.0f})",
    }
    lines = [
        "| reader | lines a second of CPU | renamed: lost | read twice | copied and emptied: lost | read twice |",
        "|---" * 6 + "|",
    ]
    rows = {(row["reader"], row["copies"]): row for row in results["rows"]}
    for name in READERS:
        cells = [f"{rows[name, copies][what]:,}" for copies in (False, True) for what in ("lost", "twice")]
        lines.append(f"| {name} | {speed[name.partition(' ')[0]]} | {' | '.join(cells)} |")
    lines.append(
        f"| bare `json.loads` over the file | {rates['json.loads'] / rates['tail']:.2f}× "
        f"({figure(rates['json.loads'])}) | | | | |"
    )
    groups = [
        (
            f"of {row['lines']:,} lines, {row['kills']} kills, {'copied and emptied' if copies else 'renamed'}: {what}",
            [Bar(name, float(rows[name, copies][key])) for name in READERS],
        )
        for copies in (False, True)
        for key, what in (("lost", "lost"), ("twice", "read twice"))
        if (row := rows["ragwatch", copies])
    ]
    return Part("\n".join(lines), Chart("Lines lost and read twice under rotation and SIGKILL", groups, ""))
