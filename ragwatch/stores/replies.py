"""Raw replies of LLM judges as they are stored: cut to a number of bytes, and packed like other texts."""

from __future__ import annotations

from collections.abc import Iterable

from ragwatch.core.verdict import Judged, Verdict
from ragwatch.errors import StoreError
from ragwatch.stores.kept_texts import Texts
from ragwatch.stores.rows import pack, unpack

MAX_BYTES = 32 * 1024  # of the replies to all calls about one answer


def replies_to_store(verdicts: Iterable[Verdict], texts: Texts) -> list[tuple[str, str, bytes]]:
    """Return key, judge and packed replies of the verdicts that have some; none if no texts are kept."""
    if texts is Texts.NONE:
        return []
    judged = [one for one in verdicts if isinstance(one, Judged) and one.evidence.replies]
    return [(one.draw.key, one.reading.judge, _packed(one.evidence.replies)) for one in judged]


def _packed(replies: Iterable[str]) -> bytes:
    return pack({"replies": cut(replies, MAX_BYTES)})


def cut(replies: Iterable[str], max_bytes: int) -> list[str]:
    """Return the replies up to a number of bytes, and say at the end that and how much was left out.

    >>> cut(["first", "second"], 7)
    ['first', 'se [4 bytes more]']
    """
    kept, left = list[str](), max_bytes
    for text in replies:
        data = text.encode("utf-8", "replace")
        if len(data) > left:
            kept.append(f"{data[:left].decode('utf-8', 'ignore')} [{len(data) - left} bytes more]")
            break
        kept.append(text)
        left -= len(data)
    return kept


def stored_replies(rows: Iterable[tuple[bytes]]) -> tuple[str, ...]:
    """Decode the packed replies of at most one row; none if they are damaged."""
    try:
        return tuple(str(text) for (body,) in rows for text in unpack(body)["replies"])
    except (StoreError, LookupError, TypeError):
        return ()
