"""`ragwatch compare`: compares two variants on the same questions, with an interval for each difference.

Variants are two logs, two retrievers, or answers of one log or of live traffic, which a metadata key tells apart.
"""

import json
import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import click
from rich.console import Console
from rich.table import Column, Table

from ragwatch.config import Config, load
from ragwatch.errors import ConfigError
from ragwatch.formats.relevance import Qrels
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import NO_METADATA
from ragwatch.offline.canary import built_suites, run_suites
from ragwatch.offline.estimate import known_error
from ragwatch.offline.gate import lost_lines
from ragwatch.offline.input_files import InputFiles
from ragwatch.offline.judge import SampleFiles, judge_named, left_out, read_all
from ragwatch.offline.relevance import RelevanceCases, read_qrels
from ragwatch.offline.state_reader import MAX_VERDICTS, retention_warning, state_reader
from ragwatch.pipeline.canaries import CanarySuite
from ragwatch.ports import Query
from ragwatch.statistics.canary.report import CanaryReport
from ragwatch.statistics.compare import Difference
from ragwatch.statistics.compare_line import (
    ComparedAnswer,
    Comparison,
    ComparisonRow,
    answer_of,
    compare_answers,
    compare_cases,
    compare_line,
    compare_reports,
    compare_verdicts,
)
from ragwatch.statistics.estimators.level import Level
from ragwatch.statistics.gate import level_counts
from ragwatch.statistics.relevance import KS, RankedCase
from ragwatch.statistics.verdict import Judged, Verdict
from ragwatch.terminal.event_loop import run_async
from ragwatch.terminal.given import judge_name, seconds_of
from ragwatch.terminal.options.offline import CompareArguments
from ragwatch.terminal.output import compact_table, escape_line

WORSE, NOT_ENOUGH_DATA = 1, 3
_YAML = (".yaml", ".yml")
_COLOURS = {"better": "green", "worse": "red", "noise": "dim"}


class _Setting(NamedTuple):
    """What a comparison is made with: the command line, the configuration, and what these name."""

    given: CompareArguments
    config: Config | None
    inputs: InputFiles
    qrels: Qrels | None

    @property
    def confidence(self) -> float:
        """Of the intervals."""
        return 0.95 if self.config is None else self.config.settings.estimates.confidence


class Compared(NamedTuple):
    """Result of a comparison of answers or canaries, with warnings about rows that are left out."""

    answers: Comparison
    warnings: list[str]
    # comparison of the ranking metrics of rows with relevance judgements; None if a side has none
    retrieval: Comparison | None = None
    # level of each side by quantity, where both have one. No conclusion rests on it
    levels: Mapping[Quantity, tuple[Level, Level]] = MappingProxyType({})


class _LogRows(NamedTuple):
    """Rows of logs: verdicts on those with an answer, and test cases with relevance judgements."""

    verdicts: list[Verdict]
    cases: list[RankedCase]
    warnings: list[str]


def compare(given: CompareArguments) -> int:
    """Compare B with A over the same questions."""
    config = None if given.path is None else load(given.path)
    inputs = InputFiles(config, given.format_name, given.source)
    both = _compare(_Setting(given, config, inputs, None if given.qrels is None else read_qrels(given.qrels)))
    if given.as_json:
        retrieval = None if both.retrieval is None else compare_line(both.retrieval, given.a, given.b)
        levels = {str(quantity): {"a": asdict(a), "b": asdict(b)} for quantity, (a, b) in both.levels.items()}
        line = compare_line(both.answers, given.a, given.b)
        click.echo(json.dumps(line | {"warnings": both.warnings, "retrieval": retrieval, "levels": levels}))
    else:
        _show(both)
    compared = [part for part in (both.answers, both.retrieval) if part is not None and part.rows]
    if not compared:
        return NOT_ENOUGH_DATA
    return WORSE if any(part.worse for part in compared) else 0


def _compare(options: _Setting) -> Compared:
    a, b = options.given.a, options.given.b
    if options.given.on_live:
        return _live(options)
    suites = [] if options.config is None else [suite.place.suite for suite in options.config.canaries]
    if options.given.log:
        return _variants(options)
    if options.config is not None and a in suites and b in suites:
        first, second = (built_suites(options.config, side) for side in (a, b))
        return _suites(first, second, options.confidence)
    if all(side.endswith(_YAML) for side in (a, b)):
        first, second = (built_suites(load(Path(side))) for side in (a, b))
        return _suites(first, second, options.confidence)
    for side in (a, b):
        if not Path(side).is_file():
            names = f" or two of the suites {', '.join(suites)}" if suites else ""
            raise ConfigError(f"{side}: is not a file; give two logs (JSONL), two configurations (YAML){names}")
    return _compare_rows(_read([Path(a)], options), _read([Path(b)], options), options)


def _compare_rows(a: _LogRows, b: _LogRows, options: _Setting) -> Compared:
    confidence = options.confidence
    return Compared(
        compare_verdicts(a.verdicts, b.verdicts, confidence),
        [*a.warnings, *b.warnings],
        compare_cases(a.cases, b.cases, tuple(options.given.ks) or KS, confidence),
        _levels(a.verdicts, b.verdicts, confidence),
    )


def _variants(options: _Setting) -> Compared:
    rows = _read(options.given.log, options)
    items: list[tuple[Verdict | RankedCase, Mapping[str, object]]] = [
        *((verdict, verdict.draw.sample.metadata) for verdict in rows.verdicts),
        *((case, case.metadata) for case in rows.cases),
    ]
    first, second = (
        _LogRows(
            [item for item in side if not isinstance(item, RankedCase)],
            [item for item in side if isinstance(item, RankedCase)],
            [],
        )
        for side in split_variants(options.given.a, options.given.b, items, options.given.label)
    )
    return _compare_rows(first._replace(warnings=rows.warnings), second, options)


def _levels(a: Sequence[Verdict], b: Sequence[Verdict], confidence: float) -> dict[Quantity, tuple[Level, Level]]:
    """The level of each side by quantity, where something is known about the judge's error and both have scores."""
    first, second = ([verdict for verdict in side if isinstance(verdict, Judged)] for side in (a, b))
    if not first:
        return {}
    error = known_error(first[0].reading.kind, first[0].reading.version, {})
    counted = {quantity: [level_counts(side, quantity, error) for side in (first, second)] for quantity in Quantity}
    return {
        quantity: (one.level(confidence), other.level(confidence))
        for quantity, (one, other) in counted.items()
        if one is not None and other is not None
    }


def _live(options: _Setting) -> Compared:
    given, config = options.given, options.config
    if config is None or given.log:
        raise ConfigError("--live: reads the state of --config; give --config, and no --log")
    since = time.time() - seconds_of(f"--since {given.since}", given.since)
    variants = live_variants(given.a, given.b, config, label=given.label, judge=given.judge, since=since)
    return Compared(compare_answers(variants.a, variants.b, options.confidence), variants.warnings)


def _read(paths: Sequence[Path], options: _Setting) -> _LogRows:
    """Judge the samples of logs, and rank those with relevance judgements."""
    relevance = RelevanceCases(options.qrels)
    files = SampleFiles(options.inputs, relevance)
    with ExitStack() as opened:
        streams = [opened.enter_context(path.open("rb")) for path in paths]
        verdicts = run_async(
            read_all(files, files.of_streams(streams), judge_named(options.config, options.given.judge))
        )
    unranked = sum(case.ranking is None for case in relevance.cases)
    notes = left_out(files, verdicts)
    if unranked:
        why = "rows have relevance judgements but no ranking (no ids, or nothing is relevant) and are left out"
        notes.append(f"{unranked} {why}")
    names = ", ".join(path.name for path in paths)
    return _LogRows(verdicts, relevance.cases, [*(f"{names}: {text}" for text in notes), *relevance.warnings()])


def _suites(a: Sequence[CanarySuite], b: Sequence[CanarySuite], confidence: float) -> Compared:
    ks = sorted(set.intersection(*(set(suite.ks) for suite in (*a, *b)))) if a and b else []
    if not ks:
        raise ConfigError("canaries: nothing to compare: a side has no suite, or the suites have no `k` in common")
    first, second = run_async(_run_sides((a, b), tuple(ks)))
    warnings = [
        f"{name}: {failed} canaries failed and are left out"
        for name, side in (("A", first), ("B", second))
        if (failed := sum(report.failure is not None for report in side))
    ]
    return Compared(compare_reports(first, second, ks, confidence), warnings)


async def _run_sides(sides: Iterable[Sequence[CanarySuite]], ks: tuple[int, ...]) -> list[list[CanaryReport]]:
    """Run the canaries of both sides, one suite after the other, so that neither slows the other down.

    Both request the same number of passages: success among twenty is not comparable with success among five.
    """
    runs = [await run_suites([replace(suite, ks=ks) for suite in side]) for side in sides]
    return [[report for suite in run for report in suite.reports] for run in runs]


def _show(compared: Compared) -> None:
    console = Console(soft_wrap=True)
    answers, warnings, retrieval, both_levels = compared
    matched = answers.matched
    pairing = "paired" if matched.enough else "NOT paired, so the interval is wider"
    console.print(
        f"{len(matched.keys)} {answers.unit} are on both sides ({pairing}); "
        f"only in A {matched.only_a}, in B {matched.only_b}"
    )
    for warning in warnings:
        console.print(f"[yellow]{escape_line(warning)}[/]")
    shown = [part for part in (answers, retrieval) if part is not None and part.rows]
    if not shown:
        console.print("nothing can be compared: no metric has a value on both sides")
    for part in shown:
        if part is not answers:
            questions = f"{len(part.matched.keys)} questions"
            console.print(f"[bold]Retrieval, by relevance judgements[/]: {questions} are on both sides")
        _show_metrics(console, part.rows)
        for text in lost_lines(part.lost, "from A to B"):
            console.print(escape_line(text))
    for quantity, (a, b) in both_levels.items():
        console.print(
            f"{quantity} in people's terms: A between {a.low:.2f} and {a.high:.2f}, "
            f"B between {b.low:.2f} and {b.high:.2f}; the conclusion is about the change of the judge's means"
        )


def _show_metrics(console: Console, metrics: Sequence[ComparisonRow]) -> None:
    table = compact_table(Column("metric", min_width=16), "A", "B", "B - A", "interval", "n", "w/t/l", "")
    for metric in metrics:
        _add_row(table, metric.metric.replace("_", " "), metric.overall)
        for category, difference in metric.categories.items():
            _add_row(table, f"  {escape_line(category) or 'none'}", difference)
    console.print(table)
    for metric in metrics:
        if metric.overall.warning:
            console.print(f"{metric.metric}: may be noise: {metric.overall.warning}")


def _add_row(table: Table, name: str, difference: Difference) -> None:
    change, conclusion = difference.change, difference.conclusion
    is_paired = difference.wins is not None
    table.add_row(
        name,
        f"{difference.a:.3f}",
        f"{difference.b:.3f}",
        f"{change.value:+.3f}",
        f"{change.low:+.3f}..{change.high:+.3f}",
        str(difference.n),
        f"{difference.wins}/{difference.ties}/{difference.losses}" if is_paired else "",
        f"[{_COLOURS[conclusion]}]{conclusion}[/]",
    )


Item = TypeVar("Item")


class LiveVariants(NamedTuple):
    """Judged answers of two variants; warnings say which answers are left out, and why."""

    a: list[ComparedAnswer]
    b: list[ComparedAnswer]
    warnings: list[str]


class _VariantVerdict(NamedTuple):
    """One verdict without its texts, to save memory. The answer is None where it was not judged."""

    metadata: Mapping[str, object]
    version: str
    answer: ComparedAnswer | None


def split_variants(
    a: str, b: str, items: Iterable[tuple[Item, Mapping[str, object]]], label: str
) -> tuple[list[Item], list[Item]]:
    """Select the items of the variants `a` and `b`, in order; `ConfigError` if one has none.

    Each item comes with its metadata, whose value under the key `label` names the variant: a string or an integer.
    """
    by_variant: dict[str, list[Item]] = {}
    for item, metadata in items:
        value = metadata.get(label)
        if isinstance(value, str | int) and not isinstance(value, bool):
            by_variant.setdefault(str(value), []).append(item)
    for variant in (a, b):
        if variant not in by_variant:
            names = ", ".join(sorted(by_variant)) or "none"
            raise ConfigError(f"{variant}: no sample has this value of {label!r} in its metadata; values: {names}")
    return by_variant[a], by_variant[b]


def live_variants(
    a: str, b: str, config: Config, *, label: str, judge: str | None, since: float, limit: int = MAX_VERDICTS
) -> LiveVariants:
    """Read the verdicts of the newest version of a judge (None for the first one) on two variants, newest first.

    Verdicts of earlier versions are left out, because scores of different versions are not comparable. Verdicts whose
    sample retention has deleted are left out, and those of times for which it has deleted good answers first. `label`
    is the metadata key that names the variant of a sample.
    """
    config.require_texts("the comparison of live answers")
    name = judge_name(config, judge)
    with state_reader(config) as reader:
        until = reader.pruned_until()
        start = max(since, math.nextafter(until, math.inf))
        rows = [
            _VariantVerdict(
                (row.sample or {}).get("metadata") or NO_METADATA,
                row.verdict.judge_version,
                answer_of(row.verdict, row.sample) if row.verdict.judged and row.sample is not None else None,
            )
            for row in reader.find(Query(judge=name, since=start, limit=limit))
        ]
    version = next((row.version for row in rows if row.answer is not None), "")
    sides = split_variants(a, b, ((row, row.metadata) for row in rows), label)
    omitted: Counter[str] = Counter()
    compared: tuple[list[ComparedAnswer], list[ComparedAnswer]] = ([], [])
    for side, answers in zip(sides, compared, strict=True):
        for row in side:
            if row.answer is None:
                omitted["could not be judged"] += 1
            elif row.version != version:
                omitted["are of an earlier version of the judge"] += 1
            else:
                answers.append(row.answer)
    warnings = [retention_warning(until)] if until >= since else []
    warnings += [f"{count} answers {reason} and are left out" for reason, count in sorted(omitted.items())]
    if len(rows) == limit:
        warnings.append(f"only the newest {limit} verdicts were read; give a shorter --since")
    return LiveVariants(*compared, warnings)
