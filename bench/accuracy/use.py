"""Use of contexts beside people's and systems' marks: cited passages among the cells, and whether the first was used.

"Was the first context used" is known for CLAPNQ, whose annotators marked the sentences that the answer uses. ExpertQA
has only passages that the answer cites, so each of its answers stands twice: as it is, where it used the first passage,
and without the sentences that cite that, where it did not. Its mark `top_ranked_cited` cannot be used: where it is
false the file has no text of the passage that ranked first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from accuracy import figures
from accuracy.figures import Figure
from accuracy.readings import Reading
from accuracy.rows import DATA, CitedClaim, LabelledSet, Row, records, related, row_of, thinned
from scipy.optimize import linprog  # type: ignore[import-untyped]

from ragwatch.core.sample import Sample
from ragwatch.judges.lexical.claims import claims_of
from ragwatch.judges.lexical.evidence import window
from ragwatch.judges.lexical.features import claim_words
from ragwatch.judges.lexical.limits import unlimited
from ragwatch.judges.lexical.passages import passages_of
from ragwatch.judges.lexical.tables import shipped
from ragwatch.judges.local.artefact import ModelArtefact, load
from ragwatch.judges.local.fusion import ModelSignals

if TYPE_CHECKING:  # it imports the packages of an extra
    from ragwatch.judges.local.session import PairModel

EXPERTQA = "judge/train/expertqa/all"
CLAPNQ = "relevance/clapnq/dev"
RATES = (0.05, 0.1, 0.2, 0.4)
DRAWN = 2000
BINS = 80
SEED = 7
NOTHING_READ = ModelSignals(-6.0, -6.0, 4.0, 3.0)
"""In the place of the model's outputs for a context that has no word of the claim."""


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


def first_used(of: LabelledSet, readings: Sequence[Reading], rounds: int) -> Figure:
    """AUROC of "was the first context used", by the probability that the estimates average."""
    known = _known(of, readings)
    labels, values, _ = _columns(known)
    return figures.interval([row.group for row, _ in known], figures.auroc, labels, values, rounds=rounds)


def first_used_by_model(of: LabelledSet, weights: Path, rounds: int) -> Figure:
    """AUROC of "was the first context used" by the model alone, of each claim beside each context by itself."""
    from ragwatch.judges.local.session import PairModel  # noqa: PLC0415 - it imports the packages of an extra

    artefact = load(weights)
    model = PairModel(artefact)
    known = [row for row in of.rows if row.first_used is not None and len(row.contexts) > 1]
    leads = [(row, lead) for row in known if (lead := _lead_of_model(row.sample, model, artefact)) is not None]
    labels, values = np.array([row.first_used for row, _ in leads], dtype=bool), np.array([lead for _, lead in leads])
    return figures.interval([row.group for row, _ in leads], figures.auroc, labels, values, rounds=rounds)


def _lead_of_model(sample: Sample, model: PairModel, artefact: ModelArtefact) -> float | None:
    """The most, over the claims, by which the first context leads the best other one; None without claims.

    In the logit of support less the mean logit that a word piece is not supported: the model's own two views of a pair.
    """
    texts = [context.text for context in sample.contexts]
    passages = passages_of(texts, unlimited)
    leads = []
    for claim in claims_of(sample.answer, sample.question).claims:
        words, said = claim_words(claim.words, shipped().rarity), " ".join(claim.words.split())
        alone = []
        for passage, text in zip(passages, texts, strict=True):
            evidence = window(words, [passage], [text], budget=artefact.budget).text
            signals = model.read(model.pairs([(said, evidence)]))[0] if evidence else NOTHING_READ
            alone.append(signals.supported - signals.mean)
        leads.append(alone[0] - max(alone[1:]))
    return max(leads, default=None)


def gauge_errors(of: LabelledSet, readings: Sequence[Reading]) -> dict[str, list[float]]:
    """Error of the rate of ignored first contexts, at each of `RATES`, by hard calls and by expectations."""
    labels, values, calls = _columns(_known(of, readings))
    measures: dict[str, Callable[[Any], float]] = {
        "hard calls": lambda places: 1.0 - calls[places].mean(),
        "expectations": lambda places: 1.0 - values[places].mean(),
    }
    rng = np.random.default_rng(SEED)
    used, ignored = np.flatnonzero(labels), np.flatnonzero(~labels)
    errors: dict[str, list[float]] = {name: [] for name in measures}
    for rate in RATES:
        places = np.concatenate([rng.choice(ignored, round(rate * DRAWN)), rng.choice(used, round((1 - rate) * DRAWN))])
        for name, measure in measures.items():
            errors[name].append(float(measure(places)) - rate)
    return errors


def least_error(tried: Sequence[tuple[LabelledSet, Sequence[Reading]]]) -> float:
    """The least error that recalibrated expectations can have at every one of `RATES` on every one of some sets.

    The recalibration is a rising function of the expectation, constant in `BINS` quantiles and the same for all sets.
    It is chosen on the very answers that it is tried on (a linear programme): one that is learnt elsewhere is worse.
    """
    sides = []
    for of, readings in tried:
        labels, values, _ = _columns(_known(of, readings))
        sides.append((1.0 - values[labels], 1.0 - values[~labels]))
    edges = np.unique(
        np.quantile(np.concatenate([side for pair in sides for side in pair]), np.linspace(0, 1, BINS + 1))
    )
    used, ignored = (
        np.array([np.histogram(pair[place], edges)[0] / len(pair[place]) for pair in sides]) for place in (0, 1)
    )
    rates = np.repeat(RATES, len(sides))
    shares = np.concatenate([(1 - rate) * used + rate * ignored for rate in RATES])
    error, bins = np.ones((len(rates), 1)), shares.shape[1]
    rising = np.pad(np.eye(bins - 1), ((0, 0), (0, 2))) - np.pad(np.eye(bins - 1), ((0, 0), (1, 1)))
    found = linprog(
        [0.0] * bins + [1.0],
        A_ub=np.vstack([np.hstack([shares, -error]), np.hstack([-shares, -error]), rising]),
        b_ub=np.concatenate([rates, -rates, np.zeros(bins - 1)]),
        bounds=[(0, 1)] * bins + [(0, None)],
    )
    return float(found.fun)


def _known(of: LabelledSet, readings: Sequence[Reading]) -> list[tuple[Row, Reading]]:
    rows = zip(of.rows, readings, strict=True)
    return [(row, each) for row, each in rows if row.first_used is not None and each.first_used is not None]


def _columns(known: Sequence[tuple[Row, Reading]]) -> tuple[Any, Any, Any]:
    labels = np.array([row.first_used for row, _ in known], dtype=bool)
    values = np.array([each.first_used for _, each in known], dtype=float)
    calls = np.array([each.uses_first for _, each in known], dtype=float)
    return labels, values, calls
