"""Drops the texts of settled answers, as `store.texts` says, and keeps the index of searches as the texts are.

The row of a sample remains, with a zero byte as its body: its key, a hash, is needed to recognise an answer that is
delivered again. Scores, offsets and counts remain.
"""

from collections.abc import Sequence

from ragwatch.errors import StoreError
from ragwatch.statistics.causes import traits
from ragwatch.statistics.verdict import Verdict
from ragwatch.stores.engine import Component, Writer
from ragwatch.stores.kept_texts import Rules, Texts, without_texts
from ragwatch.stores.search_index import FAILS, SearchIndex, entries_of, stored_entries, stored_terms
from ragwatch.stores.texts import pack, unpack

MAX_ROWS_PER_STEP = 200
MAX_SAMPLES_PER_STEP = 500
Place = tuple[float, int]
"""Time and sequence number of a verdict."""
NEWEST: Place = (float("inf"), 0)
_PENDING_TEXT = "EXISTS (SELECT 1 FROM work w WHERE w.key = s.key)"
_FAILING_TEXT = f"EXISTS (SELECT 1 FROM verdicts v WHERE v.key = s.key AND {FAILS})"  # noqa: S608 - constants
_BEHIND = (
    f"SELECT v.at, v.seq, v.key, HAS_WORDS, {FAILS} FROM verdicts v LEFT JOIN answer_index a ON a.key = v.key"  # noqa: S608 - constants
    " WHERE (v.at, v.seq) < (CAST(:at AS double precision), CAST(:seq AS bigint))"
    " ORDER BY v.at DESC, v.seq DESC LIMIT :limit"
)


class Dropping(Component):
    """Drops texts, and indexes those that are kept."""

    index: SearchIndex

    def texts_settled(self, writer: Writer, settled: Sequence[Verdict]) -> None:
        """Drop the texts of those settled answers that no judge has to read any more, and index what is kept.

        An answer fails if any judge names a stage at fault. The caller holds the lock of sequences: of two workers that
        settle the last two verdicts on an answer, the later one sees both.
        """
        keys = sorted({verdict.draw.key for verdict in settled})
        if keys and self.rules.texts is not Texts.ALL:
            self._drop(writer, "s.key = LIST(:keys)", "ORDER BY s.key", {"keys": keys})
        self.index.add(writer, entries_of(settled, self.rules))

    def drop_earlier(self, writer: Writer) -> int:
        """Drop texts that were stored under another `store.texts`, of some answers. Returns the number."""
        return self._drop(writer, "s.body <> DROPPED", "LIMIT :limit", {"limit": MAX_SAMPLES_PER_STEP})

    def _drop(self, writer: Writer, where: str, order: str, values: dict[str, object]) -> int:
        failing = f" AND NOT {_FAILING_TEXT}" if self.rules.texts is Texts.FAILING else ""
        sql = f"SELECT s.key FROM samples s WHERE {where} AND NOT {_PENDING_TEXT}{failing} {order}"  # noqa: S608 - constants
        dropped = sorted(key for (key,) in writer.rows(sql, values))
        erase_texts(writer, dropped, self.rules, self.index)
        self.note_dropped(len(dropped))
        return len(dropped)

    def note_dropped(self, number: int) -> None:
        """Note, within the transaction, that texts of so many answers or parts were deleted."""

    def index_behind(self, place: Place) -> Place | None:
        """Index those answers of a page of verdicts that are not indexed. Returns the next place; None at the end.

        They were judged by earlier versions, or under other settings, and are added after the start, the newest first.
        """
        after: Place | None = None
        keys = dict[str, None]()
        page = self.engine.rows(_BEHIND, {"at": place[0], "seq": place[1], "limit": MAX_ROWS_PER_STEP})
        for at, seq, key, words, failing in page:
            after = (at, seq)
            if words is None or (not words and self.rules.keeps_words(fails=bool(failing))):
                keys[key] = None
        if keys:
            with self.engine.transaction() as writer:
                self.index.add(writer, stored_entries(writer, list(keys), self.rules))
        return after


def erase_texts(writer: Writer, keys: Sequence[str], rules: Rules, index: SearchIndex, *, ids: bool = True) -> None:
    """Delete the texts of answers and of their verdicts, within a transaction; scores, offsets and counts remain.

    Without `ids`, those of the answers, their contexts and their traces are deleted too.
    """
    if not keys:
        return
    given = {"keys": list(keys)}
    if ids:
        index.remove_words(writer, keys)
    else:
        index.remove(writer, keys)
    writer.execute("UPDATE samples SET body = DROPPED WHERE key = LIST(:keys)", given)
    if ids:
        _reduce_traits(writer, keys, rules, index)
    else:
        writer.execute("DELETE FROM traits WHERE key = LIST(:keys)", given)
    writer.execute("DELETE FROM replies WHERE REPLIED(:keys)", given)
    lines = writer.rows("SELECT seq, key, line FROM verdicts WHERE key = LIST(:keys) ORDER BY seq", given)
    kept = [{"line": writer.seal(_kept(line, None if ids else key)), "seq": seq} for seq, key, line in lines]
    writer.executemany("UPDATE verdicts SET line = :line WHERE seq = :seq", kept)
    if not ids:
        writer.execute("UPDATE verdicts SET trace_id = NULL WHERE key = LIST(:keys)", given)


def _kept(line: bytes, identity: str | None) -> bytes:
    try:
        return pack(without_texts(unpack(line), identity))
    except StoreError:  # a damaged text is deleted as well; the figures are in the columns
        return b""


def _reduce_traits(writer: Writer, keys: Sequence[str], rules: Rules, index: SearchIndex) -> None:
    """Delete the texts in the traits of answers and in the index of searches."""
    sql = "SELECT key, body FROM traits WHERE key = LIST(:keys) ORDER BY key"
    before: dict[str, bytes] = dict(writer.rows(sql, {"keys": list(keys)}))
    kept = {key: smaller for key, body in before.items() if (smaller := _reduced(body)) is not None}
    rows = [{"body": writer.seal(body), "key": key} for key, body in kept.items()]
    writer.executemany("UPDATE traits SET body = :body WHERE key = :key", rows)
    index.set_terms(writer, {key: stored_terms(body, None, rules) for key, body in (before | kept).items()})


def _reduced(body: bytes) -> bytes | None:
    """Stored traits without texts; None if they contain none. Damaged traits become empty."""
    try:
        stored = unpack(body)
        kept = traits.without_texts(stored)
    except (StoreError, LookupError, TypeError, AttributeError):
        return b""
    return None if kept == stored else pack(kept)
