"""Searches for verdicts and answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ragwatch.errors import StoreError, UnsearchableError
from ragwatch.ports import AnswerQuery, PackedVerdict, Query, ScoreRow, StoredVerdict
from ragwatch.statistics.causes.traits import Traits
from ragwatch.stores import decoding, replies
from ragwatch.stores.engine import Component, Row
from ragwatch.stores.queries import ENTRY_BY_SEQ, Queries, Statement, answers_statement
from ragwatch.stores.rows import unpack
from ragwatch.stores.search.answer_terms import Rules, asked_terms


class Searching(Component):
    """Finds verdicts."""

    rules: Rules
    queries: type[Queries]

    def find(self, query: Query) -> list[StoredVerdict]:
        """See `Store.find`."""
        return self._decoded_verdicts(decoding.verdict_of, self.queries.full(query, self._asked(query)))

    def summaries(self, query: Query) -> list[StoredVerdict]:
        """See `Store.summaries`."""
        return self._decoded_verdicts(decoding.summary_of, self.queries.summary(query, self._asked(query)))

    def examined_since(self, query: Query) -> float | None:
        """See `Store.examined_since`."""
        limit = self.queries(query, self._asked(query), "").last_examined()
        ids = [] if limit is None else self.engine.pages.rows(*limit)
        return self.second_of(ids[0][0]) if len(ids) > 1 else None

    def second_of(self, identity: int) -> float:
        """Return the second of the answer with an id in the index of searches."""
        raise NotImplementedError

    def entries(self, query: Query) -> Iterator[PackedVerdict]:
        """See `Store.entries`. Loads one verdict at a time, without holding a transaction."""
        return map(decoding.packed_verdict_of, self._rows_of(self.queries.seqs(query, self._asked(query))))

    def verdicts(self, query: Query) -> Iterator[StoredVerdict]:
        """Yield matching verdicts, newest first, one at a time in memory; those deleted meanwhile are left out."""
        for *columns, body in self._rows_of(self.queries.seqs(query, self._asked(query))):
            yield decoding.verdict_of((*columns, body if query.texts else None))

    def _rows_of(self, search: Statement) -> Iterator[Row]:
        pages = self.engine.pages
        for (seq,) in pages.rows(*search, planned_once=False):
            yield from pages.rows(ENTRY_BY_SEQ, {"seq": seq})

    def replies(self, seq: int) -> tuple[str, ...]:
        """See `Store.replies`. There are none if they are damaged."""
        try:
            rows = self.engine.pages.rows(replies.BY_SEQ, {"seq": seq})
            return tuple(str(text) for (body,) in rows for text in unpack(body)["replies"])
        except (StoreError, LookupError, TypeError):
            return ()

    def answers(self, query: AnswerQuery) -> list[tuple[ScoreRow, Traits | None]]:
        """See `Store.answers`."""
        return list(map(decoding.answer_of, self.engine.pages.rows(*answers_statement(query))))

    def _decoded_verdicts(self, decode: Callable[[Row], StoredVerdict], search: Statement) -> list[StoredVerdict]:
        verdicts: list[StoredVerdict] = []
        damaged: list[str] = []
        for row in self.engine.pages.rows(*search, planned_once=False):
            try:
                verdicts.append(decode(row))
            except StoreError:  # without a readable key
                damaged.append(f"seq {row[0]}")
        damaged += [stored.verdict.key for stored in verdicts if stored.damage is not None]
        for key in damaged:
            self.engine.damage.note("verdicts", key)
        return verdicts

    def _asked(self, query: Query) -> list[list[int]]:
        if query.words and self.rules.words_off is not None:
            raise UnsearchableError(f"text: cannot be searched for: {self.rules.words_off}; leave it out")
        return asked_terms(query, self.rules.cipher)
