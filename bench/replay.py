"""Replay of a million lines through the real daemon: memory after warm-up, and how long a scrape waits meanwhile.

Memory must be flat: the last fifth of the samples may not stand above the second fifth by more than a few MB.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

MOST_GROWTH_MB = 8.0


def write_log(path: Path, lines: int) -> None:
    """Short records, so that a million fit on a small disk: some 600 bytes."""
    passage = "The old mill stands by the river since 1820 and ground corn for the villages around it. " * 2
    with path.open("w") as log:
        for number in range(lines):
            contexts = [{"id": f"d{rank}", "text": f"{number}{rank} {passage}", "score": 0.9} for rank in range(2)]
            record = {"id": f"r{number}", "question": "Where does the mill stand?", "contexts": contexts}
            log.write(json.dumps(record | {"answer": "The old mill stands by the river.", "route": "search"}) + "\n")


def rss_mb(pid: int) -> float:
    """Resident memory now."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))


def scrape(address: str) -> tuple[float, int, int]:
    """Seconds of one scrape, lines seen, draws pending."""
    start = time.perf_counter()
    with urllib.request.urlopen(address, timeout=30) as reply:  # noqa: S310 - our own address
        text = reply.read().decode()
    seconds = time.perf_counter() - start
    series = dict(line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#"))
    return (
        seconds,
        int(float(series['ragwatch_requests_seen_total{source="app"}'])),
        int(float(series["ragwatch_samples_pending"])),
    )


def watch(process: subprocess.Popen[str], lines: int) -> tuple[list[float], list[float]]:
    """Memory and scrape times, four times a second, until all is read and judged."""
    address = next(line.split()[2] for line in process.stderr or () if line.startswith("ragwatch serves "))
    memory, scrapes = [], []
    while True:
        seconds, seen, pending = scrape(address)
        memory.append(rss_mb(process.pid))
        scrapes.append(seconds)
        if seen >= lines and pending == 0:
            return memory, scrapes
        time.sleep(0.25)


def main() -> None:
    """Run and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--lines", type=int, default=1_000_000)
    lines = options.parse_args().lines
    with tempfile.TemporaryDirectory(prefix="ragwatch-bench-") as name:
        folder = Path(name)
        write_log(folder / "rag.jsonl", lines)
        config = folder / "ragwatch.yaml"
        config.write_text(
            f"state: {folder}/state\nweb: {{listen: '127.0.0.1:0'}}\nroutes: [search]\n"
            "sampling: {probability: 0.01}\n"
            f"sources: [{{kind: tail, name: app, path: '{folder}/rag.jsonl', start: beginning}}]\n"
        )
        command = [sys.executable, "-m", "ragwatch", "run", "--config", str(config)]
        start = time.perf_counter()
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            memory, scrapes = watch(process, lines)
            seconds = time.perf_counter() - start
            process.terminate()
    fifth = max(1, len(memory) // 5)
    early, late = statistics.median(memory[fifth : 2 * fifth]), statistics.median(memory[-fifth:])
    print(f"{lines:,} lines read, drawn at 0.01 and judged in {seconds:.0f} s ({lines / seconds:,.0f} lines/s)")
    print(f"memory: second fifth {early:.1f} MB, last fifth {late:.1f} MB, peak {max(memory):.1f} MB")
    print(f"scrape meanwhile: median {statistics.median(scrapes) * 1e3:.0f} ms, worst {max(scrapes) * 1e3:.0f} ms")
    if late - early > MOST_GROWTH_MB:
        raise SystemExit("memory grows")


if __name__ == "__main__":
    main()
