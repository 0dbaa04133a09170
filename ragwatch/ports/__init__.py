"""Ports: Protocols and value classes through which sources, judges, probes, stores and the pipeline call each other.

Implementations depend on this package only, never on one another.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

from pydantic import BaseModel

from ragwatch.ports.judging import BudgetAccount as BudgetAccount
from ragwatch.ports.judging import Judge as Judge
from ragwatch.ports.judging import JudgeContext as JudgeContext
from ragwatch.ports.judging import Oracle as Oracle
from ragwatch.ports.judging import Probe as Probe
from ragwatch.ports.rows import Admission as Admission
from ragwatch.ports.rows import AnswerQuery as AnswerQuery
from ragwatch.ports.rows import Assignment as Assignment
from ragwatch.ports.rows import Clock as Clock
from ragwatch.ports.rows import Erased as Erased
from ragwatch.ports.rows import Erasure as Erasure
from ragwatch.ports.rows import Feedback as Feedback
from ragwatch.ports.rows import FollowUp as FollowUp
from ragwatch.ports.rows import OpenBatch as OpenBatch
from ragwatch.ports.rows import PackedVerdict as PackedVerdict
from ragwatch.ports.rows import Part as Part
from ragwatch.ports.rows import Query as Query
from ragwatch.ports.rows import RecordedEvent as RecordedEvent
from ragwatch.ports.rows import Retention as Retention
from ragwatch.ports.rows import ScoreRow as ScoreRow
from ragwatch.ports.rows import StoredRun as StoredRun
from ragwatch.ports.rows import StoredText as StoredText
from ragwatch.ports.rows import StoredVerdict as StoredVerdict
from ragwatch.ports.rows import VersionValue as VersionValue
from ragwatch.ports.sources import Batch as Batch
from ragwatch.ports.sources import BatchReport as BatchReport
from ragwatch.ports.sources import Rejection as Rejection
from ragwatch.ports.sources import Source as Source
from ragwatch.ports.storage import Accounts as Accounts
from ragwatch.ports.storage import Batches as Batches
from ragwatch.ports.storage import LoopContext as LoopContext
from ragwatch.ports.storage import NoteStore as NoteStore
from ragwatch.ports.storage import RejudgeCandidate as RejudgeCandidate
from ragwatch.ports.storage import RejudgeQuery as RejudgeQuery
from ragwatch.ports.storage import RejudgeReader as RejudgeReader
from ragwatch.ports.storage import RejudgeStore as RejudgeStore
from ragwatch.ports.storage import SavedState as SavedState
from ragwatch.ports.storage import Store as Store
from ragwatch.ports.trends import Peak as Peak
from ragwatch.ports.trends import SegmentQuery as SegmentQuery
from ragwatch.ports.trends import SegmentSums as SegmentSums
from ragwatch.ports.trends import TrendQuery as TrendQuery
from ragwatch.ports.trends import TrendStore as TrendStore
from ragwatch.ports.trends import TrendSums as TrendSums

Built_co = TypeVar("Built_co", covariant=True)


class Kind(Protocol[Built_co]):
    """A module that implements one kind. Each package lists its kinds in a literal dict `KINDS`."""

    @property
    def Options(self) -> type[BaseModel]:  # noqa: N802 - it is a class
        """Configuration model of the kind: frozen, forbids unknown keys, and is the only place of its defaults."""

    @property
    def build(self) -> Callable[..., Built_co]:
        """Builds the object from its options and the arguments that the `__init__` of the package documents."""
