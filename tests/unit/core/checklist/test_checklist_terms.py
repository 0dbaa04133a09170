"""The checklist on words and dates: vocabulary mismatch, stale documents."""

from __future__ import annotations

from support.checklists import a_chunk, a_question, some_questions, words

from ragwatch.core.checklist.definition import Status
from ragwatch.core.checklist.texts import freshness, vocabulary


def test_words_of_the_documents_are_fine() -> None:
    """Requests (`tell me`), numbers and tokens of redaction are no terms of the documents."""
    asked = a_question("r", text="Please explain number 12345678 about [EMAIL:0a1b2c] cats")
    finding = vocabulary([*some_questions(), asked], words)
    assert (finding.status, finding.figures["affected"]) == (Status.FINE, 0)
    assert finding.evidence == ()


def test_terms_that_no_chunk_holds() -> None:
    """The most frequent ones come first; the stage at fault on either side tells whether they matter."""
    users = [
        a_question(f"u{number}", text=f"Reimbursement of {kind}?", retrieval_failed=True)
        for number, kind in enumerate(("postage", "postage", "tariffs", "customs"))
    ]
    finding = vocabulary([*some_questions(retrieval_failed=False), *users], words)
    assert finding.status is Status.PROBLEM
    assert finding.summary == "4 of 16 questions (25 %) have a term that no retrieved chunk holds"
    assert finding.evidence[0] == "most frequent: reimbursement (4), postage (2), customs (1), tariffs (1)"
    assert finding.evidence[1].endswith("at fault for 100 % of these questions, and for 0 % of the others")
    assert finding.examples == ("u0", "u1", "u2", "u3")
    assert len(vocabulary([*some_questions(), *users], words).evidence) == 1


def test_without_questions_there_is_no_vocabulary() -> None:
    """A log may hold none."""
    finding = vocabulary(some_questions(5), words)
    assert finding.status is Status.NOT_MEASURABLE
    assert "fewer than 10 questions with a text" in finding.summary


def test_dates() -> None:
    """Questions about a time after the newest document; days and years compare; counts are no years."""
    dated = a_question("d", a_chunk("x", "Valid since 2024-03-01. It holds 2048 rows."), text=None, day="2025-06-01")
    late = [
        a_question(f"l{number}", text=f"What changed in {when}?") for number, when in enumerate(("2025", "2024-05-02"))
    ]
    early = [a_question("e1", text="Was it so in 2024?"), a_question("e2", text="Are 2048 rows too many?")]
    finding = freshness([*some_questions(), dated, *late, *early])
    assert finding.status is Status.PROBLEM
    assert finding.examples == ("l0", "l1")
    assert finding.summary.startswith(
        "2 of 16 questions name a date after the newest one in the documents (2024-03-01), and 0 retrieved"
    )
    assert finding.evidence == ("the newest answer is of 2025-06-01",)
    assert freshness([*some_questions(), dated, *early]).status is Status.FINE


def test_old_versions() -> None:
    """Of near-duplicates with dates the older one is stale; metadata can date the index as well."""
    text = "The price list of the year {} names all of our prices, without tax and without postage."
    questions = [a_question("v", a_chunk("old", text.format(2022)), a_chunk("new", text.format(2024)))]
    finding = freshness(questions)
    assert (finding.status, finding.figures["outdated"], finding.examples) == (Status.PROBLEM, 1, ("v",))
    assert finding.evidence == ("old versions, for example: old",)
    indexed = [*some_questions(), a_question("m", dates=("2023-01-01",)), a_question("late", text="What of 2024?")]
    assert freshness(indexed).figures["late"] == 1


def test_no_date_anywhere() -> None:
    """It is said what would help."""
    finding = freshness(some_questions())
    assert finding.status is Status.NOT_MEASURABLE
    assert "`indexed_at`" in finding.summary
