"""Rendering /metrics: ours, and prometheus_client's own gauges with as many series and the same labels.

CPU milliseconds of one rendering, medians of interleaved rounds. `first` is a scrape just after new figures, `again`
one before the next. Same process, same library: ours collects families from a snapshot, theirs reads gauges.
"""

import argparse
import gc
import importlib.util
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

from peers.page import Bar, Chart, Part
from prometheus_client import generate_latest

from ragwatch.board import Board
from ragwatch.exporter import AllowedLabels, Exporter
from ragwatch.telemetry import Telemetry

SERIES = (100, 1000, 10_000)


def _plain_bench() -> ModuleType:
    """bench/scrape.py, which has the name of this module."""
    spec = importlib.util.spec_from_file_location("plain_scrape", Path(__file__).parent.parent / "scrape.py")
    if spec is None or spec.loader is None:
        raise SystemExit("bench/scrape.py is missing")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def cpu_ms(run: Callable[[], object]) -> float:
    """CPU time of one call."""
    start = time.process_time()
    run()
    return (time.process_time() - start) * 1e3


def row(plain: ModuleType, series: int, rounds: int) -> dict[str, Any]:
    """Figures for one number of series, each a thousand series."""
    rng = random.Random(0)
    shots = [plain.snapshot(-(-series // plain.GAUGES_AN_ESTIMATE), rng) for _ in range(2)]
    routes = sorted({one.route for one in shots[0].estimates})
    board = Board()
    exporter = Exporter(board, Telemetry(), AllowedLabels(sources=(), routes=routes, judges=["embedded"]))
    registry = plain.gauges(series, rng)
    times: dict[str, list[float]] = {"prometheus_client": [], "first": [], "again": []}
    for index in range(rounds):
        gc.collect()
        times["prometheus_client"].append(cpu_ms(lambda: generate_latest(registry)))
        board.publish(shots[index % 2])
        times["first"].append(cpu_ms(lambda: exporter.render("")))
        times["again"].append(cpu_ms(lambda: exporter.render("")))
    counts = {
        "peer": sum(not line.startswith(b"#") for line in generate_latest(registry).splitlines()),
        "ours": sum(not line.startswith(b"#") for line in exporter.render("")[0].splitlines()),
    }
    return {"series": series, "counts": counts, "ms": {name: median(some) for name, some in times.items()}}


def measure(chosen: argparse.Namespace) -> dict[str, Any]:
    """Every number of series."""
    plain = _plain_bench()
    return {"rows": [row(plain, series, chosen.scrapes) for series in SERIES]}


def part(results: dict[str, Any]) -> Part:
    """The table, and bars of the cost of a series as a multiple of theirs."""
    lines = [
        (
            "| series, ours / theirs | prometheus_client, ms | ragwatch, first, ms | ragwatch, again, ms | "
            "cost of a series: first | again |"
        ),
        "|---" * 6 + "|",
    ]
    groups = []
    for one in results["rows"]:
        ms, counts = one["ms"], one["counts"]
        base = ms["prometheus_client"] / counts["peer"]
        ratio = {name: ms[name] / counts["ours"] / base for name in ("first", "again")}
        lines.append(
            f"| {counts['ours']:,} / {counts['peer']:,} | {ms['prometheus_client']:.2f} | {ms['first']:.2f} | "
            f"{ms['again']:.2f} | {ratio['first']:.2f}× | {ratio['again']:.2f}× |"
        )
        bars = [
            Bar("prometheus_client", 1.0),
            Bar("ragwatch, first scrape", ratio["first"]),
            Bar("ragwatch, next scrape", ratio["again"]),
        ]
        groups.append((f"{counts['peer']:,} series", bars))
    return Part(
        "\n".join(lines), Chart("CPU time of a series in /metrics, as a multiple of prometheus_client's", groups, "×")
    )
