"""Label: a person's word on a sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from ragwatch.core.evidence import ClaimVerdict
from ragwatch.core.scores import Quantity

LEAST_PROBABILITY = 1e-12
"""Sums of squared weights stay far from the end of floats; no sampling goes as low."""


@dataclass(frozen=True, slots=True)
class Label:
    """What one person said of one sample.

    Attributes:
        key: Identity of the sample in the store.
        annotator: Who said it.
        at: When, in seconds since the epoch.
        scores: The person's score by quantity, each in [0, 1]; a quantity they said nothing of is absent.
        claims: The person's verdict on each claim that was shown, in their order; None for one they passed over. Empty
            when they judged the answer as a whole.
        probability: Probability with which the sample was both drawn and put before people, in (0, 1]. None when it is
            not known (imported): such a label tells about the judge, and corrects no estimate.
        note: For people.
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
        """The label as JSON values."""
        return {
            "key": self.key,
            "annotator": self.annotator,
            "at": self.at,
            "scores": {str(quantity): score for quantity, score in self.scores.items()},
            "claims": [None if each is None else str(each) for each in self.claims],
            "probability": self.probability,
            "note": self.note,
        }


def from_record(record: Mapping[str, Any]) -> Label:
    """The label that `Label.to_record` wrote.

    Raises:
        KeyError, ValueError, TypeError, AttributeError: The record is not one of ours.
    """
    return Label(
        str(record["key"]),
        str(record["annotator"]),
        float(record["at"]),
        {Quantity(name): float(score) for name, score in record["scores"].items()},
        tuple(None if each is None else ClaimVerdict(each) for each in record.get("claims", ())),
        None if record.get("probability") is None else float(record["probability"]),
        str(record.get("note", "")),
    )


def given(record: Mapping[str, Any], now: float) -> Label:
    """The label in a record of somebody else. A time that is yet to come is this moment, or it would never grow old.

    Raises:
        KeyError, ValueError, TypeError, AttributeError: The record is no label.
    """
    label = from_record(record)
    if not isfinite(label.at):
        raise ValueError(f"at must be seconds since the epoch, not {label.at}")
    if label.probability is not None and label.probability < LEAST_PROBABILITY:
        raise ValueError(f"probability must be {LEAST_PROBABILITY:g} or more, not {label.probability}")
    for name, text in (("key", label.key), ("annotator", label.annotator), ("note", label.note)):
        if any("\ud800" <= each <= "\udfff" for each in text):
            raise ValueError(f"{name} holds half of a surrogate pair, which is no text")
    return replace(label, at=min(label.at, now))
