"""SQL statements of raw replies of LLM judges. They go with the key of their sample."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ragwatch.core.verdict import Verdict
from ragwatch.stores.answer_terms import Rules
from ragwatch.stores.postgres.connections import Writer
from ragwatch.stores.replies import replies_to_store

BY_SEQ = "SELECT body FROM replies WHERE seq = %s"
_INSERT = (
    "INSERT INTO replies (seq, key, body) SELECT v.seq, v.key, %s FROM verdicts v JOIN sample_keys k ON k.key = v.key"
    " WHERE v.key = %s AND v.judge = %s"
)


def add(writer: Writer, verdicts: Iterable[Verdict], rules: Rules, seal: Callable[[bytes], bytes]) -> None:
    """Add the replies behind verdicts, within the transaction that stores these."""
    stored = replies_to_store(verdicts, rules.texts)
    if stored:
        writer.executemany(_INSERT, [(seal(body), key, judge) for key, judge, body in sorted(stored)])


def remove(writer: Writer, keys: Sequence[str]) -> None:
    """Remove the replies about answers."""
    writer.execute("DELETE FROM replies WHERE key = ANY(%s::text[])", (list(keys),))
