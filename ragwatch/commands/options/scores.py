"""Options and help of the commands that compute with past scores: backtest, plan."""

from __future__ import annotations

from pathlib import Path

import click

from ragwatch.commands.options.finite import FiniteRange
from ragwatch.commands.options.lazy import CONFIG, OUT, lazy_command
from ragwatch.model.quantities import Quantity


@lazy_command("ragwatch.commands.backtest:backtest")
@click.argument("file", required=False, type=OUT)
@click.option("--config", "path", type=CONFIG, help="Configuration file; without FILE, its store holds the scores.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Override a key of `drift`, as in YAML.")
@click.option("--acknowledge-after", default="1d", show_default=True, help="Time after which an alarm is acknowledged.")
@click.option(
    "--quiet-until", metavar="TIME", help="There was no drift before this time: earlier alarms are false alarms."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.option("--svg", type=OUT, help="Write a chart of mean, evidence and alarms to this file.")
def backtest() -> None:
    """Replay the scores in FILE (CSV or JSONL: `at`, a column per quantity), or in a store, through the detectors.

    Optional columns: `route`, and `probability`, the inclusion probability of the answer. Exit code 3 when no detector
    had enough scores to learn its baseline.
    """


@lazy_command("ragwatch.commands.plan:plan")
@click.option("--per-day", type=FiniteRange(min=0, min_open=True), required=True, help="Requests per day.")
@click.option("--price", type=FiniteRange(min=0), default=0.0, show_default=True, help="US dollars per judged sample.")
@click.option(
    "--drop",
    type=FiniteRange(0, 1, min_open=True),
    default=0.1,
    show_default=True,
    help="Drop of the mean that must be detected.",
)
@click.option("--within", help="Find the lowest rate that detects the drop within this time, such as 4h.")
@click.option(
    "--probability",
    "rates",
    multiple=True,
    type=FiniteRange(0, 1, min_open=True),
    help="Sampling rate to evaluate; may be given several times.",
)
@click.option("--config", "path", type=CONFIG, help="Configuration file; its key `drift` is used.")
@click.option(
    "--scores", type=click.Path(path_type=Path), help="File of past scores, as for backtest; else simulated scores."
)
@click.option(
    "--quantity",
    type=click.Choice([str(quantity) for quantity in Quantity]),
    default=str(Quantity.FAITHFULNESS),
    show_default=True,
    help="Quantity to take from --scores.",
)
@click.option(
    "--mean", type=FiniteRange(0.05, 0.99), default=0.9, show_default=True, help="Mean of the simulated scores."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def plan() -> None:
    """Show, per sampling rate: judged samples and cost per day, detection delay for a drop, interval width.

    Simulates the drift detector on these scores, with a baseline learned as in the daemon. Exit code 1 when no rate
    detects the drop --within the time.
    """


@lazy_command("ragwatch.commands.estimate:estimate")
@click.argument("files", nargs=-1, type=click.File("rb"))
@click.option("--labels", type=OUT, help="What people say of answers: JSONL with `id`, scores and `probability`.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def estimate() -> None:
    """Print the mean of each quantity over FILES (verdicts of `ragwatch judge`), and its level in people's terms.

    `-` or none is standard input. The level's interval contains the judge's own error, which labels make smaller. A
    label line is {"id": ..., "faithfulness": 0 to 1, "top_ranked_ignored": 0 or 1, "probability": that the answer was
    selected for labelling}. Exit code 3 when no answer has a score.
    """
