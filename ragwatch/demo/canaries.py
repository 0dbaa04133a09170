"""Canaries of the demo: questions whose passage the healthy retriever finds, for ragwatch to ask again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from importlib.util import find_spec
from typing import Any

from ragwatch.demo.questions import Question

COUNT = 20
KS = (1, 3, 5)
EVERY = "15s"


def askable() -> bool:
    """Whether canaries can be asked here at all: that takes httpx, which the extra `probes` brings."""
    return find_spec("httpx") is not None


def canaries(
    questions: Iterable[Question], search: Callable[[str, int], Sequence[str]], count: int = COUNT
) -> list[dict[str, Any]]:
    """Questions with the passage that answers each, as they stand in a configuration.

    Args:
        questions: What users ask; a hash chooses, so the same ones are always chosen.
        search: Ids of the passages that the retriever finds, best first. A question that it misses while it is
            healthy is left out: a canary tells of change.
        count: How many, at most.
    """
    found: list[dict[str, Any]] = []
    for question in sorted(questions, key=lambda question: _place(question.text)):
        expected = f"{question.about}#0"
        if question.about is not None and expected in search(question.text, KS[-1]):
            found.append({"query": question.text, "expected": [expected], "name": question.about})
        if len(found) == count:
            break
    return list({each["name"]: each for each in found}.values())


def suite(address: str, items: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A suite as it stands in a configuration.

    Args:
        address: URL of the demo's service.
        items: What it asks.
    """
    return {
        "suite": "docs",
        "schedule": EVERY,
        "jitter": 1,
        "k": list(KS),
        "items": list(items),
        "probe": {
            "kind": "http",
            "url": f"{address}/search",
            "body": {"query": "{{ query }}", "k": "{{ k }}"},
            "contexts": "hits",
            "score": "similarity",
        },
    }


def _place(text: str) -> bytes:
    return blake2b(f"canary {text}".encode(), digest_size=8).digest()
