"""Protocols of the store. Value classes: `ragwatch.ports.rows`, `ragwatch.ports.trends`."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ragwatch.model.budget import Cost, SpendingCap
from ragwatch.model.estimate import Addends
from ragwatch.model.sample import Draw
from ragwatch.ports.rows import (
    Admission,
    AnswerQuery,
    Clock,
    Erased,
    Erasure,
    FollowUp,
    OpenBatch,
    PackedVerdict,
    Part,
    Query,
    RecordedEvent,
    Retention,
    ScoreRow,
    StoredRun,
    StoredVerdict,
)
from ragwatch.ports.trends import TrendStore
from ragwatch.statistics.causes.traits import Traits
from ragwatch.statistics.labels.label import Label
from ragwatch.statistics.tally import Tallies
from ragwatch.statistics.trends import BucketKey
from ragwatch.statistics.verdict import Verdict
from ragwatch.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class RejudgeQuery:
    """Which stored answers a judge may read again."""

    judge: str
    of: str  # the judge whose answers these are: those that it was assigned and has settled
    since: float  # the oldest time of an answer
    until: float  # answers are older than this
    route: str | None = None  # None for all routes


@dataclass(frozen=True, slots=True)
class RejudgeCandidate:
    """An answer that a judge may read again."""

    key: str
    at: float
    has_texts: bool  # whether its texts are stored
    version: str | None  # version of the judge whose verdict on it is stored; None if there is none
    rejudged: bool  # whether that verdict is of such a reading, and not of a draw that was assigned to the judge
    waiting: bool  # whether it is in the queue of the judge


class RejudgeReader(Protocol):
    """Finds answers that another judge may read."""

    def rejudge_candidates(self, query: RejudgeQuery) -> list[RejudgeCandidate]:
        """Return the answers of a query, oldest first.

        Left out are the same ones as in `Store.window`: what retention leaves of a time is no random sample of it.
        """

    def first_reading(self, judge: str) -> float:
        """Return the time of the oldest answer that was assigned to a judge; infinity if there is none."""

    def draws_of(self, judge: str, keys: Collection[str]) -> list[Draw]:
        """Return answers that a judge has settled, each with the probability with which it was assigned to it.

        Answers whose texts are deleted are left out.
        """


class RejudgeStore(RejudgeReader, Protocol):
    """Has stored answers read again, outside of the queues.

    These verdicts are marked. `Store.window` leaves them out, so that they enter no gauge, drift detector, correction
    or export; counters of draws and scores do not count them.
    """

    def add_rejudged(self, verdicts: Sequence[Verdict], *, charted_before: float) -> int:
        """Store verdicts, and count them. Returns the number of new ones.

        Skipped are answers that the judge has settled or in its queue, and those whose texts were deleted meanwhile.

        There is at most one for each draw and judge. Scores of answers before `charted_before` are added to the trends.
        """


SavedState = Any  # a JSON object that a loop has saved: the loop says which fields it has


class Accounts(Protocol):
    """Ledger of judge costs. Reservations are durable, so that a crash cannot lose spending."""

    def reserve(self, judge: str, worst: Cost, caps: Sequence[SpendingCap], *, now: float) -> int | None:
        """Reserve an amount for a call; None if that would exceed a cap. Returns the id of the reservation.

        A reservation that is never settled counts in full.
        """

    def pay(self, reservation: int, actual: Cost) -> None:
        """Replace a reservation by the actual cost. Repeated calls for the same reservation have no effect."""

    def spent(self, judge: str, since: float) -> Cost:
        """Return the sum of reservations and payments for calls started after an instant."""


class Batches(Protocol):
    """Draws that were submitted to a provider in a message batch and await its results."""

    def prepare_batch(self, judge: str, draws: Mapping[str, int], seed: str, *, now: float) -> int:
        """Move draws (key to reservation) from the queue to a new message batch. Returns the number of the batch.

        `lease` skips these draws. Draws that are settled or already in another batch are left out.
        """

    def send_batch(self, batch: int, provider_id: str) -> None:
        """Record the provider's id of an accepted batch."""

    def batches(self, judge: str) -> list[OpenBatch]:
        """Return the batches that are not closed, oldest first."""

    def batched(self, batch: int) -> list[tuple[Draw, int]]:
        """Return the unsettled draws of a batch, each with its reservation."""

    def close_batch(self, batch: int) -> int:
        """Delete a batch and return its unsettled draws to the queue. Returns their number."""


class NoteStore(Protocol):
    """Canary and anchor runs, labels by people, saved state of loops, and claims."""

    def record_run(self, run: StoredRun, tallies: Tallies, sums: Mapping[BucketKey, Addends] | None = None) -> None:
        """Store a run and add its tallies and its figures to the trends, in one transaction."""

    def runs(self, kind: str, name: str, limit: int, *, failing: bool | None = None) -> list[StoredRun]:
        """Return the runs of one kind and name, newest first; filtered by `failing` unless that is None."""

    def add_labels(self, labels: Sequence[Label]) -> int:
        """Store labels. Returns how many are new.

        A label replaces an earlier one of the same annotator on the same sample.
        """

    def labels(self, since: float) -> list[Label]:
        """Return the labels made since an instant, oldest first."""

    def labels_of(self, key: str, limit: int) -> list[Label]:
        """Return the newest labels of one sample, oldest first."""

    def labels_after(self, place: tuple[float, str, str] | None, limit: int) -> list[Label]:
        """Return a page of labels sorted by (at, key, annotator): those after `place`, or the first ones."""

    def remember(self, name: str, state: Mapping[str, object]) -> None:
        """Save the state of a loop under a name, replacing the previous one, for use after a restart."""

    def recall(self, name: str) -> SavedState | None:
        """Return the state saved under a name; None if there is none."""

    def claim(self, name: str, holder: str, *, now: float, seconds: float) -> bool:
        """Acquire or renew an exclusive, expiring claim. Returns False while another holder has it.

        `seconds` of 0 or less releases it.
        """


class FeedbackStore(Protocol):
    """Feedback of users on stored samples, of which the last one on each counts. `Store.admit` writes it."""

    def feedback_after(self, seq: int, limit: int) -> list[tuple[int, float]]:
        """Return sequence number and time of the answer of feedback that was stored, replaced or erased after `seq`."""

    def feedback_of(self, key: str) -> tuple[float, float] | None:
        """Return the score and the time of the feedback on one sample; None if there is none."""

    def rated(self, since: float, until: float) -> list[tuple[ScoreRow, float]]:
        """Return score rows of the answers of a time that have feedback, each with the score by the user.

        The same verdicts are left out as in `Store.window`.
        """


class Store(Accounts, Batches, NoteStore, FeedbackStore, TrendStore, RejudgeStore, Protocol):
    """Durable storage. Thread-safe; every method may block on disk I/O.

    Every writing method is one transaction, and raises `StoreError` without having written anything if it fails. So do
    reading ones where the store cannot be read, and all code that uses a store, which does not document it again.
    """

    def cursors(self, source: str) -> dict[str, str]:
        """Return the stored cursors of a source, by stream."""

    def parts(self, source: str) -> Iterator[Part]:
        """Yield the parts of a source that are stored and not released, in the order of their arrival."""

    def received(self, source: str, ids: Collection[str]) -> set[str]:
        """Return those of the ids that an admission of this source has stored as received, within about a day."""

    def admit(self, admission: Admission) -> int:
        """Store draws, cursor, tallies, parts, received ids and feedback. Returns the number of new draws.

        A draw whose key is already stored is only counted, as a duplicate.

        Raises:
            ReceivedMeanwhileError: Another worker has stored one of the ids as received, so that these counts are
                wrong.
        """

    def lease(self, judge: str, limit: int, *, now: float, seconds: float, before: float | None = None) -> list[Draw]:
        """Lease up to `limit` pending draws to a judge for `seconds`, oldest first.

        The draws carry the probability of that judge's assignment. If `before` is given, only draws that have been
        pending since before that instant are returned.
        """

    def postpone(self, judge: str, keys: Collection[str], until: float) -> None:
        """Set the instant from which leased draws are pending again, for draws that the judge could not read."""

    def settle(
        self, verdicts: Sequence[Verdict], follow_ups: Sequence[FollowUp] = (), tallies: Tallies | None = None
    ) -> int:
        """Store verdicts and count them, also in the trends. Returns the number of new ones.

        A draw that is already settled is skipped.

        Args:
            verdicts: At most one for each draw and judge.
            follow_ups: Assignments to further judges that these verdicts cause; skipped if the verdict was not new.
            tallies: Further counters, added in the same transaction unless all verdicts were already settled.
        """

    def overdue(self, before: float) -> dict[tuple[str, str, int], float]:
        """Return the weight (sum of 1 / probability) of draws pending since before an instant.

        By route, judge and minute of `at`.
        """

    def record(self, event: RecordedEvent) -> None:
        """Store an event."""

    def events(self, since: float) -> list[RecordedEvent]:
        """Return the events since an instant, oldest first."""

    def last_events(self, since: float) -> dict[str, float]:
        """Return the time of the last event by kind, of the events since an instant."""

    def window(self, after: int, since: float, limit: int) -> list[ScoreRow]:
        """Return score rows with a `seq` above `after`, of answers not older than `since`, in order of settlement.

        Left out are verdicts of readings again (see `RejudgeStore`): the answers were not assigned to their judge.

        Verdicts from a time of which retention has deleted some are left out, unless settled afterwards: those without
        a fault are deleted first, so the mean of the remaining ones is biased.
        """

    def pruned_until(self) -> float:
        """Return the latest time of a verdict that retention has deleted; minus infinity if there is none.

        Up to then the remaining verdicts are not a random sample.
        """

    def find(self, query: Query) -> list[StoredVerdict]:
        """Return matching verdicts with their full texts, newest first. Loads all at once: keep `limit` small.

        Damaged texts are left out and reported in `damage`.
        """

    def summaries(self, query: Query) -> list[StoredVerdict]:
        """Return matching verdicts for lists: columns, and excerpts of id, question and answer of bounded length."""

    def entries(self, query: Query) -> Iterator[PackedVerdict]:
        """Yield matching verdicts one by one with compressed texts. Verdicts deleted meanwhile are skipped."""

    def examined_since(self, query: Query) -> float | None:
        """Return back to when a search for words with other filters looks at answers, in seconds since the epoch.

        None if it looks at all that have the words.
        """

    def replies(self, seq: int) -> tuple[str, ...]:
        """Return what a model replied, as text, behind the verdict with a sequence number; nothing if not stored."""

    def answers(self, query: AnswerQuery) -> list[tuple[ScoreRow, Traits | None]]:
        """Return score rows of judged answers, newest first, each with its traits (see `statistics.causes.traits`).

        Traits are None where none are stored: of answers before an upgrade, and of erased ones. Left out are the same
        times as in `window`; verdicts of readings again are there.
        """

    def damaged(self) -> int:
        """Return the number of rows with damaged texts met since the start."""

    def prune(self, retention: Retention, *, now: float) -> int:
        """Delete what exceeds the retention limits, verdicts with a fault last.

        Returns the number of deleted verdicts.
        """

    def forget(self, erasure: Erasure, *, dry_run: bool = False, seconds: float = 0.0) -> Erased:
        """Delete the texts, ids and metadata of answers from all rows and from free space. Counters stay balanced.

        A dry run only counts. Readers that keep free space from being overwritten are waited for, so many seconds.
        """

    def tallies(self) -> Tallies:
        """Return all counters."""

    def pending(self) -> dict[str, int]:
        """Return the number of unsettled draws by judge."""

    def tallies_and_pending(self) -> tuple[Tallies, dict[str, int]]:
        """Return `tallies` and `pending` of one instant, as invariants between them require."""

    def close(self) -> None:
        """Close the database and unlock the state directory."""


@dataclass(frozen=True, slots=True)
class LoopContext:
    """What every loop of the pipeline uses. The clock returns seconds since the epoch."""

    store: Store
    telemetry: Telemetry
    clock: Clock
