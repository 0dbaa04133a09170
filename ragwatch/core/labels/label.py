"""Defines a label, the judgement of a person on a sample, with its JSON form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from ragwatch.core.evidence import ClaimVerdict
from ragwatch.core.scores import Quantity

MIN_PROBABILITY = 1e-12
"""Keeps sums of squared weights within the range of floats; sampling probabilities are never as low."""


@dataclass(frozen=True, slots=True)
class Label:
    """The judgement of one person on one sample.

    Attributes:
        key: Identity of the sample in the store.
        annotator: Name of the person.
        at: Time of the label, in seconds since the epoch.
        scores: Score by quantity, each in [0, 1]; quantities without a score are absent.
        claims: Verdict on each claim that was shown, in the order of the claims; None for a skipped claim. Empty if the
            answer was labelled as a whole.
        probability: Probability with which the sample was both drawn and selected for labelling, in (0, 1]. None if it
            is unknown, as for an imported label: the label then counts in the agreement with the judge, but corrects
            no estimate.
        note: Free text.
    """

    key: str
    annotator: str
    at: float
    scores: Mapping[Quantity, float]
    claims: tuple[ClaimVerdict | None, ...] = ()
    probability: float | None = None
    note: str = ""

    def __post_init__(self) -> None:
        for quantity, score in self.scores.items():
            if not 0.0 <= score <= 1.0:
                raise ValueError(f"{quantity} must be in [0, 1], not {score}")
        if self.probability is not None and not 0.0 < self.probability <= 1.0:
            raise ValueError(f"probability must be in (0, 1], not {self.probability}")

    def to_record(self) -> dict[str, Any]:
        """Returns the label as JSON values."""
        return {
            "key": self.key,
            "annotator": self.annotator,
            "at": self.at,
            "scores": {str(quantity): score for quantity, score in self.scores.items()},
            "claims": [None if verdict is None else str(verdict) for verdict in self.claims],
            "probability": self.probability,
            "note": self.note,
        }


def from_record(record: Mapping[str, Any]) -> Label:
    """Returns the label from a record that `Label.to_record` wrote.

    Raises:
        KeyError, ValueError, TypeError, AttributeError: The record is not a label.
    """
    return Label(
        str(record["key"]),
        str(record["annotator"]),
        float(record["at"]),
        {Quantity(name): float(score) for name, score in record["scores"].items()},
        tuple(None if verdict is None else ClaimVerdict(verdict) for verdict in record.get("claims", ())),
        probability=None if record.get("probability") is None else float(record["probability"]),
        note=str(record.get("note", "")),
    )


def parse_label(record: Mapping[str, Any], now: float) -> Label:
    """Validates and returns the label in a record from a client or a file.

    A time in the future is replaced by `now`, because such a label would never expire.

    Raises:
        KeyError, ValueError, TypeError, AttributeError: The record is not a valid label.
    """
    label = from_record(record)
    if not isfinite(label.at):
        raise ValueError(f"at must be seconds since the epoch, not {label.at}")
    if label.probability is not None and label.probability < MIN_PROBABILITY:
        raise ValueError(f"probability must be {MIN_PROBABILITY:g} or more, not {label.probability}")
    for name, text in (("key", label.key), ("annotator", label.annotator), ("note", label.note)):
        if any("\ud800" <= char <= "\udfff" for char in text):
            raise ValueError(f"{name} contains half of a surrogate pair")
    return replace(label, at=min(label.at, now))
