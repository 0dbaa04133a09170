"""Silence of a route, by its own rhythm: how many answers it would usually have had since the last one.

Time is measured in answers: since the last answer the clock gains rate * time, where the rate is that of the hour of
the week. In this clock the gaps of a Poisson process are exponential with mean 1, whatever its rhythm (time-change
theorem; Brown et al. 2002, Neural Computation 14). Real traffic has longer gaps: sessions, days that differ, rates that
are estimated. So the tail is learnt as well, by peaks over a threshold (Pickands 1975, with an exponential tail): a gap
above `PEAK` exceeds it by m on average. Of g such gaps a day, g exp(-(u - PEAK) / m) are longer than u, which is one in
D days at

    u = PEAK + m ln(g D).

Sessions show where there are few of them, so m is learnt by the rate at which a gap began, in octaves; g is that of
all.

Minutes with an answer count, not answers: a burst is one event, and a log that is read late is no traffic of thousands.
A rate is drawn towards that of the same hour on days of the same kind (Monday to Friday, Saturday and Sunday; UTC), and
is 0 before such an hour was seen, so a first night raises no alarm. The rates of the hour before and after count where
they are lower: clocks change. Old weeks are forgotten; what is learnt from a gap joins the rates when it has ended
without an alarm.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

HOURS = 168
PEAK = 2.0
"""Expected answers from which on a gap counts for the tail."""
MAX_STEP = 900.0
"""Seconds between two observations above which the gap starts again: nothing was observed between them."""
RETIRED = 7 * 86400.0
"""Seconds of silence after which a route counts as retired: what was learnt of it is dropped, and its alarm."""
_HOUR, _DAY, _MINUTE = 3600.0, 86400.0, 60.0
_PRIOR_HOURS, _PRIOR_GAPS, _PRIOR_EXCESS = 1.0, 10.0, 20.0
_KEPT_A_WEEK, _MEMORY = 0.75, 28 * _DAY
_WEEKEND = (2, 3)  # days since the epoch, which began on a Thursday
_EMPTY = (0.0,) * HOURS
_MARGIN = 1.25  # of the mean excess: within an octave, sessions are more visible at its lower end
_OCTAVES = 6  # rates below 2, 4, 8, 16 and 32 an hour, and above
_NO_GAPS = (0.0,) * _OCTAVES


class Rhythm(NamedTuple):
    """What is known of the traffic of a route."""

    hours: tuple[float, ...] = _EMPTY  # observed time by hour of the week, in hours; earlier weeks count less
    answers: tuple[float, ...] = _EMPTY
    gaps: tuple[float, ...] = _NO_GAPS  # number of gaps above `PEAK`, of the last weeks, by octave of the rate
    excess: tuple[float, ...] = _NO_GAPS
    days: float = 0.0
    at: float | None = None
    last: float | None = None  # time of the last answer, or of the start of observation after it
    missed: float = 0.0  # answers that were to be expected since
    silent: bool = False  # whether an alarm is active: `missed` has reached the limit, and no answer has come since

    def rate(self, at: float) -> float:
        """Return the minutes with an answer that an hour usually has: the least of it and its neighbours."""
        hour = int(at // _HOUR)
        return min(self._rate((hour + offset) % HOURS) for offset in (-1, 0, 1))

    def limit(self, days: float) -> float:
        """Return the number of missed answers that raises one false alarm in so many days.

        >>> round(Rhythm().limit(30.0), 2)                                   # 2 + 2 (1.25 + 2 / sqrt(10)) ln(10 * 30)
        23.47
        """
        octave = self.octave
        count = self.gaps[octave] + _PRIOR_GAPS
        mean = (self.excess[octave] + _PRIOR_EXCESS) / count * (_MARGIN + 2.0 / math.sqrt(count))  # two standard errors
        daily = (sum(self.gaps) + _PRIOR_GAPS) / (self.days + 1.0)
        return PEAK + max(1.0, mean) * math.log(max(1.0, daily * days))

    @property
    def octave(self) -> int:
        """Octave of the rate at the time of the last answer."""
        rate = 0.0 if self.last is None else self.rate(self.last)
        return min(_OCTAVES - 1, int(math.log2(max(1.0, rate))))

    def _rate(self, hour: int) -> float:
        weekend = hour // 24 in _WEEKEND
        alike = [day * 24 + hour % 24 for day in range(7) if (day in _WEEKEND) is weekend]
        observed = sum(self.hours[index] for index in alike)
        if observed == 0.0:
            return 0.0
        usual = sum(self.answers[index] for index in alike) / observed
        return (self.answers[hour] + _PRIOR_HOURS * usual) / (self.hours[hour] + _PRIOR_HOURS)


def observe(rhythm: Rhythm, now: float, *, answered: bool, days: float) -> Rhythm:
    """Return the rhythm after one more observation, at one false alarm in so many `days`."""
    if rhythm.at is None or rhythm.last is None:
        return rhythm._replace(at=now, last=now)
    if not 0.0 <= now - rhythm.at <= MAX_STEP:
        last = rhythm.last if rhythm.silent else now
        rhythm = rhythm._replace(at=now, last=last, missed=rhythm.missed * rhythm.silent)
    if answered:
        return _answered(rhythm, now, days)
    at, last = rhythm.at or now, rhythm.last or now
    if rhythm.silent and now - last > RETIRED:
        return Rhythm(at=now, last=now)
    missed = rhythm.missed + rhythm.rate(now) * (now - at) / _HOUR
    return rhythm._replace(at=now, missed=missed, silent=rhythm.silent or missed >= rhythm.limit(days))


def _answered(rhythm: Rhythm, now: float, days: float) -> Rhythm:
    """Return the rhythm after an answer, which ends the gap and the alarm. Only the first one of a minute counts."""
    last = rhythm.last if rhythm.last is not None else now
    if now // _MINUTE == last // _MINUTE:
        return rhythm._replace(at=now)
    kept, passed = math.exp(-(now - last) / _MEMORY), (now - last) / _DAY
    gaps, excess = [count * kept for count in rhythm.gaps], [total * kept for total in rhythm.excess]
    if rhythm.missed > PEAK:  # one that raised an alarm counts up to the alarm: an outage is no normal gap
        gaps[rhythm.octave] += 1.0
        excess[rhythm.octave] += min(rhythm.missed, rhythm.limit(days)) - PEAK
    hours, answers = list(rhythm.hours), list(rhythm.answers)
    start = now if rhythm.silent else last
    for index in range(int(start // _HOUR), int(now // _HOUR) + 1):
        hour = index % HOURS
        if index > last // _HOUR:
            hours[hour], answers[hour] = hours[hour] * _KEPT_A_WEEK, answers[hour] * _KEPT_A_WEEK
        hours[hour] += max(0.0, min(now, (index + 1) * _HOUR) - max(start, index * _HOUR)) / _HOUR
    answers[int(now // _HOUR) % HOURS] += 1.0
    passed += rhythm.days * kept
    return Rhythm(tuple(hours), tuple(answers), tuple(gaps), tuple(excess), days=passed, at=now, last=now)


def from_dict(stored: Mapping[str, Any]) -> Rhythm:
    """Return the rhythm of which `_asdict` was stored."""
    names = ("hours", "answers", "gaps", "excess")
    hours, answers, gaps, excess = columns = [tuple(map(float, stored[name])) for name in names]
    if [len(column) for column in columns] != [HOURS, HOURS, _OCTAVES, _OCTAVES]:
        raise ValueError(f"columns of {[len(column) for column in columns]} values")
    at, last = (None if time is None else float(time) for time in (stored["at"], stored["last"]))
    numbers = {name: float(stored[name]) for name in ("days", "missed")}
    return Rhythm(hours, answers, gaps, excess, at=at, last=last, silent=bool(stored["silent"]), **numbers)
