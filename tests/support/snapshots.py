"""Hand-made Snapshots for tests of what is shown: small enough to check by hand, or as large as wanted."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ragwatch.board import Board
from ragwatch.exporter import AllowedLabels, Exporter
from ragwatch.model.estimate import Addends, Estimate
from ragwatch.model.quantities import Quantity
from ragwatch.statistics.snapshot import EstimateRow, Exemplar, Lag, Snapshot
from ragwatch.statistics.tally import Tallies, Tally, bucket_label, observe
from ragwatch.telemetry import Telemetry

AT = 1_700_000_000.0
KEY = "0123456789abcdef0123456789abcdef"
TRACE = "4bf92f3577b34da6"
ROUTES = ("search", "support")
JUDGE = "embedded"


def estimate(value: float = 0.8, *, half: float = 0.05, n: int = 40, coverage: float = 0.9) -> Estimate:
    """An estimate with a symmetric interval."""
    low, high = max(value - half, 0.0), min(value + half, 1.0)
    bound_low, bound_high = value * coverage, value * coverage + 1 - coverage
    return Estimate(value, low, high, n, n * 0.9, coverage, bound_low, bound_high, "hajek")


def counted(route: str, scores: Sequence[float], quantity: Quantity = Quantity.FAITHFULNESS) -> Tallies:
    """Tallies of scores drawn with probability 0.5."""
    found: Tallies = Counter()
    labels = (str(quantity), route, JUDGE)
    for score in scores:
        addends = Addends.one(score, 0.5)
        for tally in (Tally.N, Tally.W, Tally.WX, Tally.W2, Tally.W2X, Tally.W2X2):  # named as the fields of addends
            found[tally, labels] += getattr(addends, tally)
        observe(found, Tally.SCORE, labels, score)
    found[Tally.DRAWN, (route,)] += len(scores)
    found[Tally.JUDGED, (route, JUDGE)] += len(scores)
    return found


def small(at: float = AT) -> Snapshot:
    """Route `search` scored 0.05, 0.75 and 1.0 on faithfulness; one draw stayed unjudged; `support` is silent."""
    tallies = counted("search", (0.05, 0.75, 1.0))
    tallies.update(
        {
            (Tally.SEEN, ("app",)): 10,
            (Tally.REJECTED, ("app", "torn_json")): 2,
            (Tally.UNJUDGED, ("search", JUDGE, "timeout")): 1,
            (Tally.UNKNOWN, ("need_recall", "search", JUDGE, "not_read")): 3,
            (Tally.STAGE, ("search", "embedded", "none")): 2,
            (Tally.STAGE, ("search", "embedded", "generation")): 1,
            (Tally.FAULT, ("search", "embedded", "redundant")): 1,
            (Tally.REDACTED, ("email",)): 4,
        }
    )
    observe(tallies, Tally.CONTEXTS, ("search",), 4)
    return Snapshot(
        at=at,
        estimates=(EstimateRow(Quantity.FAITHFULNESS, "search", JUDGE, "1h", estimate(0.6)),),
        coverage={("search", JUDGE, "1h"): 0.75},
        stages={("search", JUDGE, "1h", "none"): 2, ("search", JUDGE, "1h", "generation"): 1},
        last_sample={("faithfulness", "search", JUDGE): at - 90.0},
        exemplars={
            ("faithfulness", "search", JUDGE, bucket_label(Tally.SCORE, 0.05)): Exemplar(
                KEY, "4bf92f3577b34da6", 0.05, at - 90.0
            )
        },
        tallies=tallies,
        pending={JUDGE: 2, "claude": 1},
        probabilities={"search": 0.5, "support": 1.0, "other": 0.5},
        lags={"app": Lag(2048, 1.5)},
        judges={JUDGE: ("lexical", "lexical-1")},
    )


def an_exporter(
    *snapshots: Snapshot, telemetry: Telemetry | None = None, board: Board | None = None, **names: Any
) -> Exporter:
    """An exporter of the last of these Snapshots, with names of one source, one judge and two routes."""
    board = board or Board()
    for snapshot in snapshots:
        board.publish(snapshot)
    allowed = AllowedLabels(**{"sources": ["app"], "routes": ROUTES, "judges": [JUDGE], **names})
    return Exporter(board, telemetry or Telemetry(), allowed)


def large(rows: int, seed: int = 0) -> Snapshot:
    """A Snapshot of `rows` estimates over many routes and nothing else: 7 series a row."""
    rng = random.Random(seed)
    windows = ("15m", "1h", "1d")
    places = [(q, f"route{index}", w) for index in range(rows) for w in windows for q in Quantity][:rows]
    return Snapshot(
        at=AT,
        estimates=tuple(EstimateRow(q, route, JUDGE, window, estimate(rng.random())) for q, route, window in places),
    )
