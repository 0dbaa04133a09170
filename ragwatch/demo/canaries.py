"""Builds the canary suite of the demo from questions whose passage the healthy retriever finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypedDict

from ragwatch.demo.questions import Question
from ragwatch.demo.stable_hash import stable_hash

COUNT = 20
KS = (1, 3, 5)
EVERY = "15s"


class CanaryItem(TypedDict):
    """A canary in the format of the configuration."""

    query: str
    expected: list[str]
    name: str


def canaries(
    questions: Iterable[Question], search: Callable[[str, int], Sequence[str]], count: int = COUNT
) -> list[CanaryItem]:
    """Selects questions with the passage that answers each, in the format of the configuration.

    Args:
        questions: Questions of users; a hash selects, so the selection is deterministic.
        search: Returns the ids of the k passages that the retriever finds, best first. Questions that the healthy
            retriever misses are excluded, because a canary must detect a change.
        count: Maximum number of canaries.
    """
    items: list[CanaryItem] = []
    for question in sorted(questions, key=lambda question: stable_hash(f"canary {question.text}")):
        expected = f"{question.about}#0"
        if question.about is not None and expected in search(question.text, KS[-1]):
            items.append({"query": question.text, "expected": [expected], "name": question.about})
        if len(items) == count:
            break
    return list({item["name"]: item for item in items}.values())


def suite(address: str, items: Sequence[CanaryItem]) -> dict[str, object]:
    """Builds the suite in the format of the configuration, which asks the demo service at an address."""
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
