"""The part of the PostgreSQL store that searches for verdicts, and completes the index of searches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from psycopg.rows import TupleRow

from ragwatch.core.causes.traits import Traits
from ragwatch.errors import StoreError
from ragwatch.ports import AnswerQuery, PackedVerdict, Query, ScoreRow, StoredVerdict
from ragwatch.stores import decoding
from ragwatch.stores.answer_terms import Rules, asked_terms, check_searchable, unindexed
from ragwatch.stores.kept_texts import Texts
from ragwatch.stores.postgres import indexing, replies, search
from ragwatch.stores.postgres.connections import Writer
from ragwatch.stores.postgres.dropping import drop_earlier, drop_settled
from ragwatch.stores.postgres.rejudging import PostgresRejudging
from ragwatch.stores.replies import stored_replies
from ragwatch.stores.traits import answer_of


class PostgresSearch(PostgresRejudging):
    """Implements the searches of `ports.Store`, and the index behind them."""

    _rules = Rules(Texts.ALL, None)
    _behind: indexing.Place | None = indexing.NEWEST

    @property
    def _texts(self) -> Texts:
        return self._rules.texts

    def find(self, query: Query) -> list[StoredVerdict]:
        """See `Store.find`."""
        return self._decoded_verdicts(decoding.verdict_of, *search.statement(query, self._asked(query)))

    def summaries(self, query: Query) -> list[StoredVerdict]:
        """See `Store.summaries`."""
        return self._decoded_verdicts(decoding.summary_of, *search.summary_statement(query, self._asked(query)))

    def examined_since(self, query: Query) -> float | None:
        """See `Store.examined_since`. Every answer that has the words is looked at."""
        self._asked(query)
        return None

    def entries(self, query: Query) -> Iterator[PackedVerdict]:
        """See `Store.entries`. Loads one verdict at a time, without holding a transaction."""
        return self._entries(*search.seq_statement(query, self._asked(query)))

    def _entries(self, sql: str, parameters: Sequence[object]) -> Iterator[PackedVerdict]:
        for seq in self.rows(sql, parameters, planned_once=False):
            for row in self.rows(search.ENTRY_BY_SEQ, seq):
                yield decoding.packed_verdict_of(row)

    def replies(self, seq: int) -> tuple[str, ...]:
        """See `Store.replies`."""
        return stored_replies(self.rows(replies.BY_SEQ, (seq,)))

    def answers(self, query: AnswerQuery) -> list[tuple[ScoreRow, Traits | None]]:
        """See `Store.answers`."""
        return list(map(answer_of, self.rows(*search.answers_statement(query))))

    def _decoded_verdicts(
        self, decode: Callable[[TupleRow], StoredVerdict], sql: str, parameters: Sequence[object]
    ) -> list[StoredVerdict]:
        verdicts: list[StoredVerdict] = []
        for row in self.rows(sql, parameters, planned_once=False):
            try:
                verdicts.append(decode(row))
            except StoreError:  # without a readable key
                self.damage.note("verdicts", f"seq {row[0]}")
        for stored in verdicts:
            if stored.damage is not None:
                self.damage.note("verdicts", stored.verdict.key)
        return verdicts

    def _asked(self, query: Query) -> list[list[int]]:
        check_searchable(query, self._rules)
        return asked_terms(query, self._cipher)

    def _drop_texts(self, writer: Writer, keys: Collection[str]) -> None:
        """Delete the texts of settled answers, within the transaction that settles them."""
        if self._texts is not Texts.ALL and keys:
            drop_settled(writer, sorted(keys), self._rules, seal=self.seal, unseal=self.unseal)

    def _drop_earlier(self, writer: Writer) -> int:
        return drop_earlier(writer, self._rules, seal=self.seal, unseal=self.unseal)

    def _catch_up(self) -> None:
        """Add the answers to the index that other versions have judged, once after each start."""
        if self._behind is not None and self._rules.words_off is not None:
            while self._delete_some_words():
                pass
        while self._behind is not None:
            keys, self._behind = unindexed(self.rows(*indexing.behind_statement(self._behind)), self._rules)
            if keys:
                with self.transaction() as writer:
                    indexing.add_stored(writer, keys, self._rules, self.unseal)

    def _delete_some_words(self) -> int:
        with self.transaction() as writer:
            return indexing.drop_words(writer)
