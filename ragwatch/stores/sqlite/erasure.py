"""Deletes texts: those of settled answers if `store.texts` says so, and everything about a person on request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep

from ragwatch.core.tally import Tallies
from ragwatch.errors import StoreError
from ragwatch.ports import Erased, Erasure
from ragwatch.stores.answer_terms import rules_of
from ragwatch.stores.encryption import TextCipher
from ragwatch.stores.kept_texts import Texts
from ragwatch.stores.rows import pack
from ragwatch.stores.sqlite import forgetting, indexing, statements
from ragwatch.stores.sqlite.dropping import drop_earlier, drop_settled
from ragwatch.stores.sqlite.notes import SqliteNotes
from ragwatch.stores.sqlite.sqlite_writer import SqliteWriter

MAX_REWRITTEN_BYTES = 256 << 20  # above this size, the database is rewritten once a day, and not at the end
DAY = 86400.0
RETRY_SECONDS = 0.05
UNDER_WAY = "erasure under way"  # a saved state, from the erasure of a person until the database is written again


class SqliteErasure(SqliteNotes):
    """Implements what deletes texts.

    Args:
        state: Directory that belongs to this process alone.
        min_free: Free bytes on its disk below which no draws are admitted.
        texts: Texts of which answers are kept after judging.
        cipher: Encrypts texts; None stores them as they are.
        text_search: Whether words of texts are indexed.
    """

    def __init__(
        self,
        state: Path,
        *,
        min_free: int = 0,
        texts: Texts = Texts.ALL,
        cipher: TextCipher | None = None,
        text_search: bool = True,
    ) -> None:
        super().__init__(state, min_free=min_free, cipher=cipher)
        self._rules = indexing.without_fts5(SqliteWriter(self._writer, cipher), rules_of(texts, cipher, text_search=text_search))
        if texts is not Texts.ALL:
            self._writer.execute("PRAGMA secure_delete=ON")
        with self.transaction() as writer:
            indexing.prepare_words(writer, self._rules)
        self._dropped = False  # since the database was last rewritten by this process
        erasing = self._reader.rows("SELECT 1 FROM states WHERE name = ?", (UNDER_WAY,))
        self._rewrite_is_due = texts is not Texts.ALL or bool(erasing)  # a process that was killed may have left some
        self._rewritten_at = 0.0
        self._has_earlier_texts = texts is not Texts.ALL

    @property
    def _texts(self) -> Texts:
        return self._rules.texts

    def _drop_texts(self, writer: SqliteWriter, keys: Iterable[str]) -> None:
        """Delete the texts of settled answers, within the transaction that settles them."""
        if self._texts is not Texts.ALL and drop_settled(writer, keys, self._rules):
            self._dropped = True

    def _note_dropped(self, released: Collection[str]) -> None:
        """Note that parts were deleted, whose texts remain in free space until the database is rewritten."""
        if released and self._texts is not Texts.ALL:
            self._dropped = True

    def _drop_earlier_texts(self) -> None:
        """Delete what was stored under another `store.texts`, once after each start."""
        while self._has_earlier_texts:
            with self.transaction() as writer:
                self._has_earlier_texts = drop_earlier(writer, self._rules) > 0
            self._dropped = self._dropped or self._has_earlier_texts

    def _rewrite_if_dropped(self, now: float) -> None:
        """Delete what is left of dropped texts in free space: a large database once a day, because it is written whole.

        Raises:
            StoreError: It cannot be written.
        """
        if (self._dropped or self._rewrite_is_due) and (
            self._size() <= MAX_REWRITTEN_BYTES or abs(now - self._rewritten_at) >= DAY
        ):
            self._dropped = self._rewrite_is_due = not self._rewrite()
            self._rewritten_at = now
            if not self._dropped:
                self._end_erasure()

    def _rewrite(self) -> bool:
        """Write the database again without its free space, and the index of words without what was deleted from it."""
        with self.transaction() as writer:
            indexing.merge_words(writer)
        return super()._rewrite()

    def close(self) -> None:
        """Close the database and unlock the state directory. No dropped text is left behind in a small database."""
        with suppress(StoreError):  # a full disk; the next retention tries again if texts are dropped by then
            if self._dropped and self._size() <= MAX_REWRITTEN_BYTES:
                self._rewrite()
        super().close()

    def forget(self, erasure: Erasure, *, dry_run: bool = False, seconds: float = 0.0) -> Erased:
        """See `Store.forget`."""
        selected = forgetting.select(self.pages, erasure)
        if dry_run or not selected.keys:
            counts = forgetting.count(self.pages, selected)
            return replace(counts, others=len(forgetting.rows_with(self.pages, selected.texts)))
        tallies: Tallies = Counter()
        with self._writing:
            self._writer.execute("PRAGMA secure_delete=ON")
        others = forgetting.rows_with(self.pages, selected.texts)
        self._rewrite_is_due = True
        with self.transaction() as writer:
            writer.execute("INSERT OR REPLACE INTO states (name, body) VALUES (?, seal(?))", (UNDER_WAY, pack({})))
            erased = forgetting.erase(writer, selected, erasure, self._rules, tallies)
            forgetting.clear(writer, others)
            statements.add_tallies(writer, tallies)
        complete = self._rewrite()
        if later := forgetting.rows_with(self.pages, selected.texts):  # by a write that was under way
            with self.transaction() as writer:
                forgetting.clear(writer, later)
            complete = self._rewrite()
        complete = complete or self._truncate_within(seconds)
        if complete:
            self._rewrite_is_due = False
            self._end_erasure()
        return replace(erased, others=len(others) + len(later), complete=complete)

    def _end_erasure(self) -> None:
        """Note that no erased text is left in free space; until then retention writes the database again."""
        with self.transaction() as writer:
            writer.execute("DELETE FROM states WHERE name = ?", (UNDER_WAY,))

    def _truncate_within(self, seconds: float) -> bool:
        """Truncate the write-ahead log as soon as no reader is in the way. False if one is for too long."""
        end = monotonic() + seconds
        while monotonic() < end:
            sleep(RETRY_SECONDS)
            with self._writing:
                if self._truncate_wal():
                    return True
        return False
