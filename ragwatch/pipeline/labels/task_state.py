"""State of label tasks: which samples are to be labelled, and to whom each was given."""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count, takewhile
from operator import attrgetter

from ragwatch.ports import SavedState
from ragwatch.statistics.labels.label import Label
from ragwatch.statistics.labels.selection import LabelPool, LabelPosition, joint_probabilities
from ragwatch.statistics.sampling import SamplingHash

MAX_GROUPS = 8  # of a pool: so many people can label it, each samples of their own
MIN_GROUP = 10  # samples

Labels = Mapping[str, Mapping[str, Label]]  # by sample and annotator


@dataclass(slots=True)
class TaskPool:
    """A pool whose groups belong to annotators."""

    made: float  # when it was made, in seconds since the epoch
    pool: LabelPool
    groups: list[LabelPool]  # random groups of them
    owners: dict[int, str] = field(default_factory=dict)  # annotator by index of the group; the others are free

    def to_record(self) -> dict[str, object]:
        """The pool as JSON values."""
        record: dict[str, object] = {
            "made": self.made,
            "groups": len(self.groups),
            "owners": {str(index): name for index, name in self.owners.items()},
            "places": [(place.key, place.rank, place.size, place.probability) for place in self.pool.places],
        }
        if math.isfinite(self.pool.beyond):
            record["beyond"] = self.pool.beyond
        return record

    def claim(self, annotator: str) -> bool:
        """Give a free group to an annotator. False if there is none."""
        free = next((index for index in range(len(self.groups)) if index not in self.owners), None)
        if free is not None:
            self.owners[free] = annotator
        return free is not None

    def of(self, annotator: str) -> Iterator[LabelPosition]:
        """The samples of an annotator by rising rank."""
        groups = (group.places for index, group in enumerate(self.groups) if self.owners.get(index) == annotator)
        return heapq.merge(*groups, key=attrgetter("rank"))

    def probabilities(self, shown: Collection[str], without: str | None = None) -> dict[str, float]:
        """The joint probability of each sample that was shown, as if one annotator had labelled nothing."""
        counted = [index for index in range(len(self.groups)) if self.owners.get(index, "") != without]
        return joint_probabilities(self.groups, shown, counted)


@dataclass(slots=True)
class TaskState:
    """Stored state: the pools, and the last score row that was read."""

    until: int  # number of that row
    pools: list[TaskPool]  # the pools, oldest first
    gone: set[str]  # samples of pools that cannot be labelled any more
    given: dict[str, list[str]]  # to whom each sample was given, by sample; the first is the owner of its group

    @classmethod
    def of(cls, record: SavedState | None, sampling: SamplingHash) -> TaskState:
        """Read what `to_record` wrote, also in earlier versions: their pools are one group, and given to nobody."""
        if record is None:
            return cls(0, [], set(), {})
        pools = []
        for entry in record["pools"]:
            places = tuple(LabelPosition(*place) for place in entry["places"])
            whole = LabelPool(places, entry.get("beyond", math.inf))
            owners = {int(index): name for index, name in entry.get("owners", {}).items()}
            pools.append(TaskPool(entry["made"], whole, whole.groups(entry.get("groups", 1), sampling), owners))
        given = {key: list(names) for key, names in record.get("given", {}).items()}
        return cls(int(record["until"]), pools, set(record["gone"]), given)

    def to_record(self) -> dict[str, object]:
        """The state as JSON values."""
        return {
            "until": self.until,
            "gone": sorted(self.gone),
            "given": self.given,
            "pools": [entry.to_record() for entry in self.pools],
        }

    def add(self, pool: LabelPool, now: float, sampling: SamplingHash) -> None:
        """Add a pool."""
        groups = max(1, min(MAX_GROUPS, len(pool.places) // MIN_GROUP))
        self.pools.append(TaskPool(now, pool, pool.groups(groups, sampling)))

    def forget(self, before: float) -> None:
        """Drop pools that were made before an instant."""
        self.pools = [entry for entry in self.pools if entry.made >= before]
        places = {place.key for entry in self.pools for place in entry.pool.places}
        self.gone &= places
        self.given = {key: names for key, names in self.given.items() if key in places}

    def is_given(self, label: Label) -> bool:
        """Whether its annotator was asked for it, so that its probability is known."""
        if label.key in self.given:
            return label.annotator in self.given[label.key]
        return label.probability is not None  # given by an earlier version, or imported by whom the state belongs to

    def has_free_groups(self) -> bool:
        """Whether a group belongs to nobody."""
        return any(len(entry.owners) < len(entry.groups) for entry in self.pools)

    def open_samples(self, annotator: str, labels: Labels, wanted: int) -> list[str]:
        """Samples that are an annotator's to label, in order; groups of pools are claimed until there are enough."""
        for _ in takewhile(lambda _: len(self._open(annotator, labels)) < wanted, count()):
            claimed = [entry.claim(annotator) for entry in self.pools]
            if not any(claimed):
                break
        return self._open(annotator, labels)

    def _open(self, annotator: str, labels: Labels) -> list[str]:
        places = heapq.merge(*(entry.of(annotator) for entry in self.pools), key=attrgetter("rank"))
        done = self._labelled(labels) | self.gone
        return [place.key for place in places if place.key not in done]

    def _labelled(self, labels: Labels) -> set[str]:
        return {key for key, of_key in labels.items() if any(map(self.is_given, of_key.values()))}

    def weighted(self, labels: Labels) -> Iterator[Label]:
        """The labels with the probabilities that follow from what people were given and have labelled by now.

        A label that its annotator was not asked for has none.
        """
        shown = self._labelled(labels) | self.gone
        known = self._probabilities(shown)
        owners = {name for entry in self.pools for name in entry.owners.values()}
        without = {name: self._probabilities(shown, name) for name in owners}
        for key, of_key in labels.items():
            for label in of_key.values():
                if not self.is_given(label):
                    yield replace(label, probability=None, owner=None, without={})
                elif key not in known:
                    yield label
                else:
                    others = {name: values[key] for name, values in without.items() if key in values}
                    owner = self.given.get(key, [label.annotator])[0]
                    yield replace(label, probability=known[key], owner=owner, without=others)

    def _probabilities(self, shown: Collection[str], without: str | None = None) -> dict[str, float]:
        probabilities_by_key: dict[str, float] = {}
        for entry in self.pools:
            probabilities_by_key |= entry.probabilities(shown, without)
        return probabilities_by_key
