"""Canaries and replies for tests, a line each."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ragwatch.offline.diagnosis.definition import Chunk, Question
from ragwatch.pipeline.canaries import CanaryLoop, CanarySuite
from ragwatch.ports import LoopContext, Store
from ragwatch.statistics.canary.definition import Canary, Direction, Expected, Failure, Grade, Hit, Retrieved
from ragwatch.statistics.canary.report import CanaryReport, evaluate
from ragwatch.telemetry import Telemetry
from support.kit import AT, Clock


def a_canary(*expected: Any, name: str = "refunds", **parts: Any) -> Canary:
    """A canary that expects these ids (or contexts)."""
    found = tuple(Expected(each) if isinstance(each, str) else each for each in expected)
    return Canary(name, parts.pop("query", f"What about {name}?"), found, **parts)


def a_text(text: str, grade: int = 1) -> Expected:
    """A context expected by its text."""
    return Expected(None, text, Grade(grade))


def a_reply(*ids: str, scores: Any = None, direction: str | None = "similarity", **parts: Any) -> Retrieved:
    """A reply of these ids; scores fall from 0.9 by 0.1 unless given."""
    found = [0.9 - 0.1 * rank for rank in range(len(ids))] if scores is None else scores
    hits = tuple(Hit(name, f"Text of {name}.", score) for name, score in zip(ids, found, strict=True))
    return Retrieved(hits, None if direction is None else Direction(direction), **parts)


def a_failure(reason: str = "timeout") -> Retrieved:
    """A call that brought nothing."""
    return Retrieved(failure=Failure(reason), detail="no reply", seconds=10.0)


def a_report(canary: Canary, retrieved: Retrieved, cutoff: int = 5, **parts: Any) -> CanaryReport:
    """What the reply means."""
    return evaluate(canary, retrieved, cutoff, at=AT, **parts)


def a_canary_loop(
    store: Store,
    *suites: CanarySuite,
    telemetry: Telemetry | None = None,
    clock: Callable[[], float] | None = None,
    holder: str = "me",
    **parts: Any,
) -> CanaryLoop:
    """The loop of some suites."""
    clock = clock or Clock()
    return CanaryLoop(suites, LoopContext(store, telemetry or Telemetry(), clock), holder=holder, **parts)


class ScriptedProbe:
    """A service that replies by query, and to any other query with the context `d1`.

    Args:
        replies: Replies by query.
        first: Replies to the first queries, whichever they are.
        gate: What every query waits for.

    Attributes:
        asked: Queries, with the number of contexts that each wants.
        given: Contexts handed over for an answer, which is always `answer`.
        busy: Set by a query behind the first replies.
        is_closed: Whether it was closed, and `late` how many replies came afterwards.
    """

    name, concurrency, answer = "docs", 4, "Refunds are paid within five days."

    def __init__(
        self,
        replies: Mapping[str, Retrieved] | None = None,
        *,
        first: Sequence[Retrieved] = (),
        gate: asyncio.Event | None = None,
    ) -> None:
        self.replies, self.first, self.gate = dict(replies or {}), list(first), gate
        self.asked: list[tuple[str, int]] = []
        self.given: list[Sequence[str]] = []
        self.busy, self.is_closed, self.late = asyncio.Event(), False, 0

    async def ask(self, query: str, k: int) -> Retrieved:
        """The reply to this query."""
        self.asked.append((query, k))
        if self.first:
            return self.first.pop(0)
        self.busy.set()
        if self.gate is not None:
            await self.gate.wait()
        self.late += self.is_closed
        return self.replies.get(query) or a_reply("d1", answer="Text of d1.")

    async def ask_with(self, query: str, contexts: Sequence[str]) -> Retrieved:  # noqa: ARG002 - the port's
        """An answer from these contexts."""
        self.given.append(contexts)
        return Retrieved(answer=self.answer)

    async def close(self) -> None:
        """From now on nothing can be asked."""
        self.is_closed = True


def a_suite_of(**place: Any) -> dict[str, Any]:
    """A suite as in the configuration, whose probe nobody answers."""
    probe = {"kind": "http", "url": "http://127.0.0.1:9/", "body": {"q": "{{ query }}"}, "contexts": "hits"}
    items = [{"query": "q", "expected": ["d1"]}]
    return {"suite": "docs", "schedule": "1d", "items": items, "probe": probe, **place}


SUBJECTS = (
    *("cats", "dogs", "mills", "rivers", "clocks", "bridges", "lamps", "ships", "trees", "wells", "kites", "drums"),
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
