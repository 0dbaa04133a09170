"""Which texts are kept after judging, as `store.texts` says, and what remains of a verdict whose texts are deleted."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

TEXT_SEARCH = "Whether words of questions and answers are indexed for searches; never with `encryption`."


class Texts(StrEnum):
    """Texts of which answers are kept after judging."""

    ALL = "all"
    FAILING = "failing"
    NONE = "none"


def without_texts(line: Mapping[str, object], identity: str | None = None) -> dict[str, object]:
    """Return a verdict line without texts, and with an identity, without ids: the key stands for that of the sample.

    >>> line = {"id": "r1", "claims": [{"text": "Cats purr.", "evidence": "purr", "start": 0}], "missing": ["why"]}
    >>> without_texts(line)["claims"], without_texts(line, "key")["id"]
    ([{'text': '', 'evidence': None, 'start': 0}], 'key')
    """
    kept = dict(line)
    kept["claims"] = _each(line.get("claims"), text="", evidence=None)
    kept["missing"] = []
    if criteria := line.get("criteria"):
        kept["criteria"] = _each(criteria, quote=None)
    if isinstance(reference := line.get("reference"), Mapping):
        statements = _each(reference.get("statements"), text="", quotes=[], missing=[])
        kept["reference"] = {**reference, "missing": [], **({"statements": statements} if statements else {})}
    if identity is not None:
        kept["id"] = identity
        kept["contexts"] = _each(line.get("contexts"), id=None)
    return kept


def _each(items: object, **instead: str | list[str] | None) -> list[dict[str, object]]:
    """The objects of a list, with other values for some of their fields."""
    return [{**item, **instead} for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []
