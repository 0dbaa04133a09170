"""Readings of a set -> its figures, for each judge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from accuracy import figures
from accuracy.figures import Figure
from accuracy.readings import OVERLAP, Reading
from accuracy.rows import LabelledSet, Row

MEASURES = ("AUROC", "AP", "F1", "ECE", "P at 5 %", "r", "unknown")


@dataclass(frozen=True, slots=True)
class Scored:
    """Figures of one judge on one set."""

    of: LabelledSet  # the set
    judge: str  # whose they are
    fitted: bool  # whether the judge was fitted on the set
    figures: Mapping[str, Figure]  # by the names of `MEASURES`

    def to_record(self) -> dict[str, Any]:
        """As it is written to JSON."""
        shown = {name: figure.to_record() for name, figure in self.figures.items()}
        return {"set": self.of.name, "rows": len(self.of.rows), "judge": self.judge, "fitted": self.fitted, **shown}


def scored(of: LabelledSet, judge: str, readings: Sequence[Reading], *, fitted: bool, rounds: int) -> Scored:
    """Every figure of one judge on one set, of the answers that claim something, and the share of the others."""
    known = [(row, each) for row, each in zip(of.rows, readings, strict=True) if each.doubt is not None]
    groups = [row.group for row, _ in known]
    positive = np.array([row.unfaithful for row, _ in known], dtype=bool)
    doubt = np.array([each.doubt for _, each in known])
    flagged = np.array([each.flagged for _, each in known], dtype=bool)
    found = {
        "AUROC": figures.interval(groups, figures.auroc, positive, doubt, rounds=rounds),
        "AP": figures.interval(groups, figures.average_precision, positive, doubt, rounds=rounds),
        "F1": figures.interval(groups, figures.f1, positive, flagged, rounds=rounds),
        "ECE": figures.interval(groups, figures.calibration_error, positive, doubt, rounds=rounds),
        "P at 5 %": figures.interval(groups, figures.precision_of_alarms, positive, doubt, rounds=rounds),
        "r": figures.interval(groups, figures.correlation, positive, doubt, rounds=rounds),
        "unknown": Figure(1.0 - len(known) / max(1, len(of.rows))),
    }
    if judge == OVERLAP:  # no threshold is shipped with it, and it is no probability
        found |= {"F1": Figure(None), "ECE": Figure(None)}
    return Scored(of, judge, fitted, found)


def contradictions(of: LabelledSet, readings: Sequence[Reading], rounds: int) -> dict[str, Figure]:
    """How well refuted claims are told: F1 of "contradicted", and the share of supported claims called that."""
    rows = list(zip(of.rows, readings, strict=True))
    groups = [row.group for row, _ in rows]
    refuted = np.array([_is_refuted(row) for row, _ in rows], dtype=bool)
    called = np.array([each.contradicted for _, each in rows], dtype=bool)
    kept = [index for index, (row, _) in enumerate(rows) if not row.unfaithful]
    return {
        "contradiction F1": figures.interval(groups, figures.f1, refuted, called, rounds=rounds),
        "supported, called contradicted": figures.interval(
            [groups[index] for index in kept], lambda flags: float(flags.mean()), called[kept], rounds=rounds
        ),
    }


def _is_refuted(row: Row) -> bool:
    return row.raw.lower().startswith("refute")


def relevance(of: LabelledSet, readings: Sequence[Reading], rounds: int) -> Figure:
    """AUROC of relevance over all (question, context) pairs."""
    cells = [
        (row.group, label, value or 0.0)
        for row, each in zip(of.rows, readings, strict=True)
        for label, value in zip(row.relevant, each.relevance, strict=True)
    ]
    groups, labels, values = zip(*cells, strict=True)
    return figures.interval(groups, figures.auroc, np.array(labels, dtype=bool), np.array(values), rounds=rounds)
