"""What a scrape costs, beside prometheus_client's own gauges: as many series, same labels, same process, interleaved.

Run: python bench/scrape.py [SERIES]. `first` is a scrape just after a digest, `again` one before the next. Then the
real server is scraped over HTTP while a heartbeat on its event loop measures how long anything else has to wait.
"""

import asyncio
import itertools
import random
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from ragwatch.board import Board
from ragwatch.daemon.process import settle
from ragwatch.exporter import AllowedLabels, Exporter
from ragwatch.model.estimate import Estimate
from ragwatch.model.quantities import Quantity
from ragwatch.statistics.snapshot import EstimateRow, Snapshot
from ragwatch.telemetry import Telemetry
from ragwatch.web import Server

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.asked import application

ROUNDS = 61
GAUGES_AN_ESTIMATE = 7
MOST_WAIT = 0.020
WINDOWS = ("15m", "1h", "1d")


def snapshot(estimates: int, rng: random.Random) -> Snapshot:
    """A Snapshot with this many estimates."""
    rows = []
    for index in range(estimates):
        quantity = list(Quantity)[index % 8]
        window = WINDOWS[index // 8 % 3]
        value = rng.random()
        found = Estimate(value, value / 2, (1 + value) / 2, 100, 90.5, 0.9, value * 0.9, value, "hajek")
        rows.append(EstimateRow(quantity, f"route{index // 24}", "embedded", window, found))
    return Snapshot(at=0.0, estimates=tuple(rows))


def gauges(series: int, rng: random.Random) -> CollectorRegistry:
    """A registry with as many directly instrumented gauges."""
    registry = CollectorRegistry()
    for name in range(8 * GAUGES_AN_ESTIMATE):
        gauge = Gauge(f"plain_{name}_ratio", "A gauge.", ["route", "judge", "window"], registry=registry)
        for index in range(-(-series // (8 * GAUGES_AN_ESTIMATE))):
            gauge.labels(f"route{index // 3}", "embedded", WINDOWS[index % 3]).set(rng.random())
    return registry


def seconds(run: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = perf_counter()
    run()
    return perf_counter() - start


async def longest_wait(exporter: Exporter, publish: Callable[[int], None]) -> float:
    """Seconds that a task on the event loop waited at most beyond its millisecond, while scrapes went on."""
    settle()  # as the daemon does
    ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    server = Server(application(render=exporter.render), "127.0.0.1", 0)
    serving = asyncio.create_task(server.serve(started=ready.set_result))
    address = f"http://127.0.0.1:{await ready}/metrics"
    waits: list[float] = []

    async def heartbeat() -> None:
        while True:
            start = perf_counter()
            await asyncio.sleep(0.001)
            waits.append(perf_counter() - start - 0.001)

    scraper = f"""
import sys, urllib.request
for _ in range({ROUNDS}):
    with urllib.request.urlopen(sys.argv[1], timeout=10) as reply:
        reply.read()
"""

    async def digests() -> None:
        for index in itertools.count():
            publish(index)
            await asyncio.sleep(0.01)

    hanging = asyncio.create_task(digests())
    client = await asyncio.create_subprocess_exec(sys.executable, "-c", scraper, address)
    beat = asyncio.create_task(heartbeat())  # now, because forking the scraper above holds the loop as well
    if await client.wait() != 0:
        raise SystemExit("the scraper failed")
    beat.cancel()
    hanging.cancel()
    server.stop()
    await serving
    return max(waits)


def main() -> None:
    """Measure and print the table."""
    series = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    rng = random.Random(0)
    shots = [snapshot(-(-series // GAUGES_AN_ESTIMATE), rng) for _ in range(2)]
    routes = sorted({row.route for row in shots[0].estimates})
    board = Board()
    exporter = Exporter(board, Telemetry(), AllowedLabels(sources=(), routes=routes, judges=["embedded"]))
    registry = gauges(series, rng)
    peer, first, again = [], [], []
    for index in range(ROUNDS):
        peer.append(seconds(lambda: generate_latest(registry)))
        board.publish(shots[index % 2])
        first.append(seconds(lambda: exporter.render("")))
        again.append(seconds(lambda: exporter.render("")))
    plain = sum(not line.startswith(b"#") for line in generate_latest(registry).splitlines())
    ours = sum(not line.startswith(b"#") for line in exporter.render("")[0].splitlines())
    print(f"{'scrape':<28}{'series':>8}{'median ms':>11}{'us/series':>11}{'ratio':>8}")
    base = median(peer) / plain
    for name, times, count in (
        ("generate_latest, gauges", peer, plain),
        ("first", first, ours),
        ("again", again, ours),
    ):
        each = median(times) / count
        print(f"{name:<28}{count:>8}{median(times) * 1e3:>11.2f}{each * 1e6:>11.2f}{each / base:>8.2f}")
    waited = asyncio.run(longest_wait(exporter, lambda index: board.publish(shots[index % 2])))
    print(
        f"event loop, {ROUNDS} scrapes over HTTP: longest wait {waited * 1e3:.1f} ms (at most {MOST_WAIT * 1e3:.0f} ms)"
    )
    if waited > MOST_WAIT:
        raise SystemExit("a scrape blocks the event loop")


if __name__ == "__main__":
    main()
