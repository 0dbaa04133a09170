"""Options and help of the commands that compute with past scores: backtest, plan, estimate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import click

from ragwatch.commands.options.finite import FiniteRange
from ragwatch.commands.options.lazy import CONFIG, OUT, Arguments, LazyCommand, argument, option
from ragwatch.model.quantities import Quantity


class BacktestArguments(Arguments):
    """Replay the scores in FILE (CSV or JSONL: `at`, a column per quantity), or in a store, through the detectors.

    Optional columns: `route`, and `probability`, the inclusion probability of the answer. Exit code 3 when no detector
    had enough scores to learn its baseline.
    """

    file: Path | None = argument(type=OUT)
    path: Path | None = option(
        "--config", type=CONFIG, help="Configuration file; without FILE, its store holds the scores."
    )
    settings: Sequence[str] = option("--set", metavar="KEY=VALUE", help="Override a key of `drift`, as in YAML.")
    acknowledge_after: str = option(default="1d", help="Time after which an alarm is acknowledged.")
    quiet_until: str | None = option(
        metavar="TIME", help="There was no drift before this time: earlier alarms are false alarms."
    )
    as_json: bool = option("--json", help="Print JSON instead of a table.")
    svg: Path | None = option(type=OUT, help="Write a chart of mean, evidence and alarms to this file.")


backtest = LazyCommand(BacktestArguments, "ragwatch.commands.backtest:backtest", "backtest")


class PlanArguments(Arguments):
    """Show, per sampling rate: judged samples and cost per day, detection delay for a drop, interval width.

    Simulates the drift detector on these scores, with a baseline learned as in the daemon. Exit code 1 when no rate
    detects the drop --within the time.
    """

    per_day: float = option(type=FiniteRange(min=0, min_open=True), help="Requests per day.")
    price: float = option(type=FiniteRange(min=0), default=0.0, help="US dollars per judged sample.")
    drop: float = option(
        type=FiniteRange(0, 1, min_open=True), default=0.1, help="Drop of the mean that must be detected."
    )
    within: str | None = option(help="Find the lowest rate that detects the drop within this time, such as 4h.")
    rates: Sequence[float] = option(
        "--probability",
        type=FiniteRange(0, 1, min_open=True),
        help="Sampling rate to evaluate; may be given several times.",
    )
    path: Path | None = option("--config", type=CONFIG, help="Configuration file; its key `drift` is used.")
    scores: Path | None = option(
        type=click.Path(path_type=Path), help="File of past scores, as for backtest; else simulated scores."
    )
    quantity: str = option(
        type=click.Choice([str(quantity) for quantity in Quantity]),
        default=str(Quantity.FAITHFULNESS),
        help="Quantity to take from --scores.",
    )
    mean: float = option(type=FiniteRange(0.05, 0.99), default=0.9, help="Mean of the simulated scores.")
    as_json: bool = option("--json", help="Print JSON instead of a table.")


plan = LazyCommand(PlanArguments, "ragwatch.commands.plan:plan", "plan")


class EstimateArguments(Arguments):
    """Print the mean of each quantity over FILES (verdicts of `ragwatch judge`), and its level in people's terms.

    `-` or none is standard input. The level's interval contains the judge's own error, which labels make smaller. A
    label line is {"id": ..., "faithfulness": 0 to 1, "top_ranked_ignored": 0 or 1, "probability": that the answer was
    selected for labelling}. Exit code 3 when no answer has a score.
    """

    files: Sequence[BinaryIO] = argument(type=click.File("rb"))
    labels: Path | None = option(
        type=OUT, help="What people say of answers: JSONL with `id`, scores and `probability`."
    )
    as_json: bool = option("--json", help="Print JSON instead of a table.")


estimate = LazyCommand(EstimateArguments, "ragwatch.commands.estimate:estimate", "estimate")
