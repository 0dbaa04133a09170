"""Memory: the door of the store."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

from ragwatch.core.budget import Cost, SpendingCap
from ragwatch.core.labels.label import Label
from ragwatch.core.sample import Draw
from ragwatch.core.tally import Tallies
from ragwatch.core.verdict import Verdict
from ragwatch.ports.rows import (
    Admission,
    FollowUp,
    OpenBatch,
    PackedVerdict,
    Query,
    RecordedEvent,
    Retention,
    ScoreRow,
    StoredRun,
    StoredVerdict,
)


class Accounts(Protocol):
    """What calls cost, so that a kill cannot forget it."""

    def reserve(self, judge: str, worst: Cost, caps: Sequence[SpendingCap], *, now: float) -> int | None:
        """Set money aside: None when a cap would be passed. What is not settled counts in full for ever after."""
        ...

    def pay(self, reservation: int, actual: Cost) -> None:
        """Replace what was set aside by what it did cost."""
        ...

    def spent(self, judge: str, since: float) -> Cost:
        """Money set aside or paid for calls begun after an instant."""
        ...


class Batches(Protocol):
    """Draws that are out with a provider, to be collected later."""

    def prepare_batch(self, judge: str, draws: Mapping[str, int], seed: str, *, now: float) -> int:
        """Put draws (key to reservation) aside for one message batch: nothing else leases them. Returns its number."""
        ...

    def send_batch(self, batch: int, provider_id: str) -> None:
        """The provider has accepted the batch under this name."""
        ...

    def batches(self, judge: str) -> list[OpenBatch]:
        """Batches that are not closed, oldest first."""
        ...

    def batched(self, batch: int) -> list[tuple[Draw, int]]:
        """Draws of a batch that are not settled, each with its reservation."""
        ...

    def close_batch(self, batch: int) -> int:
        """Forget a batch; draws of it that are not settled return to the queue. Returns how many did."""
        ...


class NoteStore(Protocol):
    """What is kept beside samples and verdicts: runs, people's words, and what loops remember."""

    def record_run(self, run: StoredRun, tallies: Tallies) -> None:
        """Keep a run and what it adds to the tallies, in one transaction."""
        ...

    def runs(self, kind: str, name: str, limit: int, *, failing: bool | None = None) -> list[StoredRun]:
        """Runs of one thing, newest first; only those that came out badly (or well), where asked for."""
        ...

    def add_labels(self, labels: Sequence[Label]) -> int:
        """Keep labels. One of the same person on the same sample replaces the earlier one. Returns how many are new."""
        ...

    def labels(self, since: float) -> list[Label]:
        """Labels given since an instant, oldest first."""
        ...

    def labels_of(self, key: str, limit: int) -> list[Label]:
        """The newest labels of one sample, oldest first."""
        ...

    def labels_after(self, place: tuple[float, str, str] | None, limit: int) -> list[Label]:
        """Labels behind that (at, key, annotator), or the first ones, in this order."""
        ...

    def remember(self, name: str, state: Mapping[str, Any]) -> None:
        """Keep what a loop must know after a restart, in place of what it kept before."""
        ...

    def recall(self, name: str) -> Mapping[str, Any] | None:
        """What was kept under this name; None for nothing."""
        ...

    def claim(self, name: str, holder: str, *, now: float, seconds: float) -> bool:
        """Take, or keep, a right that one process of a fleet has at a time. False when another one holds it."""
        ...


class Store(Accounts, Batches, NoteStore, Protocol):
    """Durable memory: the only place where two flows meet. Thread-safe; every method may block on a disk.

    Every writing method is one transaction and raises `StoreError` when it could not be written; then nothing was.
    """

    def cursors(self, source: str) -> dict[str, str]:
        """Stored cursors of a source, by stream."""
        ...

    def admit(self, admission: Admission) -> int:
        """Draws, cursor and tallies in one transaction. Known keys are a no-op. Returns the number of new draws."""
        ...

    def lease(self, judge: str, limit: int, *, now: float, seconds: float, before: float | None = None) -> list[Draw]:
        """Up to `limit` pending draws for a judge, oldest first, held for `seconds`; probability is that judge's.

        With `before`, only what has been pending since before that instant.
        """
        ...

    def postpone(self, judge: str, keys: Collection[str], until: float) -> None:
        """Hold leased draws back until an instant: the judge could not read them at present."""
        ...

    def settle(
        self, verdicts: Sequence[Verdict], follow_ups: Sequence[FollowUp] = (), tallies: Tallies | None = None
    ) -> int:
        """Write verdicts and their tallies. A draw settled before is a no-op. Returns how many were new.

        `follow_ups` is work for other judges that these verdicts bring, left out where the verdict was not new;
        `tallies` are further counts, written in the same transaction; not where all verdicts were settled before.
        """
        ...

    def overdue(self, before: float) -> dict[tuple[str, str, int], float]:
        """Weight (sum of 1/probability) of draws pending since before an instant, by (route, judge, minute of `at`)."""
        ...

    def record(self, event: RecordedEvent) -> None:
        """Keep an event."""
        ...

    def events(self, since: float) -> list[RecordedEvent]:
        """Events since an instant, oldest first."""
        ...

    def window(self, after: int, since: float, limit: int) -> list[ScoreRow]:
        """Score rows settled behind `after` whose answers are not older than `since`, in order of settling.

        Without what retention has left of times from which it took something, unless it was settled since: failures
        outlive successes, and their mean is nobody's.
        """
        ...

    def picked_until(self) -> float:
        """Instant up to which retention has taken some answers and left others; minus infinity where it took none."""
        ...

    def find(self, query: Query) -> list[StoredVerdict]:
        """Stored verdicts, newest first, whole and all at once: for a few. What is damaged says so, and has no text."""
        ...

    def summaries(self, query: Query) -> list[StoredVerdict]:
        """The same for lists: figures, and the beginning of id, question and answer, however long the texts are."""
        ...

    def entries(self, query: Query) -> Iterator[PackedVerdict]:
        """The same one by one, their texts still packed. What is forgotten meanwhile is left out."""
        ...

    def damaged(self) -> int:
        """How many rows with a text that cannot be read were met since the start."""
        ...

    def prune(self, retention: Retention, *, now: float) -> int:
        """Forget what is older or larger than allowed, failures last. Returns the number of verdicts gone."""
        ...

    def tallies(self) -> Tallies:
        """All counts."""
        ...

    def pending(self) -> dict[str, int]:
        """Draws not settled yet, by judge."""
        ...

    def books(self) -> tuple[Tallies, dict[str, int]]:
        """`tallies` and `pending` at one instant: only together do they balance."""
        ...

    def close(self) -> None:
        """Release the state directory."""
        ...
