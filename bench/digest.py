"""What a digest costs where 1, 4 and 16 workers have judged the same answers: of the leader, of another, of PostgreSQL.

    python bench/digest.py [--answers N]

Prints milliseconds of CPU: of the digest that reads all verdicts after a start, of one that reads 100 new ones, and of
one of a worker that shows what the leader has computed. Ends with an error where figures differ between the numbers of
workers. Needs Debian's `postgresql`.
"""

import argparse
import asyncio
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

HOME = Path(__file__).parents[1]
sys.path.insert(0, str(HOME / "tests"))
from fleet.measured import DISK, server_seconds  # noqa: E402 - it needs what is among the tests
from support.kit import JUDGE, ScriptedJudge, a_draw, a_verdict, an_admission, an_evidence  # noqa: E402 - among the tests
from support.postgres import Postgres, new_server  # noqa: E402 - the same

from ragwatch.board import Board  # noqa: E402 - after the path
from ragwatch.pipeline.digest import (  # noqa: E402 - the same
    DigestInputs,
    DigestLoop,
    SharedSnapshot,
)
from ragwatch.pipeline.feedback import FeedbackWindows  # noqa: E402 - the same
from ragwatch.pipeline.labels.correction import LabelCorrection  # noqa: E402 - the same
from ragwatch.pipeline.labels.verdicts import LabelRules  # noqa: E402 - the same
from ragwatch.pipeline.sampling_control import JudgePlan, SamplingControl  # noqa: E402 - the same
from ragwatch.pipeline.windows import SegmentWindows, SlidingWindows  # noqa: E402 - the same
from ragwatch.ports import LoopContext, Store  # noqa: E402 - the same
from ragwatch.statistics.segments import Segments  # noqa: E402 - the same
from ragwatch.statistics.snapshot import Snapshot  # noqa: E402 - the same
from ragwatch.statistics.tally import Tally  # noqa: E402 - the same
from ragwatch.stores.postgres import Options, database  # noqa: E402 - the same
from ragwatch.stores.postgres.postgres_store import PostgresStore  # noqa: E402 - the same
from ragwatch.telemetry import Telemetry  # noqa: E402 - the same

WORKERS = (1, 4, 16)
NEW, STEPS, BATCH = 100, 12, 125
NOW = time.time()


def settle(stores: Sequence[Store], first: int, count: int) -> None:
    """Admit and settle answers of four routes, each worker its share."""
    for place, start in enumerate(range(first, first + count, BATCH)):
        store = stores[place % len(stores)]
        numbers = range(start, min(start + BATCH, first + count))
        draws = [a_draw(f"r{one}", at=NOW - 600.0 + one % 500, route=f"route{one % 4}") for one in numbers]
        store.admit(an_admission(*draws, tallies=Counter({(Tally.SEEN, ("app",)): len(draws)})))
        store.settle([a_verdict(draw, an_evidence((1, 0), (int(draw.at) % 3 > 0, 0))) for draw in draws])


def digest(store: PostgresStore, board: Board, *, leads: bool) -> DigestLoop:
    """The digest of a worker with windows of 5 minutes, one hour and a day."""
    shares = SamplingControl({JUDGE: JudgePlan(1.0, waits=True)}, store, 1000)
    spans, versions = {"5m": 300.0, "1h": 3600.0, "1d": 86400.0}, {JUDGE: "scripted-1"}
    return DigestLoop(
        SlidingWindows(spans, versions, 0.95),
        DigestInputs(lags=dict, probabilities=dict, problems=tuple),
        LoopContext(store, Telemetry(), lambda: NOW),
        shares=shares,
        board=board,
        judges=[ScriptedJudge()],
        labels=LabelCorrection(LabelRules(versions, (JUDGE,)), spans, store=store),
        feedback=FeedbackWindows(spans, versions, 0.95, store=store),
        segments=SegmentWindows(Segments(), spans, versions, 0.95),
        shared=SharedSnapshot(store, lambda: leads, store.own_tallies),
    )


def cost(loop: DigestLoop, server: Postgres) -> tuple[float, float]:
    """CPU milliseconds of a step: of the worker, and of the server."""
    own, other = time.process_time(), server_seconds(server)
    asyncio.run(loop.step())
    return 1e3 * (time.process_time() - own), 1e3 * (server_seconds(server) - other)


def measured(server: Postgres, workers: int, answers: int) -> Snapshot | None:
    """Measure with so many workers, and return the figures of the leader."""
    options = Options.model_validate({"url": server.url, "database_schema": f"workers{workers}", "connections": 1})
    stores = [database(options).connected(name=f"worker{index}") for index in range(workers)]
    settle(stores, 0, answers)
    board = Board()
    leader = digest(stores[0], board, leads=True)
    follower = digest(stores[-1], Board(), leads=False)
    full = cost(leader, server)
    steps, shown = [], []
    for number in range(STEPS):
        settle(stores, answers + NEW * number, NEW)
        steps.append(cost(leader, server))
        shown.append(cost(follower, server))
    rows = int(server.sql(f"SELECT count(*) FROM workers{workers}.tallies"))  # noqa: S608 - a number
    print(f"{workers:2} workers, {rows:4} rows of counters: all verdicts {full[0]:7.1f} ms", end=", ")
    for name, costs in ((f"{NEW} new", steps), ("another worker", shown)):
        own, other = statistics.median(one for one, _ in costs), statistics.fmean(one for _, one in costs)
        print(f"{name} {own:5.1f} ms and {other:4.1f} ms in the server", end="; ")
    print()
    for store in stores:
        store.close()
    return board.latest()


def main() -> None:
    """Print the figures."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--answers", type=int, default=5000)
    answers = options.parse_args().answers
    server = new_server(**DISK)
    try:
        figures = [measured(server, workers, answers) for workers in WORKERS]
    finally:
        server.delete()
    shown = None if figures[0] is None else (figures[0].estimates, figures[0].tallies)
    if any(one is None or (one.estimates, one.tallies) != shown for one in figures):
        raise SystemExit("the figures differ between numbers of workers")


if __name__ == "__main__":
    main()
