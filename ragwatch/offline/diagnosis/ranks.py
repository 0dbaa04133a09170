"""Checks of scores and ranks: similar chunks, relevant against irrelevant ones, and recall at rising k."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from statistics import median
from typing import NamedTuple

from ragwatch.offline.diagnosis.chunks import SIMILARITY, near_duplicates
from ragwatch.offline.diagnosis.definition import (
    Check,
    Chunk,
    Finding,
    Question,
    RelevanceSource,
    measured,
    not_measurable,
    percent,
)
from ragwatch.statistics.canary.definition import Direction
from ragwatch.statistics.canary.report import SuiteReport
from ragwatch.statistics.ranking import mean_of_known, recall_at

MIN_SCORES, MIN_PAIRS, MIN_QUESTIONS, MIN_EXPECTED = 20, 5, 10, 5
MAX_OVERLAP = 0.5
MAX_OUTRANKED = 0.2
MAX_MISSED = 0.1
MAX_GAP = 0.5  # of the typical difference between the scores of two chunks of one question
KS = (1, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
_ORDERED = 0.95  # share of neighbouring ranks whose scores follow one direction
_REPAIR = "`ragwatch canary` shows why; repair that, and run them again"
_MAX_COMPARED = 500  # questions whose chunks are compared with one another


class Pair(NamedTuple):
    """Scores of the relevant and of the irrelevant chunks, the higher the better; distances have the sign -1."""

    relevant: list[float]
    irrelevant: list[float]
    sign: float = 1.0


def direction_of(questions: Iterable[Question]) -> Direction | None:
    """Returns whether high or low scores rank first in a log; None if the scores do not follow the ranks."""
    falls = rises = 0
    for question in questions:
        scores = [chunk.score for chunk in question.chunks if chunk.score is not None]
        for first, second in pairwise(scores):
            falls, rises = falls + (first > second), rises + (first < second)
    for count, direction in ((falls, Direction.SIMILARITY), (rises, Direction.DISTANCE)):
        if count and count >= _ORDERED * (falls + rises):
            return direction
    return None


def source_of(questions: Iterable[Question]) -> RelevanceSource | None:
    """Returns the best source of relevance with enough questions: labels, then canaries, then the judge."""
    counts = {source: [0, 0] for source in RelevanceSource}
    for question in questions:
        for chunk in question.chunks:
            if chunk.relevant is not None:
                counts[question.relevance][chunk.relevant] += 1
    enough = (source for source in RelevanceSource if min(counts[source]) >= MIN_SCORES)
    return next(enough, next((source for source in RelevanceSource if any(counts[source])), None))


def scores(questions: Sequence[Question]) -> Finding:
    """Compares the similarity scores of relevant chunks with those of irrelevant ones."""
    source = source_of(questions)
    if source is None:
        return not_measurable(
            Check.SCORES, "nobody says which chunks are relevant: no labels, no canary runs, no judge's verdict"
        )
    known = [question for question in questions if question.relevance is source]
    pair = _pair(known)
    if pair is None:
        return not_measurable(
            Check.SCORES, f"the chunks have no `score` that follows their rank (relevance by {_by(source)})"
        )
    if min(len(pair.relevant), len(pair.irrelevant)) < MIN_SCORES:
        return not_measurable(
            Check.SCORES,
            f"there are {len(pair.relevant)} scores of relevant chunks and {len(pair.irrelevant)} of irrelevant ones, "
            f"fewer than {MIN_SCORES} of each (relevance by {_by(source)})",
        )
    overlap, cutoff = overlap_of(pair)
    above = sum(score >= cutoff for score in pair.irrelevant) / len(pair.irrelevant)
    below = sum(score < cutoff for score in pair.relevant) / len(pair.relevant)
    ordered = sorted(pair.irrelevant)  # the area under the curve; ties count half
    won = sum(bisect_left(ordered, score) + bisect_right(ordered, score) for score in pair.relevant)
    wins = won / (2 * len(ordered) * len(pair.relevant))
    return measured(
        Check.SCORES,
        overlap,
        MAX_OVERLAP,
        f"the scores of relevant and irrelevant chunks overlap by {percent(overlap)} (relevance by {_by(source)})",
        evidence=[
            (
                f"the best cut-off, {pair.sign * cutoff:.4g}, keeps {percent(above)} of the irrelevant chunks and "
                f"drops {percent(below)} of the relevant ones"
            ),
            (
                f"median {pair.sign * median(pair.relevant):.4g} for {len(pair.relevant)} relevant chunks, "
                f"{pair.sign * median(pair.irrelevant):.4g} for {len(pair.irrelevant)} irrelevant ones"
            ),
            f"a relevant chunk scores better than an irrelevant one in {percent(wins)} of all pairs",
        ],
        figures={
            "overlap": overlap,
            "cutoff": pair.sign * cutoff,
            "auc": wins,
            "relevant": len(pair.relevant),
            "irrelevant": len(pair.irrelevant),
        },
    )


def _pair(questions: Sequence[Question]) -> Pair | None:
    """Returns the scores by relevance; None if no direction is known."""
    direction = next((question.direction for question in questions if question.direction), direction_of(questions))
    if direction is None:
        return None
    pair = Pair([], [], 1.0 if direction is Direction.SIMILARITY else -1.0)
    for question in questions:
        for chunk in question.chunks:
            if chunk.relevant is not None and chunk.score is not None and question.direction in (None, direction):
                (pair.relevant if chunk.relevant else pair.irrelevant).append(pair.sign * chunk.score)
    return pair


def overlap_of(pair: Pair) -> tuple[float, float]:
    """Returns the overlap of the two distributions, and the best cut-off between them.

    The overlap is the smallest possible sum of both error rates, 1 - the Kolmogorov-Smirnov distance: 0 if a cut-off
    separates them, 1 if none is better than chance.
    """
    relevant, irrelevant = sorted(pair.relevant), sorted(pair.irrelevant)
    errors = [
        (bisect_left(relevant, cut) / len(relevant) + 1.0 - bisect_left(irrelevant, cut) / len(irrelevant), -cut)
        for cut in dict.fromkeys(relevant)
    ]
    best, cut = min(errors)
    return min(1.0, best), -cut


def ranking(questions: Sequence[Question]) -> Finding:
    """Checks whether irrelevant chunks rank before relevant ones."""
    source = source_of(questions)
    mixed = [
        question
        for question in questions
        if question.relevance is source and {chunk.relevant for chunk in question.chunks} >= {True, False}
    ]
    if source is None or len(mixed) < MIN_QUESTIONS:
        return not_measurable(
            Check.RANKING, f"fewer than {MIN_QUESTIONS} questions have both relevant and irrelevant chunks"
        )
    flags = [[chunk.relevant for chunk in question.chunks if chunk.relevant is not None] for question in mixed]
    outranked = [question for question, known in zip(mixed, flags, strict=True) if not known[0]]
    worst = sum(flag.index(True) for flag in flags) / len(flags)
    share = len(outranked) / len(mixed)
    return measured(
        Check.RANKING,
        share,
        MAX_OUTRANKED,
        f"an irrelevant chunk ranks first although a relevant one was retrieved for {len(outranked)} of {len(mixed)} "
        f"questions ({percent(share)}; relevance by {_by(source)})",
        evidence=[f"on average {worst:.1f} irrelevant chunks rank before the first relevant one"],
        figures={"questions": len(mixed), "outranked": len(outranked), "before_first": worst},
        examples=(question.id for question in outranked),
    )


def embedding(questions: Sequence[Question], known: Collection[frozenset[str]] = frozenset()) -> Finding:
    """Checks that similar chunks have similar scores for one question.

    `known` are pairs of ids that people know to be similar, beside near-duplicates. If only one chunk of a pair was
    retrieved, the other counts as no better than the last.
    """
    similar: list[tuple[float, str]] = []
    other: list[float] = []
    partners: dict[str, set[str]] = {}  # the ids that are known to be similar to each id
    for names in known:
        for name in names:
            partners.setdefault(name, set()).update(names - {name})
    for question in [question for question in questions if len(question.chunks) > 1][:_MAX_COMPARED]:
        scored = [
            chunk for chunk in question.chunks if chunk.score is not None and (chunk.text or chunk.id in partners)
        ]
        groups = near_duplicates([chunk.text or chunk.key for chunk in scored])
        together = {pair for group in groups for pair in combinations(group, 2)}
        for first, second in combinations(range(len(scored)), 2):
            gap = abs((scored[first].score or 0.0) - (scored[second].score or 0.0))
            if (first, second) in together or scored[second].id in partners.get(scored[first].id or "", ()):
                similar.append((gap, question.id))
            else:
                other.append(gap)
        similar += [(gap, question.id) for gap in _lone(question.chunks, partners)]
    if len(similar) < MIN_PAIRS or len(other) < MIN_PAIRS or not median(other):
        return not_measurable(
            Check.EMBEDDING,
            f"fewer than {MIN_PAIRS} known similar pairs (--similar FILE, or near-duplicates retrieved together) "
            "have scores",
        )
    typical = median(other)
    apart = [name for gap, name in similar if gap > MAX_GAP * typical]
    share = len(apart) / len(similar)
    return measured(
        Check.EMBEDDING,
        share,
        MAX_GAP,
        f"{len(apart)} of {len(similar)} similar pairs have different scores for one question",
        evidence=[
            (
                f"their scores differ by {median(gap for gap, _ in similar):.4g} in the middle, those of other pairs "
                f"by {typical:.4g}; similar are near-duplicates, which share {percent(SIMILARITY)} of their words, and "
                f"the {len(known)} pairs of --similar"
            )
        ],
        figures={"pairs": len(similar), "apart": len(apart), "typical": typical},
        examples=apart,
    )


def _lone(chunks: Sequence[Chunk], partners: Mapping[str, set[str]]) -> Iterator[float]:
    """Yields, for chunks without a similar one that was retrieved, how much better than the last chunk they are."""
    ids, last = {chunk.id for chunk in chunks}, chunks[-1].score
    for chunk in chunks:
        names = partners.get(chunk.id or "", set())
        if names and names.isdisjoint(ids) and chunk.score is not None and last is not None:
            yield abs(chunk.score - last)


def recall(questions: Sequence[Question], suites: Sequence[SuiteReport]) -> Finding:
    """Checks recall of the canaries at rising k: chunks found further down were ranked, others not indexed or embedded.

    Without canaries that got a reply, the judge only says for which questions no chunk is relevant.
    """
    reports = [report for suite in suites for report in suite.reports if report.ranking is not None]
    expected = sum(len(report.ranks) for report in reports)
    if expected < MIN_EXPECTED:
        return _nothing_relevant(questions, failed_queries(suites))
    failed = failed_queries(suites)
    used = usual_k(questions) or min(5, *(report.cutoff for report in reports))
    deepest = min(report.cutoff for report in reports)
    below = [report for report in reports if any(rank is not None and rank > used for rank in report.ranks)]
    absent = [report for report in reports if None in report.ranks]
    far = sum(rank is not None and rank > used for report in reports for rank in report.ranks)
    lost = sum(rank is None for report in reports for rank in report.ranks)
    share = (far + lost) / expected
    ks = [k for k in sorted({*KS, used, deepest}) if k <= deepest]
    curve = {
        k: mean_of_known(recall_at(report.ranking, k) for report in reports if report.ranking is not None) for k in ks
    }
    return measured(
        Check.RECALL,
        share,
        MAX_MISSED,
        f"{far + lost} of {expected} expected chunks ({percent(share)}) are not among the first {used}: "
        f"{_cause(far, lost, deepest if deepest > used else None)}",
        evidence=[
            f"recall of {len(reports)} canaries: {', '.join(f'@{k} {value:.3f}' for k, value in curve.items())}",
            *([f"{failed}, and are left out"] if failed else []),
        ],
        figures={"expected": expected, "used_k": used, "ranked_below": far, "not_found": lost, "deepest_k": deepest}
        | {f"recall@{k}": value for k, value in curve.items()},
        examples=(report.canary.name for report in (*absent, *below)),
    )


def failed_queries(suites: Iterable[SuiteReport]) -> str:
    """Returns how many queries of canaries failed, and why, as text for people; empty if none did."""
    suites = tuple(suites)
    failures = sum((suite.failures for suite in suites), Counter())
    if not failures:
        return ""
    total = sum(len(suite.reports) for suite in suites)
    reasons = ", ".join(f"{failure} {count}" for failure, count in failures.most_common())
    return f"{failures.total()} of {total} queries of canaries failed ({reasons})"


def _cause(far: int, lost: int, deepest: int | None) -> str:
    if not far and not lost:
        return "nothing is missed"
    if deepest is None:
        return "whether ranking or indexing is the cause is unknown, because no more were asked for; give a larger --k"
    cause = "ranking" if far > lost else "indexing, chunking or embedding"
    return f"{far} rank further down, {lost} are not among the first {deepest} either, so the cause is mostly {cause}"


def usual_k(questions: Iterable[Question]) -> int | None:
    """Returns the usual number of chunks of an answer; None without answers."""
    counts = [len(question.chunks) for question in questions if question.relevance is not RelevanceSource.CANARIES]
    return int(median(counts)) or None if counts else None


def _nothing_relevant(questions: Sequence[Question], failed: str) -> Finding:
    read = [
        question
        for question in questions
        if question.relevance is not RelevanceSource.CANARIES
        and (not question.chunks or any(chunk.relevant is not None for chunk in question.chunks))
    ]
    if len(read) < MIN_QUESTIONS:
        why, remedy = (failed, _REPAIR) if failed else ("no canary with expected chunks has run", "add `canaries`")
        return not_measurable(Check.RECALL, f"{why}, and no judge has read enough answers; {remedy}")
    empty = [question for question in read if not any(chunk.relevant for chunk in question.chunks)]
    share = len(empty) / len(read)
    return measured(
        Check.RECALL,
        share,
        MAX_MISSED,
        f"no retrieved chunk is relevant to {len(empty)} of {len(read)} questions ({percent(share)}; "
        f"relevance by {_by(read[0].relevance)})",
        evidence=[
            f"{failed}: {_REPAIR}"
            if failed
            else "whether ranking or indexing is the cause takes canaries with expected chunks: add `canaries`"
        ],
        figures={"questions": len(read), "nothing_relevant": len(empty)},
        examples=(question.id for question in empty),
    )


def _by(source: RelevanceSource) -> str:
    return {"labels": "people", "canaries": "canaries", "judge": "the judge's verdict"}[source]
