"""Ports: Protocols and value classes through which sources, judges, probes, stores and the pipeline call each other.

Implementations depend on this package only, never on one another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from pydantic import BaseModel

from ragwatch.ports.judging import BudgetAccount, Judge, JudgeContext
from ragwatch.ports.probing import Oracle, Probe
from ragwatch.ports.rejudging import RejudgeCandidate, RejudgeQuery, RejudgeReader, RejudgeStore
from ragwatch.ports.rows import (
    Admission,
    AnswerQuery,
    Assignment,
    Clock,
    Erased,
    Erasure,
    Feedback,
    FollowUp,
    OpenBatch,
    PackedVerdict,
    Part,
    Query,
    RecordedEvent,
    Retention,
    ScoreRow,
    StoredRun,
    StoredText,
    StoredVerdict,
    VersionValue,
)
from ragwatch.ports.storage import Accounts, Batches, NoteStore, SavedState, Store
from ragwatch.ports.traffic import (
    Batch,
    BatchReport,
    Peak,
    Rejection,
    SegmentQuery,
    SegmentSums,
    Source,
    TrendQuery,
    TrendStore,
    TrendSums,
)

Built_co = TypeVar("Built_co", covariant=True)


class Kind(Protocol[Built_co]):
    """A module that implements one kind. Each package lists its kinds in a literal dict `KINDS`."""

    @property
    def Options(self) -> type[BaseModel]:  # noqa: N802 - it is a class
        """Configuration model of the kind: frozen, forbids unknown keys, and is the only place of its defaults."""
        ...

    @property
    def build(self) -> Callable[..., Built_co]:
        """Builds the object from its options and the arguments that the `__init__` of the package documents."""
        ...


__all__ = [
    "Accounts",
    "Admission",
    "AnswerQuery",
    "Assignment",
    "Batch",
    "BatchReport",
    "Batches",
    "BudgetAccount",
    "Clock",
    "Erased",
    "Erasure",
    "Feedback",
    "FollowUp",
    "Judge",
    "JudgeContext",
    "Kind",
    "NoteStore",
    "OpenBatch",
    "Oracle",
    "PackedVerdict",
    "Part",
    "Peak",
    "Probe",
    "Query",
    "RecordedEvent",
    "Rejection",
    "RejudgeCandidate",
    "RejudgeQuery",
    "RejudgeReader",
    "RejudgeStore",
    "Retention",
    "SavedState",
    "ScoreRow",
    "SegmentQuery",
    "SegmentSums",
    "Source",
    "Store",
    "StoredRun",
    "StoredText",
    "StoredVerdict",
    "TrendQuery",
    "TrendStore",
    "TrendSums",
    "VersionValue",
]
