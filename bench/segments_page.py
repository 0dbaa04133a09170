"""Measures what a page of a segment costs: 1,000 values, of which each answer has all quantities.

    python bench/segments_page.py [--values 1000] [--answers 20] [--runs 5]

Prints the CPU milliseconds of the page, of its JSON, and of its parts, beside those of the same answers in ten values:
what the number of values adds. Nothing is served: the data of the page is built and rendered as for a request.
"""

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import orjson

from ragwatch.model.quantities import Quantity
from ragwatch.ports import SegmentQuery
from ragwatch.statistics.segments import period_of
from ragwatch.statistics.snapshot import Snapshot
from ragwatch.statistics.trends import estimate_of
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.web import PageScope
from ragwatch.web.pages.pages import page
from ragwatch.web.pages.segments_page import MAX_ANSWERS, SIDE, SegmentRequest, page_of, segment

NOW = 1_700_000_000.0
JUDGE, VERSION, ROUTE, KEY, HOUR = "embedded", "lexical-1", "search", "tenant", 3600.0


def fill(store: SqliteStore, values: int, answers: int) -> None:
    """Store judged answers of two hours, in all values alike."""
    rng, rows = random.Random(values), []
    for number in range(answers):
        scores = {str(quantity): float(rng.random() < 0.9) for quantity in Quantity}
        stage = "none" if scores["faithfulness"] else "generation"
        rows.append(
            {
                "key": f"{number:032x}",
                "judge": JUDGE,
                "version": VERSION,
                "at": NOW - 2 * HOUR * rng.random(),
                "route": ROUTE,
                "probability": rng.choice((0.1, 0.5)),
                "outcome": "judged",
                "reason": None,
                "stage": stage,
                "fault": None,
                "failing": int(stage != "none"),
                "scores": orjson.dumps({**scores, "segments": {KEY: f"t{number % values}"}}).decode(),
                "trace_id": None,
                "line": b"x" * 900,  # as long as a compressed verdict
            }
        )
    with store.engine.transaction() as writer:
        writer.insert("verdicts", rows)


def cost(build: Callable[[], object]) -> float:
    """CPU milliseconds of a call."""
    estimate_of.cache_clear()
    start = time.process_time()
    build()
    return 1e3 * (time.process_time() - start)


def main() -> None:
    """Fill a store, and print what pages cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--values", type=int, default=1000)
    parser.add_argument("--answers", type=int, default=20, help="of each value, within the window and before")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    scope = PageScope(routes=(ROUTE,), judges=(JUDGE,), windows=("1h",), segments={KEY: ("t0",)})
    snapshot = Snapshot(at=NOW, judges={JUDGE: ("lexical", VERSION)})
    begin, until = period_of(NOW, HOUR)
    query = SegmentQuery(KEY, "faithfulness", ROUTE, JUDGE, VERSION, 2 * begin - until, until, 2 * SIDE, MAX_ANSWERS)
    for values in (options.values, 10):
        with tempfile.TemporaryDirectory() as folder, closing(SqliteStore(Path(folder))) as store:
            fill(store, values, options.values * options.answers)
            wanted = SegmentRequest()

            def view(store: SqliteStore = store, wanted: SegmentRequest = wanted) -> dict[str, object]:
                return dict(segment(wanted, KEY, store, snapshot, scope, now=NOW)[0])

            parts: dict[str, Callable[[], object]] = {
                "page": lambda: page("segment.html", page_of(view())),  # type: ignore[arg-type]
                "reply": lambda: json.dumps(view()),
                "sums of the store": lambda store=store: store.segments(query),  # type: ignore[misc]
            }
            parts["page"]()  # compiles the template
            if view()["count"] != values:
                raise SystemExit("the page does not have all values")
            for name, build in parts.items():
                runs = [cost(build) for _ in range(options.runs)]
                print(f"{values} values, {name}: {statistics.median(runs):.0f} ms (least {min(runs):.0f})")


if __name__ == "__main__":
    main()
