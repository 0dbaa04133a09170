"""Which texts are kept after judging, as `store.texts` says, and what remains of a verdict whose texts are deleted."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

TEXT_SEARCH = "Whether words of questions and answers are indexed for searches; never with `encryption`."


class Texts(StrEnum):
    """Texts of which answers are kept after judging."""

    ALL = "all"
    FAILING = "failing"
    NONE = "none"


def without_texts(line: Mapping[str, Any], identity: str | None = None) -> dict[str, object]:
    """Return a verdict line without texts.

    >>> line = {"id": "r1", "claims": [{"text": "Cats purr.", "evidence": "purr", "start": 0}], "missing": ["why"]}
    >>> without_texts(line)["claims"], without_texts(line, "key")["id"]
    ([{'text': '', 'evidence': None, 'start': 0}], 'key')

    Args:
        line: The verdict line.
        identity: Replaces the id of the sample, and those of its contexts are left out; None keeps them.
    """
    kept = dict(line)
    kept["claims"] = [{**claim, "text": "", "evidence": None} for claim in line.get("claims") or ()]
    kept["missing"] = []
    if criteria := line.get("criteria"):
        kept["criteria"] = [{**reading, "quote": None} for reading in criteria]
    if isinstance(reference := line.get("reference"), Mapping):
        kept["reference"] = {**reference, "missing": []}
    if identity is not None:
        kept["id"] = identity
        kept["contexts"] = [{**context, "id": None} for context in line.get("contexts") or ()]
    return kept
