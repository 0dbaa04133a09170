"""Questions with retrieved chunks for the checklist, a line each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ragwatch.offline.diagnosis.definition import Chunk, Question

SUBJECTS = (
    "cats",
    "dogs",
    "mills",
    "rivers",
    "clocks",
    "bridges",
    "lamps",
    "ships",
    "trees",
    "wells",
    "kites",
    "drums",
)


def a_chunk(name: str, text: str | None = None, *, score: float | None = None, relevant: bool | None = None) -> Chunk:
    """A chunk, with a text of its own unless given."""
    return Chunk(
        name, f"This is what there is to say about {name}, at length." if text is None else text, score, relevant
    )


def a_question(name: str, *chunks: Chunk, text: str | None = "What is it?", **parts: Any) -> Question:
    """A question with its chunks."""
    return Question(name, text, chunks, **parts)


def some_questions(count: int = 12, **parts: Any) -> list[Question]:
    """Questions about different subjects, each with one complete, relevant chunk and an irrelevant one."""
    return [
        a_question(
            f"q{number}",
            a_chunk(
                f"{subject}.md#0",
                f"All that we know about {subject} stands here, number by number, and no word more than that.",
                relevant=True,
            ),
            a_chunk(
                f"{subject}.md#7",
                f"Nothing to see here but {subject} of another kind altogether, which nobody ever asks for.",
                relevant=False,
            ),
            text=f"What about {subject}?",
            **parts,
        )
        for number, subject in enumerate(SUBJECTS[:count])
    ]


def words(text: str) -> Iterable[str]:
    """A plain way to split a text into terms."""
    stripped = (word.strip(".,?!").lower() for word in text.split())
    return (word for word in stripped if len(word) > 4)
