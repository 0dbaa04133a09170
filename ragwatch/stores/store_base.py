"""All components of a store over one engine."""

from __future__ import annotations

from collections.abc import Sequence

from ragwatch.errors import StoreError
from ragwatch.statistics.verdict import Verdict
from ragwatch.stores.accounts import Accounts
from ragwatch.stores.counting import Counting
from ragwatch.stores.engine import Writer
from ragwatch.stores.feedback import FeedbackComponent
from ragwatch.stores.forgetting import Forgetting
from ragwatch.stores.notes import Notes
from ragwatch.stores.rejudging import Rejudging
from ragwatch.stores.retention import Retaining
from ragwatch.stores.search.indexing import BEHIND, MAX_ROWS_PER_STEP, Place, entries_of, stored_entries
from ragwatch.stores.search.searching import Searching
from ragwatch.stores.segments import SegmentsComponent
from ragwatch.stores.settling import Settling
from ragwatch.stores.trends import Trends

COPYING = "copy under way"  # a saved state, until copying from another store has ended


class StoreBase(
    Settling,
    Accounts,
    Counting,
    Notes,
    FeedbackComponent,
    Trends,
    SegmentsComponent,
    Rejudging,
    Searching,
    Forgetting,
    Retaining,
):
    """Implements `ports.Store` but for leases, which each engine has in its own way."""

    def refuse_half_copied(self) -> None:
        """Raise a `StoreError` about a database into which copying has not ended."""
        if self.engine.rows("SELECT 1 FROM states WHERE name = :name", {"name": COPYING}):
            raise StoreError(
                "store: copying into it was cut short; run the same `ragwatch store copy` again, which goes on"
            )

    def texts_settled(self, writer: Writer, settled: Sequence[Verdict]) -> None:
        """See `Settling.texts_settled`."""
        self.note_dropped(self.drop_settled(writer, [verdict.draw.key for verdict in settled]))
        self.index.add(writer, entries_of(settled, self.rules))

    def note_dropped(self, number: int) -> None:
        """Note, within the transaction, that texts of so many answers or parts were deleted."""

    def index_behind(self, place: Place) -> Place | None:
        """Index those answers of a page of verdicts that are not indexed. Returns the next place; None at the end."""
        values = {"at": place[0], "seq": place[1], "limit": MAX_ROWS_PER_STEP}
        after: Place | None = None
        keys = dict[str, None]()
        for at, seq, key, words, failing in self.engine.rows(BEHIND, values):
            after = (at, seq)
            if words is None or (not words and self.rules.keeps_words(fails=bool(failing))):
                keys[key] = None
        if keys:
            with self.engine.transaction() as writer:
                self.index.add(writer, stored_entries(writer, list(keys), self.rules))
        return after
