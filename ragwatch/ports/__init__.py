"""Ports: every door between rooms. Rooms know these Protocols and core values, never one another."""

from ragwatch.ports.judging import Desk, Judge, Purse
from ragwatch.ports.kinds import Kind
from ragwatch.ports.probing import Oracle, Probe
from ragwatch.ports.rows import (
    Admission,
    Assignment,
    Entry,
    Event,
    FollowUp,
    Found,
    OpenBatch,
    Query,
    Retention,
    Run,
    ScoreRow,
    StoredText,
)
from ragwatch.ports.storage import Accounts, Batches, Notes, Store
from ragwatch.ports.traffic import Batch, Rejection, Source

__all__ = [
    "Accounts",
    "Admission",
    "Assignment",
    "Batch",
    "Batches",
    "Desk",
    "Entry",
    "Event",
    "FollowUp",
    "Found",
    "Judge",
    "Kind",
    "Notes",
    "OpenBatch",
    "Oracle",
    "Probe",
    "Purse",
    "Query",
    "Rejection",
    "Retention",
    "Run",
    "ScoreRow",
    "Source",
    "Store",
    "StoredText",
]
