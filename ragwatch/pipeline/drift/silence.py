"""Silence loop: watches whether each route still answers, by its own rhythm (see `ragwatch.statistics.drift.silence`).

An alarm ends with the next answer. The route `other` is what no other route takes, and a new route takes from it: it is
silent only while no route answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from ragwatch.model.sample import OTHER
from ragwatch.model.signals import Signal
from ragwatch.pipeline.drift.traffic import counts_of
from ragwatch.ports import Clock, NoteStore
from ragwatch.statistics.drift import silence
from ragwatch.statistics.drift.silence import Rhythm, RhythmRecord
from ragwatch.statistics.snapshot import Gauge, Gauges
from ragwatch.statistics.tally import Tallies

KIND = "silence"
SAVE_SECONDS = 600.0
ELSEWHERE_SECONDS = 3600.0  # without an answer on any route, for `other` to be silent


class SilenceLoop:
    """The loop that watches the gaps between the answers of each route.

    Args:
        false_alarm_days: All routes together raise one false alarm in so many days, or fewer.
        store: Keeps state; a change of an alarm is stored at once, what is learnt every `SAVE_SECONDS`.
    """

    def __init__(
        self,
        routes: Sequence[str],
        false_alarm_days: float,
        *,
        tallies: Callable[[], Tallies],
        store: NoteStore,
        clock: Clock,
    ) -> None:
        self._routes = tuple(routes)
        self._days = false_alarm_days * len(self._routes)
        self._tallies = tallies
        self._store = store
        self._clock = clock
        self._rhythms = dict.fromkeys(self._routes, Rhythm())
        self._counts: dict[str, int] = {}
        self._saved = 0.0

    def resume(self) -> None:
        """Continue where an earlier process, or another worker, stopped. Unreadable state is learnt again."""
        state: Mapping[str, RhythmRecord] = self._store.recall(KIND) or {}
        self._rhythms = dict.fromkeys(self._routes, Rhythm())
        for route in self._routes:
            if route in state:
                with suppress(KeyError, TypeError, ValueError):
                    self._rhythms[route] = silence.from_dict(state[route])
        self._counts = self._answers()
        self._saved = self._clock()

    async def step(self) -> bool:
        """Observe all routes. True when an alarm began or ended."""
        return await asyncio.to_thread(self._step)

    def gauges(self) -> Gauges:
        """Whether each route is silent, and the answers it usually has in such a time; empty while nothing is known."""
        gauges: dict[tuple[Gauge, tuple[str, ...]], float] = {}
        for route, rhythm in self._rhythms.items():
            if any(rhythm.answers):
                gauges[Gauge.SILENCE_ALARM, (route,)] = float(self._is_silent(route))
                gauges[Gauge.SILENCE_MISSED, (route,)] = rhythm.missed
        return gauges

    def _step(self) -> bool:
        now, counts = self._clock(), self._answers()
        before = self._silent()
        for route, rhythm in self._rhythms.items():
            answered = counts[route] != self._counts.get(route, 0)
            self._rhythms[route] = silence.observe(rhythm, now, answered=answered, days=self._days)
        self._counts = counts
        changed = self._silent() != before
        if changed or abs(now - self._saved) >= SAVE_SECONDS:
            self._store.remember(KIND, {route: silence.to_dict(rhythm) for route, rhythm in self._rhythms.items()})
            self._saved = now
        return changed

    def _answers(self) -> dict[str, int]:
        tallies = self._tallies()
        return {route: sum(counts_of(tallies, Signal.ABSTENTIONS, route)) for route in self._routes}

    def _silent(self) -> frozenset[str]:
        return frozenset(route for route in self._routes if self._is_silent(route))

    def _is_silent(self, route: str) -> bool:
        if route == OTHER:
            times = (rhythm.last for rhythm in self._rhythms.values() if any(rhythm.answers))
            newest = max((last for last in times if last is not None), default=0.0)
            return self._rhythms[route].silent and self._clock() - newest > ELSEWHERE_SECONDS
        return self._rhythms[route].silent
