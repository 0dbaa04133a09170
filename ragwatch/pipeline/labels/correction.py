"""Label correction: corrects the estimates of the judges with labels by people, at each digest.

The corrected estimate of a window is PPI++ over its answers, to the hour; windows of a few hours, and those with too
few labels, have none. The time for which labels are fresh is a window, too, usually the only one with enough labels.
Every other window has a level (`levels`): from what is known of the judge's error without labels, and from all fresh
labels of the route.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice

from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.labels.levels import Levels
from ragwatch.pipeline.labels.verdicts import (
    DAY,
    HOUR,
    AnswerLabel,
    AnswerVerdicts,
    LabelRules,
    LabelSums,
    Row,
    annotators_of,
    answer_label,
    answer_verdicts,
    hours,
    labelled,
    less,
    pairs_of,
)
from ragwatch.ports import Store
from ragwatch.statistics.estimators.corrected import (
    CorrectedEstimate,
    WithoutAnnotator,
    correct,
    judge_interval,
    shares_of,
    widened,
)
from ragwatch.statistics.estimators.ppi import PpiSums
from ragwatch.statistics.labels.calibration import traffic_agreement
from ragwatch.statistics.labels.label import Label
from ragwatch.statistics.snapshot import EstimateRow, Gauge, Gauges

ROWS = 5000
MAX_READS = 4  # of ROWS at a digest: a long history is read in several digests
MIN_WINDOW_SECONDS = 6 * HOUR  # rounding to the hour would change a shorter window too much
MAX_ANNOTATORS = 20  # left out one by one: those with most labels


class LabelCorrection:
    """Compares labels with the judges in force, and corrects their estimates in windows (length in seconds by name)."""

    def __init__(self, rules: LabelRules, spans: Mapping[str, float], *, store: Store) -> None:
        self._rules = rules
        self._spans = {name: span for name, span in spans.items() if MIN_WINDOW_SECONDS <= span <= rules.fresh}
        if rules.fresh not in self._spans.values():
            self._spans[span_name(rules.fresh)] = rules.fresh
        self._store = store
        self._sums = LabelSums(rules, self._verdicts)
        self._levels = Levels(rules, store, spans)
        self._last_seq = 0
        self._last_time = 0.0
        self._cache: dict[str, AnswerVerdicts | None] = {}
        self._inputs: object = None
        self._rows: tuple[EstimateRow, ...] = ()
        self._by_reference: tuple[EstimateRow, ...] = ()
        self._gauges: dict[tuple[Gauge, tuple[str, ...]], float] = {}

    def correct(self, now: float, estimates: Sequence[EstimateRow]) -> tuple[tuple[EstimateRow, ...], Gauges]:
        """Corrected estimates, and gauges of labels and of agreement with the judges.

        A reference judge corrects without labels, too; everything else is empty without them.
        """
        labels = [
            label for label in self._store.labels(now - self._rules.fresh) if label.scores and self._rules.counts(label)
        ]
        if not labels and not self._rules.reference:
            return tuple(self._levels.rows((), estimates, now, {})), {}
        answers = self._labelled_answers(labels)
        complete = self._catch_up(now)
        inputs = (labels, answers, self._last_seq, int(now // HOUR))
        if inputs != self._inputs:
            self._gauges = dict(self._agreement(answers))
            times = (label.at for label in labels if label.at <= now)  # the clock of a person may be ahead
            if labels:
                self._gauges[Gauge.LAST_LABEL, ()] = max(times, default=now)
            self._rows = tuple(self._corrected(answers, now)) if complete else ()
            self._by_reference = tuple(self._in_terms_of_reference(now)) if complete and self._rules.reference else ()
            self._inputs = inputs if complete else None
        rows = {row.place: row for row in self._rows}
        return (*self._levels.rows(answers, estimates, now, rows), *self._by_reference), self._gauges

    def _verdicts(self, key: str) -> AnswerVerdicts | None:
        """Verdicts on an answer that is part of the sums: later than what retention has deleted a part of."""
        verdicts = answer_verdicts(self._store, self._rules.judges, key, texts=False)
        return verdicts if verdicts is not None and verdicts.at > self._store.pruned_until() else None

    def _labelled_answers(self, labels: Sequence[Label]) -> list[AnswerLabel]:
        """Labels on each answer that a judge in force has judged."""
        by_key: dict[str, list[Label]] = {}
        for label in labels:
            by_key.setdefault(label.key, []).append(label)
        cached = self._cache
        self._cache = {key: cached[key] if key in cached else self._without_texts(key) for key in by_key}
        since = self._store.pruned_until()
        return [
            answer_label(verdicts, by_key[key])
            for key, verdicts in self._cache.items()
            if verdicts is not None and verdicts.at > since
        ]

    def _without_texts(self, key: str) -> AnswerVerdicts | None:
        verdicts = self._verdicts(key)
        return None if verdicts is None else replace(verdicts, records={}, sample=None)  # texts are not kept in memory

    def _catch_up(self, now: float) -> bool:
        """Read the score rows since the last digest. False while there are more."""
        if self._last_time - now > HOUR:  # the clock was ahead, and left out rows that are not too old after all
            self._sums, self._last_seq = LabelSums(self._rules, self._verdicts), 0
        self._last_time = now
        self._sums.forget(now)
        for _ in range(MAX_READS):
            rows = self._store.window(self._last_seq, now - self._rules.fresh, ROWS)
            if not rows:
                return True
            self._sums.add(rows)
            for row in rows:
                self._cache.pop(row.key, None)  # another judge has judged it: read it again
            self._last_seq = rows[-1].seq
        return False

    def _agreement(self, answers: Sequence[AnswerLabel]) -> Iterable[tuple[tuple[Gauge, tuple[str, ...]], float]]:
        """Number of labels, and agreement of the judges with them."""
        for quantity in self._rules.quantities:
            count = len(pairs_of(answers, self._rules.chain[0], quantity))
            if count:
                yield (Gauge.LABELS, (str(quantity),)), float(count)
                yield (Gauge.LABEL_ANNOTATORS, (str(quantity),)), float(len(annotators_of(answers, quantity)))
            for judge in self._rules.judges:
                agreement = traffic_agreement(pairs_of(answers, judge, quantity), self._rules.minimum)
                if agreement is not None:
                    yield (Gauge.AGREEMENT, (judge, str(quantity))), agreement.value

    def _corrected(self, answers: Sequence[AnswerLabel], now: float) -> Iterable[EstimateRow]:
        for name, span in self._spans.items():
            within = hours(now, span)
            missed = self._sums.missed(within)
            inside = [answer for answer in answers if int(answer.verdicts.at // HOUR) in within]
            for (route, quantity), sums in sorted(self._sums.totals(within).items()):
                on_route = [answer for answer in inside if answer.verdicts.route == route]
                rows = {answer.verdicts.key: self._rows_of(answer, quantity) for answer in on_route}
                totals = _exchanged(
                    sums, [pair[:1] for pair in rows.values() if pair], [pair[1:] for pair in rows.values() if pair]
                )
                corrected = self._estimate(totals, missed.get(route, 0.0))
                if corrected is None:
                    continue
                number = sum(1 for pair in rows.values() if pair)
                row = EstimateRow(
                    quantity,
                    route,
                    self._rules.chain[0],
                    name,
                    corrected.estimate,
                    corrected=True,
                    labels=number,
                    labels_given=number,
                )
                others = (
                    (one, len(theirs), self._estimate(left, missed.get(route, 0.0)))
                    for one, theirs, left in self._without_each(totals, on_route, rows, quantity)
                )
                without = [
                    WithoutAnnotator(one, count, None if other is None else other.estimate)
                    for one, count, other in others
                ]
                yield self._robust(row, without, judge_interval(sums, self._rules.confidence))
                self._gauges[Gauge.LABEL_GAIN, (str(quantity), route, name)] = corrected.gain

    def _in_terms_of_reference(self, now: float) -> Iterable[EstimateRow]:
        """Estimates of what the reference judge would say of every answer, from those that it has read (two-phase)."""
        first, reference = self._rules.chain
        for name, span in self._spans.items():
            within = hours(now, span)
            missed = self._sums.missed(within)
            for (route, quantity), sums in sorted(self._sums.totals(within).items()):
                if quantity not in self._rules.second:
                    continue
                by_reference = self._estimate(sums.without_last(), missed.get(route, 0.0))
                if by_reference is not None:
                    yield EstimateRow(
                        quantity, route, first, name, by_reference.estimate, corrected=True, reference=reference
                    )

    def _estimate(self, sums: PpiSums, missed: float) -> CorrectedEstimate | None:
        rules = self._rules
        return correct(sums, unjudged_weight=missed, confidence=rules.confidence, min_labels=rules.minimum)

    def _rows_of(self, answer: AnswerLabel, quantity: Quantity) -> Sequence[Row]:
        """The row of a labelled answer, without its label and with it; nothing if the label cannot be weighted."""
        if quantity not in answer.scores or answer.probability is None:
            return ()
        return tuple(labelled(self._rules, answer.verdicts, quantity, answer.scores[quantity], answer.probability))

    def _without_each(
        self, totals: PpiSums, answers: Sequence[AnswerLabel], rows: Mapping[str, Sequence[Row]], quantity: Quantity
    ) -> Iterable[tuple[str, Sequence[AnswerLabel], PpiSums]]:
        """Each annotator, the answers with a label of theirs that counts, and the sums without these labels."""
        counted = [answer for answer in answers if rows[answer.verdicts.key]]
        for name, theirs in islice(annotators_of(counted, quantity).items(), MAX_ANNOTATORS):
            now_there = [rows[answer.verdicts.key] for answer in theirs]
            left = [self._rows_of(answer.without(name), quantity) for answer in theirs]
            instead = [other[1:] or there[:1] for other, there in zip(left, now_there, strict=True)]
            yield name, theirs, _exchanged(totals, [pair[1:] for pair in now_there], instead)

    def _robust(
        self, row: EstimateRow, without: Sequence[WithoutAnnotator], by_judge: tuple[float, float]
    ) -> EstimateRow:
        """The row with the annotators behind it, and an interval that none of them can move alone."""
        shares = shares_of(row.estimate, len(without), without)
        if shares.change is not None:
            self._gauges[Gauge.ANNOTATOR_CHANGE, (str(row.quantity), row.route, row.window)] = shares.change
        return replace(row, estimate=widened(row.estimate, shares, by_judge, self._rules.trusted), annotators=shares)


def _exchanged(sums: PpiSums, old: Iterable[Sequence[Row]], new: Iterable[Sequence[Row]]) -> PpiSums:
    """The sums without some rows, and with others."""
    return less(sums, PpiSums.of(sums.tiers, chain.from_iterable(old))) + PpiSums.of(
        sums.tiers, chain.from_iterable(new)
    )


def span_name(seconds: float) -> str:
    """A length of time, as in the configuration.

    >>> span_name(30 * 86400.0), span_name(43200.0)
    ('30d', '12h')
    """
    return f"{seconds / DAY:g}d" if seconds >= DAY else f"{seconds / HOUR:g}h"
