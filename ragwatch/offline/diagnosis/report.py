"""Makes all checks and orders the findings by importance: problems first, then what is fine, then what is unknown."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from ragwatch.offline.diagnosis import ranks, texts
from ragwatch.offline.diagnosis.definition import Check, Chunk, Finding, Question, RelevanceSource, Status
from ragwatch.offline.diagnosis.texts import Terms, freshness, vocabulary
from ragwatch.statistics.canary.definition import MAX_STORED_CHARS
from ragwatch.statistics.canary.report import CanaryReport, SuiteReport

_STATUSES = tuple(Status)


def diagnose(
    questions: Sequence[Question],
    suites: Sequence[SuiteReport],
    *,
    terms: Terms,
    similar: Collection[frozenset[str]] = frozenset(),
) -> list[Finding]:
    """Makes all checks over questions and the last run of each suite; returns the most important problem first.

    `terms` splits a text into content terms; `similar` are pairs of ids of chunks that are known to be similar.
    """
    everything = [*questions, *(question_of(report) for suite in suites for report in suite.reports)]
    everything = [question for question in everything if question.chunks or question.text]
    findings = [
        texts.coherence(everything),
        texts.lengths(everything),
        texts.duplicates(everything),
        ranks.embedding(everything, similar),
        ranks.recall(everything, suites),
        ranks.scores(everything),
        ranks.ranking(everything),
        vocabulary(everything, terms),
        texts.boundaries(everything),
        freshness(everything),
    ]
    order = list(Check)
    return sorted(
        findings,
        key=lambda finding: (_STATUSES.index(finding.status), -finding.importance, order.index(finding.check)),
    )


def question_of(report: CanaryReport) -> Question:
    """Returns a canary's run as a question. A text that may have been cut when it was stored counts as unknown."""
    hits = report.retrieved.hits
    relevant: Sequence[bool | None] = (None,) * len(hits) if report.ranking is None else report.ranking.relevant
    chunks = (
        Chunk(hit.id, hit.text if hit.text and len(hit.text) < MAX_STORED_CHARS else None, hit.score, known)
        for hit, known in zip(hits, relevant, strict=True)
    )
    return Question(
        report.canary.name,
        report.canary.query,
        tuple(chunks),
        RelevanceSource.CANARIES,
        report.retrieved.direction,
    )


def findings_line(findings: Iterable[Finding], questions: Sequence[Question]) -> dict[str, object]:
    """Returns the findings as the object that `ragwatch diagnose --json` prints, except for its header."""
    counts = Counter(str(question.relevance) for question in questions)
    return {
        "answers": len(questions),
        "relevance": {str(source): counts[source] for source in RelevanceSource if counts[source]},
        "findings": [
            {
                "check": str(finding.check),
                "status": str(finding.status),
                "share": finding.share,
                "importance": round(finding.importance, 6),
                "summary": finding.summary,
                "evidence": list(finding.evidence),
                "figures": dict(finding.figures),
                "examples": list(finding.examples),
                "remedy": finding.remedy,
            }
            for finding in findings
        ],
    }
