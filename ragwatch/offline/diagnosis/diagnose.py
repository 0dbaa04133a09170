"""`ragwatch diagnose`: the checklist for debugging retrieval, over stored answers and runs of the canaries."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console

from ragwatch.config import Config, load
from ragwatch.errors import ConfigError, FormatError
from ragwatch.formats.relevance import KEYS, Qrels, relevant_contexts
from ragwatch.judges.claims.words import terms
from ragwatch.model.evidence import ClaimVerdict
from ragwatch.model.sample import SampleRecord
from ragwatch.model.stages import Stage
from ragwatch.offline.canary import built_suites, failure_of, run_suites, stored_runs
from ragwatch.offline.diagnosis.definition import Chunk, Finding, Question, RelevanceSource, Status
from ragwatch.offline.diagnosis.ranks import KS
from ragwatch.offline.diagnosis.report import diagnose as make_checks
from ragwatch.offline.diagnosis.report import findings_line
from ragwatch.offline.relevance import read_qrels
from ragwatch.offline.state_reader import verdicts
from ragwatch.ports import Query
from ragwatch.statistics.canary.report import SuiteReport
from ragwatch.statistics.verdict_line import VerdictRecord
from ragwatch.terminal.event_loop import run_async
from ragwatch.terminal.given import read_text, require_route
from ragwatch.terminal.options.offline import DiagnoseArguments
from ragwatch.terminal.output import escape_line, say

PROBLEMS, NOT_ENOUGH_DATA = 1, 3
_COLOURS = {"problem": "red", "fine": "green", "not_measurable": "yellow"}
_DATES = ("indexed_at", "updated_at", "modified_at", "index_date", "document_date")
_DAY_CHARS = len("2026-01-31")


def diagnose(given: DiagnoseArguments) -> int:
    """Check chunks, scores, vocabulary, boundaries, recall and freshness over stored answers and canary runs."""
    config = load(given.path)
    require_route(config, given.route)
    if config.texts != "all":
        say(f"store.texts is {config.texts}: answers without texts are left out; canary runs count")
    judge = config.judges[0].place.name  # one verdict per answer, by the judge that reads all of them
    judgements = {} if given.qrels is None else read_qrels(given.qrels)
    stored = verdicts(config, Query(judge=judge, route=given.route, limit=given.answers))
    questions = [question_of(row.verdict, row.sample, judgements) for row in stored if row.sample is not None]
    suites = _suites(config, given.k)
    similar = frozenset() if given.similar is None else _read_similar(given.similar)
    findings = make_checks(questions, suites, terms=terms, similar=similar)
    canaries = sum(len(suite.reports) for suite in suites)
    if given.as_json:
        head = {"route": given.route, "judge": judge, "canaries": canaries}
        click.echo(json.dumps(head | findings_line(findings, questions)))
    else:
        where = "all routes" if given.route is None else f"route {given.route}"
        _show(f"{where}: {len(questions)} stored answers (judge {escape_line(judge)}), {canaries} canaries", findings)
    failed = _tell_failures(suites)
    if any(finding.status is Status.PROBLEM for finding in findings):
        return PROBLEMS
    if failed and given.k is not None:
        return NOT_ENOUGH_DATA  # what was asked for was not measured
    return 0 if any(finding.status is Status.FINE for finding in findings) else NOT_ENOUGH_DATA


def _read_similar(path: Path) -> frozenset[frozenset[str]]:
    pairs = set()
    for number, line in enumerate(read_text(f"--similar {path}", path).splitlines(), start=1):
        pair = frozenset(name.strip() for name in line.split("\t"))
        if line.strip() and (len(pair) != 2 or "" in pair or line.count("\t") != 1):
            raise ConfigError(f"--similar {path}: line {number} is no pair; write two different ids with a tab between")
        if line.strip():
            pairs.add(pair)
    return frozenset(pairs)


def _suites(config: Config, k: int | None) -> list[SuiteReport]:
    """Return the last run of each suite or, with `k`, a run that asks for the first k chunks now."""
    if k is None:
        return stored_runs(config, [suite.place.suite for suite in config.canaries])
    if not config.canaries:
        raise ConfigError("--k: no suite is configured; add `canaries`, or leave --k out")
    ks = tuple(sorted({*(cutoff for cutoff in KS if cutoff < k), k}))
    return run_async(run_suites([replace(suite, ks=ks) for suite in built_suites(config)]))


def _tell_failures(suites: Sequence[SuiteReport]) -> bool:
    """Tell on standard error which suites have failed queries, with the first reason. Returns whether any has."""
    failed = [suite for suite in suites if suite.failures]
    for suite in failed:
        first = next(report for report in suite.reports if report.failure is not None)
        failures = f"{suite.failures.total()} of {len(suite.reports)} queries failed"
        line = f"suite {suite.suite}: {failures}; {first.canary.name}: {failure_of(first)}"
        say(line)
    return bool(failed)


def question_of(verdict: VerdictRecord, sample: SampleRecord, qrels: Qrels) -> Question:
    """Return a stored answer as the checklist reads it.

    Relevance judgements by people (in `qrels` by the id of the answer, else `relevant_ids` and `relevant_texts` of the
    sample or of its metadata) replace the judge's verdict on relevance, where they can be read.
    """
    metadata: Mapping[str, object] = sample.get("metadata") or {}
    relevant = qrels.get(verdict.id)
    if relevant is None:
        with suppress(FormatError):
            relevant = relevant_contexts({**(sample if any(key in sample for key in KEYS) else metadata)})
    labelled = None if relevant is None else {name for one in relevant for name in (one.id, one.text) if name}
    chunks = []
    for position, context in enumerate(sample.get("contexts") or ()):
        name, text = context.get("id"), context.get("text")
        read = verdict.contexts[position].relevant if position < len(verdict.contexts) else None
        chunks.append(
            Chunk(name, text, context.get("score"), read if labelled is None else not labelled.isdisjoint((name, text)))
        )
    supported = [claim for claim in verdict.claims if claim.verdict is ClaimVerdict.SUPPORTED and claim.contexts]
    return Question(
        verdict.id,
        sample.get("question"),
        tuple(chunks),
        RelevanceSource.JUDGE if labelled is None else RelevanceSource.LABELS,
        together=tuple(claim.contexts if claim.joint else () for claim in supported),
        claims=tuple(claim.text for claim in supported),
        retrieval_failed=None if verdict.stage is None else verdict.stage == Stage.RETRIEVAL,
        day=_day(verdict.at),
        dates=(
            *(str(metadata[name])[:_DAY_CHARS] for name in _DATES if isinstance(metadata.get(name), str)),
            *(_day(context["updated_at"]) for context in sample.get("contexts") or () if "updated_at" in context),
        ),
    )


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).date().isoformat()


def _show(title: str, findings: Iterable[Finding]) -> None:
    console = Console(soft_wrap=True, highlight=False)
    console.print(title)
    for finding in findings:
        name = finding.check.replace("_", " ")
        word = "" if finding.status is Status.NOT_MEASURABLE else f" {finding.status}:"
        console.print(f"[{_COLOURS[finding.status]}]{name}:{word}[/] {escape_line(finding.summary)}")
        if finding.status is Status.PROBLEM:
            for fact in finding.evidence:
                console.print(f"    {escape_line(fact)}")
            if finding.examples:
                console.print(f"    look at: {escape_line(', '.join(finding.examples))}")
            console.print(f"    remedy: {finding.remedy}")
