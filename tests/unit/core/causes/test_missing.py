"""Documents that are no longer retrieved: told from those that are merely rare, whatever fails."""

from __future__ import annotations

import random

from support.slices import an_answer

from ragwatch.core.causes.slices import MAX_NAMED, Answer, missing_documents, places_by_attribute


def traffic(gone: range, *, lost: int, metadata: bool = False, count: int = 600) -> list[Answer]:
    """Answers with four of 60 documents each, of which the first `lost` are missing in a period."""
    rng = random.Random(5)
    answers = []
    for number in range(count):
        drawn = [int(rng.random() ** 1.5 * 60) for _ in range(4)]
        names = [f"doc-{one:02}" for one in drawn if not (number in gone and one < lost)]
        release = {"release": "v2" if number in gone else "v1"} if metadata else {}
        answers.append(an_answer(number, contexts=names, metadata=release))
    return answers


def missing(answers: list[Answer]) -> list[tuple[int, int, tuple[str, ...]]]:
    """Begin, end and names of what is missing."""
    slices = missing_documents(answers, places_by_attribute(answers))
    return [(min(one.places), max(one.places), one.values) for one in slices]


def test_documents_that_vanish_are_named_with_their_period() -> None:
    """From some answer until now, or while a release was out: the most missed come first."""
    ((begin, end, names),) = missing(traffic(range(400, 600), lost=50))
    assert (begin in range(375, 426), end) == (True, 599)
    assert set(names) <= {f"doc-{number:02}" for number in range(50)}
    assert names[0] == "doc-00"
    assert len(names) == MAX_NAMED
    ((begin, end, _),) = missing(traffic(range(313, 431), lost=50, metadata=True))
    assert (begin, end) == (313, 430)


def test_healthy_retrieval_misses_nothing() -> None:
    """Documents that are rare, few that vanish, a new release, or a short history are no vanished index."""
    assert missing(traffic(range(0), lost=0)) == []
    assert missing(traffic(range(400, 600), lost=60, count=400)) == []
    assert missing(traffic(range(400, 600), lost=0, metadata=True)) == []
    assert missing([an_answer(number) for number in range(100)]) == []
    assert missing([an_answer(number, contexts=["a"]) for number in range(4)]) == []


def test_what_is_missing_does_not_depend_on_what_fails() -> None:
    """The period is chosen by what was retrieved alone."""
    answers = traffic(range(400, 600), lost=50)
    failing = [answer._replace(failing=answer.seq % 3 == 0) for answer in answers]
    assert missing(failing) == missing(answers)
