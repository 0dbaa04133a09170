"""Raw replies of LLM judges as they are stored: cut to a number of bytes, and packed like other texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ragwatch.statistics.verdict import Judged, Verdict
from ragwatch.stores.codec.kept_texts import Texts
from ragwatch.stores.engine import Writer
from ragwatch.stores.rows import pack

MAX_BYTES = 32 * 1024  # of the replies to all calls about one answer


BY_SEQ = "SELECT body FROM replies WHERE seq = :seq"
_ADD = (
    "INSERT INTO replies (seq, key, body) SELECT v.seq, v.key, :body FROM verdicts v"
    " JOIN SAMPLE_KEYS k ON k.key = v.key WHERE v.key = :key AND v.judge = :judge"
)


def add(writer: Writer, verdicts: Iterable[Verdict], texts: Texts) -> None:
    """Add the replies behind verdicts, within the transaction that stores these; none if no texts are kept."""
    judged = [one for one in verdicts if isinstance(one, Judged) and one.evidence.replies and texts is not Texts.NONE]
    for one in sorted(judged, key=lambda one: one.draw.key):
        body = writer.seal(pack({"replies": cut(one.evidence.replies, MAX_BYTES)}))
        writer.execute(_ADD, {"body": body, "key": one.draw.key, "judge": one.reading.judge})


def remove(writer: Writer, keys: Sequence[str]) -> None:
    """Remove the replies about answers."""
    writer.execute("DELETE FROM replies WHERE REPLIED(:keys)", {"keys": list(keys)})


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
