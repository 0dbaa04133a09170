"""A timed run of another tool in its own environment, which knows the standard library and that tool alone."""

import json
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

WARMING = 2
Scores = Sequence[dict[str, float | None]]
Judge = Callable[[list[dict[str, Any]]], Scores]


def run(make: Callable[[str, str, int], Judge], address: str, key: str, samples: str, in_flight: str) -> None:
    """Warm up, empty the record of the server, judge all samples and print what it took.

    Args:
        make: Makes the judge.
        address: The loopback server.
        key: Its key.
        samples: File of samples, one JSON object a line.
        in_flight: Most at once.
    """
    rows = [json.loads(line) for line in Path(samples).read_text(encoding="utf-8").splitlines()]
    judge = make(address, key, int(in_flight))
    judge(rows[:WARMING])
    with urlopen(Request(f"{address}/record", method="DELETE")):  # noqa: S310 - the loopback
        wall, cpu = time.perf_counter(), time.process_time()
    scores = judge(rows)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    values = [(name, value) for one in scores for name, value in one.items()]
    known = [(name, value) for name, value in values if value is not None and not math.isnan(value) and value >= 0]
    means: dict[str, list[float]] = {}
    for name, value in known:
        means.setdefault(name, []).append(float(value))
    print(
        json.dumps(
            {
                "seconds": wall,
                "cpu_seconds": cpu,
                "lost": len(values) - len(known),
                "scores": {name: sum(some) / len(some) for name, some in means.items()},
            }
        )
    )
