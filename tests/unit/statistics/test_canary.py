"""Canaries as values: what one may expect, and what it is called."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.canaries import a_canary, a_failure, a_reply, a_text
from support.kit import AT

from ragwatch.model.sample import Context
from ragwatch.statistics.canary import definition
from ragwatch.statistics.canary.answer import GOLD, RETRIEVED, JudgedAnswer, answers_line, faults, gold_texts, sample_of

DAY = 86400.0
NOON = 20_000.5 * DAY
MARKS = definition.CanaryMarks(b"secret")
CANARY = a_canary(definition.Expected("a", "Text of a."), reference="A good answer.")


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda: definition.Expected(grade=definition.Grade.HIGHLY_RELEVANT), "needs an id or a text"),
        (lambda: a_canary("d1", category=definition.Category.NEGATIVE), "a negative canary expects nothing"),
        (a_canary, "expects nothing; give `expected`"),
        (lambda: a_canary("d1", "d1"), "expects one context twice"),
        (lambda: a_canary(a_text("One."), a_text("One.", 2)), "expects one context twice"),
        (lambda: a_canary("d1", min_recall=0.0), "min_recall must be above 0 and at most 1"),
        (lambda: a_canary("d1", min_recall=1.01), "min_recall must be above 0 and at most 1"),
    ],
)
def test_what_no_canary_may_expect(mistake: Callable[[], object], message: str) -> None:
    """What nothing can meet, what contradicts itself, what never fails, and what weighs double."""
    with pytest.raises(ValueError, match=message):
        mistake()


def test_names_are_labels() -> None:
    """Short whatever the question, readable where it can be, different for different long questions.

    An id is its own label; a text lends its beginning.
    """
    labels = [definition.Expected("d1", "Long text.").label, a_text("x" * 500).label]
    assert labels == ["d1", "x" * definition.MAX_NAME_CHARS]
    long = [definition.name_of("why is the sky " * 30 + end) for end in ("blue?", "red?")]
    assert definition.name_of("  What's   up? ") == "what-s-up"
    assert len(set(long)) == 2
    assert all(len(name) <= definition.MAX_NAME_CHARS and name.startswith("why-is-the-sky") for name in long)
    for query in ("?!", "", "\ud800"):  # without words: a hash, which is the same after a restart
        assert definition.name_of(query).startswith("canary-")
        assert definition.name_of(query) == definition.name_of(query) != definition.name_of("!?")


@pytest.mark.parametrize(
    ("category", "usual"),
    [
        *(("simple_factual", {1, 2}), ("complex_factual", {3, 4, 5}), ("procedural", {5, 6, 7, 8, 9, 10})),
        *(("entity_centric", {3, 4, 5}), ("comparative", {2, 3, 4}), ("negative", {0}), ("temporal", {0})),
    ],
)
def test_each_category_has_its_usual_number_of_contexts(category: str, usual: set[int]) -> None:
    """Requirements item 47: 1-2, 3-5, 5-10, 3-5, 2-4, none, and none yet for what is not indexed."""
    numbers = set()
    for number in range(12):
        try:
            canary = a_canary(*(f"d{each}" for each in range(number)), category=definition.Category(category))
        except ValueError:
            continue
        if canary.unusual_number is None:
            numbers.add(number)
        else:
            assert f"expects {number}, {category} queries" in canary.unusual_number
    assert numbers == usual


def test_a_temporal_canary_expects_nothing_until_its_answer_is_indexed() -> None:
    """Until then it is one whose retriever must return nothing relevant."""
    assert a_canary(category=definition.Category.TEMPORAL).negative
    indexed = a_canary("d1", category=definition.Category.TEMPORAL)
    assert not indexed.negative
    assert indexed.unusual_number == "expects 1, temporal queries none: their answers are not indexed yet"


@given(st.text(max_size=40).map(lambda name: name.strip() or "docs"), st.floats(0.0, 4e9))
def test_our_marks_are_valid(suite: str, now: float) -> None:
    """Whatever the suite is called, and whenever it is asked; blanks around it do not matter.

    Without a secret the name is sent, and answers count as traffic: beside a state that cannot be read.
    """
    assert definition.CanaryMarks().mark("docs", now) == "docs"
    mark = MARKS.mark(suite, now)
    assert MARKS.is_valid(mark, now)
    assert MARKS.is_valid(f" {mark} ", None)
    assert not definition.CanaryMarks(b"other").is_valid(mark, now)
    assert not definition.CanaryMarks().is_valid(mark, now)


@given(st.one_of(st.text(), st.booleans(), st.integers(), st.none(), st.lists(st.text()), st.just("docs.20000.")))
def test_nothing_else_is(value: object) -> None:
    """No text, number or flag that was not made with the secret."""
    assert not MARKS.is_valid(value, None)


def test_a_mark_that_was_seen_hides_the_answers_of_its_day_alone() -> None:
    """One day before and after are allowed for clocks; the day cannot be rewritten."""
    mark = MARKS.mark("docs", NOON)
    assert [MARKS.is_valid(mark, NOON + days * DAY) for days in (-2, -1, 0, 1, 2)] == [False, True, True, True, False]
    suite, day, digest = mark.split(".")
    assert not MARKS.is_valid(f"{suite}.{int(day) + 2}.{digest}", NOON + 2 * DAY)
    assert not MARKS.is_valid(f"other.{day}.{digest}", NOON)
    assert not MARKS.is_valid(f"{'d' * 400}{mark}", NOON)


def test_an_answer_is_a_sample_with_its_reference() -> None:
    """Contexts in the order of the reply, and a mark that keeps it apart from live traffic.

    An oracle run has the contexts it was given, and an id of its own, so that both answers can be kept.
    """
    sample = sample_of(CANARY, a_reply("a", answer="Yes."), suite="docs", at=AT)
    assert (sample.question, sample.answer) == ("What about refunds?", "Yes.")
    assert (sample.reference, sample.at) == ("A good answer.", AT)
    assert sample.contexts == (Context("Text of a.", "a", 0.9),)
    assert sample.metadata == {"canary": "refunds", "suite": "docs", "run": "canary"}
    oracle = sample_of(CANARY, definition.Retrieved(answer="No."), suite="docs", at=AT, gold=gold_texts(CANARY))
    assert (oracle.contexts, oracle.metadata["run"]) == ((Context("Text of a."),), "oracle")
    assert oracle.id != sample.id


@pytest.mark.parametrize(
    "retrieved", [a_reply("a"), a_failure(), definition.Retrieved((definition.Hit("a", None),), answer="Yes.")]
)
def test_half_a_sample_is_none(retrieved: definition.Retrieved) -> None:
    """No answer, or a context without its text: a judge would misread it."""
    assert sample_of(CANARY, retrieved, suite="docs", at=AT) is None


def test_gold_is_whole_or_none() -> None:
    """An id alone is no context that a generator could be given."""
    assert gold_texts(a_canary(definition.Expected("a", "One."), a_text("Two."))) == ("One.", "Two.")
    assert gold_texts(a_canary(definition.Expected("a", "One."), "b")) is None
    assert gold_texts(a_canary(category=definition.Category.NEGATIVE)) is None


def judged(contexts: str, correctness: float | None, **parts: Any) -> JudgedAnswer:
    """An answer to one canary; None: not judged."""
    scores = None if correctness is None else {"correctness": correctness}
    return JudgedAnswer("c", contexts, "Yes.", scores, **parts)


@pytest.mark.parametrize(
    ("gold", "retrieved", "fault"),
    [
        (0.0, 0.0, "generator"),
        (0.49, 1.0, "generator"),
        (1.0, 0.0, "retriever"),
        (None, 0.0, "unknown"),
        (1.0, 1.0, None),
        (0.0, None, "generator"),
        (None, None, None),
    ],
)
def test_the_stage_at_fault(gold: float | None, retrieved: float | None, fault: str | None) -> None:
    """Wrong with the right contexts: the generator. Right with them alone: the retriever. Not asked: unknown."""
    answers = judged(GOLD, gold), judged(RETRIEVED, retrieved)
    assert faults(answers) == ({} if fault is None else {"c": fault})
    line = answers_line(answers)
    assert line is not None
    assert line["correctness"] == {"gold": gold, "retrieved": retrieved}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (JudgedAnswer("c", GOLD, "I do not know.", {"correctness": None}, abstained=True), True),
        (JudgedAnswer("c", GOLD, "Bees.", {"faithfulness": 0.0}), True),
        (JudgedAnswer("c", GOLD, "Bees.", {"faithfulness": 0.0, "correctness": 1.0}), False),
        (JudgedAnswer("c", GOLD, "Bees.", {"faithfulness": None}), None),
        (JudgedAnswer("c", GOLD, "Bees.", None, "timeout"), None),
    ],
)
def test_what_is_a_wrong_answer(answer: JudgedAnswer, expected: object) -> None:
    """An abstention is one. Without a reference faithfulness decides, and nothing does where no judge has read it."""
    assert answer.wrong is expected
    assert answer.unread is (answer.why == "timeout")
