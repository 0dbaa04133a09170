"""`ragwatch compare`: two variants over the same questions, with an interval around their difference."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ragwatch.commands.input_files import FileOptions, InputFiles
from ragwatch.commands.samples import SampleFiles, judge_named, read_all
from ragwatch.commands.terminal import shown
from ragwatch.commands.variants import live, told_apart
from ragwatch.config import Config, load
from ragwatch.config.canaries import SuiteConfig
from ragwatch.config.text import duration_seconds
from ragwatch.core.canary.report import CanaryReport
from ragwatch.core.compare_line import Comparison, compare_answers, compare_line, compare_reports, compare_verdicts
from ragwatch.core.verdict import Judged, Verdict
from ragwatch.daemon.suites import suite_of
from ragwatch.errors import ConfigError
from ragwatch.telemetry import configure_logging

WORSE, NOTHING = 1, 3
_YAML = (".yaml", ".yml")
_COLOURS = {"better": "green", "worse": "red", "noise": "dim"}
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


class CompareOptions(NamedTuple):
    """What the options say.

    Attributes:
        config: The configuration, if one is named.
        judge: Name of the judge, or its kind.
        intended: How the rows are to be read.
        log: Logs of both variants, if they are in one.
        label: Where in the metadata a variant is named.
        since: From when on live traffic counts, in seconds since the epoch; None where it is not asked for.
    """

    config: Config | None
    judge: str | None
    intended: InputFiles
    log: Sequence[Path]
    label: str
    since: float | None


def compare(  # noqa: PLR0913 - one argument for each option of the command line
    *,
    a: str,
    b: str,
    path: Path | None,
    judge: str | None,
    format_name: str | None,
    source: str | None,
    log: Sequence[Path],
    on_live: bool,
    since: str,
    label: str,
    as_json: bool,
) -> int:
    """Compare B with A over the same questions."""
    configure_logging("error")
    config = None if path is None else load(path)
    intended = InputFiles(config, FileOptions(format_name, source))
    asked = CompareOptions(config, judge, intended, log, label, time.time() - _seconds(since) if on_live else None)
    found, warnings = _compare(a, b, asked)
    line = compare_line(found, a, b) | {"warnings": warnings}
    if as_json:
        click.echo(json.dumps(line))
    else:
        _show(line)
    if not found.rows:
        return NOTHING
    return WORSE if found.worse else 0


def _compare(a: str, b: str, asked: CompareOptions) -> tuple[Comparison, list[str]]:
    if asked.since is not None:
        return _live(a, b, asked, asked.since)
    suites = {} if asked.config is None else {each.place.suite: each for each in asked.config.canaries}
    if asked.log:
        return _variants(a, b, asked)
    if a in suites and b in suites:
        return _suites([suites[a]], [suites[b]], _confidence(asked))
    if all(each.endswith(_YAML) for each in (a, b)):
        return _suites(load(Path(a)).canaries, load(Path(b)).canaries, _confidence(asked))
    for each in (a, b):
        if not Path(each).is_file():
            known = f" or one of the suites {', '.join(suites)}" if suites else ""
            raise ConfigError(f"{each}: is no file; give two logs (JSONL), two configurations (YAML){known}")
    return _logs(a, b, asked)


def _logs(a: str, b: str, asked: CompareOptions) -> tuple[Comparison, list[str]]:
    first, warned = _read([Path(a)], asked)
    second, also = _read([Path(b)], asked)
    return compare_verdicts(first, second, _confidence(asked)), [*warned, *also]


def _variants(a: str, b: str, asked: CompareOptions) -> tuple[Comparison, list[str]]:
    verdicts, warned = _read(asked.log, asked)
    first, second = told_apart(a, b, ((each, each.draw.sample.metadata) for each in verdicts), asked.label)
    return compare_verdicts(first, second, _confidence(asked)), warned


def _live(a: str, b: str, asked: CompareOptions, since: float) -> tuple[Comparison, list[str]]:
    if asked.config is None or asked.log:
        raise ConfigError("--live: reads the state of --config; give that, and no --log")
    found = live(a, b, asked.config, label=asked.label, judge=asked.judge, since=since)
    return compare_answers(found.a, found.b, _confidence(asked)), found.warnings


def _seconds(since: str) -> float:
    try:
        return float(str(duration_seconds(since)))
    except ValueError as error:
        raise ConfigError(f"--since {since}: {error}") from error


def _read(paths: Sequence[Path], asked: CompareOptions) -> tuple[list[Verdict], list[str]]:
    """Verdicts on the samples of logs, and what is to be known of those that could not be read."""
    rows = SampleFiles(asked.intended)
    streams = [path.open("rb") for path in paths]
    try:
        verdicts = asyncio.run(read_all(rows, streams, judge_named(asked.config, asked.judge)))
    finally:
        for stream in streams:
            stream.close()
    unjudged = sum(not isinstance(each, Judged) for each in verdicts)
    names = ", ".join(path.name for path in paths)
    told = ((rows.rejected.total(), "rows are no samples"), (unjudged, "samples could not be judged"))
    return verdicts, [f"{names}: {count} {what} and are left out" for count, what in told if count]


def _confidence(asked: CompareOptions) -> float:
    return 0.95 if asked.config is None else asked.config.settings.estimates.confidence


def _suites(a: Sequence[SuiteConfig], b: Sequence[SuiteConfig], confidence: float) -> tuple[Comparison, list[str]]:
    ks = sorted(set.intersection(*(set(each.place.k) for each in (*a, *b)))) if a and b else []
    if not ks:
        raise ConfigError("canaries: nothing to compare: a side has no suite, or no `k` is common to all of them")
    first, second = asyncio.run(_asked(a, b, tuple(ks)))
    warned = [
        f"{name}: {failed} canaries failed and are left out"
        for name, side in (("A", first), ("B", second))
        if (failed := sum(each.failure is not None for each in side))
    ]
    return compare_reports(first, second, ks, confidence), warned


async def _asked(a: Sequence[SuiteConfig], b: Sequence[SuiteConfig], ks: tuple[int, ...]) -> list[list[CanaryReport]]:
    """The canaries of both sides, asked one suite after the other so that neither slows the other down.

    Both are asked for as many passages: success among twenty is another thing than success among five.
    """
    console = Console(stderr=True)
    sides: list[list[CanaryReport]] = []
    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
        for side in (a, b):
            reports: list[CanaryReport] = []
            for suite in progress.track([replace(suite_of(each), ks=ks) for each in side], description="asking"):
                try:
                    reports += (await suite.ask(time.time)).reports
                finally:
                    await suite.probe.close()
            sides.append(reports)
    return sides


def _show(line: dict[str, Any]) -> None:
    console = Console(soft_wrap=True)
    how = "paired" if line["paired"] else "NOT paired, so the interval is wider"
    console.print(
        f"{line['shared']} {line['unit']} are on both sides ({how}); only in A {line['only_a']}, in B {line['only_b']}"
    )
    for each in line["warnings"]:
        console.print(f"[yellow]{shown(each)}[/]")
    if not line["metrics"]:
        console.print("nothing can be compared: no metric is known on both sides")
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))  # eight columns on a terminal of eighty
    table.add_column("metric", min_width=16)
    for name in ("A", "B", "B - A", "interval", "n", "w/t/l", ""):
        table.add_column(name, no_wrap=True)
    for each in line["metrics"]:
        _row(table, each["metric"].replace("_", " "), each)
        for category, part in each["categories"].items():
            _row(table, f"  {shown(category) or 'none'}", part)
    console.print(table)
    for each in line["metrics"]:
        if each["warning"]:
            console.print(f"{each['metric']}: may be noise: {each['warning']}")


def _row(table: Table, name: str, found: dict[str, Any]) -> None:
    games = "" if found["wins"] is None else f"{found['wins']}/{found['ties']}/{found['losses']}"
    table.add_row(
        name,
        f"{found['a']:.3f}",
        f"{found['b']:.3f}",
        f"{found['difference']:+.3f}",
        f"{found['low']:+.3f}..{found['high']:+.3f}",
        str(found["n"]),
        games,
        f"[{_COLOURS[found['conclusion']]}]{found['conclusion']}[/]",
    )
