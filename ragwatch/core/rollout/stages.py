"""Decides the stages that are looked at once: offline ranking metrics, and judged answers."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ragwatch.core.compare import MIN_QUESTIONS, Conclusion, Difference, PairedScore, key_of, match_keys, paired
from ragwatch.core.compare_line import Comparison
from ragwatch.core.ranking import Ranking, ndcg_at, recall_at, reciprocal_rank
from ragwatch.core.rollout.definition import Decision, Measured, RolloutStep, StageReport, decided
from ragwatch.model.quantities import Quantity

JUDGED_METRICS: tuple[str, ...] = (str(Quantity.FAITHFULNESS), str(Quantity.ANSWER_RELEVANCY))
"""Metrics that decide the judged stage, and that can stop the live one."""


def offline_stage(
    a: Mapping[str, Ranking], b: Mapping[str, Ranking], *, k: int = 10, confidence: float = 0.95
) -> StageReport:
    """Compares MRR, NDCG@k and recall@k over the queries that both variants answered, given rankings by query."""
    measures = {f"mrr@{k}": reciprocal_rank, f"ndcg@{k}": ndcg_at, f"recall@{k}": recall_at}
    metrics = []
    for name, measure in measures.items():
        values = ((measure(a[key], k), measure(b[key], k)) for key in a if key in b)
        pairs = [PairedScore(first, second) for first, second in values if first is not None and second is not None]
        metrics.append(_of_difference(name, paired(pairs, confidence=confidence)))
    left_out = len(a) + len(b) - 2 * sum(key in b for key in a)
    notes = [f"{left_out} queries are known on one side only and are left out"] if left_out else []
    return decided(RolloutStep.OFFLINE, metrics, notes)


def _of_difference(name: str, difference: Difference | None, *, decides: bool = True) -> Measured:
    """Returns a metric of a stage that is looked at once; with too few questions it decides nothing."""
    if difference is None:
        return Measured(name, None, None, None, n_a=0, n_b=0, decision=Decision.OPEN, decides=decides)
    decision = Decision.OPEN if difference.n < MIN_QUESTIONS else Decision.PASSED
    if difference.conclusion is Conclusion.WORSE:
        decision = Decision.WORSE
    return Measured(
        name,
        difference.a,
        difference.b,
        difference.change,
        n_a=difference.n,
        n_b=difference.n,
        decision=decision,
        decides=decides,
    )


def judged_stage(comparison: Comparison, notes: Iterable[str] = ()) -> StageReport:
    """Decides by faithfulness and answer relevancy of judged answers; the other metrics are shown only."""
    rows = {row.metric: row.overall for row in comparison.rows}
    metrics = [_of_difference(name, rows.get(name)) for name in JUDGED_METRICS]
    pairing = [] if comparison.matched.enough else ["too few questions are on both sides, so the means are not paired"]
    return decided(RolloutStep.JUDGED, metrics, [*notes, *pairing])


def pick_questions(a: Iterable[str], b: Iterable[str], count: int) -> tuple[frozenset[str], frozenset[str]]:
    """Returns the keys to judge on either side: the same random ones if enough are shared. A hash draws them."""
    first, second = list(a), list(b)
    matched = match_keys(first, second)
    if matched.enough:
        shared = frozenset(sorted(matched.keys, key=_hash)[:count])
        return shared, shared
    one, other = (frozenset(sorted(set(keys), key=_hash)[:count]) for keys in (first, second))
    return one, other


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def rankings_of(line: Mapping[str, Any], k: int) -> dict[str, Ranking]:
    """Returns the rankings by query in the output of `ragwatch canary --json`; negative and failed canaries have none.

    Raises:
        ValueError: It is no such output, one of a version that did not record grades, or one of fewer than k chunks.
    """
    rankings: dict[str, Ranking] = {}
    occurrences: Counter[str] = Counter()
    try:
        suites = line["suites"]
        cutoff = min(max(map(int, suite["recall"])) for suite in suites)
        for item in (item for suite in suites for item in suite["items"] if item["ranks"]):
            key = key_of(item["query"], "")
            occurrences[key] += 1
            rankings[key if occurrences[key] == 1 else f"{key}\n{occurrences[key]}"] = _ranking(
                item["ranks"], item["grades"]
            )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError("is not what `ragwatch canary --json` of this version prints; record it again") from error
    if cutoff < k:
        raise ValueError(f"holds the first {cutoff} chunks only, not {k}; add {k} to `k` of the suite")
    return rankings


def _ranking(ranks: Sequence[int | None], grades: Sequence[int]) -> Ranking:
    hits: list[list[int]] = [[] for _ in range(max((rank or 0 for rank in ranks), default=0))]
    for index, rank in enumerate(ranks):
        if rank is not None:
            hits[rank - 1].append(index)
    return Ranking(tuple(grades), tuple(map(tuple, hits)))
