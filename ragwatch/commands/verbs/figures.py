"""Figures: the commands that reckon with scores of the past: backtest, plan."""

from __future__ import annotations

from pathlib import Path

import click

from ragwatch.commands.verbs.deferred import CONFIG, OUT, lazy_command
from ragwatch.core.scores import Quantity


@lazy_command("ragwatch.commands.backtest:backtest")
@click.argument("file", required=False, type=OUT)
@click.option("--config", "path", type=CONFIG, help="Configuration; its store, without FILE.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A key of `drift`, as in YAML.")
@click.option("--acknowledge-after", default="1d", show_default=True, help="An alarm stands for so long.")
@click.option("--quiet-until", metavar="TIME", help="All was well until then: pages before are false ones.")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout instead of a table.")
@click.option("--svg", type=OUT, help="Picture of value, evidence and alarms.")
def backtest() -> None:
    """Replay the scores in FILE (CSV or JSONL: `at`, a column for each quantity), or in a store, through the detectors.

    Optional columns: `route`, and `probability` with which the answer was drawn. Exit code 3 when no detector had
    scores enough to learn from.
    """


@lazy_command("ragwatch.commands.plan:plan")
@click.option("--per-day", type=click.FloatRange(min=0, min_open=True), required=True, help="Requests a day.")
@click.option("--price", type=click.FloatRange(min=0), default=0.0, show_default=True, help="US dollars a reading.")
@click.option(
    "--drop",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.1,
    show_default=True,
    help="Fall of the mean that must be noticed.",
)
@click.option("--within", help="Name the lowest rate that notices it in such a time, such as 4h.")
@click.option(
    "--probability", "rates", multiple=True, type=click.FloatRange(0, 1, min_open=True), help="Only such a rate."
)
@click.option("--config", "path", type=CONFIG, help="Configuration: its key `drift`.")
@click.option("--scores", type=click.Path(path_type=Path), help="Past scores (see backtest); else typical ones.")
@click.option(
    "--quantity",
    type=click.Choice([str(each) for each in Quantity]),
    default=str(Quantity.FAITHFULNESS),
    show_default=True,
    help="Which of them.",
)
@click.option("--mean", type=click.FloatRange(0.05, 0.99), default=0.9, show_default=True, help="Of typical scores.")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout instead of a table.")
def plan() -> None:
    """Show, by sampling rate: readings and cost a day, time from a drop to the page, width of the interval.

    The real detector is run over such scores, with a baseline learnt as the daemon learns it. Exit code 1 when no
    rate notices the drop --within the time.
    """
