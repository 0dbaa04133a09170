"""Label tasks: gives people samples to label, and stores each label with its inclusion probability.

Answers that the last judge of the chain has judged since the last time form a pool; tasks are the samples with the
lowest ranks of all pools together. After each label, the probabilities of all labels of its pool are computed again,
because they depend on how many samples of it are labelled. So they are right wherever people stop.
"""

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from threading import Lock

from ragwatch.pipeline.labels.task_state import TaskState
from ragwatch.pipeline.labels.verdicts import DAY, AnswerVerdicts, LabelRules, answer_verdicts
from ragwatch.ports import Clock, ScoreRow, Store
from ragwatch.statistics.labels.label import Label, LabelQueue, LabelTask, parse_label
from ragwatch.statistics.labels.selection import JudgeScores, LabelCandidate, is_double, pool, unsure
from ragwatch.statistics.sampling import SamplingHash, key_of

STATE = "labelling"
ROWS = 5000
MAX_CANDIDATES = 2000  # of a pool, whose verdicts are read; of more, a random part is taken
POOL_SIZE = 400
POOL_SECONDS = 3600.0  # minimum age of a pool with samples left before there is another one
MAX_TASKS = 200
MAX_CHARS = 4 << 20  # of the texts of all tasks of a response, unless a single one is longer
PAGE = 500  # labels read at a time
MAX_LABELS = 1000  # of one sample


class LabelTasks:
    """Serves `ragwatch label`, through the daemon or without one. Thread-safe.

    Args:
        rules: Which judges are in force, and how samples are selected for labelling.
        uniform: Returns a random number between 0 and 1, for the selection.
        refuse: Raises `ConfigError` if the store does not keep the texts that people need.
        sampling: Selects candidates from many, and the samples that a second person labels.
    """

    def __init__(
        self,
        rules: LabelRules,
        *,
        store: Store,
        clock: Clock,
        uniform: Callable[[], float],
        refuse: Callable[[], None] = lambda: None,
        sampling: SamplingHash | None = None,
    ) -> None:
        self._refuse = refuse
        self._rules = rules
        self._store = store
        self._clock = clock
        self._uniform = uniform
        self._sampling = sampling or SamplingHash()
        self._lock = Lock()

    def tasks(self, annotator: str, count: int) -> list[LabelTask]:
        """Samples for a person, at most `count`: some that another person has labelled, then new ones.

        They must be shown in this order, and each needs a label, which may be empty.

        Raises:
            ConfigError: The store does not keep texts; labels of failing answers alone would bend estimates.
        """
        self._refuse()
        with self._lock:
            now = self._clock()
            state = self._refreshed(annotator, now)
            labels = self._labels(state, now)
            doubles = self._doubles(state, annotator, labels)
            limit = min(count, MAX_TASKS)
            doubles = doubles[: math.ceil(limit * self._rules.double)]
            gone = -1
            while gone != len(state.gone):  # where retention has deleted some, there may be others
                gone = len(state.gone)
                fresh = state.open_samples(annotator, labels, limit)
                tasks = self._shown(state, [*doubles, *fresh], limit)
            for task in tasks:
                if annotator not in (names := state.given.setdefault(task["key"], [])):
                    names.append(annotator)
            self._store.remember(STATE, state.to_record())
            return tasks

    def queue(self, annotator: str) -> LabelQueue:
        """The samples that were given to a person and await a label, see `label_queue`. Changes nothing."""
        with self._lock:
            now = self._clock()
            state = TaskState.of(self._store.recall(STATE), self._sampling)
            return label_queue(state, annotator, self._labels(state, now), now - DAY)

    def task(self, key: str) -> LabelTask | None:
        """A sample with its texts and claims; None if no judge in force has judged it, or its text is deleted."""
        verdicts = answer_verdicts(self._store, self._rules.judges, key)
        if verdicts is None or verdicts.sample is None:
            return None
        first = verdicts.records.get(self._rules.chain[0]) or next(iter(verdicts.records.values()))
        task: LabelTask = {
            "key": key,
            "route": verdicts.route,
            "at": verdicts.at,
            "sample": verdicts.sample,
            "claims": [{"text": claim.text, "start": claim.start, "end": claim.end} for claim in first.claims],
        }
        if self._rules.criteria:
            task["criteria"] = [{"name": one.name, "question": one.question} for one in self._rules.criteria]
        return task

    def _shown(self, state: TaskState, keys: Sequence[str], limit: int) -> list[LabelTask]:
        """The first samples, at most `limit`, with their texts. Those without a text any more are noted."""
        tasks: list[LabelTask] = []
        chars_left = MAX_CHARS
        for key in keys:
            task = self.task(key) if len(tasks) < limit else None
            if task is not None and (_chars(task) <= chars_left or not tasks):
                tasks.append(task)
                chars_left -= _chars(task)
            elif task is not None or len(tasks) >= limit:
                break
            else:  # retention has deleted it, or it is damaged
                state.gone.add(key)
        return tasks

    def put(self, records: Iterable[Mapping[str, object]]) -> dict[str, int]:
        """Store labels. Returns how many are `new`, `replaced` and `unmatched` (no judge in force has judged it).

        A label on a sample that was given to its annotator has the probability from the pool, whatever its record
        says. What a label replaces is kept in it. Raises `ValueError`, and stores nothing, if a record is no label.
        """
        now = self._clock()
        labels = [_label(record, now) for record in records]
        unknown = {quantity for label in labels for quantity in label.scores} - set(self._rules.quantities)
        if unknown:
            raise ValueError(f"{min(unknown)} is no quantity; use one of: {', '.join(self._rules.quantities)}")
        with self._lock:
            state = TaskState.of(self._store.recall(STATE), self._sampling)
            before = self._labels(state, now)
            after = {(label.key, label.annotator): label for of_key in before.values() for label in of_key.values()}
            after |= {(label.key, label.annotator): self._successor(label) for label in labels}
            updated = state.weighted(_by_key(after.values()))
            changed = [label for label in updated if before.get(label.key, {}).get(label.annotator) != label]
            new = self._store.add_labels(changed)
            judged = {key: self._verdicts(key) is not None for key in {label.key for label in labels}}
            unmatched = sum(not judged[label.key] for label in labels)
            stored = len({(label.key, label.annotator) for label in labels})
            return {"new": new, "replaced": stored - new, "unmatched": unmatched}

    def revoke(self, key: str, annotator: str | None = None) -> int:
        """Take labels on a sample back, of one annotator or of all. They are kept. Returns how many."""
        with self._lock:
            now = self._clock()
            revoked = [
                replace(label, revoked=now)
                for label in self._store.labels_of(key, MAX_LABELS)
                if label.revoked is None and annotator in (None, label.annotator)
            ]
            self._store.add_labels(revoked)
            return len(revoked)

    @property
    def per_hour(self) -> int:
        """Labels that an authenticated annotator may send per hour."""
        return self._rules.per_hour

    def labels(self, after: tuple[float, str, str] | None = None) -> Iterator[dict[str, object]]:
        """All labels, oldest first, as JSON values; only those after (at, key, annotator), if given."""
        while page := self._store.labels_after(after, PAGE):
            yield from (label.to_record() for label in page)
            after = (page[-1].at, page[-1].key, page[-1].annotator)

    def pruned_until(self) -> float | None:
        """Instant up to which retention has deleted some answers and kept others; None where it has deleted none."""
        instant = self._store.pruned_until()
        return instant if math.isfinite(instant) else None

    def _successor(self, label: Label) -> Label:
        """A new label, with what it replaces; without a probability of its own it has that of what it replaces."""
        for old in self._store.labels_of(label.key, MAX_LABELS):
            if old.annotator == label.annotator:
                known = old.probability if label.probability is None else label.probability
                return replace(label, probability=known).after(old)
        return label

    def _labels(self, state: TaskState, now: float) -> dict[str, dict[str, Label]]:
        """Labels that may belong to a pool, by sample and annotator."""
        return _by_key(self._store.labels(min([now - self._rules.fresh, *(entry.made for entry in state.pools)])))

    def _refreshed(self, annotator: str, now: float) -> TaskState:
        """The state, with a new pool if one is due and there is traffic for it."""
        state = TaskState.of(self._store.recall(STATE), self._sampling)
        state.forget(now - self._rules.fresh)
        labels = self._labels(state, now)
        left = state.has_free_groups() or bool(state.open_samples(annotator, labels, 0))
        if left and now - state.pools[-1].made < POOL_SECONDS:
            return state
        rows, share = self._since(state, now)
        candidates = [candidate for row in rows if (candidate := self._candidate(row, share)) is not None]
        if candidates:
            state.add(pool(candidates, self._rules.share_unsure, self._uniform, POOL_SIZE), now, self._sampling)
        return state

    def _since(self, state: TaskState, now: float) -> tuple[list[ScoreRow], float]:
        """Rows of the last judge that are in no pool, or a part selected by a hash; and the share of that part."""
        last = self._rules.chain[-1]
        kept: list[tuple[int, str, ScoreRow]] = []
        limit = 1 << 64
        while rows := self._store.window(state.until, now - self._rules.fresh, ROWS):
            for row in rows:
                if row.judge == last and row.version == self._rules.judges.get(last) and row.scores is not None:
                    heapq.heappush(kept, (-int(self._sampling.place(key_of(STATE, row.key))[:16], 16), row.key, row))
                    if len(kept) > MAX_CANDIDATES:
                        limit = min(limit, -heapq.heappop(kept)[0])
            state.until = rows[-1].seq
        return [row for _, _, row in kept], limit / (1 << 64)

    def _doubles(self, state: TaskState, annotator: str, labels: Mapping[str, Mapping[str, Label]]) -> Sequence[str]:
        """Samples that one person has labelled and that this one shall label, too."""
        return [
            key
            for key, of_key in labels.items()
            if sum(label.probability is not None for label in of_key.values()) == 1
            and is_double(key, self._rules.double, self._sampling)
            and annotator not in of_key
            and (len(state.given.get(key, ())) < 2 or annotator in state.given[key])
        ]

    def _verdicts(self, key: str) -> AnswerVerdicts | None:
        return answer_verdicts(self._store, self._rules.judges, key, texts=False)

    def _candidate(self, row: ScoreRow, share: float) -> LabelCandidate | None:
        verdicts = self._verdicts(row.key)
        if verdicts is None or any(judge not in verdicts.scores for judge in self._rules.chain):
            return None
        readings = [
            JudgeScores(record.scores, [claim.support for claim in record.claims if claim.support is not None])
            for record in verdicts.records.values()
        ]
        suspect = any(record.instructions for record in verdicts.records.values())  # the judges may have been talked to
        return LabelCandidate(row.key, row.probability * share, 1.0 if suspect else unsure(readings))


def label_queue(
    state: TaskState, annotator: str, labels: Mapping[str, Mapping[str, Label]], since: float
) -> LabelQueue:
    """Return what was given to a person. A label that was taken back is to be given again.

    Labels since an instant count as done.
    """
    own = {key: of_key[annotator] for key, of_key in labels.items() if annotator in of_key}
    own = {key: label for key, label in own.items() if label.revoked is None}
    given = [key for key, names in state.given.items() if annotator in names]
    ranks = {place.key: place.rank for entry in state.pools for place in entry.pool.places}
    is_open = sorted(
        (key for key in given if key not in own and key not in state.gone),
        key=lambda key: (
            labels.get(key, {}).keys() <= {annotator},
            ranks.get(key, 0.0),
            key,
        ),  # as in `LabelTasks.tasks`
    )
    recent = {key: label.at for key, label in own.items() if label.at >= since}
    return {
        "given": given,
        "open": is_open,
        "done": len(recent),
        "twice": sum(len(state.given.get(key, ())) > 1 for key in (*recent, *is_open)),
        "last": max(recent, key=lambda key: (recent[key], key), default=None),
    }


def _by_key(labels: Iterable[Label]) -> dict[str, dict[str, Label]]:
    """Labels by sample and annotator."""
    by_key: dict[str, dict[str, Label]] = {}
    for label in labels:
        by_key.setdefault(label.key, {})[label.annotator] = label
    return by_key


def _chars(task: LabelTask) -> int:
    """Approximate size of a task in a response, in bytes."""
    sample = task["sample"]
    texts = [sample["question"], sample["answer"], *(context["text"] for context in sample["contexts"])]
    return sum(len(text or "") for text in texts) + sum(len(claim["text"]) for claim in task["claims"])


def _label(record: Mapping[str, object], now: float) -> Label:
    if not isinstance(record, Mapping):
        raise ValueError("is no label; write an object with key, annotator and scores")  # noqa: TRY004 - as for its fields
    if not isinstance(record.get("key"), str) or not record["key"]:
        raise ValueError("key: is missing or no text; give the key of the answer")
    try:
        return parse_label(record, now)
    except KeyError as error:
        raise ValueError(f"{error.args[0]}: is missing; add it") from error
    except (TypeError, AttributeError) as error:
        raise ValueError("a field has a value of the wrong type; see `ragwatch label --export`") from error
