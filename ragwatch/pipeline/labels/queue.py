"""Queue of an annotator: the samples that were given to one person, and how far they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragwatch.core.labels.label import Label
from ragwatch.pipeline.labels.task_state import TaskState


def label_queue(
    state: TaskState, annotator: str, labels: Mapping[str, Mapping[str, Label]], since: float
) -> dict[str, Any]:
    """Return the keys of all samples of a person (`given`), the open ones in their order (`open`), and the progress.

    A label that was taken back is to be given again. `done` counts samples that are labelled since an instant, `twice`
    those of `done` and `open` that two people are given, and `last` is the sample that was labelled last since then.

    Args:
        state: What was given to whom.
        annotator: Name of the person.
        labels: Labels by sample and annotator.
        since: Instant from which labels count as done, in seconds since the epoch.
    """
    own = {key: of_key[annotator] for key, of_key in labels.items() if annotator in of_key}
    own = {key: label for key, label in own.items() if label.revoked is None}
    given = [key for key, names in state.given.items() if annotator in names]
    ranks = {place.key: place.rank for entry in state.pools for place in entry.pool.places}
    is_open = sorted(
        (key for key in given if key not in own and key not in state.gone),
        key=lambda key: (not _others(labels, key, annotator), ranks.get(key, 0.0), key),
    )
    recent = {key: label.at for key, label in own.items() if label.at >= since}
    return {
        "given": given,
        "open": is_open,
        "done": len(recent),
        "twice": sum(len(state.given.get(key, ())) > 1 for key in (*recent, *is_open)),
        "last": max(recent, key=lambda key: (recent[key], key), default=None),
    }


def _others(labels: Mapping[str, Mapping[str, Label]], key: str, annotator: str) -> bool:
    """Whether somebody else has labelled a sample: such samples come first, as in `LabelTasks.tasks`."""
    return any(name != annotator for name in labels.get(key, ()))
