"""Questions to people about an answer."""

from __future__ import annotations

from ragwatch.core.labels.label import CLAIM, NAMES, label_questions


def test_each_question_has_words_for_each_reply() -> None:
    """Terminal and page offer the same replies; skipping is always one of them, and gives no score."""
    questions = label_questions(has_claims=False, has_contexts=True, criteria=[("polite", "is it polite?")])
    assert [str(question.quantity) for question in questions] == [
        "faithfulness", "answer_relevancy", "top_ranked_ignored", "polite",
    ]  # fmt: skip
    for question in questions:
        assert list(NAMES[question.kind]) == list(question.replies)
        assert question.replies["-"] is None
    assert list(NAMES["claim"]) == list(CLAIM)


def test_what_cannot_be_asked_is_not() -> None:
    """Support is asked about where there are no claims, use of a context where there is one."""
    questions = label_questions(has_claims=True, has_contexts=False)
    assert [str(question.quantity) for question in questions] == ["answer_relevancy"]
