"""SQL statements of feedback: what users say of answers, of which the last one on each answer counts.

Feedback may arrive before its answer. It then waits for an hour, after which it counts as feedback on an unknown one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ragwatch.core.feedback import FeedbackOutcome, joining_outcome
from ragwatch.core.tally import Tallies, Tally
from ragwatch.ports import Admission, Feedback
from ragwatch.stores.limits import EARLY_SECONDS, MAX_EARLY
from ragwatch.stores.postgres.connections import Writer
from ragwatch.stores.postgres.locks import SEQUENCES, lock
from ragwatch.stores.postgres.pruning import live
from ragwatch.stores.rows import SCORE_COLUMNS

AFTER = "SELECT seq, answered FROM feedback WHERE seq > %s ORDER BY seq LIMIT %s"
OF_SAMPLE = "SELECT score, at FROM feedback WHERE key = %s AND score IS NOT NULL"
_SCORES = SCORE_COLUMNS.replace("scores", "scores::text")
_RATED_COLUMNS = ", ".join(f"v.{name.strip()}" for name in _SCORES.split(","))
RATED = (
    f"SELECT {_RATED_COLUMNS}, f.score FROM feedback f JOIN verdicts v USING (key)"  # noqa: S608 - constants only
    f" WHERE f.answered >= %s AND f.answered < %s AND f.score IS NOT NULL AND {live('v.')} ORDER BY v.seq"
)

_WAITING = "SELECT key FROM early_feedback WHERE key = ANY(%b::text[]) ORDER BY key FOR UPDATE"  # hardly ever any
_EARLIER = "SELECT name, at, score FROM early_feedback WHERE key = ANY(%b::text[]) ORDER BY at DESC LIMIT 1"
_EARLY = (
    "SELECT e.key, e.name, e.source, e.at, e.score, s.at FROM early_feedback e JOIN samples s USING (key)"
    " WHERE e.key = ANY(%b::text[]) ORDER BY e.key"
)


def write(writer: Writer, admission: Admission, new: Sequence[str], tallies: Tallies) -> None:
    """Store the feedback of an admission, and that which waited for one of its new samples; count what became of it."""
    join_early(writer, new, tallies)
    if not admission.feedback:
        return
    lock(writer, SEQUENCES)
    received = admission.at or 0.0
    for one in admission.feedback:
        outcome = _add(writer, one, received)
        if outcome is not None:
            tallies[Tally.FEEDBACK, (one.source, outcome)] += 1


def join_early(writer: Writer, keys: Sequence[str], tallies: Tallies) -> None:
    """Join feedback that waited for samples which are stored now."""
    if not keys:
        return
    waiting = writer.execute(_WAITING, (list(keys),)).fetchall()
    early = writer.execute(_EARLY, ([key for (key,) in waiting],)).fetchall() if waiting else []
    if not early:
        return
    lock(writer, SEQUENCES)
    joined = set[str]()
    for key, name, source, at, score, answered in early:
        if name not in joined:
            joined.add(name)
            tallies[Tally.FEEDBACK, (source, _store(writer, key, answered, at=at, score=score))] += 1
    writer.execute("DELETE FROM early_feedback WHERE name = ANY(%b::text[])", (sorted(joined),))


def join_late(writer: Writer, tallies: Tallies) -> None:
    """Join feedback that was stored by one worker while another stored its sample."""
    late = writer.execute("SELECT key FROM early_feedback JOIN samples USING (key) ORDER BY key").fetchall()
    join_early(writer, [key for (key,) in late], tallies)


def _add(writer: Writer, one: Feedback, received: float) -> FeedbackOutcome | None:
    """Store one feedback. Returns what became of it; None while it waits for its answer, and no earlier one does."""
    samples = writer.execute(
        "SELECT key, at FROM samples WHERE key = ANY(%b::text[]) ORDER BY key", (list(one.keys),)
    ).fetchall()
    if samples:
        outcomes = [_store(writer, key, answered, at=one.at, score=one.score) for key, answered in samples]
        return outcomes[0]
    ((early,),) = writer.execute("SELECT COUNT(*) FROM early_feedback").fetchall()
    if early >= MAX_EARLY:
        return FeedbackOutcome.UNKNOWN_ANSWER
    earlier = writer.execute(_EARLIER, (list(one.keys),)).fetchone()
    name = one.keys[0] if earlier is None else earlier[0]
    writer.execute(
        "INSERT INTO early_feedback (key, name, source, at, score, received)"
        " SELECT DISTINCT k, %s, %s, %s::float8, %s::float8, %s::float8 FROM unnest(%b::text[]) AS k"
        " ON CONFLICT (key) DO UPDATE SET at = excluded.at, score = excluded.score"
        " WHERE excluded.at >= early_feedback.at",
        (name, one.source, one.at, one.score, received, list(one.keys)),
    )
    return None if earlier is None else joining_outcome(earlier[1:], one.at, one.score)


def _store(writer: Writer, key: str, answered: float, *, at: float, score: float) -> FeedbackOutcome:
    """Store feedback on a stored sample, unless there is a later one, or the same."""
    old = writer.execute("SELECT at, score FROM feedback WHERE key = %s", (key,)).fetchone()
    outcome = joining_outcome(old, at, score)
    if outcome in (FeedbackOutcome.JOINED, FeedbackOutcome.REPLACED):
        _replace(writer, key, answered, at=at, score=score)
    return outcome


def _replace(writer: Writer, key: str, answered: float, *, at: float, score: float | None) -> None:
    """Store feedback under a new sequence number."""
    writer.execute("DELETE FROM feedback WHERE key = %s", (key,))
    writer.execute(
        "INSERT INTO feedback (key, at, score, answered) VALUES (%s, %s, %s, %s)", (key, at, score, answered)
    )


def expire(writer: Writer, now: float, tallies: Tallies) -> int:
    """Delete feedback whose answer did not arrive, and count it. Returns how much."""
    join_late(writer, tallies)
    gone = writer.execute(
        "DELETE FROM early_feedback WHERE received < %s OR received > %s RETURNING name, source",
        (now - EARLY_SECONDS, now + EARLY_SECONDS),
    ).fetchall()
    unknown = FeedbackOutcome.UNKNOWN_ANSWER
    tallies.update(Counter((Tally.FEEDBACK, (source, unknown)) for _, source in set(gone)))
    return len(gone)


def erase(writer: Writer, keys: Sequence[str]) -> None:
    """Erase the feedback on samples; what remains refuses further feedback on them."""
    lock(writer, SEQUENCES)
    writer.execute("DELETE FROM early_feedback WHERE key = ANY(%b::text[])", (list(keys),))
    samples = writer.execute("SELECT key, at FROM samples WHERE key = ANY(%b::text[])", (list(keys),)).fetchall()
    for key, answered in samples:
        _replace(writer, key, answered, at=0.0, score=None)
