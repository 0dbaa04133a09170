"""Sheets: what the judges in force have said of one answer, for whoever lays people's words beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ragwatch.core.scores import Quantity
from ragwatch.ports import Query, Store

MOST_JUDGES = 50
DAY = 86400.0
Scores = Mapping[Quantity, float | None]


@dataclass(frozen=True, slots=True)
class LabelRules:
    """What labels are laid beside.

    Attributes:
        judges: Version in force of each judge, by name.
        chain: The judge that reads every draw, and one that reads a known part of what that one has read, if any.
        second: What the second one reads.
        fresh: Seconds for which a label counts.
        minimum: Labels below which nothing is concluded.
        share_unsure: Share of the samples for people that is chosen by how unsure the judges are, in [0, 1).
        double: Share of these samples that a second person is given too.
        confidence: Two-sided level of the intervals.
    """

    judges: Mapping[str, str]
    chain: tuple[str, ...]
    second: frozenset[Quantity] = frozenset(Quantity)
    fresh: float = 30 * DAY
    minimum: int = 30
    share_unsure: float = 0.5
    double: float = 0.1
    confidence: float = 0.95

    def readers(self, quantity: Quantity) -> tuple[str, ...]:
        """Judges of a quantity, each of which reads a part of what the one before has read."""
        return self.chain if quantity in self.second else self.chain[:1]


@dataclass(frozen=True, slots=True)
class AnswerVerdicts:
    """One answer.

    Attributes:
        key: Identity in the store.
        at: When it was answered, in seconds since the epoch.
        lines: Verdict line of each judge in force that could read it, by name.
        scores: Its scores, by name.
        probabilities: With which it came to that judge, by name.
        sample: The sample; None once retention has taken it.
    """

    key: str
    route: str
    at: float
    lines: Mapping[str, Mapping[str, Any]]
    scores: Mapping[str, Scores]
    probabilities: Mapping[str, float]
    sample: Mapping[str, Any] | None = None


def answer_verdicts(store: Store, judges: Mapping[str, str], key: str, *, texts: bool = True) -> AnswerVerdicts | None:
    """What is known of an answer; None where no judge in force has a verdict on it.

    Args:
        store: Holds it.
        judges: Version in force of each judge, by name.
        key: Its identity in the store.
        texts: False leaves the sample unread.

    Raises:
        StoreError: The store cannot be read.
    """
    found = [
        each
        for each in store.find(Query(key=key, limit=MOST_JUDGES, texts=texts))
        if each.verdict["outcome"] == "judged"
        and judges.get(each.verdict["judge_name"]) == each.verdict["judge"]["version"]
    ]
    if not found:
        return None
    lines = {str(each.verdict["judge_name"]): each.verdict for each in found}
    first = found[0].verdict
    return AnswerVerdicts(
        key,
        str(first["route"]),
        float(first["at"]),
        MappingProxyType(lines),
        {name: {each: line["scores"].get(each) for each in Quantity} for name, line in lines.items()},
        {name: float(line["probability"]) for name, line in lines.items()},
        found[0].sample,
    )
