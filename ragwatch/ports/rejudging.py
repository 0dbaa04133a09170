"""Protocol of the part of the store that has answers read again by another judge, and its value classes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from ragwatch.model.sample import Draw
from ragwatch.statistics.verdict import Verdict


@dataclass(frozen=True, slots=True)
class RejudgeQuery:
    """Which stored answers a judge may read again.

    Attributes:
        of: The judge whose answers these are: those that it was assigned and has settled.
        since: The oldest time of an answer, in seconds since the epoch.
        until: Answers are older than this.
        route: None for all routes.
    """

    judge: str
    of: str
    since: float
    until: float
    route: str | None = None


@dataclass(frozen=True, slots=True)
class RejudgeCandidate:
    """An answer that a judge may read again.

    Attributes:
        key: Identity of the sample in the store.
        at: When it was answered, in seconds since the epoch.
        has_texts: Whether its texts are stored.
        version: Version of the judge whose verdict on it is stored; None if there is none.
        rejudged: Whether that verdict is of such a reading, and not of a draw that was assigned to the judge.
        waiting: Whether it is in the queue of the judge.
    """

    key: str
    at: float
    has_texts: bool
    version: str | None
    rejudged: bool
    waiting: bool


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

        Args:
            verdicts: At most one for each draw and judge.
            charted_before: Scores of answers before this instant are added to the trends.
        """
