"""All components of a store over one engine."""

from contextlib import ExitStack
from typing import Self

from ragwatch.errors import StoreError
from ragwatch.stores.accounts import Accounts
from ragwatch.stores.counting import Counting
from ragwatch.stores.feedback import FeedbackComponent
from ragwatch.stores.forgetting import Forgetting
from ragwatch.stores.notes import Notes
from ragwatch.stores.rejudging import Rejudging
from ragwatch.stores.retention import Retaining
from ragwatch.stores.searching import Searching
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
    Rejudging,
    Searching,
    Forgetting,
    Retaining,
):
    """Implements `ports.Store` but for leases, which each engine has in its own way."""

    def require_complete(self) -> Self:
        """Return this store; if copying into it has not ended, close it and raise a `StoreError`."""
        with ExitStack() as failed:
            failed.callback(self.close)
            if self.engine.rows("SELECT 1 FROM states WHERE name = :name", {"name": COPYING}):
                raise StoreError(
                    "store: copying into it was cut short; run the same `ragwatch store copy` again, which goes on"
                )
            failed.pop_all()  # it stays open
        return self

    def close(self) -> None:
        self.engine.close()
