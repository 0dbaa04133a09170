"""`ragwatch gate`: compares judged samples with thresholds, for a CI pipeline."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape

from ragwatch.config import Config, load
from ragwatch.config.releases import GateOptions, rules_of
from ragwatch.errors import ConfigError
from ragwatch.offline.estimate import known_error, read_labels, warn_of_unmatched_labels
from ragwatch.offline.gates.gate_line import GateFigure, GateLine, GateMetric, baseline_of, gate_line
from ragwatch.offline.gates.regression import GateRun, attribute, run_of
from ragwatch.offline.gates.reports import OUTCOMES, junit, lost_lines, markdown, measures, sections, unsupported_lines
from ragwatch.offline.input_files import FileOptions, InputFiles
from ragwatch.offline.relevance import RelevanceCases, read_qrels
from ragwatch.offline.samples import SampleFiles, judge_named, read_all
from ragwatch.statistics.gate import GateDecision, GateRules, gate
from ragwatch.statistics.relevance import KS, RankingMetric
from ragwatch.telemetry import configure_logging
from ragwatch.terminal.event_loop import run_async
from ragwatch.terminal.given import write_text
from ragwatch.terminal.options.offline import GateArguments
from ragwatch.terminal.output import compact_table, printable

CODES = {GateDecision.PASS: 0, GateDecision.FAIL: 1, GateDecision.NOT_ENOUGH_DATA: 3}
_COLOURS = {True: "green", False: "red", None: "yellow"}


def gate_command(given: GateArguments) -> int:
    """Judge the samples in FILES (JSONL; `-` or none is standard input) and compare them with thresholds."""
    configure_logging("error")
    config = None if given.path is None else load(given.path)
    relevance = RelevanceCases(None if given.qrels is None else read_qrels(given.qrels))
    sample_files = SampleFiles(InputFiles(config, FileOptions(given.format_name, given.source)), relevance)
    judge, rules = judge_named(config, given.name), _rules(config)
    if given.uncorrected and given.labels is not None:
        raise ConfigError("--labels and --uncorrected: give only one of them")
    people = {} if given.labels is None else read_labels(given.labels)
    previous = None if given.baseline is None else _baseline(given.baseline, judge.version)
    samples = sample_files.of_streams(given.files or (sys.stdin.buffer,))
    verdicts = run_async(read_all(sample_files, samples, judge))
    for warning in relevance.warnings():
        click.echo(printable(warning), err=True)
    warn_of_unmatched_labels(given.labels, people, {verdict.draw.sample.id for verdict in verdicts})
    error = None if given.uncorrected else known_error(judge.kind, judge.version, people)
    ks = _cut_offs(given.ks, previous)
    report = gate(verdicts, rules, rejected=sample_files.rejected, cases=relevance.cases, ks=ks, error=error)
    attribution = None if previous is None else attribute(previous, run_of(report), rules)
    if attribution is not None:
        report = replace(report, held=tuple(one.held for one in attribution.changes.values() if one.watched))
    line = gate_line(report, judge=judge.version, attribution=attribution)
    for out, text in ((given.junit_path, junit), (given.markdown_path, markdown)):
        if out is not None:
            write_text(str(out), out, text(line))
    if given.as_json:
        click.echo(json.dumps(line))
    else:
        _show(line)
    return CODES[report.verdict]


def _rules(config: Config | None) -> GateRules:
    if config is None:
        return rules_of(GateOptions(), None)
    settings = config.settings
    return rules_of(settings.gate, settings.gate_thresholds, settings.estimates.confidence)


def _cut_offs(given: Sequence[int], previous: GateRun | None) -> tuple[int, ...]:
    """The cut-offs asked for, and those of the baseline."""
    figures = () if previous is None else previous.figures
    before = {metric.k for metric in figures if isinstance(metric, RankingMetric) and metric.k is not None}
    return tuple(sorted({*given, *before})) or KS


def _baseline(path: Path, version: str) -> GateRun:
    """The run in the output of an earlier `gate --json`; `version` is that of the judge."""
    try:
        report = json.loads(path.read_bytes())  # bytes, because some shells write a byte order mark, or UTF-16
    except (OSError, ValueError) as error:
        raise ConfigError(f"--baseline {path}: cannot be read: {error}") from error
    if not isinstance(report, dict):
        raise ConfigError(f"--baseline {path}: is not the JSON that `ragwatch gate --json` prints")
    try:
        return baseline_of(report, version)
    except ValueError as error:
        raise ConfigError(f"--baseline {path}: {error}") from error


def _show(line: GateLine) -> None:
    console = Console(soft_wrap=True)
    for section, title in sections(line):
        if title:
            console.print(f"[bold]{title}[/]")
        _show_section(console, line["metrics"], line["figures"], section)
    for text in measures(line):
        console.print(escape(text))
    for metric in line["metrics"]:
        if metric["reason"] and metric["applies"]:
            console.print(f"{metric['metric']}: {escape(metric['reason'])}")
    for route, figures in line["routes"].items():
        shown = ", ".join(f"{row['metric']} {row['value']:.3f}" for row in figures)
        cases = max((row["n"] for row in figures), default=0)
        console.print(f"route {escape(route)} ({cases} cases): {shown or 'unknown, no case could be ranked'}")
    unread = ", ".join(f"{reason} {count}" for reason, count in line["unread"].items())
    console.print(f"{line['judged']} samples judged by {escape(line['judge'])}; not judged: {unread or 'none'}")
    lost = [] if line["baseline"] is None else lost_lines(line["baseline"]["lost"])
    for text in (*unsupported_lines(line), *lost):
        console.print(escape(text))
    if line["unranked"]:
        unranked = ", ".join(f"{reason} {count}" for reason, count in line["unranked"].items())
        console.print(f"relevance judgements without a ranking: {unranked}")
    console.print(f"[bold]{line['verdict']}[/]: {escape(line['recommendation'])}")


def _show_section(console: Console, metrics: Sequence[GateMetric], figures: Sequence[GateFigure], section: str) -> None:
    """Show the metrics of a section: those with a threshold, then the others."""
    limited = [metric for metric in metrics if metric["section"] == section]
    table = compact_table("metric", "value", "interval", "n", "threshold", "severity", "outcome")
    for metric in limited:
        table.add_row(
            *_mean(metric),
            f"{'<=' if metric['lower_is_better'] else '>='} {metric['threshold']:g}",
            metric["severity"],
            f"[{_COLOURS[metric['pass']]}]{OUTCOMES[metric['pass']]}[/]",
        )
    if limited:
        console.print(table)
    others = [figure for figure in figures if figure["section"] == section]
    table = compact_table("without threshold", "mean", "interval", "n")
    for figure in others:
        table.add_row(*_mean(figure))
    if others:
        console.print(table)


def _mean(metric: GateFigure) -> tuple[str, str, str, str]:
    """Name, value, interval and number of scores of a metric."""
    if metric["value"] is None:
        return metric["metric"], "unknown", "", str(metric["n"])
    interval = f"{metric['low']:.3f}..{metric['high']:.3f}"
    return metric["metric"], f"{metric['value']:.3f}", interval, str(metric["n"])
