"""Labelling: people are given samples, and their words are kept with the probability with which they were asked.

Answers that the last judge of the chain has read since the last time become a pool; people are given what stands first
in all pools together. After each word, the probabilities of all words on its pool are set anew, because how far down
people have come decides them: whoever stops, and however, what is kept is right.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any

from ragwatch.core.labels.label import Label, parse_label
from ragwatch.core.labels.selection import LabelCandidate, LabelPool, LabelPosition, is_double, pool, unsure
from ragwatch.core.sampling import key_of
from ragwatch.pipeline.labels.verdicts import AnswerVerdicts, LabelRules, answer_verdicts
from ragwatch.ports import ScoreRow, Store

STATE = "labelling"
ROWS = 5000
CANDIDATES = 2000  # of a pool, whose texts are looked at; more are thinned out at random
PLACES = 400  # of a pool
ANEW_SECONDS = 3600.0  # a pool with samples left is gone on with for so long before there is another
MOST_TASKS = 200
TASKS_CHARS = 4 << 20  # of the texts given to a person at a time, unless one alone is longer: fewer are given then
PAGE = 500  # labels read at a time


class _TaskState:
    """What is remembered: the pools with the times at which they were made, and how far traffic was looked at."""

    def __init__(self, until: int, pools: list[LabelPool], made: list[float], gone: set[str]) -> None:
        self.until = until
        self.pools = pools
        self.made = made
        self.gone = gone

    @classmethod
    def of(cls, record: Mapping[str, Any] | None) -> _TaskState:
        if record is None:
            return cls(0, [], [], set())
        pools = [
            LabelPool(tuple(LabelPosition(*place) for place in each["places"]), each.get("beyond", math.inf))
            for each in record["pools"]
        ]
        return cls(int(record["until"]), pools, [each["made"] for each in record["pools"]], set(record["gone"]))

    def to_record(self) -> dict[str, Any]:
        return {
            "until": self.until,
            "gone": sorted(self.gone),
            "pools": [
                {
                    "made": made,
                    **({} if math.isinf(each.beyond) else {"beyond": each.beyond}),
                    "places": [[place.key, place.rank, place.size, place.probability] for place in each.places],
                }
                for each, made in zip(self.pools, self.made, strict=True)
            ],
        }

    def forget(self, before: float) -> None:
        """Drop pools of before an instant."""
        kept = [(each, made) for each, made in zip(self.pools, self.made, strict=True) if made >= before]
        self.pools, self.made = [each for each, _ in kept], [made for _, made in kept]
        self.gone &= {place.key for each in self.pools for place in each.places}


class LabelTasks:
    """What `ragwatch label` talks to, through the daemon or without one. Thread-safe.

    Args:
        rules: Which judges are in force, and how labels are wanted.
        store: Holds verdicts and labels.
        clock: Seconds since the epoch.
        uniform: A number between 0 and 1 at random: it decides what people are asked.
    """

    def __init__(
        self, rules: LabelRules, *, store: Store, clock: Callable[[], float], uniform: Callable[[], float]
    ) -> None:
        self._rules = rules
        self._store = store
        self._clock = clock
        self._uniform = uniform
        self._turn = Lock()

    def tasks(self, annotator: str, count: int) -> list[dict[str, Any]]:
        """Samples for a person, at most `count`: some that another person has labelled, then new ones.

        They are to be shown in this order, and each needs a word, be it one that says nothing.

        Raises:
            StoreError: The store cannot be used.
        """
        with self._turn:
            now = self._clock()
            state = self._refreshed(now)
            labels = self._labels(state, now)
            given = _given(state, labels)
            doubles = [key for key in _doubles(labels, self._rules.double) if annotator not in labels[key]]
            places = heapq.merge(*(each.places for each in state.pools), key=lambda place: place.rank)
            fresh = [place.key for place in places if place.key not in given]
            wanted = min(count, MOST_TASKS)
            most = math.ceil(wanted * self._rules.double)
            found: list[dict[str, Any]] = []
            left = TASKS_CHARS
            for index, key in enumerate((*doubles[:most], *fresh)):
                task = self._task(key) if len(found) < wanted else None
                if task is not None and (_chars(task) <= left or not found):
                    found.append(task)
                    left -= _chars(task)
                elif task is not None or len(found) >= wanted:
                    break
                elif index >= len(doubles[:most]):  # retention was faster, or its text is damaged: nobody will see it
                    state.gone.add(key)
            self._store.remember(STATE, state.to_record())
            return found

    def put(self, records: Iterable[Mapping[str, Any]]) -> dict[str, int]:
        """Keep people's words. Returns how many are `new`, `replaced` and `unmatched` (no judge in force has read it).

        One on a sample that was given to people gets the probability of that, whatever it says itself.

        Raises:
            ValueError: One is not a label; nothing was kept.
            StoreError: The store cannot be used.
        """
        now = self._clock()
        labels = [_label(record, now) for record in records]
        with self._turn:
            state = _TaskState.of(self._store.recall(STATE))
            before = self._labels(state, now)
            words = {(label.key, label.annotator): label for of_key in before.values() for label in of_key.values()}
            words |= {(label.key, label.annotator): label for label in labels}
            given = {key for key, _ in words} | state.gone
            probabilities: dict[str, float] = {}
            for each in state.pools:
                probabilities |= each.probabilities(given)
            touched = [
                replace(label, probability=probabilities.get(label.key, label.probability)) for label in words.values()
            ]
            changed = [label for label in touched if before.get(label.key, {}).get(label.annotator) != label]
            new = self._store.add_labels(changed)
            known = {key: self._sheet(key) is not None for key in {label.key for label in labels}}
            unmatched = sum(not known[label.key] for label in labels)
            kept = len({(label.key, label.annotator) for label in labels})
            return {"new": new, "replaced": kept - new, "unmatched": unmatched}

    def labels(self, after: tuple[float, str, str] | None = None) -> Iterator[dict[str, Any]]:
        """All labels, oldest first, as JSON values: those behind that (at, key, annotator), where one is given.

        Raises:
            StoreError: The store cannot be read.
        """
        while page := self._store.labels_after(after, PAGE):
            yield from (label.to_record() for label in page)
            after = (page[-1].at, page[-1].key, page[-1].annotator)

    def picked_until(self) -> float | None:
        """Instant up to which retention has taken some answers and left others; None where it took none.

        Raises:
            StoreError: The store cannot be read.
        """
        found = self._store.picked_until()
        return found if math.isfinite(found) else None

    def _labels(self, state: _TaskState, now: float) -> dict[str, dict[str, Label]]:
        """Labels that may be on a pool, by sample and annotator."""
        since = min([now - self._rules.fresh, *(made for made in state.made)])
        found: dict[str, dict[str, Label]] = {}
        for label in self._store.labels(since):
            found.setdefault(label.key, {})[label.annotator] = label
        return found

    def _task(self, key: str) -> dict[str, Any] | None:
        found = answer_verdicts(self._store, self._rules.judges, key)
        if found is None or found.sample is None:
            return None
        first = found.lines.get(self._rules.chain[0]) or next(iter(found.lines.values()))
        claims = [{name: claim[name] for name in ("text", "start", "end")} for claim in first["claims"]]
        return {"key": key, "route": found.route, "at": found.at, "sample": dict(found.sample), "claims": claims}

    def _refreshed(self, now: float) -> _TaskState:
        """The pools, with a new one where there is a reason for one and traffic for it."""
        state = _TaskState.of(self._store.recall(STATE))
        state.forget(now - self._rules.fresh)
        labels = self._labels(state, now)
        given = _given(state, labels)
        left = any(place.key not in given for each in state.pools for place in each.places)
        if left and now - state.made[-1] < ANEW_SECONDS:
            return state
        rows, share = self._since(state, now)
        known = [candidate for row in rows if (candidate := self._candidate(row, share)) is not None]
        if known:
            state.pools.append(pool(known, self._rules.share_unsure, self._uniform, PLACES))
            state.made.append(now)
        return state

    def _since(self, state: _TaskState, now: float) -> tuple[list[ScoreRow], float]:
        """Readings of the last judge that no pool holds, thinned out by a hash; and the share that was kept."""
        last = self._rules.chain[-1]
        kept: list[tuple[int, str, ScoreRow]] = []
        limit = 1 << 64
        while rows := self._store.window(state.until, now - self._rules.fresh, ROWS):
            for row in rows:
                if row.judge == last and row.version == self._rules.judges.get(last) and row.scores is not None:
                    heapq.heappush(kept, (-int(key_of(STATE, row.key)[:16], 16), row.key, row))
                    if len(kept) > CANDIDATES:
                        limit = min(limit, -heapq.heappop(kept)[0])
            state.until = rows[-1].seq
        return [row for _, _, row in kept], limit / (1 << 64)

    def _sheet(self, key: str) -> AnswerVerdicts | None:
        return answer_verdicts(self._store, self._rules.judges, key, texts=False)

    def _candidate(self, row: ScoreRow, share: float) -> LabelCandidate | None:
        found = self._sheet(row.key)
        if found is None or any(judge not in found.scores for judge in self._rules.chain):
            return None
        return LabelCandidate(row.key, row.probability * share, unsure(list(found.lines.values())))


def _given(state: _TaskState, labels: Mapping[str, Any]) -> set[str]:
    return {*labels, *state.gone}


def _chars(task: Mapping[str, Any]) -> int:
    """About as many bytes as a task takes in a response."""
    sample = task["sample"]
    texts = [sample["question"], sample["answer"], *(each["text"] for each in sample["contexts"])]
    return sum(len(each or "") for each in texts) + sum(len(each["text"]) for each in task["claims"])


def _doubles(labels: Mapping[str, Mapping[str, Label]], share: float) -> Sequence[str]:
    """Samples that one person has labelled and another one is to label too."""
    return [
        key
        for key, words in labels.items()
        if len(words) == 1 and is_double(key, share) and next(iter(words.values())).probability is not None
    ]


def _label(record: Mapping[str, Any], now: float) -> Label:
    try:
        return parse_label(record, now)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"this is no label: {type(error).__name__} {error}") from error
