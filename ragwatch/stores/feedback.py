"""Feedback: what users say of answers, of which the last one on each answer counts.

Feedback may arrive before its answer. It then waits for an hour, after which it counts as feedback on an unknown one.
"""

from collections import Counter
from collections.abc import Sequence

from ragwatch.ports import Admission, Feedback, ScoreRow
from ragwatch.statistics.feedback import FeedbackOutcome, joining_outcome
from ragwatch.statistics.tally import Tallies, Tally
from ragwatch.stores.engine import LIVE, SEQUENCES, Component, Writer
from ragwatch.stores.rows import SCORE_COLUMNS, number, raises_store_error, score_row

EARLY_SECONDS = 3600.0  # feedback waits for its answer for so long
MAX_EARLY = 10_000
_AFTER = "SELECT seq, answered FROM feedback WHERE seq > :seq ORDER BY seq LIMIT :limit"
_OF_SAMPLE = "SELECT score, at FROM feedback WHERE key = :key AND score IS NOT NULL"
_RATED = (
    f"SELECT {SCORE_COLUMNS}, f.score FROM feedback f JOIN verdicts v ON v.key = f.key"  # noqa: S608 - constants only
    f" WHERE f.answered >= :since AND f.answered < :until AND f.score IS NOT NULL AND {LIVE} ORDER BY v.seq"
)
_WAITING = "SELECT key FROM early_feedback WHERE key = LIST(:keys) ORDER BY key LOCKING(FOR UPDATE)"  # hardly ever any
_EARLIER = "SELECT name, at, score FROM early_feedback WHERE key = LIST(:keys) ORDER BY at DESC LIMIT 1"
_EARLY = (
    "SELECT e.key, e.name, e.source, e.at, e.score, s.at FROM early_feedback e JOIN samples s ON s.key = e.key"
    " WHERE e.key = LIST(:keys) ORDER BY e.key"
)
_LATE = "SELECT e.key FROM early_feedback e JOIN samples s ON s.key = e.key ORDER BY e.key"
_LATEST = (
    "ON CONFLICT (key) DO UPDATE SET at = excluded.at, score = excluded.score WHERE excluded.at >= early_feedback.at"
)
_EXPIRE = "DELETE FROM early_feedback WHERE received < :before OR received > :after RETURNING name, source"


class FeedbackComponent(Component):
    """Implements `ports.FeedbackStore`."""

    def feedback_after(self, seq: int, limit: int) -> list[tuple[int, float]]:
        stored = self.engine.rows(_AFTER, {"seq": seq, "limit": limit})
        return [(int(place), float(at)) for place, at in stored]

    def feedback_of(self, key: str) -> tuple[float, float] | None:
        stored = self.engine.pages.rows(_OF_SAMPLE, {"key": key})
        return (float(stored[0][0]), float(stored[0][1])) if stored else None

    def rated(self, since: float, until: float) -> list[tuple[ScoreRow, float]]:
        stored = self.engine.rows(_RATED, {"since": since, "until": until})
        return [(score_row(row[:-1]), _rating(row[-1])) for row in stored]


_rating = raises_store_error(number)


def write(writer: Writer, admission: Admission, new: Sequence[str], tallies: Tallies) -> None:
    """Store the feedback of an admission, and that which waited for one of its new samples; count what became of it."""
    _join_early(writer, new, tallies)
    if not admission.feedback:
        return
    writer.lock(SEQUENCES)
    received = admission.at or 0.0
    for one in admission.feedback:
        outcome = _add(writer, one, received)
        if outcome is not None:
            tallies[Tally.FEEDBACK, (one.source, outcome)] += 1


def _join_early(writer: Writer, keys: Sequence[str], tallies: Tallies) -> None:
    """Join feedback that waited for samples which are stored now."""
    if not keys:
        return
    waiting = [key for (key,) in writer.rows(_WAITING, {"keys": list(keys)})]
    early = writer.rows(_EARLY, {"keys": waiting}) if waiting else []
    if not early:
        return
    writer.lock(SEQUENCES)
    joined = set[str]()
    for key, name, source, at, score, answered in early:
        if name not in joined:
            joined.add(name)
            tallies[Tally.FEEDBACK, (source, _store(writer, key, answered, at=at, score=score))] += 1
    writer.execute("DELETE FROM early_feedback WHERE name = LIST(:names)", {"names": sorted(joined)})


def _add(writer: Writer, one: Feedback, received: float) -> FeedbackOutcome | None:
    """Store one feedback. Returns what became of it; None while it waits for its answer, and no earlier one does."""
    keys = {"keys": list(one.keys)}
    samples = writer.rows("SELECT key, at FROM samples WHERE key = LIST(:keys) ORDER BY key", keys)
    if samples:
        outcomes = [_store(writer, key, answered, at=one.at, score=one.score) for key, answered in samples]
        return outcomes[0]
    ((early,),) = writer.rows("SELECT COUNT(*) FROM early_feedback")
    if early >= MAX_EARLY:
        return FeedbackOutcome.UNKNOWN_ANSWER
    earlier = next(iter(writer.rows(_EARLIER, keys)), None)
    name = one.keys[0] if earlier is None else earlier[0]
    row = {"name": name, "source": one.source, "at": one.at, "score": one.score, "received": received}
    writer.insert("early_feedback", [{"key": key, **row} for key in dict.fromkeys(one.keys)], _LATEST)
    return None if earlier is None else joining_outcome(earlier[1:], one.at, one.score)


def _store(writer: Writer, key: str, answered: float, *, at: float, score: float) -> FeedbackOutcome:
    """Store feedback on a stored sample, unless there is a later one, or the same."""
    old = next(iter(writer.rows("SELECT at, score FROM feedback WHERE key = :key", {"key": key})), None)
    outcome = joining_outcome(old, at, score)
    if outcome in (FeedbackOutcome.JOINED, FeedbackOutcome.REPLACED):
        _replace(writer, key, answered, at=at, score=score)
    return outcome


def _replace(writer: Writer, key: str, answered: float, *, at: float, score: float | None) -> None:
    """Store feedback under a new sequence number."""
    writer.execute("DELETE FROM feedback WHERE key = :key", {"key": key})
    writer.insert("feedback", [{"key": key, "at": at, "score": score, "answered": answered}])


def expire(writer: Writer, now: float) -> Tallies:
    """Delete feedback whose answer did not arrive. Returns the counts of what became of it.

    Before, what one worker has stored while another one stored its sample is joined.
    """
    tallies: Tallies = Counter()
    _join_early(writer, [key for (key,) in writer.rows(_LATE)], tallies)
    gone = writer.rows(_EXPIRE, {"before": now - EARLY_SECONDS, "after": now + EARLY_SECONDS})
    unknown = FeedbackOutcome.UNKNOWN_ANSWER
    tallies.update(Counter((Tally.FEEDBACK, (source, unknown)) for _, source in set(gone)))
    return tallies


def erase(writer: Writer, keys: Sequence[str]) -> None:
    """Erase the feedback on samples; what remains refuses further feedback on them."""
    writer.lock(SEQUENCES)
    writer.execute("DELETE FROM early_feedback WHERE key = LIST(:keys)", {"keys": list(keys)})
    for key, answered in writer.rows("SELECT key, at FROM samples WHERE key = LIST(:keys)", {"keys": list(keys)}):
        _replace(writer, key, answered, at=0.0, score=None)
