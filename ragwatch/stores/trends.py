"""Sums of scores by bucket of time and by segment, peaks of drift evidence, and the versions that records name."""

from collections.abc import Mapping, Sequence

import orjson

from ragwatch.model.estimate import Addends
from ragwatch.model.stages import FAULTS, Stage
from ragwatch.ports import Admission, Peak, Retention, SegmentQuery, SegmentSums, TrendQuery, TrendSums
from ragwatch.statistics.segments import STEP, StepMeasure
from ragwatch.statistics.trends import FINE, FINE_SECONDS, BucketKey, TrendKey
from ragwatch.stores.engine import DAY, LIVE, SEQUENCES, Component, Row, Writer
from ragwatch.stores.rows import STEPS, digest

MAX_NEW_VERSIONS_PER_DAY = 20
"""Of one metadata key that become events: a key with another value in every record is no version."""
MAX_VERSIONS = 1000
"""Of one metadata key that are known; later ones become no event."""
VERSION_KIND = "version"
SUMS = ("n", "w", "wx", "w2", "w2x", "w2x2", "w3", "w4")
KEYS = ("span", "kind", "place", "start", "name", "judge", "version")
MERGED = (
    f"SELECT name, judge, version, start / :step * :step AS point, {', '.join(f'SUM({column})' for column in SUMS)}"  # noqa: S608 - constants
    " FROM trends WHERE span = :span AND kind = :kind AND place = :place AND start >= :since AND start < :until"
    " GROUP BY name, judge, version, point ORDER BY name, judge, version, point"
)
HIGHEST = (
    "SELECT name, start / :step * :step AS point, MAX(value), MAX(threshold) FROM peaks"
    " WHERE span = :span AND kind = :kind AND place = :place AND start >= :since AND start < :until"
    " GROUP BY name, point ORDER BY name, point"
)
_ADDED = f"ON CONFLICT ({', '.join(KEYS)}) DO UPDATE SET " + ", ".join(
    f"{column} = trends.{column} + excluded.{column}" for column in SUMS
)
_PEAK = (
    "INSERT INTO peaks (span, kind, place, start, name, value, threshold)"
    " VALUES (:span, :kind, :place, :start, :name, :value, :threshold)"
    " ON CONFLICT (span, kind, place, start, name) DO UPDATE SET threshold = excluded.threshold,"
    " value = CASE WHEN excluded.value > peaks.value THEN excluded.value ELSE peaks.value END"
)
_VERSIONS = (
    "SELECT COUNT(*), COALESCE(SUM(CASE WHEN at > :since THEN 1 ELSE 0 END), 0) FROM known_versions"
    " WHERE field = :field"
)
_WHERE = (
    "FROM verdicts v WHERE v.at >= :since AND v.at < :until AND v.route = :route AND v.judge = :judge"
    f" AND v.version = :version AND v.outcome = 'judged' AND {LIVE}"
)
_STEP = "TRUNC(v.at * :rate - :first)"
_NEWEST = "ORDER BY v.at DESC, v.seq DESC LIMIT :limit"
_SCORED = "FILTER (WHERE m.x IS NOT NULL)"
_FAULTS = ", ".join(f"COUNT(*) FILTER (WHERE m.stage = '{stage}')" for stage in FAULTS)
_SUMMED = (  # the limit of the inner statement also keeps SQLite from decoding a score for every sum
    f"SELECT m.value, m.step, COUNT(m.x), SUM(m.w) {_SCORED}, SUM(m.w * m.x), SUM(m.w * m.w) {_SCORED},"  # noqa: S608 - constants
    " SUM(m.w * m.w * m.x), SUM(m.w * m.w * m.x * m.x),"
    f" SUM(m.w * m.w * m.w) {_SCORED}, SUM(m.w * m.w * m.w * m.w) {_SCORED},"
    " COUNT(*), SUM(m.w), SUM(m.w) FILTER (WHERE m.stage IS NOT NULL),"
    f" SUM(m.w) FILTER (WHERE m.stage <> '{Stage.NONE}'), {_FAULTS}"
    f" FROM (SELECT SEGMENT(v.) AS value, {_STEP} AS step, SCORE(v.) AS x, 1.0 / v.probability AS w, v.stage AS stage"
    f" {_WHERE} {_NEWEST}) m GROUP BY m.value, m.step"
)
_STEPPED = (
    f"SELECT CAST(v.scores AS text), {_STEP}, 1.0 / v.probability, v.stage {_WHERE}"
    f" AND CAST(v.scores AS text) LIKE :mark {_NEWEST}"
)
_NO_SCORES, _FAULT_NAMES = Addends(), tuple(map(str, FAULTS))
_EARLY = 1e-6  # of a step: rounding must not move the first answer of a step into the one before


class Trends(Component):
    """Implements `ports.TrendStore`."""

    def trends(self, query: TrendQuery) -> list[TrendSums]:
        return [
            TrendSums(
                TrendKey(query.kind, query.place, name, judge, version),
                int(start),
                Addends(int(n), *map(float, others)),
            )
            for name, judge, version, start, n, *others in self.engine.pages.rows(MERGED, parameters_of(query))
        ]

    def add_peaks(self, peaks: Sequence[Peak]) -> None:
        rows = [
            {
                "span": peak.span,
                "kind": str(peak.series.kind),
                "place": peak.series.place,
                "start": peak.start,
                "name": peak.series.name,
                "value": peak.value,
                "threshold": peak.threshold,
            }
            for peak in sorted(peaks, key=lambda peak: (peak.span, peak.series, peak.start))
        ]
        with self.engine.transaction() as writer:
            writer.executemany(_PEAK, rows)

    def peaks(self, query: TrendQuery) -> list[Peak]:
        return [
            Peak(TrendKey(query.kind, query.place, name), query.step, int(start), float(value), threshold)
            for name, start, value, threshold in self.engine.pages.rows(HIGHEST, parameters_of(query))
        ]

    def segments(self, query: SegmentQuery) -> list[SegmentSums]:
        rate = query.steps / (query.until - query.since)
        names = ("route", "judge", "version", "since", "until", "limit")
        values: dict[str, object] = {name: getattr(query, name) for name in names}
        values |= {"rate": rate, "first": query.since * rate - _EARLY}
        if query.key == STEP:
            rows = self.engine.pages.rows(_STEPPED, {**values, "mark": f'%"{STEPS}"%'})
            return _of_steps(rows, StepMeasure(query.quantity))
        rows = self.engine.pages.rows(_SUMMED, {**values, "segment": query.key, "quantity": query.quantity})
        return [_sums_of(row) for row in rows]


def parameters_of(query: TrendQuery) -> dict[str, object]:
    """Return the parameters of `MERGED` and `HIGHEST`."""
    names = ("step", "span", "place", "since", "until")
    return {"kind": str(query.kind)} | {name: getattr(query, name) for name in names}


def add_sums(writer: Writer, sums: Mapping[BucketKey, Addends]) -> None:
    """Increment sums, in the order of their keys, so that two workers with the same ones wait for each other."""
    rows = sorted(
        (span, str(kind), place, start, name, judge, version, *(getattr(added, column) or 0.0 for column in SUMS))
        for ((kind, place, name, judge, version), span, start), added in sums.items()
    )
    writer.insert(
        "trends", [dict(zip((*KEYS, *SUMS), row, strict=True)) | {"n": int(row[len(KEYS)])} for row in rows], _ADDED
    )


def add_versions(writer: Writer, admission: Admission) -> None:
    """Store the versions that records name; one that is new, and not the first of its key, becomes an event."""
    now = admission.at or 0.0
    by_key = {(version.field, digest(version.value)): version for version in admission.versions}
    for (field, value), version in sorted(by_key.items(), key=lambda item: item[0]):
        ((total, new),) = writer.rows(_VERSIONS, {"since": now - DAY, "field": field})
        if total >= MAX_VERSIONS or new >= MAX_NEW_VERSIONS_PER_DAY:
            continue
        row = {"field": field, "digest": value, "at": now}
        if writer.insert("known_versions", [row], "ON CONFLICT DO NOTHING") and total:
            detail = f"{version.field}: {version.value}"
            writer.insert("events", [{"at": version.at, "kind": VERSION_KIND, "detail": detail}])


def delete_old(writer: Writer, retention: Retention, now: float) -> None:
    """Delete the sums and peaks that no chart shows any more, while no worker settles."""
    writer.lock(SEQUENCES)
    for table in ("trends", "peaks"):
        writer.execute(
            f"DELETE FROM {table} WHERE start < :oldest OR (span = :fine AND start < :fine_oldest)",  # noqa: S608 - constants
            {"oldest": now - retention.trend_days * DAY, "fine": FINE, "fine_oldest": now - FINE_SECONDS},
        )


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
