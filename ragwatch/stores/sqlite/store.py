"""SQLite store: one file, one writer, a write-ahead log. Each public method is one transaction, safe across crashes."""

import math
import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from ragwatch.errors import StoreError
from ragwatch.model.sample import Draw
from ragwatch.model.units import size_bytes
from ragwatch.ports import FollowUp, Retention
from ragwatch.statistics.tally import Tallies
from ragwatch.statistics.verdict import Verdict
from ragwatch.stores.dropping import NEWEST, Place
from ragwatch.stores.encryption import EncryptionOptions, TextCipher
from ragwatch.stores.engine import DAY, REMEMBER, Writer
from ragwatch.stores.kept_texts import TEXT_SEARCH, Rules, Texts, rules_of
from ragwatch.stores.sqlite.sqlite_engine import ReadConnection, SqliteEngine
from ragwatch.stores.sqlite.sqlite_search import HAS_WORDS, STATE, SqliteIndex, SqliteQueries, indexable
from ragwatch.stores.store_base import StoreBase
from ragwatch.stores.texts import pack

MAX_REWRITTEN_BYTES = 256 << 20  # above this size, the database is rewritten once a day, and not at the end
UNDER_WAY = "erasure under way"  # a saved state, from the erasure of a person until the database is written again
DELETE_SECURELY = "PRAGMA secure_delete=ON"  # overwrites what is deleted from now on
_LEASABLE = (
    "SELECT w.key, s.source, s.route, s.at, s.body, w.probability FROM work w JOIN samples s ON s.key = w.key"
    " WHERE w.judge = :judge AND w.batch IS NULL AND w.since < :since AND NOT w.key = LIST(:leased)"
    " ORDER BY w.seq LIMIT :limit"
)


class Options(BaseModel):
    """Configuration of the SQLite store. The texts are those of samples and verdicts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    min_free: Annotated[int, BeforeValidator(size_bytes)] = Field(
        256 << 20, ge=0, description="Free bytes on the disk below which nothing more is read from the sources."
    )
    texts: Texts = Field(Texts.ALL, description="Texts of which answers are kept after judging; scores always are.")
    text_search: bool = Field(default=True, description=TEXT_SEARCH)
    encryption: EncryptionOptions | None = Field(None, description="Keys that encrypt stored texts.")

    def cipher(self) -> TextCipher | None:
        """Read the keys, as `EncryptionOptions.cipher`; None without encryption."""
        return None if self.encryption is None else self.encryption.cipher()


class SqliteReader(StoreBase):
    """Reads a database beside the process that writes it. Methods that write are not supported."""

    def __init__(self, connection: ReadConnection) -> None:
        self.engine = connection
        self.rules, self.queries = Rules(Texts.ALL, connection.cipher), SqliteQueries


class SqliteStore(StoreBase):
    """Implements `ports.Store` in one SQLite database, in a directory that belongs to this process alone."""

    engine: SqliteEngine

    def __init__(
        self,
        state: Path,
        *,
        min_free: int = 0,
        texts: Texts = Texts.ALL,
        cipher: TextCipher | None = None,
        text_search: bool = True,
    ) -> None:
        self.engine = SqliteEngine(state, min_free=min_free, cipher=cipher)
        self.index, self.queries = SqliteIndex(), SqliteQueries
        with self.engine.transaction() as writer:
            if texts is not Texts.ALL:
                writer.execute(DELETE_SECURELY)
            self.rules = indexable(writer, rules_of(texts, cipher, text_search=text_search))
        erasing = self.engine.rows("SELECT 1 FROM states WHERE name = :name", {"name": UNDER_WAY})
        self._dropped = False  # since the database was last rewritten by this process
        self._rewrite_is_due = texts is not Texts.ALL or bool(erasing)  # a process that was killed may have left some
        self._rewritten_at = 0.0
        self._has_earlier_texts = texts is not Texts.ALL
        self._leasing = threading.Lock()
        self._leases: dict[tuple[str, str], float] = {}  # in memory, because one process owns the state directory
        self._leased_at = -math.inf
        with suppress(StoreError), self.engine.transaction() as writer:  # on a full disk they expire by themselves
            writer.execute("DELETE FROM claims")  # every other holder has ended

    def lease(self, judge: str, limit: int, *, now: float, seconds: float, before: float | None = None) -> list[Draw]:
        since = math.inf if before is None else before
        with self._leasing:
            # If the clock is set back, leases are moved with it; otherwise they would last that much longer.
            shift, self._leased_at = max(0.0, self._leased_at - now), now
            self._leases = {lease: until - shift for lease, until in self._leases.items() if until - shift > now}
            leased = [key for name, key in self._leases if name == judge]
            values = {"judge": judge, "since": since, "leased": leased, "limit": limit}
            with closing(self.engine.walk(_LEASABLE, values)) as rows:
                draws = self.leased(rows)
            self._leases.update({(judge, draw.key): now + seconds for draw in draws})
            return draws

    def postpone(self, judge: str, keys: Collection[str], until: float) -> None:
        """See `Store.postpone`. Not durable: after a restart the draws are pending at once."""
        with self._leasing:
            self._leases.update({(judge, key): until for key in keys})

    def _release(self, leases: Collection[tuple[str, str]]) -> None:
        with self._leasing:
            for lease in leases:
                self._leases.pop(lease, None)

    def settle(
        self, verdicts: Sequence[Verdict], follow_ups: Sequence[FollowUp] = (), tallies: Tallies | None = None
    ) -> int:
        new = super().settle(verdicts, follow_ups, tallies)
        self._release([(verdict.reading.judge, verdict.draw.key) for verdict in verdicts])
        return new

    def prepare_batch(self, judge: str, draws: Mapping[str, int], seed: str, *, now: float) -> int:
        batch = super().prepare_batch(judge, draws, seed, now=now)
        self._release([(judge, key) for key in draws])
        return batch

    def note_dropped(self, number: int) -> None:
        """See `Dropping.note_dropped`. The texts remain in free space until the database is rewritten."""
        self._dropped = self._dropped or (number > 0 and self.rules.texts is not Texts.ALL)

    def excess(self, limit: int, estimate: int | None = None) -> int:  # noqa: ARG002 - the pages in use are known
        return self.engine.size() - limit

    def pruning_begins(self, retention: Retention, now: float) -> int:  # noqa: ARG002 - of the other engine
        with suppress(StoreError):  # truncating the write-ahead log may free the space that deleting needs
            self.engine.checkpoint()
        return 0

    def pruning_ends(self, now: float) -> None:
        while self._has_earlier_texts:  # what was stored under another `store.texts`, once after each start
            with self.engine.transaction() as writer:
                number = self.drop_earlier(writer)
            self._has_earlier_texts = number > 0
        complete = {"texts": str(self.rules.texts), "words": self.rules.words_off is None}
        if self.recall(STATE) != complete:  # answers that were judged by earlier versions or under other settings
            place: Place | None = NEWEST
            while place is not None:
                place = self.index_behind(place)
            self.remember(STATE, complete)
        self.engine.shrink()
        self._rewrite_if_dropped(now)

    def _rewrite_if_dropped(self, now: float) -> None:
        """Delete what is left of dropped texts in free space. A large database is written again once a day at most."""
        if (self._dropped or self._rewrite_is_due) and (
            self.engine.size() <= MAX_REWRITTEN_BYTES or abs(now - self._rewritten_at) >= DAY
        ):
            self._dropped = self._rewrite_is_due = not self.rewritten()
            self._rewritten_at = now
            if not self._dropped:
                self._end_erasure()

    def rewritten(self) -> bool:
        """See `Forgetting.rewritten`. False while a reader holds the write-ahead log."""
        with self.engine.transaction() as writer:
            if writer.rows(HAS_WORDS):  # write the index of words again, without what was deleted from it
                writer.execute("INSERT INTO words (words) VALUES ('optimize')")
        return self.engine.rewrite()

    def erasure_begins(self, writer: Writer) -> None:
        """See `Forgetting.erasure_begins`. Until it has ended, retention writes the database again."""
        self._rewrite_is_due = True
        writer.execute(DELETE_SECURELY)
        writer.execute(REMEMBER, {"name": UNDER_WAY, "body": writer.seal(pack({}))})

    def erasure_ended(self, *, complete: bool, seconds: float) -> bool:
        complete = complete or self.engine.truncated_within(seconds)
        if complete:
            self._rewrite_is_due = False
            self._end_erasure()
        return complete

    def _end_erasure(self) -> None:
        with self.engine.transaction() as writer:
            writer.execute("DELETE FROM states WHERE name = :name", {"name": UNDER_WAY})

    def close(self) -> None:
        """Close the database and unlock the state directory. No dropped text is left behind in a small database."""
        with suppress(StoreError):  # a full disk; the next retention tries again if texts are dropped by then
            if self._dropped and self.engine.size() <= MAX_REWRITTEN_BYTES:
                self.rewritten()
        self.engine.close()


def build(options: Options, state: Path) -> SqliteStore:
    """Open and lock the store."""
    cipher, search = options.cipher(), options.text_search
    return SqliteStore(
        state, min_free=options.min_free, texts=options.texts, cipher=cipher, text_search=search
    ).require_complete()
