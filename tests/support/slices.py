"""Answers with traits, some of which fail more than others."""

import random
from collections.abc import Iterator
from typing import Any

from ragwatch.statistics.causes.slices import Answer

BEGIN = 1_700_000_000.0
NO_TRAITS: dict[str, Any] = {"contexts": [], "cited": [], "metadata": {}, "words": []}


def an_answer(number: int, *, failing: bool = False, **parts: Any) -> Answer:
    """The answer of this number; `parts` are fields of it or traits."""
    fields: dict[str, Any] = {
        "key": f"{number:032x}",
        "seq": number,
        "at": BEGIN + number,
        "route": "search",
        "judge": "embedded 1",
        "probability": 1.0,
        "failing": failing,
    }
    fields |= {name: parts.pop(name) for name in list(parts) if name in fields}
    return Answer(**fields | {"traits": NO_TRAITS | parts})


def traffic(count: int, share: float, *, seed: int, inside: float = 0.4, outside: float = 0.1) -> list[Answer]:
    """Answers of which a share has release v2, and fails more often; also ten other keys without any effect."""
    rng = random.Random(seed)
    return list(_traffic(rng, count, share, inside, outside))


def _traffic(rng: random.Random, count: int, share: float, inside: float, outside: float) -> Iterator[Answer]:
    for number in range(count):
        planted = rng.random() < share
        metadata = {"release": "v2" if planted else "v1"}
        metadata |= {f"other{key}": str(rng.randrange(4)) for key in range(5)}
        contexts = [f"doc-{int(rng.random() ** 2 * 60)}" for _ in range(4)]
        failing = rng.random() < (inside if planted else outside)
        yield an_answer(number, failing=failing, metadata=metadata, contexts=contexts, chars=rng.randrange(500))
