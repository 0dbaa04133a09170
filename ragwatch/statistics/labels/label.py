"""Defines a label, the judgement of a person on a sample, with its JSON form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NotRequired, TypedDict

from ragwatch.model.evidence import ClaimVerdict
from ragwatch.model.quantities import Quantity, quantity_of
from ragwatch.model.quantity_row import Reply
from ragwatch.model.sample import SampleRecord

MIN_PROBABILITY = 1e-12
"""Keeps sums of squared weights within the range of floats; sampling probabilities are never as low."""
CLOCK_SECONDS = 3600.0  # by which the clock of a client may be ahead
MAX_EARLIER = 5  # records of earlier labels that are kept


@dataclass(frozen=True, slots=True)
class Label:
    """The judgement of one person on one sample."""

    key: str
    annotator: str
    at: float
    scores: Mapping[Quantity, float]  # score by quantity, each in [0, 1]; quantities without a score are absent
    claims: tuple[ClaimVerdict | None, ...] = ()  # on each claim that was shown, in order; None if skipped
    # probability with which the sample was both drawn and selected for labelling, in (0, 1]. None if it is unknown, as
    # for an imported label: the label then counts in the agreement with the judge, but corrects no estimate
    probability: float | None = None
    note: str = ""
    owner: str | None = None  # to whom the sample was given first; None where that is not known
    # the probability if a person had labelled nothing, by the name of each other person who did
    without: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    revoked: float | None = None  # since when it is taken back, in seconds since the epoch; None while it counts
    earlier: tuple[Mapping[str, Any], ...] = ()  # records of what the same person said before, oldest first

    def __post_init__(self) -> None:
        for quantity, score in self.scores.items():
            if not 0.0 <= score <= 1.0:
                raise ValueError(f"{quantity} must be in [0, 1], not {score}")
        if self.probability is not None and not 0.0 < self.probability <= 1.0:
            raise ValueError(f"probability must be in (0, 1], not {self.probability}")

    def to_record(self) -> dict[str, object]:
        """Returns the label as JSON values; names of criteria are listed, so that another version knows them."""
        criteria = [str(quantity) for quantity in self.scores if quantity.is_criterion]
        return {
            "key": self.key,
            "annotator": self.annotator,
            "at": self.at,
            "scores": {str(quantity): score for quantity, score in self.scores.items()},
            "claims": [None if verdict is None else str(verdict) for verdict in self.claims],
            "probability": self.probability,
            "note": self.note,
            **({"criteria": criteria} if criteria else {}),
            **({} if self.owner is None else {"owner": self.owner}),
            **({"without": dict(self.without)} if self.without else {}),
            **({} if self.revoked is None else {"revoked": self.revoked}),
            **({"earlier": [dict(record) for record in self.earlier]} if self.earlier else {}),
        }

    def after(self, old: Label) -> Label:
        """Returns this label as the successor of an older one, whose record is kept if they differ."""
        if (self.scores, self.claims, self.note) == (old.scores, old.claims, old.note) and old.revoked is None:
            return replace(self, earlier=old.earlier)
        record = {name: value for name, value in old.to_record().items() if name not in ("key", "annotator", "earlier")}
        return replace(self, earlier=(*old.earlier, record)[-MAX_EARLIER:])


def from_record(record: Mapping[str, Any]) -> Label:
    """Returns what `to_record` wrote; KeyError, ValueError, TypeError or AttributeError: it is no label."""
    return Label(
        str(record["key"]),
        str(record["annotator"]),
        float(record["at"]),
        {quantity_of(name): float(score) for name, score in record["scores"].items()},
        tuple(None if verdict is None else ClaimVerdict(verdict) for verdict in record.get("claims", ())),
        probability=None if record.get("probability") is None else float(record["probability"]),
        note=str(record.get("note", "")),
        owner=None if record.get("owner") is None else str(record["owner"]),
        without={str(name): float(value) for name, value in record.get("without", {}).items()},
        revoked=None if record.get("revoked") is None else float(record["revoked"]),
        earlier=tuple(dict(one) for one in record.get("earlier", ())),
    )


def parse_label(record: Mapping[str, Any], now: float) -> Label:
    """Validates and returns the label in a record from a client or a file; raises as `from_record`.

    A time that is ahead by less than an hour is replaced by `now`, because such a label would never expire.
    """
    label = from_record(record)
    every = ({"at": label.at, "revoked": label.revoked}, *label.earlier)
    for name, at in ((name, one[name]) for one in every for name in ("at", "revoked") if one.get(name) is not None):
        if not 0.0 <= float(at) <= now + CLOCK_SECONDS:  # neither is NaN
            raise ValueError(f"{name} must be seconds since the epoch, no later than in an hour, not {float(at)}")
    if label.probability is not None and label.probability < MIN_PROBABILITY:
        raise ValueError(f"probability must be {MIN_PROBABILITY:g} or more, not {label.probability}")
    for name, text in (("key", label.key), ("annotator", label.annotator), ("note", label.note)):
        if any("\ud800" <= char <= "\udfff" for char in text):
            raise ValueError(f"{name} contains half of a surrogate pair")
    return replace(label, at=min(label.at, now))


SKIP = "-"
CLAIM: Mapping[str, ClaimVerdict | None] = MappingProxyType(
    {"s": ClaimVerdict.SUPPORTED, "c": ClaimVerdict.CONTRADICTED, "n": ClaimVerdict.NOT_IN_CONTEXT, SKIP: None}
)
DEGREE: Mapping[str, float | None] = MappingProxyType({"f": 1.0, "p": 0.5, "n": 0.0, SKIP: None})
HOLDS: Mapping[str, float | None] = MappingProxyType({"y": 1.0, "n": 0.0, SKIP: None})
NOT_HOLDS: Mapping[str, float | None] = MappingProxyType({"y": 0.0, "n": 1.0, SKIP: None})
NAMES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "claim": MappingProxyType({"s": "supported", "c": "contradicted", "n": "not in the contexts", SKIP: "skip"}),
        "degree": MappingProxyType({"f": "fully", "p": "partly", "n": "not at all", SKIP: "skip"}),
        "yes": MappingProxyType({"y": "yes", "n": "no", SKIP: "skip"}),
    }
)
"""Replies in words, by kind of question."""


class TaskClaim(TypedDict):
    """A claim of a sample that is labelled, without a verdict, and its place if it is a part of the answer."""

    text: str
    start: int | None
    end: int | None


class TaskCriterion(TypedDict):
    """A criterion of the operator that people are asked about, too."""

    name: str
    question: str


class LabelTask(TypedDict):
    """A sample that a person labels."""

    key: str
    route: str
    at: float
    sample: SampleRecord
    claims: list[TaskClaim]
    criteria: NotRequired[list[TaskCriterion]]


class LabelQueue(TypedDict):
    """What was given to a person, and how far they are."""

    given: list[str]  # keys of all samples that were given to the person
    open: list[str]
    done: int  # how many have been labelled lately
    twice: int  # how many of the open and the done ones two people are given
    last: str | None  # the sample that was labelled last, lately


@dataclass(frozen=True, slots=True)
class LabelQuestion:
    """A question about an answer as a whole, with the score by reply (None to skip) and their kind in `NAMES`."""

    quantity: Quantity
    text: str
    replies: Mapping[str, float | None]
    kind: str


def label_questions(
    *, has_claims: bool, has_contexts: bool, criteria: Sequence[tuple[str, str]] = ()
) -> list[LabelQuestion]:
    """Returns the questions about an answer as a whole, without those that are asked claim by claim."""
    questions = [
        LabelQuestion(quantity, row.text, REPLIES[quantity], str(row.reply))
        for quantity in Quantity
        if (row := quantity.row.question) is not None
        and not (row.unless_claims and has_claims)
        and not (row.about_contexts and not has_contexts)
    ]
    return questions + [LabelQuestion(quantity_of(name), text, HOLDS, "yes") for name, text in criteria]


REPLIES: Mapping[str, Mapping[str, float | None]] = MappingProxyType(
    {
        quantity: DEGREE if row.reply is Reply.DEGREE else HOLDS if row.yes else NOT_HOLDS
        for quantity in Quantity
        if (row := quantity.row.question) is not None
    }
)
"""Score by reply, of each quantity that people are asked about."""
