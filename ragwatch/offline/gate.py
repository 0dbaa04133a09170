"""`ragwatch gate`: compares judged samples with thresholds, for a CI pipeline, with JUnit XML and Markdown for it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import click
from rich.console import Console
from rich.markup import escape

from ragwatch.config import Config, load
from ragwatch.config.releases import GateOptions, rules_of
from ragwatch.errors import ConfigError
from ragwatch.offline.estimate import known_error, read_labels, warn_of_unmatched_labels
from ragwatch.offline.gate_line import (
    ChangeLine,
    GateFigure,
    GateLine,
    GateMetric,
    ReferenceLine,
    baseline_of,
    gate_line,
)
from ragwatch.offline.input_files import InputFiles
from ragwatch.offline.judge import SampleFiles, judge_named, read_all
from ragwatch.offline.regression import GateRun, attribute, run_of
from ragwatch.offline.relevance import RelevanceCases, read_qrels
from ragwatch.statistics.gate import GateDecision, GateRules, gate
from ragwatch.statistics.question_scores import LostLine
from ragwatch.statistics.relevance import KS, RankingMetric
from ragwatch.telemetry import configure_logging
from ragwatch.terminal.event_loop import run_async
from ragwatch.terminal.given import write_text
from ragwatch.terminal.options.offline import GateArguments
from ragwatch.terminal.output import compact_table, printable

CODES = {GateDecision.PASS: 0, GateDecision.FAIL: 1, GateDecision.NOT_ENOUGH_DATA: 3}
_OUTCOMES = {True: "pass", False: "FAIL", None: "unknown"}
_COLOURS = {True: "green", False: "red", None: "yellow"}
_MOST_LISTED = 10
"""Questions that a text lists; JSON has all."""


def gate_command(given: GateArguments) -> int:
    """Judge the samples in FILES (JSONL; `-` or none is standard input) and compare them with thresholds."""
    configure_logging("error")
    config = None if given.path is None else load(given.path)
    relevance = RelevanceCases(None if given.qrels is None else read_qrels(given.qrels))
    sample_files = SampleFiles(InputFiles(config, given.format_name, given.source), relevance)
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
    for section, title in _sections(line):
        if title:
            console.print(f"[bold]{title}[/]")
        _show_section(console, line["metrics"], line["figures"], section)
    for text in _measures(line):
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
    for text in (*_unsupported_lines(line), *lost_lines(_lost(line))):
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
            metric["metric"],
            *_cells(metric, ".."),
            f"{'<=' if metric['lower_is_better'] else '>='} {metric['threshold']:g}",
            metric["severity"],
            f"[{_COLOURS[metric['pass']]}]{_OUTCOMES[metric['pass']]}[/]",
        )
    if limited:
        console.print(table)
    others = [figure for figure in figures if figure["section"] == section]
    table = compact_table("without threshold", "mean", "interval", "n")
    for figure in others:
        table.add_row(figure["metric"], *_cells(figure, ".."))
    if others:
        console.print(table)


def _cells(metric: GateFigure, between: str) -> tuple[str, str, str]:
    """Value, interval and number of scores of a metric, as the cells of a table."""
    if metric["value"] is None:
        return "unknown", "", str(metric["n"])
    return f"{metric['value']:.3f}", f"{metric['low']:.3f}{between}{metric['high']:.3f}", str(metric["n"])


def junit(line: GateLine) -> str:
    """Convert a gate line to JUnit XML, with one test case per metric, and one per metric that must not fall.

    A metric of severity `block` that fails is a failure; if it is unknown, it is an error, because it must not look
    like a pass. A metric of severity `warn` that fails or is unknown is skipped with a message: it never fails a build.
    So is one that does not apply. A fall since the baseline is a failure, with the questions that lost.
    """
    cases = [_case(metric) for metric in line["metrics"]]
    if line["baseline"] is not None:
        watched = {name: one for name, one in line["baseline"]["changes"].items() if one["watched"]}
        cases += [_change_case(name, one, lost_lines(_lost(line))) for name, one in watched.items()]
    counts = {name: str(sum(case.find(name) is not None for case in cases)) for name in ("failure", "error", "skipped")}
    totals = {"failures": counts["failure"], "errors": counts["error"], "skipped": counts["skipped"]}
    suites = Element("testsuites", {"name": "ragwatch", "tests": str(len(cases)), **totals})
    suite = SubElement(suites, "testsuite", {"name": "ragwatch gate", "tests": str(len(cases)), **totals})
    suite.extend(cases)
    said = [f"{line['verdict']}: {line['recommendation']}", *_unsupported_lines(line)]
    SubElement(suite, "system-out").text = "\n".join(map(_clean, said))
    indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


def _case(metric: GateMetric) -> Element:
    case = Element("testcase", {"classname": "ragwatch.gate", "name": metric["metric"]})
    if metric["pass"] is True:
        return case
    blocks = metric["severity"] == "block" and metric["applies"]
    name = ("failure" if metric["pass"] is False else "error") if blocks else "skipped"
    prefix = "" if blocks else "warning only: " if metric["applies"] else "does not apply: "
    figure = "unknown"
    if metric["value"] is not None:
        figure = f"{metric['value']:.3f} [{metric['low']:.3f}, {metric['high']:.3f}] of {metric['n']}"
    sign = "at most" if metric["lower_is_better"] else "at least"
    reason = f" ({metric['reason']})" if metric["reason"] else ""
    SubElement(case, name, {"message": _clean(f"{prefix}{figure}, required {sign} {metric['threshold']:g}{reason}")})
    return case


def _change_case(name: str, one: ChangeLine, lost: Sequence[str]) -> Element:
    case = Element("testcase", {"classname": "ragwatch.gate.baseline", "name": f"{name} since the baseline"})
    if one["held"] is not True:
        kind = "failure" if one["held"] is False else "error"
        SubElement(case, kind, {"message": _clean(one["described"])}).text = "\n".join(map(_clean, lost))
    return case


def _lost(line: GateLine) -> Sequence[LostLine]:
    return () if line["baseline"] is None else line["baseline"]["lost"]


def lost_lines(lost: Sequence[LostLine], since: str = "since the baseline") -> list[str]:
    """Names the questions that lost most, with their scores before and now."""
    rows = [f"{_place(one)}: {_losses(one)}" for one in lost]
    return _listed(f"{len(lost)} questions lost {since}, those that lost most first:", rows)


def _unsupported_lines(line: GateLine) -> list[str]:
    """Names the statements of references that no context supports, by row, with the words that no context has."""
    rows = line["references"]
    count = sum(len(row["missing"]) for row in rows)
    listed = []
    for row in rows:
        parts = []
        for one in row["statements"]:
            text, words = " ".join(one["text"].split()), ", ".join(one["missing"])
            known = f'"{text}"' if words in ("", one["text"]) else f'"{text}" (no context has: {words})'
            parts += [] if one["supported"] else [known]
        listed.append(f"{_place(row)}: {'; '.join(parts)}")
    return _listed(f"{count} statements of the references of {len(rows)} rows are supported by no context:", listed)


def _listed(title: str, rows: Sequence[str]) -> list[str]:
    if not rows:
        return []
    lines = [title, *(f"  {row}" for row in rows[:_MOST_LISTED])]
    return lines if len(rows) <= _MOST_LISTED else [*lines, f"  and {len(rows) - _MOST_LISTED} more, in --json"]


def _place(one: LostLine | ReferenceLine, *, linked: bool = True) -> str:
    question, link = " ".join((one["question"] or "").split()), one["link"] if linked else None
    return " ".join(part for part in (one["id"], f"({question})" if question else "", link) if part)


def _losses(one: LostLine) -> str:
    return ", ".join(f"{name} {before:.3f} -> {now:.3f}" for name, (before, now) in one["scores"].items())


def _sections(line: GateLine) -> list[tuple[str, str]]:
    """Sections of a gate line with their titles: test cases of retrieval and answers are never averaged together.

    The title is empty if there are no relevance judgements, so that there is one section only.
    """
    cases = line["cases"]
    ranked = cases["retrieval"] + cases["end_to_end"]
    if not ranked and all(row["section"] == "answers" for row in line["metrics"]):
        return [("answers", "")]
    if not cases["generation"] + cases["end_to_end"]:
        return [("retrieval", f"Retrieval: {ranked} test cases with relevance judgements; no row has an answer")]
    both = f", {cases['end_to_end']} of them with an answer" if cases["end_to_end"] else ""
    answers = "generation test cases" if cases["retrieval"] else "answers"
    number = cases["generation"] + cases["end_to_end"]
    return [
        ("retrieval", f"Retrieval: {ranked} test cases with relevance judgements{both}"),
        ("answers", f"Generation: {number} {answers}"),
    ]


def _measures(line: GateLine) -> list[str]:
    """Say of which metrics the level was compared, and of which the judge's mean."""
    judged = [row for row in line["metrics"] if row["section"] == "answers" and row["value"] is not None]
    lines = [
        f"{row['metric']}: level in people's terms, with {row['labels']} labels; "
        f"the judge's mean is {row['mean']:.3f} ({row['mean_low']:.3f}..{row['mean_high']:.3f})"
        for row in judged
        if row["corrected"]
    ]
    means = ", ".join(row["metric"] for row in judged if not row["corrected"])
    return [*lines, f"judge's mean, not corrected: {means}"] if means else lines


def markdown(line: GateLine) -> str:
    """Convert a gate line to a summary in Markdown, for example for a pull request."""
    unread = ", ".join(f"{reason} {count}" for reason, count in line["unread"].items()) or "none"
    parts = [f"## ragwatch gate: {line['verdict'].replace('_', ' ')}", _escape(line["recommendation"])]
    for section, title in _sections(line):
        parts += [*([f"### {title}"] if title else []), _markdown_table(line["metrics"], line["figures"], section)]
    parts += [_escape(text) for text in _measures(line)]
    if lost := _lost(line):
        title, *listed = lost_lines(lost)
        rows = [f"| {_linked(one)} | {_escape(_losses(one))} |" for one in lost[:_MOST_LISTED]]
        parts += [f"### {title}", "\n".join(["| question | scores |", "|---|---|", *rows]), *listed[_MOST_LISTED:]]
    title, *unsupported = _unsupported_lines(line) or [""]
    if title:
        parts += [f"### {title}", "\n".join(f"- {_escape(row.strip())}" for row in unsupported)]
    parts.append(
        f"Judged {line['judged']} samples by `{line['judge'].replace('`', '')}`; not judged: {_escape(unread)}."
    )
    return "\n\n".join(parts) + "\n"


def _linked(one: LostLine) -> str:
    text = _escape(_place(one, linked=False))
    return text if one["link"] is None else f"[{text}](<{one['link'].translate(_NOT_IN_LINKS)}>)"


def _markdown_table(metrics: Sequence[GateMetric], figures: Sequence[GateFigure], section: str) -> str:
    rows = []
    for metric in (metric for metric in metrics if metric["section"] == section):
        limit = f"{'≤' if metric['lower_is_better'] else '≥'} {metric['threshold']:g} | {metric['severity']}"
        reason = f": {_escape(metric['reason'])}" if metric["reason"] else ""
        rows.append(f"{_markdown_cells(metric)} | {limit} | {_OUTCOMES[metric['pass']]}{reason} |")
    rows += [f"{_markdown_cells(figure)} | | | |" for figure in figures if figure["section"] == section]
    head = ["| metric | value | interval | n | threshold | severity | outcome |", "|---|---:|---|---:|---|---|---|"]
    return "\n".join([*head, *rows])


def _markdown_cells(figure: GateFigure) -> str:
    return " | ".join((f"| {figure['metric'].replace('_', ' ')}", *_cells(figure, " – ")))


def _escape(text: str) -> str:
    """Escape the special characters of Markdown."""
    return "".join(f"\\{char}" if char in "\\`*[]<>|#" else char for char in text)


_NOT_IN_LINKS = {ord("<"): "%3C", ord(">"): "%3E", ord("|"): "%7C", ord("\n"): ""}


def _clean(text: str) -> str:
    """Replace the characters that are not allowed in XML."""
    return "".join(char if char.isprintable() else " " for char in text)
