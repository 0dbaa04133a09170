"""`ragwatch gate`: compares judged samples with thresholds, for a CI pipeline, with JUnit XML and Markdown for it."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import click
from rich.console import Console
from rich.markup import escape

from ragwatch.config import load
from ragwatch.config.model import Settings
from ragwatch.config.releases import rules_of
from ragwatch.errors import ConfigError
from ragwatch.model.quantity_row import GateSeverity
from ragwatch.offline.estimate import known_error, read_labels, warn_of_unmatched_labels
from ragwatch.offline.gate_line import GateOutcome, baseline_of, gate_line, recommendation, section
from ragwatch.offline.input_files import InputFiles
from ragwatch.offline.judge import SampleFiles, judge_named, read_all
from ragwatch.offline.regression import GateRun, MetricChange, attribute, describe_change, run_of
from ragwatch.offline.relevance import RelevanceCases, read_qrels
from ragwatch.statistics.gate import Figure, GateDecision, GateReport, MetricFinding, gate
from ragwatch.statistics.question_scores import LostQuestion, QuestionScores
from ragwatch.statistics.relevance import KS, CaseKind, RankingMetric
from ragwatch.terminal.event_loop import run_async
from ragwatch.terminal.given import write_text
from ragwatch.terminal.options.offline import GateArguments
from ragwatch.terminal.output import compact_table, counted, say

CODES = {GateDecision.PASS: 0, GateDecision.FAIL: 1, GateDecision.NOT_ENOUGH_DATA: 3}
_OUTCOMES = {True: "pass", False: "FAIL", None: "unknown"}
_COLOURS = {True: "green", False: "red", None: "yellow"}
_MOST_LISTED = 10
"""Questions that a text lists; JSON has all."""


def gate_command(given: GateArguments) -> int:
    """Judge the samples in FILES (JSONL; `-` or none is standard input) and compare them with thresholds."""
    config = None if given.path is None else load(given.path)
    relevance = RelevanceCases(None if given.qrels is None else read_qrels(given.qrels))
    sample_files = SampleFiles(InputFiles(config, given.format_name, given.source), relevance)
    judge, settings = judge_named(config, given.name), Settings() if config is None else config.settings
    rules = rules_of(settings.gate, settings.gate_thresholds, settings.estimates.confidence)
    if given.uncorrected and given.labels is not None:
        raise ConfigError("--labels and --uncorrected: give only one of them")
    people = {} if given.labels is None else read_labels(given.labels)
    previous = None if given.baseline is None else _baseline(given.baseline, judge.version)
    samples = sample_files.of_streams(given.files or (sys.stdin.buffer,))
    verdicts = run_async(read_all(sample_files, samples, judge))
    for warning in relevance.warnings():
        say(warning)
    warn_of_unmatched_labels(given.labels, people, {verdict.draw.sample.id for verdict in verdicts})
    error = None if given.uncorrected else known_error(judge.kind, judge.version, people)
    known = () if previous is None else previous.figures
    before = {metric.k for metric in known if isinstance(metric, RankingMetric) and metric.k is not None}
    ks = tuple(sorted({*given.ks, *before})) or KS
    report = gate(verdicts, rules, rejected=sample_files.rejected, cases=relevance.cases, ks=ks, error=error)
    attribution = None if previous is None else attribute(previous, run_of(report), rules)
    if attribution is not None:
        report = replace(report, held=tuple(one.held for one in attribution.changes.values() if one.watched))
    outcome = GateOutcome(report, judge.version, attribution)
    for out, text in ((given.junit_path, junit), (given.markdown_path, markdown)):
        if out is not None:
            write_text(str(out), out, text(outcome))
    if given.as_json:
        click.echo(json.dumps(gate_line(outcome)))
    else:
        _show(outcome)
    return CODES[report.verdict]


def _baseline(path: Path, version: str) -> GateRun:
    """The run in the output of an earlier `gate --json`; `version` is that of the judge."""
    try:
        report = json.loads(path.read_bytes())  # bytes, because some shells write a byte order mark, or UTF-16
        return baseline_of(report, version)
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ConfigError(f"--baseline {path}: cannot be read: {error}") from error
    except ValueError as error:
        raise ConfigError(f"--baseline {path}: {error}") from error


def _show(outcome: GateOutcome) -> None:
    console, report = Console(soft_wrap=True), outcome.report
    for name, title in _sections(report):
        if title:
            console.print(f"[bold]{title}[/]")
        _show_section(console, report, name)
    for text in _measures(report):
        console.print(escape(text))
    for finding in report.findings:
        if finding.reason and finding.applies:
            console.print(f"{finding.limit.metric}: {escape(finding.reason)}")
    for route, figures in report.routes.items():
        shown = ", ".join(f"{figure.metric} {figure.estimate.value:.3f}" for figure in figures)
        cases = max((figure.n for figure in figures), default=0)
        console.print(f"route {escape(route)} ({cases} cases): {shown or 'unknown, no case could be ranked'}")
    console.print(f"{report.judged} samples judged by {escape(outcome.judge)}; not judged: {_unread(report)}")
    for text in (*_unsupported_lines(report), *lost_lines(_lost(outcome))):
        console.print(escape(text))
    if report.unranked:
        console.print(f"relevance judgements without a ranking: {counted(dict(sorted(report.unranked.items())))}")
    console.print(f"[bold]{report.verdict}[/]: {escape(recommendation(report, outcome.attribution))}")


def _show_section(console: Console, report: GateReport, name: str) -> None:
    limited = compact_table("metric", "value", "interval", "n", "threshold", "severity", "outcome")
    others = compact_table("without threshold", "mean", "interval", "n")
    for row in _of_section(report, name):
        if isinstance(row, Figure):
            others.add_row(str(row.metric), *_cells(row, ".."))
        else:
            limit = row.limit
            limited.add_row(
                str(limit.metric),
                *_cells(row, ".."),
                f"{'<=' if limit.low_is_good else '>='} {limit.threshold:g}",
                str(limit.severity),
                f"[{_COLOURS[row.passed]}]{_OUTCOMES[row.passed]}[/]",
            )
    for table in (limited, others):
        if table.row_count:
            console.print(table)


def _of_section(report: GateReport, name: str) -> Iterator[MetricFinding | Figure]:
    yield from (finding for finding in report.findings if section(finding.limit.metric) == name)
    yield from (figure for figure in report.figures if section(figure.metric) == name)


def _cells(row: MetricFinding | Figure, between: str) -> tuple[str, str, str]:
    """Value, interval and number of scores of a metric, as the cells of a table."""
    interval = row.estimate if isinstance(row, Figure) else row.compared
    if interval is None:
        return "unknown", "", str(row.n)
    return f"{interval.value:.3f}", f"{interval.low:.3f}{between}{interval.high:.3f}", str(row.n)


def _unread(report: GateReport) -> str:
    return counted(dict(sorted(report.unread.items()))) or "none"


def junit(outcome: GateOutcome) -> str:
    """Convert the outcome to JUnit XML, with one test case per metric, and one per metric that must not fall.

    A metric of severity `block` that fails is a failure; if it is unknown, it is an error, because it must not look
    like a pass. A metric of severity `warn` that fails or is unknown is skipped with a message: it never fails a build.
    So is one that does not apply. A fall since the baseline is a failure, with the questions that lost.
    """
    report = outcome.report
    cases = [_case(finding) for finding in report.findings]
    if outcome.attribution is not None:
        lost = lost_lines(_lost(outcome))
        cases += [_change_case(one, lost) for one in outcome.attribution.changes.values() if one.watched]
    counts = {name: str(sum(case.find(name) is not None for case in cases)) for name in ("failure", "error", "skipped")}
    totals = {"failures": counts["failure"], "errors": counts["error"], "skipped": counts["skipped"]}
    suites = Element("testsuites", {"name": "ragwatch", "tests": str(len(cases)), **totals})
    suite = SubElement(suites, "testsuite", {"name": "ragwatch gate", "tests": str(len(cases)), **totals})
    suite.extend(cases)
    said = [f"{report.verdict}: {recommendation(report, outcome.attribution)}", *_unsupported_lines(report)]
    SubElement(suite, "system-out").text = "\n".join(map(_clean, said))
    indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


def _case(finding: MetricFinding) -> Element:
    limit, compared = finding.limit, finding.compared
    case = Element("testcase", {"classname": "ragwatch.gate", "name": str(limit.metric)})
    if finding.passed is True:
        return case
    blocks = limit.severity is GateSeverity.BLOCK and finding.applies
    name = ("failure" if finding.passed is False else "error") if blocks else "skipped"
    prefix = "" if blocks else "warning only: " if finding.applies else "does not apply: "
    figure = "unknown"
    if compared is not None:
        figure = f"{compared.value:.3f} [{compared.low:.3f}, {compared.high:.3f}] of {finding.n}"
    sign = "at most" if limit.low_is_good else "at least"
    reason = f" ({finding.reason})" if finding.reason else ""
    SubElement(case, name, {"message": _clean(f"{prefix}{figure}, required {sign} {limit.threshold:g}{reason}")})
    return case


def _change_case(one: MetricChange, lost: Sequence[str]) -> Element:
    case = Element("testcase", {"classname": "ragwatch.gate.baseline", "name": f"{one.metric} since the baseline"})
    if one.held is not True:
        kind = "failure" if one.held is False else "error"
        SubElement(case, kind, {"message": _clean(describe_change(one))}).text = "\n".join(map(_clean, lost))
    return case


def _lost(outcome: GateOutcome) -> Sequence[LostQuestion]:
    return () if outcome.attribution is None else outcome.attribution.lost


def lost_lines(lost: Sequence[LostQuestion], since: str = "since the baseline") -> list[str]:
    """Names the questions that lost most, with their scores before and now."""
    rows = [f"{_place(one.question)}: {_losses(one)}" for one in lost]
    return _listed(f"{len(lost)} questions lost {since}, those that lost most first:", rows)


def _unsupported_lines(report: GateReport) -> list[str]:
    """Names the statements of references that no context supports, by row, with the words that no context has."""
    count = 0
    listed = []
    for question, claims in report.unsupported:
        parts = []
        for claim in claims:
            text, words = " ".join(claim.text.split()), ", ".join(claim.missing)
            known = f'"{text}"' if words in ("", claim.text) else f'"{text}" (no context has: {words})'
            parts += [] if claim.supported else [known]
        count += len(parts)
        listed.append(f"{_place(question)}: {'; '.join(parts)}")
    return _listed(f"{count} statements of the references of {len(listed)} rows are supported by no context:", listed)


def _listed(title: str, rows: Sequence[str]) -> list[str]:
    if not rows:
        return []
    lines = [title, *(f"  {row}" for row in rows[:_MOST_LISTED])]
    return lines if len(rows) <= _MOST_LISTED else [*lines, f"  and {len(rows) - _MOST_LISTED} more, in --json"]


def _place(one: QuestionScores, *, linked: bool = True) -> str:
    question, link = " ".join((one.question or "").split()), one.link if linked else None
    return " ".join(part for part in (one.id, f"({question})" if question else "", link) if part)


def _losses(one: LostQuestion) -> str:
    return ", ".join(f"{name} {before:.3f} -> {now:.3f}" for name, (before, now) in one.lost.items())


def _sections(report: GateReport) -> list[tuple[str, str]]:
    """Sections of a report with their titles: test cases of retrieval and answers are never averaged together.

    The title is empty if there are no relevance judgements, so that there is one section only.
    """
    both, alone = (report.kinds.get(kind, 0) for kind in (CaseKind.END_TO_END, CaseKind.RETRIEVAL))
    ranked, answered = alone + both, report.kinds.get(CaseKind.GENERATION, 0) + both
    if not ranked and all(section(finding.limit.metric) == "answers" for finding in report.findings):
        return [("answers", "")]
    if not answered:
        return [("retrieval", f"Retrieval: {ranked} test cases with relevance judgements; no row has an answer")]
    with_answer = f", {both} of them with an answer" if both else ""
    answers = "generation test cases" if alone else "answers"
    return [
        ("retrieval", f"Retrieval: {ranked} test cases with relevance judgements{with_answer}"),
        ("answers", f"Generation: {answered} {answers}"),
    ]


def _measures(report: GateReport) -> list[str]:
    """Say of which metrics the level was compared, and of which the judge's mean."""
    lines, means = [], []
    for finding in report.findings:
        metric, level, mean = finding.limit.metric, finding.level, finding.estimate
        if section(metric) != "answers" or mean is None:
            continue
        if level is None:
            means.append(str(metric))
        else:
            lines.append(
                f"{metric}: level in people's terms, with {level.labels} labels; "
                f"the judge's mean is {mean.value:.3f} ({mean.low:.3f}..{mean.high:.3f})"
            )
    return [*lines, f"judge's mean, not corrected: {', '.join(means)}"] if means else lines


def markdown(outcome: GateOutcome) -> str:
    """Convert the outcome to a summary in Markdown, for example for a pull request."""
    report = outcome.report
    said = _escape(recommendation(report, outcome.attribution))
    parts = [f"## ragwatch gate: {report.verdict.replace('_', ' ')}", said]
    for name, title in _sections(report):
        parts += [*([f"### {title}"] if title else []), _markdown_table(report, name)]
    parts += [_escape(text) for text in _measures(report)]
    if lost := _lost(outcome):
        title, *listed = lost_lines(lost)
        rows = [f"| {_linked(one.question)} | {_escape(_losses(one))} |" for one in lost[:_MOST_LISTED]]
        parts += [f"### {title}", "\n".join(["| question | scores |", "|---|---|", *rows]), *listed[_MOST_LISTED:]]
    title, *unsupported = _unsupported_lines(report) or [""]
    if title:
        parts += [f"### {title}", "\n".join(f"- {_escape(row.strip())}" for row in unsupported)]
    judge = outcome.judge.replace("`", "")
    parts.append(f"Judged {report.judged} samples by `{judge}`; not judged: {_escape(_unread(report))}.")
    return "\n\n".join(parts) + "\n"


def _linked(one: QuestionScores) -> str:
    text = _escape(_place(one, linked=False))
    return text if one.link is None else f"[{text}](<{one.link.translate(_NOT_IN_LINKS)}>)"


def _markdown_table(report: GateReport, name: str) -> str:
    rows = []
    for row in _of_section(report, name):
        metric, rest = (row.metric, "| |") if isinstance(row, Figure) else (row.limit.metric, "")
        if isinstance(row, MetricFinding):
            limit = row.limit
            reason = f": {_escape(row.reason)}" if row.reason else ""
            sign = "≤" if limit.low_is_good else "≥"
            rest = f"{sign} {limit.threshold:g} | {limit.severity} | {_OUTCOMES[row.passed]}{reason}"
        rows.append(" | ".join((f"| {metric.replace('_', ' ')}", *_cells(row, " – "), f"{rest} |")))
    head = ["| metric | value | interval | n | threshold | severity | outcome |", "|---|---:|---|---:|---|---|---|"]
    return "\n".join([*head, *rows])


def _escape(text: str) -> str:
    """Escape the special characters of Markdown."""
    return "".join(f"\\{char}" if char in "\\`*[]<>|#" else char for char in text)


_NOT_IN_LINKS = {ord("<"): "%3C", ord(">"): "%3E", ord("|"): "%7C", ord("\n"): ""}


def _clean(text: str) -> str:
    """Replace the characters that are not allowed in XML."""
    return "".join(char if char.isprintable() else " " for char in text)
