"""How well citations are found, and right ones told from wrong ones, by an embedded judge.

    python bench/citations.py [--judge lexical|local] [--limit N]

Read from ../shared/data: ExpertQA, whose answers cite passages and whose experts say of each claim whether the passages
that it cites support it; and AttributionBench, whose rows are claims with the passages that they cite (marks are added
to those that have none). The labels say whether a claim is fully supported, the score whether its citations are right.
Numbers are set to the positions of the passages first: these files leave passages without text out. At the end the
citations of claims that experts found supported by one passage are moved to another passage of the same answer.
"""

import argparse
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from accuracy import figures
from accuracy.readings import LEXICAL, LOCAL, Bench
from accuracy.rows import DATA, Row, records, row_of, thinned

from ragwatch.judges.lexical.judge import LexicalJudge
from ragwatch.model.evidence import Evidence
from ragwatch.statistics.scores import citation_precision
from ragwatch.statistics.text.citations import markers_of, with_citations

EXPERTQA = "judge/train/expertqa/all"
CLAIMS = ("judge/train/attributionbench/dev", "judge/dev/attributionbench/test_id500")
_MARK = re.compile(r"\[(\d{1,3})\]")


@dataclass(frozen=True, slots=True)
class LabelledCitation:
    """A claim that cites: its group of rows, whether people call it supported, and the precision of its citations."""

    group: str
    supported: bool
    precision: float


def main() -> None:
    """Read and tell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--judge", choices=(LEXICAL, LOCAL), default=LEXICAL)
    parser.add_argument("--limit", type=int, help="rows of a set at most")
    options = parser.parse_args()
    judge: LexicalJudge = getattr(Bench(), options.judge)
    answers = list(thinned(list(records(DATA / f"{EXPERTQA}.jsonl")), options.limit))
    evidences = [_read(judge, _renumbered(record)) for record in answers]
    _tell_parsing(answers, evidences)
    _tell(f"{EXPERTQA}: claims", _of_experts(answers, evidences))
    for name in CLAIMS:
        rows = list(thinned(list(records(DATA / f"{name}.jsonl")), options.limit))
        cites = [any(markers_of(record["answer"])) for record in rows]
        print(f"{name}: {sum(cites)} of {len(rows)} claims cite")
        for which, wanted in (("that cite", True), ("with marks added", False)):
            some = [record for record, cited in zip(rows, cites, strict=True) if cited is wanted]
            _tell(f"{name}: claims {which}", _of_claims(judge, some))
    _tell_moved(judge, answers)


def _read(judge: LexicalJudge, row: Row) -> Evidence:
    return with_citations(judge.evidence(row.sample), row.answer)


def _renumbered(record: Mapping[str, Any]) -> Row:
    """An answer of ExpertQA with the positions of its passages in its marks; 99 for one without text."""
    row = row_of(dict(record))
    positions = {str(number): place for place, number in enumerate(record["label"]["context_ranks"], start=1)}
    return replace(row, answer=_MARK.sub(lambda mark: _mark(positions.get(mark[1], 99), len(mark[0])), row.answer))


def _mark(number: int, length: int) -> str:
    """A mark of the same length, so that the offsets of the labels hold: `[9]` for 99 in three characters."""
    return f"[{str(number)[: length - 2]}]".ljust(length)


def _labelled(record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Claims of which experts said whether their passages support them."""
    for claim in record["label"]["claims"]:
        is_known = claim["supported"] is not None and claim["start"] is not None
        if is_known and claim["has_passage"] and claim["cited_contexts"]:
            yield claim


def _cited(claim: Mapping[str, Any], evidence: Evidence) -> dict[int, bool]:
    """The contexts that are cited within a labelled claim, and whether rightly."""
    return {
        citation.context: citation.supports
        for citation in evidence.citations
        if claim["start"] <= citation.start < claim["end"]
    }


def _tell_parsing(answers: Iterable[Mapping[str, Any]], evidences: Iterable[Evidence]) -> None:
    rows = list(zip(answers, evidences, strict=True))
    fired = sum(any(markers_of(record["answer"])) for record, _ in rows)
    same = [
        set(_cited(claim, evidence)) == set(claim["cited_contexts"])
        for record, evidence in rows
        for claim in _labelled(record)
    ]
    print(f"{EXPERTQA}: {fired} of {len(rows)} answers cite; {sum(same)} of {len(same)} claims cite what the file says")


def _of_experts(answers: Iterable[Mapping[str, Any]], evidences: Iterable[Evidence]) -> Iterator[LabelledCitation]:
    for record, evidence in zip(answers, evidences, strict=True):
        for claim in _labelled(record):
            cited = _cited(claim, evidence)
            if cited:
                yield LabelledCitation(record["question"], claim["supported"], float(np.mean(list(cited.values()))))


def _of_claims(judge: LexicalJudge, rows: Iterable[dict[str, Any]]) -> Iterator[LabelledCitation]:
    """Claims that cite all their passages, in the order of these."""
    for record in rows:
        row = row_of(record)
        marks = "".join(f"[{number}]" for number in range(1, len(row.contexts) + 1))
        answer = f"{_MARK.sub('', row.answer).rstrip(' .')} {marks}."
        precision = citation_precision(_read(judge, replace(row, answer=answer)))
        if precision is not None:
            yield LabelledCitation(row.group, record["label"]["faithful"], precision)


def _tell(what: str, labelled: Iterable[LabelledCitation]) -> None:
    rows = list(labelled)
    groups = [row.group for row in rows]
    wrong = np.array([not row.supported for row in rows], dtype=bool)
    doubt = np.array([1.0 - row.precision for row in rows])
    figure = figures.interval(groups, figures.auroc, wrong, doubt)
    print(
        f"{what}: {len(rows)}, AUROC {figure}, mean precision {1 - doubt.mean():.3f}, supported {1 - wrong.mean():.3f}"
    )


def _tell_moved(judge: LexicalJudge, answers: Iterable[Mapping[str, Any]]) -> None:
    """Right citations beside the same ones moved to the next passage."""
    kept: list[float] = []
    moved: list[float] = []
    for record in answers:
        row = _renumbered(record)
        for claim in _labelled(record):
            if len(row.contexts) < 2 or not claim["supported"] or len(claim["cited_contexts"]) > 1:
                continue
            (context,) = claim["cited_contexts"]
            other = (context + 1) % len(row.contexts)
            text = _MARK.sub("", row.answer[claim["start"] : claim["end"]]).rstrip(" .")
            for rank, values in ((context, kept), (other, moved)):
                value = citation_precision(_read(judge, replace(row, answer=f"{text} [{rank + 1}].")))
                if value is not None:
                    values.append(value)
    print(
        f"{EXPERTQA}: right citations called right {np.mean(kept):.3f} ({len(kept)}), moved ones {np.mean(moved):.3f}"
    )


if __name__ == "__main__":
    main()
