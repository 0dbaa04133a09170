"""Score drift: watches every configured quantity on every route, score by score, in the order of settling.

All detectors together raise one false alarm in a configured time, or fewer. Next to each detector of a route runs a
confidence sequence: the range of today's mean, valid at every look. Detectors of segments start with the first score of
a value on a route, as long as they are not too many.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from urllib.parse import unquote

from ragwatch.errors import StoreError
from ragwatch.model.quantities import quantity_of
from ragwatch.pipeline.drift.breaks import Breaks, RouteStages
from ragwatch.pipeline.drift.loop import Cell, DriftLoop, Figures, PauseReason, Standing, is_segment, name_of, words_of
from ragwatch.pipeline.drift.rules import MAX_SEGMENT_DETECTORS, DriftRules, SegmentCell
from ragwatch.pipeline.drift.streams import ScoreStream
from ragwatch.ports import LoopContext, RecordedEvent, SavedState, ScoreRow, StoredRun
from ragwatch.statistics.drift.bands import DAY, DayBand, from_dict, to_dict
from ragwatch.statistics.drift.detect import Alarm, Score
from ragwatch.statistics.drift.recovery import Mend
from ragwatch.statistics.snapshot import Gauge
from ragwatch.statistics.tally import Tallies, Tally

KIND = "drift"
ROWS = 5000
_ANY_AGE = 0.0  # answers of any age count, in the order in which they were judged


class ScoreDriftLoop(DriftLoop[ScoreStream]):
    """The loop that watches scores. `judge_moved` says whether the judge itself has drifted, according to anchors."""

    kind = KIND
    pause_gauge = Gauge.DRIFT_PAUSED

    def __init__(
        self,
        rules: DriftRules,
        context: LoopContext,
        *,
        judge_moved: Callable[[], bool],
        standing: Standing | None = None,
    ) -> None:
        super().__init__(context, standing=standing)
        self.rules = rules
        self._judge_moved = judge_moved
        self._readers = rules.readers()
        self._reset()

    def _reset(self) -> None:
        super()._reset()
        self._seq = 0
        self._streams = {cell: self._fresh(cell) for cell in self.rules.cells}
        self._unwatched: set[SegmentCell] = set()
        self._bands: dict[Cell, DayBand] = {cell: self.rules.band(cell[1]) for cell in self._streams}
        self._alarms: dict[Cell, Alarm] = {}
        self._stages = RouteStages()
        self._breaks = Breaks()

    def _load(self, state: SavedState | None) -> None:
        """Load the state. Alarms stay active under any judge; references belong to the judge that read the scores.

        Earlier versions stored neither bands nor stages nor breaks.
        """
        if state is None:
            return
        self._seq = int(state["seq"])
        same_judge = (state["judge"], state["version"]) == (self.rules.judge, self.rules.version)
        for stored in (*state["streams"], *state["alarms"]):
            self._resume_segment(stored)
        for cell, stream in self._streams.items():
            name = name_of(cell)
            if name in state["alarms"]:
                self._alarms[cell] = Alarm(**state["alarms"][name])
            if name in state["told"]:
                self._recorded[cell] = int(state["told"][name])
            if same_judge and name in state["streams"]:
                try:
                    stream.load(state["streams"][name])
                except (KeyError, TypeError, ValueError):  # of another detector: this one starts from nothing
                    self._streams[cell] = self._fresh(cell)
            if same_judge and cell in self._bands and name in state.get("bands", {}):
                with suppress(KeyError, TypeError, ValueError):  # as above; no more than the current day is lost
                    self._bands[cell] = from_dict(self._bands[cell], state["bands"][name])
        if same_judge:
            with suppress(KeyError, TypeError, ValueError):
                self._stages.load(state["stages"])
            with suppress(KeyError, TypeError):
                self._breaks.load({name_of(cell): cell for cell in self._streams}, state["breaks"])
            self._look_back()
            return
        before, now = f"{state['judge']} {state['version']}", f"{self.rules.judge} {self.rules.version}"
        detail = f"answers are read by {now}, not by {before}: scores are not comparable; baselines are learnt again"
        self._telemetry.announced("judge", detail)
        with suppress(StoreError):  # where nothing can be written, the next process announces it again
            self._store.record(RecordedEvent(self._clock(), "judge", detail))
            self._save()

    def _resume_segment(self, name: str) -> None:
        """Start the detector of a segment that is stored under a name, if it is still configured."""
        parts = tuple(map(unquote, name.split("//")))
        if len(parts) == len(("quantity", "route", "segment", "value")):
            quantity, route, key, value = parts
            segment: SegmentCell = quantity, route, key, value
            if route in self.rules.routes and segment in self.rules.segment_cells(route, {key: value}):
                self._stream_of(segment)

    def _fresh(self, cell: Cell) -> ScoreStream:
        return self.rules.stream(quantity_of(cell[0]), cell[1], segment=is_segment(cell))

    def _stream_of(self, cell: SegmentCell) -> ScoreStream | None:
        """The stream of a segment; a new one for its first score; None if there are too many."""
        stream = self._streams.get(cell)
        if stream is None and len(self._streams) < len(self.rules.cells) + MAX_SEGMENT_DETECTORS:
            stream = self._streams[cell] = self._fresh(cell)
        elif stream is None:
            self._unwatched.add(cell)
        return stream

    def _readers_of(self, row: ScoreRow) -> Iterator[tuple[Cell, ScoreStream, bool]]:
        """The cells that an answer belongs to, with their streams, and whether as their control."""
        for cell, control in self._readers.get(row.route, ()):
            yield cell, self._streams[cell], control
        for segment in self.rules.segment_cells(row.route, row.segments):
            if (stream := self._stream_of(segment)) is not None:
                yield segment, stream, False

    def _look_back(self) -> None:
        """Follow the newest scores again, among which the begin of a break may lie; they are stored once."""
        newest = self._store.window(max(self._seq - ROWS, -1), _ANY_AGE, ROWS)
        for row in newest:
            if row.seq > self._seq or not self._is_watched(row):
                continue
            for cell, stream, control in self._readers_of(row):
                value = (row.scores or {}).get(quantity_of(cell[0]))
                if value is not None and not control and stream.alarm is None:
                    score = Score(value, 1.0 / row.probability)
                    self._breaks.follow(cell, row.at, score, before=stream.mean, alarmed=False)

    def _is_watched(self, row: ScoreRow) -> bool:
        return row.judge == self.rules.judge and row.version == self.rules.version and row.scores is not None

    def _state(self) -> Mapping[str, object]:
        return {
            "seq": self._seq,
            "judge": self.rules.judge,
            "version": self.rules.version,
            "streams": {name_of(cell): stream.to_dict() for cell, stream in self._streams.items()},
            "bands": {name_of(cell): to_dict(band) for cell, band in self._bands.items()},
            "alarms": {name_of(cell): alarm._asdict() for cell, alarm in self._alarms.items()},
            "told": {name_of(cell): seq for cell, seq in self._recorded.items()},
            "stages": self._stages.to_dict(),
            "breaks": self._breaks.to_dict(),
        }

    def _observe(self, now: float) -> bool:
        busy = False
        # Replace times after now, of a clock that was ahead: detectors would gain no run length until then.
        for stream in self._streams.values():
            stream.limit_time(now)
        for cell, band in self._bands.items():
            if band.since is not None and band.since > now:
                self._bands[cell] = self.rules.band(cell[1])
        while rows := self._store.window(self._seq, _ANY_AGE, ROWS):
            for row in rows:
                self._take(row, min(row.at, now))
            self._seq = rows[-1].seq
            self._alarms |= super()._active()
            self._save()
            busy = True
        return busy

    def _take(self, row: ScoreRow, at: float) -> None:
        if not self._is_watched(row):
            return
        self._stages.add(row)
        for cell, stream, control in self._readers_of(row):
            value = (row.scores or {}).get(quantity_of(cell[0]))
            if value is None:  # a failed judgement is not a low score
                continue
            weight = 1.0 / row.probability
            score, learn = Score(value, weight), row.route not in self._paused_routes
            if learn and not stream.complete and cell in self._bands:
                self._stages.add_normal(cell, row)
            stream.take(row.seq, at, score, control=control, learn=learn)
            if cell in self._bands:
                self._stages.follow(cell, rising=stream.rising)
            if not control:
                self._breaks.follow(cell, at, score, before=stream.mean, alarmed=stream.alarm is not None)
                if cell in self._bands:
                    self._bands[cell] = self._bands[cell].after(at, value, weight)
            if stream.alarm is not None:
                self._follow_alarm(cell, stream.alarm, stream.mend, at)

    def _follow_alarm(self, cell: Cell, alarm: Alarm, mend: Mend | None, at: float) -> None:
        """Record an alarm, and its end if its break is over: once, whether or not a process was killed after it."""
        self._record_once(cell, alarm)
        if mend is None:
            return
        self._record_end(cell, alarm, mend, at, f"{mend.answers} answers at {mend.mean:.2f}", judge=self.rules.judge)
        self._acknowledge(cell)

    def paused(self, route: str) -> PauseReason | None:
        """Why no reference may be learnt on a route at present: a standing alert, or a drift alarm of any quantity."""
        if any(cell[1:] == (route,) for cell in tuple(self._alarms)):  # acknowledgements run in another thread
            return PauseReason.DRIFT
        return super().paused(route)

    def _active(self) -> Mapping[Cell, Alarm]:
        """Active alarms, also those of an earlier judge."""
        return self._alarms

    def _acknowledge(self, cell: Cell) -> None:
        super()._acknowledge(cell)
        self._alarms.pop(cell, None)

    def _renew(self, cell: Cell) -> None:
        super()._renew(cell)
        self._alarms.pop(cell, None)
        self._stages.forget(cell)

    def _announce(self, cells: Sequence[Cell], *, renewed: bool) -> None:
        names = "; ".join(map(words_of, cells))
        detail = f"{names}: {'baseline renewed' if renewed else 'acknowledged'}"
        self._store.record(RecordedEvent(self._clock(), KIND, detail))

    def _record(self, cell: Cell, alarm: Alarm) -> None:
        moved = self._judge_moved()
        change = None if is_segment(cell) else self._stages.change(cell)
        stage = {} if change is None else {"stage": change.stage, "share": change.share, "before": change.before}
        known = self._breaks.of(cell)
        body = {
            **alarm._asdict(),
            "judge": self.rules.judge,
            "judge_moved": moved,
            "changed_stage": stage or None,
            "break": None if known is None else asdict(known),
        }
        run = StoredRun(KIND, name_of(cell), alarm.at, failing=True, body=body)
        self._store.record_run(run, Tallies() if is_segment(cell) else Tallies({(Tally.DRIFT_ALARMS, cell): 1}))
        self._telemetry.drift_alarmed(
            cell[0],
            words_of(cell).removeprefix(f"{cell[0]}/"),
            evidence=alarm.evidence,
            judge_moved=moved,
            stage=None if change is None else str(change.stage),
        )

    def _figures(self) -> Figures:
        figures = self._detector_figures()
        learnt = [cell for cell, stream in self._streams.items() if not stream.learning and not is_segment(cell)]
        for route in {cell[1] for cell in learnt}:
            for at_fault, share in self._stages.normal_shares(cell for cell in learnt if cell[1] == route).items():
                figures[Gauge.STAGE_BASELINE, (route, str(at_fault))] = share
        figures |= self._breaks.figures(self._alarms)
        figures |= self._stages.changes({cell[1] for cell in learnt}, self._alarms)
        # Until its first answer, a day shows the band of the day before. A route without traffic has none after that.
        oldest = self._clock() // DAY - 1
        for cell, band in self._bands.items():
            mean, since = band.mean, band.since
            if mean is not None and since is not None and since // DAY >= oldest:
                figures[Gauge.BAND_MEAN, cell], figures[Gauge.BAND_SCORES, cell] = mean, float(band.band.spread.n)
                figures[Gauge.BAND_LOW, cell], figures[Gauge.BAND_HIGH, cell] = band.band.low, band.band.high
                figures[Gauge.BAND_SINCE, cell] = since
        return figures

    def _detector_figures(self) -> Figures:
        """Gauges of the evidence and of the alarms; the evidence about segments is not shown."""
        figures: Figures = {}
        if self._unwatched:
            figures[Gauge.DRIFT_UNWATCHED, ()] = float(len(self._unwatched))
        for cell, stream in self._streams.items():
            if stream.evidence is not None or cell in self._alarms:
                alarm = Gauge.SEGMENT_DRIFT_ALARM if is_segment(cell) else Gauge.DRIFT_ALARM
                figures[alarm, cell] = float(cell in self._alarms)
            if is_segment(cell):
                continue
            for gauge, value in (
                (Gauge.DRIFT_EVIDENCE, stream.evidence),
                (Gauge.DRIFT_THRESHOLD, stream.threshold),
                (Gauge.DRIFT_BASELINE, stream.baseline),
            ):
                if value is not None:
                    figures[gauge, cell] = value
        return figures
