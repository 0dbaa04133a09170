"""Ports: Protocols and value classes through which sources, judges, probes, stores and the pipeline call each other.

Implementations depend on this package only, never on one another.
"""

from ragwatch.ports.judging import BudgetAccount, Judge, JudgeContext
from ragwatch.ports.kinds import Kind
from ragwatch.ports.probing import Oracle, Probe
from ragwatch.ports.rejudging import RejudgeCandidate, RejudgeQuery, RejudgeReader, RejudgeStore
from ragwatch.ports.rows import (
    Admission,
    AnswerQuery,
    Assignment,
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
from ragwatch.ports.traffic import Batch, BatchReport, Rejection, Source
from ragwatch.ports.trends import Peak, TrendQuery, TrendStore, TrendSums

__all__ = [
    "Accounts",
    "Admission",
    "AnswerQuery",
    "Assignment",
    "Batch",
    "BatchReport",
    "Batches",
    "BudgetAccount",
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
