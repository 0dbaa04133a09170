"""Measures what a page of trends costs over a store that is filled with 90 days of every quantity.

    python bench/trends_page.py [--routes 4] [--runs 5]

Prints, by range, the CPU milliseconds of a page: the first one, which computes all intervals, and the median of the
next ones. Nothing is served: the data of the page is built and rendered as for a request.
"""

import argparse
import math
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from ragwatch.model.estimate import Addends
from ragwatch.model.quantities import Quantity
from ragwatch.ports import Peak, Store, StoredRun
from ragwatch.statistics.snapshot import Snapshot
from ragwatch.statistics.trends import (
    COARSE,
    DAY,
    FINE,
    FINE_SECONDS,
    RANGES,
    BucketKey,
    TrendKey,
    TrendKind,
    estimate_of,
    start_of,
)
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.web import PageScope
from ragwatch.web.pages.changes_page import ChangeRequest, changes
from ragwatch.web.pages.pages import page
from ragwatch.web.pages.trends_page import TrendRequest, trends

NOW = 1_700_000_000.0
DAYS = 90
JUDGE, VERSION = "embedded", "lexical-1"


def fill(store: Store, routes: list[str], rng: random.Random) -> None:
    """Store sums and peaks of every bucket, route and quantity."""
    for route in routes:
        for quantity in map(str, Quantity):
            series = TrendKey(TrendKind.SCORE, route, quantity, JUDGE, VERSION)
            watched = TrendKey(TrendKind.DRIFT, route, quantity)
            sums: dict[BucketKey, Addends] = {}
            peaks = []
            for span, seconds in ((FINE, FINE_SECONDS), (COARSE, DAYS * DAY)):
                for at in range(int(NOW) - seconds, int(NOW), span):
                    start = start_of(at, span)
                    sums[BucketKey(series, span, start)] = scores(rng, span // 120)
                    peaks.append(Peak(watched, span, start, math.exp(rng.gauss(-1.0, 2.0)), 270.0))
            store.record_run(StoredRun("canary", "bench", NOW, failing=False, body={}), Counter(), sums)
            store.add_peaks(peaks)


def scores(rng: random.Random, count: int) -> Addends:
    """Sums of some scores with two inclusion probabilities."""
    return Addends.of(
        (1.0 if rng.random() < 0.85 else rng.choice((0.0, 0.5)), rng.choice((0.1, 0.5))) for _ in range(count)
    )


def cost(build: Callable[[], object]) -> float:
    """CPU milliseconds of a call."""
    start = time.process_time()
    build()
    return 1e3 * (time.process_time() - start)


def main() -> None:
    """Fill a store, and print what pages cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--routes", type=int, default=4)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    routes = [f"route{index}" for index in range(options.routes)]
    scope = PageScope(routes=tuple(routes), judges=(JUDGE,), thresholds={"faithfulness": 0.85})
    snapshot = Snapshot(at=NOW, judges={JUDGE: ("lexical", VERSION)})
    with tempfile.TemporaryDirectory() as folder, closing(SqliteStore(Path(folder))) as store:
        fill(store, routes, random.Random(1))
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        print(f"{size / 1e6:.1f} MB for {len(routes)} routes and {DAYS} days")

        def trend_page(name: str) -> str:
            view, _ = trends(TrendRequest(route=routes[0], range=name), store, snapshot, scope, now=NOW)
            return page("trends.html", {"now": NOW, **view})

        def change_page(name: str) -> str:
            view, _ = changes(ChangeRequest(NOW - 8 * DAY, route=routes[0], span=name), store, scope, now=NOW)
            return page("changes.html", {"now": NOW, **view})

        trend_page("1h")  # compiles the templates
        change_page("1h")
        for build, names in ((trend_page, list(RANGES)), (change_page, ["1h", "7d"])):
            for name in names:
                estimate_of.cache_clear()
                first = cost(lambda build=build, name=name: build(name))  # type: ignore[misc]
                later = [cost(lambda build=build, name=name: build(name)) for _ in range(options.runs)]  # type: ignore[misc]
                print(f"{build.__name__} {name}: {first:.0f} ms at first, then {statistics.median(later):.0f} ms")


if __name__ == "__main__":
    main()
