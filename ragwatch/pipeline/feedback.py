"""Figures of feedback: means of user scores by window, and how they go with the scores of each judge.

An answer counts once the default judge has settled it: its verdict has the inclusion probability. Sums are kept by
minute; those of an hour are read again when feedback or a verdict was added to it.

`FeedbackRules` reads the feedback that records carry, and names the answers that it may be about.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ragwatch.formats.feedback import FeedbackReader, as_format_error
from ragwatch.model.estimate import Addends
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import Draw
from ragwatch.ports import Feedback, ScoreRow, Store
from ragwatch.statistics.estimators import hajek
from ragwatch.statistics.feedback import (
    JudgeCorrelation,
    PairSums,
    UnreadFeedbackError,
    UserScoreRow,
    UserScores,
    correlate,
)
from ragwatch.statistics.sampling import key_of
from ragwatch.statistics.tally import Tallies, Tally


@dataclass(frozen=True, slots=True)
class FeedbackRules:
    """How feedback is read."""

    reader: FeedbackReader = field(default_factory=FeedbackReader)  # reads it from a record
    sources: tuple[str, ...] = ()  # names of all configured sources: feedback may come from another one than its answer

    def of_record(self, record: Mapping[str, object], source: str, now: float, tallies: Tallies) -> Feedback:
        """Return the feedback in a record of its own, given now if it has no time. What cannot be read is counted.

        Raises:
            FormatError: The record is not valid feedback.
        """
        try:
            one = self.reader.read(record)
        except UnreadFeedbackError as error:
            tallies[Tally.FEEDBACK, (source, error.outcome)] += 1
            raise as_format_error(error) from error
        names = dict.fromkeys((source, *self.sources) if one.source is None else (one.source,))
        keys = tuple(key_of(name, one.id) for name in names)
        return Feedback(keys, one.score, now if one.at is None else min(one.at, now), source)

    def of_draw(self, record: Mapping[str, object], draw: Draw, tallies: Tallies) -> Feedback | None:
        """Return the feedback in the record of a drawn answer; None if it has none that can be read."""
        try:
            score = self.reader.of_answer(record, draw.sample)
        except UnreadFeedbackError as error:
            tallies[Tally.FEEDBACK, (draw.source, error.outcome)] += 1
            return None
        return None if score is None else Feedback((draw.key,), score, draw.at, draw.source)


MINUTE, HOUR = 60.0, 3600.0
MINUTES = 60  # of an hour
ROWS = 5000
MAX_HOURS = 200  # read again at one digest: a long history is read in several


@dataclass(slots=True)
class _Rated:
    """Sums over the answers of one minute that have feedback."""

    scores: dict[str, Addends] = field(default_factory=dict)  # by route
    pairs: dict[tuple[str, Quantity], PairSums] = field(default_factory=dict)
    last: dict[str, float] = field(default_factory=dict)  # time of the newest answer, by route


class FeedbackWindows:
    """Adds up feedback by minute, and minutes by window, as `SlidingWindows` does with the scores of judges.

    `versions` has the version of each judge in force, the default judge first.
    """

    def __init__(
        self, spans: Mapping[str, float], versions: Mapping[str, str], confidence: float, *, store: Store
    ) -> None:
        self._spans = dict(spans)
        self._versions = dict(versions)
        self._default = next(iter(versions), "")
        self._confidence = confidence
        self._intervals = hajek.IntervalCache(confidence)
        self._store = store
        self.clear()

    def clear(self) -> None:
        """Remove all sums: they are read again."""
        self._last_seq = 0
        self._drawn: dict[int, dict[str, float]] = {}  # weight of settled draws by minute and route
        self._rated: dict[int, _Rated] = {}
        self._hours: set[int] = set()  # with feedback
        self._changed: set[int] = set()  # hours to read again
        self._pairs_changed = False
        self._correlations: tuple[JudgeCorrelation, ...] = ()

    def add(self, rows: Iterable[ScoreRow]) -> None:
        """Add new score rows: draws of the default judge are what feedback can be about."""
        for row in rows:
            self._changed.add(int(row.at // HOUR))
            if row.judge == self._default:
                weights = self._drawn.setdefault(int(row.at // MINUTE), {})
                weights[row.route] = weights.get(row.route, 0.0) + 1.0 / row.probability

    def summary(self, now: float) -> UserScores:
        """Read what is new, and return all figures."""
        self._catch_up(now)
        rows = [row for name, span in self._spans.items() for row in self._rows(name, now, span)]
        last: dict[str, float] = {}
        for minute in self._rated.values():
            for route, at in minute.last.items():
                last[route] = min(now, max(at, last.get(route, at)))
        return UserScores(tuple(rows), self._correlate(), last)

    def _catch_up(self, now: float) -> None:
        oldest = now - max(self._spans.values())
        while changes := self._store.feedback_after(self._last_seq, ROWS):
            self._last_seq = changes[-1][0]
            hours = {int(at // HOUR) for _, at in changes}
            self._hours |= hours
            self._changed |= hours
        first = int(oldest // MINUTE)
        self._drawn = {minute: weights for minute, weights in self._drawn.items() if minute >= first}
        kept = {minute: rated for minute, rated in self._rated.items() if minute >= first}
        self._pairs_changed = self._pairs_changed or len(kept) < len(self._rated)
        self._rated = kept
        self._hours = {hour for hour in self._hours if (hour + 1) * HOUR > oldest}
        due = sorted(self._changed & self._hours, reverse=True)
        for hour in due[:MAX_HOURS]:
            self._read(hour)
        self._changed = set(due[MAX_HOURS:])

    def _read(self, hour: int) -> None:
        """Sum up the rated answers of an hour again."""
        self._pairs_changed = True
        for minute in range(hour * MINUTES, (hour + 1) * MINUTES):
            self._rated.pop(minute, None)
        for row, user_score in self._store.rated(hour * HOUR, (hour + 1) * HOUR):
            sums = self._rated.setdefault(int(row.at // MINUTE), _Rated())
            if row.judge == self._default:
                one = Addends.one(user_score, row.probability)
                sums.scores[row.route] = sums.scores.get(row.route, Addends()) + one
                sums.last[row.route] = max(row.at, sums.last.get(row.route, row.at))
            if row.scores is not None and row.version == self._versions.get(row.judge):
                for quantity, score in row.scores.items():
                    if score is not None:
                        pair = PairSums.of([(score, user_score, row.probability)])
                        series = (row.judge, quantity)
                        sums.pairs[series] = sums.pairs[series] + pair if series in sums.pairs else pair

    def _rows(self, name: str, now: float, span: float) -> Iterable[UserScoreRow]:
        if not self._rated:
            return
        within = range(int((now - span) // MINUTE) + 1, int(now // MINUTE) + 1)
        parts: dict[str, list[Addends]] = {}
        for minute in within:
            if minute in self._rated:
                for route, addends in self._rated[minute].scores.items():
                    parts.setdefault(route, []).append(addends)
        drawn: dict[str, float] = {}
        for minute in within if parts else ():
            for route, weight in self._drawn.get(minute, {}).items():
                drawn[route] = drawn.get(route, 0.0) + weight
        for route, addends in sorted((route, Addends.total(sums)) for route, sums in parts.items()):
            unrated = max(0.0, drawn.get(route, 0.0) - addends.w)
            estimate = hajek.from_interval(self._intervals.of((name, route), addends), addends, unrated)
            yield UserScoreRow(route, name, estimate)

    def _correlate(self) -> tuple[JudgeCorrelation, ...]:
        """Correlations over the longest window, of all routes together."""
        if not self._pairs_changed:
            return self._correlations
        self._pairs_changed = False
        parts: dict[tuple[str, Quantity], list[PairSums]] = {}
        for _, rated in sorted(self._rated.items()):
            for series, sums in rated.pairs.items():
                parts.setdefault(series, []).append(sums)
        totals = {series: PairSums.total(sums) for series, sums in sorted(parts.items())}
        correlations = {series: correlate(sums, self._confidence) for series, sums in totals.items()}
        self._correlations = tuple(
            JudgeCorrelation(judge, quantity, correlation)
            for (judge, quantity), correlation in correlations.items()
            if correlation is not None
        )
        return self._correlations
