"""Tallies: stored counters, which are written in the same transaction as what they count.

A tally is addressed by its name and label values. A histogram is a set of tallies: one per bucket (not cumulative; the
exporter accumulates) and one for the sum.

Invariants, checked after every digest to detect faults of the monitor itself: seen >= drawn, and for each judge:
assigned = judged + unjudged + pending, exactly.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from operator import attrgetter
from types import MappingProxyType

from ragwatch.model.enumerations import Labelled
from ragwatch.model.estimate import Addends
from ragwatch.model.sample import SkipReason
from ragwatch.model.signals import RATIO_BUCKETS, Signal
from ragwatch.statistics.scores import why_unknown
from ragwatch.statistics.verdict import Judged, Unjudged, Verdict

_CELL = ("quantity", "route", "judge")
_SEGMENT = ("segment", "value", "route", "judge")


class PartOutcome(StrEnum):
    """What became of a part of a request that was logged in several records. The values are label values."""

    JOINED = "joined"
    ORPHANED = "orphaned"
    LATE = "late"
    PIECE = "piece"  # one of several texts of a kind, of which a joined record holds one: an answer in pieces
    REPEATED = "repeated"
    DROPPED = "dropped"


class Tally(Labelled):
    """Names of the counters, with their labels in order. The last label of a histogram is the bucket, or `sum`."""

    SEEN = "seen", "source"
    REJECTED = "rejected", "source", "reason"
    SKIPPED = "skipped", "source", "reason"  # lines of a mixed log that are no records of answers; not in SEEN
    PARTS = "parts", "source", "outcome"  # parts of requests that were logged in several records
    REPAIRED = "repaired", "source"
    SUSPECT = "suspect", "source", "reason"  # drawn samples that were probably read wrongly
    FIELDS_LOST = "fields_lost", "source", "field", "reason"  # optional fields of records that could not be read
    RESENT = "resent", "source"  # records that were received before, which do not count as seen
    LOST = "lost", "source", "reason"  # records that a stream lost before they were stored; nobody has seen them
    RESETS = "resets", "source", "reason"
    SPANS = "spans", "source"  # spans of traces that were received
    SPANS_LEFT_OUT = "spans_left_out", "source", "reason"  # of these, spans that are a part of no record
    SPAN_TIMES = "span_times", "source", "problem"  # spans whose times are in another unit, or no times
    TRACES = "traces", "source", "outcome"  # requests in traces
    SILENT = "silent", "source", "instrumentation"  # requests whose spans hold no texts
    FEEDBACK = "feedback", "source", "outcome"  # what users said of answers
    OF_CANARIES = "of_canaries", "source"  # records of answers to canaries, which do not count as traffic
    INVALID_MARKS = "invalid_marks", "source"  # records whose mark of a canary is not ours; they count as traffic
    DRAWN = "drawn", "route"
    ASSIGNED = "assigned", "judge"  # draws that it has to read
    JUDGED = "judged", "route", "judge"
    UNJUDGED = "unjudged", "route", "judge", "reason"
    UNKNOWN = "unknown", *_CELL, "reason"
    STAGE = "stage", "route", "judge", "stage"
    FAULT = "fault", "route", "judge", "fault"
    REJUDGED = "rejudged", "judge"  # verdicts on stored answers that it was not assigned; not in JUDGED
    REPEATED = "repeated", "judge", "version", "quantity"  # answers that were read twice
    REPEATED_ALIKE = "repeated_alike", "judge", "version", "quantity"  # of these, with the same score
    KNOWN_BAD = "known_bad", "judge", "version"  # known-bad answers that were read
    FOOLED = "fooled", "judge", "version"  # known-bad answers that were accepted
    PADDED = "padded", "judge", "version"  # known-bad answers that were read as they are and padded
    PADDING_PREFERRED = "padding_preferred", "judge", "version"  # of these, with a higher score when padded
    REDACTED = "redacted", "secret"
    EMPTY_RETRIEVALS = "empty_retrievals", "route"
    ABSTENTIONS = "abstentions", "route"
    EMPTY_ANSWERS = "empty_answers", "route"
    OTHER_LANGUAGE = "other_language", "route"
    REPEATED_ANSWERS = "repeated_answers", "route"
    DUPLICATE_CONTEXTS = "duplicate_contexts", "route"
    UNCITED_ANSWERS = "uncited_answers", "route"
    DANGLING_CITATIONS = "dangling_citations", "route"
    DOCUMENT_AGE = "document_age", "route", "bucket"
    RANKED = "ranked", "route"  # answers with relevance judgements whose contexts were ranked
    UNRANKED = "unranked", "route", "reason"  # answers with relevance judgements without a ranking
    RANKING_SCORE = "ranking_score", "route", "metric", "k"  # sum over the ranked ones; k is empty for mrr
    N = "n", *_CELL  # the addends of an estimate
    W = "w", *_CELL
    WX = "wx", *_CELL
    W2 = "w2", *_CELL
    W2X = "w2x", *_CELL
    W2X2 = "w2x2", *_CELL
    SEGMENT_W = "segment_w", "quantity", *_SEGMENT  # the addends of an estimate of a segment
    SEGMENT_WX = "segment_wx", "quantity", *_SEGMENT
    SEGMENT_W2 = "segment_w2", "quantity", *_SEGMENT
    SEGMENT_W2X = "segment_w2x", "quantity", *_SEGMENT
    SEGMENT_W2X2 = "segment_w2x2", "quantity", *_SEGMENT
    SEGMENT_JUDGED = "segment_judged", *_SEGMENT
    SEGMENT_UNJUDGED = "segment_unjudged", *_SEGMENT
    SEGMENT_LEFT_OUT = "segment_left_out", "segment", "route", "judge"  # answers whose metadata do not have the key
    SCORE = "score", *_CELL, "bucket"
    CONTEXTS = "contexts", "route", "bucket"
    TOP_SCORE = "top_score", "route", "bucket"
    ANSWER_CHARS = "answer_chars", "route", "bucket"
    QUESTION_STRANGENESS = "question_strangeness", "route", "bucket"
    CANARY_RUNS = "canary_runs", "suite"
    CANARY_FAILURES = "canary_failures", "suite", "reason"
    CANARY_SECONDS = "canary_seconds", "suite", "bucket"  # duration of one canary query
    UNKNOWN_COUNTERS = "unknown_counters", "counter"  # stored counters of another version; counted when read
    DRIFT_ALARMS = "drift_alarms", "quantity", "route"


TallyKey = tuple[Tally, tuple[str, ...]]
Tallies = Counter[TallyKey]  # sums of weights are tallies too, so values are float

SUM = "sum"
INF = "+Inf"
BUCKETS: Mapping[Tally, tuple[float, ...]] = MappingProxyType(
    {Tally(signal.row.counter): signal.row.bounds for signal in Signal if signal.row.bounds is not None}
    | {
        Tally.SCORE: RATIO_BUCKETS,
        Tally.CANARY_SECONDS: (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
    }
)


def lines_read(tallies: Mapping[TallyKey, float], source: str) -> float:
    """Return the number of lines read from a source: records, rejected ones, and lines that are no records."""
    skipped = (tallies.get((Tally.SKIPPED, (source, reason)), 0) for reason in SkipReason)
    return tallies.get((Tally.SEEN, (source,)), 0) + sum(skipped)


def bucket_label(histogram: Tally, value: float) -> str:
    """Return the label of the bucket of `value`: its upper bound, or `+Inf`."""
    bounds = BUCKETS[histogram]
    index = bisect_left(bounds, value)
    return bound_label(bounds[index]) if index < len(bounds) else INF


def bound_label(bound: float) -> str:
    """Return a bucket bound in the text exposition format."""
    return repr(float(bound))


def observe(tallies: Tallies, histogram: Tally, labels: tuple[str, ...], value: float) -> None:
    """Add one observation to a histogram."""
    tallies[histogram, (*labels, bucket_label(histogram, value))] += 1
    tallies[histogram, (*labels, SUM)] += value  # type: ignore[assignment]  # Counter adds floats as well as ints


def verdict_tallies(verdict: Verdict) -> Tallies:
    """Return the counts that one verdict adds."""
    tallies: Tallies = Counter()
    route, judge = verdict.draw.route, verdict.reading.judge
    outcome = Tally.SEGMENT_UNJUDGED if isinstance(verdict, Unjudged) else Tally.SEGMENT_JUDGED
    for key, value in verdict.draw.segments:
        if value is None:
            tallies[Tally.SEGMENT_LEFT_OUT, (key, route, judge)] += 1
        else:
            tallies[outcome, (key, value, route, judge)] += 1
    if isinstance(verdict, Unjudged):
        tallies[Tally.UNJUDGED, (route, judge, verdict.reason)] += 1
        return tallies
    tallies[Tally.JUDGED, (route, judge)] += 1
    if verdict.stage is not None:
        tallies[Tally.STAGE, (route, judge, verdict.stage)] += 1
    if verdict.fault is not None:
        tallies[Tally.FAULT, (route, judge, verdict.fault)] += 1
    _count_scores(tallies, verdict, route, judge)
    return tallies


_OF_ROUTE = (Tally.N, Tally.W, Tally.WX, Tally.W2, Tally.W2X, Tally.W2X2)
_OF_SEGMENT = (Tally.SEGMENT_W, Tally.SEGMENT_WX, Tally.SEGMENT_W2, Tally.SEGMENT_W2X, Tally.SEGMENT_W2X2)
_SUMS = attrgetter(*_OF_ROUTE)  # named as the fields of `Addends`


def _count_scores(tallies: Tallies, verdict: Judged, route: str, judge: str) -> None:
    for quantity, score in verdict.scores.items():
        labels = (str(quantity), route, judge)
        if score is None:
            tallies[Tally.UNKNOWN, (*labels, str(why_unknown(verdict.evidence, quantity)))] += 1
            continue
        sums = _SUMS(Addends.one(score, verdict.draw.probability))
        for tally, value in zip(_OF_ROUTE, sums, strict=True):
            tallies[tally, labels] += value
        for key, name in verdict.draw.segments:
            for tally, value in zip(_OF_SEGMENT, sums[1:], strict=True) if name is not None else ():
                tallies[tally, (str(quantity), key, str(name), route, judge)] += value
        observe(tallies, Tally.SCORE, labels, score)


assert all(low < high for bounds in BUCKETS.values() for low, high in pairwise(bounds))  # noqa: S101 - checks a constant


SPELL_SECONDS = 3600.0
"""A spell ends so long after its last rejection."""
_MAX_CHARS = 120  # of a label value


@dataclass(slots=True)
class _Spell:
    field: str
    place: str
    last: float


class Rejections:
    """The first rejected record of each spell, by source and reason."""

    def __init__(self) -> None:
        self._spells: dict[tuple[str, str], _Spell] = {}

    def add(self, source: str, reason: str, field: str, place: str, now: float) -> None:
        """Count a rejected record: path of what is invalid, file and line, and `now` in seconds that do not go back."""
        spell = self._spells.get((source, reason))
        if spell is None or now - spell.last >= SPELL_SECONDS:
            self._spells[source, reason] = _Spell(_short(field), _short(place), now)
        else:
            spell.last = now

    def first(self, now: float) -> Iterator[tuple[str, str, str, str]]:
        """Source, reason, field and place of the first record of each spell that lasts."""
        for key, spell in tuple(self._spells.items()):
            if now - spell.last < SPELL_SECONDS:
                yield *key, spell.field, spell.place


def _short(text: str) -> str:
    printable = "".join(char if char.isprintable() else "?" for char in text)
    return printable if len(printable) <= _MAX_CHARS else f"...{printable[-_MAX_CHARS:]}"


class Invariant(StrEnum):
    """Invariant of the counters. The values are label values of a series."""

    DRAWN_WERE_SEEN = "drawn_were_seen"
    ASSIGNED_ARE_SETTLED_OR_PENDING = "assigned_are_settled_or_pending"


def violations(tallies: Tallies, pending: Mapping[str, int]) -> dict[Invariant, str]:
    """Returns the violated invariants, with the figures; `pending` are unsettled draws by judge, read with them."""
    violated: dict[Invariant, str] = {}
    seen, drawn = _total(tallies, Tally.SEEN), _total(tallies, Tally.DRAWN)
    if drawn > seen:
        violated[Invariant.DRAWN_WERE_SEEN] = f"{drawn} drawn of {seen} seen"
    for judge in sorted({labels[0] for tally, labels in tallies if tally is Tally.ASSIGNED} | set(pending)):
        assigned = int(tallies[Tally.ASSIGNED, (judge,)])
        judged, unjudged = (_total(tallies, tally, judge) for tally in (Tally.JUDGED, Tally.UNJUDGED))
        waiting = pending.get(judge, 0)
        if assigned != judged + unjudged + waiting:
            figures = f"{assigned} assigned, {judged} judged + {unjudged} unjudged + {waiting} pending"
            violated[Invariant.ASSIGNED_ARE_SETTLED_OR_PENDING] = f"judge {judge}: {figures}"
    return violated


def _total(tallies: Tallies, tally: Tally, judge: str | None = None) -> int:
    """Sum of a tally over all label values, or over those of one judge (the second label)."""
    return int(
        sum(count for (name, labels), count in tallies.items() if name is tally and judge in (None, *labels[1:2]))
    )
