"""Commands: one file a verb. Each verb imports what it needs when it runs, so that `--help` is instant."""

from __future__ import annotations

import click

from ragwatch import __version__
from ragwatch.commands.acknowledge import acknowledge
from ragwatch.commands.backtest import backtest
from ragwatch.commands.calibrate import calibrate
from ragwatch.commands.canary import canary
from ragwatch.commands.check import check
from ragwatch.commands.compare import compare
from ragwatch.commands.demo import demo
from ragwatch.commands.gate import gate_command
from ragwatch.commands.judge import judge
from ragwatch.commands.label import label
from ragwatch.commands.map import map_log
from ragwatch.commands.plan import plan
from ragwatch.commands.rules import rules
from ragwatch.commands.run import run


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="ragwatch")
def cli() -> None:
    """Watch live RAG traffic and export honest gauges of answer quality to Prometheus.

    Exit codes: 0 ok, 1 the thing checked is bad, 2 usage or configuration, 3 not enough data.
    """


for command in (
    run,
    demo,
    judge,
    canary,
    gate_command,
    compare,
    backtest,
    plan,
    acknowledge,
    label,
    calibrate,
    check,
    map_log,
    rules,
):
    cli.add_command(command)
