"""Sums of scores by value of a segment and step of time, over the newest verdicts: added up by the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson

from ragwatch.model.estimate import Addends
from ragwatch.model.stages import FAULTS, Stage
from ragwatch.ports import SegmentQuery, SegmentSums
from ragwatch.statistics.segments import STEP, StepMeasure
from ragwatch.stores.engine import LIVE, Component, Row
from ragwatch.stores.queries import SCORE, Values
from ragwatch.stores.rows import STEPS

_WHERE = (
    "FROM verdicts v WHERE v.at >= :since AND v.at < :until AND v.route = :route AND v.judge = :judge"
    f" AND v.version = :version AND v.outcome = 'judged' AND {LIVE}"
)
_STEP = "TRUNC(v.at * :rate - :first)"
_NEWEST = "ORDER BY v.at DESC, v.seq DESC LIMIT :limit"
_SCORED = "FILTER (WHERE m.x IS NOT NULL)"
_FAULTS = ", ".join(f"COUNT(*) FILTER (WHERE m.stage = '{stage}')" for stage in FAULTS)
SUMMED = (  # the limit of the inner statement also keeps SQLite from decoding a score for every sum
    f"SELECT m.value, m.step, COUNT(m.x), SUM(m.w) {_SCORED}, SUM(m.w * m.x), SUM(m.w * m.w) {_SCORED},"  # noqa: S608 - constants
    " SUM(m.w * m.w * m.x), SUM(m.w * m.w * m.x * m.x),"
    f" SUM(m.w * m.w * m.w) {_SCORED}, SUM(m.w * m.w * m.w * m.w) {_SCORED},"
    " COUNT(*), SUM(m.w), SUM(m.w) FILTER (WHERE m.stage IS NOT NULL),"
    f" SUM(m.w) FILTER (WHERE m.stage <> '{Stage.NONE}'), {_FAULTS}"
    f" FROM (SELECT SEGMENT(v.) AS value, {_STEP} AS step, {SCORE} AS x, 1.0 / v.probability AS w, v.stage AS stage"
    f" {_WHERE} {_NEWEST}) m GROUP BY m.value, m.step"
)
STEPPED = (
    f"SELECT CAST(v.scores AS text), {_STEP}, 1.0 / v.probability, v.stage {_WHERE}"
    f" AND CAST(v.scores AS text) LIKE :mark {_NEWEST}"
)
_NO_SCORES, _FAULT_NAMES = Addends(), tuple(map(str, FAULTS))
_EARLY = 1e-6  # of a step: rounding must not move the first answer of a step into the one before


class SegmentsComponent(Component):
    """Implements the part of `ports.TrendStore` about segments."""

    def segments(self, query: SegmentQuery) -> list[SegmentSums]:
        """See `TrendStore.segments`."""
        rate = query.steps / (query.until - query.since)
        names = ("route", "judge", "version", "since", "until", "limit")
        values: Values = {name: getattr(query, name) for name in names}
        values |= {"rate": rate, "first": query.since * rate - _EARLY}
        if query.key == STEP:
            rows = self.engine.pages.rows(STEPPED, {**values, "mark": f'%"{STEPS}"%'})
            return _of_steps(rows, StepMeasure(query.quantity))
        rows = self.engine.pages.rows(SUMMED, {**values, "segment": query.key, "quantity": query.quantity})
        return [_sums_of(row) for row in rows]


def _sums_of(row: Row) -> SegmentSums:
    value, step, sums, (answers, weight, staged, failing, *faults) = *row[:2], row[2:10], row[10:]
    scores = Addends(*sums) if sums[0] else _NO_SCORES
    counts = dict(zip(_FAULT_NAMES, faults, strict=True)) if failing else {}
    return SegmentSums(value, step, scores, answers, *(weight, staged or 0.0, failing or 0.0), faults=counts)


def _of_steps(rows: Sequence[Row], measure: StepMeasure) -> list[SegmentSums]:
    """Sums by retrieval step; damaged rows are left out."""
    sums: dict[tuple[str, int], SegmentSums] = {}
    for text, step, weight, stage in rows:
        counted = _counted(text)
        used = sum(numbers[1] for numbers in counted.values())
        for name, (returned, taken) in counted.items():
            scores = Addends()
            if measure is StepMeasure.IGNORED:
                scores = Addends.one(1.0 - taken / returned, 1.0 / weight)
            elif used:
                scores = Addends.one(taken / used, 1.0 / weight)
            place = name, int(step)
            before = sums.get(place) or SegmentSums(*place, Addends(), 0, 0.0, 0.0, 0.0, {})
            fails = stage in FAULTS
            sums[place] = SegmentSums(
                *place,
                before.scores + scores,
                before.answers + 1,
                before.weight + weight,
                before.staged + (weight if stage is not None else 0.0),
                before.failing + (weight if fails else 0.0),
                {**before.faults, stage: before.faults.get(stage, 0) + 1} if fails else before.faults,
            )
    return list(sums.values())


def _counted(text: str) -> Mapping[str, tuple[int, int]]:
    """Contexts returned and used by retrieval step, as `rows` stores them."""
    try:
        stored = orjson.loads(text)[STEPS]
        return {str(name): (int(returned), int(used)) for name, (returned, used) in stored.items() if returned}
    except (ValueError, TypeError, AttributeError, LookupError):
        return {}
