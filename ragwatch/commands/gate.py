"""`ragwatch gate`: compares judged samples with thresholds, for a CI pipeline."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ragwatch.commands.event_loop import run_async
from ragwatch.commands.input_files import FileOptions, InputFiles
from ragwatch.commands.reports import OUTCOMES, junit, markdown
from ragwatch.commands.samples import SampleFiles, judge_named, read_all
from ragwatch.config import Config, load
from ragwatch.config.gate import GateOptions, rules_of
from ragwatch.core.compare import Interval
from ragwatch.core.diagnosis import attribute
from ragwatch.core.gate import GateDecision, GateRules, Metric, gate
from ragwatch.core.gate_line import baseline_of, figures_of, gate_line
from ragwatch.errors import ConfigError
from ragwatch.ports import Judge
from ragwatch.telemetry import configure_logging

CODES = {GateDecision.PASS: 0, GateDecision.FAIL: 1, GateDecision.NOT_ENOUGH_DATA: 3}
_COLOURS = {True: "green", False: "red", None: "yellow"}


def gate_command(
    *,
    files: Sequence[BinaryIO],
    path: Path | None,
    name: str | None,
    format_name: str | None,
    source: str | None,
    baseline: Path | None,
    junit_path: Path | None,
    markdown_path: Path | None,
    as_json: bool,
) -> int:
    """Judge the samples in FILES (JSONL; `-` or none is standard input) and compare them with thresholds."""
    configure_logging("error")
    config = None if path is None else load(path)
    sample_files = SampleFiles(InputFiles(config, FileOptions(format_name, source)))
    judge, rules = judge_named(config, name), _rules(config)
    previous = None if baseline is None else _figures(baseline, judge)
    verdicts = run_async(read_all(sample_files, files or (sys.stdin.buffer,), judge))
    report = gate(verdicts, rules, rejected=sample_files.rejected)
    attribution = None if previous is None else attribute(previous, figures_of(report))
    line = gate_line(report, judge=judge.version, attribution=attribution)
    for out, text in ((junit_path, junit), (markdown_path, markdown)):
        if out is not None:
            _write(out, text(line))
    if as_json:
        click.echo(json.dumps(line))
    else:
        _show(line)
    return CODES[report.verdict]


def _rules(config: Config | None) -> GateRules:
    if config is None:
        return rules_of(GateOptions(), {})
    settings = config.settings
    return rules_of(settings.gate, settings.gate_thresholds, settings.estimates.confidence)


def _read(path: Path) -> dict[str, Any]:
    try:
        report = json.loads(path.read_bytes())  # bytes, because some shells write a byte order mark, or UTF-16
    except (OSError, ValueError) as error:
        raise ConfigError(f"--baseline {path}: cannot be read: {error}") from error
    if not isinstance(report, dict):
        raise ConfigError(f"--baseline {path}: is not the JSON that `ragwatch gate --json` prints")
    return report


def _figures(path: Path, judge: Judge) -> dict[Metric, Interval]:
    try:
        return baseline_of(_read(path), judge.version)
    except ValueError as error:
        raise ConfigError(f"--baseline {path}: {error}") from error


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error


def _show(line: dict[str, Any]) -> None:
    console = Console(soft_wrap=True)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("metric", "mean", "interval", "n", "threshold", "severity", "outcome"):
        table.add_column(name, no_wrap=True)
    for metric in line["metrics"]:
        has_value = metric["value"] is not None
        table.add_row(
            metric["metric"],
            f"{metric['value']:.3f}" if has_value else "unknown",
            f"{metric['low']:.3f}..{metric['high']:.3f}" if has_value else "",
            str(metric["n"]),
            f"{'<=' if metric['lower_is_better'] else '>='} {metric['threshold']:g}",
            metric["severity"],
            f"[{_COLOURS[metric['pass']]}]{OUTCOMES[metric['pass']]}[/]",
        )
    console.print(table)
    for metric in line["metrics"]:
        if metric["reason"]:
            console.print(f"{metric['metric']}: {escape(metric['reason'])}")
    unread = ", ".join(f"{reason} {count}" for reason, count in line["unread"].items())
    console.print(f"{line['judged']} samples judged by {escape(line['judge'])}; not judged: {unread or 'none'}")
    console.print(f"[bold]{line['verdict']}[/]: {escape(line['recommendation'])}")
