"""Use of contexts beside people's and systems' marks: cited passages among the cells, and whether the first was used.

"Was the first context used" is known for CLAPNQ, whose annotators marked the sentences that the answer uses. ExpertQA
has only passages that the answer cites, so each of its answers stands twice: as it is, where it used the first passage,
and without the sentences that cite that, where it did not. Its mark `top_ranked_cited` cannot be used: where it is
false the file has no text of the passage that ranked first.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from accuracy import figures
from accuracy.figures import Figure
from accuracy.readings import Reading
from accuracy.rows import DATA, CitedClaim, LabelledSet, Row, records, related, row_of, thinned

EXPERTQA = "judge/train/expertqa/all"
CLAPNQ = "relevance/clapnq/dev"
RATES = (0.05, 0.1, 0.2, 0.4)
DRAWN = 2000
SEED = 7


def cited(limit: int | None = None) -> LabelledSet:
    """ExpertQA's answers, with the passages that each claim cites of which experts say that they support it."""
    rows = []
    for record in records(DATA / f"{EXPERTQA}.jsonl"):
        claims = tuple(
            CitedClaim(claim["start"], claim["end"], frozenset(claim["cited_contexts"]))
            for claim in record["label"]["claims"]
            if claim["supported"] and claim["has_passage"] and claim["cited_contexts"] and claim["start"] is not None
        )
        if claims:
            rows.append(replace(row_of(record), cited=claims))
    return LabelledSet(f"{EXPERTQA}: cited passages", thinned(rows, limit))


def first_of_clapnq(limit: int | None = None) -> LabelledSet:
    """CLAPNQ's answers, with the sentences that they use."""
    return related(CLAPNQ, limit)


def first_of_expertqa(limit: int | None = None) -> LabelledSet:
    """ExpertQA's answers as they are, and without the sentences that cite the first passage."""
    rows = [row for record in records(DATA / f"{EXPERTQA}.jsonl") for row in _as_is_and_cut(record)]
    return LabelledSet(f"{EXPERTQA}: first passage", thinned(rows, limit))


def _as_is_and_cut(record: dict[str, Any]) -> Iterator[Row]:
    row = row_of(record)
    claims = [claim for claim in record["label"]["claims"] if claim["start"] is not None]
    citing = [claim for claim in claims if 0 in (claim["cited_contexts"] or ())]
    rest = [claim for claim in claims if 0 not in (claim["cited_contexts"] or ())]
    if len(row.contexts) < 2 or not citing or not rest:
        return
    yield replace(row, first_used=True)
    answer = " ".join(row.answer[claim["start"] : claim["end"]] for claim in rest)
    yield replace(row, name=f"{row.name}-cut", answer=answer, first_used=False)


def cited_among_cells(of: LabelledSet, readings: Sequence[Reading], rounds: int) -> dict[str, Figure]:
    """Share of the claims of which a cited passage is among the cells, for claims that cite one and several."""
    sides: dict[str, tuple[list[str], list[bool]]] = {"one": ([], []), "several": ([], [])}
    for row, each in zip(of.rows, readings, strict=True):
        for claim in row.cited:
            marked = {rank for start, end, ranks in each.cells if _same(claim, start, end) for rank in ranks}
            groups, flags = sides["one" if len(claim.ranks) == 1 else "several"]
            groups.append(row.group)
            flags.append(bool(marked & claim.ranks))
    return {
        name: figures.interval(groups, lambda flags: float(flags.mean()), np.array(flags, dtype=bool), rounds=rounds)
        for name, (groups, flags) in sides.items()
        if flags
    }


def _same(claim: CitedClaim, start: int, end: int) -> bool:
    """Whether two spans share at least half of the shorter one."""
    shared = min(claim.end, end) - max(claim.start, start)
    return shared >= min(claim.end - claim.start, end - start) / 2


def gauge_errors(of: LabelledSet, readings: Sequence[Reading]) -> list[float]:
    """Error of the rate of ignored first contexts, at each of `RATES`."""
    known = [(row, each) for row, each in zip(of.rows, readings, strict=True) if each.uses_first is not None]
    labels = np.array([row.first_used for row, _ in known if row.first_used is not None], dtype=bool)
    calls = np.array([each.uses_first for row, each in known if row.first_used is not None], dtype=float)
    rng = np.random.default_rng(SEED)
    used, ignored = np.flatnonzero(labels), np.flatnonzero(~labels)
    errors = []
    for rate in RATES:
        places = np.concatenate([rng.choice(ignored, round(rate * DRAWN)), rng.choice(used, round((1 - rate) * DRAWN))])
        errors.append(float(1.0 - calls[places].mean()) - rate)
    return errors
