"""The part of the SQLite store that searches for verdicts, and completes the index of searches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing

from ragwatch.core.causes.traits import Traits
from ragwatch.errors import StoreError
from ragwatch.ports import AnswerQuery, PackedVerdict, Query, ScoreRow, StoredVerdict
from ragwatch.stores import decoding
from ragwatch.stores.answer_terms import asked_terms, check_searchable, unindexed
from ragwatch.stores.days import Row
from ragwatch.stores.replies import stored_replies
from ragwatch.stores.sqlite import indexing, replies, search
from ragwatch.stores.sqlite.rejudging import SqliteRejudging
from ragwatch.stores.traits import answer_of


class SqliteSearch(SqliteRejudging):
    """Implements the searches of `ports.Store`, and the index behind them."""

    def find(self, query: Query) -> list[StoredVerdict]:
        """See `Store.find`."""
        return self._decoded_verdicts(decoding.verdict_of, *search.statement(query, self._asked(query)))

    def summaries(self, query: Query) -> list[StoredVerdict]:
        """See `Store.summaries`."""
        return self._decoded_verdicts(decoding.summary_of, *search.summary_statement(query, self._asked(query)))

    def examined_since(self, query: Query) -> float | None:
        """See `Store.examined_since`."""
        terms = self._asked(query)
        if not search.is_limited(query, terms):
            return None
        ids = self.pages.rows(*search.last_examined_statement(query))
        return indexing.second_of(ids[0][0]) if len(ids) > 1 else None

    def entries(self, query: Query) -> Iterator[PackedVerdict]:
        """See `Store.entries`. Loads one verdict at a time, without holding a read transaction."""
        return self._entries(*search.seq_statement(query, self._asked(query)))

    def _entries(self, sql: str, parameters: Sequence[object]) -> Iterator[PackedVerdict]:
        for seq in self.pages.rows(sql, parameters):
            for row in self.pages.rows(search.ENTRY_BY_SEQ, seq):
                yield decoding.packed_verdict_of(row)

    def replies(self, seq: int) -> tuple[str, ...]:
        """See `Store.replies`."""
        return stored_replies(self.pages.rows(replies.BY_SEQ, (seq,)))

    def answers(self, query: AnswerQuery) -> list[tuple[ScoreRow, Traits | None]]:
        """See `Store.answers`."""
        return list(map(answer_of, self.pages.rows(*search.answers_statement(query))))

    def _decoded_verdicts(
        self, decode: Callable[[Row], StoredVerdict], sql: str, parameters: Sequence[object]
    ) -> list[StoredVerdict]:
        verdicts: list[StoredVerdict] = []
        damaged: list[str] = []
        with closing(self.pages.walk(sql, parameters)) as stored_rows:
            for row in stored_rows:
                try:
                    verdicts.append(decode(row))
                except StoreError:  # without a readable key
                    damaged.append(f"seq {row[0]}")
        damaged += [stored.verdict.key for stored in verdicts if stored.damage is not None]
        for key in damaged:
            self.damage.note("verdicts", key)
        return verdicts

    def _asked(self, query: Query) -> list[list[int]]:
        check_searchable(query, self._rules)
        return asked_terms(query, self._cipher)

    def _catch_up(self) -> None:
        """Add the answers to the index that earlier versions or under other settings were judged, once."""
        complete = {"texts": str(self._texts), "words": self._rules.words_off is None}
        if self.recall(indexing.STATE) == complete:
            return
        place: indexing.Place | None = indexing.NEWEST
        while place is not None:
            keys, place = unindexed(self._reader.rows(*indexing.behind_statement(place)), self._rules)
            if keys:
                with self.transaction() as writer:
                    indexing.add_stored(writer, keys, self._rules)
        self.remember(indexing.STATE, complete)
