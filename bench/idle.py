"""Idle daemon with the embedded judge: time to the first /metrics, CPU and memory, beside a bare Python process.

The daemon tails an empty log; CPU is what the kernel charged it over the measured seconds.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

MOST_CPU, MOST_RSS_MB, MOST_START_SECONDS = 0.01, 90.0, 1.0
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def rss_mb(pid: int) -> float:
    """Resident memory now."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise SystemExit("no VmRSS")


def start(folder: Path) -> tuple[subprocess.Popen[str], float]:
    """A daemon, and the seconds until it answered its first scrape."""
    config = folder / "ragwatch.yaml"
    (folder / "rag.jsonl").touch()
    config.write_text(
        f"state: {folder}/state\nweb: {{listen: '127.0.0.1:0'}}\nroutes: [search]\n"
        f"sources: [{{kind: tail, name: app, path: '{folder}/rag.jsonl'}}]\n"
    )
    begin = time.perf_counter()
    command = [sys.executable, "-m", "ragwatch", "run", "--config", str(config)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for line in process.stderr or ():
        if line.startswith("ragwatch serves "):
            with urllib.request.urlopen(line.split()[2], timeout=10) as reply:  # noqa: S310 - our own address
                reply.read()
            return process, time.perf_counter() - begin
    raise SystemExit("the daemon did not start")


def bare() -> float:
    """Seconds of an interpreter that does nothing."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - begin


def main() -> None:
    """Run and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=20.0)
    options.add_argument("--rounds", type=int, default=3)
    chosen = options.parse_args()
    starts, floors = [], []
    for _ in range(chosen.rounds):
        floors.append(bare())
        with tempfile.TemporaryDirectory(prefix="ragwatch-bench-") as folder:
            process, seconds = start(Path(folder))
            starts.append(seconds)
            if len(starts) == chosen.rounds:
                time.sleep(2)
                before = cpu_seconds(process.pid)
                time.sleep(chosen.seconds)
                cpu = (cpu_seconds(process.pid) - before) / chosen.seconds
                rss = rss_mb(process.pid)
            process.terminate()
            process.communicate()
    first = statistics.median(starts)
    floor = statistics.median(floors)
    print(f"first /metrics   {first:6.2f} s   (at most {MOST_START_SECONDS} s; bare interpreter {floor:.3f} s)")
    print(f"idle CPU         {cpu:6.2%}     of a core (at most {MOST_CPU:.0%})")
    print(f"resident memory  {rss:6.1f} MB  (at most {MOST_RSS_MB:.0f} MB)")
    if cpu > MOST_CPU or rss > MOST_RSS_MB or first > MOST_START_SECONDS:
        raise SystemExit("heavier than allowed")


if __name__ == "__main__":
    main()
