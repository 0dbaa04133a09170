"""`ragwatch rollout`: three stages that a variant has to pass, from offline metrics to a share of live traffic."""

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from ragwatch.config import Config, load
from ragwatch.config.releases import FeedbackOptions, JudgedOptions, LiveOptions, OfflineOptions, RolloutOptions
from ragwatch.errors import ConfigError
from ragwatch.formats import fields
from ragwatch.model.quantities import quantity_of
from ragwatch.model.sample import Sample, SampleRecord
from ragwatch.offline.canary import built_suites, run_suites
from ragwatch.offline.compare import live_variants
from ragwatch.offline.input_files import InputFiles
from ragwatch.offline.judge import SampleFiles, judge_named, left_out, read_all
from ragwatch.offline.rollout_stages import (
    JUDGED_METRICS,
    USER_METRIC,
    LiveAnswer,
    LiveRules,
    Measured,
    Outcome,
    RolloutStep,
    StageReport,
    judged_stage,
    live_stage,
    offline_stage,
    pick_questions,
    rankings_of,
)
from ragwatch.offline.state_reader import retention_warning, state_reader, user_scores, verdicts
from ragwatch.ports import Query, StoredVerdict
from ragwatch.statistics.canary.report import suite_line
from ragwatch.statistics.compare import key_of
from ragwatch.statistics.compare_line import compare_answers, compare_verdicts
from ragwatch.statistics.feedback import FIELDS, NAME, feedback_score
from ragwatch.statistics.ranking import Ranking
from ragwatch.terminal.event_loop import run_async
from ragwatch.terminal.options.offline import RolloutArguments
from ragwatch.terminal.output import compact_table, escape_line, figure


def rollout_line(reports: Sequence[StageReport], a: str, b: str) -> dict[str, object]:
    """Returns the report as the object that `ragwatch rollout --json` prints."""
    return {
        "a": a,
        "b": b,
        "code": exit_code(reports),
        "stages": [
            {
                "stage": str(report.step),
                "outcome": str(report.outcome),
                "reason": report.reason,
                "notes": list(report.notes),
                "metrics": [_metric_line(metric) for metric in report.metrics],
            }
            for report in reports
        ],
    }


def _metric_line(metric: Measured) -> dict[str, object]:
    change = metric.change
    return {
        "metric": metric.name,
        "a": metric.a,
        "b": metric.b,
        "difference": None if change is None else change.value,
        "low": None if change is None else change.low,
        "high": None if change is None else change.high,
        "n_a": metric.n_a,
        "n_b": metric.n_b,
        "decides": metric.decides,
        "decision": str(metric.decision),
    }


def exit_code(reports: Sequence[StageReport]) -> int:
    """Returns 0 if all stages passed; else 10 + the number of the stage that stopped B, 20 + that of an undecided one.

    >>> from ragwatch.offline.rollout_stages import RolloutStep
    >>> passed = StageReport(RolloutStep.OFFLINE, Outcome.PASSED, "")
    >>> exit_code([passed]), exit_code([passed, StageReport(RolloutStep.JUDGED, Outcome.STOPPED, "")])
    (0, 12)
    """
    tens = {Outcome.STOPPED: 10, Outcome.UNDECIDED: 20}
    codes = (tens[report.outcome] + number for number, report in enumerate(reports, start=1) if report.outcome in tens)
    return next(codes, 0)


MAX_ANSWERS = 500_000
_COLOURS = {"passed": "green", "stopped": "red", "undecided": "yellow", "not_run": "dim"}
_NUMBERS = {step: number for number, step in enumerate(RolloutStep, start=1)}


class Rollout:
    """The stages of a configured rollout; its paths are relative to the folder."""

    def __init__(self, config: Config, options: RolloutOptions, folder: Path) -> None:
        self._config = config
        self._options = options
        self._folder = folder
        self._confidence = config.settings.estimates.confidence

    def reports(self) -> list[StageReport]:
        """Run the stages up to the first one that B does not pass."""
        options = self._options
        stages: dict[RolloutStep, Callable[[], StageReport] | None] = {
            RolloutStep.OFFLINE: None if options.offline is None else partial(self._offline, options.offline),
            RolloutStep.JUDGED: None if options.judged is None else partial(self._judged, options.judged),
            RolloutStep.LIVE: None if options.live is None else partial(self._live, options.live),
        }
        reports: list[StageReport] = []
        for step, run in stages.items():
            if any(report.outcome is not Outcome.PASSED for report in reports):
                reports.append(StageReport(step, Outcome.NOT_RUN, "an earlier stage was not passed"))
            elif run is None:
                reports.append(StageReport(step, Outcome.UNDECIDED, f"`rollout.{step}` is not configured yet"))
            else:
                reports.append(run())
        return reports

    def _offline(self, options: OfflineOptions) -> StageReport:
        a, b = (self._rankings(side, getattr(options, side), options.k) for side in ("a", "b"))
        return offline_stage(a, b, k=options.k, confidence=self._confidence)

    def _rankings(self, side: str, name: str, k: int) -> dict[str, Ranking]:
        """Return the rankings of a suite, which is run now, or of a recorded run."""
        suites = [suite.place.suite for suite in self._config.canaries]
        if name in suites:
            (suite,) = built_suites(self._config, name)
            (report,) = run_async(run_suites([replace(suite, ks=tuple(sorted({*suite.ks, k})))]))
            return rankings_of({"suites": [suite_line(report)]}, k)
        try:
            return rankings_of(json.loads((self._folder / name).read_bytes()), k)
        except OSError as error:
            names = ", ".join(suites) or "none is configured"
            raise ConfigError(
                f"rollout.offline.{side}: {name!r} is neither a suite ({names}) nor a file that can be read; name one"
            ) from error
        except ValueError as error:
            raise ConfigError(f"rollout.offline.{side}: {name}: {error}") from error

    def _judged(self, options: JudgedOptions) -> StageReport:
        if options.a is not None and options.b is not None:
            return self._judged_logs(options.a, options.b, options.questions)
        names, label = (self._options.a, self._options.b), self._options.label
        since = time.time() - options.since
        variants = live_variants(*names, self._config, label=label, judge=None, since=since)
        keys = [[answer.key for answer in side] for side in (variants.a, variants.b)]
        first_keys, second_keys = pick_questions(keys[0], keys[1], options.questions)
        first = [answer for answer in variants.a if answer.key in first_keys]
        second = [answer for answer in variants.b if answer.key in second_keys]
        return judged_stage(compare_answers(first, second, self._confidence), variants.warnings)

    def _judged_logs(self, a: str, b: str, questions: int) -> StageReport:
        files = SampleFiles(InputFiles(self._config))
        samples = [self._samples(files, side, name) for side, name in (("a", a), ("b", b))]
        keys = [[_key(sample) for sample in side] for side in samples]
        picked = pick_questions(keys[0], keys[1], questions)
        first, second = (
            run_async(read_all(files, [[one for one in side if _key(one) in chosen]], judge_named(self._config, None)))
            for side, chosen in zip(samples, picked, strict=True)
        )
        return judged_stage(compare_verdicts(first, second, self._confidence), left_out(files, (*first, *second)))

    def _samples(self, files: SampleFiles, side: str, name: str) -> list[Sample]:
        path = self._folder / name
        try:
            with path.open("rb") as stream:
                return list(files.samples(str(path), stream))
        except OSError as error:
            raise ConfigError(
                f"rollout.judged.{side}: {path} cannot be read: {error.strerror}; name a log of answers"
            ) from error

    def _live(self, options: LiveOptions) -> StageReport:
        self._config.require_texts("the live stage of a rollout")  # metadata is deleted with the texts
        with state_reader(self._config) as reader:
            until = reader.pruned_until()
        notes = [retention_warning(until)] if until >= options.start else []
        judge = self._config.judges[0].place.name
        since = max(options.start, math.nextafter(until, math.inf))
        query = Query(judge=judge, since=since, limit=MAX_ANSWERS)
        counts: Counter[str] = Counter()
        said = user_scores(self._config, since)
        answers = list(self._answers(verdicts(self._config, query), options.feedback, said, counts))
        notes += [f"{count} answers {what}" for what, count in sorted(counts.items())]
        if options.feedback is None:
            notes.append(
                f"no user metric: set `rollout.live.feedback` to {NAME} ({len(said)} answers have one), or to the"
                " metadata field that feedback is logged in"
            )
        metrics = (*([] if options.feedback is None else [USER_METRIC]), *JUDGED_METRICS)
        deciding = frozenset(JUDGED_METRICS if options.feedback is None else (USER_METRIC,))
        rules = LiveRules(metrics, deciding, options.margin, options.share, self._confidence)
        return live_stage(answers, rules, notes)

    def _answers(
        self,
        rows: Iterable[StoredVerdict],
        feedback: FeedbackOptions | None,
        said: Mapping[str, float],
        counts: Counter[str],
    ) -> Iterable[LiveAnswer]:
        """Yield the answers of both variants without their texts; those of earlier versions lack scores."""
        version = ""
        names = {self._options.a: False, self._options.b: True}
        for row in rows:
            sample: SampleRecord = row.sample or {}
            metadata = sample.get("metadata") or {}
            value = metadata.get(self._options.label)
            if isinstance(value, bool) or str(value) not in names:
                continue
            verdict = row.verdict
            version = version or (verdict.judge_version if verdict.judged else "")
            scores = {}
            if verdict.judged and verdict.judge_version == version:
                known = ((name, verdict.scores[quantity_of(name)]) for name in JUDGED_METRICS)
                scores = {name: score for name, score in known if score is not None}
            else:
                counts["could not be judged" if not verdict.judged else "were read by an earlier version"] += 1
            if feedback is not None:
                score = self._user_score(feedback, metadata, said.get(verdict.key), counts)
                scores |= {} if score is None else {USER_METRIC: score}
            yield LiveAnswer(verdict.at, names[str(value)], scores, 1.0 / verdict.probability)

    def _user_score(
        self, feedback: FeedbackOptions, metadata: Mapping[str, object], said: float | None, counts: Counter[str]
    ) -> float | None:
        """Return what the user says of an answer; None if nothing can be read.

        What the daemon has stored comes first where it reads the same field: it has what came later, too.
        """
        field = feedback.field.removeprefix("metadata.")
        if feedback.field == NAME or (
            said is not None and field in FIELDS and not self._config.settings.feedback.field
        ):
            return said
        given = fields.at(metadata, feedback.field.split(".")[1:])  # behind `metadata`
        score = None if given is None else feedback_score(given, feedback.worst, feedback.best)
        if given is not None and score is None:
            counts["have feedback that is neither thumbs nor a number of the scale"] += 1
        return score


def _key(sample: Sample) -> str:
    return key_of(sample.question, sample.id, sample.user_turns)


def rollout(given: RolloutArguments) -> int:
    """Run the stages of the configured rollout up to the first one that B does not pass."""
    config = load(given.path)
    options = config.settings.rollout
    if options is None:
        raise ConfigError("rollout: is missing; add a section such as {a: current, b: candidate, offline: {...}}")
    reports = Rollout(config, options, given.path.resolve().parent).reports()
    if given.as_json:
        click.echo(json.dumps(rollout_line(reports, options.a, options.b)))
    else:
        _show(reports, options.a, options.b)
    return exit_code(reports)


def _show(reports: Iterable[StageReport], a: str, b: str) -> None:
    console = Console(soft_wrap=True, highlight=False)
    console.print(f"rollout of B = {escape_line(b)} in place of A = {escape_line(a)}")
    for report in reports:
        word = report.outcome.replace("_", " ")
        console.print(
            f"stage {_NUMBERS[report.step]}, {report.step}: "
            f"[{_COLOURS[report.outcome]}]{word}[/]: {escape_line(report.reason)}"
        )
        for note in report.notes:
            console.print(f"  {escape_line(note)}")
        if report.metrics:
            console.print(_table(report.metrics))


def _table(metrics: Iterable[Measured]) -> Table:
    table = compact_table("metric", "A", "B", "B - A", "interval", "n A", "n B", "")
    for metric in metrics:
        change = metric.change
        table.add_row(
            metric.name.replace("_", " "),
            figure(metric.a),
            figure(metric.b),
            "" if change is None else f"{change.value:+.3f}",
            "" if change is None else f"{change.low:+.3f}..{change.high:+.3f}",
            str(metric.n_a),
            str(metric.n_b),
            str(metric.decision),
        )
    return table
