"""Runs canary suites once, and reads their last stored runs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.progress import Progress

from ragwatch.commands.state_reader import state_reader
from ragwatch.config import Config
from ragwatch.core.canary.history import report_of
from ragwatch.core.canary.report import SuiteReport
from ragwatch.pipeline.canaries.loop import KIND, CanarySuite


async def run_suites(suites: Sequence[CanarySuite]) -> list[SuiteReport]:
    """Run suites one after the other, with a progress bar on a terminal, and close their probes."""
    console = Console(stderr=True)
    reports = []
    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
        for suite in progress.track(suites, description="running canaries"):
            try:
                reports.append(await suite.ask(time.time))
            finally:
                await suite.probe.close()
    return reports


def stored_runs(config: Config, names: Iterable[str]) -> list[SuiteReport]:
    """Return the last stored run of each suite; suites that never ran, or whose run is damaged, are left out.

    Raises:
        ConfigError: The kind of store cannot be read.
        StoreError: There is no state yet, or it cannot be read.
    """
    with state_reader(config) as reader:
        runs = [run for name in names for run in reader.runs(KIND, name, 1)]
    reports = (report_of(run.name, run.body) for run in runs)
    return [report for report in reports if report is not None]
